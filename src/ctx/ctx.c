/* SPDX-License-Identifier: MIT */
/*
 * Contexts.
 *
 * A tree. Each context holds a reference to its parent; a parent knows its children, and does not hold
 * them. The background is the root: it is never cancelled, so nothing is hung below it.
 *
 * word      a word lock; the list of children, of functions to call, and the cause are under it. The
 *           links of a child are under its parent's. Locks of two contexts are never held together.
 * err       0 until it is cancelled; set once, under the lock, before done is closed.
 * done      a channel that is closed then. What waits for a context waits for its channel: a select.
 *
 * Cancelling takes the children off, with a reference to each, sets err, closes done, and goes on with
 * the children: a loop with a list of its own, so that a deep tree needs no deep stack.
 *
 * References. `handles` are the program's, `refs` are all: the handles together count as one, each child
 * and each goroutine as one. The maker's handle is special, since giving it back means cancel (Go's
 * `defer cancel()`), while another who has retained the context may give its handle back at any time.
 * They can't be told apart by the pointer, so it goes by who calls: a release by the goroutine that made
 * the context is the maker's. The last handle cancels in any case.
 */
#include "ctx/ctx.h"

#include <stdlib.h>

#include "io/signal.h"
#include "sync/chan.h"
#include "time/timer.h"

struct pirn_ctx {
    struct timer timer; /* of the deadline; first */
    at_u64 word;
    at_u32 err; /* -errno as a positive number */
    int cause;
    at_u32 handles, refs;
    at_u64 maker; /* 0: its handle has been given back */
    pirn_chanv *done;
    struct pirn_ctx *parent;
    struct pirn_ctx *children, *next, *prev;
    bool linked;    /* in its parent's list */
    bool has_timer; /* its deadline is its own */
    at_u32 signals; /* signals are watched for it: io/notify.c */
    struct pirn_timer *watches;
    int64_t deadline;
    const void *key;
    void *value;
};

static struct pirn_ctx background = {.deadline = PIRN_NEVER};

/* --- references ------------------------------------------------------------------------------------- */

#define THREAD ((uint64_t)1 << 63)

/*
 * A name for who calls: a goroutine, or a thread without one. Never 0, and of one only: ids begin anew
 * with each runtime, and addresses with each thread.
 */
static uint64_t caller(struct m *mp)
{
    static at_u64 threads;
    static __thread uint64_t thread __attribute__((tls_model("initial-exec")));
    if (mp && mp->curg) {
        uint64_t name = (mp->curg->id + sched.era * 0x9e3779b97f4a7c15u) & ~THREAD;
        return name ? name : 1;
    }
    if (!thread) {
        thread = (at_add(&threads, 1, RELAXED) + 1) | THREAD;
    }
    return thread;
}

void ctx_ref(struct pirn_ctx *ctx)
{
    if (ctx != &background) {
        at_add(&ctx->refs, 1, RELAXED);
    }
}

static void unlink_from_parent(struct pirn_ctx *ctx)
{
    struct pirn_ctx *parent = ctx->parent;
    if (parent == &background) {
        return;
    }
    uint64_t word = word_lock(&parent->word);
    if (ctx->linked) {
        *(ctx->prev ? &ctx->prev->next : &parent->children) = ctx->next;
        if (ctx->next) {
            ctx->next->prev = ctx->prev;
        }
        ctx->linked = false;
    }
    word_unlock(&parent->word, word);
}

/* The last: it has been cancelled, with its last handle. */
void ctx_unref(struct pirn_ctx *ctx)
{
    while (ctx != &background && at_add(&ctx->refs, (uint32_t)-1, ACQ_REL) == 1) {
        struct pirn_ctx *parent = ctx->parent;
        chan_release(ctx->done);
        heap_free(ctx);
        ctx = parent;
    }
}

EXPORT pirn_ctx *pirn_ctx_retain(pirn_ctx *ctx)
{
    not_forked();
    if (ctx && ctx != &background && at_add(&ctx->handles, 1, RELAXED) == 0) {
        ctx_ref(ctx); /* a goroutine whose own it is makes it a handle again */
    }
    return ctx;
}

EXPORT void pirn_ctx_release(pirn_ctx *ctx)
{
    not_forked();
    if (!ctx || ctx == &background) {
        return;
    }
    struct visit v = visit_begin();
    if (at_load(&ctx->maker, RELAXED) == caller(v.mp)) {
        at_store(&ctx->maker, 0, RELAXED); /* nobody else writes it, or finds himself in it */
        ctx_cancel(ctx, v, -ECANCELED, -ECANCELED);
    }
    if (at_load(&ctx->signals, RELAXED) && ctx_err(ctx)) {
        signal_end_of(ctx); /* another who cancels it may not have come to this yet */
    }
    if (at_add(&ctx->handles, (uint32_t)-1, ACQ_REL) == 1) {
        ctx_cancel(ctx, v, -ECANCELED, -ECANCELED);
        ctx_unref(ctx);
    }
    visit_end(v);
}

/* --- cancelling -------------------------------------------------------------------------------------- */

int ctx_err(const struct pirn_ctx *ctx)
{
    /* A mutant without ACQUIRE survives, and one without RELEASE: whom the program asks takes the lock too. */
    int err = -(int)at_load(&ctx->err, ACQUIRE);
    if (err) {
        tool_acquire(ctx);
    }
    return err;
}

/* Under its lock: the children go on the list of those to be cancelled, linked by next. */
static void take_children(struct pirn_ctx *ctx, struct pirn_ctx **work)
{
    for (struct pirn_ctx *c = ctx->children, *next; c; c = next) {
        next = c->next;
        c->linked = false;
        ctx_ref(c);
        c->next = *work;
        *work = c;
    }
    ctx->children = NULL;
}

/* Their calls begin under the lock, so that an unwatch that comes later knows of them. */
static void call_watches_locked(struct pirn_ctx *ctx, struct visit v)
{
    for (struct pirn_timer *t = ctx->watches, *next; t; t = next) {
        next = t->next;
        t->watching = false;
        timer_call(t, v);
    }
    ctx->watches = NULL;
}

static bool cancel_one(struct pirn_ctx *ctx, struct visit v, int err, int cause,
                       struct pirn_ctx **work)
{
    uint64_t word = word_lock(&ctx->word);
    if (at_load(&ctx->err, RELAXED)) {
        word_unlock(&ctx->word, word);
        return false;
    }
    ctx->cause = cause;
    tool_release(ctx);
    at_store(&ctx->err, (uint32_t)-err, RELEASE); /* a mutant: see ctx_err */
    chan_close(ctx->done); /* err and done are seen as one by who takes the lock */
    take_children(ctx, work);
    call_watches_locked(ctx, v);
    word_unlock(&ctx->word, word);
    timer_stop(&ctx->timer);
    if (at_load(&ctx->signals, RELAXED)) {
        signal_end_of(ctx);
    }
    return true;
}

/* By who is inside a visit, or on g0. Those whom it lets go on may release the context. */
void ctx_cancel(struct pirn_ctx *ctx, struct visit v, int err, int cause)
{
    struct pirn_ctx *work = NULL;
    if (at_load(&ctx->err, RELAXED)) {
        return;
    }
    ctx_ref(ctx);
    if (cancel_one(ctx, v, err, cause, &work)) {
        unlink_from_parent(ctx);
    }
    while (work) {
        struct pirn_ctx *c = work;
        work = c->next;
        cancel_one(c, v, err, cause, &work);
        ctx_unref(c);
    }
    ctx_unref(ctx);
}

EXPORT void pirn_ctx_cancel(pirn_ctx *ctx, int cause)
{
    not_forked();
    if (ctx == &background) {
        misuse("context: the background can't be cancelled");
    }
    struct visit v = visit_begin();
    ctx_cancel(ctx, v, -ECANCELED, cause ? cause : -ECANCELED);
    visit_end(v);
}

/* --- deadlines --------------------------------------------------------------------------------------- */

static uint64_t begin_expire(struct timer *t)
{
    ctx_ref((struct pirn_ctx *)(void *)t);
    return 0;
}

static void expire(struct timer *t, uint64_t begun)
{
    struct pirn_ctx *ctx = (struct pirn_ctx *)(void *)t;
    (void)begun;
    ctx_cancel(ctx, (struct visit){.mp = getm()}, -ETIMEDOUT, -ETIMEDOUT); /* on g0 */
    ctx_unref(ctx);
}

static const struct timer_kind deadline_timer = {.begin = begin_expire, .act = expire};

/* Nobody may have got to its timer yet. */
static int err_now(struct pirn_ctx *ctx)
{
    stop_point();
    if (!at_load(&ctx->err, RELAXED) && ctx->deadline != PIRN_NEVER && ctx->deadline <= now_ns()) {
        struct visit v = visit_begin();
        ctx_cancel(ctx, v, -ETIMEDOUT, -ETIMEDOUT);
        visit_end(v);
    }
    int err = ctx_err(ctx);
    if (err) { /* done is closed, once the lock is free */
        enter();
        uint64_t word = word_lock(&ctx->word);
        word_unlock(&ctx->word, word);
        leave();
    }
    return err;
}

/* The deadlines that it is under, if they were set before the runtime, or in another. */
static void arm(struct pirn_ctx *ctx)
{
    for (; ctx->deadline != PIRN_NEVER; ctx = ctx->parent) {
        if (ctx->has_timer && !at_load(&ctx->timer.heap, RELAXED) && !at_load(&ctx->err, RELAXED)) {
            uint64_t word = word_lock(&ctx->word);
            if (!at_load(&ctx->err, RELAXED)) { /* else its timer has been stopped already */
                timer_set(&ctx->timer, ctx->deadline, 0);
            }
            word_unlock(&ctx->word, word);
        }
    }
}

static int cause_of(struct pirn_ctx *ctx)
{
    uint64_t word = word_lock(&ctx->word);
    int cause = ctx->cause;
    word_unlock(&ctx->word, word);
    return cause;
}

/* --- making ------------------------------------------------------------------------------------------- */

/* True: the parent is cancelled already. */
static bool link_to_parent(struct pirn_ctx *ctx)
{
    struct pirn_ctx *parent = ctx->parent;
    if (parent == &background) {
        return false;
    }
    uint64_t word = word_lock(&parent->word);
    bool cancelled = at_load(&parent->err, RELAXED);
    if (!cancelled) {
        ctx->next = parent->children;
        ctx->prev = NULL;
        if (ctx->next) {
            ctx->next->prev = ctx;
        }
        parent->children = ctx;
        ctx->linked = true;
    }
    word_unlock(&parent->word, word);
    return cancelled;
}

static struct pirn_ctx *ctx_make(struct pirn_ctx *parent, int64_t deadline, bool detached)
{
    not_forked();
    if (!parent) {
        misuse("cannot create context from nil parent");
    }
    struct pirn_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx) {
        fatal("out of memory: cannot make a context");
    }
    ctx->done = pirn_chanv_make(sizeof(int), 0);
    struct visit v = visit_begin();
    ctx_ref(parent);
    ctx->parent = parent;
    ctx->timer.kind = &deadline_timer;
    at_store(&ctx->maker, caller(v.mp), RELAXED);
    at_store(&ctx->handles, 1, RELAXED);
    at_store(&ctx->refs, 1, RELAXED);
    ctx->has_timer = deadline != PIRN_NEVER && (detached || deadline < parent->deadline);
    ctx->deadline = !detached && parent->deadline < deadline ? parent->deadline : deadline;
    if (!detached && link_to_parent(ctx)) {
        ctx_cancel(ctx, v, ctx_err(parent), cause_of(parent));
    } else if (deadline <= now_ns()) {
        ctx_cancel(ctx, v, -ETIMEDOUT, -ETIMEDOUT);
    } else if (v.mp || v.entered) {
        arm(ctx);
    }
    visit_end(v);
    return ctx;
}

EXPORT pirn_ctx *pirn_ctx_background(void)
{
    not_forked();
    return &background;
}

EXPORT pirn_ctx *pirn_ctx_with_cancel(pirn_ctx *parent)
{
    return ctx_make(parent, PIRN_NEVER, false);
}

EXPORT pirn_ctx *pirn_ctx_with_deadline(pirn_ctx *parent, pirn_ns deadline)
{
    return ctx_make(parent, deadline, false);
}

EXPORT pirn_ctx *pirn_ctx_with_timeout(pirn_ctx *parent, pirn_ns ns)
{
    return ctx_make(parent, pirn_deadline(ns), false);
}

EXPORT pirn_ctx *pirn_ctx_with_value(pirn_ctx *parent, const void *key, void *value)
{
    not_forked();
    if (parent && !key) {
        misuse("nil key");
    }
    struct pirn_ctx *ctx = ctx_make(parent, PIRN_NEVER, false);
    ctx->key = key;
    ctx->value = value;
    return ctx;
}

EXPORT pirn_ctx *pirn_ctx_without_cancel(pirn_ctx *parent)
{
    return ctx_make(parent, PIRN_NEVER, true);
}

/* A signal, or the parent's end, may have come before this. */
void ctx_watches_signals(struct pirn_ctx *ctx)
{
    uint64_t word = word_lock(&ctx->word);
    bool over = at_load(&ctx->err, RELAXED);
    at_store(&ctx->signals, !over, RELAXED);
    word_unlock(&ctx->word, word);
    if (over) {
        signal_end_of(ctx);
    }
}

/* --- asking -------------------------------------------------------------------------------------------- */

EXPORT int pirn_ctx_err(pirn_ctx *ctx)
{
    not_forked();
    return err_now(ctx);
}

EXPORT int pirn_ctx_cause(pirn_ctx *ctx)
{
    not_forked();
    if (!err_now(ctx)) {
        return 0;
    }
    enter();
    int cause = cause_of(ctx);
    leave();
    return cause;
}

EXPORT pirn_ns pirn_ctx_deadline(pirn_ctx *ctx)
{
    not_forked();
    return ctx->deadline;
}

EXPORT void *pirn_ctx_value(pirn_ctx *ctx, const void *key)
{
    not_forked();
    for (; ctx; ctx = ctx->parent) {
        if (ctx->key && ctx->key == key) {
            return ctx->value;
        }
    }
    return NULL;
}

EXPORT pirn_chanv *pirn_ctx_donev(pirn_ctx *ctx)
{
    not_forked();
    ctx = ctx ? ctx : pirn_ctx_current();
    if (ctx->deadline == PIRN_NEVER) {
        return ctx->done;
    }
    struct visit v = visit_begin();
    if (v.mp || v.entered) {
        arm(ctx);
    }
    visit_end(v);
    return ctx->done;
}

/* By a goroutine. */
pirn_chanv *ctx_done(struct pirn_ctx *ctx)
{
    arm(ctx);
    return ctx->done;
}

EXPORT pirn_ctx *pirn_ctx_current(void)
{
    struct pirn_ctx *ctx = ctx_of(stop_point());
    return ctx ? ctx : &background;
}

/* The one that the goroutine began with is kept until its end: it may be used again. */
EXPORT pirn_ctx *pirn_ctx_use(pirn_ctx *ctx)
{
    struct m *mp = enter();
    if (!mp) {
        misuse("pirn_ctx_use outside a goroutine");
    }
    struct gextra *x = g_extra(mp->curg);
    if (!x) {
        fatal("out of memory: cannot keep a context");
    }
    struct pirn_ctx *before = x->ctx;
    ctx = ctx == &background ? NULL : ctx;
    if (ctx) {
        ctx_ref(ctx);
    }
    x->ctx = ctx;
    if (before && !x->own_ctx) {
        x->own_ctx = before;
    } else if (before) {
        if (x->last_ctx) {
            ctx_unref(x->last_ctx);
        }
        x->last_ctx = before; /* it is there at least until the next use */
    }
    leave();
    return before ? before : &background;
}

/* --- functions ------------------------------------------------------------------------------------------ */

EXPORT pirn_timer *pirn_ctx_after_func(pirn_ctx *ctx, void (*fn)(void *), void *arg)
{
    not_forked();
    struct pirn_timer *t = timer_of_func(fn, arg);
    ctx = ctx ? ctx : pirn_ctx_current();
    timer_say_set(t);
    t->ctx = ctx;
    ctx_ref(ctx);
    struct visit v = visit_begin();
    uint64_t word = word_lock(&ctx->word);
    if (at_load(&ctx->err, RELAXED)) {
        timer_call(t, v);
    } else {
        t->watching = true;
        t->prev = NULL;
        t->next = ctx->watches;
        if (t->next) {
            t->next->prev = t;
        }
        ctx->watches = t;
    }
    word_unlock(&ctx->word, word);
    visit_end(v);
    return t;
}

bool ctx_unwatch(struct pirn_timer *t)
{
    struct pirn_ctx *ctx = t->ctx;
    uint64_t word = word_lock(&ctx->word);
    bool was = t->watching;
    if (was) {
        *(t->prev ? &t->prev->next : &ctx->watches) = t->next;
        if (t->next) {
            t->next->prev = t->prev;
        }
        t->watching = false;
    }
    word_unlock(&ctx->word, word);
    return was;
}
