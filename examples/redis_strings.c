/* SPDX-License-Identifier: MIT */
/* The commands on strings. All are called with the store's lock held. */
#include <stdlib.h>
#include <string.h>

#include "redisd.h"

static struct blob *find_string(struct client *c, struct bytes key, bool *wrong)
{
    struct entry *e = find_locked(c, key, STRING, wrong);
    return e ? e->value : NULL;
}

static void reply_blob(struct client *c, const struct blob *b)
{
    if (b) {
        reply_bulk(&c->out, blob_bytes(b));
    } else {
        reply_null(&c->out);
    }
}

/* Makes key a string; keep_expiry: only if it has been there. False: no memory, which is replied. */
static bool put_string(struct client *c, struct bytes key, struct bytes value, bool keep_expiry)
{
    struct db *d = &dbs[c->db];
    struct entry *e = table_get(&d->keys, key);
    struct blob *old = e && e->type == STRING ? e->value : NULL;
    if (old && old->room >= value.n && old->room / 2 <= value.n) {
        memcpy(old->p, value.p, value.n);
        old->n = value.n;
    } else {
        struct blob *v = e ? blob_new(value) : NULL;
        if (!v) {
            if (e && !e->value) {
                remove_locked(d, key);
            }
            reply_no_memory(c);
            return false;
        }
        if (e->value) {
            free_value(e);
        }
        e->value = v;
        e->type = STRING;
    }
    if (!keep_expiry && e->expires) {
        set_expiry(d, e, 0);
    }
    return true;
}

/* -- Strings ---------------------------------------------------------------------------------- */

void cmd_get(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    struct blob *b = find_string(c, argv[1], &wrong);
    if (!wrong) {
        reply_blob(c, b);
    }
}

struct set_options {
    bool nx, xx, keep, get;
    int64_t expires; /* 0: none */
};

/* A time to live, of which the unit is in ms. False: not so, which is replied. */
static bool parse_expiry(struct client *c, struct bytes arg, int64_t unit, const char *command,
                         int64_t *at)
{
    int64_t n;
    if (!bytes_int(arg, &n)) {
        reply_error(&c->out, NOT_AN_INTEGER);
        return false;
    }
    if (n <= 0 || !deadline_of(n, unit, at)) {
        reply_error(&c->out, "ERR invalid expire time in '%s' command", command);
        return false;
    }
    return true;
}

/* All words are looked at before the time, as Redis does it: a syntax error comes first. */
static bool parse_set(struct client *c, int argc, const struct bytes *argv, struct set_options *o)
{
    bool ok = true;
    int64_t unit = 0;
    struct bytes time = {0};
    *o = (struct set_options){0};
    for (int i = 3; ok && i < argc; i++) {
        int64_t u = bytes_is(argv[i], "ex") ? SECONDS : bytes_is(argv[i], "px") ? MS : 0;
        if (bytes_is(argv[i], "nx")) {
            o->nx = true;
        } else if (bytes_is(argv[i], "xx")) {
            o->xx = true;
        } else if (bytes_is(argv[i], "keepttl")) {
            o->keep = true;
        } else if (bytes_is(argv[i], "get")) {
            o->get = true;
        } else if (u && i + 1 < argc && (!unit || unit == u)) {
            unit = u;
            time = argv[++i]; /* of several the last counts */
        } else {
            ok = false;
        }
    }
    if (!ok || (o->nx && o->xx) || (o->keep && unit)) {
        reply_error(&c->out, "ERR syntax error");
        return false;
    }
    return !unit || parse_expiry(c, time, unit, "set", &o->expires);
}

void cmd_set(struct client *c, int argc, const struct bytes *argv)
{
    struct set_options o;
    if (argc == 3) {
        if (put_string(c, argv[1], argv[2], false)) {
            reply_text(&c->out, "+OK\r\n");
        }
        return;
    }
    if (!parse_set(c, argc, argv, &o)) {
        return;
    }
    struct entry *e = find_any(c, argv[1]);
    if (o.get && e && e->type != STRING) {
        reply_error(&c->out, WRONG_TYPE);
        return;
    }
    bool refused = (o.nx && e) || (o.xx && !e);
    if (o.get) {
        reply_blob(c, e ? e->value : NULL); /* its bytes are copied */
    } else if (refused) {
        reply_null(&c->out);
    }
    if (refused || !put_string(c, argv[1], argv[2], o.keep)) {
        return;
    }
    if (o.expires) {
        set_expiry(&dbs[c->db], find_any(c, argv[1]), o.expires);
    }
    if (!o.get) {
        reply_text(&c->out, "+OK\r\n");
    }
}

void cmd_setnx(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    if (find_any(c, argv[1])) {
        reply_int(&c->out, 0);
    } else if (put_string(c, argv[1], argv[2], false)) {
        reply_int(&c->out, 1);
    }
}

static void set_with_expiry(struct client *c, const struct bytes *argv, int64_t unit,
                            const char *command)
{
    int64_t at;
    if (parse_expiry(c, argv[2], unit, command, &at) && put_string(c, argv[1], argv[3], false)) {
        set_expiry(&dbs[c->db], find_any(c, argv[1]), at);
        reply_text(&c->out, "+OK\r\n");
    }
}

void cmd_setex(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    set_with_expiry(c, argv, SECONDS, "setex");
}

void cmd_psetex(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    set_with_expiry(c, argv, MS, "psetex");
}

void cmd_getset(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    struct blob *b = find_string(c, argv[1], &wrong);
    if (!wrong) {
        reply_blob(c, b);
        put_string(c, argv[1], argv[2], false);
    }
}

void cmd_getdel(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    struct blob *b = find_string(c, argv[1], &wrong);
    if (!wrong) {
        reply_blob(c, b);
        remove_locked(&dbs[c->db], argv[1]);
    }
}

void cmd_strlen(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    struct blob *b = find_string(c, argv[1], &wrong);
    if (!wrong) {
        reply_int(&c->out, b ? (int64_t)b->n : 0);
    }
}

void cmd_append(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    struct entry *e = find_locked(c, argv[1], STRING, &wrong);
    if (wrong) {
        return;
    }
    if (!e) {
        if (put_string(c, argv[1], argv[2], false)) {
            reply_int(&c->out, (int64_t)argv[2].n);
        }
        return;
    }
    struct blob *b = e->value;
    size_t n = b->n + argv[2].n;
    if (n > RESP_MAX_BULK) {
        reply_error(&c->out, "ERR string exceeds maximum allowed size (%d bytes)", RESP_MAX_BULK);
        return;
    }
    if (n > b->room) { /* twice as much, so that many small ones are no copy each */
        struct blob *more = blob_with_room(blob_bytes(b), n * 2);
        if (!more) {
            reply_no_memory(c);
            return;
        }
        free(b);
        e->value = b = more;
    }
    memcpy(b->p + b->n, argv[2].p, argv[2].n);
    b->n = n;
    reply_int(&c->out, (int64_t)n);
}

static void add_to(struct client *c, struct bytes key, int64_t delta)
{
    bool wrong;
    int64_t v = 0;
    struct blob *b = find_string(c, key, &wrong);
    if (wrong) {
        return;
    }
    if (b && !bytes_int(blob_bytes(b), &v)) {
        reply_error(&c->out, NOT_AN_INTEGER);
        return;
    }
    if (__builtin_add_overflow(v, delta, &v)) {
        reply_error(&c->out, "ERR increment or decrement would overflow");
        return;
    }
    struct reply text = {0};
    reply_int(&text, v); /* ":123\r\n" */
    if (text.failed) {
        reply_no_memory(c);
    } else if (put_string(c, key, (struct bytes){text.p + 1, text.n - 3}, true)) {
        reply_raw(&c->out, text.p, text.n);
    }
    reply_free(&text);
}

void cmd_incr(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    add_to(c, argv[1], 1);
}

void cmd_decr(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    add_to(c, argv[1], -1);
}

void cmd_incrby(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    int64_t delta;
    if (bytes_int(argv[2], &delta)) {
        add_to(c, argv[1], delta);
    } else {
        reply_error(&c->out, NOT_AN_INTEGER);
    }
}

void cmd_decrby(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    int64_t delta;
    if (!bytes_int(argv[2], &delta)) {
        reply_error(&c->out, NOT_AN_INTEGER);
    } else if (delta == INT64_MIN) {
        reply_error(&c->out, "ERR decrement would overflow");
    } else {
        add_to(c, argv[1], -delta);
    }
}

void cmd_mget(struct client *c, int argc, const struct bytes *argv)
{
    reply_array(&c->out, argc - 1);
    for (int i = 1; i < argc; i++) {
        struct entry *e = find_any(c, argv[i]);
        reply_blob(c, e && e->type == STRING ? e->value : NULL);
    }
}

void cmd_mset(struct client *c, int argc, const struct bytes *argv)
{
    if (argc % 2 == 0) {
        reply_error(&c->out, "ERR wrong number of arguments for 'mset' command");
        return;
    }
    for (int i = 1; i < argc; i += 2) {
        if (!put_string(c, argv[i], argv[i + 1], false)) {
            return;
        }
    }
    reply_text(&c->out, "+OK\r\n");
}
