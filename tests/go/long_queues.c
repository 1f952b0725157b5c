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

#define PROCS .procs = "1,2,4,16"
#define SANITIZED (TEST_TSAN || TEST_ASAN || TEST_MSAN)
#define LONG (TEST_TSAN ? 500 : TEST_ASAN ? 5000 : 20000)
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
    if (SANITIZED)
        return; /* its time says nothing */
    pirn_ns in_one = wake_queues(q, LONG), in_many = wake_queues(q, SHORT);
    for (int i = 0; i < 4 && in_one > in_many; i++) {
        pirn_ns again = wake_queues(q, LONG);
        in_one = again < in_one ? again : in_one;
    }
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

TEST_RUN_ATTR(receivers, PROCS, .timeout = 60, .alone = true)
{
    make_chans();
    check_linear(&(struct queue){.wait = receive, .wake = send_many});
}

TEST_RUN_ATTR(senders, PROCS, .timeout = 60, .alone = true)
{
    make_chans();
    check_linear(&(struct queue){.wait = send, .wake = receive_many});
}

/* Each of them is also in the queue of a channel on which nothing happens, in the middle of it. */
TEST_RUN_ATTR(selects, PROCS, .timeout = 60, .alone = true)
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

TEST_RUN_ATTR(mutexes, PROCS, .timeout = 60, .alone = true)
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

TEST_RUN_ATTR(rwmutexes, PROCS, .timeout = 60, .alone = true)
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

TEST_RUN_ATTR(conditions, PROCS, .timeout = 60, .alone = true)
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

TEST_RUN_ATTR(semaphores, PROCS, .timeout = 60, .alone = true)
{
    check_linear(&(struct queue){.wait = acquire_one, .wake = release_many});
}

/* --- dropped -------------------------------------------------------------------------------------------- */

#define QUEUES (LONG / SHORT)

static struct {
    pirn_mutex mutex;
    pirn_rwmutex rw;
    pirn_cond cond;
    pirn_sem sem;
    pirn_barrier barrier;
    pirn_chan(int) chan;
} objects[QUEUES];

static pirn_ns end_began;

static void wait_on_one(int kind, int i)
{
    pirn_mutex own = {0};
    atomic_fetch_add(&begun, 1);
    switch (kind) {
    case 0: pirn_mutex_lock(&objects[i].mutex); break;
    case 1: pirn_rwmutex_lock(&objects[i].rw); break;
    case 2:
        pirn_mutex_lock(&own);
        pirn_cond_wait(&objects[i].cond, &own);
        break;
    case 3: pirn_sem_acquire(&objects[i].sem, 1); break;
    case 4: pirn_barrier_wait(&objects[i].barrier); break;
    case 5: pirn_chan_get(objects[i].chan); break;
    case 6: pirn_select(PIRN_RECV(objects[i].chan, NULL), PIRN_RECV(never, NULL)); break;
    }
    FAIL("a goroutine of a runtime that has ended ran on");
}
#define KINDS 7

struct crowd {
    int kind, queues;
};

static int gather(void *arg)
{
    const struct crowd *c = arg;
    atomic_store(&begun, 0);
    for (int i = 0; i < LONG; i++)
        pirn_go(wait_on_one, c->kind, i % c->queues);
    while (atomic_load(&begun) < LONG)
        pirn_yield();
    for (int i = 0; i < 10; i++)
        pirn_yield();
    end_began = cpu_now();
    return 0;
}

static pirn_ns drop_crowd(int kind, int queues)
{
    CHECK_EQ(pirn_run(gather, &(struct crowd){kind, queues}), 0);
    return cpu_now() - end_began;
}

static void check_unused(int i)
{
    CHECK(!pirn_mutex_try_lock(&objects[i].mutex)); /* as it was */
    pirn_mutex_unlock(&objects[i].mutex);
    CHECK(pirn_mutex_try_lock(&objects[i].mutex));
    pirn_rwmutex_unlock(&objects[i].rw);
    CHECK(pirn_rwmutex_try_lock(&objects[i].rw));
    pirn_cond_broadcast(&objects[i].cond);
    pirn_sem_release(&objects[i].sem, 1);
    CHECK(pirn_sem_try_acquire(&objects[i].sem, 1));
    CHECK_EQ(pirn_chan_try_send(objects[i].chan, 1), 0);
    pirn_chan_release(objects[i].chan);
}

/* The runtime ends while thousands wait on the same object, or a few on each of many. */
TEST_ATTR(dropped_at_the_end, PROCS, .timeout = 120, .alone = true)
{
    never = pirn_chan_make(int, 0);
    for (int i = 0; i < QUEUES; i++) {
        pirn_mutex_lock(&objects[i].mutex); /* nobody gives it back */
        pirn_rwmutex_lock(&objects[i].rw);
        pirn_barrier_init(&objects[i].barrier, LONG + 1);
        objects[i].chan = pirn_chan_make(int, 0);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        pirn_ns in_one = drop_crowd(kind, 1), in_many = drop_crowd(kind, QUEUES);
        for (int i = 0; i < 2 && in_one > 3 * in_many; i++) {
            pirn_ns again = drop_crowd(kind, 1);
            in_one = again < in_one ? again : in_one;
        }
        if (!SANITIZED)
            CHECK_LT(in_one, SLACK / 2 * in_many);
    }
    for (int i = 0; i < QUEUES; i++)
        check_unused(i);
    CHECK_EQ(pirn_chan_try_send(never, 1), 0);
    pirn_chan_release(never);
}
