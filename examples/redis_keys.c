/* SPDX-License-Identifier: MIT */
/*
 * The store: keys, and their time to live. One lock for all of it: a command takes a fraction of a
 * microsecond, its system calls several, so that the lock is seldom wanted twice.
 *
 * A key that has expired is dropped by the first who finds it; a goroutine that runs while there are keys
 * which will expire looks for those that nobody asks for.
 */
#include <stdlib.h>
#include <string.h>

#include "redisd.h"

enum { SWEEP_BUCKETS = 4096 };
static const pirn_ns SWEEP_EVERY = 100 * PIRN_MS;

void free_value(struct entry *e)
{
    if (e->type == LIST) {
        free_list(e->value);
    } else {
        free(e->value);
    }
}

static void free_queue(struct entry *e)
{
    free(e->value);
}

pirn_mutex store_lock;
struct db dbs[DATABASES] = {[0 ... DATABASES - 1] = {.keys = {.free_value = free_value},
                                                     .waiting = {.free_value = free_queue}}};

/* -- Values ----------------------------------------------------------------------------------- */

struct blob *blob_with_room(struct bytes b, size_t room)
{
    struct blob *v = malloc(sizeof *v + room);
    if (v) {
        v->n = b.n;
        v->room = room;
        memcpy(v->p, b.p, b.n);
    }
    return v;
}

struct blob *blob_new(struct bytes b)
{
    return blob_with_room(b, b.n);
}

struct bytes blob_bytes(const struct blob *b)
{
    return (struct bytes){b->p, b->n};
}

void reply_no_memory(struct client *c)
{
    reply_error(&c->out, "OOM out of memory");
}

void reply_too_big(struct client *c)
{
    reply_error(&c->out, "OOM reply is longer than %d bytes, or than there is memory for",
                RESP_MAX_REPLY);
}

/* -- Time to live ----------------------------------------------------------------------------- */

static bool sweeping; /* under the lock */

/* As Redis counts; in ns, what is more than 292 years away would not fit. */
static int64_t now_ms(void)
{
    return pirn_now() / PIRN_MS;
}

static bool has_expired(const struct entry *e)
{
    return e->expires && e->expires < now_ms();
}

static void sweep_entry(struct entry *e, void *arg)
{
    struct db *d = arg;
    if (has_expired(e)) {
        remove_locked(d, entry_key(e));
    }
}

static size_t expiring_locked(void)
{
    size_t n = 0;
    for (int i = 0; i < DATABASES; i++) {
        n += dbs[i].expiring;
    }
    return n;
}

/* Looks at a part of each table every now and then, until no key has a time to live. */
static void sweep(void *arg)
{
    (void)arg;
    size_t at[DATABASES] = {0};
    bool more;
    do {
        if (pirn_sleep(SWEEP_EVERY) != 0) {
            return; /* the server stops */
        }
        for (int i = 0; i < DATABASES; i++) {
            pirn_mutex_lock(&store_lock); /* for each: others shall not wait for all of it */
            if (dbs[i].expiring > 0
                && table_walk(&dbs[i].keys, &at[i], SWEEP_BUCKETS, sweep_entry, &dbs[i])) {
                at[i] = 0;
            }
            pirn_mutex_unlock(&store_lock);
        }
        pirn_mutex_lock(&store_lock); /* all of them anew: one may have been given keys meanwhile */
        more = sweeping = expiring_locked() > 0;
        pirn_mutex_unlock(&store_lock);
    } while (more);
}

void set_expiry(struct db *d, struct entry *e, int64_t at)
{
    d->expiring += (at != 0) - (size_t)(e->expires != 0);
    e->expires = at;
    if (at && !sweeping) {
        pirn_attr attr = {.name = "sweep", .ctx = server_ctx()};
        sweeping = pirn_spawn(&attr, sweep, NULL) == 0;
    }
}

void remove_locked(struct db *d, struct bytes key)
{
    struct entry *e = table_find(&d->keys, key);
    if (e) {
        set_expiry(d, e, 0);
        table_remove(&d->keys, key);
    }
}

bool deadline_of(int64_t amount, int64_t unit, int64_t *at)
{
    int64_t ms;
    return !__builtin_mul_overflow(amount, unit, &ms) && !__builtin_add_overflow(now_ms(), ms, at)
           && *at != 0;
}

/* -- Finding keys ----------------------------------------------------------------------------- */

struct entry *find_any(struct client *c, struct bytes key)
{
    struct db *d = &dbs[c->db];
    struct entry *e = table_find(&d->keys, key);
    if (e && has_expired(e)) {
        remove_locked(d, key);
        return NULL;
    }
    return e;
}

struct entry *find_locked(struct client *c, struct bytes key, int type, bool *wrong)
{
    struct entry *e = find_any(c, key);
    *wrong = e && e->type != type;
    if (*wrong) {
        reply_error(&c->out, WRONG_TYPE);
        return NULL;
    }
    return e;
}

/* -- Keys of any type ------------------------------------------------------------------------- */

void cmd_del(struct client *c, int argc, const struct bytes *argv)
{
    int64_t n = 0;
    for (int i = 1; i < argc; i++) {
        if (find_any(c, argv[i])) {
            remove_locked(&dbs[c->db], argv[i]);
            n++;
        }
    }
    reply_int(&c->out, n);
}

void cmd_exists(struct client *c, int argc, const struct bytes *argv)
{
    int64_t n = 0;
    for (int i = 1; i < argc; i++) {
        n += find_any(c, argv[i]) != NULL;
    }
    reply_int(&c->out, n);
}

void cmd_type(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    struct entry *e = find_any(c, argv[1]);
    reply_text(&c->out, !e ? "+none\r\n" : e->type == STRING ? "+string\r\n" : "+list\r\n");
}

static void expire(struct client *c, const struct bytes *argv, int64_t unit, const char *command)
{
    int64_t n, at;
    if (!bytes_int(argv[2], &n)) {
        reply_error(&c->out, NOT_AN_INTEGER);
        return;
    }
    if (!deadline_of(n, unit, &at)) {
        reply_error(&c->out, "ERR invalid expire time in '%s' command", command);
        return;
    }
    struct entry *e = find_any(c, argv[1]);
    if (e && n <= 0) {
        remove_locked(&dbs[c->db], argv[1]);
    } else if (e) {
        set_expiry(&dbs[c->db], e, at);
    }
    reply_int(&c->out, e != NULL);
}

void cmd_expire(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    expire(c, argv, SECONDS, "expire");
}

void cmd_pexpire(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    expire(c, argv, MS, "pexpire");
}

/* -2: no such key; -1: it stays. Rounded to the nearest. */
static int64_t time_left(struct client *c, struct bytes key, int64_t unit)
{
    struct entry *e = find_any(c, key);
    return !e ? -2 : !e->expires ? -1 : (e->expires - now_ms() + unit / 2) / unit;
}

void cmd_ttl(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    reply_int(&c->out, time_left(c, argv[1], SECONDS));
}

void cmd_pttl(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    reply_int(&c->out, time_left(c, argv[1], MS));
}

void cmd_persist(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    struct entry *e = find_any(c, argv[1]);
    bool had = e && e->expires;
    if (had) {
        set_expiry(&dbs[c->db], e, 0);
    }
    reply_int(&c->out, had);
}

/* Under the lock: the goroutine that sweeps may not have seen yet that the server stops. */
void store_clear(void)
{
    pirn_mutex_lock(&store_lock);
    for (int i = 0; i < DATABASES; i++) {
        dbs[i].expiring = 0;
        table_clear(&dbs[i].keys);
        table_clear(&dbs[i].waiting);
    }
    pirn_mutex_unlock(&store_lock);
}

void cmd_dbsize(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc, (void)argv;
    reply_int(&c->out, (int64_t)dbs[c->db].keys.n);
}

/* The databases from..to - 1. SYNC and ASYNC are the same here; any other word must not cost the data. */
static void flush(struct client *c, int argc, const struct bytes *argv, int from, int to)
{
    if (argc > 2 || (argc == 2 && !bytes_is(argv[1], "sync") && !bytes_is(argv[1], "async"))) {
        reply_error(&c->out, "ERR syntax error");
        return;
    }
    for (int i = from; i < to; i++) {
        dbs[i].expiring = 0;
        table_clear(&dbs[i].keys);
    }
    reply_text(&c->out, "+OK\r\n");
}

void cmd_flushdb(struct client *c, int argc, const struct bytes *argv)
{
    flush(c, argc, argv, c->db, c->db + 1);
}

void cmd_flushall(struct client *c, int argc, const struct bytes *argv)
{
    flush(c, argc, argv, 0, DATABASES);
}

struct matches {
    struct bytes pattern;
    struct reply found; /* the keys, as bulk strings */
    int64_t n;
};

static void match_entry(struct entry *e, void *arg)
{
    struct matches *m = arg;
    if (!has_expired(e) && glob_match(m->pattern, entry_key(e))) {
        reply_bulk(&m->found, entry_key(e));
        m->n++;
    }
}

void cmd_keys(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    struct matches m = {.pattern = argv[1]};
    size_t at = 0;
    table_walk(&dbs[c->db].keys, &at, SIZE_MAX, match_entry, &m);
    if (m.found.failed) {
        reply_too_big(c);
    } else {
        reply_array(&c->out, m.n);
        reply_raw(&c->out, m.found.p, m.found.n);
    }
    reply_free(&m.found);
}
