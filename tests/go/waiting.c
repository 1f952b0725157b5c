/* SPDX-License-Identifier: MIT */
/* Who waits for a lock sleeps: that many do costs no CPU time while one has it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <pirn.h>

#include "harness.h"

#define ALONE .procs = "1,2,4,16", .alone = true
#define WAITERS 50
#define THREADS 8
#define HELD (300 * PIRN_MS)
#define MOST (100 * PIRN_MS) /* one that spins would use three times as much */

static pirn_mutex mutex;
static pirn_rwmutex rw;
static pirn_sem sem = PIRN_SEM_INIT(1);
static atomic_int begun, ended;

static pirn_ns cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * PIRN_SEC + t.tv_nsec;
}

static void by_mutex(void)
{
    pirn_mutex_lock(&mutex);
    pirn_mutex_unlock(&mutex);
}

static void by_readers(void)
{
    pirn_rwmutex_rlock(&rw);
    pirn_rwmutex_runlock(&rw);
}

static void by_writers(void)
{
    pirn_rwmutex_lock(&rw);
    pirn_rwmutex_unlock(&rw);
}

static void by_sem(void)
{
    pirn_sem_acquire(&sem, 1);
    pirn_sem_release(&sem, 1);
}

static void one(void (*wait)(void))
{
    atomic_fetch_add(&begun, 1);
    wait();
    atomic_fetch_add(&ended, 1);
}

static void *one_thread(void *arg)
{
    (void)arg;
    one(by_mutex);
    return NULL;
}

/* Those who have begun are given the time to wait. */
static void hold(int n)
{
    while (atomic_load(&begun) < n)
        pirn_yield();
    pirn_sleep(20 * PIRN_MS);
    pirn_ns before = cpu_now();
    pirn_sleep(HELD);
    CHECK_LT(cpu_now() - before, MOST);
    CHECK_EQ(atomic_load(&ended), 0);
}

static void spawn(pirn_wg *wg, void (*a)(void), void (*b)(void))
{
    for (int i = 0; i < WAITERS / 2; i++) {
        pirn_wg_go(wg, one, a);
        pirn_wg_go(wg, one, b);
    }
}

static void end(pirn_wg *wg)
{
    pirn_wg_wait(wg);
    CHECK_EQ(atomic_load(&ended), WAITERS);
}

TEST_RUN_ATTR(mutex_of_goroutines, ALONE)
{
    pirn_wg wg = {0};
    pirn_mutex_lock(&mutex);
    spawn(&wg, by_mutex, by_mutex);
    hold(WAITERS);
    pirn_mutex_unlock(&mutex);
    end(&wg);
}

TEST_RUN_ATTR(mutex_of_threads, ALONE)
{
    pthread_t t[THREADS];
    pirn_mutex_lock(&mutex);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, one_thread, NULL), 0);
    hold(THREADS);
    pirn_mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(atomic_load(&ended), THREADS);
}

TEST_RUN_ATTR(rwmutex_of_a_writer, ALONE)
{
    pirn_wg wg = {0};
    pirn_rwmutex_lock(&rw);
    spawn(&wg, by_readers, by_writers);
    hold(WAITERS);
    pirn_rwmutex_unlock(&rw);
    end(&wg);
}

/* One of the writers comes first: else readers would not wait. */
TEST_RUN_ATTR(rwmutex_of_a_reader, ALONE)
{
    pirn_wg wg = {0};
    pirn_rwmutex_rlock(&rw);
    pirn_wg_go(&wg, by_writers);
    while (pirn_rwmutex_try_rlock(&rw)) {
        pirn_rwmutex_runlock(&rw);
        pirn_yield();
    }
    spawn(&wg, by_readers, by_writers);
    hold(WAITERS);
    pirn_rwmutex_runlock(&rw);
    end(&wg);
}

TEST_RUN_ATTR(semaphore, ALONE)
{
    pirn_wg wg = {0};
    pirn_sem_acquire(&sem, 1);
    spawn(&wg, by_sem, by_sem);
    hold(WAITERS);
    pirn_sem_release(&sem, 1);
    end(&wg);
}
