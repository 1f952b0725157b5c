/* SPDX-License-Identifier: MIT */
/* Locks and the like, as Go's tests want them: the section "sync" of the conformance list. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"
#include "idle.h"

#define PROCS .procs = "1,2,4,16"
#define TIMES (TEST_TSAN ? 200 : 1000)

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        pirn_yield();
}

/* --- mutex ------------------------------------------------------------------------------------------------- */

static pirn_mutex mutex;
static long counter;

static void hammer(bool yields)
{
    for (int i = 0; i < TIMES; i++) {
        if (i % 3 == 0) {
            if (!pirn_mutex_try_lock(&mutex))
                pirn_mutex_lock(&mutex);
        } else {
            pirn_mutex_lock(&mutex);
        }
        long c = counter;
        if (yields)
            pirn_yield();
        counter = c + 1;
        pirn_mutex_unlock(&mutex);
    }
}

static void count_under_mutex(bool yields)
{
    pirn_wg wg = {0};
    counter = 0;
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, hammer, yields);
    pirn_wg_wait(&wg);
    CHECK_EQ(counter, 10 * TIMES);
    CHECK(pirn_mutex_try_lock(&mutex));
    CHECK(!pirn_mutex_try_lock(&mutex));
    pirn_mutex_unlock(&mutex);
}

TEST_RUN_ATTR(mutex_counts, PROCS)
{
    count_under_mutex(false);
    count_under_mutex(true);
}

static void *hammer_thread(void *arg)
{
    (void)arg;
    hammer(false);
    return NULL;
}

TEST_ATTR(mutex_with_threads, PROCS)
{
    pthread_t t[4];
    pirn_wg wg = {0};
    counter = 0;
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 4; i++) {
        pthread_create(&t[i], NULL, hammer_thread, NULL);
        pirn_wg_go(&wg, hammer, i % 2 == 1);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    pirn_wg_wait(&wg);
    CHECK_EQ(counter, 8 * TIMES);
    CHECK_EQ(pirn_stop(), 0);
}

static atomic_bool stop;

/* Holds it almost all the time: asleep, as in Go's test, or computing. */
static void hog(bool computes)
{
    while (!atomic_load(&stop)) {
        pirn_mutex_lock(&mutex);
        if (!computes)
            CHECK_EQ(pirn_sleep(100 * PIRN_US), 0);
        for (pirn_ns until = pirn_now() + 100 * PIRN_US; computes && pirn_now() < until;) {
        }
        pirn_mutex_unlock(&mutex);
    }
}

static void lock_now_and_then(bool computes, pirn_chan(int) done)
{
    for (int i = 0; i < 10; i++) {
        if (computes)
            pirn_yield();
        else
            CHECK_EQ(pirn_sleep(100 * PIRN_US), 0);
        pirn_mutex_lock(&mutex);
        pirn_mutex_unlock(&mutex);
    }
    pirn_chan_send(done, 1);
}

/* Go's bound: far more than the millisecond that each may take. */
static void must_get_it(bool computes)
{
    pirn_wg wg = {0};
    pirn_chan(int) done = pirn_chan_make(int, 1);
    pirn_wg_go(&wg, hog, computes);
    pirn_wg_go(&wg, lock_now_and_then, computes, done);
    CHECK_EQ(pirn_chan_recv_until(done, NULL, pirn_deadline(10 * PIRN_SEC)), 0);
    atomic_store(&stop, true);
    pirn_wg_wait(&wg);
    pirn_chan_release(done);
}

TEST_RUN_ATTR(mutex_is_fair, PROCS)
{
    must_get_it(false);
}

/* Not with one P: whoever computes there keeps it. */
TEST_RUN_ATTR(mutex_is_fair_beside_one_that_computes, .procs = "2,4,16")
{
    must_get_it(true);
}

/* Freed by the next owner, while the unlock before may still be under way. */
struct shared {
    pirn_mutex m;
    int refs;
};

static void drop(struct shared *s)
{
    pirn_mutex_lock(&s->m);
    int left = --s->refs;
    pirn_mutex_unlock(&s->m);
    if (left == 0)
        free(s);
}

TEST_RUN_ATTR(mutex_in_freed_memory, PROCS)
{
    for (int i = 0; i < TIMES; i++) {
        pirn_wg wg = {0};
        struct shared *s = calloc(1, sizeof *s);
        s->refs = 4;
        for (int k = 0; k < 4; k++)
            pirn_wg_go(&wg, drop, s);
        pirn_wg_wait(&wg);
    }
}

/* --- rwmutex ----------------------------------------------------------------------------------------------- */

static pirn_rwmutex rw;
static atomic_int inside; /* readers + 10000 * writers */

static void reader(void)
{
    for (int i = 0; i < TIMES; i++) {
        pirn_rwmutex_rlock(&rw);
        CHECK_LT(atomic_fetch_add(&inside, 1), 10000);
        if (i % 7 == 0)
            pirn_yield();
        atomic_fetch_sub(&inside, 1);
        pirn_rwmutex_runlock(&rw);
    }
}

static void writer(void)
{
    for (int i = 0; i < TIMES; i++) {
        pirn_rwmutex_lock(&rw);
        CHECK_EQ(atomic_fetch_add(&inside, 10000), 0);
        if (i % 7 == 0)
            pirn_yield();
        atomic_fetch_sub(&inside, 10000);
        pirn_rwmutex_unlock(&rw);
    }
}

TEST_RUN_ATTR(rwmutex_excludes, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 5; i++) {
        pirn_wg_go(&wg, reader);
        pirn_wg_go(&wg, i % 2 ? writer : reader);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&inside), 0);
    CHECK(pirn_rwmutex_try_rlock(&rw));
    CHECK(pirn_rwmutex_try_rlock(&rw));
    CHECK(!pirn_rwmutex_try_lock(&rw));
    pirn_rwmutex_runlock(&rw);
    pirn_rwmutex_runlock(&rw);
    CHECK(pirn_rwmutex_try_lock(&rw));
    CHECK(!pirn_rwmutex_try_rlock(&rw));
    pirn_rwmutex_unlock(&rw);
}

static void reads_with(pirn_barrier *b)
{
    pirn_rwmutex_rlock(&rw);
    pirn_barrier_wait(b);
    pirn_rwmutex_runlock(&rw);
}

TEST_RUN_ATTR(readers_are_parallel, PROCS)
{
    pirn_wg wg = {0};
    pirn_barrier b;
    pirn_barrier_init(&b, 10);
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, reads_with, &b);
    pirn_wg_wait(&wg);
}

static void reads_all_the_time(void)
{
    while (!atomic_load(&stop)) {
        pirn_rwmutex_rlock(&rw);
        pirn_yield();
        pirn_rwmutex_runlock(&rw);
    }
}

/* There is always a reader inside, and the writers get in all the same. */
TEST_RUN_ATTR(writers_get_in, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, reads_all_the_time);
    for (int i = 0; i < 100; i++) {
        pirn_yield();
        pirn_rwmutex_lock(&rw);
        pirn_yield();
        pirn_rwmutex_unlock(&rw);
    }
    atomic_store(&stop, true);
    pirn_wg_wait(&wg);
}

static void writes_once(atomic_int *wrote)
{
    pirn_rwmutex_lock(&rw);
    atomic_store(wrote, 1);
    pirn_rwmutex_unlock(&rw);
}

static void reads_after(atomic_int *wrote)
{
    pirn_rwmutex_rlock(&rw);
    CHECK_EQ(atomic_load(wrote), 1);
    pirn_rwmutex_runlock(&rw);
}

/* A reader that comes while a writer waits waits behind it. */
TEST_RUN_ATTR(readers_queue_behind_a_writer, PROCS)
{
    pirn_wg wg = {0};
    atomic_int wrote = 0;
    pirn_rwmutex_rlock(&rw);
    pirn_wg_go(&wg, writes_once, &wrote);
    while (pirn_rwmutex_try_rlock(&rw)) {
        pirn_rwmutex_runlock(&rw);
        pirn_yield();
    }
    for (int i = 0; i < 5; i++)
        pirn_wg_go(&wg, reads_after, &wrote);
    settle();
    CHECK_EQ(atomic_load(&wrote), 0);
    CHECK(!pirn_rwmutex_try_lock(&rw));
    pirn_rwmutex_runlock(&rw);
    pirn_wg_wait(&wg);
}

/* --- cond -------------------------------------------------------------------------------------------------- */

static pirn_cond cond;
static int waiting, awake, order[10];

static void cond_waiter(int i)
{
    pirn_mutex_lock(&mutex);
    waiting++;
    pirn_cond_wait(&cond, &mutex);
    order[awake++] = i;
    pirn_mutex_unlock(&mutex);
}

static int locked_read(const int *p)
{
    pirn_mutex_lock(&mutex);
    int v = *p;
    pirn_mutex_unlock(&mutex);
    return v;
}

static void start_waiters(pirn_wg *wg, int n)
{
    waiting = awake = 0;
    for (int i = 0; i < n; i++) {
        pirn_wg_go(wg, cond_waiter, i);
        while (locked_read(&waiting) <= i)
            pirn_yield();
    }
}

TEST_RUN_ATTR(cond_signals_one, PROCS)
{
    pirn_wg wg = {0};
    pirn_cond_signal(&cond); /* nobody is there */
    start_waiters(&wg, 10);
    for (int i = 0; i < 10; i++) {
        settle();
        CHECK_EQ(locked_read(&awake), i);
        pirn_cond_signal(&cond);
        while (locked_read(&awake) <= i)
            pirn_yield();
        CHECK_EQ(order[i], i); /* in the order in which they came */
    }
    pirn_wg_wait(&wg);
}

TEST_RUN_ATTR(cond_broadcasts, PROCS)
{
    for (int round = 0; round < 20; round++) {
        pirn_wg wg = {0};
        start_waiters(&wg, 10);
        pirn_mutex_lock(&mutex);
        pirn_cond_broadcast(&cond);
        CHECK_EQ(awake, 0);
        pirn_mutex_unlock(&mutex);
        pirn_wg_wait(&wg);
        CHECK_EQ(awake, 10);
    }
}

static bool first_waits, first_awake;

static void waits_first(void)
{
    pirn_mutex_lock(&mutex);
    first_waits = true;
    pirn_cond_wait(&cond, &mutex);
    first_awake = true;
    pirn_mutex_unlock(&mutex);
}

static void waits_second(atomic_int *awake_too)
{
    pirn_mutex_lock(&mutex);
    pirn_cond_wait(&cond, &mutex);
    atomic_store(awake_too, 1);
    pirn_mutex_unlock(&mutex);
}

static bool locked_bool(const bool *p)
{
    pirn_mutex_lock(&mutex);
    bool v = *p;
    pirn_mutex_unlock(&mutex);
    return v;
}

/* A signal is for who waits then; one that comes later does not get it. */
TEST_RUN_ATTR(cond_signal_is_not_stolen, PROCS)
{
    for (int i = 0; i < TIMES; i++) {
        pirn_wg wg = {0};
        atomic_int second = 0;
        first_waits = first_awake = false;
        pirn_wg_go(&wg, waits_first);
        while (!locked_bool(&first_waits))
            pirn_yield();
        pirn_cond_signal(&cond);
        pirn_wg_go(&wg, waits_second, &second);
        while (!locked_bool(&first_awake))
            pirn_yield();
        CHECK_EQ(atomic_load(&second), 0);
        while (!atomic_load(&second)) {
            pirn_cond_broadcast(&cond);
            pirn_yield();
        }
        pirn_wg_wait(&wg);
    }
}

/* --- semaphore, barrier ---------------------------------------------------------------------------------------- */

static pirn_sem sem = PIRN_SEM_INIT(5);
static atomic_int held;

static void acquires(int n)
{
    for (int i = 0; i < TIMES; i++) {
        pirn_sem_acquire(&sem, n);
        CHECK_LE(atomic_fetch_add(&held, n) + n, 5);
        if (i % 5 == 0)
            pirn_yield();
        atomic_fetch_sub(&held, n);
        pirn_sem_release(&sem, n);
    }
}

TEST_RUN_ATTR(semaphore_holds, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, acquires, 1 + i % 5);
    pirn_wg_wait(&wg);
    CHECK(pirn_sem_try_acquire(&sem, 5));
    CHECK(!pirn_sem_try_acquire(&sem, 1));
    CHECK(pirn_sem_try_acquire(&sem, 0));
    pirn_sem_release(&sem, 5);
}

static atomic_int large_has_it;

static void acquires_large(void)
{
    pirn_sem_acquire(&sem, 5);
    atomic_store(&large_has_it, 1);
    pirn_sem_release(&sem, 5);
}

/* A small request does not overtake a large one. */
TEST_RUN_ATTR(semaphore_is_fifo, PROCS)
{
    pirn_wg wg = {0};
    pirn_sem_acquire(&sem, 1);
    pirn_wg_go(&wg, acquires_large);
    while (pirn_sem_try_acquire(&sem, 1)) {
        pirn_sem_release(&sem, 1);
        pirn_yield();
    }
    CHECK_EQ(atomic_load(&large_has_it), 0);
    pirn_sem_release(&sem, 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&large_has_it), 1);
}

static pirn_sem queue_sem;
static int served[20];
static atomic_int nqueued, nserved;

static void acquires_in_turn(int i, int n)
{
    atomic_fetch_add(&nqueued, 1);
    pirn_sem_acquire(&queue_sem, n);
    served[atomic_load(&nserved)] = i; /* one at a time */
    atomic_fetch_add(&nserved, 1);
}

/* While somebody waits nobody else gets anything, not even nothing. */
static void wait_for_queue(void)
{
    while (pirn_sem_try_acquire(&queue_sem, 0))
        pirn_yield();
}

/* What is released goes to who waits, from hand to hand: no other can take it. */
TEST_RUN_ATTR(semaphore_hands_over, PROCS)
{
    for (int i = 0; i < TIMES / 10; i++) {
        pirn_wg wg = {0};
        int n = 1 + i % 3;
        atomic_store(&nserved, 0);
        pirn_wg_go(&wg, acquires_in_turn, i, n);
        wait_for_queue();
        pirn_sem_release(&queue_sem, n);
        CHECK(!pirn_sem_try_acquire(&queue_sem, 1));
        pirn_wg_wait(&wg);
        CHECK_EQ(served[0], i);
        CHECK(pirn_sem_try_acquire(&queue_sem, 0));
    }
}

/* A thread outside looks on, and so knows that each waits before the next comes. */
TEST_ATTR(semaphore_serves_in_order, PROCS)
{
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 20; i++) {
        pirn_wg_go(&wg, acquires_in_turn, i, 1 + i % 2);
        while (atomic_load(&nqueued) <= i)
            sched_yield();
        wait_until_idle();
    }
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 1 + i % 2; k++) {
            wait_until_idle();
            CHECK_EQ(atomic_load(&nserved), i); /* one permit is not enough for two */
            pirn_sem_release(&queue_sem, 1);
        }
        while (atomic_load(&nserved) == i)
            sched_yield();
        CHECK_EQ(served[i], i);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_stop(), 0);
}

static atomic_int arrived;

static void laps(pirn_barrier *b, atomic_int *firsts)
{
    for (int i = 1; i <= 50; i++) {
        atomic_fetch_add(&arrived, 1);
        if (pirn_barrier_wait(b))
            atomic_fetch_add(firsts, 1);
        CHECK_GE(atomic_load(&arrived), 8 * i);
        pirn_barrier_wait(b);
    }
}

TEST_RUN_ATTR(barrier_laps, PROCS)
{
    pirn_wg wg = {0};
    pirn_barrier b;
    atomic_int firsts = 0;
    pirn_barrier_init(&b, 8);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, laps, &b, &firsts);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&firsts), 50);
}

/* --- objects that outlive their waiters -------------------------------------------------------------------------- */

static struct {
    pirn_mutex mutex, held;
    pirn_rwmutex rw;
    pirn_cond cond;
    pirn_sem sem;
    pirn_barrier barrier;
    pirn_chan(int) never, often;
} left;

static void waits_for_mutex(void)
{
    pirn_mutex_lock(&left.held);
    pirn_mutex_unlock(&left.held);
}
static void waits_to_read(void)
{
    pirn_rwmutex_rlock(&left.rw);
    pirn_rwmutex_runlock(&left.rw);
}
static void waits_to_write(void)
{
    pirn_rwmutex_lock(&left.rw);
    pirn_rwmutex_unlock(&left.rw);
}
static void waits_for_cond(void)
{
    pirn_mutex_lock(&left.mutex);
    pirn_cond_wait(&left.cond, &left.mutex);
    pirn_mutex_unlock(&left.mutex);
}
static void waits_for_sem(void)
{
    pirn_sem_acquire(&left.sem, 2);
}
static void waits_at_barrier(void)
{
    pirn_barrier_wait(&left.barrier);
}
static void waits_in_select(void)
{
    for (;;)
        pirn_select(PIRN_RECV(left.never, NULL), PIRN_RECV(left.often, NULL));
}

static int leave_them(void *arg)
{
    (void)arg;
    pirn_mutex_lock(&left.held);
    pirn_rwmutex_lock(&left.rw);
    for (int i = 0; i < 5; i++) {
        pirn_go(waits_for_mutex);
        pirn_go(waits_to_read);
        pirn_go(waits_to_write);
        pirn_go(waits_for_cond);
        pirn_go(waits_for_sem);
        pirn_go(waits_at_barrier);
        pirn_go(waits_in_select);
    }
    settle();
    for (int i = 0; i < 3; i++) { /* made ready, and dropped before they run */
        pirn_chan_send(left.often, 1);
        pirn_cond_signal(&left.cond);
    }
    pirn_mutex_unlock(&left.held);
    pirn_rwmutex_unlock(&left.rw);
    return 0;
}

static int use_them(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_mutex_try_lock(&left.mutex); /* one that was stopped between lock and unlock has it */
    pirn_mutex_unlock(&left.mutex);
    pirn_mutex_lock(&left.mutex);
    pirn_mutex_unlock(&left.mutex);
    CHECK_EQ(pirn_chan_try_send(left.never, 1), 0);
    CHECK_EQ(pirn_chan_try_send(left.often, 1), 0);
    pirn_cond_broadcast(&left.cond);
    pirn_sem_release(&left.sem, 1);
    pirn_sem_acquire(&left.sem, 1);
    for (int i = 0; i < 7; i++)
        pirn_wg_go(&wg, waits_at_barrier);
    pirn_barrier_wait(&left.barrier);
    pirn_wg_wait(&wg);
    return 0;
}

/* What was in their queues is gone with the runtime; what nobody had been given is free. */
TEST_ATTR(outlive_the_runtime, PROCS)
{
    pirn_barrier_init(&left.barrier, 8);
    for (int i = 0; i < 20; i++) {
        left.never = pirn_chan_make(int, 0);
        left.often = pirn_chan_make(int, 0);
        CHECK_EQ(pirn_run(leave_them, NULL), 0);
        CHECK_EQ(pirn_run(use_them, NULL), 0);
        pirn_chan_release(left.never);
        pirn_chan_release(left.often);
        left.held = (pirn_mutex){0}; /* a goroutine that was dropped may have had them */
        left.rw = (pirn_rwmutex){0};
        left.sem = (pirn_sem){0};
    }
}
