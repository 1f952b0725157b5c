/* SPDX-License-Identifier: MIT */
/*
 * Signals that cancel a context. The handler notes the signal and ends the poll of the poller's thread,
 * which cancels. A signal has pirn's handler from the first context that watches it to the end of the
 * last, or of the runtime, and then the program's again.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "ctx/ctx.h"
#include "io/poller.h"

struct watch {
    struct watch *next;
    struct pirn_ctx *ctx;
    uint64_t signals; /* a bit for each */
    bool due;         /* one of them has come */
};

#define SIGNALS 65

static struct {
    struct lock lock;
    struct watch *first;
    uint32_t users[SIGNALS]; /* watches of each */
    bool ours[SIGNALS];      /* has our handler */
    struct sigaction before[SIGNALS];
    at_u64 pending;
} signals = {.lock = LOCK_INIT(RANK_SIGNALS)};

static uint64_t bit(int sig)
{
    return (uint64_t)1 << (sig - 1);
}

static void handler(int sig)
{
    at_or(&signals.pending, bit(sig), RELAXED);
    poller_break();
}

bool signals_pending(void)
{
    return at_load(&signals.pending, RELAXED);
}

bool signals_watched(void)
{
    lock(&signals.lock);
    bool any = signals.first;
    unlock(&signals.lock);
    return any;
}

/* Those who watch now: a context that comes while these are cancelled waits for the next signal. The word
 * is taken under the lock: who is the first to watch a signal clears there what came before. */
static void mark_due(void)
{
    lock(&signals.lock);
    uint64_t pending = at_xchg(&signals.pending, 0, RELAXED);
    for (struct watch *w = signals.first; w; w = w->next) {
        w->due |= (w->signals & pending) != 0;
    }
    unlock(&signals.lock);
}

/* One at a time, since to cancel one takes it off the list. */
static struct pirn_ctx *next_due(void)
{
    struct pirn_ctx *ctx = NULL;
    lock(&signals.lock);
    for (struct watch *w = signals.first; w && !ctx; w = w->next) {
        if (w->due && !ctx_err(w->ctx)) {
            ctx = w->ctx;
            ctx_ref(ctx);
        }
    }
    unlock(&signals.lock);
    return ctx;
}

void signals_deliver(struct visit v)
{
    mark_due();
    for (struct pirn_ctx *ctx; (ctx = next_due());) {
        ctx_cancel(ctx, v, -ECANCELED, -EINTR);
        ctx_unref(ctx);
    }
}

static void take_locked(int sig)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&sa.sa_mask);
    if (!signals.ours[sig]) {
        at_and(&signals.pending, ~bit(sig), RELAXED); /* one that came for contexts now gone */
        sigaction(sig, &sa, &signals.before[sig]);
        signals.ours[sig] = true;
    }
}

static void give_back_locked(int sig)
{
    if (signals.ours[sig]) {
        sigaction(sig, &signals.before[sig], NULL);
        signals.ours[sig] = false;
    }
}

static void for_each_used(void (*fn_locked)(int))
{
    lock(&signals.lock);
    for (int sig = 1; sig < SIGNALS; sig++) {
        if (signals.users[sig]) {
            fn_locked(sig);
        }
    }
    unlock(&signals.lock);
}

void signals_suspend(void)
{
    for_each_used(give_back_locked);
}

void signals_resume(void)
{
    for_each_used(take_locked);
}

static void use_locked(int sig)
{
    signals.users[sig]++;
    take_locked(sig);
}

static void unuse_locked(int sig)
{
    if (--signals.users[sig] == 0) {
        give_back_locked(sig);
    }
}

/* By a context that is cancelled. */
void signal_unwatch(struct pirn_ctx *ctx)
{
    lock(&signals.lock);
    struct watch **at = &signals.first, *w;
    while ((w = *at) && w->ctx != ctx) {
        at = &w->next;
    }
    if (w) {
        *at = w->next;
        for (int sig = 1; sig < SIGNALS; sig++) {
            if (w->signals & bit(sig)) {
                unuse_locked(sig);
            }
        }
    }
    unlock(&signals.lock);
    free(w);
}

static uint64_t set_of(const int *sigs, int n)
{
    uint64_t set = 0;
    for (int i = 0; i < n; i++) {
        if (sigs[i] < 1 || sigs[i] >= SIGNALS || sigs[i] == SIGKILL || sigs[i] == SIGSTOP) {
            misuse("context: signal %d can't be caught", sigs[i]);
        }
        set |= bit(sigs[i]);
    }
    return set;
}

EXPORT pirn_ctx *pirn_ctx_with_signals(pirn_ctx *parent, const int *sigs, int n)
{
    uint64_t set = set_of(sigs, n);
    struct watch *w = malloc(sizeof *w);
    if (!w) {
        fatal("out of memory: cannot watch signals");
    }
    struct visit v = visit_begin();
    if (!visit_can_wait(v)) {
        visit_end(v);
        misuse("pirn_ctx_with_signals, and no runtime runs");
    }
    int err = poller_start();
    if (err) {
        fatal("cannot watch signals: %s", strerrordesc_np(-err));
    }
    visit_end(v);
    pirn_ctx *ctx = pirn_ctx_with_cancel(parent);
    *w = (struct watch){.ctx = ctx, .signals = set};
    lock(&signals.lock);
    w->next = signals.first;
    signals.first = w;
    for (int sig = 1; sig < SIGNALS; sig++) {
        if (set & bit(sig)) {
            use_locked(sig);
        }
    }
    unlock(&signals.lock);
    ctx_watches_signals(ctx);
    return ctx;
}
