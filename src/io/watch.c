/* SPDX-License-Identifier: MIT */
/*
 * Who watches signals: contexts, which they cancel, and channels, which they are sent to. A list, under the
 * lock.
 *
 * Invariants
 * 1. What is pending is for those who are on the list: whoever changes the list hands out first. So a signal of the past does not reach who comes later.
 * 2. Channels are sent to under the lock: nothing is sent to one that has been taken off. A context is
 *    marked under the lock, and cancelled on the g0 of an M without it, since that takes it off.
 * 3. A signal's action is ours if and only if it is watched, while a runtime runs.
 *
 * Rejected: a mark on a channel's record while it is sent to, for a stop to wait for. The lock is simpler,
 * and what it is held for is short: no send blocks.
 */
#include <errno.h>
#include <unistd.h>

#include "ctx/ctx.h"
#include "io/signal.h"

static struct {
    struct lock lock;
    /* under the lock */
    struct watch *first;
    bool closed; /* a signal was to be sent to a closed channel */
    /* atomic */
    at_u32 n;
    at_u32 due; /* an M has something to do */
} watches = {.lock = LOCK_INIT(RANK_SIGNALS)};

/* --- handing out -------------------------------------------------------------------------------------- */

bool signals_pending(void)
{
    return signals_noted() || at_load(&watches.due, RELAXED);
}

bool signals_watched(void)
{
    return at_load(&watches.n, RELAXED);
}

/* A full channel drops it. False: it is closed. */
static bool send(pirn_chanv *c, int sig)
{
    uint64_t word = word_lock(&c->word);
    if (word & CHAN_CLOSED) {
        word_unlock(&c->word, word);
        return false;
    }
    if (!chan_send_locked(c, word, &sig)) {
        chan_unlock(c);
    }
    return true;
}

/* True: something is left to an M on g0. */
static bool hand_to_locked(struct watch *w, uint64_t come)
{
    if (w->ctx) {
        w->due |= come != 0;
        return come;
    }
    bool closed = false;
    for (; come; come &= come - 1) {
        closed |= !send(w->chan, signal_lowest(come));
    }
    watches.closed |= closed;
    return closed;
}

/* The same. */
static bool hand_out_locked(void)
{
    bool due = false;
    uint64_t pending = signals_take();
    for (struct watch *w = pending ? watches.first : NULL; w; w = w->next) {
        due |= hand_to_locked(w, w->signals & pending);
    }
    if (due) {
        at_store(&watches.due, 1, RELAXED);
    }
    return due;
}

/* Sysmon wakes an M, or tells those that run, and the first that looks for work does it. */
static void have_delivered(void)
{
    sysmon_kick();
    sysmon_look_now();
}

/* What has come so far goes to those who are on the list now. */
static void settle_locked(void)
{
    signals_wait_for_handlers();
    if (hand_out_locked()) {
        have_delivered();
    }
}

/* One at a time, since to cancel one takes it off the list. */
static struct pirn_ctx *next_due_locked(void)
{
    for (struct watch *w = watches.first; w; w = w->next) {
        if (w->due && !ctx_err(w->ctx)) {
            ctx_ref(w->ctx);
            return w->ctx;
        }
    }
    at_store(&watches.due, 0, RELAXED);
    return NULL;
}

void signals_deliver_g0(void)
{
    struct visit v = {.mp = getm()};
    struct pirn_ctx *ctx;
    do {
        lock(&watches.lock);
        hand_out_locked();
        bool closed = watches.closed;
        ctx = next_due_locked();
        unlock(&watches.lock);
        if (closed) {
            misuse("send on closed channel");
        }
        if (ctx) {
            ctx_cancel(ctx, v, -ECANCELED, -EINTR);
            ctx_unref(ctx);
        }
    } while (ctx);
}

/* --- the list ----------------------------------------------------------------------------------------- */

static uint64_t watched_locked(const struct watch *but)
{
    uint64_t set = 0;
    for (const struct watch *w = watches.first; w; w = w->next) {
        set |= w == but ? 0 : w->signals;
    }
    return set;
}

/* Where the link to it is; a link that is NULL, if it is not there. */
static struct watch **find_locked(const void *who)
{
    struct watch **at = &watches.first;
    while (*at && (*at)->ctx != who && (*at)->chan != who) {
        at = &(*at)->next;
    }
    return at;
}

static void unlink_locked(struct watch **at)
{
    *at = (*at)->next;
    at_add(&watches.n, (uint32_t)-1, RELAXED);
}

int signal_watch(struct watch **fresh)
{
    struct watch *w = *fresh;
    lock(&watches.lock);
    settle_locked();
    int err = signal_set_actions(w->signals, SIGNAL_OURS);
    struct watch *known = *find_locked(w->ctx ? (void *)w->ctx : (void *)w->chan);
    if (err) {
        signal_set_actions(w->signals & ~watched_locked(NULL), SIGNAL_PROGRAMS);
        settle_locked();
    } else if (known) {
        known->signals |= w->signals;
    } else {
        w->next = watches.first;
        watches.first = w;
        at_add(&watches.n, 1, RELAXED);
        *fresh = NULL;
    }
    unlock(&watches.lock);
    return err;
}

struct watch *signal_unwatch(const void *who)
{
    lock(&watches.lock);
    struct watch **at = find_locked(who), *w = *at;
    if (w) {
        signal_set_actions(w->signals & ~watched_locked(w), SIGNAL_PROGRAMS);
        settle_locked();
        unlink_locked(at);
    }
    unlock(&watches.lock);
    return w;
}

int signal_let_be(int sig, enum signal_action to, struct watch **gone)
{
    lock(&watches.lock);
    int err = signal_set_action(sig, to);
    settle_locked();
    for (struct watch **at = &watches.first, *w; !err && (w = *at);) {
        w->signals &= ~signal_bit(sig);
        if (w->signals || w->due) { /* due: until it is cancelled */
            at = &w->next;
        } else {
            unlink_locked(at);
            w->next = *gone;
            *gone = w;
        }
    }
    unlock(&watches.lock);
    return err;
}

/* --- the runtime's life --------------------------------------------------------------------------------- */

/* What came too late is as if it came after the runtime. */
void signals_stop(void)
{
    lock(&watches.lock);
    signal_set_actions(watched_locked(NULL), SIGNAL_PROGRAMS);
    signals_wait_for_handlers();
    uint64_t late = signals_take();
    unlock(&watches.lock);
    for (; late; late &= late - 1) {
        kill(getpid(), signal_lowest(late));
    }
}

void signals_start(void)
{
    if (!signals_watched()) {
        return;
    }
    lock(&watches.lock);
    int err = signal_set_actions(watched_locked(NULL), SIGNAL_OURS);
    unlock(&watches.lock);
    if (err) {
        throw("signal: can't be watched again: %s", strerrordesc_np(-err));
    }
    have_delivered(); /* contexts that are due since the last end */
}
