/* SPDX-License-Identifier: MIT */
/*
 * Groups: goroutines that end together.
 *
 * word_: a word lock of everything else. running_ counts those that were let in and have not ended; one
 * that is let in as another ends takes over its place. A group has a context of its own, current in its
 * goroutines: the first error cancels it.
 *
 * The waiter is a select of the group's end (its own word lock) and of its own context, which cancels
 * the group; after that it waits for the group alone: nothing is left behind [R3].
 *
 * The last goroutine frees the lock, and then makes the waiter ready: from then on *g may be gone.
 */
#include "ctx/ctx.h"
#include "sync/select.h"

#define LIMITED 1u

static at_u64 *word_of(pirn_group *g)
{
    return (at_u64 *)(void *)&g->word_;
}

EXPORT void pirn_group_init(pirn_group *g, pirn_ctx *parent)
{
    *g = (pirn_group){.ctx_ = pirn_ctx_with_cancel(parent ? parent : pirn_ctx_current())};
}

EXPORT pirn_ctx *pirn_group_ctx(pirn_group *g)
{
    not_forked();
    return g->ctx_;
}

EXPORT void pirn_group_cancel(pirn_group *g)
{
    not_forked();
    if (g->ctx_) { /* else it has ended */
        pirn_ctx_cancel(g->ctx_, 0);
    }
}

EXPORT void pirn_group_set_limit(pirn_group *g, int n)
{
    enter();
    uint64_t word = word_lock(word_of(g));
    int64_t running = g->running_;
    if (running == 0) {
        g->limit_ = n;
        g->flags_ = n < 0 ? 0 : LIMITED;
    }
    word_unlock(word_of(g), word);
    leave();
    if (running) {
        misuse("group: modify limit while %ld goroutines in the group are still active",
               (long)running);
    }
}

static bool has_room(const pirn_group *g)
{
    return !(g->flags_ & LIMITED) || g->running_ < g->limit_;
}

/* Under the lock: one more. If only one may run, it comes after those before it. */
static void enter_locked(pirn_group *g)
{
    g->running_++;
    if (g->flags_ & LIMITED && g->limit_ == 1) {
        tool_acquire(g);
    }
}

EXPORT bool pirn_group_try_begin_(pirn_group *g)
{
    enter();
    uint64_t word = word_lock(word_of(g));
    bool room = has_room(g);
    if (room) {
        enter_locked(g);
    }
    word_unlock(word_of(g), word);
    leave();
    return room;
}

EXPORT void pirn_group_begin_(pirn_group *g)
{
    struct waiter foreign;
    struct visit v = visit_begin();
    uint64_t word = word_lock(word_of(g));
    if (has_room(g)) {
        enter_locked(g);
        word_unlock(word_of(g), word);
        visit_end(v);
        return;
    }
    visit_must_wait(v, word_of(g), word, "pirn_group_go");
    struct waiter *w = waiter_of(v.mp, &foreign, g);
    waitq_put(&g->queue_, w);
    struct unlock_to u = {word_of(g), word};
    visit_park(v, w, commit_unlock, &u, WAIT_GROUP_ROOM);
    visit_waited_end(v);
}

/* The first error counts, and ends the others. */
static void fail(pirn_group *g, int err)
{
    uint64_t word = word_lock(word_of(g));
    bool first = !g->err_;
    g->err_ = first ? err : g->err_;
    word_unlock(word_of(g), word);
    if (first) {
        ctx_cancel(g->ctx_, (struct visit){.mp = getm()}, -ECANCELED, err < 0 ? err : -ECANCELED);
    }
}

/* Under the lock: the waiter, unless its context has woken it. */
static struct waiter *take_waiter(pirn_group *g)
{
    struct waiter *w = g->waiters_;
    g->waiters_ = NULL;
    return w && select_claim_also(w->object) ? w : NULL;
}

/* For a goroutine at its end: who is to be made ready. */
struct waiter *group_done_at_end(pirn_group *g, int result)
{
    if (result) {
        fail(g, result);
    }
    tool_release(g);
    uint64_t word = word_lock(word_of(g));
    struct waiter *w = waitq_take(&g->queue_);
    if (!w && --g->running_ == 0) {
        w = take_waiter(g);
    }
    word_unlock(word_of(g), word);
    return w;
}

void group_none(pirn_group *g)
{
    struct visit v = visit_begin();
    struct waiter *w = group_done_at_end(g, 0);
    if (w) {
        waiter_ready_list(w);
    }
    visit_end(v);
}

/* Until all have ended, or, if ctx is given, it is cancelled. True: all have ended. */
static bool wait_for_end(pirn_group *g, struct pirn_ctx *ctx, bool again)
{
    pirn_case done = {.kind_ = PIRN_CASE_RECV_};
    struct chan_op op;
    struct select s = SELECT_INIT(&done, &op, 1, PIRN_NEVER);
    struct visit v = again ? visit_owing() : visit_begin();
    done.chan_ = ctx ? ctx_done(ctx) : NULL;
    uint64_t word = word_lock(word_of(g));
    if (g->running_ == 0) {
        word_unlock(word_of(g), word);
        visit_end(v);
        return true;
    }
    if (g->waiters_) {
        word_unlock(word_of(g), word);
        visit_end(v);
        misuse("group: is waited for already");
    }
    if (select_try(v, &s) >= 0) {
        word_unlock(word_of(g), word);
        visit_end(v);
        return false;
    }
    if (!visit_can_wait(v)) {
        select_unlock(&s);
        word_unlock(word_of(g), word);
        visit_cant_wait("pirn_group_wait");
    }
    s.also = (struct unlock_to){word_of(g), word};
    g->waiters_ = select_waiter(v, &s);
    bool ended = true;
    if (select_wait(v, &s, WAIT_GROUP) != select_also_of(&s)) {
        word = word_lock(word_of(g));
        g->waiters_ = NULL;
        ended = g->running_ == 0;
        word_unlock(word_of(g), word);
    }
    visit_waited_end(v);
    return ended;
}

void group_forget(struct waiter *w)
{
    struct select *s = w->object;
    pirn_group *g = select_also_of(s);
    if (!stack_contains(g)) {
        uint64_t word = word_lock(word_of(g));
        g->waiters_ = g->waiters_ == w ? NULL : g->waiters_;
        word_unlock(word_of(g), word);
    }
}

void group_forget_room(struct waiter *w)
{
    pirn_group *g = w->object;
    if (!stack_contains(g)) {
        uint64_t word = word_lock(word_of(g));
        waitq_remove(&g->queue_, w);
        word_unlock(word_of(g), word);
    }
}

EXPORT int pirn_group_wait(pirn_group *g)
{
    struct pirn_ctx *ctx = ctx_of(stop_point());
    if (!g->ctx_) {
        misuse("group: was waited for already");
    }
    if (!wait_for_end(g, ctx, false)) {
        int cause = pirn_ctx_cause(ctx);
        struct visit v = visit_owing();
        ctx_cancel(g->ctx_, v, ctx_err(ctx), cause);
        visit_end(v);
        while (!wait_for_end(g, NULL, true)) {
        }
    }
    tool_acquire(g);
    pirn_ctx *own = g->ctx_;
    g->ctx_ = NULL;
    pirn_ctx_cancel(own, 0);
    pirn_ctx_release(own);
    return g->err_;
}
