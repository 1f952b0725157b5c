/* SPDX-License-Identifier: MIT */
/*
 * The HTTP parser. The first byte is the size of pieces (a long input has larger ones); the rest is what
 * a connection sends: heads and bodies, one after the other. In pieces or at once, the result must be
 * the same, and every slice within the bytes; each piece is in memory of its own, for AddressSanitizer to
 * see the edges.
 */
#include "fuzz.h"

#include <string.h>

#include "../../examples/http_parse.h"

enum { LIMIT = 4096 };

struct outcome {
    int status; /* the last result < 0, or 0 */
    size_t used, heads, data;
    uint64_t sum; /* of what was understood */
};

static void add(struct outcome *o, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        o->sum = (o->sum ^ (uint8_t)p[i]) * 1099511628211u;
    }
    o->sum = (o->sum ^ n) * 1099511628211u;
}

static void add_slice(struct outcome *o, struct slice s, const char *buf, size_t n)
{
    MUST(!s.p || (s.n == 1 && s.p[0] == '/') || (s.p >= buf && s.p + s.n <= buf + n));
    add(o, s.p, s.n);
}

static void add_request(struct outcome *o, const struct http_request *r, const char *buf, size_t n)
{
    add_slice(o, r->method, buf, n);
    add_slice(o, r->path, buf, n);
    add_slice(o, r->query, buf, n);
    MUST(r->method.n > 0 && r->path.n > 0 && (r->minor == 0 || r->minor == 1));
    MUST(!(r->chunked && (r->has_length || r->minor == 0)));
    MUST(r->n_fields <= HTTP_MAX_FIELDS);
    for (int i = 0; i < r->n_fields; i++) {
        add_slice(o, r->fields[i].name, buf, n);
        add_slice(o, r->fields[i].value, buf, n);
        MUST(r->fields[i].name.n > 0);
        MUST(r->fields[i].value.n == 0
             || !memchr(r->fields[i].value.p, '\n', r->fields[i].value.n));
    }
    add(o, (const char *)&r->length, sizeof r->length);
    char path[256];
    ssize_t len = http_decode_path(r->path, path, sizeof path);
    MUST(len < (ssize_t)sizeof path && (len < 0 || strlen(path) == (size_t)len));
}

/* The next head, seen in growing pieces. 0: the bytes end before it does. */
static ssize_t head(struct outcome *o, const char *p, size_t n, size_t step, struct http_request *r)
{
    struct http_head h = {0};
    for (size_t have = step < n ? step : n;; have = have + step < n ? have + step : n) {
        char *copy = malloc(have ? have : 1);
        MUST(copy);
        memcpy(copy, p, have);
        ssize_t got = http_parse_head(&h, copy, have, r);
        MUST(got <= (ssize_t)have && got <= HTTP_MAX_HEAD && got >= -599);
        if (got > 0) {
            add_request(o, r, copy, (size_t)got);
            o->heads++;
        }
        free(copy);
        if (got != 0 || have == n) {
            return got;
        }
    }
}

/* The body after it. 0: the bytes end before it does. */
static ssize_t body(struct outcome *o, const char *p, size_t n, size_t step, struct http_request *r)
{
    struct http_body b;
    int status = http_body_init(&b, r, LIMIT);
    size_t used = 0;
    while (status == 0 && !b.done && used < n) {
        size_t m = n - used < step ? n - used : step;
        char *copy = malloc(m);
        MUST(copy);
        memcpy(copy, p + used, m);
        struct slice data;
        ssize_t got = http_body_feed(&b, copy, m, &data);
        MUST(got <= (ssize_t)m && (got > 0 || got <= -400));
        if (got > 0) {
            MUST(data.n == 0 || data.p + data.n == copy + got);
            for (size_t i = 0; i < data.n; i++) {
                o->sum = (o->sum ^ (uint8_t)data.p[i]) * 1099511628211u;
            }
            o->data += data.n;
            used += (size_t)got;
        } else {
            status = (int)got;
        }
        free(copy);
    }
    MUST(b.total <= LIMIT);
    o->status = status;
    o->used += used;
    return status == 0 && b.done;
}

static struct outcome run(const char *p, size_t n, size_t step)
{
    struct outcome o = {0};
    struct http_request r;
    for (;;) {
        ssize_t got = head(&o, p + o.used, n - o.used, step, &r);
        if (got <= 0) {
            o.status = (int)got;
            return o;
        }
        o.used += (size_t)got;
        if (body(&o, p + o.used, n - o.used, step, &r) <= 0) {
            return o;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const char *p = (const char *)data + 1;
    struct outcome whole = run(p, size - 1, size);
    struct outcome pieces = run(p, size - 1, 1 + data[0] + size / 128);
    MUST(whole.heads == pieces.heads && whole.sum == pieces.sum && whole.data == pieces.data);
    MUST(whole.status == pieces.status);
    return 0;
}
