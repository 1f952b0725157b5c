/* SPDX-License-Identifier: MIT */
/*
 * The RESP parser. The first byte is the size of pieces (a long input has larger ones); the rest is what
 * a connection sends. In pieces or at once the commands must be the same.
 */
#include "fuzz.h"

#include <string.h>

#include "../../examples/resp.h"

struct outcome {
    bool failed;
    size_t used, commands;
    uint64_t sum;
};

static void add(struct outcome *o, const struct resp_command *c, const char *buf, size_t n)
{
    o->commands++;
    for (int i = 0; i < c->argc; i++) {
        struct bytes a = c->argv[i];
        MUST(a.p >= buf && a.p + a.n <= buf + n);
        for (size_t k = 0; k < a.n; k++) {
            o->sum = (o->sum ^ (uint8_t)a.p[k]) * 1099511628211u;
        }
        o->sum = (o->sum ^ a.n) * 1099511628211u;
        int64_t v;
        if (bytes_int(a, &v)) { /* a number is written as it was read */
            struct reply r = {0};
            reply_int(&r, v);
            MUST(r.n == a.n + 3 && memcmp(r.p + 1, a.p, a.n) == 0);
            reply_free(&r);
        }
    }
}

static struct outcome run(const char *p, size_t n, size_t step)
{
    struct outcome o = {0};
    struct resp_command c;
    resp_init(&c);
    size_t have = 0;
    char *copy = NULL;
    while (!o.failed) {
        ssize_t got = 0;
        while (got == 0 && have < n - o.used) {
            have = have + step < n - o.used ? have + step : n - o.used;
            copy = malloc(have);
            MUST(copy);
            memcpy(copy, p + o.used, have);
            got = resp_parse(&c, copy, have);
            MUST(got <= (ssize_t)have && resp_wanted(&c) <= RESP_MAX_COMMAND);
            if (got > 0) {
                add(&o, &c, copy, (size_t)got);
            }
            free(copy);
        }
        if (got == 0) {
            break;
        }
        MUST(got > 0 || c.error);
        o.failed = got < 0;
        o.used += got > 0 ? (size_t)got : 0;
        have = 0;
        resp_next(&c);
    }
    resp_free(&c);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const char *p = (const char *)data + 1;
    struct outcome whole = run(p, size - 1, size);
    struct outcome pieces = run(p, size - 1, 1 + data[0] + size / 128);
    MUST(whole.failed == pieces.failed && whole.used == pieces.used);
    MUST(whole.commands == pieces.commands && whole.sum == pieces.sum);
    return 0;
}
