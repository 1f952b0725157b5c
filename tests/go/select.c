/* SPDX-License-Identifier: MIT */
/* Select, as Go's tests want it: the section "Select" of the conformance list. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"
#include "idle.h"

#define PROCS .procs = "1,2,4,16"

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        pirn_yield();
}

/* --- what is ready ----------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(default_and_null, PROCS)
{
    int v = 5;
    bool ok = true;
    pirn_chan(int) none = NULL, c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_select(PIRN_RECV(none, &v), PIRN_SEND(none, 1), PIRN_DEFAULT), 2);
    CHECK_EQ(pirn_select(PIRN_DEFAULT, PIRN_RECV(c, &v)), 0);
    CHECK_EQ(pirn_select(PIRN_SEND(c, 8), PIRN_DEFAULT), 0); /* ready beats the default */
    CHECK_EQ(pirn_select(PIRN_SEND(c, 9), PIRN_DEFAULT), 1);
    CHECK_EQ(pirn_select(PIRN_RECV(none, &v), PIRN_RECV_OK(c, &v, &ok)), 1);
    CHECK_EQ(v, 8);
    CHECK(ok);
    pirn_chan_close(c);
    CHECK_EQ(pirn_select(PIRN_RECV_OK(c, &v, &ok), PIRN_DEFAULT), 0);
    CHECK(!ok && v == 0);
    CHECK_EQ(pirn_select([3] = PIRN_RECV(c, NULL)), 3); /* zeroed cases are never ready */
    pirn_case cases[2] = {PIRN_DEFAULT};
    CHECK_EQ(pirn_selectv(cases, 2), 0);
    pirn_chan_release(c);
}

/* Only the target of the case that is chosen is written. */
TEST_RUN_ATTR(only_the_chosen, PROCS)
{
    int a = 1, b = 2;
    bool ok_a = false, ok_b = false;
    pirn_chan(int) ca = pirn_chan_make(int, 1), cb = pirn_chan_make(int, 1);
    pirn_chan_send(cb, 20);
    CHECK_EQ(pirn_select(PIRN_RECV_OK(ca, &a, &ok_a), PIRN_RECV_OK(cb, &b, &ok_b)), 1);
    CHECK(a == 1 && b == 20 && !ok_a && ok_b);
    pirn_chan_release(ca);
    pirn_chan_release(cb);
}

static void selects_itself(pirn_chan(int) c, atomic_int *chosen)
{
    int v = 0;
    int i = pirn_select(PIRN_SEND(c, 1), PIRN_RECV(c, &v));
    atomic_store(chosen, 10 + i);
}

/* It does not match itself. */
TEST_RUN_ATTR(not_with_itself, PROCS)
{
    atomic_int chosen = 0;
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_wg_go(&wg, selects_itself, c, &chosen);
    settle();
    CHECK_EQ(atomic_load(&chosen), 0);
    CHECK_EQ(pirn_chan_get(c), 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&chosen), 10);
    pirn_chan_release(c);
}

/* --- waiting ------------------------------------------------------------------------------------------------ */

static void wait_for_either(pirn_chan(int) a, pirn_chan(long) b, atomic_long *got)
{
    int x = 0;
    long y = 0;
    switch (pirn_select(PIRN_RECV(a, &x), PIRN_RECV(b, &y))) {
    case 0: atomic_store(got, x); break;
    case 1: atomic_store(got, y); break;
    }
}

TEST_RUN_ATTR(wakes_by_either, PROCS)
{
    pirn_chan(int) a = pirn_chan_make(int, 0);
    pirn_chan(long) b = pirn_chan_make(long, 0);
    for (int i = 1; i < 100; i++) {
        atomic_long got = 0;
        pirn_wg wg = {0};
        pirn_wg_go(&wg, wait_for_either, a, b, &got);
        if (i % 3 == 0)
            settle();
        if (i % 2)
            pirn_chan_send(a, i);
        else
            pirn_chan_send(b, i);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&got), i);
    }
    pirn_chan_release(a);
    pirn_chan_release(b);
}

static void wait_for_close(pirn_chan(int) a, pirn_chan(int) b, atomic_int *count)
{
    bool ok = true;
    int v = 7;
    pirn_select(PIRN_RECV_OK(a, &v, &ok), PIRN_RECV_OK(b, &v, &ok));
    CHECK(!ok && v == 0);
    atomic_fetch_add(count, 1);
}

TEST_RUN_ATTR(close_wakes_selects, PROCS)
{
    for (int i = 0; i < 20; i++) {
        atomic_int count = 0;
        pirn_wg wg = {0};
        pirn_chan(int) a = pirn_chan_make(int, 0), b = pirn_chan_make(int, 0);
        for (int k = 0; k < 10; k++)
            pirn_wg_go(&wg, wait_for_close, a, b, &count);
        if (i % 2)
            settle();
        pirn_chan_close(a);
        pirn_chan_close(b);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&count), 10);
        pirn_chan_release(a);
        pirn_chan_release(b);
    }
}

/* --- fairness -------------------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(fair, PROCS)
{
    enum { TRIALS = 10000 };
    int n[2] = {0};
    pirn_chan(int) a = pirn_chan_make(int, 1), b = pirn_chan_make(int, 1);
    pirn_chan(int) c = pirn_chan_make(int, 0), d = pirn_chan_make(int, 0);
    pirn_chan_close(a);
    pirn_chan_close(b);
    for (int i = 0; i < TRIALS; i++) {
        int v,
            k = pirn_select(PIRN_RECV(a, &v), PIRN_RECV(c, &v), PIRN_RECV(d, &v), PIRN_RECV(b, &v));
        CHECK(k == 0 || k == 3);
        n[k == 3]++;
    }
    /* 10 sigma of a fair coin: sqrt(TRIALS) / 2 = 50 */
    CHECK_LT(abs(n[0] - TRIALS / 2), 500);
    int zeros = 0;
    pirn_chan(int) bits = pirn_chan_make(int, TRIALS);
    for (int i = 0; i < TRIALS; i++)
        zeros += pirn_select(PIRN_SEND(bits, 0), PIRN_SEND(bits, 1)) == 0;
    CHECK(zeros > TRIALS / 10 && zeros < TRIALS * 9 / 10);
    pirn_chan_release(a);
    pirn_chan_release(b);
    pirn_chan_release(c);
    pirn_chan_release(d);
    pirn_chan_release(bits);
}

/* --- many cases, many goroutines ----------------------------------------------------------------------------------- */

enum { N = 1000 };

TEST_RUN_ATTR(many_cases, PROCS)
{
    pirn_case *cases = calloc(N, sizeof *cases);
    pirn_chan(int) *chans = calloc(N, sizeof *chans);
    int v;
    for (int i = 0; i < N; i++)
        chans[i] = pirn_chan_make(int, 1);
    for (int i = 0; i < N; i++) {
        int which = (i * 37) % N;
        pirn_chan_send(chans[which], i);
        for (int k = 0; k < N; k++)
            cases[k] = (pirn_case)PIRN_RECV(chans[k], &v);
        CHECK_EQ(pirn_selectv(cases, N), which);
        CHECK_EQ(v, i);
    }
    for (int i = 0; i < N; i++)
        pirn_chan_release(chans[i]);
    free(chans);
    free(cases);
}

/* As many that wait: for each way to end it, on a case anywhere among them. */
enum ending { BY_SEND, BY_RECEIVE, BY_CLOSE, BY_TIME, ENDINGS };

static struct {
    pirn_chan(int) chans[N];
    int v[N];
    bool ok[N];
    enum ending by;
    int which;
    atomic_bool begun;
} wide;

static void select_wide(void)
{
    static pirn_case cases[N];
    pirn_ns until = pirn_now() + 2 * PIRN_MS;
    pirn_case send = PIRN_SEND(wide.chans[wide.which], 5), time = PIRN_UNTIL(until);
    for (int i = 0; i < N; i++)
        cases[i] = (pirn_case)PIRN_RECV_OK(wide.chans[i], &wide.v[i], &wide.ok[i]);
    if (wide.by == BY_RECEIVE)
        cases[wide.which] = send;
    else if (wide.by == BY_TIME)
        cases[wide.which] = time;
    atomic_store(&wide.begun, true);
    CHECK_EQ(pirn_selectv(cases, N), wide.which);
    CHECK(wide.by != BY_TIME || pirn_now() >= until);
}

static void end_wide(pirn_chan(int) c)
{
    int v = 0;
    switch (wide.by) {
    case BY_SEND: CHECK_EQ(pirn_chan_try_send(c, 7), 1); break;
    case BY_RECEIVE:
        CHECK_EQ(pirn_chan_try_recv(c, &v), 1);
        CHECK_EQ(v, 5);
        break;
    case BY_CLOSE: pirn_chan_close(c); break;
    default: break;
    }
}

/* The others were not touched, and nobody waits on them any more. */
static void check_wide(void)
{
    for (int i = 0; i < N; i++) {
        bool chosen = i == wide.which, taken = chosen && wide.by == BY_SEND;
        bool closed = chosen && wide.by == BY_CLOSE;
        CHECK_EQ(wide.v[i], taken ? 7 : closed ? 0 : -1);
        CHECK_EQ(wide.ok[i], !closed);
        if (!closed) {
            CHECK_EQ(pirn_chan_try_send(wide.chans[i], 1), 0);
            CHECK_EQ(pirn_chan_try_recv(wide.chans[i], NULL), 0);
        }
    }
}

TEST_ATTR(many_cases_wait, PROCS)
{
    unsigned seed = 1;
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < N; i++)
        wide.chans[i] = pirn_chan_make(int, 0);
    for (int round = 0; round < 10 * ENDINGS; round++) {
        pirn_wg wg = {0};
        seed = seed * 1103515245u + 12345u;
        wide.by = (enum ending)(round % ENDINGS);
        wide.which = (int)((seed >> 8) % N);
        for (int i = 0; i < N; i++) {
            wide.v[i] = -1;
            wide.ok[i] = true;
        }
        atomic_store(&wide.begun, false);
        pirn_wg_go(&wg, select_wide);
        while (!atomic_load(&wide.begun))
            sched_yield();
        wait_until_idle(); /* now it waits */
        end_wide(wide.chans[wide.which]);
        pirn_wg_wait(&wg);
        check_wide();
        if (wide.by == BY_CLOSE) {
            pirn_chan_release(wide.chans[wide.which]);
            wide.chans[wide.which] = pirn_chan_make(int, 0);
        }
    }
    for (int i = 0; i < N; i++)
        pirn_chan_release(wide.chans[i]);
    CHECK_EQ(pirn_stop(), 0);
}

#define CHANS 4
#define TIMES (TEST_TSAN ? 500 : TEST_ASAN ? 5000 : 100000)
static pirn_chan(int) stress[CHANS];

static void sends_to(int which)
{
    for (int i = 0; i < TIMES; i++)
        pirn_chan_send(stress[which], 0);
}

static void receives_from(int which)
{
    for (int i = 0; i < TIMES; i++)
        pirn_chan_get(stress[which]);
}

static void select_sends(void)
{
    pirn_chan(int) c[CHANS];
    int n[CHANS] = {0};
    for (int i = 0; i < CHANS; i++)
        c[i] = stress[i];
    for (int i = 0; i < CHANS * TIMES; i++) {
        int k = pirn_select(PIRN_SEND(c[3], 0), PIRN_SEND(c[2], 0), PIRN_SEND(c[0], 0),
                            PIRN_SEND(c[1], 0));
        k = (int[]){3, 2, 0, 1}[k];
        if (++n[k] == TIMES)
            c[k] = NULL;
    }
}

static void select_receives(void)
{
    pirn_chan(int) c[CHANS];
    int n[CHANS] = {0}, v;
    for (int i = 0; i < CHANS; i++)
        c[i] = stress[i];
    for (int i = 0; i < CHANS * TIMES; i++) {
        int k = pirn_select(PIRN_RECV(c[0], &v), PIRN_RECV(c[1], &v), PIRN_RECV(c[2], &v),
                            PIRN_RECV(c[3], &v));
        if (++n[k] == TIMES)
            c[k] = NULL;
    }
}

TEST_RUN_ATTR(four_channels, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    for (int i = 0; i < CHANS; i++)
        stress[i] = pirn_chan_make(int, i < 2 ? 0 : i);
    for (int i = 0; i < CHANS; i++) {
        pirn_wg_go(&wg, sends_to, i);
        pirn_wg_go(&wg, receives_from, i);
    }
    pirn_wg_go(&wg, select_sends);
    pirn_wg_go(&wg, select_receives);
    pirn_wg_wait(&wg);
    for (int i = 0; i < CHANS; i++) {
        CHECK_EQ(pirn_chan_len(stress[i]), 0);
        pirn_chan_release(stress[i]);
    }
}

/* Two selects on the same two channels, in opposite roles and orders. */
static void ping(pirn_chan(int) a, pirn_chan(int) b, int n)
{
    int v;
    for (int i = 0; i < n; i++)
        pirn_select(PIRN_SEND(a, i), PIRN_RECV(b, &v));
}

static void pong(pirn_chan(int) a, pirn_chan(int) b, int n)
{
    int v;
    for (int i = 0; i < n; i++)
        pirn_select(PIRN_SEND(b, i), PIRN_RECV(a, &v));
}

TEST_RUN_ATTR(select_against_select, PROCS)
{
    pirn_wg wg = {0};
    pirn_chan(int) a = pirn_chan_make(int, 0), b = pirn_chan_make(int, 0);
    pirn_wg_go(&wg, ping, a, b, TIMES);
    pirn_wg_go(&wg, pong, a, b, TIMES);
    pirn_wg_wait(&wg);
    pirn_chan_release(a);
    pirn_chan_release(b);
}

/* The winner's partner may free the channels of the losers while their operations are still queued. */
static void sends_and_frees(pirn_chan(int) a, pirn_chan(int) b)
{
    pirn_chan_send(a, 1);
    pirn_chan_release(a);
    pirn_chan_release(b);
}

TEST_RUN_ATTR(losers_are_freed, PROCS)
{
    for (int i = 0; i < 2000; i++) {
        int v = 0;
        pirn_chan(int) a = pirn_chan_make(int, 0), b = pirn_chan_make(int, 0);
        pirn_go(sends_and_frees, a, b);
        CHECK_EQ(pirn_select(PIRN_RECV(b, &v), PIRN_RECV(a, &v)), 1);
        CHECK_EQ(v, 1);
    }
}

/* --- the macros -------------------------------------------------------------------------------------------- */

static int calls;

static pirn_chan(int) count_call(pirn_chan(int) c)
{
    calls++;
    return c;
}

/* Each argument is mentioned several times, and evaluated once. */
TEST_RUN_ATTR(arguments_are_evaluated_once, PROCS)
{
    int v[4] = {0}, *p = v, n = 0;
    pirn_chan(int) c = pirn_chan_make(int, 8);
    pirn_chan_send(count_call(c), ++n);
    CHECK_EQ(pirn_chan_try_send(count_call(c), ++n), 1);
    CHECK_EQ(pirn_select(PIRN_SEND(count_call(c), ++n)), 0);
    CHECK_EQ(pirn_select(PIRN_RECV(count_call(c), p++)), 0);
    CHECK(pirn_chan_recv(count_call(c), p++));
    CHECK_EQ(pirn_chan_get(count_call(c)), 3);
    CHECK_EQ(pirn_chan_try_recv(count_call(c), p++), 0);
    CHECK_EQ(pirn_chan_len(count_call(c)) + pirn_chan_cap(count_call(c)), 8);
    CHECK_EQ(calls, 9);
    CHECK_EQ(n, 3);
    CHECK_EQ(p - v, 3);
    CHECK_EQ(v[0] * 10 + v[1], 12);
    pirn_chan_release(c);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

#define MANY (TEST_TSAN ? 5000 : 100000)
#define FLAT (64 * 1024) /* for threads and the like; a record for each would be more than 1 MB */

static void select_to(pirn_chan(int) c, pirn_chan(int) never, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(pirn_select(PIRN_RECV(never, NULL), PIRN_SEND(c, i)), 1);
}

static void select_from(pirn_chan(int) c, pirn_chan(int) never, int n)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, select_to, c, never, n);
    for (int i = 0; i < n; i++) {
        int v;
        CHECK_EQ(pirn_select(PIRN_RECV(c, &v), PIRN_RECV(never, &v)), 0);
        CHECK_EQ(v, i);
    }
    pirn_wg_wait(&wg);
}

/* Selects that wait leave nothing behind. */
TEST_RUN_ATTR(no_memory_for_selects, PROCS, .timeout = 60)
{
    pirn_chan(int) c = pirn_chan_make(int, 0), never = pirn_chan_make(int, 0);
    select_from(c, never, MANY / 10);
    size_t before = test_allocated();
    select_from(c, never, MANY);
    CHECK_LE(test_allocated(), before + FLAT);
    pirn_chan_release(c);
    pirn_chan_release(never);
}

static struct {
    pirn_mutex m;
    pirn_cond c;
    bool set;
} gate;

static void open_gate_and_send(pirn_chan(int) c, int n)
{
    for (int i = 0; i < n; i++) {
        pirn_mutex_lock(&gate.m);
        gate.set = true;
        pirn_cond_signal(&gate.c);
        pirn_mutex_unlock(&gate.m);
        pirn_chan_send(c, i);
    }
}

static void wait_and_select(pirn_chan(int) c, pirn_chan(int) never, int n)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, open_gate_and_send, c, n);
    for (int i = 0; i < n; i++) {
        pirn_mutex_lock(&gate.m);
        while (!gate.set)
            pirn_cond_wait(&gate.c, &gate.m);
        gate.set = false;
        pirn_mutex_unlock(&gate.m);
        int v = -1;
        CHECK_EQ(pirn_select(PIRN_RECV(never, NULL), PIRN_RECV(c, &v)), 1);
        CHECK_EQ(v, i);
    }
    pirn_wg_wait(&wg);
}

/* Nor if each waits for a condition in between. */
TEST_RUN_ATTR(no_memory_for_selects_and_conditions, PROCS, .timeout = 60)
{
    pirn_chan(int) c = pirn_chan_make(int, 0), never = pirn_chan_make(int, 0);
    wait_and_select(c, never, MANY / 10);
    size_t before = test_allocated();
    wait_and_select(c, never, MANY / 2);
    CHECK_LE(test_allocated(), before + FLAT);
    pirn_chan_release(c);
    pirn_chan_release(never);
}
