/* SPDX-License-Identifier: MIT */
/* Channels, as Go's tests want them: the section "Channels" of the conformance list. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pirn.h>

#include "harness.h"
#include "idle.h"

#define PROCS .procs = "1,2,4,16"
#define YIELDS 20
#define CAPS 200

static void settle(void)
{
    for (int i = 0; i < YIELDS; i++)
        pirn_yield();
}

/* --- blocking, not blocking, closing: for many capacities ------------------------------------------------ */

static void recv_one(pirn_chan(int) c, atomic_int *got)
{
    int v = -1;
    bool ok = pirn_chan_recv(c, &v);
    atomic_store(got, ok ? v : -2);
}

static void send_one(pirn_chan(int) c, int v, atomic_int *sent)
{
    pirn_chan_send(c, v);
    atomic_store(sent, 1);
}

static void empty_and_full(int cap)
{
    atomic_int got = 0, sent = 0;
    int v = 7;
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, cap);
    CHECK_EQ(pirn_chan_try_recv(c, &v), 0);
    CHECK_EQ(v, 7);
    CHECK_EQ(pirn_chan_len(c), 0);
    CHECK_EQ(pirn_chan_cap(c), cap);
    pirn_wg_go(&wg, recv_one, c, &got);
    settle();
    CHECK_EQ(atomic_load(&got), 0);
    pirn_chan_send(c, 5);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 5);
    for (int i = 0; i < cap; i++)
        CHECK_EQ(pirn_chan_try_send(c, i), 1);
    CHECK_EQ(pirn_chan_len(c), cap);
    CHECK_EQ(pirn_chan_try_send(c, -1), 0);
    pirn_wg_go(&wg, send_one, c, 100, &sent);
    settle();
    CHECK_EQ(atomic_load(&sent), 0);
    for (int i = 0; i < cap; i++)
        CHECK_EQ(pirn_chan_get(c), i);
    CHECK_EQ(pirn_chan_get(c), 100);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_chan_len(c), 0);
    pirn_chan_release(c);
}

TEST_RUN_ATTR(empty_blocks_full_blocks, PROCS)
{
    for (int cap = 0; cap < CAPS; cap++)
        empty_and_full(cap);
}

TEST_RUN_ATTR(close_drains, PROCS)
{
    for (int cap = 0; cap < CAPS; cap++) {
        pirn_chan(int) c = pirn_chan_make(int, cap);
        for (int i = 0; i < cap; i++)
            pirn_chan_send(c, i);
        pirn_chan_close(c);
        int v;
        bool ok;
        for (int i = 0; i < cap; i++) {
            CHECK(pirn_chan_recv(c, &v));
            CHECK_EQ(v, i);
        }
        for (int i = 0; i < 3; i++) {
            v = 9;
            ok = pirn_chan_recv(c, &v);
            CHECK(!ok);
            CHECK_EQ(v, 0);
            v = 9;
            CHECK_EQ(pirn_chan_try_recv(c, &v), -1);
            CHECK_EQ(v, 0);
            CHECK_EQ(pirn_chan_get(c), 0);
        }
        pirn_chan_release(c);
    }
}

TEST_RUN_ATTR(close_wakes, PROCS)
{
    atomic_int got[10];
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    for (int i = 0; i < 10; i++) {
        atomic_init(&got[i], 0);
        pirn_wg_go(&wg, recv_one, c, &got[i]);
    }
    settle();
    pirn_chan_close(c);
    pirn_wg_wait(&wg);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(atomic_load(&got[i]), -2);
    pirn_chan_release(c);
}

/* --- order ------------------------------------------------------------------------------------------------- */

static void count_up(pirn_chan(int) c, int n)
{
    for (int i = 0; i < n; i++)
        pirn_chan_send(c, i);
    pirn_chan_close(c);
}

TEST_RUN_ATTR(fifo_through_every_capacity, PROCS)
{
    for (int cap = 0; cap < CAPS; cap++) {
        int v, n = 0;
        pirn_chan(int) c = pirn_chan_make(int, cap);
        pirn_go(count_up, c, 100);
        while (pirn_chan_recv(c, &v))
            CHECK_EQ(v, n++);
        CHECK_EQ(n, 100);
        pirn_chan_release(c);
    }
}

static void link_of_chain(pirn_chan(int) c, int v, pirn_chan(int) in, pirn_chan(int) out)
{
    pirn_chan_get(in);
    CHECK_EQ(pirn_chan_get(c), v);
    pirn_chan_send(out, 1);
}

/* Receivers that come one after the other, each when the one before has been served. */
TEST_RUN_ATTR(fifo_of_receivers, PROCS)
{
    enum { N = 10 };
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_chan(int) at[N + 1];
    for (int i = 0; i <= N; i++)
        at[i] = pirn_chan_make(int, 1);
    for (int i = 0; i < N; i++)
        pirn_go(link_of_chain, c, i, at[i], at[i + 1]);
    pirn_chan_send(at[0], 1);
    for (int i = 0; i < N; i++)
        pirn_chan_send(c, i);
    pirn_chan_get(at[N]);
    for (int i = 0; i <= N; i++)
        pirn_chan_release(at[i]);
    pirn_chan_release(c);
}

/*
 * Those who wait at the same time are served in the order in which they came, however they wait. The
 * caller is a thread outside: so it knows that each waits before the next one begins.
 */
enum { QUEUE = 20, WAYS = 3 };

static pirn_chan(int) desk, silent;
static atomic_int begun;

static void receives_in_turn(int k, int way)
{
    int v = -1;
    atomic_fetch_add(&begun, 1);
    switch (way) {
    case 0: v = pirn_chan_get(desk); break;
    case 1: CHECK_EQ(pirn_select(PIRN_RECV(silent, NULL), PIRN_RECV(desk, &v)), 1); break;
    case 2: CHECK_EQ(pirn_chan_recv_until(desk, &v, pirn_deadline(3600 * PIRN_SEC)), 0); break;
    }
    CHECK_EQ(v, k);
}

static void sends_in_turn(int k, int way)
{
    atomic_fetch_add(&begun, 1);
    switch (way) {
    case 0: pirn_chan_send(desk, k); break;
    case 1: CHECK_EQ(pirn_select(PIRN_SEND(desk, k), PIRN_RECV(silent, NULL)), 0); break;
    case 2: CHECK_EQ(pirn_chan_send_until(desk, k, pirn_deadline(3600 * PIRN_SEC)), 0); break;
    }
}

/* way WAYS: each in another way than the one before. */
static void queue_up(pirn_wg *wg, void (*waits)(int k, int way), int way)
{
    atomic_store(&begun, 0);
    for (int k = 0; k < QUEUE; k++) {
        pirn_wg_go(wg, waits, k, way < WAYS ? way : k % WAYS);
        while (atomic_load(&begun) <= k)
            sched_yield();
        wait_until_idle();
    }
}

static void serve_receivers(int cap, int way)
{
    pirn_wg wg = {0};
    desk = pirn_chan_make(int, cap);
    queue_up(&wg, receives_in_turn, way);
    for (int k = 0; k < QUEUE; k++)
        CHECK_EQ(pirn_chan_try_send(desk, k), 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_chan_len(desk), 0);
    pirn_chan_release(desk);
}

static void serve_senders(int cap, int way)
{
    pirn_wg wg = {0};
    int v;
    desk = pirn_chan_make(int, cap);
    for (int k = -cap; k < 0; k++)
        CHECK_EQ(pirn_chan_try_send(desk, k), 1);
    queue_up(&wg, sends_in_turn, way);
    for (int k = -cap; k < QUEUE; k++) {
        CHECK_EQ(pirn_chan_try_recv(desk, &v), 1);
        CHECK_EQ(v, k);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_chan_try_recv(desk, &v), 0);
    pirn_chan_release(desk);
}

TEST_ATTR(who_waits_is_served_in_order, PROCS)
{
    CHECK_EQ(pirn_start(NULL), 0);
    silent = pirn_chan_make(int, 0);
    for (int way = 0; way <= WAYS; way++) {
        for (int cap = 0; cap < 4; cap += 3) {
            serve_receivers(cap, way);
            serve_senders(cap, way);
        }
    }
    pirn_chan_release(silent);
    CHECK_EQ(pirn_stop(), 0);
}

static atomic_int times[1000];

static void send_all(pirn_chan(int) c)
{
    for (int i = 0; i < 1000; i++)
        pirn_chan_send(c, i);
}

static void recv_thousand(pirn_chan(int) c)
{
    for (int i = 0; i < 1000; i++)
        atomic_fetch_add(&times[pirn_chan_get(c)], 1);
}

TEST_RUN_ATTR(four_to_four, PROCS)
{
    for (int cap = 0; cap < 20; cap += 7) {
        pirn_wg wg = {0};
        memset((void *)times, 0, sizeof times);
        pirn_chan(int) c = pirn_chan_make(int, cap);
        for (int i = 0; i < 4; i++) {
            pirn_wg_go(&wg, send_all, c);
            pirn_wg_go(&wg, recv_thousand, c);
        }
        pirn_wg_wait(&wg);
        for (int i = 0; i < 1000; i++)
            CHECK_EQ(atomic_load(&times[i]), 4);
        pirn_chan_release(c);
    }
}

static void pass_on(pirn_chan(int) left, pirn_chan(int) right)
{
    pirn_chan_send(left, 1 + pirn_chan_get(right));
    pirn_chan_release(right);
}

TEST_RUN_ATTR(chain_of_goroutines, PROCS)
{
    int n = TEST_TSAN ? 200 : 10000;
    pirn_chan(int) first = pirn_chan_make(int, 0), left = pirn_chan_retain(first), right = NULL;
    for (int i = 0; i < n; i++) {
        right = pirn_chan_make(int, 0);
        pirn_go(pass_on, left, right);
        left = right;
    }
    pirn_chan_send(right, 1);
    CHECK_EQ(pirn_chan_get(first), n + 1);
    pirn_chan_release(first);
    pirn_chan_release(first);
}

/* --- elements of all kinds ------------------------------------------------------------------------------------ */

struct big {
    int id;
    char text[1000];
};
struct empty {
};

static void send_big(pirn_chan(struct big) c, int n)
{
    for (int i = 0; i < n; i++) {
        struct big b = {.id = i};
        memset(b.text, 'a' + i % 26, sizeof b.text);
        pirn_chan_send(c, b);
    }
    pirn_chan_close(c);
}

TEST_RUN_ATTR(large_elements, PROCS)
{
    for (int cap = 0; cap < 4; cap++) {
        struct big b;
        int n = 0;
        pirn_chan(struct big) c = pirn_chan_make(struct big, cap);
        pirn_go(send_big, c, 100);
        while (pirn_chan_recv(c, &b)) {
            CHECK_EQ(b.id, n);
            CHECK_EQ(b.text[999], 'a' + n % 26);
            n++;
        }
        CHECK_EQ(n, 100);
        pirn_chan_release(c);
    }
}

static void send_nothing(pirn_chan(struct empty) c, int n)
{
    struct empty e = {};
    for (int i = 0; i < n; i++)
        pirn_chan_send(c, e);
    pirn_chan_close(c);
}

TEST_RUN_ATTR(zero_size_elements, PROCS)
{
    for (int cap = 0; cap < 3; cap++) {
        int n = 0;
        pirn_chan(struct empty) c = pirn_chan_make(struct empty, cap);
        pirn_go(send_nothing, c, 10);
        while (pirn_chan_recv(c, NULL))
            n++;
        CHECK_EQ(n, 10);
        pirn_chan_release(c);
    }
}

static void answer(pirn_chan(pirn_chan(int)) questions)
{
    pirn_chan(int) c = NULL;
    for (int i = 0; pirn_chan_recv(questions, &c); i++)
        pirn_chan_send(c, i);
}

TEST_RUN_ATTR(channel_of_channels, PROCS)
{
    pirn_wg wg = {0};
    pirn_chan(pirn_chan(int)) questions = pirn_chan_make(pirn_chan(int), 0);
    pirn_wg_go(&wg, answer, questions);
    for (int i = 0; i < 10; i++) {
        pirn_chan(int) c = pirn_chan_make(int, 1);
        pirn_chan_send(questions, c);
        CHECK_EQ(pirn_chan_get(c), i);
        pirn_chan_release(c);
    }
    pirn_chan_close(questions);
    pirn_wg_wait(&wg);
    pirn_chan_release(questions);
}

/* The value is evaluated once, after the channel, and converted as by an assignment. */
static int calls;

static pirn_chan(long) chan_once(pirn_chan(long) c)
{
    CHECK_EQ(calls++, 0);
    return c;
}

static int value_once(void)
{
    CHECK_EQ(calls++, 1);
    return -3;
}

TEST_RUN_ATTR(evaluated_once, PROCS)
{
    pirn_chan(long) c = pirn_chan_make(long, 1);
    pirn_chan_send(chan_once(c), value_once());
    CHECK_EQ(calls, 2);
    CHECK_EQ(pirn_chan_get(c), -3);
    pirn_chan_send(c, 1);
    pirn_chan_send(c, pirn_chan_get(c) + 1); /* nested */
    CHECK_EQ(pirn_chan_get(c), 2);
    pirn_chan_release(c);
}

/* --- programs ---------------------------------------------------------------------------------------------- */

static void numbers(pirn_chan(int) c)
{
    for (int i = 2;; i++)
        pirn_chan_send(c, i);
}

static void filter(pirn_chan(int) in, pirn_chan(int) out, int prime)
{
    for (;;) {
        int i = pirn_chan_get(in);
        if (i % prime)
            pirn_chan_send(out, i);
    }
}

static const int primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
#define PRIMES (sizeof primes / sizeof *primes)
static pirn_chan(int) stages[PRIMES + 1];

static int run_sieve(void *arg)
{
    (void)arg;
    pirn_go(numbers, stages[0]);
    for (unsigned i = 0; i < PRIMES; i++) {
        int prime = pirn_chan_get(stages[i]);
        CHECK_EQ(prime, primes[i]);
        pirn_go(filter, stages[i], stages[i + 1], prime);
    }
    return 0;
}

/* The goroutines still wait when the runtime ends: they are dropped, and so are their operations. */
TEST_ATTR(sieve, PROCS)
{
    for (unsigned i = 0; i <= PRIMES; i++)
        stages[i] = pirn_chan_make(int, 0);
    CHECK_EQ(pirn_run(run_sieve, NULL), 0);
    for (unsigned i = 0; i <= PRIMES; i++)
        pirn_chan_release(stages[i]);
}

/* --- other threads ------------------------------------------------------------------------------------------- */

static pirn_chan(int) shared;

static void *thread_sends(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        pirn_chan_send(shared, 1);
    return NULL;
}

static void *thread_receives(void *arg)
{
    int *sum = arg, v;
    while (pirn_chan_recv(shared, &v))
        *sum += v;
    return NULL;
}

static void goroutine_sends(void)
{
    for (int i = 0; i < 1000; i++)
        pirn_chan_send(shared, 1);
}

TEST_ATTR(foreign_threads, PROCS)
{
    for (int cap = 0; cap < 3; cap += 2) {
        pthread_t senders[3], receivers[3];
        int sums[3] = {0};
        pirn_wg wg = {0};
        CHECK_EQ(pirn_start(NULL), 0);
        shared = pirn_chan_make(int, cap);
        for (int i = 0; i < 3; i++) {
            pthread_create(&senders[i], NULL, thread_sends, NULL);
            pthread_create(&receivers[i], NULL, thread_receives, &sums[i]);
            pirn_wg_go(&wg, goroutine_sends);
        }
        pirn_wg_wait(&wg);
        for (int i = 0; i < 3; i++)
            pthread_join(senders[i], NULL);
        pirn_chan_close(shared);
        for (int i = 0; i < 3; i++)
            pthread_join(receivers[i], NULL);
        CHECK_EQ(sums[0] + sums[1] + sums[2], 6000);
        pirn_chan_release(shared);
        CHECK_EQ(pirn_stop(), 0);
    }
}

/* Without a runtime what does not block works. */
TEST(without_a_runtime)
{
    int v;
    pirn_chan(int) c = pirn_chan_make(int, 2), none = NULL;
    CHECK_EQ(pirn_chan_try_recv(c, &v), 0);
    pirn_chan_send(c, 1);
    CHECK_EQ(pirn_chan_try_send(c, 2), 1);
    CHECK_EQ(pirn_chan_try_send(c, 3), 0);
    CHECK_EQ(pirn_chan_get(c), 1);
    pirn_chan_close(c);
    CHECK(pirn_chan_recv(c, &v) && v == 2);
    CHECK(!pirn_chan_recv(c, &v));
    CHECK_EQ(pirn_chan_len(none), 0);
    CHECK_EQ(pirn_chan_cap(none), 0);
    CHECK_EQ(pirn_chan_try_send(none, 1), 0);
    CHECK_EQ(pirn_chan_try_recv(none, &v), 0);
    pirn_chan_release(c);
    pirn_chan_release(none);
}

/* --- a channel that outlives its waiters ----------------------------------------------------------------------- */

static pirn_chan(int) survivor;

static void wait_on_survivor(pirn_chan(int) ready)
{
    pirn_chan_send(ready, 1);
    pirn_chan_get(survivor);
    FAIL("a goroutine of a runtime that has ended ran on");
}

static void select_on_survivor(pirn_chan(int) ready)
{
    int v;
    pirn_chan_send(ready, 1);
    pirn_select(PIRN_RECV(survivor, &v), PIRN_RECV(survivor, NULL));
    FAIL("a goroutine of a runtime that has ended ran on");
}

static int leave_waiters(void *arg)
{
    (void)arg;
    pirn_chan(int) ready = pirn_chan_make(int, 20);
    for (int i = 0; i < 10; i++) {
        pirn_go(wait_on_survivor, ready);
        pirn_go(select_on_survivor, ready);
    }
    for (int i = 0; i < 20; i++)
        pirn_chan_get(ready);
    pirn_chan_release(ready);
    settle();
    return 0;
}

TEST_ATTR(outlives_the_runtime, PROCS)
{
    survivor = pirn_chan_make(int, 1);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_run(leave_waiters, NULL), 0);
        CHECK_EQ(pirn_chan_try_send(survivor, i), 1); /* into the buffer: nobody waits */
        CHECK_EQ(pirn_chan_len(survivor), 1);
        CHECK_EQ(pirn_chan_get(survivor), i);
    }
    pirn_chan_release(survivor);
}

/* --- references: the partner may free it at once ------------------------------------------------------------------ */

static void send_and_release(pirn_chan(int) c)
{
    pirn_chan_send(c, 1);
    pirn_chan_release(c);
}

TEST_RUN_ATTR(freed_by_the_last, PROCS)
{
    for (int i = 0; i < 2000; i++) {
        pirn_chan(int) c = pirn_chan_make(int, i % 2);
        pirn_go(send_and_release, pirn_chan_retain(c));
        CHECK_EQ(pirn_chan_get(c), 1);
        pirn_chan_release(c);
    }
}

static void send_only(pirn_chan(int) c)
{
    pirn_chan_send(c, 1); /* an operation under way holds its channel */
}

TEST_RUN_ATTR(freed_by_the_receiver, PROCS)
{
    for (int i = 0; i < 2000; i++) {
        pirn_chan(int) c = pirn_chan_make(int, i % 2);
        pirn_go(send_only, c);
        CHECK_EQ(pirn_chan_get(c), 1);
        pirn_chan_release(c);
    }
}
