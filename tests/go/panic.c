/* SPDX-License-Identifier: MIT */
/* Panics, pirn_try and pirn_exit: numbers 71, 75 to 80, 83, 86, 87, 89 and 105, 106 of the conformance list. Also built by tests/levels. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define SLACK (64 << 10) /* what malloc keeps for its threads */

static char events[4096]; /* of tests with one goroutine */

static void note(const char *text)
{
    size_t n = strlen(events);
    CHECK_LT(n + strlen(text) + 2, sizeof events);
    strcat(strcat(events, text), " ");
}

static void expect(const char *text)
{
    CHECK_STR(events, text);
    events[0] = '\0';
}

/* fn panics with this. */
static void expect_panic(void (*fn)(void *), void *arg, const char *text)
{
    pirn_panic_info *p = pirn_try(fn, arg);
    CHECK(p != NULL);
    CHECK_STR(pirn_panic_message(p), text);
    pirn_panic_free(p);
}

static void recover_it(void)
{
    const char *text = pirn_recover();
    note(text ? text : "nothing");
}

static void boom(void *text)
{
    pirn_panic("%s", (char *)text);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* --- pirn_try ---------------------------------------------------------------------------------------- */

TEST_RUN(try_returns_the_panic)
{
    static char large[20000];
    memset(large, 'x', sizeof large - 1);
    CHECK(pirn_try(nothing, NULL) == NULL);
    expect_panic(boom, "boom", "boom");
    expect_panic(boom, "", "");
    expect_panic(boom, large, large);
    pirn_panic_free(NULL);
}

static void no_format(void *arg)
{
    const char *volatile none = arg;
    pirn_panic(none, 1);
}

/* Number 80. */
TEST_RUN(nil_is_a_panic_too)
{
    expect_panic(no_format, NULL, "panic called with nil argument");
}

static void inner(void *arg)
{
    pirn_defer(note, "inner");
    boom(arg);
}

static void outer(void *arg)
{
    pirn_defer(note, "outer");
    expect_panic(inner, "one", "one");
    note("between");
    inner(arg);
}

TEST_RUN(nested)
{
    expect_panic(outer, "two", "two");
    expect("inner between inner outer ");
}

static int results_survive(int n)
{
    static volatile int kept;
    kept = n;
    pirn_panic_free(pirn_try(boom, "later"));
    return kept;
}

/* Number 87: the 1000th costs as much as the first, and nothing is left behind. */
TEST_RUN(many)
{
    size_t before = 0;
    for (int i = 0; i < 2000; i++) {
        expect_panic(boom, "again", "again");
        CHECK_EQ(results_survive(i), i);
        if (i == 1000)
            before = test_allocated();
    }
    CHECK_LT(test_allocated(), before + SLACK);
}

/* --- frames ------------------------------------------------------------------------------------------ */

#ifdef __EXCEPTIONS
#define UNWINDS 1 /* frame by frame */
#else
#define UNWINDS 0
#endif

/* Calls itself n times; then it panics, or returns. */
static __attribute__((noinline)) int down(int n, bool panics)
{
    if (n == 0 && panics)
        pirn_panic("from below");
    int result = n ? down(n - 1, panics) : 1;
    __asm__ volatile("" : "+r"(result)); /* no tail call */
    return result;
}

static void down_to(void *depth)
{
    down(*(int *)depth, true);
}

static long cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Then frames are looked at one by one. Sanitizers bring the unwinder, too. */
static bool unwinds(void)
{
    return UNWINDS || TEST_MSAN || dlsym(RTLD_DEFAULT, "_Unwind_ForcedUnwind") != NULL;
}

/* Of a panic and its recovery; or only of the calls, there and back. */
static long cost(int depth, bool panics)
{
    long best = 1000000000;
    for (int i = 0; i < 200; i++) {
        long begin = cpu_ns();
        if (panics)
            expect_panic(down_to, &depth, "from below");
        else
            CHECK_EQ(down(depth, false), 1);
        long took = cpu_ns() - begin;
        best = took < best ? took : best;
    }
    return best;
}

/* Numbers 87 and 90, hazard 7: frames that have deferred nothing cost no more than the calls
 * that have made them. */
TEST_RUN(far_below)
{
    long calls = cost(1000, false), near = cost(1, true), far = cost(1000, true);
    printf("%ld ns, from 1000 frames below %ld ns; the calls %ld ns\n", near, far, calls);
    if (!unwinds())
        CHECK_LT(far, 3 * near + 10 * calls);
}

enum { TRACE = 64 };
static void *trace[TRACE];
static int ntrace;
static void *returns_to[2];

static bool is_traced(const void *pc)
{
    for (int i = 0; i < ntrace; i++)
        if (trace[i] == pc)
            return true;
    return false;
}

static __attribute__((noinline)) void traces(void)
{
    ntrace = pirn_backtrace(trace, TRACE);
    __asm__ volatile("");
}

static void traces_and_recovers(void)
{
    CHECK(pirn_recover() != NULL);
    traces();
}

static void traces_and_panics(void)
{
    traces();
    pirn_panic("the second");
}

static __attribute__((noinline)) void raises(const char *text)
{
    returns_to[0] = __builtin_return_address(0);
    pirn_panic("%s", text);
}

static __attribute__((noinline)) void calls_raises(void *arg)
{
    returns_to[1] = __builtin_return_address(0);
    pirn_defer(traces_and_recovers);
    if (arg) {
        pirn_defer(traces_and_panics);
        raises("the first");
    }
    raises("the only one");
    __asm__ volatile("");
}

/* Number 89: what a deferred call sees of the frames that have panicked, and that they are gone afterwards. */
TEST_RUN(frames_of_a_panic)
{
    for (int twice = 0; twice < 2; twice++) {
        ntrace = 0;
        CHECK(pirn_try(calls_raises, twice ? &twice : NULL) == NULL);
        CHECK_GT(ntrace, 4);
        CHECK(UNWINDS || is_traced(returns_to[0])); /* raises was called from calls_raises ... */
        CHECK(is_traced(returns_to[1]));            /* ... and that by pirn_try */
        traces();
        CHECK_GT(ntrace, 1);
        CHECK(!is_traced(returns_to[0]));
        CHECK(!is_traced(returns_to[1]));
    }
}

/* --- panics in deferred calls ------------------------------------------------------------------------ */

static void boom_text(const char *text)
{
    pirn_panic("%s", text);
}

static void panic_in_deferred(void *arg)
{
    (void)arg;
    pirn_defer(recover_it);
    pirn_defer(boom_text, "third");
    pirn_defer(note, "middle");
    pirn_defer(boom_text, "second");
    boom("first");
}

static void deferred_tries(void)
{
    expect_panic(boom, "inside", "inside");
    note("tried");
}

static void try_in_deferred(void *arg)
{
    pirn_defer(deferred_tries);
    boom(arg);
}

static void panics_below(void)
{
    pirn_defer(recover_it);
    boom("below");
}

static void recovered_below(void *arg)
{
    pirn_defer(note, "outermost");
    pirn_defer(panics_below);
    boom(arg);
}

TEST_RUN(panic_in_deferred_call)
{
    CHECK(pirn_try(panic_in_deferred, NULL) == NULL);
    expect("middle third ");
    expect_panic(try_in_deferred, "still", "still");
    expect("tried ");
    /* It takes the place of the one before. */
    CHECK(pirn_try(recovered_below, "dropped") == NULL);
    expect("below outermost ");
}

static void nil_deferred(void *arg)
{
    void (*none)(void) = NULL;
    pirn_defer(note, "outer");
    pirn_defer(none);
    note("set");
    if (arg)
        boom(arg);
}

/* Number 69: when it is called, and in place of an earlier panic. */
TEST_RUN(nil_function)
{
    expect_panic(nil_deferred, NULL,
                 "runtime error: invalid memory address or nil pointer dereference");
    expect("set outer ");
    expect_panic(nil_deferred, "earlier",
                 "runtime error: invalid memory address or nil pointer dereference");
    expect("set outer ");
}

static void one_three_five(void *arg)
{
    pirn_defer(note, "5");
    pirn_defer(recover_it);
    pirn_defer(note, "3");
    {
        pirn_defer(note, "1");
        boom(arg);
    }
}

/* Number 75. */
TEST_RUN(outer_calls_still_run)
{
    CHECK(pirn_try(one_three_five, "x") == NULL);
    expect("1 3 x 5 ");
}

static volatile int progress;

static void sets_before(void *arg)
{
    progress = 7;
    boom(arg);
}

/* Numbers 76 and 77. */
TEST_RUN(what_was_done_before_is_seen)
{
    expect_panic(sets_before, "now", "now");
    CHECK_EQ(progress, 7);
}

static void waits(pirn_chanv *c)
{
    int v;
    pirn_yield();
    CHECK(pirn_chanv_recv(c, &v));
    pirn_sleep(10 * PIRN_US);
    note("waited");
}

static void send_one(pirn_chanv *c)
{
    int v = 1;
    pirn_chanv_send(c, &v);
}

static void waits_in_deferred(void *arg)
{
    pirn_defer(waits, arg);
    boom("while it waits");
}

/* Number 86. */
TEST_RUN_ATTR(deferred_calls_may_wait, PROCS)
{
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 0);
    for (int i = 0; i < 20; i++) {
        pirn_go(send_one, c);
        expect_panic(waits_in_deferred, c, "while it waits");
        expect("waited ");
    }
    pirn_chanv_release(c);
}

/* --- without pirn_try -------------------------------------------------------------------------------- */

static void recovers_alone(void)
{
    pirn_defer(note, "last");
    pirn_defer(recover_it);
    boom("alone");
    note("never");
}

TEST_RUN(the_goroutine_ends_quietly)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, recovers_alone);
    pirn_wg_wait(&wg);
    expect("alone last ");
}

static int main_recovers(void *arg)
{
    (void)arg;
    recovers_alone();
    return 7;
}

TEST(goroutine_1_too)
{
    CHECK_EQ(pirn_run(main_recovers, NULL), 0);
    expect("alone last ");
}

static int child(int n)
{
    pirn_defer(recover_it);
    if (n == 1)
        boom("child");
    return 0;
}

TEST_RUN(in_a_group)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, child, 1);
    CHECK_EQ(pirn_group_wait(&g), 0);
    expect("child ");
}

/* --- pirn_exit --------------------------------------------------------------------------------------- */

static void exits(void *arg)
{
    pirn_defer(recover_it);
    pirn_defer(note, "deferred");
    (void)arg;
    pirn_exit();
}

static void exits_through(void)
{
    pirn_defer(note, "outer");
    pirn_try(exits, NULL);
    note("never");
}

static void panics_on_the_way(void *arg)
{
    if (arg) {
        pirn_defer(recover_it);
        pirn_defer(boom_text, "on the way");
        pirn_exit();
    } else {
        pirn_defer(boom_text, "not recovered");
        pirn_exit();
    }
}

static void panics_and_exits(char *arg)
{
    pirn_defer(note, "outer");
    pirn_try(panics_on_the_way, arg);
    note("never");
}

static void exit_in_deferred(void)
{
    pirn_exit();
}

static void drops_panic(void *arg)
{
    pirn_defer(recover_it);
    pirn_defer(exit_in_deferred);
    boom(arg);
}

static void drops(void)
{
    pirn_defer(note, "outer");
    pirn_try(drops_panic, "dropped");
    note("never");
}

static void recovers_and_exits(void)
{
    CHECK(pirn_recover() != NULL);
    pirn_exit();
}

static void stale(void)
{
    pirn_defer(recover_it);
    pirn_defer(recovers_and_exits);
    boom("recovered");
}

static void run(void (*fn)(void))
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, fn);
    pirn_wg_wait(&wg);
}

/* Numbers 78 and 83. */
TEST_RUN(exit_passes_through)
{
    pirn_wg wg = {0};
    run(exits_through);
    expect("deferred nothing outer ");
    pirn_wg_go(&wg, panics_and_exits, (char *)"x");
    pirn_wg_wait(&wg);
    expect("on the way outer ");
    pirn_wg_go(&wg, panics_and_exits, NULL);
    pirn_wg_wait(&wg);
    expect("outer ");
    run(drops);
    expect("nothing outer ");
    run(stale);
    expect("nothing ");
}

/* --- mistakes that Go panics at ---------------------------------------------------------------------- */

static void send_closed(void *c)
{
    int v = 1;
    pirn_chanv_send(c, &v);
}
static void try_send_closed(void *c)
{
    int v = 1;
    pirn_chanv_try_send(c, &v);
}
static void close_closed(void *c)
{
    pirn_chanv_close(c);
}
static void send_until_closed(void *c)
{
    int v = 1;
    pirn_chanv_send_until(c, &v, PIRN_NEVER);
}
static void select_closed(void *c)
{
    int v = 1;
    pirn_case cases[12] = {{.kind_ = PIRN_CASE_SEND_, .chan_ = c, .elem_ = &v}};
    pirn_selectv(cases, 12);
}
static void negative(void *wg)
{
    pirn_wg_done(wg);
}
static void close_nil(void *arg)
{
    pirn_chanv_close(arg);
}
static void make_large(void *arg)
{
    (void)arg;
    pirn_chanv_make(SIZE_MAX, 2);
}
static void sem_too_many(void *arg)
{
    pirn_sem s = PIRN_SEM_INIT(INT64_MAX);
    (void)arg;
    pirn_sem_release(&s, 1);
}
static void ticker(void *arg)
{
    (void)arg;
    pirn_ticker_new(0);
}
static void background(void *arg)
{
    (void)arg;
    pirn_ctx_cancel(pirn_ctx_background(), 0);
}
static void end_alone(void *arg)
{
    (void)arg;
    pirn_blocking_end();
}

/* All can be recovered, and everything goes on. */
static void mistakes(void)
{
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 1);
    pirn_wg wg = {0};
    pirn_chanv_close(c);
    for (int i = 0; i < 20; i++) {
        expect_panic(send_closed, c, "send on closed channel");
        expect_panic(try_send_closed, c, "send on closed channel");
        expect_panic(send_until_closed, c, "send on closed channel");
        expect_panic(select_closed, c, "send on closed channel");
        expect_panic(close_closed, c, "close of closed channel");
        expect_panic(close_nil, NULL, "close of nil channel");
        expect_panic(make_large, NULL, "makechan: size out of range");
        expect_panic(negative, &wg, "sync: negative WaitGroup counter");
        expect_panic(sem_too_many, NULL, "semaphore: released more than can be held");
        expect_panic(ticker, NULL, "non-positive interval for NewTicker");
        expect_panic(background, NULL, "context: the background can't be cancelled");
        if (pirn_id())
            expect_panic(end_alone, NULL, "pirn_blocking_end without pirn_blocking_begin");
        pirn_wg_add(&wg, 1);
        pirn_wg_done(&wg);
        pirn_wg_wait(&wg);
    }
    pirn_chanv_release(c);
}

TEST_RUN_ATTR(mistakes_can_be_recovered, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, mistakes);
    pirn_wg_wait(&wg);
}

static void parked(pirn_chanv *c, void (*fn)(void *), pirn_chanv *done)
{
    int v = 0;
    expect_panic(fn, c, "send on closed channel");
    pirn_chanv_send(done, &v);
}

static void select_parked(void *c)
{
    int v = 1;
    pirn_case cases[12] = {{.kind_ = PIRN_CASE_SEND_, .chan_ = c, .elem_ = &v}};
    pirn_selectv(cases, 12);
}

/* Those that waited when it was closed. */
TEST_RUN_ATTR(closed_while_they_wait, PROCS)
{
    void (*fns[])(void *) = {send_closed, send_until_closed, select_parked};
    pirn_chanv *done = pirn_chanv_make(sizeof(int), 0);
    for (int i = 0; i < 20; i++) {
        pirn_chanv *c = pirn_chanv_make(sizeof(int), 0);
        for (int k = 0; k < 9; k++)
            pirn_go(parked, c, fns[k % 3], done);
        for (int k = 0; k < i; k++)
            pirn_yield();
        pirn_chanv_close(c);
        for (int k = 0; k < 9; k++)
            CHECK(pirn_chanv_recv(done, NULL));
        pirn_chanv_release(c);
    }
    pirn_chanv_release(done);
}

static void release_waited(void *c)
{
    pirn_chanv_release(c);
}

static void receives(pirn_chanv *c)
{
    CHECK(!pirn_chanv_recv(c, NULL));
}

/* Who recovers still has the reference. With one P, so that a hundred yields let the other one wait. */
TEST_RUN_ATTR(release_while_one_waits, .procs = "1")
{
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 0);
    pirn_wg wg = {0};
    pirn_wg_go(&wg, receives, c);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    pirn_panic_info *p = pirn_try(release_waited, c);
    CHECK(p != NULL);
    CHECK(strstr(pirn_panic_message(p), "release of the last reference"));
    pirn_panic_free(p);
    pirn_chanv_close(c);
    pirn_wg_wait(&wg);
    pirn_chanv_release(c);
}

/* --- once -------------------------------------------------------------------------------------------- */

static pirn_once the_once;
static atomic_int calls, panicked;

static void once_boom(void *arg)
{
    atomic_fetch_add(&calls, 1);
    pirn_yield();
    boom(arg);
}

static void do_once(void *arg)
{
    pirn_once_do(&the_once, once_boom, arg);
}

static void contend(void)
{
    pirn_panic_info *p = pirn_try(do_once, "once");
    if (p)
        atomic_fetch_add(&panicked, 1);
    pirn_panic_free(p);
}

/* Number 106: it counts as done. */
TEST_RUN_ATTR(once_that_panics, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&wg, contend);
    pirn_wg_wait(&wg);
    pirn_once_do(&the_once, once_boom, "never");
    CHECK_EQ(atomic_load(&calls), 1);
    CHECK_EQ(atomic_load(&panicked), 1);
}

/* --- outside goroutines ------------------------------------------------------------------------------ */

static void recovers(void *arg)
{
    pirn_defer(note, "last");
    pirn_defer(recover_it);
    boom(arg);
}

static void outside(void)
{
    expect_panic(outer, "two", "two");
    expect("inner between inner outer ");
    CHECK(pirn_try(recovers, "thread") == NULL);
    expect("thread last ");
    CHECK(pirn_try(panic_in_deferred, NULL) == NULL);
    expect("middle third ");
    mistakes();
}

static void *thread(void *arg)
{
    outside();
    return arg;
}

static void recv_outside(void *c)
{
    pirn_chanv_recv(c, NULL);
}

static void go_outside(void *wg)
{
    pirn_wg_go((pirn_wg *)wg, pirn_yield);
}

static int go_nowhere(void)
{
    return 0;
}

static void group_outside(void *g)
{
    pirn_group_go((pirn_group *)g, go_nowhere);
}

static void exit_outside(void *arg)
{
    (void)arg;
    pirn_exit();
}

TEST(threads)
{
    pthread_t t;
    outside();
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    pthread_join(t, NULL);
    CHECK_EQ(pirn_start(NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    pthread_join(t, NULL);
    outside();
    CHECK_EQ(pirn_stop(), 0);
}

/* The objects are as before. */
TEST(no_runtime)
{
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 0);
    pirn_wg wg = {0};
    pirn_group g;
    pirn_group_init(&g, pirn_ctx_background());
    expect_panic(recv_outside, c, "pirn_chan_recv would block, and no runtime runs");
    expect_panic(exit_outside, NULL, "pirn_exit outside a goroutine");
    expect_panic(go_outside, &wg,
                 "pirn_go: no runtime runs (call it below pirn_run, or after pirn_start)");
    expect_panic(group_outside, &g,
                 "pirn_go: no runtime runs (call it below pirn_run, or after pirn_start)");
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(pirn_chanv_try_recv(c, NULL), 0);
    pirn_chanv_release(c);
}

/* --- the stop ---------------------------------------------------------------------------------------- */

static void for_ever(pirn_wg *wg)
{
    pirn_wg_done(wg);
    pirn_chanv_recv(NULL, NULL);
}

static void waits_for_ever(pirn_wg *wg)
{
    pirn_defer(for_ever, wg);
    boom("under way");
}

static int leave_some(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_add(&wg, 20);
    for (int i = 0; i < 20; i++)
        pirn_go(waits_for_ever, &wg);
    pirn_wg_wait(&wg);
    return 0;
}

/* Goroutines that are dropped in the midst of a panic leave nothing behind. */
TEST(dropped)
{
    CHECK_EQ(pirn_run(leave_some, NULL), 0);
    size_t before = test_allocated();
    for (int i = 0; i < 40; i++)
        CHECK_EQ(pirn_run(leave_some, NULL), 0);
    CHECK_LT(test_allocated(), before + SLACK);
}
