/* SPDX-License-Identifier: MIT */
/*
 * Time, as Go's tests want it: the section "Timers, sleep" of the conformance list. Here: sleep and
 * deadlines, durations of all kinds, very many at once, and what the runtime does meanwhile. Nothing
 * depends on how fast the machine is: never early, and in the end all came.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"
#include "idle.h"

#define PROCS .procs = "1,2,4,16"
#define HOUR (3600 * PIRN_SEC)

static const pirn_ns spans[] = {1,       999,     20 * PIRN_US, 100 * PIRN_US, 999999,
                                PIRN_MS, 2345678, 11 * PIRN_MS, 25 * PIRN_MS};
#define SPANS (sizeof spans / sizeof *spans)

static unsigned next_rand(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

/* --- never early ---------------------------------------------------------------------------------- */

static void sleeps(pirn_ns ns)
{
    pirn_ns start = pirn_now();
    CHECK_EQ(pirn_sleep(ns), 0);
    CHECK_GE(pirn_now() - start, ns);
    pirn_ns when = pirn_now() + ns;
    CHECK_EQ(pirn_sleep_until(when), 0);
    CHECK_GE(pirn_now(), when);
}

static void gets_after(pirn_ns ns)
{
    pirn_ns start = pirn_now(), v = 0;
    pirn_chan(pirn_ns) c = pirn_after(ns);
    CHECK(pirn_chan_recv(c, &v));
    CHECK_GE(v - start, ns);
    CHECK_GE(pirn_now(), v);
    pirn_chan_release(c);
    start = pirn_now();
    pirn_timer *t = pirn_timer_new(ns);
    v = pirn_chan_get(pirn_timer_chan(t));
    CHECK_GE(v - start, ns);
    CHECK_GE(pirn_now(), v);
    pirn_timer_free(t);
}

static void selects(pirn_ns ns)
{
    int v;
    pirn_chan(int) never = pirn_chan_make(int, 0);
    pirn_ns start = pirn_now();
    CHECK_EQ(pirn_select(PIRN_RECV(never, &v), PIRN_AFTER(ns), PIRN_SEND(never, 1)), 1);
    CHECK_GE(pirn_now() - start, ns);
    start = pirn_now();
    CHECK_EQ(pirn_select(PIRN_AFTER(HOUR), PIRN_UNTIL(start + ns), PIRN_AFTER(HOUR)), 1);
    CHECK_GE(pirn_now() - start, ns);
    start = pirn_now();
    pirn_chan(pirn_ns) c = pirn_after(ns);
    CHECK_EQ(pirn_select(PIRN_AFTER(HOUR), PIRN_RECV(c, NULL), PIRN_RECV(never, &v)), 1);
    CHECK_GE(pirn_now() - start, ns);
    pirn_chan_release(c);
    pirn_chan_release(never);
}

static void waits_until(pirn_ns ns)
{
    int v = 5;
    pirn_mutex m = {0};
    pirn_cond cond = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_ns when = pirn_now() + ns;
    CHECK_EQ(pirn_chan_recv_until(c, &v, when), -ETIMEDOUT);
    CHECK_GE(pirn_now(), when);
    when = pirn_now() + ns;
    CHECK_EQ(pirn_chan_send_until(c, 1, when), -ETIMEDOUT);
    CHECK_GE(pirn_now(), when);
    pirn_mutex_lock(&m);
    when = pirn_now() + ns;
    CHECK_EQ(pirn_cond_wait_until(&cond, &m, when), -ETIMEDOUT);
    CHECK_GE(pirn_now(), when);
    pirn_mutex_unlock(&m);
    CHECK_EQ(v, 5);
    pirn_chan_release(c);
}

struct deed {
    pirn_ns when;
    pirn_wg *wg;
};

static void must_be_time(void *arg)
{
    struct deed *d = arg;
    CHECK_GE(pirn_now(), d->when);
    pirn_wg_done(d->wg);
}

static void calls_after(pirn_ns ns)
{
    pirn_wg wg = {0};
    struct deed d = {pirn_now() + ns, &wg};
    pirn_wg_add(&wg, 1);
    pirn_timer *t = pirn_after_func(ns, must_be_time, &d);
    CHECK(pirn_timer_chan(t) == NULL);
    pirn_wg_wait(&wg);
    pirn_timer_free(t);
}

TEST_RUN_ATTR(never_early, PROCS)
{
    pirn_wg wg = {0};
    for (unsigned i = 0; i < SPANS; i++) {
        pirn_wg_go(&wg, sleeps, spans[i]);
        pirn_wg_go(&wg, gets_after, spans[i]);
        pirn_wg_go(&wg, selects, spans[i]);
        pirn_wg_go(&wg, waits_until, spans[i]);
        pirn_wg_go(&wg, calls_after, spans[i]);
    }
    pirn_wg_wait(&wg);
    for (unsigned i = 0; i < SPANS; i++) /* alone, with every P idle */
        sleeps(spans[i]);
}

/* --- threads of the program's own -------------------------------------------------------------------- */

static void *thread_waits(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < SPANS; i++) {
        sleeps(spans[i]);
        gets_after(spans[i]);
        selects(spans[i]);
        waits_until(spans[i]);
        calls_after(spans[i]);
    }
    return NULL;
}

TEST_ATTR(never_early_in_threads, PROCS)
{
    pthread_t threads[3];
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_waits, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(pirn_stop(), 0);
}

/* A thread needs no runtime to sleep, nor one that gets nothing by waiting. */
TEST(without_a_runtime)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    for (unsigned i = 0; i < SPANS; i++)
        sleeps(spans[i]);
    CHECK_EQ(pirn_chan_recv_until(c, NULL, pirn_now() - 1), -ETIMEDOUT);
    CHECK_EQ(pirn_select(PIRN_RECV(c, NULL), PIRN_AFTER(0)), 1);
    pirn_timer_free(NULL);
    pirn_ticker_free(NULL);
    pirn_chan_release(c);
}

/* --- zero, negative, past ------------------------------------------------------------------------------- */

static const pirn_ns over[] = {0, -1, -PIRN_SEC, -HOUR * 24 * 365 * 100, INT64_MIN + 1, INT64_MIN};
#define OVER (sizeof over / sizeof *over)

static void over_at_once(pirn_ns ns)
{
    int v;
    pirn_ns start = pirn_now();
    pirn_chan(int) full = pirn_chan_make(int, 1);
    sleeps(ns);
    calls_after(ns);
    CHECK_LE(pirn_deadline(ns), pirn_now());
    pirn_chan(pirn_ns) c = pirn_after(ns);
    CHECK_GE(pirn_chan_get(c), start);
    pirn_chan_release(c);
    pirn_timer *t = pirn_timer_new(ns);
    pirn_ns at = 0;
    while (!pirn_chan_try_recv(pirn_timer_chan(t), &at)) { /* it may be on its way */
    }
    CHECK_GE(at, start);
    CHECK_EQ(pirn_chan_try_recv(pirn_timer_chan(t), &at), 0);
    CHECK(!pirn_timer_reset(t, ns));
    while (pirn_select(PIRN_RECV(pirn_timer_chan(t), &at), PIRN_DEFAULT)) {
    }
    pirn_timer_free(t);
    CHECK_EQ(pirn_select(PIRN_RECV(full, &v), PIRN_AFTER(ns)), 1);
    CHECK_EQ(pirn_select(PIRN_UNTIL(ns), PIRN_RECV(full, &v)), 0);
    CHECK_EQ(pirn_chan_recv_until(full, &v, ns), -ETIMEDOUT);
    /* What can be done is done, however late it is. */
    CHECK_EQ(pirn_chan_send_until(full, 1, ns), 0);
    CHECK_EQ(pirn_chan_send_until(full, 2, ns), -ETIMEDOUT);
    CHECK_EQ(pirn_select(PIRN_UNTIL(ns), PIRN_RECV(full, &v)), 1);
    CHECK_EQ(v, 1);
    pirn_chan_release(full);
}

TEST_RUN_ATTR(zero_and_negative, PROCS)
{
    for (int round = 0; round < 20; round++) {
        for (unsigned i = 0; i < OVER; i++)
            over_at_once(over[i]);
    }
}

static void yield_often(atomic_bool *end)
{
    while (!atomic_load(end))
        pirn_yield();
}

/* Sleeps of nothing beside others that run: none is lost. */
TEST_RUN_ATTR(sleep_of_nothing, PROCS)
{
    pirn_wg wg = {0};
    atomic_bool end = false;
    pirn_wg_go(&wg, yield_often, &end);
    pirn_chan(int) c = pirn_chan_make(int, 1);
    for (int i = 0; i < 2000; i++) {
        pirn_sleep((i % 3 - 1) * 2 * PIRN_US);
        pirn_chan_send(c, i);
        CHECK_EQ(pirn_chan_get(c), i);
    }
    atomic_store(&end, true);
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
}

#define ZEROES (TEST_TSAN || TEST_ASAN ? 20000 : 1000 * 1000)

TEST_RUN_ATTR(a_million_zero_timers, PROCS, .timeout = 60)
{
    for (int i = 0; i < ZEROES; i++) {
        pirn_ns start = pirn_now();
        pirn_timer *t = pirn_timer_new(0);
        CHECK_GE(pirn_chan_get(pirn_timer_chan(t)), start);
        CHECK(!pirn_timer_stop(t));
        pirn_timer_free(t);
    }
}

static atomic_int called;

static void count_call(void *arg)
{
    (void)arg;
    atomic_fetch_add(&called, 1);
}

TEST_RUN_ATTR(zero_timers_at_once, PROCS, .timeout = 60)
{
    enum { N = TEST_TSAN ? 4000 : TEST_ASAN ? 10000 : 100000 };
    static pirn_timer *timers[N];
    for (int i = 0; i < N; i++)
        timers[i] = pirn_after_func(0, count_call, NULL);
    while (atomic_load(&called) < N)
        pirn_yield();
    for (int i = 0; i < N; i++)
        pirn_timer_free(timers[i]);
    CHECK_EQ(atomic_load(&called), N);
}

/* --- for ever ---------------------------------------------------------------------------------------------- */

static atomic_int woken, waiting;

static void sleep_for_ever(pirn_ns ns)
{
    atomic_fetch_add(&waiting, 1);
    pirn_sleep(ns);
    atomic_fetch_add(&woken, 1);
}

static void sleep_until_never(pirn_ns when)
{
    atomic_fetch_add(&waiting, 1);
    pirn_sleep_until(when);
    atomic_fetch_add(&woken, 1);
}

static void select_for_ever(pirn_ns ns, pirn_chan(int) c)
{
    atomic_fetch_add(&waiting, 1);
    pirn_select(PIRN_RECV(c, NULL), PIRN_AFTER(ns), PIRN_UNTIL(ns));
    atomic_fetch_add(&woken, 1);
}

static void recv_for_ever(pirn_ns when, pirn_chan(int) c)
{
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv_until(c, NULL, when);
    atomic_fetch_add(&woken, 1);
}

static void woke(void *arg)
{
    (void)arg;
    atomic_fetch_add(&woken, 1);
}

/* now + ns does not fit, or just fits: these two, and what is between them. */
static const pirn_ns ages[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX - HOUR, INT64_MAX / 2,
                               PIRN_NEVER};
#define AGES (sizeof ages / sizeof *ages)

static pirn_chan(int) silent;

static int wait_for_ever(void *arg)
{
    pirn_timer *funcs[AGES], *timers[AGES], *moved[AGES];
    pirn_ticker *tickers[AGES], *reset[AGES];
    pirn_chan(pirn_ns) after[AGES];
    (void)arg;
    for (unsigned i = 0; i < AGES; i++) {
        pirn_go(sleep_for_ever, ages[i]);
        pirn_go(sleep_until_never, ages[i]);
        pirn_go(select_for_ever, ages[i], silent);
        pirn_go(recv_for_ever, ages[i], silent);
        funcs[i] = pirn_after_func(ages[i], woke, NULL);
        timers[i] = pirn_timer_new(ages[i]);
        moved[i] = pirn_timer_new(HOUR);
        CHECK(pirn_timer_reset(moved[i], ages[i]));
        tickers[i] = pirn_ticker_new(ages[i]);
        reset[i] = pirn_ticker_new(HOUR);
        pirn_ticker_reset(reset[i], ages[i]);
        after[i] = pirn_after(ages[i]);
        CHECK_GE(pirn_deadline(ages[i]), ages[i]);
    }
    CHECK_EQ(pirn_deadline(INT64_MAX), PIRN_NEVER);
    while (atomic_load(&waiting) < (int)(4 * AGES))
        pirn_yield();
    for (int i = 0; i < 10; i++)
        pirn_sleep(2 * PIRN_MS);
    CHECK_EQ(atomic_load(&woken), 0);
    for (unsigned i = 0; i < AGES; i++) {
        CHECK_EQ(pirn_chan_try_recv(pirn_timer_chan(timers[i]), NULL), 0);
        CHECK_EQ(pirn_chan_try_recv(pirn_timer_chan(moved[i]), NULL), 0);
        CHECK_EQ(pirn_chan_try_recv(pirn_ticker_chan(tickers[i]), NULL), 0);
        CHECK_EQ(pirn_chan_try_recv(pirn_ticker_chan(reset[i]), NULL), 0);
        CHECK_EQ(pirn_chan_try_recv(after[i], NULL), 0);
        pirn_timer_reset(moved[i], 0); /* and from never to now */
        pirn_chan_get(pirn_timer_chan(moved[i]));
        pirn_ticker_reset(reset[i], 1);
        pirn_chan_get(pirn_ticker_chan(reset[i]));
        pirn_timer_free(funcs[i]);
        pirn_timer_free(timers[i]);
        pirn_timer_free(moved[i]);
        pirn_ticker_free(tickers[i]);
        pirn_ticker_free(reset[i]);
        pirn_chan_release(after[i]);
    }
    CHECK_EQ(atomic_load(&woken), 0);
    return 0;
}

TEST_ATTR(too_long_is_never, PROCS)
{
    silent = pirn_chan_make(int, 0);
    CHECK_EQ(pirn_run(wait_for_ever, NULL), 0);
    pirn_chan_release(silent);
}

/* --- who gets to it ------------------------------------------------------------------------------------------ */

/* A goroutine that only polls keeps its P; it sees the timer all the same. */
TEST_RUN_ATTR(seen_by_polling, PROCS)
{
    for (int i = 0; i < 20; i++) {
        pirn_ns start = pirn_now(), v;
        pirn_timer *t = pirn_timer_new(200 * PIRN_US);
        while (!pirn_chan_try_recv(pirn_timer_chan(t), &v)) {
        }
        CHECK_GE(v - start, 200 * PIRN_US);
        pirn_timer_reset(t, 200 * PIRN_US);
        while (pirn_select(PIRN_RECV(pirn_timer_chan(t), &v), PIRN_DEFAULT)) {
        }
        pirn_timer_free(t);
    }
}

/* One that yields, with nobody to yield to, lets a timer's function run. */
TEST_RUN_ATTR(called_beside_yields, PROCS)
{
    for (int i = 1; i <= 20; i++) {
        pirn_timer *t = pirn_after_func(100 * PIRN_US, count_call, NULL);
        while (atomic_load(&called) < i)
            pirn_yield();
        pirn_timer_free(t);
    }
}

static void compute_until(atomic_bool *end)
{
    while (!atomic_load_explicit(end, memory_order_relaxed)) {
    }
}

static void set_after_sleep(pirn_ns ns, atomic_bool *flag)
{
    pirn_sleep(ns);
    atomic_store(flag, true);
}

/* A timer does not wait for a goroutine that computes, while there is another P: that of the P that
 * computes, and that of a goroutine which set it and computes itself. */
TEST_RUN_ATTR(fires_beside_one_that_computes, .procs = "2,4,16", .timeout = 30)
{
    for (int i = 0; i < 10; i++) {
        atomic_bool end = false;
        pirn_wg wg = {0};
        pirn_wg_go(&wg, set_after_sleep, i * PIRN_MS / 2, &end);
        pirn_wg_go(&wg, compute_until, &end);
        pirn_wg_wait(&wg);
        int before = atomic_load(&called);
        pirn_timer *t = pirn_after_func(i * PIRN_MS / 2, count_call, NULL);
        while (atomic_load(&called) == before) {
        }
        pirn_timer_free(t);
    }
}

/* External calls beside timers: threads that block, goroutines that block their thread, stdio. */
static void block_thread(atomic_bool *end)
{
    while (!atomic_load(end)) {
        char text[64];
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        snprintf(text, sizeof text, "%lld", (long long)pirn_now());
        free(malloc((size_t)atoll(text) % 1000));
        pirn_yield();
    }
}

static void *block_outside(void *end)
{
    block_thread(end);
    return NULL;
}

static void tick_and_sleep(void)
{
    pirn_ticker *ticker = pirn_ticker_new(100 * PIRN_US);
    for (int i = 0; i < 30; i++) {
        pirn_ns start = pirn_now();
        pirn_chan_get(pirn_ticker_chan(ticker));
        pirn_sleep(50 * PIRN_US);
        CHECK_GE(pirn_now() - start, 50 * PIRN_US);
    }
    pirn_ticker_free(ticker);
}

TEST_RUN_ATTR(beside_external_calls, PROCS)
{
    pthread_t threads[2];
    atomic_bool end = false;
    pirn_wg wg = {0}, blockers = {0};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, block_outside, &end), 0);
        pirn_wg_go(&blockers, block_thread, &end);
    }
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, tick_and_sleep);
    pirn_wg_wait(&wg);
    atomic_store(&end, true);
    pirn_wg_wait(&blockers);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* --- a nearer one --------------------------------------------------------------------------------------- */

#define SOON (5 * PIRN_SEC) /* for a busy machine; who sleeps on takes an hour */

static atomic_int hours;

static void count_hour(void *arg)
{
    (void)arg;
    atomic_fetch_add(&hours, 1);
}

static void set_and_wait(void)
{
    gets_after(PIRN_MS);
}

static void set_and_compute(void)
{
    int before = atomic_load(&called);
    pirn_timer *t = pirn_after_func(PIRN_MS, count_call, NULL);
    while (pirn_procs(0) > 1 && atomic_load(&called) == before) { /* with one P, who should? */
    }
    pirn_timer_free(t);
}

static void wait_readable(int fd, atomic_int *ended)
{
    CHECK_EQ(pirn_select(PIRN_READABLE(fd)), 0);
    atomic_store(ended, 1);
}

/* All sleep, the last of them for an hour; whoever sets a timer, in whatever way, breaks that. */
static void set_nearer(void (*set)(void))
{
    wait_until_idle();
    pirn_ns start = pirn_now();
    set();
    CHECK_LT(pirn_now() - start, SOON);
}

static void in_a_goroutine(void (*set)(void))
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, set);
    pirn_wg_wait(&wg);
}

static void in_goroutine_waits(void)
{
    in_a_goroutine(set_and_wait);
}

static void in_goroutine_computes(void)
{
    in_a_goroutine(set_and_compute);
}

static pirn_timer *hour;

static void bring_forward(void)
{
    int before = atomic_load(&hours);
    pirn_timer_reset(hour, PIRN_MS);
    while (atomic_load(&hours) == before)
        sched_yield();
    pirn_timer_reset(hour, HOUR);
}

static void set_all_nearer(void)
{
    for (int i = 0; i < 5; i++) {
        set_nearer(set_and_wait);
        set_nearer(in_goroutine_waits);
        set_nearer(in_goroutine_computes);
        set_nearer(bring_forward);
    }
}

TEST_ATTR(nearer_than_an_hour, PROCS, .timeout = 60)
{
    int fd[2];
    atomic_int ended = 0;
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    hour = pirn_after_func(HOUR, count_hour, NULL);
    set_all_nearer();
    CHECK_EQ(pipe(fd), 0);
    pirn_wg_go(&wg, wait_readable, fd[0], &ended);
    set_all_nearer(); /* the same beside one who waits for a descriptor */
    CHECK_EQ(atomic_load(&ended), 0);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    pirn_wg_wait(&wg);
    close(fd[0]);
    close(fd[1]);
    pirn_timer_free(hour);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- the number of Ps changes ---------------------------------------------------------------------------------- */

static void set_for_later(pirn_timer **timer, struct deed *d)
{
    pirn_ns until = pirn_now() + 100 * PIRN_US;
    while (pirn_now() < until) { /* so that others are stolen, and set on other Ps */
    }
    *timer = pirn_after_func(HOUR, must_be_time, d);
}

/* A timer that is set again stays where it is. busy: beside goroutines that keep the Ps that are left,
 * else with all idle but for the timers. */
static void set_and_resize(int procs, bool busy)
{
    enum { N = 48 };
    unsigned seed = (unsigned)procs;
    pirn_timer *timers[N];
    struct deed deeds[N];
    atomic_bool end = false;
    pirn_wg set = {0}, calls = {0}, others = {0};
    pirn_procs(16);
    for (int i = 0; i < N; i++) {
        deeds[i].wg = &calls;
        pirn_wg_go(&set, set_for_later, &timers[i], &deeds[i]);
    }
    pirn_wg_wait(&set);
    pirn_procs(procs);
    for (int i = 0; busy && i < 2 * procs; i++)
        pirn_wg_go(&others, yield_often, &end);
    pirn_wg_add(&calls, N);
    for (int i = 0; i < N; i++) {
        pirn_ns ns = (pirn_ns)(next_rand(&seed) % 5000) * PIRN_US;
        deeds[i].when = pirn_now() + ns;
        CHECK(pirn_timer_reset(timers[i], ns));
    }
    pirn_wg_wait(&calls);
    atomic_store(&end, true);
    pirn_wg_wait(&others);
    for (int i = 0; i < N; i++)
        pirn_timer_free(timers[i]);
}

TEST_RUN_ATTR(timers_of_retired_ps_fire, .procs = "1,16", .timeout = 30)
{
    static const int sizes[] = {16, 1, 16, 3, 2, 1, 7, 16, 1};
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        set_and_resize(sizes[k], false);
        set_and_resize(sizes[k], true);
    }
}

static void resize_often(atomic_bool *end)
{
    unsigned seed = 7;
    while (!atomic_load(end)) {
        pirn_procs(1 + (int)(next_rand(&seed) % 16));
        pirn_sleep(next_rand(&seed) % 100 * PIRN_US);
    }
}

static void sleep_often(unsigned seed)
{
    for (int i = 0; i < 50; i++)
        sleeps(next_rand(&seed) % 300 * PIRN_US);
}

TEST_RUN_ATTR(sleeps_while_ps_change, .procs = "1,16", .timeout = 30)
{
    atomic_bool end = false;
    pirn_wg wg = {0}, resizer = {0};
    pirn_wg_go(&resizer, resize_often, &end);
    for (unsigned i = 0; i < 30; i++)
        pirn_wg_go(&wg, sleep_often, i);
    pirn_wg_wait(&wg);
    atomic_store(&end, true);
    pirn_wg_wait(&resizer);
}

/* --- very many ----------------------------------------------------------------------------------------------------- */

#define SLEEPERS (TEST_TSAN ? 1500 : TEST_ASAN ? 10000 : 200 * 1000)

static void sleep_and_tell(void *arg)
{
    pirn_wg *all = arg;
    unsigned seed = (unsigned)pirn_id();
    pirn_ns ns = (pirn_ns)(next_rand(&seed) % 200000) * PIRN_US, start = pirn_now();
    pirn_sleep(ns);
    CHECK_GE(pirn_now() - start, ns);
    pirn_wg_done(all);
}

TEST_RUN_ATTR(many_sleepers, PROCS, .timeout = 120)
{
    pirn_wg all = {0};
    pirn_attr attr = {.stack_size = PIRN_STACK_DENSE_8K};
    pirn_wg_add(&all, SLEEPERS);
    for (int i = 0; i < SLEEPERS; i++) {
        CHECK_EQ(pirn_spawn(&attr, sleep_and_tell, &all), 0);
        if (i % 1000 == 0)
            pirn_yield();
    }
    pirn_wg_wait(&all);
}

static void set_timers(int n)
{
    unsigned seed = 3;
    pirn_wg all = {0};
    struct deed *deeds = calloc((size_t)n, sizeof *deeds);
    pirn_timer **timers = calloc((size_t)n, sizeof(pirn_timer *));
    CHECK(deeds && timers);
    pirn_wg_add(&all, n);
    for (int i = 0; i < n; i++) {
        pirn_ns ns = (pirn_ns)(next_rand(&seed) % 200000) * PIRN_US;
        deeds[i] = (struct deed){pirn_now() + ns, &all};
        timers[i] = pirn_after_func(ns, must_be_time, &deeds[i]);
    }
    pirn_wg_wait(&all);
    for (int i = 0; i < n; i++)
        pirn_timer_free(timers[i]);
    free(timers);
    free(deeds);
}

TEST_RUN_ATTR(many_timers, PROCS, .timeout = 120)
{
    set_timers(SLEEPERS);
}

TEST_RUN_ATTR(a_million_timers, PROCS, .timeout = 120, .slow = true)
{
    set_timers(SLEEPERS < 200 * 1000 ? SLEEPERS : 1000 * 1000);
}
