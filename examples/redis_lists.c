/* SPDX-License-Identifier: MIT */
/*
 * Lists, and clients that wait for an element of one (BLPOP, BRPOP).
 *
 * A list is a ring of elements. A client that waits has a place in the queue of each of its keys; whoever
 * pushes gives the elements away, under the store's lock, to those who have waited longest: the waiter
 * is taken off all its queues, and woken through its channel, in which there is room for one. While it
 * waits its goroutine selects: the channel, the time, the end of the server, and bytes of the client,
 * for a client that has gone must not be given anything.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "redisd.h"

/* Bytes that are read ahead while a client waits: any one command. */
enum { PIPELINED_MOST = RESP_MAX_COMMAND };

struct list {
    struct blob **v; /* a ring; room is a power of two */
    size_t head, n, room;
};

/* -- The ring --------------------------------------------------------------------------------- */

static struct blob **list_at(const struct list *l, size_t i)
{
    return &l->v[(l->head + i) & (l->room - 1)];
}

void free_list(void *list)
{
    struct list *l = list;
    for (size_t i = 0; l && i < l->n; i++) {
        free(*list_at(l, i));
    }
    if (l) {
        free(l->v);
    }
    free(l);
}

static bool list_grow(struct list *l)
{
    size_t room = l->room ? l->room * 2 : 4;
    struct blob **v = malloc(room * sizeof *v);
    if (!v) {
        return false;
    }
    for (size_t i = 0; i < l->n; i++) {
        v[i] = *list_at(l, i);
    }
    free(l->v);
    l->v = v;
    l->room = room;
    l->head = 0;
    return true;
}

static bool list_push(struct list *l, struct bytes b, bool left)
{
    struct blob *e = l->n < l->room || list_grow(l) ? blob_new(b) : NULL;
    if (!e) {
        return false;
    }
    l->head -= left;
    l->n++;
    *list_at(l, left ? 0 : l->n - 1) = e;
    return true;
}

static struct blob *list_pop(struct list *l, bool left)
{
    struct blob *e = *list_at(l, left ? 0 : l->n - 1);
    l->head += left;
    l->n--;
    return e;
}

/* -- Waiters ---------------------------------------------------------------------------------- */

struct place; /* of a waiter in the queue of one key */
struct queue {
    struct place *first, *last;
};
struct waiter {
    pirn_chan(int) wake;
    bool left;
    int n;
    struct place *places;
    struct blob *key, *value; /* what it was given */
};
struct place {
    struct waiter *w;
    struct entry *of; /* its key's, in db->waiting */
    struct place *next, *prev;
};

/* Off all its queues; a queue that is empty goes. */
static void leave_queues(struct db *d, struct waiter *w)
{
    for (int i = 0; i < w->n; i++) {
        struct place *p = &w->places[i];
        struct queue *q = p->of->value;
        *(p->prev ? &p->prev->next : &q->first) = p->next;
        *(p->next ? &p->next->prev : &q->last) = p->prev;
        if (!q->first) {
            table_remove(&d->waiting, entry_key(p->of));
        }
    }
    w->n = 0;
}

/* False: no memory. */
static bool join_queue(struct db *d, struct waiter *w, struct bytes key)
{
    struct entry *e = table_get(&d->waiting, key);
    if (e && !e->value) {
        e->value = calloc(1, sizeof(struct queue));
        if (!e->value) {
            table_remove(&d->waiting, key);
        }
    }
    if (!e || !e->value) {
        return false;
    }
    struct queue *q = e->value;
    struct place *p = &w->places[w->n++];
    *p = (struct place){.w = w, .of = e, .prev = q->last};
    *(q->last ? &q->last->next : &q->first) = p;
    q->last = p;
    return true;
}

/* Elements of the key's list to those who wait for them. */
static void serve_waiters(struct db *d, struct bytes key)
{
    struct entry *e = table_find(&d->keys, key), *waiting;
    struct list *l = e && e->type == LIST ? e->value : NULL;
    while (l && l->n > 0 && (waiting = table_find(&d->waiting, key))) {
        struct waiter *w = ((struct queue *)waiting->value)->first->w;
        w->key = blob_new(key); /* NULL: it is told that there is no memory */
        w->value = w->key ? list_pop(l, w->left) : NULL;
        leave_queues(d, w);
        pirn_chan_try_send(w->wake, 1);
    }
    if (l && l->n == 0) {
        remove_locked(d, key);
    }
}

/* -- Commands --------------------------------------------------------------------------------- */

static void push(struct client *c, int argc, const struct bytes *argv, bool left)
{
    bool wrong;
    struct db *d = &dbs[c->db];
    struct entry *e = find_locked(c, argv[1], LIST, &wrong);
    if (wrong) {
        return;
    }
    if (!e && (e = table_get(&d->keys, argv[1]))) {
        e->type = LIST;
        e->value = calloc(1, sizeof(struct list));
    }
    struct list *l = e ? e->value : NULL;
    bool ok = l != NULL;
    for (int i = 2; ok && i < argc; i++) {
        ok = list_push(l, argv[i], left);
    }
    if (!ok) {
        reply_no_memory(c);
    } else {
        reply_int(&c->out, (int64_t)l->n);
    }
    if (e && (!l || l->n == 0)) {
        remove_locked(d, argv[1]);
    } else {
        serve_waiters(d, argv[1]);
    }
}

void cmd_lpush(struct client *c, int argc, const struct bytes *argv)
{
    push(c, argc, argv, true);
}

void cmd_rpush(struct client *c, int argc, const struct bytes *argv)
{
    push(c, argc, argv, false);
}

static void pop_reply(struct client *c, struct bytes key, struct list *l, bool left)
{
    struct blob *b = list_pop(l, left);
    reply_bulk(&c->out, blob_bytes(b));
    free(b);
    if (l->n == 0) {
        remove_locked(&dbs[c->db], key);
    }
}

/* Whether n elements, from one end, are less than a reply may be. */
static bool fits_reply(const struct client *c, const struct list *l, size_t n, bool left)
{
    enum { HEAD = 24 }; /* at most, of an element and of the array: their lengths, CR LF */
    size_t bytes = c->out.n + HEAD;
    for (size_t i = 0; i < n && bytes <= RESP_MAX_REPLY; i++) {
        bytes += (*list_at(l, left ? i : l->n - 1 - i))->n + HEAD;
    }
    return bytes <= RESP_MAX_REPLY;
}

static void pop(struct client *c, int argc, const struct bytes *argv, bool left)
{
    bool wrong;
    int64_t n = 1;
    if (argc > 3) {
        reply_error(&c->out, "ERR wrong number of arguments for '%s' command",
                    left ? "lpop" : "rpop");
        return;
    }
    if (argc == 3 && (!bytes_int(argv[2], &n) || n < 0)) {
        reply_error(&c->out, "ERR value is out of range, must be positive");
        return;
    }
    struct entry *e = find_locked(c, argv[1], LIST, &wrong);
    if (wrong) {
        return;
    }
    if (!e) {
        reply_text(&c->out, argc == 3 ? "*-1\r\n" : "$-1\r\n");
        return;
    }
    struct list *l = e->value;
    if ((uint64_t)n > l->n) {
        n = (int64_t)l->n;
    }
    if (!fits_reply(c, l, (size_t)n, left)) { /* before one is taken, which would be lost */
        reply_too_big(c);
        return;
    }
    if (argc == 3) {
        reply_array(&c->out, n);
    }
    while (n-- > 0) {
        pop_reply(c, argv[1], l, left);
    }
}

void cmd_lpop(struct client *c, int argc, const struct bytes *argv)
{
    pop(c, argc, argv, true);
}

void cmd_rpop(struct client *c, int argc, const struct bytes *argv)
{
    pop(c, argc, argv, false);
}

void cmd_llen(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    struct entry *e = find_locked(c, argv[1], LIST, &wrong);
    if (!wrong) {
        reply_int(&c->out, e ? (int64_t)((struct list *)e->value)->n : 0);
    }
}

/* A place in a list of n: negative ones count from the end. */
static int64_t index_in(int64_t i, size_t n)
{
    return i < 0 ? i + (int64_t)n : i;
}

void cmd_lindex(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    int64_t i;
    struct entry *e = find_locked(c, argv[1], LIST, &wrong);
    struct list *l = e ? e->value : NULL;
    if (wrong) {
        return;
    }
    if (l && !bytes_int(argv[2], &i)) { /* without a list, Redis does not look at the number */
        reply_error(&c->out, NOT_AN_INTEGER);
    } else if (!l || (i = index_in(i, l->n)) < 0 || i >= (int64_t)l->n) {
        reply_null(&c->out);
    } else {
        reply_bulk(&c->out, blob_bytes(*list_at(l, (size_t)i)));
    }
}

void cmd_lrange(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    bool wrong;
    int64_t from, to;
    if (!bytes_int(argv[2], &from) || !bytes_int(argv[3], &to)) {
        reply_error(&c->out, NOT_AN_INTEGER);
        return;
    }
    struct entry *e = find_locked(c, argv[1], LIST, &wrong);
    if (wrong) {
        return;
    }
    struct list *l = e ? e->value : NULL;
    int64_t n = l ? (int64_t)l->n : 0;
    from = index_in(from, (size_t)n);
    to = index_in(to, (size_t)n);
    from = from < 0 ? 0 : from;
    to = to >= n ? n - 1 : to;
    reply_array(&c->out, to >= from ? to - from + 1 : 0);
    for (int64_t i = from; i <= to; i++) {
        reply_bulk(&c->out, blob_bytes(*list_at(l, (size_t)i)));
    }
}

/* -- Waiting ---------------------------------------------------------------------------------- */

/* Until w is served, or by: 0 then, or -errno if the client has gone. */
static int wait_for_element(struct client *c, struct waiter *w, pirn_ns by)
{
    enum { SERVED, TIME, STOP, BYTES };
    int v;
    for (;;) {
        pirn_case cases[] = {[SERVED] = PIRN_RECV(w->wake, &v),
                             [TIME] = PIRN_UNTIL(by),
                             [STOP] = PIRN_DONE(server_ctx()),
                             [BYTES] = PIRN_READABLE(c->fd)};
        switch (pirn_selectv(cases, 4)) {
        case SERVED:
        case TIME: return 0;
        case STOP: return -ECANCELED;
        default:;
            ssize_t n = client_fill(c);
            if (n <= 0) {
                return n == 0 ? -EPIPE : (int)n;
            }
            if (c->end - c->start > PIPELINED_MOST) {
                return -ENOBUFS; /* if no more were read, its end would not be noticed */
            }
        }
    }
}

/* Tries each key at once. True: replied. */
static bool pop_now(struct client *c, int n_keys, const struct bytes *keys, bool left)
{
    for (int i = 0; i < n_keys; i++) {
        bool wrong;
        struct entry *e = find_locked(c, keys[i], LIST, &wrong);
        if (e) {
            reply_array(&c->out, 2);
            reply_bulk(&c->out, keys[i]);
            pop_reply(c, keys[i], e->value, left);
        }
        if (e || wrong) {
            return true;
        }
    }
    return false;
}

static bool parse_timeout(struct client *c, struct bytes arg, pirn_ns *by)
{
    char text[32] = "", *end = text;
    if (arg.n > 0 && arg.n < sizeof text) {
        memcpy(text, arg.p, arg.n);
        text[arg.n] = 0;
    }
    double seconds = strtod(text, &end);
    if (end != text + arg.n || arg.n == 0 || isspace((unsigned char)text[0])
        || !(seconds < 1e9 && seconds > -1e9)) {
        reply_error(&c->out, "ERR timeout is not a float or out of range");
        return false;
    }
    if (seconds < 0) {
        reply_error(&c->out, "ERR timeout is negative");
        return false;
    }
    *by = seconds > 0 ? pirn_now() + (pirn_ns)(seconds * (double)PIRN_SEC) : PIRN_NEVER;
    return true;
}

static void reply_served(struct client *c, const struct waiter *w, bool failed)
{
    if (w->value) {
        reply_array(&c->out, 2);
        reply_bulk(&c->out, blob_bytes(w->key));
        reply_bulk(&c->out, blob_bytes(w->value));
    } else if (failed) {
        reply_no_memory(c);
    } else {
        reply_array(&c->out, -1);
    }
}

/* Without the lock when it is called, for it waits. */
static void blocking_pop(struct client *c, int argc, const struct bytes *argv, bool left)
{
    pirn_ns by;
    struct db *d = &dbs[c->db];
    if (!parse_timeout(c, argv[argc - 1], &by)) {
        return;
    }
    struct waiter w = {.left = left};
    w.places = calloc((size_t)argc, sizeof *w.places);
    w.wake = pirn_chan_make(int, 1);
    bool ok = w.places != NULL;
    pirn_mutex_lock(&store_lock);
    bool done = ok && pop_now(c, argc - 2, argv + 1, left);
    for (int i = 1; ok && !done && i < argc - 1; i++) {
        ok = join_queue(d, &w, argv[i]);
    }
    if (!ok) {
        leave_queues(d, &w);
    }
    pirn_mutex_unlock(&store_lock);
    if (ok && !done) {
        int err = client_flush(c); /* what it has asked before */
        err = err ? err : wait_for_element(c, &w, by);
        pirn_mutex_lock(&store_lock);
        ok = w.n > 0 || w.value; /* taken off the queues with nothing: no memory */
        leave_queues(d, &w);
        pirn_mutex_unlock(&store_lock);
        c->closing |= err < 0;
        done = err < 0 && !w.value; /* its time is not over, so it is not told so */
    }
    if (!done) {
        reply_served(c, &w, !ok);
    }
    free(w.key);
    free(w.value);
    free(w.places);
    pirn_chan_release(w.wake);
}

void cmd_blpop(struct client *c, int argc, const struct bytes *argv)
{
    blocking_pop(c, argc, argv, true);
}

void cmd_brpop(struct client *c, int argc, const struct bytes *argv)
{
    blocking_pop(c, argc, argv, false);
}
