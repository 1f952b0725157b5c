/* SPDX-License-Identifier: MIT */
/*
 * The number of Ps changes at random from 1 to 64 while goroutines fork, yield and wait. Nothing
 * is lost, and the number is always what was set last.
 */
#include "stress/recount.h"

#define CHANGES (TEST_ASAN || TEST_TSAN || PIRN_FLAVOUR_CHAOS ? 1000 : 10000)
#define TREES 4

static at_u64 spawned, ended;
static at_u32 over; /* the changes are */

static void fork_tree(int depth)
{
    at_add(&spawned, 1, RELAXED);
    if (depth) {
        pirn_wg wg = {0};
        for (int i = 0; i < 3; i++) {
            pirn_wg_go(&wg, fork_tree, depth - 1);
        }
        pirn_yield();
        pirn_wg_wait(&wg);
    }
    at_add(&ended, 1, RELAXED);
}

static void grow_trees(void)
{
    while (!at_load(&over, RELAXED)) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, fork_tree, 4);
        pirn_wg_wait(&wg);
    }
}

static void yield_on(void)
{
    while (!at_load(&over, RELAXED)) {
        pirn_yield();
    }
}

static void begin_load(pirn_wg *wg)
{
    for (int i = 0; i < TREES; i++) {
        pirn_wg_go(wg, grow_trees);
        pirn_wg_go(wg, yield_on);
    }
}

static void end_load(pirn_wg *wg)
{
    at_store(&over, 1, RELAXED);
    pirn_wg_wait(wg);
    recount(0);
    CHECK_EQ(at_load(&spawned, RELAXED), at_load(&ended, RELAXED));
    printf("%llu goroutines\n", (unsigned long long)at_load(&spawned, RELAXED));
    CHECK_GT(at_load(&ended, RELAXED), 121);
    CHECK_EQ(pirn_stop(), 0);
}

/* A running P retires at a switch. A thread of ours waits for that by computing: sched_yield would
 * give its CPU to 64 others. */
static void let_them_switch(struct rand *r)
{
    if (pirn_id()) {
        pirn_yield();
        return;
    }
    for (int64_t until = now_ns() + rand_below(r, 200000); now_ns() < until;) {
        at_pause();
    }
}

static void change(uint64_t seed)
{
    struct rand r;
    int now = pirn_procs(0);
    rand_seed(&r, seed);
    for (int i = 0; i < CHANGES; i++) {
        int next = 1 + (int)rand_below(&r, 64);
        CHECK_EQ(pirn_procs(next), now);
        now = next;
        let_them_switch(&r);
    }
    CHECK_EQ(pirn_procs(3), now);
    CHECK_EQ(pirn_procs(0), 3);
}

TEST_ATTR(resize_by_a_thread, .timeout = 90)
{
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    begin_load(&wg);
    change(stress_seed());
    end_load(&wg);
}

static void change_here(void *arg)
{
    change(*(uint64_t *)arg);
}

TEST_ATTR(resize_by_a_goroutine, .timeout = 90)
{
    pirn_wg wg = {0}, done = {0};
    uint64_t seed = stress_seed();
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    begin_load(&wg);
    pirn_wg_go(&done, change_here, (void *)&seed);
    pirn_wg_wait(&done);
    end_load(&wg);
}

static void *change_wildly(void *arg)
{
    struct rand r;
    rand_seed(&r, *(uint64_t *)arg);
    for (int i = 0; i < CHANGES / 4; i++) {
        let_them_switch(&r);
        int before = pirn_procs(1 + (int)rand_below(&r, 64));
        CHECK(before >= 1 && before <= 64);
    }
    return NULL;
}

static void change_wildly_here(void *arg)
{
    change_wildly(arg);
}

TEST_ATTR(resize_by_all, .timeout = 90)
{
    pirn_wg wg = {0}, done = {0};
    pthread_t threads[2];
    uint64_t seeds[4];
    seeds[0] = stress_seed();
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    begin_load(&wg);
    for (int i = 0; i < 4; i++) {
        seeds[i] = seeds[0] + (uint64_t)i;
        if (i < 2) {
            pirn_wg_go(&done, change_wildly_here, (void *)&seeds[i]);
        } else {
            CHECK_EQ(pthread_create(&threads[i - 2], NULL, change_wildly, &seeds[i]), 0);
        }
    }
    pirn_wg_wait(&done);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    int before = pirn_procs(2);
    CHECK(before >= 1 && before <= 64);
    CHECK_EQ(pirn_procs(0), 2);
    end_load(&wg);
}
