/* SPDX-License-Identifier: MIT */
/*
 * Once (conformance 106): one call, whoever comes; the others wait until it has ended, also if it ended
 * its goroutine. (What a panic does is for when one can be recovered.)
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define ROUNDS (TEST_TSAN ? 50 : 500)

struct thing {
    pirn_once once;
    atomic_int begun, refs;
    int ready; /* plain: the end of the call comes before the return of all others */
    bool exits;
};

static void make_ready(void *arg)
{
    struct thing *t = arg;
    atomic_fetch_add(&t->begun, 1);
    for (int i = 0; i < 5; i++)
        pirn_yield();
    t->ready = 42;
    if (t->exits)
        pirn_exit();
}

static void use(struct thing *t)
{
    pirn_once_do(&t->once, make_ready, t);
    CHECK_EQ(t->ready, 42);
    pirn_once_do(&t->once, make_ready, t);
}

static void contend(bool exits)
{
    for (int i = 0; i < ROUNDS; i++) {
        pirn_wg wg = {0};
        struct thing t = {.exits = exits};
        for (int k = 0; k < 10; k++)
            pirn_wg_go(&wg, use, &t);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&t.begun), 1);
        CHECK_EQ(t.ready, 42);
    }
}

TEST_RUN_ATTR(once_under_contention, PROCS)
{
    contend(false);
}

TEST_RUN_ATTR(once_with_exit, PROCS)
{
    contend(true);
}

static void do_inner(void *arg)
{
    struct thing *t = arg;
    pirn_once_do(&t->once, make_ready, t);
    CHECK_EQ(t->ready, 42);
}

/* One inside another's call, which ends the goroutine: both are done. */
static void use_nested(pirn_once *outer, struct thing *inner)
{
    pirn_once_do(outer, do_inner, inner);
}

TEST_RUN_ATTR(once_in_once, PROCS)
{
    for (int i = 0; i < ROUNDS; i++) {
        pirn_wg wg = {0};
        pirn_once outer = {0};
        struct thing inner = {.exits = i % 2};
        for (int k = 0; k < 4; k++)
            pirn_wg_go(&wg, use_nested, &outer, &inner);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&inner.begun), 1);
        pirn_once_do(&outer, do_inner, NULL); /* done: not called */
    }
}

static void use_and_drop(struct thing *t)
{
    pirn_once_do(&t->once, make_ready, t);
    CHECK_EQ(t->ready, 42);
    if (atomic_fetch_sub(&t->refs, 1) == 1)
        free(t);
}

/* Freed as soon as all calls have returned. */
TEST_RUN_ATTR(once_freed_by_the_last, PROCS)
{
    for (int i = 0; i < ROUNDS; i++) {
        pirn_wg wg = {0};
        struct thing *t = calloc(1, sizeof *t);
        atomic_init(&t->refs, 3);
        for (int k = 0; k < 3; k++)
            pirn_wg_go(&wg, use_and_drop, t);
        pirn_wg_wait(&wg);
    }
}

static int called;

static void call(void *arg)
{
    called += *(int *)arg;
}

/* No runtime is needed. */
TEST(once_without_a_runtime)
{
    pirn_once o = {0};
    pirn_once_do(&o, call, &(int){3});
    pirn_once_do(&o, call, &(int){5});
    CHECK_EQ(called, 3);
}
