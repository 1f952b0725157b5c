/* SPDX-License-Identifier: MIT */
/*
 * Publish and subscribe. A publisher never waits for a subscriber: it puts the message into the outbox
 * of each, and a goroutine of the subscriber's writes that out. If there are more than
 * OUTBOX_MOST bytes in it already, that client does not read: its connection is ended.
 *
 * While a client is subscribed to something, all that it is sent goes through its outbox, so that replies
 * and messages stay in order.
 *
 * State: `lock` protects the two tables and the lists of subscriptions that hang on them; each outbox has a
 * lock of its own, which is taken second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "redisd.h"

enum { OUTBOX_MOST = 8 << 20, OUTBOX_KEEP = 64 << 10 };
static const pirn_ns LAST_WORDS = 5 * PIRN_SEC; /* to write the outbox out at the end */

struct channel {
    struct subscription *first;
};

struct subscription {
    struct subscriber *s;
    struct table *all;                 /* of channels, or of patterns */
    struct entry *of;                  /* its channel's there */
    struct subscription *next, **link; /* of the channel */
};

struct subscriber {
    int fd;
    struct table channels, patterns; /* name: subscription; its client's goroutine's alone */
    pirn_mutex box_lock;
    struct reply box;
    bool lost;           /* too much in it */
    pirn_chan(int) wake; /* room for one; closed at the end */
    pirn_wg writer;
};

static void free_channel(struct entry *e)
{
    free(e->value);
}

static pirn_mutex lock;
static struct table channels = {.free_value = free_channel};
static struct table patterns = {.free_value = free_channel};

/* -- The outbox ------------------------------------------------------------------------------- */

static void write_box(struct subscriber *s)
{
    struct reply out = {0};
    int v;
    bool open, good = true;
    do {
        open = pirn_chan_recv(s->wake, &v);
        pirn_mutex_lock(&s->box_lock);
        struct reply full = s->box;
        out.n = 0;
        s->box = out; /* they take turns: small ones are not given back and taken again */
        pirn_mutex_unlock(&s->box_lock);
        out = full;
        good = good && (out.n == 0 || pirn_write_all(s->fd, out.p, out.n) >= 0);
        if (out.room > OUTBOX_KEEP) {
            reply_free(&out);
        }
    } while (open);
    reply_free(&out);
}

/* False: the client is lost. */
static bool box_put(struct subscriber *s, const void *p, size_t n)
{
    pirn_mutex_lock(&s->box_lock);
    if (!s->lost) {
        s->lost = s->box.n > OUTBOX_MOST; /* before this one, which may be big itself */
        reply_raw(&s->box, p, n);
        s->lost |= s->box.failed;
        if (s->lost) {
            pirn_fd_cancel(s->fd); /* its two goroutines see that, and end */
            s->box.n = 0;
        } else {
            pirn_chan_try_send(s->wake, 1);
        }
    }
    bool good = !s->lost;
    pirn_mutex_unlock(&s->box_lock);
    return good;
}

int subscriber_send(struct client *c)
{
    bool good = c->out.n == 0 || box_put(c->sub, c->out.p, c->out.n);
    c->out.n = 0;
    return good ? 0 : -ECONNRESET;
}

static int64_t n_subscriptions(const struct client *c)
{
    return c->sub ? (int64_t)(c->sub->channels.n + c->sub->patterns.n) : 0;
}

bool subscriber_active(const struct client *c)
{
    return n_subscriptions(c) > 0;
}

/* -- Subscriptions ---------------------------------------------------------------------------- */

/* One of the subscriber's own entries goes: its place in the channel too, and a channel that is empty. */
static void free_subscription(struct entry *mine)
{
    struct subscription *sub = mine->value;
    if (!sub) {
        return;
    }
    pirn_mutex_lock(&lock);
    *sub->link = sub->next;
    if (sub->next) {
        sub->next->link = sub->link;
    }
    if (!((struct channel *)sub->of->value)->first) {
        table_remove(sub->all, entry_key(sub->of));
    }
    pirn_mutex_unlock(&lock);
    free(sub);
}

/* The channel of that name, made if there is none. NULL: no memory. */
static struct entry *channel_locked(struct table *all, struct bytes name)
{
    struct entry *e = table_get(all, name);
    if (e && !e->value && !(e->value = calloc(1, sizeof(struct channel)))) {
        table_remove(all, name);
        return NULL;
    }
    return e;
}

/* Makes the entry, one of the subscriber's own, a subscription. False: no memory. */
static bool join_locked(struct subscriber *s, struct table *all, struct entry *mine)
{
    struct subscription *sub = malloc(sizeof *sub);
    struct entry *e = sub ? channel_locked(all, entry_key(mine)) : NULL;
    if (!e) {
        free(sub);
        return false;
    }
    struct channel *ch = e->value;
    *sub = (struct subscription){s, all, e, ch->first, &ch->first};
    if (ch->first) {
        ch->first->link = &sub->next;
    }
    ch->first = sub;
    mine->value = sub;
    return true;
}

/* -- Subscribers ------------------------------------------------------------------------------ */

/* Its outbox and its writer; what it has been sent so far has been written. */
static bool make_subscriber(struct client *c)
{
    if (c->sub) {
        return true;
    }
    struct subscriber *s = calloc(1, sizeof *s);
    if (!s || client_flush(c) != 0) {
        free(s);
        return false;
    }
    s->fd = c->fd;
    s->channels.free_value = s->patterns.free_value = free_subscription;
    s->wake = pirn_chan_make(int, 1);
    c->sub = s;
    pirn_wg_go(&s->writer, write_box, s);
    return true;
}

/* The outbox is written out and goes: the client is like any other again, and waits when it writes. */
static void end_box(struct client *c)
{
    struct subscriber *s = c->sub;
    table_clear(&s->channels);
    table_clear(&s->patterns);
    pirn_chan_close(s->wake); /* nobody finds the outbox any more */
    pirn_wg_wait(&s->writer);
    pirn_chan_release(s->wake);
    reply_free(&s->box);
    free(s);
    c->sub = NULL;
}

void subscriber_end(struct client *c)
{
    if (c->sub) {
        pirn_fd_deadline(c->fd, 0, pirn_now() + LAST_WORDS);
        end_box(c);
    }
}

/* -- Commands --------------------------------------------------------------------------------- */

/* How many it has: less those that are about to go. */
static void reply_subscription(struct client *c, const char *what, const struct bytes *name,
                               int64_t less)
{
    reply_array(&c->out, 3);
    reply_bulk_text(&c->out, what);
    if (name) {
        reply_bulk(&c->out, *name);
    } else {
        reply_null(&c->out);
    }
    reply_int(&c->out, n_subscriptions(c) - less);
}

static bool subscribe_to(struct client *c, struct bytes name, bool pattern)
{
    struct table *own = pattern ? &c->sub->patterns : &c->sub->channels;
    struct entry *mine = table_get(own, name);
    pirn_mutex_lock(&lock);
    bool ok = mine && (mine->value || join_locked(c->sub, pattern ? &patterns : &channels, mine));
    if (ok) { /* under the lock: before a message of that channel */
        reply_subscription(c, pattern ? "psubscribe" : "subscribe", &name, 0);
        ok = subscriber_send(c) == 0;
    }
    pirn_mutex_unlock(&lock);
    if (mine && !mine->value) {
        table_remove(own, name);
    }
    return ok;
}

static void subscribe(struct client *c, int argc, const struct bytes *argv, bool pattern)
{
    bool ok = make_subscriber(c);
    for (int i = 1; ok && i < argc; i++) {
        ok = subscribe_to(c, argv[i], pattern) && pirn_ctx_err(server_ctx()) == 0;
    }
    c->closing |= !ok;
}

struct leaving {
    struct client *c;
    struct table *own;
    const char *what;
};

static void leave(struct entry *mine, void *arg)
{
    struct leaving *l = arg;
    struct bytes name = entry_key(mine);
    reply_subscription(l->c, l->what, &name, 1); /* first, for the name goes with the entry */
    table_remove(l->own, name);
}

static void unsubscribe(struct client *c, int argc, const struct bytes *argv, bool pattern)
{
    struct table none = {0}, *own = &none;
    if (c->sub) {
        own = pattern ? &c->sub->patterns : &c->sub->channels;
    }
    struct leaving l = {c, own, pattern ? "punsubscribe" : "unsubscribe"};
    size_t at = 0;
    if (argc == 1 && own->n == 0) {
        reply_subscription(c, l.what, NULL, 0);
    } else if (argc == 1) {
        table_walk(own, &at, SIZE_MAX, leave, &l);
    }
    for (int i = 1; i < argc; i++) {
        table_remove(own, argv[i]);
        reply_subscription(c, l.what, &argv[i], 0);
    }
    if (c->sub && !subscriber_active(c)) {
        c->closing |= subscriber_send(c) != 0;
        end_box(c);
    }
}

void cmd_subscribe(struct client *c, int argc, const struct bytes *argv)
{
    subscribe(c, argc, argv, false);
}

void cmd_psubscribe(struct client *c, int argc, const struct bytes *argv)
{
    subscribe(c, argc, argv, true);
}

void cmd_unsubscribe(struct client *c, int argc, const struct bytes *argv)
{
    unsubscribe(c, argc, argv, false);
}

void cmd_punsubscribe(struct client *c, int argc, const struct bytes *argv)
{
    unsubscribe(c, argc, argv, true);
}

struct message {
    struct bytes channel, text;
    struct reply out; /* as its subscribers get it */
    int64_t n;
};

static void deliver(struct message *m, const struct channel *ch)
{
    for (struct subscription *s = ch->first; s && !m->out.failed; s = s->next) {
        box_put(s->s, m->out.p, m->out.n);
        m->n++;
    }
}

static void deliver_by_pattern(struct entry *e, void *arg)
{
    struct message *m = arg;
    if (!glob_match(entry_key(e), m->channel)) {
        return;
    }
    m->out.n = 0;
    reply_array(&m->out, 4);
    reply_bulk_text(&m->out, "pmessage");
    reply_bulk(&m->out, entry_key(e));
    reply_bulk(&m->out, m->channel);
    reply_bulk(&m->out, m->text);
    deliver(m, e->value);
}

void cmd_publish(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    struct message m = {.channel = argv[1], .text = argv[2]};
    size_t at = 0;
    reply_array(&m.out, 3);
    reply_bulk_text(&m.out, "message");
    reply_bulk(&m.out, m.channel);
    reply_bulk(&m.out, m.text);
    pirn_mutex_lock(&lock);
    struct entry *e = table_find(&channels, argv[1]);
    if (e) {
        deliver(&m, e->value);
    }
    table_walk(&patterns, &at, SIZE_MAX, deliver_by_pattern, &m);
    pirn_mutex_unlock(&lock);
    if (m.out.failed) {
        reply_no_memory(c);
    } else {
        reply_int(&c->out, m.n);
    }
    reply_free(&m.out);
}

struct listing {
    struct bytes pattern;
    struct reply found;
    int64_t n;
};

static void list_channel(struct entry *e, void *arg)
{
    struct listing *l = arg;
    if (glob_match(l->pattern, entry_key(e))) {
        reply_bulk(&l->found, entry_key(e));
        l->n++;
    }
}

void cmd_pubsub(struct client *c, int argc, const struct bytes *argv)
{
    if (bytes_is(argv[1], "channels") && argc <= 3) {
        struct listing l = {.pattern = argc == 3 ? argv[2] : (struct bytes){"*", 1}};
        size_t at = 0;
        pirn_mutex_lock(&lock);
        table_walk(&channels, &at, SIZE_MAX, list_channel, &l);
        pirn_mutex_unlock(&lock);
        reply_array(&c->out, l.n);
        reply_raw(&c->out, l.found.p, l.found.n);
        c->closing |= l.found.failed;
        reply_free(&l.found);
    } else if (bytes_is(argv[1], "numsub")) {
        reply_array(&c->out, 2 * (argc - 2));
        for (int i = 2; i < argc; i++) {
            int64_t n = 0;
            pirn_mutex_lock(&lock);
            struct entry *e = table_find(&channels, argv[i]);
            for (struct subscription *s = e ? ((struct channel *)e->value)->first : NULL; s;
                 s = s->next) {
                n++;
            }
            pirn_mutex_unlock(&lock);
            reply_bulk(&c->out, argv[i]);
            reply_int(&c->out, n);
        }
    } else if (bytes_is(argv[1], "numpat") && argc == 2) {
        pirn_mutex_lock(&lock);
        reply_int(&c->out, (int64_t)patterns.n);
        pirn_mutex_unlock(&lock);
    } else {
        reply_subcommand(c, "pubsub", argv[1], (const char *const[]){"channels", "numpat", NULL});
    }
}
