/* SPDX-License-Identifier: MIT */
/* See resp.h. */
#include "resp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void resp_init(struct resp_command *c)
{
    memset(c, 0, sizeof *c);
    c->argv = c->own;
    c->room = RESP_ROOM;
}

void resp_free(struct resp_command *c)
{
    if (c->argv != c->own) {
        free(c->argv);
    }
    resp_init(c);
}

void resp_next(struct resp_command *c)
{
    if (c->room > 1024) {
        resp_free(c); /* one big command is no reason to keep the memory */
    }
    c->argc = 0;
    c->want = 0;
    c->pos = 0;
    c->in_bulk = false;
}

size_t resp_wanted(const struct resp_command *c)
{
    return c->pos + (c->in_bulk ? c->bulk + 2 : 0);
}

static ssize_t wrong(struct resp_command *c, const char *why)
{
    c->error = why;
    return -1;
}

/* While a command is under way argv[i].p is an offset, for the buffer may move. */
static bool add_arg(struct resp_command *c, size_t off, size_t n)
{
    if (c->argc == c->room) {
        int room = c->room * 2;
        struct bytes *v = malloc((size_t)room * sizeof *v);
        if (!v) {
            c->error = "out of memory";
            return false;
        }
        memcpy(v, c->argv, (size_t)c->argc * sizeof *v);
        if (c->argv != c->own) {
            free(c->argv);
        }
        c->argv = v;
        c->room = room;
    }
    c->argv[c->argc++] = (struct bytes){(const char *)off, n};
    return true;
}

static ssize_t finish(struct resp_command *c, const char *buf)
{
    for (int i = 0; i < c->argc; i++) {
        c->argv[i].p = buf + (size_t)c->argv[i].p;
    }
    return (ssize_t)c->pos;
}

/* -- Arrays ----------------------------------------------------------------------------------- */

/*
 * The number on the line at c->pos, which begins with a type's letter. 1: it is there, and c->pos
 * after its line; 0: it is not there yet; -1: it is none.
 */
static int number_line(struct resp_command *c, const char *buf, size_t n, int64_t *out)
{
    enum { MOST = 24 };
    size_t left = n - c->pos;
    const char *p = buf + c->pos + 1;
    const char *lf = memchr(p, '\n', left - 1 < MOST ? left - 1 : MOST);
    if (!lf) {
        return left - 1 < MOST ? 0 : -1;
    }
    if (lf == p || lf[-1] != '\r') {
        return -1;
    }
    c->pos = (size_t)(lf - buf) + 1;
    return bytes_int((struct bytes){p, (size_t)(lf - 1 - p)}, out) ? 1 : -1;
}

static ssize_t parse_array(struct resp_command *c, const char *buf, size_t n)
{
    int64_t v;
    if (c->want == 0) {
        int there = number_line(c, buf, n, &v);
        if (there == 0) {
            return 0;
        }
        if (there < 0 || v > RESP_MAX_ARGS) {
            return wrong(c, "invalid multibulk length");
        }
        if (v <= 0) {
            return (ssize_t)c->pos; /* no command; Redis takes no notice either */
        }
        c->want = (int)v;
    }
    while (c->argc < c->want) {
        if (!c->in_bulk) {
            if (c->pos == n) {
                return 0;
            }
            if (buf[c->pos] != '$') {
                return wrong(c, "expected '$'");
            }
            int there = number_line(c, buf, n, &v);
            if (there == 0) {
                return 0;
            }
            if (there < 0 || v < 0 || v > RESP_MAX_BULK) {
                return wrong(c, "invalid bulk length");
            }
            c->bulk = (size_t)v;
            c->in_bulk = true;
            if (resp_wanted(c) > RESP_MAX_COMMAND) {
                return wrong(c, "too big command");
            }
        }
        if (n - c->pos < c->bulk + 2) {
            return 0;
        }
        if (memcmp(buf + c->pos + c->bulk, "\r\n", 2) != 0) {
            return wrong(c, "invalid bulk length");
        }
        if (!add_arg(c, c->pos, c->bulk)) {
            return -1;
        }
        c->pos += c->bulk + 2;
        c->in_bulk = false;
    }
    return finish(c, buf);
}

/* -- Lines ------------------------------------------------------------------------------------ */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After a backslash in double quotes, at p: the character; *p moves to the last that was used. */
static char escaped(char **p, const char *end)
{
    static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
    if (**p == 'x' && end - *p > 2 && hex_value((*p)[1]) >= 0 && hex_value((*p)[2]) >= 0) {
        *p += 2;
        return (char)(hex_value((*p)[-1]) * 16 + hex_value(**p));
    }
    const char *f = **p ? strchr(from, **p) : NULL;
    return f ? to[f - from] : **p;
}

/* Unquotes the word at *p in place, which never makes it longer, and moves *p behind it. The length;
 * -1: a quote has no end, or something that is no blank follows it. */
static ssize_t unquote(char **p, const char *end)
{
    char quote = 0, *s = *p, *out = *p, *start = *p;
    for (; s < end; s++) {
        if (!quote && (*s == ' ' || *s == '\t')) {
            break;
        }
        if (quote && *s == quote) {
            if (s + 1 < end && s[1] != ' ' && s[1] != '\t') {
                return -1;
            }
            quote = 0;
        } else if (!quote && (*s == '"' || *s == '\'')) {
            quote = *s;
        } else if (quote == '"' && *s == '\\' && s + 1 < end) {
            s++;
            *out++ = escaped(&s, end);
        } else if (quote == '\'' && *s == '\\' && s + 1 < end && s[1] == '\'') {
            *out++ = *++s;
        } else {
            *out++ = *s;
        }
    }
    *p = s;
    return quote ? -1 : out - start;
}

static ssize_t parse_line(struct resp_command *c, char *buf, size_t n)
{
    size_t most = n < RESP_MAX_LINE ? n : RESP_MAX_LINE;
    char *lf = c->pos < most ? memchr(buf + c->pos, '\n', most - c->pos) : NULL;
    if (!lf) {
        c->pos = most;
        return n < RESP_MAX_LINE ? 0 : wrong(c, "too big inline request");
    }
    char *end = lf > buf && lf[-1] == '\r' ? lf - 1 : lf;
    for (char *p = buf; p < end;) {
        if (*p == ' ' || *p == '\t') {
            p++;
            continue;
        }
        size_t off = (size_t)(p - buf);
        ssize_t len = unquote(&p, end);
        if (len < 0) {
            return wrong(c, "unbalanced quotes in request");
        }
        if (!add_arg(c, off, (size_t)len)) {
            return -1;
        }
    }
    c->pos = (size_t)(lf - buf) + 1;
    return finish(c, buf);
}

ssize_t resp_parse(struct resp_command *c, char *buf, size_t n)
{
    if (n == 0) {
        return 0;
    }
    return buf[0] == '*' ? parse_array(c, buf, n) : parse_line(c, buf, n);
}

/* -- Words and numbers ------------------------------------------------------------------------ */

bool bytes_is(struct bytes b, const char *text)
{
    for (size_t i = 0; i < b.n; i++, text++) {
        char x = b.p[i], y = *text;
        if (x >= 'A' && x <= 'Z') {
            x = (char)(x | 0x20);
        }
        if (y >= 'A' && y <= 'Z') {
            y = (char)(y | 0x20);
        }
        if (!y || x != y) {
            return false;
        }
    }
    return !*text;
}

bool bytes_int(struct bytes b, int64_t *out)
{
    size_t i = b.n > 0 && b.p[0] == '-';
    if (b.n - i < 1 || b.n - i > 19 || (b.p[i] == '0' && b.n > 1)) {
        return false; /* as Redis: no "+1", no "01", no "-0" */
    }
    uint64_t v = 0; /* 19 digits fit */
    for (size_t k = i; k < b.n; k++) {
        if (b.p[k] < '0' || b.p[k] > '9') {
            return false;
        }
        v = v * 10 + (uint64_t)(b.p[k] - '0');
    }
    if (v > (uint64_t)INT64_MAX + i) {
        return false;
    }
    *out = (int64_t)(i ? 0 - v : v);
    return true;
}

/* -- Replies ---------------------------------------------------------------------------------- */

static bool make_room(struct reply *r, size_t n)
{
    if (r->failed || n > RESP_MAX_REPLY - r->n) {
        r->failed = true;
        return false;
    }
    size_t room = r->room ? r->room : 1024;
    while (room - r->n < n) {
        room *= 2;
    }
    room = room < RESP_MAX_REPLY ? room : RESP_MAX_REPLY;
    char *p = realloc(r->p, room);
    if (!p) {
        r->failed = true;
        return false;
    }
    r->p = p;
    r->room = room;
    return true;
}

void reply_raw(struct reply *r, const void *p, size_t n)
{
    if (r->failed || (n > r->room - r->n && !make_room(r, n))) {
        return;
    }
    if (n > 0) {
        memcpy(r->p + r->n, p, n);
        r->n += n;
    }
}

void reply_text(struct reply *r, const char *text)
{
    reply_raw(r, text, strlen(text));
}

void reply_error(struct reply *r, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *c = line; *c; c++) {
        if (*c == '\r' || *c == '\n') {
            *c = ' '; /* what a client has sent must not end the line */
        }
    }
    reply_raw(r, "-", 1);
    reply_text(r, line);
    reply_raw(r, "\r\n", 2);
}

/* A type's letter, a number, CR LF. */
static void reply_head(struct reply *r, char type, int64_t v)
{
    char text[24], *p = text + sizeof text;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *--p = '\n';
    *--p = '\r';
    do {
        *--p = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0) {
        *--p = '-';
    }
    *--p = type;
    reply_raw(r, p, (size_t)(text + sizeof text - p));
}

void reply_int(struct reply *r, int64_t v)
{
    reply_head(r, ':', v);
}

void reply_bulk(struct reply *r, struct bytes b)
{
    reply_head(r, '$', (int64_t)b.n);
    reply_raw(r, b.p, b.n);
    reply_raw(r, "\r\n", 2);
}

void reply_bulk_text(struct reply *r, const char *text)
{
    reply_bulk(r, (struct bytes){text, strlen(text)});
}

void reply_null(struct reply *r)
{
    reply_text(r, "$-1\r\n");
}

void reply_array(struct reply *r, int64_t n)
{
    reply_head(r, '*', n);
}

void reply_retract(struct reply *r, size_t n)
{
    r->n = n;
    r->failed = false;
}

void reply_free(struct reply *r)
{
    free(r->p);
    *r = (struct reply){0};
}
