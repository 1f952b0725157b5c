/* SPDX-License-Identifier: MIT */
/* The HTTP parser of examples/httpd.c: what it takes, what it refuses and with which status. */
#include <harness.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/http_parse.h"

static struct http_request req;

static ssize_t parse(const char *text)
{
    struct http_head h = {0};
    return http_parse_head(&h, text, strlen(text), &req);
}

/* The same in pieces of every size, from memory of exactly that many bytes. */
static ssize_t parse_pieces(const char *text, size_t n, size_t step)
{
    struct http_head h = {0};
    for (size_t have = step;; have += step) {
        have = have < n ? have : n;
        char *copy = malloc(have);
        memcpy(copy, text, have);
        ssize_t r = http_parse_head(&h, copy, have, &req);
        free(copy);
        if (r != 0 || have == n) {
            return r;
        }
    }
}

#define HOST "Host: h\r\n"

TEST(simple)
{
    const char *text = "GET /a/b?c=d HTTP/1.1\r\nHost: h:80\r\nX-Y:  z z\t\r\nEmpty:\r\n\r\nrest";
    CHECK_EQ(parse(text), (ssize_t)strlen(text) - 4);
    CHECK(slice_is(req.method, "GET"));
    CHECK(slice_is(req.path, "/a/b"));
    CHECK(slice_is(req.query, "c=d"));
    CHECK_EQ(req.minor, 1);
    CHECK(req.keep_alive && !req.chunked && !req.has_length && !req.expects_continue);
    CHECK_EQ(req.n_fields, 3);
    CHECK(slice_is(http_field(&req, "x-y"), "z z"));
    CHECK(slice_is(http_field(&req, "EMPTY"), ""));
    CHECK(!http_field(&req, "none").p);
}

TEST(pieces)
{
    const char *text = "POST /x HTTP/1.1\r\n" HOST "Content-Length: 12\r\nA: b\r\n\r\n";
    size_t n = strlen(text);
    for (size_t step = 1; step <= n; step++) {
        CHECK_EQ(parse_pieces(text, n, step), (ssize_t)n);
    }
    CHECK_EQ(parse_pieces(text, n - 1, 1), 0);
    CHECK_EQ(parse_pieces("\r\nGET / HTTP/1.0\r\n\r\n", 20, 1), 20);
}

TEST(targets)
{
    CHECK_GT(parse("GET http://h/p?q HTTP/1.1\r\n" HOST "\r\n"), 0);
    CHECK(slice_is(req.path, "/p") && slice_is(req.query, "q"));
    CHECK_GT(parse("GET http://h HTTP/1.1\r\n" HOST "\r\n"), 0);
    CHECK(slice_is(req.path, "/"));
    CHECK_GT(parse("GET http://h?q HTTP/1.1\r\n" HOST "\r\n"), 0);
    CHECK(slice_is(req.path, "/") && slice_is(req.query, "q"));
    CHECK_GT(parse("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), 0);
    CHECK(slice_is(req.path, "*"));
    CHECK_EQ(parse("GET * HTTP/1.1\r\n" HOST "\r\n"), -400);
    CHECK_EQ(parse("GET http:///p HTTP/1.1\r\n" HOST "\r\n"), -400);
    CHECK_EQ(parse("GET x HTTP/1.1\r\n" HOST "\r\n"), -400);
    CHECK_EQ(parse("CONNECT h:80 HTTP/1.1\r\n" HOST "\r\n"), -400);
    CHECK_EQ(parse("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), -400);
    CHECK_EQ(parse("GET /\x80 HTTP/1.1\r\n" HOST "\r\n"), -400);
    CHECK_EQ(parse("GET /\x7f HTTP/1.1\r\n" HOST "\r\n"), -400);
}

TEST(request_lines)
{
    static const char *const wrong[] = {
        "GET / HTTP/1.1 \r\n\r\n",  "GET  / HTTP/1.1\r\n\r\n",
        " GET / HTTP/1.1\r\n\r\n",  "GET /\r\n\r\n",
        "GET / http/1.1\r\n\r\n",   "GET / HTTP/1.\r\n\r\n",
        "GET / HTTP/11.1\r\n\r\n",  "G(T / HTTP/1.1\r\n\r\n",
        "GET\t/ HTTP/1.1\r\n\r\n",  "GET / HTTP/1.1\n\r\n",
        "GET / HTTP/1.1\n\n",       "\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        "\nGET / HTTP/1.0\r\n\r\n", "GET / / HTTP/1.1\r\n\r\n",
        "GET  HTTP/1.1\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQ(parse(wrong[i]), -400);
    }
    CHECK_EQ(parse("GET / HTTP/2.0\r\n\r\n"), -505);
    CHECK_GT(parse("GET / HTTP/1.2\r\n" HOST "\r\n"), 0);
    CHECK(req.minor == 1 && req.keep_alive);
    CHECK_EQ(parse("GET / HTTP/1.9\r\n\r\n"), -400); /* no Host */
    CHECK_EQ(parse("GET / HTTP/0.9\r\n\r\n"), -505);
}

static ssize_t parse_field(const char *fields)
{
    char text[512] = "POST / HTTP/1.1\r\n" HOST;
    strcat(strcat(text, fields), "\r\n\r\n");
    return parse(text);
}

TEST(fields)
{
    CHECK_EQ(parse_field("A : b"), -400);
    CHECK_EQ(parse_field(": b"), -400);
    CHECK_EQ(parse_field("A"), -400);
    CHECK_EQ(parse_field("A: b\r\n c"), -400); /* folded */
    CHECK_EQ(parse_field("A: b\r\n\tc"), -400);
    CHECK_EQ(parse_field("A: b\nC: d"), -400); /* bare LF */
    CHECK_EQ(parse_field("A: b\rC: d"), -400); /* bare CR */
    CHECK_EQ(parse_field("A: \x01"), -400);
    CHECK_EQ(parse_field("A: \x7f"), -400);
    CHECK_EQ(parse_field("A\x80: b"), -400);
    CHECK_GT(parse_field("A: \xc3\xa4"), 0);
    const char nul[] = "GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n";
    CHECK_EQ(parse_pieces(nul, sizeof nul - 1, sizeof nul - 1), -400);
}

TEST(smuggling)
{
    CHECK_GT(parse_field("Content-Length: 5"), 0);
    CHECK(req.has_length && req.length == 5);
    CHECK_GT(parse_field("Content-Length: 007"), 0);
    CHECK_EQ(req.length, 7);
    CHECK_EQ(parse_field("Content-Length: 5\r\nContent-Length: 5"), -400);
    CHECK_EQ(parse_field("Content-Length: 5\r\nContent-Length: 6"), -400);
    CHECK_EQ(parse_field("Content-Length: 5, 5"), -400);
    CHECK_EQ(parse_field("Content-Length: +5"), -400);
    CHECK_EQ(parse_field("Content-Length: -5"), -400);
    CHECK_EQ(parse_field("Content-Length: 0x5"), -400);
    CHECK_EQ(parse_field("Content-Length: 5 5"), -400);
    CHECK_EQ(parse_field("Content-Length:"), -400);
    CHECK_EQ(parse_field("Content-Length: 99999999999999999999"), -400);
    CHECK_GT(parse_field("Transfer-Encoding: Chunked"), 0);
    CHECK(req.chunked);
    CHECK_EQ(parse_field("Transfer-Encoding: chunked\r\nContent-Length: 5"), -400);
    CHECK_EQ(parse_field("Content-Length: 5\r\nTransfer-Encoding: chunked"), -400);
    CHECK_EQ(parse_field("Content-Length: 5\r\nTransfer-Encoding: x"), -400);
    CHECK_EQ(parse_field("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), -400);
    CHECK_EQ(parse_field("Transfer-Encoding: chunked, chunked"), -501);
    CHECK_EQ(parse_field("Transfer-Encoding: gzip, chunked"), -501);
    CHECK_EQ(parse_field("Transfer-Encoding: identity"), -400);
    CHECK_EQ(parse_field("Transfer-Encoding: xchunked"), -400);
    CHECK_EQ(parse_field("Transfer-Encoding:\x0b"
                         "chunked"),
             -400);
    CHECK_EQ(parse_field("Transfer-Encoding : chunked"), -400);
    CHECK_EQ(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), -400);
}

TEST(hosts)
{
    CHECK_EQ(parse("GET / HTTP/1.1\r\n\r\n"), -400);
    CHECK_GT(parse("GET / HTTP/1.0\r\n\r\n"), 0);
    CHECK_EQ(parse_field("Host: other"), -400);
    CHECK_EQ(parse("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), -400);
    CHECK_EQ(parse("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), -400);
    CHECK_EQ(parse("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), -400);
    CHECK_GT(parse("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 0);
}

TEST(connection)
{
    CHECK_GT(parse_field("Connection: close"), 0);
    CHECK(!req.keep_alive);
    CHECK_GT(parse_field("Connection: x, Close ,keep-alive"), 0);
    CHECK(!req.keep_alive);
    CHECK_GT(parse_field("Connection: x,"), 0);
    CHECK(req.keep_alive);
    CHECK_GT(parse("GET / HTTP/1.0\r\n\r\n"), 0);
    CHECK(!req.keep_alive);
    CHECK_GT(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 0);
    CHECK(req.keep_alive);
    CHECK_GT(parse_field("Expect: 100-Continue"), 0);
    CHECK(req.expects_continue);
    CHECK_EQ(parse_field("Expect: more"), -417);
}

/* start, then fill times 'a', in pieces of step; until it is refused. */
static ssize_t refused(const char *start, const char *unit, size_t step)
{
    static char text[2 * HTTP_MAX_HEAD];
    strcpy(text, start);
    for (size_t n = strlen(text); n + strlen(unit) < sizeof text; n += strlen(unit)) {
        strcpy(text + n, unit);
    }
    return parse_pieces(text, sizeof text - 1, step);
}

TEST(limits)
{
    for (size_t step = 1; step < 5000; step += 617) {
        CHECK_EQ(refused("GET /", "a", step), -414);
        CHECK_EQ(refused("GET / HTTP/1.1\r\nHost: h\r\nA: ", "a", step), -431);
        CHECK_EQ(refused("GET / HTTP/1.1\r\n", "A: b\r\n", step), -431);
    }
    char text[2048] = "GET / HTTP/1.1\r\n" HOST;
    for (int i = 1; i < HTTP_MAX_FIELDS; i++) {
        strcat(text, "A: b\r\n");
    }
    size_t n = strlen(text);
    strcpy(text + n, "\r\n");
    CHECK_GT(parse(text), 0);
    CHECK_EQ(req.n_fields, HTTP_MAX_FIELDS);
    strcpy(text + n, "A: b\r\n\r\n");
    CHECK_EQ(parse(text), -431);
}

/* Feeds a chunked body in pieces of step; the result, or the bytes used, with the data in out. */
static ssize_t feed(const char *text, size_t step, uint64_t limit, char *out)
{
    struct http_request r = {.chunked = true};
    struct http_body b;
    CHECK_EQ(http_body_init(&b, &r, limit), 0);
    size_t n = strlen(text), used = 0, len = 0;
    while (!b.done && used < n) {
        struct slice data;
        ssize_t m = http_body_feed(&b, text + used, n - used < step ? n - used : step, &data);
        if (m < 0) {
            return m;
        }
        CHECK_GT(m, 0);
        CHECK(data.p + data.n == text + used + m || data.n == 0);
        memcpy(out + len, data.p, data.n);
        len += data.n;
        used += (size_t)m;
    }
    out[len] = 0;
    return b.done ? (ssize_t)used : 0;
}

TEST(chunked)
{
    static const char text[] =
        "4\r\nWiki\r\n5;x=\"y\"\r\npedia\r\nC\r\n in\r\n\r\nchunk\r\n0\r\nT: v\r\n\r\nGET";
    char out[64];
    for (size_t step = 1; step <= sizeof text; step++) {
        CHECK_EQ(feed(text, step, 100, out), (ssize_t)sizeof text - 4);
        CHECK_STR(out, "Wikipedia in\r\n\r\nchunk");
    }
    CHECK_EQ(feed("00000\r\n\r\n", 99, 100, out), 9);
}

TEST(chunked_wrong)
{
    static const struct {
        const char *text;
        int status;
    } wrong[] = {
        {"\r\n", -400},
        {"g\r\n", -400},
        {";\r\n", -400},
        {"4\nWiki", -400},
        {"4 \r\nWiki", -400},
        {"-4\r\n", -400},
        {"0x4\r\n", -400},
        {"4\r\nWikip", -400},
        {"4\r\nWiki\n", -400},
        {"4\r\nWiki\rx", -400},
        {"4;\n\r\n", -400},
        {"4;a\rb", -400},
        {"0\r\n\n", -400},
        {"0\r\n x: y\r\n", -400},
        {"0\r\nx\r\n", -400},
        {"0\r\nx : y\r\n", -400},
        {"0\r\nx: y\n", -400},
        {"0\r\nx: \1\r\n", -400},
        {"0\r\nx: y\rz", -400},
        {"65\r\n", -413},
        {"ffffffffffffffffffff\r\n", -413},
        {"60\r\n", 0},
    };
    char out[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQ(feed(wrong[i].text, 1, 100, out), wrong[i].status);
        CHECK_EQ(feed(wrong[i].text, 99, 100, out), wrong[i].status);
    }
    CHECK_EQ(
        feed("32\r\n01234567890123456789012345678901234567890123456789\r\n33\r\n", 9, 100, out),
        -413);
    static char longer[8192];
    memset(longer, '0', 1000);
    CHECK_EQ(feed(longer, 99, 100, out), -400); /* zeros without end */
    memcpy(longer, "1;", 2);
    CHECK_EQ(feed(longer, 99, 100, out), -400); /* an extension without end */
    memset(longer, 'a', sizeof longer - 1);
    memcpy(longer, "0\r\n", 3);
    longer[10] = ':';
    CHECK_EQ(feed(longer, 99, 100, out), -431); /* a trailer without end */
}

TEST(length)
{
    struct http_request r = {.has_length = true, .length = 5};
    struct http_body b;
    struct slice data;
    CHECK_EQ(http_body_init(&b, &r, 4), -413);
    CHECK_EQ(http_body_init(&b, &r, 5), 0);
    CHECK_EQ(http_body_feed(&b, "ab", 2, &data), 2);
    CHECK(!b.done && slice_is(data, "ab"));
    CHECK_EQ(http_body_feed(&b, "cdefgh", 6, &data), 3);
    CHECK(b.done && slice_is(data, "cde"));
    r.length = 0;
    CHECK_EQ(http_body_init(&b, &r, 5), 0);
    CHECK(b.done);
}

static const char *decode(const char *text)
{
    static char out[16];
    return http_decode_path((struct slice){text, strlen(text)}, out, sizeof out) < 0 ? "-" : out;
}

TEST(paths)
{
    CHECK_STR(decode("/a%20b"), "/a b");
    CHECK_STR(decode("/%41%7a"), "/Az");
    CHECK_STR(decode("/%2e%2E/"), "/../");
    CHECK_STR(decode("/%00"), "-");
    CHECK_STR(decode("/%"), "-");
    CHECK_STR(decode("/%4"), "-");
    CHECK_STR(decode("/%4g"), "-");
    CHECK_STR(decode("/12345678901234"), "/12345678901234");
    CHECK_STR(decode("/123456789012345"), "-");
}
