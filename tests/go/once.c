/* SPDX-License-Identifier: MIT */
/* Once: number 106 of the conformance list. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

static pirn_once once, other;
static atomic_int begun, ended;
static int plain; /* what the function writes, everybody sees who has called pirn_once_do */

static void slow(void *arg)
{
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 20; i++)
        pirn_yield();
    CHECK_EQ(pirn_sleep(100 * PIRN_US), 0);
    plain = *(int *)arg;
    atomic_fetch_add(&ended, 1);
}

static void contend(pirn_once *o, int *arg)
{
    pirn_once_do(o, slow, arg);
    CHECK_EQ(plain, 42);
    CHECK_EQ(atomic_load(&ended), 1);
}

TEST_RUN_ATTR(one_call_and_all_wait_for_it, PROCS)
{
    for (int i = 0; i < 50; i++) {
        static int arg = 42;
        pirn_once o = {0};
        pirn_wg wg = {0};
        plain = 0;
        atomic_store(&begun, 0);
        atomic_store(&ended, 0);
        for (int k = 0; k < 20; k++)
            pirn_wg_go(&wg, contend, &o, &arg);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&begun), 1);
        pirn_once_do(&o, slow, NULL);
        CHECK_EQ(atomic_load(&begun), 1);
    }
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void other_inside(void *arg)
{
    pirn_once_do(&other, count, arg);
    pirn_once_do(&other, count, arg);
    atomic_fetch_add(&ended, 1);
}

TEST_RUN_ATTR(another_inside, PROCS)
{
    pirn_once_do(&once, other_inside, &begun);
    pirn_once_do(&once, other_inside, &begun);
    CHECK_EQ(atomic_load(&begun), 1);
    CHECK_EQ(atomic_load(&ended), 1);
}

static void leave(void *arg)
{
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 5; i++)
        pirn_yield();
    if (arg)
        pirn_once_do(&other, leave, NULL);
    pirn_exit();
}

static void leave_once(pirn_once *o, atomic_int *returned)
{
    pirn_once_do(o, leave, &once);
    atomic_fetch_add(returned, 1);
}

/* Goexit in the function: it counts as done, for both; the others go on. */
TEST_RUN_ATTR(exit_inside, PROCS)
{
    for (int i = 0; i < 50; i++) {
        atomic_int returned = 0;
        pirn_wg wg = {0};
        pirn_once o = {0};
        other = (pirn_once){0};
        atomic_store(&begun, 0);
        for (int k = 0; k < 10; k++)
            pirn_wg_go(&wg, leave_once, &o, &returned);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&begun), 2);
        CHECK_EQ(atomic_load(&returned), 9);
        pirn_once_do(&o, leave, NULL);
        pirn_once_do(&other, leave, NULL);
    }
}

static void *from_thread(void *arg)
{
    (void)arg;
    static int answer = 42;
    contend(&once, &answer);
    return NULL;
}

TEST_ATTR(threads, PROCS)
{
    pthread_t t[4];
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 4; i++) {
        static int answer = 42;
        pthread_create(&t[i], NULL, from_thread, NULL);
        pirn_wg_go(&wg, contend, &once, &answer);
    }
    pirn_wg_wait(&wg);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&begun), 1);
    CHECK_EQ(pirn_stop(), 0);
}

struct thing {
    pirn_once once;
    atomic_int refs;
    int ready;
};

static void make_ready(void *arg)
{
    pirn_yield();
    ((struct thing *)arg)->ready = 42;
}

static void use_and_drop(struct thing *t)
{
    pirn_once_do(&t->once, make_ready, t);
    CHECK_EQ(t->ready, 42);
    if (atomic_fetch_sub(&t->refs, 1) == 1)
        free(t);
}

/* Freed as soon as all calls have returned. */
TEST_RUN_ATTR(freed_by_the_last, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 50 : 500); i++) {
        pirn_wg wg = {0};
        struct thing *t = calloc(1, sizeof *t);
        atomic_init(&t->refs, 3);
        for (int n = 0; n < 3; n++)
            pirn_wg_go(&wg, use_and_drop, t);
        pirn_wg_wait(&wg);
    }
}

TEST(without_a_runtime)
{
    pirn_once_do(&once, other_inside, &begun);
    pirn_once_do(&once, other_inside, &begun);
    CHECK_EQ(atomic_load(&begun), 1);
}
