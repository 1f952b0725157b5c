/* SPDX-License-Identifier: MIT */
/*
 * Timers that call a function, as Go's tests want them, and what C adds: to wait for the function's end,
 * and to free the timer. Each setting ends in one call, or is taken back by a stop or reset that says so.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "timers.h"

static void count(void *n)
{
    atomic_fetch_add((atomic_int *)n, 1);
}

static void wait_for_count(atomic_int *n, int want)
{
    while (atomic_load(n) < want)
        pirn_yield();
}

/* --- stop and reset ------------------------------------------------------------------------------------ */

TEST_RUN_ATTR(stop_and_reset, PROCS)
{
    atomic_int n = 0;
    pirn_timer *t = pirn_after_func(HOUR, count, &n);
    CHECK(pirn_timer_stop(t));
    CHECK(!pirn_timer_stop(t));
    CHECK(!pirn_timer_stop_wait(t));
    CHECK(!pirn_timer_reset(t, HOUR));
    CHECK(pirn_timer_reset(t, 2 * HOUR));
    CHECK(pirn_timer_reset(t, 100 * PIRN_US));
    wait_for_count(&n, 1);
    CHECK(!pirn_timer_stop(t));
    CHECK(!pirn_timer_reset(t, 1)); /* it has been called: set again */
    wait_for_count(&n, 2);
    CHECK(!pirn_timer_stop_wait(t));
    CHECK(!pirn_timer_reset(t, PIRN_NEVER));
    CHECK(!pirn_timer_stop(t));
    pirn_sleep(PIRN_MS);
    CHECK_EQ(atomic_load(&n), 2);
    pirn_timer_free(t);
}

/* What a stop took back is never called, what it did not take back is. */
TEST_RUN_ATTR(stopped_are_not_called, PROCS)
{
    enum { N = 200 };
    unsigned seed = 5;
    for (int round = 0; round < 10; round++) {
        pirn_timer *timers[N];
        int stopped = 0;
        atomic_int n = 0;
        for (int i = 0; i < N; i++)
            timers[i] = pirn_after_func((pirn_ns)(next_rand(&seed) % 1000) * PIRN_US, count, &n);
        pirn_sleep((pirn_ns)(next_rand(&seed) % 1000) * PIRN_US);
        for (int i = 0; i < N; i++) {
            stopped += pirn_timer_stop(timers[i]);
            CHECK(!pirn_timer_stop(timers[i]));
        }
        wait_for_count(&n, N - stopped);
        pirn_sleep(PIRN_MS);
        for (int i = 0; i < N; i++)
            pirn_timer_free(timers[i]);
        CHECK_EQ(atomic_load(&n), N - stopped);
    }
}

struct ledger {
    pirn_timer *t;
    atomic_int set, taken_back, called;
};

static void set_and_stop(struct ledger *l, unsigned seed, int n)
{
    for (int i = 0; i < n; i++) {
        bool was;
        unsigned what = next_rand(&seed) % 10;
        if (what < 6) {
            was = pirn_timer_reset(l->t, what == 0 ? HOUR : (pirn_ns)(next_rand(&seed) % 5000));
            atomic_fetch_add(&l->set, 1);
        } else {
            was = what < 9 ? pirn_timer_stop(l->t) : pirn_timer_stop_wait(l->t);
        }
        atomic_fetch_add(&l->taken_back, was);
        if (what & 1) {
            compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 4000));
        } else {
            pirn_yield();
        }
    }
}

static void *set_from_thread(void *arg)
{
    set_and_stop(arg, 77, TOOL ? 500 : 5000);
    return NULL;
}

TEST_RUN_ATTR(stop_stress, PROCS, .timeout = 60)
{
    for (int round = 0; round < 10; round++) {
        pthread_t foreign;
        pirn_wg wg = {0};
        struct ledger l = {0};
        l.t = pirn_after_func(PIRN_NEVER, count, &l.called);
        CHECK_EQ(pthread_create(&foreign, NULL, set_from_thread, &l), 0);
        for (unsigned i = 0; i < 5; i++)
            pirn_wg_go(&wg, set_and_stop, &l, i, TOOL ? 500 : 5000);
        pirn_wg_wait(&wg);
        CHECK_EQ(pthread_join(foreign, NULL), 0);
        atomic_fetch_add(&l.taken_back, pirn_timer_stop_wait(l.t));
        CHECK_EQ(atomic_load(&l.set), atomic_load(&l.taken_back) + atomic_load(&l.called));
        pirn_timer_free(l.t);
    }
}

/* --- its end is waited for ------------------------------------------------------------------------------ */

struct slow {
    atomic_int begun, ended;
    pirn_timer *t;
    pirn_chan(int) go_on;
    pirn_chan(pirn_timer *) self;
    pirn_wg wg;
};

static void wait_inside(void *arg)
{
    struct slow *s = arg;
    atomic_fetch_add(&s->begun, 1);
    pirn_chan_get(s->go_on);
    for (int i = 0; i < 5; i++)
        pirn_yield();
    atomic_fetch_add(&s->ended, 1);
}

static void let_go_on(struct slow *s, int n)
{
    pirn_sleep(200 * PIRN_US);
    for (int i = 0; i < n; i++)
        pirn_chan_send(s->go_on, 1);
}

TEST_RUN_ATTR(stop_wait_waits, PROCS)
{
    for (int round = 0; round < 50; round++) {
        struct slow s = {.go_on = pirn_chan_make(int, 0)};
        pirn_timer *t = pirn_after_func(0, wait_inside, &s);
        wait_for_count(&s.begun, 1);
        CHECK(!pirn_timer_stop(t)); /* that does not wait */
        CHECK_EQ(atomic_load(&s.ended), 0);
        pirn_go(let_go_on, &s, 1);
        CHECK(!pirn_timer_stop_wait(t));
        CHECK_EQ(atomic_load(&s.ended), 1);
        /* Two calls at once: the next begins while the first runs. */
        CHECK(!pirn_timer_reset(t, 0));
        wait_for_count(&s.begun, 2);
        CHECK(!pirn_timer_reset(t, 0));
        wait_for_count(&s.begun, 3);
        CHECK(!pirn_timer_reset(t, HOUR));
        pirn_go(let_go_on, &s, 2);
        if (round % 2) {
            CHECK(pirn_timer_stop_wait(t));
            CHECK_EQ(atomic_load(&s.ended), 3);
        }
        pirn_timer_free(t); /* the same */
        CHECK_EQ(atomic_load(&s.ended), 3);
        pirn_chan_release(s.go_on);
    }
}

static void *stop_in_thread(void *arg)
{
    struct slow *s = arg;
    CHECK(!pirn_timer_stop_wait(s->t));
    CHECK_EQ(atomic_load(&s->ended), 1);
    return NULL;
}

static void stop_in_goroutine(struct slow *s)
{
    stop_in_thread(s);
}

/* Several may wait, threads too. */
TEST_RUN_ATTR(many_wait_for_the_end, PROCS)
{
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        struct slow s = {.go_on = pirn_chan_make(int, 0)};
        s.t = pirn_after_func(0, wait_inside, &s);
        wait_for_count(&s.begun, 1);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, stop_in_thread, &s), 0);
        for (int i = 0; i < 4; i++)
            pirn_wg_go(&s.wg, stop_in_goroutine, &s);
        let_go_on(&s, 1);
        pirn_wg_wait(&s.wg);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        pirn_timer_free(s.t);
        pirn_chan_release(s.go_on);
    }
}

/* --- from inside the function ------------------------------------------------------------------------------- */

static void stop_itself(void *arg)
{
    struct slow *s = arg;
    pirn_timer *t = pirn_chan_get(s->self);
    CHECK(!pirn_timer_stop_wait(t)); /* this call is not waited for */
    if (atomic_fetch_add(&s->begun, 1) < 3) {
        CHECK(!pirn_timer_reset(t, 10 * PIRN_US)); /* once more */
        pirn_chan_send(s->self, t);
        return;
    }
    CHECK(!pirn_timer_reset(t, HOUR));
    CHECK(pirn_timer_stop_wait(t));
    pirn_wg_done(&s->wg);
}

TEST_RUN_ATTR(stops_and_sets_itself, PROCS)
{
    for (int round = 0; round < 50; round++) {
        struct slow s = {.self = pirn_chan_make(pirn_timer *, 1)};
        pirn_wg_add(&s.wg, 1);
        pirn_timer *t = pirn_after_func(0, stop_itself, &s);
        pirn_chan_send(s.self, t);
        pirn_wg_wait(&s.wg);
        pirn_timer_free(t);
        CHECK_EQ(atomic_load(&s.begun), 4);
        pirn_chan_release(s.self);
    }
}

static void free_itself(void *arg)
{
    struct slow *s = arg;
    pirn_timer *t = pirn_chan_get(s->self);
    if (atomic_fetch_add(&s->begun, 1) % 2)
        pirn_timer_reset(t, HOUR); /* pending: the free stops it */
    pirn_timer_free(t);
    pirn_yield();
    pirn_wg_done(&s->wg);
}

static void free_itself_and_exit(void *arg)
{
    free_itself(arg);
    pirn_exit();
}

TEST_RUN_ATTR(frees_itself, PROCS)
{
    struct slow s = {.self = pirn_chan_make(pirn_timer *, 0)};
    for (int i = 0; i < 200; i++) {
        pirn_wg_add(&s.wg, 1);
        pirn_timer *t =
            pirn_after_func(i % 3 * PIRN_US, i % 5 ? free_itself : free_itself_and_exit, &s);
        pirn_chan_send(s.self, t);
    }
    pirn_wg_wait(&s.wg);
    pirn_chan_release(s.self);
}

static void exit_inside(void *arg)
{
    struct slow *s = arg;
    atomic_fetch_add(&s->begun, 1);
    pirn_chan_get(s->go_on);
    atomic_fetch_add(&s->ended, 1);
    pirn_exit();
}

/* pirn_exit ends the function too, and who waits for that goes on; nothing stays locked. */
TEST_RUN_ATTR(exit_inside_ends_the_call, PROCS)
{
    for (int round = 0; round < 50; round++) {
        struct slow s = {.go_on = pirn_chan_make(int, 0)};
        pirn_timer *t = pirn_after_func(0, exit_inside, &s);
        wait_for_count(&s.begun, 1);
        pirn_go(let_go_on, &s, 1);
        CHECK(!pirn_timer_stop_wait(t));
        CHECK_EQ(atomic_load(&s.ended), 1);
        CHECK(!pirn_timer_reset(t, 0));
        wait_for_count(&s.begun, 2);
        pirn_go(let_go_on, &s, 1);
        pirn_timer_free(t);
        CHECK_EQ(atomic_load(&s.ended), 2);
        pirn_chan_release(s.go_on);
    }
}

static void make_more(void *arg)
{
    struct slow *s = arg;
    pirn_timer *t = pirn_chan_get(s->self);
    if (atomic_fetch_add(&s->begun, 1) < 100) {
        pirn_timer *next = pirn_after_func(next_rand(&(unsigned){7}) % 3, make_more, s);
        pirn_chan_send(s->self, next);
    } else {
        pirn_wg_done(&s->wg);
    }
    pirn_timer_free(t);
}

/* One timer's function makes the next timer; functions that block keep no other from being called. */
TEST_RUN_ATTR(functions_make_timers_and_block, PROCS)
{
    struct slow s = {.self = pirn_chan_make(pirn_timer *, 1), .go_on = pirn_chan_make(int, 0)};
    pirn_timer *blocked[20];
    for (int i = 0; i < 20; i++)
        blocked[i] = pirn_after_func(0, wait_inside, &s);
    wait_for_count(&s.begun, 20);
    atomic_store(&s.begun, 0);
    pirn_wg_add(&s.wg, 1);
    pirn_chan_send(s.self, pirn_after_func(0, make_more, &s));
    pirn_wg_wait(&s.wg);
    CHECK_EQ(atomic_load(&s.ended), 0);
    let_go_on(&s, 20);
    for (int i = 0; i < 20; i++)
        pirn_timer_free(blocked[i]);
    CHECK_EQ(atomic_load(&s.ended), 20);
    pirn_chan_release(s.self);
    pirn_chan_release(s.go_on);
}

/* --- freed at any time ------------------------------------------------------------------------------------------ */

struct short_lived {
    atomic_int state; /* 1: alive */
};

static void use(void *arg)
{
    struct short_lived *x = arg;
    CHECK_EQ(atomic_load(&x->state), 1);
    pirn_yield();
    CHECK_EQ(atomic_load(&x->state), 1);
}

static void make_and_free(unsigned seed)
{
    for (int i = 0; i < (TOOL ? 500 : 5000); i++) {
        struct short_lived *x = malloc(sizeof *x);
        CHECK(x != NULL);
        atomic_init(&x->state, 1);
        pirn_timer *t = pirn_after_func((pirn_ns)(next_rand(&seed) % 3000), use, x);
        compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 4000));
        pirn_timer_free(t); /* after this nothing uses x */
        atomic_store(&x->state, 0);
        free(x);
    }
}

TEST_RUN_ATTR(freed_while_it_fires, PROCS)
{
    pirn_wg wg = {0};
    for (unsigned i = 0; i < 8; i++)
        pirn_wg_go(&wg, make_and_free, i);
    pirn_wg_wait(&wg);
}

/* --- the end of the runtime -------------------------------------------------------------------------------------- */

static pirn_timer *pending, *never_begun[100], *blocked, *exits;
static pirn_chan(int) gate;
static atomic_int begun, calls;

static void block(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    pirn_chan_get(gate);
    atomic_fetch_add(&calls, 1);
}

static void free_and_block(void *arg)
{
    pirn_chan(pirn_timer *) self = (pirn_chan(pirn_timer *))arg;
    pirn_timer_free(pirn_chan_get(self));
    block(NULL);
}

static void stop_wait_for_ever(pirn_timer *t)
{
    atomic_fetch_add(&begun, 1);
    pirn_timer_stop_wait(t);
    FAIL("the function had not returned");
}

static void set(pirn_timer **t, pirn_ns ns, void (*fn)(void *))
{
    if (*t)
        pirn_timer_reset(*t, ns);
    else
        *t = pirn_after_func(ns, fn, &calls);
}

/* Leaves timers that are pending, functions that wait, one that was to begin, and who waits for them. */
static int leave_all(void *arg)
{
    pirn_chan(pirn_timer *) self = (pirn_chan(pirn_timer *))arg;
    atomic_store(&begun, 0);
    set(&pending, HOUR, count);
    set(&blocked, 0, block);
    pirn_chan_send(self, pirn_after_func(0, free_and_block, (void *)self));
    wait_for_count(&begun, 2);
    for (int i = 0; i < 3; i++)
        pirn_go(stop_wait_for_ever, blocked);
    wait_for_count(&begun, 5);
    pirn_yield();
    for (int i = 0; i < 100; i++)
        set(&never_begun[i], 0, block);
    pirn_sleep(1); /* some of these have begun, some have not, some have not fired */
    return 0;
}

static void stop_wait_for_two(void)
{
    atomic_fetch_add(&begun, 1);
    CHECK(!pirn_timer_stop_wait(blocked));
    CHECK_EQ(atomic_load(&calls), 2);
}

static int use_again(void *arg)
{
    (void)arg;
    atomic_int n = 0;
    pirn_wg wg = {0};
    CHECK(!pirn_timer_stop_wait(pending));
    CHECK(!pirn_timer_stop_wait(blocked)); /* that call went with its runtime */
    CHECK(!pirn_timer_reset(pending, 0));
    while (atomic_load(&calls) < 1)
        pirn_yield();
    atomic_store(&begun, 0);
    CHECK(!pirn_timer_reset(blocked, 0));
    wait_for_count(&begun, 1);
    for (int i = 0; i < 2; i++)
        pirn_wg_go(&wg, stop_wait_for_two);
    wait_for_count(&begun, 3);
    pirn_sleep(10 * PIRN_US); /* now they wait, beside nobody of the runtime before */
    pirn_chan_send(gate, 1);
    pirn_wg_wait(&wg);
    for (int i = 0; i < 100; i++)
        CHECK(!pirn_timer_stop_wait(never_begun[i]));
    if (!exits)
        exits = pirn_after_func(HOUR, count, &n);
    CHECK(pirn_timer_stop_wait(exits));
    CHECK(!pirn_timer_reset(exits, HOUR));
    return 0;
}

static void leave(pirn_chan(pirn_timer *) self)
{
    atomic_store(&calls, 0);
    CHECK_EQ(pirn_run(leave_all, (void *)self), 0);
    CHECK_EQ(atomic_load(&calls), 0);
}

TEST_ATTR(used_in_the_next_runtime, PROCS)
{
    pirn_chan(pirn_timer *) self = pirn_chan_make(pirn_timer *, 1);
    gate = pirn_chan_make(int, 0);
    for (int i = 0; i < 20; i++) {
        leave(self);
        if (i % 2) { /* without a runtime nothing runs that could be waited for */
            CHECK(!pirn_timer_stop_wait(blocked));
            CHECK(!pirn_timer_stop(pending));
        }
        CHECK_EQ(pirn_run(use_again, NULL), 0);
        pirn_timer_free(exits);
        exits = NULL;
        if (i % 3 == 0) {
            pirn_timer_free(blocked);
            blocked = NULL;
        }
    }
    leave(self);
    for (int i = 0; i < 100; i++)
        pirn_timer_free(never_begun[i]);
    pirn_timer_free(blocked);
    pirn_timer_free(pending);
    pirn_chan_release(gate);
    pirn_chan_release(self);
}
