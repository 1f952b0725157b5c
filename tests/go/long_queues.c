/* SPDX-License-Identifier: MIT */
/*
 * Queues of waiters are linear: that thousands wait on one object does not make the wake of one of
 * them slower. As many goroutines are woken one by one in many short queues and in one long queue;
 * the CPU time may differ by what caches make of it, but not by the length of the queue. Also in the
 * same order in which they came, and at the end of the runtime, which drops them all.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <pirn.h>

#include "harness.h"

#define SANITIZED (TEST_TSAN || TEST_ASAN)
#define LONG (TEST_TSAN ? 2000 : 20000)
#define SHORT 20
#define SLACK 25 /* a long queue that is walked at each wake would cost 100 times as much */

static pirn_mutex mutex;
static pirn_rwmutex rw;
static pirn_cond cond;
static pirn_sem sem;
static pirn_chan(int) chan, never;
static atomic_int begun;

static pirn_ns cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * PIRN_SEC + t.tv_nsec;
}

/* What the n goroutines do, and what wakes them. */
struct queue {
    void (*wait)(void);
    void (*before)(void); /* may be NULL */
    void (*wake)(int n);
};

static void one(void (*wait)(void))
{
    atomic_fetch_add(&begun, 1);
    wait();
}

/* CPU time from the first wake to the end of the last. */
static pirn_ns wake_queue(const struct queue *q, int n)
{
    pirn_wg wg = {0};
    atomic_store(&begun, 0);
    if (q->before)
        q->before();
    for (int i = 0; i < n; i++)
        pirn_wg_go(&wg, one, q->wait);
    while (atomic_load(&begun) < n)
        pirn_yield();
    for (int i = 0; i < 10; i++)
        pirn_yield();
    pirn_ns start = cpu_now();
    q->wake(n);
    pirn_wg_wait(&wg);
    return cpu_now() - start;
}

static pirn_ns wake_queues(const struct queue *q, int n)
{
    pirn_ns sum = 0;
    for (int left = LONG; left > 0; left -= n)
        sum += wake_queue(q, n);
    return sum;
}

static void check_linear(const struct queue *q)
{
    wake_queues(q, LONG); /* warm: their stacks are there */
    pirn_ns in_one = wake_queues(q, LONG), in_many = wake_queues(q, SHORT);
    for (int i = 0; i < 4 && in_one > in_many; i++) {
        pirn_ns again = wake_queues(q, LONG);
        in_one = again < in_one ? again : in_one;
    }
    if (!SANITIZED)
        CHECK_LT(in_one, SLACK * in_many);
}

/* --- channels ------------------------------------------------------------------------------------------- */

static void make_chans(void)
{
    chan = pirn_chan_make(int, 0);
    never = pirn_chan_make(int, 0);
}

static void receive(void)
{
    pirn_chan_get(chan);
}
static void send(void)
{
    pirn_chan_send(chan, 1);
}
static void receive_either(void)
{
    pirn_select(PIRN_RECV(never, NULL), PIRN_RECV(chan, NULL), PIRN_RECV(never, NULL));
}
static void send_many(int n)
{
    for (int i = 0; i < n; i++)
        pirn_chan_send(chan, i);
}
static void receive_many(int n)
{
    for (int i = 0; i < n; i++)
        pirn_chan_get(chan);
}

TEST_RUN_ATTR(receivers, .procs = "1,4", .timeout = 60, .alone = true)
{
    make_chans();
    check_linear(&(struct queue){.wait = receive, .wake = send_many});
}

TEST_RUN_ATTR(senders, .procs = "1,4", .timeout = 60, .alone = true)
{
    make_chans();
    check_linear(&(struct queue){.wait = send, .wake = receive_many});
}

/* Each of them is also in the queue of a channel on which nothing happens, in the middle of it. */
TEST_RUN_ATTR(selects, .procs = "1,4", .timeout = 60, .alone = true)
{
    make_chans();
    check_linear(&(struct queue){.wait = receive_either, .wake = send_many});
}

/* --- locks ---------------------------------------------------------------------------------------------- */

static void lock_mutex(void)
{
    pirn_mutex_lock(&mutex);
}
static void lock_and_unlock(void)
{
    pirn_mutex_lock(&mutex);
    pirn_mutex_unlock(&mutex);
}
static void unlock_mutex(int n)
{
    (void)n;
    pirn_mutex_unlock(&mutex);
}

TEST_RUN_ATTR(mutexes, .procs = "1,4", .timeout = 60, .alone = true)
{
    check_linear(
        &(struct queue){.wait = lock_and_unlock, .before = lock_mutex, .wake = unlock_mutex});
}

static void write_lock(void)
{
    pirn_rwmutex_lock(&rw);
}
static void write_unlock(int n)
{
    (void)n;
    pirn_rwmutex_unlock(&rw);
}
static void read_or_write(void)
{
    static atomic_int turn;
    if (atomic_fetch_add(&turn, 1) % 3) {
        pirn_rwmutex_lock(&rw);
        pirn_rwmutex_unlock(&rw);
    } else {
        pirn_rwmutex_rlock(&rw);
        pirn_rwmutex_runlock(&rw);
    }
}

TEST_RUN_ATTR(rwmutexes, .procs = "1,4", .timeout = 60, .alone = true)
{
    check_linear(
        &(struct queue){.wait = read_or_write, .before = write_lock, .wake = write_unlock});
}

static int waiting; /* under the mutex */

static void wait_for_signal(void)
{
    pirn_mutex_lock(&mutex);
    waiting++;
    pirn_cond_wait(&cond, &mutex);
    pirn_mutex_unlock(&mutex);
}

static void signal_many(int n)
{
    for (bool all = false; !all; pirn_yield()) {
        pirn_mutex_lock(&mutex);
        all = waiting == n;
        pirn_mutex_unlock(&mutex);
    }
    waiting = 0;
    for (int i = 0; i < n; i++)
        pirn_cond_signal(&cond);
}

TEST_RUN_ATTR(conditions, .procs = "1,4", .timeout = 60, .alone = true)
{
    check_linear(&(struct queue){.wait = wait_for_signal, .wake = signal_many});
}

static void acquire_one(void)
{
    pirn_sem_acquire(&sem, 1);
}
static void release_many(int n)
{
    for (int i = 0; i < n; i++)
        pirn_sem_release(&sem, 1);
}

TEST_RUN_ATTR(semaphores, .procs = "1,4", .timeout = 60, .alone = true)
{
    check_linear(&(struct queue){.wait = acquire_one, .wake = release_many});
}

/* --- dropped -------------------------------------------------------------------------------------------- */

static int fill_queues(void *arg)
{
    void (**waits)(void) = arg;
    int n = 0;
    atomic_store(&begun, 0);
    for (int i = 0; i < LONG; i++) {
        pirn_go(one, waits[i % 4]);
        n++;
    }
    while (atomic_load(&begun) < n)
        pirn_yield();
    for (int i = 0; i < 10; i++)
        pirn_yield();
    return 0;
}

static void wait_for_cond(void)
{
    static pirn_mutex own;
    pirn_mutex_lock(&own);
    pirn_cond_wait(&cond, &own);
}

/* The runtime ends while thousands wait on the same objects. */
TEST_ATTR(dropped_at_the_end, .procs = "1,4", .timeout = 60, .alone = true)
{
    void (*waits[4])(void) = {lock_and_unlock, wait_for_cond, acquire_one, receive_either};
    make_chans();
    lock_mutex(); /* nobody gives it back */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pirn_run(fill_queues, waits), 0);
    CHECK_EQ(pirn_chan_try_send(chan, 1), 0);
    CHECK_EQ(pirn_chan_try_recv(never, NULL), 0);
    pirn_sem_release(&sem, 1);
    CHECK(pirn_sem_try_acquire(&sem, 1));
    pirn_cond_broadcast(&cond);
    pirn_mutex_unlock(&mutex);
    CHECK(pirn_mutex_try_lock(&mutex));
    pirn_chan_release(chan);
    pirn_chan_release(never);
}
