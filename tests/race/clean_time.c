/* SPDX-License-Identifier: MIT */
/* What timers and contexts order. */
#include <stdlib.h>

#include "clean.h"

/* --- timers ------------------------------------------------------------------------------------------- */

static void add(void *arg)
{
    ((struct box *)arg)->v++;
}

/* Set, the function, the end of stop_wait. */
CLEAN(functions)
{
    for (int i = 0; i < 50; i++) {
        struct box *b = calloc(1, sizeof *b);
        b->v = 1;
        pirn_timer *t = pirn_after_func(i % 2 ? 0 : PIRN_US, add, b);
        if (i % 3 == 0) {
            pirn_sleep(200 * PIRN_US);
        }
        bool stopped = pirn_timer_stop_wait(t);
        CHECK_EQ(b->v, stopped ? 1 : 2);
        b->v = 5;
        pirn_timer_reset(t, 0);
        pirn_sleep(200 * PIRN_US);
        stopped = pirn_timer_stop_wait(t);
        CHECK_EQ(b->v, stopped ? 5 : 6);
        pirn_timer_free(t);
        free(b);
    }
}

struct told {
    struct box b;
    pirn_wg wg;
};

static void tell(void *arg)
{
    struct told *t = arg;
    t->b.v++;
    pirn_wg_done(&t->wg);
}

CLEAN(many_functions)
{
    enum { MANY = 200 };
    static struct told told[MANY];
    pirn_timer *t[MANY];
    for (int i = 0; i < MANY; i++) {
        told[i].b.v = 1;
        pirn_wg_add(&told[i].wg, 1);
        t[i] = pirn_after_func(20 * PIRN_MS + i % 7 * PIRN_MS, tell, &told[i]);
    }
    for (int i = 0; i < MANY; i++) {
        pirn_wg_wait(&told[i].wg);
        CHECK_EQ(told[i].b.v, 2);
        pirn_timer_free(t[i]);
    }
}

/* Heaps that grow on several threads, and are looked at from all. */
static void set_many(pirn_wg *wg)
{
    enum { MANY = 700 };
    pirn_timer *t[MANY];
    for (int i = 0; i < MANY; i++) {
        t[i] = pirn_timer_new(60 * PIRN_SEC);
        if (i % 50 == 0) {
            pirn_sleep(10 * PIRN_US);
        }
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(pirn_timer_stop(t[i]));
        pirn_timer_free(t[i]);
    }
    pirn_wg_done(wg);
}

CLEAN(heaps)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 4);
    for (int i = 0; i < 4; i++) {
        pirn_go(set_many, &wg);
    }
    pirn_wg_wait(&wg);
}

/* What was done before a timer was set is done before its time is received, by whomever. */
static void receive_time(pirn_timer *t, struct box *b, int how)
{
    pirn_chan(pirn_ns) c = pirn_timer_chan(t);
    pirn_ns when;
    if (how == 0) {
        CHECK(pirn_chan_recv(c, &when));
    } else if (how == 1) {
        while (pirn_chan_try_recv(c, &when) != 1) {
            pirn_yield();
        }
    } else {
        CHECK_EQ(pirn_select(PIRN_RECV(c, &when), PIRN_AFTER(60 * PIRN_SEC)), 0);
    }
    CHECK_EQ(b->v, 4);
}

CLEAN(times)
{
    for (int i = 0; i < 30; i++) {
        struct box b = {0};
        pirn_wg wg = {0};
        pirn_timer *t = pirn_timer_new(60 * PIRN_SEC);
        pirn_wg_go(&wg, receive_time, t, &b, i % 3);
        pirn_yield();
        b.v = 4;
        pirn_timer_reset(t, i % 2 ? 100 * PIRN_US : 0);
        pirn_wg_wait(&wg);
        pirn_timer_free(t);
    }
}

static void tick(pirn_ticker *t, struct box *b, pirn_wg *wg)
{
    for (int i = 0; i < 5; i++) {
        CHECK(pirn_chan_recv(pirn_ticker_chan(t), NULL));
        CHECK_EQ(b->v, 8);
    }
    pirn_wg_done(wg);
}

CLEAN(tickers)
{
    struct box b = {0};
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 2);
    pirn_ticker *t = pirn_ticker_new(60 * PIRN_SEC);
    pirn_go(tick, t, &b, &wg);
    pirn_go(tick, t, &b, &wg);
    pirn_yield();
    b.v = 8;
    pirn_ticker_reset(t, PIRN_MS);
    pirn_wg_wait(&wg);
    pirn_ticker_free(t);
}

/* --- contexts ------------------------------------------------------------------------------------------ */

static void wait_for_end(pirn_ctx *ctx, struct box *b, int how)
{
    switch (how) {
    case 0: (void)pirn_chan_get(pirn_ctx_done(ctx)); break;
    case 1:
        while (!pirn_ctx_err(ctx)) {
            pirn_yield();
        }
        break;
    case 2:
        pirn_ctx_use(ctx);
        CHECK_EQ(pirn_sleep(60 * PIRN_SEC), -ECANCELED);
        break;
    case 3: CHECK_EQ(pirn_select(PIRN_DONE(ctx), PIRN_AFTER(60 * PIRN_SEC)), 0); break;
    default:
        while (!pirn_ctx_cause(ctx)) {
            pirn_yield();
        }
        break;
    }
    CHECK_EQ(b->v, 3);
}

CLEAN(cancelled)
{
    for (int i = 0; i < 20; i++) {
        pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_ctx *ctx = pirn_ctx_with_value(parent, &parent, NULL);
        struct box b = {0};
        pirn_wg wg = {0};
        for (int k = 0; k < 10; k++) {
            pirn_wg_go(&wg, wait_for_end, k % 2 ? ctx : parent, &b, k % 5);
        }
        pirn_yield();
        b.v = 3;
        pirn_ctx_cancel(parent, -EIO);
        wait_for_end(ctx, &b, 0);
        pirn_wg_wait(&wg);
        pirn_ctx_release(ctx);
        pirn_ctx_release(parent);
    }
}

static void cancel(pirn_ctx *ctx, struct box *b)
{
    b->v++;
    pirn_ctx_cancel(ctx, 0);
}

/* Before the function runs: what its setter did, and what was done before the cancel. */
CLEAN(after_func)
{
    for (int i = 0; i < 40; i++) {
        struct told *x = calloc(1, sizeof *x), *y = calloc(1, sizeof *y);
        pirn_wg wg = {0};
        pirn_ctx *ctx = i % 4 == 0 ? pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS)
                                   : pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_wg_add(&x->wg, 1);
        pirn_wg_add(&y->wg, 1);
        x->b.v = y->b.v = 1;
        pirn_timer *t = pirn_ctx_after_func(ctx, tell, x);
        if (i % 4) {
            pirn_wg_go(&wg, cancel, ctx, &y->b);
        }
        if (i % 4 == 2) {
            while (!pirn_ctx_err(ctx)) {
                pirn_yield();
            }
        }
        pirn_timer *late = pirn_ctx_after_func(ctx, tell, y);
        pirn_wg_wait(&x->wg);
        pirn_wg_wait(&y->wg);
        CHECK_EQ(x->b.v, 2);
        CHECK_EQ(y->b.v, i % 4 ? 3 : 2);
        pirn_wg_wait(&wg);
        pirn_timer_free(t);
        pirn_timer_free(late);
        pirn_ctx_release(ctx);
        free(x);
        free(y);
    }
}

static void set_late(pirn_ctx *ctx, struct told *x, pirn_timer **t)
{
    *t = pirn_ctx_after_func(ctx, tell, x);
}

/* It is set by one who does not know yet that the context was cancelled. */
CLEAN(after_func_late)
{
    for (int i = 0; i < 40; i++) {
        struct told x = {0};
        pirn_timer *t;
        pirn_wg wg = {0};
        pirn_wg_add(&x.wg, 1);
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_wg_go(&wg, set_late, ctx, &x, &t);
        x.b.v = 1;
        pirn_ctx_cancel(ctx, 0);
        pirn_wg_wait(&x.wg);
        CHECK_EQ(x.b.v, 2);
        pirn_wg_wait(&wg);
        pirn_timer_free(t);
        pirn_ctx_release(ctx);
    }
}

CLEAN(deadlines)
{
    for (int i = 0; i < 30; i++) {
        pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 100 * PIRN_US);
        pirn_wg wg = {0};
        struct box b = {.v = 3};
        pirn_wg_go(&wg, wait_for_end, ctx, &b, i % 2 ? 0 : 3);
        pirn_wg_go(&wg, wait_for_end, ctx, &b, 1);
        pirn_wg_wait(&wg);
        pirn_ctx_release(ctx);
    }
}
