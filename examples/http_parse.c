/* SPDX-License-Identifier: MIT */
/*
 * See http_parse.h. The head is parsed in one go once its end has been seen, which is a search for an
 * empty line; the body by a state machine, for it comes in pieces.
 */
#include "http_parse.h"

#include <stddef.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The characters of methods and of field names. */
static bool is_token(char c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
           || (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

/* The characters of a field's value: visible ones, blanks, and bytes from 0x80. */
static bool is_text(char c)
{
    return ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\t';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool slice_is(struct slice s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool slice_is_case(struct slice s, const char *text)
{
    if (s.n != strlen(text)) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (lower(s.p[i]) != lower(text[i])) {
            return false;
        }
    }
    return true;
}

struct slice http_field(const struct http_request *req, const char *name)
{
    for (int i = 0; i < req->n_fields; i++) {
        if (slice_is_case(req->fields[i].name, name)) {
            return req->fields[i].value;
        }
    }
    return (struct slice){NULL, 0};
}

static struct slice trimmed(const char *p, const char *end)
{
    while (p < end && is_blank(*p)) {
        p++;
    }
    while (end > p && is_blank(end[-1])) {
        end--;
    }
    return (struct slice){p, (size_t)(end - p)};
}

/* -- The request line ------------------------------------------------------------------------- */

/* "http://host/path": the path. NULL if it is not so. */
static const char *after_authority(const char *p, const char *end)
{
    struct slice scheme = {p, (size_t)(end - p) < 7 ? 0 : 7};
    if (!slice_is_case(scheme, "http://")) {
        return NULL;
    }
    const char *host = p + 7;
    for (p = host; p < end && *p != '/' && *p != '?'; p++) {
    }
    return p > host ? p : NULL;
}

static int parse_target(struct http_request *req, const char *p, const char *end)
{
    for (const char *c = p; c < end; c++) {
        if (*c <= 0x20 || *c >= 0x7f || *c == '#') {
            return -400; /* bytes from 0x80 are negative, or past 0x7f */
        }
    }
    if (end - p == 1 && *p == '*' && slice_is(req->method, "OPTIONS")) {
        req->path = (struct slice){p, 1};
        return 0;
    }
    if (*p != '/' && !(p = after_authority(p, end))) {
        return -400;
    }
    const char *mark = memchr(p, '?', (size_t)(end - p));
    req->path = (struct slice){p, (size_t)((mark ? mark : end) - p)};
    if (req->path.n == 0) {
        req->path = (struct slice){"/", 1};
    }
    if (mark) {
        req->query = (struct slice){mark + 1, (size_t)(end - mark - 1)};
    }
    return 0;
}

/* The line is p to end, without its CR LF. */
static int parse_request_line(struct http_request *req, const char *p, const char *end)
{
    const char *start = p;
    while (p < end && is_token(*p)) {
        p++;
    }
    if (p == start || p == end || *p != ' ') {
        return -400;
    }
    req->method = (struct slice){start, (size_t)(p - start)};
    start = ++p;
    while (p < end && *p != ' ') {
        p++;
    }
    if (p == start || end - p != 9 || memcmp(p + 1, "HTTP/", 5) != 0 || !is_digit(p[6])
        || p[7] != '.' || !is_digit(p[8])) {
        return -400;
    }
    if (p[6] != '1') {
        return -505;
    }
    req->minor = p[8] > '0'; /* HTTP/1.2 and so on: as the highest that is known */
    req->keep_alive = req->minor == 1;
    return parse_target(req, start, p);
}

/* -- Fields ----------------------------------------------------------------------------------- */

static int parse_length(struct http_request *req, struct slice v)
{
    if (req->has_length || v.n == 0 || v.n > 18) { /* 18 digits can't overflow */
        return -400;
    }
    for (size_t i = 0; i < v.n; i++) {
        if (!is_digit(v.p[i])) {
            return -400;
        }
        req->length = req->length * 10 + (uint64_t)(v.p[i] - '0');
    }
    req->has_length = true;
    return 0;
}

static int parse_transfer_encoding(struct http_request *req, struct slice v)
{
    if (req->chunked || req->minor == 0) {
        return -400;
    }
    req->chunked = true;
    if (slice_is_case(v, "chunked")) {
        return 0;
    }
    /* "gzip, chunked" is a coding that is not known here; without "chunked" at the end it has none. */
    const char *comma = memrchr(v.p, ',', v.n);
    bool last = comma && slice_is_case(trimmed(comma + 1, v.p + v.n), "chunked");
    return last ? -501 : -400;
}

static void parse_connection(struct http_request *req, struct slice v, bool *close)
{
    for (const char *p = v.p, *end = v.p + v.n; p <= end;) {
        const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        struct slice option = trimmed(p, comma ? comma : end);
        if (slice_is_case(option, "close")) {
            *close = true;
        } else if (slice_is_case(option, "keep-alive")) {
            req->keep_alive = true;
        }
        p = comma ? comma + 1 : end + 1;
    }
}

static int parse_host(struct slice v, bool *has)
{
    if (*has) {
        return -400;
    }
    *has = true;
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!is_token(c) && !strchr(":[]", c)) { /* strchr finds NUL too, but is_text had it out */
            return -400;
        }
    }
    return 0;
}

static int parse_expect(struct http_request *req, struct slice v)
{
    if (!slice_is_case(v, "100-continue")) {
        return -417;
    }
    req->expects_continue = req->minor == 1;
    return 0;
}

/* What the fields say about the message itself. */
static int understand(struct http_request *req)
{
    bool has_host = false, close = false;
    for (int i = 0; i < req->n_fields; i++) {
        struct slice name = req->fields[i].name, value = req->fields[i].value;
        int err = 0;
        switch (name.n) { /* most fields are none of these */
        case 4: err = slice_is_case(name, "Host") ? parse_host(value, &has_host) : 0; break;
        case 6: err = slice_is_case(name, "Expect") ? parse_expect(req, value) : 0; break;
        case 10:
            if (slice_is_case(name, "Connection")) {
                parse_connection(req, value, &close);
            }
            break;
        case 14: err = slice_is_case(name, "Content-Length") ? parse_length(req, value) : 0; break;
        case 17:
            err =
                slice_is_case(name, "Transfer-Encoding") ? parse_transfer_encoding(req, value) : 0;
            break;
        }
        if (err) {
            return err;
        }
    }
    if (close) {
        req->keep_alive = false;
    }
    if ((req->chunked && req->has_length) || (req->minor == 1 && !has_host)) {
        return -400;
    }
    return 0;
}

/* The line is p to end, without its CR LF. */
static int parse_field(struct http_request *req, const char *p, const char *end)
{
    const char *start = p;
    while (p < end && is_token(*p)) {
        p++;
    }
    if (p == start || p == end || *p != ':') {
        return -400; /* also a line that begins with a blank: a folded one */
    }
    for (const char *c = p + 1; c < end; c++) {
        if (!is_text(*c)) {
            return -400;
        }
    }
    if (req->n_fields == HTTP_MAX_FIELDS) {
        return -431;
    }
    req->fields[req->n_fields++] =
        (struct http_field){{start, (size_t)(p - start)}, trimmed(p + 1, end)};
    return 0;
}

/* -- The head --------------------------------------------------------------------------------- */

/* The LF of the line that begins at p; NULL if it is not there yet. */
static const char *line_end(const char *p, const char *end)
{
    return p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
}

/*
 * Where the head ends: 0 if not in these bytes, or a status. Each byte is looked at once, and the same
 * is told whether the bytes come together or one by one. The request line begins at first.
 */
static ssize_t find_end(struct http_head *h, const char *buf, size_t n, size_t first)
{
    const char *end = buf + n;
    for (const char *p = buf + h->seen, *lf; (lf = line_end(p, end)); p = lf + 1) {
        size_t next = (size_t)(lf - buf) + 1;
        if (!h->has_line && next > first + HTTP_MAX_LINE) {
            return -414;
        }
        if (lf == buf || lf[-1] != '\r' || next == first + 2) {
            return -400; /* a bare LF, or no request line */
        }
        h->has_line = true;
        h->seen = next;
        if (next >= 4 && memcmp(lf - 3, "\r\n\r\n", 4) == 0) {
            return (ssize_t)next;
        }
    }
    h->seen = n;
    if (!h->has_line && n > first + HTTP_MAX_LINE) {
        return -414;
    }
    return n < HTTP_MAX_HEAD ? 0 : -431;
}

ssize_t http_parse_head(struct http_head *h, const char *buf, size_t n, struct http_request *req)
{
    size_t first =
        n >= 2 && buf[0] == '\r' && buf[1] == '\n' ? 2 : 0; /* one empty line before it */
    if (h->seen < first) {
        h->seen = first;
    }
    ssize_t head = find_end(h, buf, n < HTTP_MAX_HEAD ? n : HTTP_MAX_HEAD, first);
    if (head <= 0) {
        return head;
    }
    memset(req, 0, offsetof(struct http_request, fields));
    const char *p = buf + first, *end = buf + head, *lf = line_end(p, end);
    int err = parse_request_line(req, p, lf - 1);
    for (p = lf + 1; !err && (lf = line_end(p, end)) && lf - p > 1; p = lf + 1) {
        err = parse_field(req, p, lf - 1);
    }
    err = err ? err : understand(req);
    return err ? err : head;
}

/* -- The body --------------------------------------------------------------------------------- */

enum {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    TRAILER_LINE,
    TRAILER_LF,
    END_LF
};

int http_body_init(struct http_body *b, const struct http_request *req, uint64_t limit)
{
    *b = (struct http_body){.limit = limit};
    if (req->chunked) {
        b->state = SIZE;
        return 0;
    }
    b->state = DATA;
    b->left = req->length;
    b->done = b->left == 0;
    return b->left > limit ? -413 : 0;
}

/* A character of the line with the chunk's size: hexadecimal digits, then anything after ';'. */
static int feed_size(struct http_body *b, char c)
{
    int digit = hex_value(c);
    if (++b->line > HTTP_MAX_CHUNK_LINE) {
        return -400;
    }
    if (b->state == SIZE && digit >= 0) {
        b->left =
            b->left * 16 + (uint64_t)digit; /* stays far from 2^64: the limit is not near it */
        b->digits = true;
        return b->left > b->limit - b->total ? -413 : 0;
    }
    if (!b->digits) {
        return -400;
    }
    if (c == '\r') {
        b->state = SIZE_LF;
        return 0;
    }
    if (b->state == SIZE && c != ';') {
        return -400;
    }
    b->state = EXTENSION;
    return is_text(c) ? 0 : -400;
}

/* A character of the trailer, whose fields are looked over and dropped. */
static int feed_trailer(struct http_body *b, char c)
{
    if (++b->line > HTTP_MAX_TRAILER) {
        return -431;
    }
    switch (b->state) {
    case TRAILER: /* at the start of a line */
        if (c == '\r') {
            b->state = END_LF;
            return 0;
        }
        b->state = TRAILER_LINE;
        b->digits = false; /* of a colon, here */
        return is_token(c) ? 0 : -400;
    case TRAILER_LINE:
        if (c == '\r' && b->digits) {
            b->state = TRAILER_LF;
            return 0;
        }
        if (c == ':') {
            b->digits = true;
            return 0;
        }
        return (b->digits ? is_text(c) : is_token(c)) ? 0 : -400;
    case TRAILER_LF: b->state = TRAILER; return c == '\n' ? 0 : -400;
    default: b->done = true; return c == '\n' ? 0 : -400;
    }
}

/* A character that is not data. */
static int feed_framing(struct http_body *b, char c)
{
    switch (b->state) {
    case SIZE:
    case EXTENSION: return feed_size(b, c);
    case SIZE_LF:
        b->state = b->left > 0 ? DATA : TRAILER;
        b->line = 0;
        return c == '\n' ? 0 : -400;
    case DATA_CR: b->state = DATA_LF; return c == '\r' ? 0 : -400;
    case DATA_LF:
        b->state = SIZE;
        b->digits = false;
        b->line = 0;
        return c == '\n' ? 0 : -400;
    default: return feed_trailer(b, c);
    }
}

ssize_t http_body_feed(struct http_body *b, const char *buf, size_t n, struct slice *data)
{
    bool chunked = b->state != DATA || b->digits;
    size_t i = 0;
    *data = (struct slice){buf, 0};
    while (i < n && !b->done && b->state != DATA) {
        int err = feed_framing(b, buf[i++]);
        if (err) {
            return err;
        }
    }
    if (i == n || b->done) {
        return (ssize_t)i;
    }
    size_t m = n - i < b->left ? n - i : (size_t)b->left;
    *data = (struct slice){buf + i, m};
    b->left -= m;
    b->total += m;
    if (b->left == 0) {
        b->state = chunked ? DATA_CR : DATA;
        b->done = !chunked;
    }
    return (ssize_t)(i + m);
}

/* -- Statuses -------------------------------------------------------------------------------- */

const char *http_reason(int status)
{
    switch (status) {
    case 200: return "200 OK";
    case 206: return "206 Partial Content";
    case 301: return "301 Moved Permanently";
    case 304: return "304 Not Modified";
    case 400: return "400 Bad Request";
    case 403: return "403 Forbidden";
    case 404: return "404 Not Found";
    case 405: return "405 Method Not Allowed";
    case 408: return "408 Request Timeout";
    case 413: return "413 Content Too Large";
    case 414: return "414 URI Too Long";
    case 416: return "416 Range Not Satisfiable";
    case 417: return "417 Expectation Failed";
    case 431: return "431 Request Header Fields Too Large";
    case 501: return "501 Not Implemented";
    case 503: return "503 Service Unavailable";
    case 505: return "505 HTTP Version Not Supported";
    default: return "500 Internal Server Error";
    }
}

/* -- Paths ------------------------------------------------------------------------------------ */

ssize_t http_decode_path(struct slice path, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        if (c == '%') {
            int hi = i + 2 < path.n ? hex_value(path.p[i + 1]) : -1;
            int lo = i + 2 < path.n ? hex_value(path.p[i + 2]) : -1;
            if (hi < 0 || lo < 0) {
                return -1;
            }
            c = (char)(hi * 16 + lo);
            i += 2;
        }
        if (c == 0 || n + 1 >= size) {
            return -1;
        }
        out[n++] = c;
    }
    out[n] = 0;
    return (ssize_t)n;
}
