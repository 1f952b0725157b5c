/* SPDX-License-Identifier: MIT */
/*
 * Sleep. The commit action puts the waiter into the heap of timers, so it can't be made ready before the
 * goroutine has left its stack. In a context that can be cancelled it is a select.
 */
#include <errno.h>
#include <time.h>

#include "ctx/ctx.h"
#include "sync/select.h"

struct sleep {
    struct waiter *waiter;
    int64_t when;
};

static bool commit_sleep(struct g *gp, void *arg)
{
    (void)gp;
    struct sleep *s = arg;
    timers_sleep(s->waiter, s->when);
    return true;
}

/* A thread that pirn did not make needs no help. */
static void sleep_thread(int64_t when)
{
    struct timespec ts = {.tv_sec = when / PIRN_SEC, .tv_nsec = when % PIRN_SEC};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {
    }
}

static int sleep_in(struct visit v, struct pirn_ctx *ctx, int64_t when)
{
    pirn_case done = {.kind_ = PIRN_CASE_RECV_, .chan_ = ctx_done(ctx)};
    struct chan_op op;
    struct select s = SELECT_INIT(&done, &op, 1, when);
    bool in_time = true;
    if (select_try(v, &s) < 0) {
        if (when <= now_ns()) {
            select_unlock(&s);
            in_time = false;
        } else {
            in_time = select_wait(v, &s, WAIT_SLEEP_CTX) != select_timer_of(&s);
        }
    }
    leave();
    return in_time ? ctx_err(ctx) : 0;
}

/* to_come: it is known to be in the future. */
ALWAYS_INLINE int sleep_until(int64_t when, bool to_come)
{
    struct m *mp = enter();
    if (unlikely(!mp)) {
        if (to_come || when > now_ns()) {
            sleep_thread(when);
        }
        return 0;
    }
    struct pirn_ctx *ctx = ctx_of(mp);
    if (unlikely(ctx)) {
        return sleep_in((struct visit){.mp = mp}, ctx, when);
    }
    if (to_come || when > now_ns()) {
        struct sleep s = {.waiter = waiter_of(mp, NULL, NULL), .when = when};
        park(commit_sleep, &s, WAIT_SLEEP);
    }
    leave();
    return 0;
}

EXPORT int pirn_sleep_until(pirn_ns when)
{
    return sleep_until(when, false);
}

EXPORT int pirn_sleep(pirn_ns ns)
{
    return ns > 0 ? sleep_until(pirn_deadline(ns), true) : sleep_until(0, false);
}
