/* SPDX-License-Identifier: MIT */
/*
 * Publish and subscribe. A publisher never waits for a subscriber: it puts the message into the outbox
 * of each, and a goroutine of the subscriber's writes that out. An outbox that holds more than
 * OUTBOX_MOST bytes belongs to a client that does not read: its connection is ended.
 *
 * Once a client has subscribed, all that it is sent goes through its outbox, so that replies and
 * messages stay in order.
 *
 * State: `lock` protects the two tables and the lists of subscriptions that hang on them; each outbox has a
 * lock of its own, which is taken second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "redisd.h"

enum { OUTBOX_MOST = 8 << 20 };
static const pirn_ns LAST_WORDS = 5 * PIRN_SEC; /* to write the outbox out at the end */

struct channel {
    struct subscription *first;
};

struct subscription {
    struct subscriber *s;
    struct entry *of;                  /* the channel's, or pattern's */
    struct subscription *next, **link; /* of the channel */
    struct subscription *mine;         /* the subscriber's others */
};

struct subscriber {
    int fd;
    struct subscription *channels,
        *patterns; /* its client's goroutine alone uses these lists ... */
    int n;         /* ... and this: how many are in both */
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
        s->box = out; /* they take turns: no memory is given back and taken again */
        pirn_mutex_unlock(&s->box_lock);
        out = full;
        good = good && (out.n == 0 || pirn_write_all(s->fd, out.p, out.n) >= 0);
    } while (open);
    reply_free(&out);
}

/* False: the client is lost. */
static bool box_put(struct subscriber *s, const void *p, size_t n)
{
    pirn_mutex_lock(&s->box_lock);
    if (!s->lost) {
        reply_raw(&s->box, p, n);
        s->lost = s->box.failed || s->box.n > OUTBOX_MOST;
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

bool subscriber_active(const struct client *c)
{
    return c->sub && c->sub->n > 0;
}

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
    s->wake = pirn_chan_make(int, 1);
    c->sub = s;
    pirn_wg_go(&s->writer, write_box, s);
    return true;
}

/* -- Subscriptions ---------------------------------------------------------------------------- */

static struct subscription **find_mine(struct subscription **list, struct bytes name)
{
    while (*list
           && ((*list)->of->key_len != name.n || memcmp((*list)->of->key, name.p, name.n) != 0)) {
        list = &(*list)->mine;
    }
    return list;
}

/* False: no memory. */
static bool add(struct subscriber *s, struct table *t, struct subscription **list,
                struct bytes name)
{
    if (*find_mine(list, name)) {
        return true;
    }
    struct subscription *sub = malloc(sizeof *sub);
    pirn_mutex_lock(&lock);
    struct entry *e = sub ? table_get(t, name) : NULL;
    if (e && !e->value) {
        e->value = calloc(1, sizeof(struct channel));
        if (!e->value) {
            table_remove(t, name);
            e = NULL;
        }
    }
    if (e) {
        struct channel *ch = e->value;
        *sub = (struct subscription){
            .s = s, .of = e, .next = ch->first, .link = &ch->first, .mine = *list};
        if (ch->first) {
            ch->first->link = &sub->next;
        }
        ch->first = sub;
        *list = sub;
        s->n++;
    }
    pirn_mutex_unlock(&lock);
    if (!e) {
        free(sub);
    }
    return e != NULL;
}

/* The one at *mine; a channel without subscribers goes. */
static void drop(struct subscriber *s, struct table *t, struct subscription **mine)
{
    struct subscription *sub = *mine;
    *mine = sub->mine;
    s->n--;
    pirn_mutex_lock(&lock);
    *sub->link = sub->next;
    if (sub->next) {
        sub->next->link = sub->link;
    }
    if (!((struct channel *)sub->of->value)->first) {
        table_remove(t, entry_key(sub->of));
    }
    pirn_mutex_unlock(&lock);
    free(sub);
}

void subscriber_end(struct client *c)
{
    struct subscriber *s = c->sub;
    if (!s) {
        return;
    }
    while (s->channels) {
        drop(s, &channels, &s->channels);
    }
    while (s->patterns) {
        drop(s, &patterns, &s->patterns);
    }
    pirn_fd_deadline(s->fd, 0, pirn_now() + LAST_WORDS);
    pirn_chan_close(s->wake); /* nobody finds the outbox any more */
    pirn_wg_wait(&s->writer);
    pirn_chan_release(s->wake);
    reply_free(&s->box);
    free(s);
    c->sub = NULL;
}

/* -- Commands --------------------------------------------------------------------------------- */

static void reply_subscription(struct client *c, const char *what, const struct bytes *name)
{
    reply_array(&c->out, 3);
    reply_bulk_text(&c->out, what);
    if (name) {
        reply_bulk(&c->out, *name);
    } else {
        reply_null(&c->out);
    }
    reply_int(&c->out, c->sub ? c->sub->n : 0);
}

static void subscribe(struct client *c, int argc, const struct bytes *argv, bool pattern)
{
    bool ok = make_subscriber(c);
    for (int i = 1; ok && i < argc; i++) {
        ok = pattern ? add(c->sub, &patterns, &c->sub->patterns, argv[i])
                     : add(c->sub, &channels, &c->sub->channels, argv[i]);
        if (ok) {
            reply_subscription(c, pattern ? "psubscribe" : "subscribe", &argv[i]);
            ok = subscriber_send(c) == 0; /* before a message of that channel */
        }
    }
    c->closing |= !ok;
}

static void unsubscribe(struct client *c, int argc, const struct bytes *argv, bool pattern)
{
    const char *what = pattern ? "punsubscribe" : "unsubscribe";
    struct table *t = pattern ? &patterns : &channels;
    struct subscription **list = !c->sub ? NULL : pattern ? &c->sub->patterns : &c->sub->channels;
    if (argc == 1 && (!list || !*list)) {
        reply_subscription(c, what, NULL);
    }
    while (argc == 1 && list && *list) {
        struct blob *name = blob_new(entry_key((*list)->of));
        drop(c->sub, t, list);
        reply_subscription(c, what, name ? &(struct bytes){name->p, name->n} : NULL);
        free(name);
    }
    for (int i = 1; i < argc; i++) {
        struct subscription **mine = list ? find_mine(list, argv[i]) : NULL;
        if (mine && *mine) {
            drop(c->sub, t, mine);
        }
        reply_subscription(c, what, &argv[i]);
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
    } else {
        reply_error(&c->out, "ERR unknown PUBSUB subcommand or wrong number of arguments");
    }
}
