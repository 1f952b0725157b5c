/* SPDX-License-Identifier: MIT */
/*
 * Mutexes, reader-writer mutexes and semaphores: who has it has it alone, what was done
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
SYNC(rw_two_readers_writer, begin_one_writer, counted, writes, reads, reads)

/* --- semaphore ------------------------------------------------------------------------------------------------ */

static void acquires(void)
{
    pirn_sem_acquire(&o->sem, 1);
    counter++;
    pirn_sem_release(&o->sem, 1);
}

SYNC(sem_two, begin_two, counted, acquires, acquires)
SYNC(sem_three, begin_three, counted, acquires, acquires, acquires)
