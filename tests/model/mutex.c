/* SPDX-License-Identifier: MIT */
/*
 * Mutexes, reader-writer mutexes, semaphores, barriers and once: who has it has it alone, what was done
 * under it is seen, nobody is left waiting, and it may be freed by the next owner while the unlock
 * before is still under way.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include <stdlib.h>

#include "foreign_lean.h"
#include "foreign_only.h"

struct object {
    pirn_mutex mutex;
    pirn_rwmutex rw;
    pirn_sem sem;
    pirn_barrier barrier;
    pirn_once once;
};
static struct object *o;
static int counter, refs;

static void begin(int n)
{
    o = calloc(1, sizeof *o);
    counter = 0;
    refs = n;
    pirn_sem_init(&o->sem, 1);
    at_store(&sched.nprocs, 1, RELAXED);
}

static void begin_two(void)
{
    begin(2);
}
static void begin_three(void)
{
    begin(3);
}

static void counted(void)
{
    CHECK(counter == refs);
    free(o);
}

#define SYNC(mname, setup_, finish_, ...)                                                          \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- mutex ------------------------------------------------------------------------------------------------ */

static void adds(void)
{
    pirn_mutex_lock(&o->mutex);
    counter++;
    pirn_mutex_unlock(&o->mutex);
}

static void tries(void)
{
    if (pirn_mutex_try_lock(&o->mutex)) {
        counter++;
        pirn_mutex_unlock(&o->mutex);
    } else {
        adds();
    }
}

static void drops(void)
{
    pirn_mutex_lock(&o->mutex);
    int left = --refs;
    pirn_mutex_unlock(&o->mutex);
    if (left == 0) {
        free(o);
    }
}

/* By a call that has waited for something else meanwhile, such as a condition. */
void mutex_lock_again(struct visit v, pirn_mutex *m);
bool mutex_unlock_visiting(pirn_mutex *m);
static void adds_again(void)
{
    mutex_lock_again(visit_again(), &o->mutex);
    counter++;
    CHECK(mutex_unlock_visiting(&o->mutex));
}

SYNC(mutex_again, begin_two, counted, adds, adds_again)
SYNC(mutex_two, begin_two, counted, adds, adds)
SYNC(mutex_three, begin_three, counted, adds, adds, adds)
SYNC(mutex_try, begin_two, counted, adds, tries)
SYNC(mutex_freed, begin_two, NULL, drops, drops)

/* --- rwmutex ---------------------------------------------------------------------------------------------- */

static void writes(void)
{
    pirn_rwmutex_lock(&o->rw);
    counter++;
    pirn_rwmutex_unlock(&o->rw);
}

static void reads(void)
{
    pirn_rwmutex_rlock(&o->rw);
    CHECK(counter <= refs);
    pirn_rwmutex_runlock(&o->rw);
}

static void begin_one_writer(void)
{
    begin(1);
}

SYNC(rw_two_writers, begin_two, counted, writes, writes)
SYNC(rw_reader_writer, begin_one_writer, counted, writes, reads)

/* One reader is inside. */
static void begin_read(void)
{
    begin(1);
    pirn_rwmutex_rlock(&o->rw);
}

static void ends_read(void)
{
    CHECK(counter == 0);
    pirn_rwmutex_runlock(&o->rw);
}

SYNC(rw_reader_leaves, begin_read, counted, ends_read, writes)
SYNC(rw_reader_leaves_another_comes, begin_read, counted, ends_read, writes, reads)

/* A writer is inside: two readers, or a reader and a writer, are let in one after the other. */
static void begin_write(void)
{
    begin(1);
    pirn_rwmutex_lock(&o->rw);
}

static void begin_write_two(void)
{
    begin_write();
    refs = 2;
}

static void ends_write(void)
{
    counter++;
    pirn_rwmutex_unlock(&o->rw);
}

SYNC(rw_writer_leaves_two_readers_come, begin_write, counted, ends_write, reads, reads)
SYNC(rw_writer_leaves_both_come, begin_write_two, counted, ends_write, reads, writes)

static void tries_to_write(void)
{
    if (pirn_rwmutex_try_lock(&o->rw)) {
        counter++;
        pirn_rwmutex_unlock(&o->rw);
    } else {
        writes();
    }
}

static void tries_to_read(void)
{
    if (pirn_rwmutex_try_rlock(&o->rw)) {
        CHECK(counter <= refs);
        pirn_rwmutex_runlock(&o->rw);
    }
}

SYNC(rw_try, begin_one_writer, counted, tries_to_write, tries_to_read)

/* Nobody writes: a try to read does not fail. */
static void must_read(void)
{
    CHECK(pirn_rwmutex_try_rlock(&o->rw));
    pirn_rwmutex_runlock(&o->rw);
}

static void begin_none(void)
{
    begin(0);
}

SYNC(rw_try_read_does_not_fail, begin_none, counted, must_read, reads)

/* --- semaphore ------------------------------------------------------------------------------------------------ */

static void acquires(void)
{
    pirn_sem_acquire(&o->sem, 1);
    counter++;
    pirn_sem_release(&o->sem, 1);
}

SYNC(sem_two, begin_two, counted, acquires, acquires)
SYNC(sem_three, begin_three, counted, acquires, acquires, acquires)

/* Weights: two of one, or one of two. */
static void begin_weights(void)
{
    begin(0);
    pirn_sem_init(&o->sem, 2);
}

static void acquires_both(void)
{
    pirn_sem_acquire(&o->sem, 2);
    counter++;
    counter--;
    pirn_sem_release(&o->sem, 2);
}

static void acquires_one(void)
{
    pirn_sem_acquire(&o->sem, 1);
    CHECK(counter == 0);
    pirn_sem_release(&o->sem, 1);
}

static void all_given_back(void)
{
    CHECK(o->sem.n_ == 2 && !o->sem.waiters_ && !o->sem.state_);
    counted();
}

SYNC(sem_weights, begin_weights, all_given_back, acquires_both, acquires_one, acquires_one)

/* One of two is taken, and a request for both waits: a small one must not overtake it. */
static void begin_one_taken(void)
{
    begin_weights();
    pirn_sem_acquire(&o->sem, 1);
    refs = 1;
}

static void takes_both(void)
{
    pirn_sem_acquire(&o->sem, 2);
    counter = 1;
    pirn_sem_release(&o->sem, 2);
}

static void gives_back_and_takes(void)
{
    while (!(at_load((at_u64 *)(void *)&o->sem.state_, RELAXED) & 4)) { /* WAITERS */
        at_pause();
    }
    CHECK(!pirn_sem_try_acquire(&o->sem, 1));
    pirn_sem_release(&o->sem, 1);
    pirn_sem_acquire(&o->sem, 1);
    CHECK(counter == 1);
    pirn_sem_release(&o->sem, 1);
}

SYNC(sem_in_order, begin_one_taken, all_given_back, takes_both, gives_back_and_takes)

/* --- barrier ---------------------------------------------------------------------------------------------------- */

static int arrived[2];

static void begin_barrier(void)
{
    begin(2);
    memset(arrived, 0, sizeof arrived);
    pirn_barrier_init(&o->barrier, 2);
}

static void meets_twice(void)
{
    for (int i = 0; i < 2; i++) {
        arrived[model_self()]++;
        bool leads = pirn_barrier_wait(&o->barrier);
        CHECK(arrived[!model_self()] >= arrived[model_self()]);
        if (leads) {
            counter++; /* a race if both lead */
        }
        pirn_barrier_wait(&o->barrier);
    }
}

SYNC(barrier_twice, begin_barrier, counted, meets_twice, meets_twice)

/* --- once ------------------------------------------------------------------------------------------------------- */

/* Of a goroutine that ends inside; there is none. */
void g_at_end(struct at_end *e)
{
    (void)e;
}
void g_at_end_run(struct at_end *e)
{
    e->fn(e, false);
}

static void happens(void *arg)
{
    (void)arg;
    counter++;
}

static void does_once(void)
{
    pirn_once_do(&o->once, happens, NULL);
    CHECK(counter == 1);
}

static void does_once_twice(void)
{
    does_once();
    does_once();
}

SYNC(once, begin_one_writer, counted, does_once, does_once_twice)
