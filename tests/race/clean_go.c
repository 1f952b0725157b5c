/* SPDX-License-Identifier: MIT */
/* What starts and ends: goroutines, their stacks, threads beside them, the runtime itself. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"

/* --- goroutines ----------------------------------------------------------------------------------------- */

static void add(struct box *b)
{
    b->v++;
}

CLEAN(spawn)
{
    struct box b = {0};
    for (int i = 0; i < 100; i++) {
        pirn_wg wg = {0};
        b.v++;
        pirn_wg_go(&wg, add, &b);
        pirn_wg_wait(&wg);
    }
    CHECK_EQ(b.v, 200);
}

static void spawn_next(struct box *b, int n, pirn_wg *wg)
{
    b->v++;
    if (n == 0) {
        pirn_wg_done(wg);
        return;
    }
    pirn_go(spawn_next, b, n - 1, wg);
}

CLEAN(chain)
{
    struct box b = {0};
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    pirn_go(spawn_next, &b, 150, &wg);
    pirn_wg_wait(&wg);
    CHECK_EQ(b.v, 151);
}

/* Stacks are used again by others: what those did to them before is not to be seen. */
static void use_stack(pirn_chan(int *) c, int i)
{
    int mine[256];
    for (int k = 0; k < 256; k++) {
        mine[k] = i + k;
    }
    if (c) {
        mine[3] = i;
        pirn_chan_send(c, &mine[3]); /* another one looks at this stack */
        pirn_yield();
    }
    for (int k = 0; k < 256; k++) {
        CHECK_EQ(mine[k], k == 3 && c ? i : i + k);
    }
}

static void look(pirn_chan(int *) c)
{
    int *p;
    while (pirn_chan_recv(c, &p)) {
    }
}

CLEAN(stacks_used_again)
{
    for (int i = 0; i < 1500; i++) { /* nobody waits for them: they are not ordered at all */
        pirn_go(use_stack, NULL, i);
        if (i % 32 == 0) {
            pirn_yield();
        }
    }
    while (pirn_num_goroutines() > 1) {
        pirn_yield();
    }
    pirn_chan(int *) c = pirn_chan_make(int *, 1);
    pirn_wg wg = {0};
    pirn_go(look, c);
    for (int i = 0; i < 200; i++) {
        pirn_wg_go(&wg, use_stack, c, i);
        if (i % 8 == 0) {
            pirn_wg_wait(&wg);
        }
    }
    pirn_wg_wait(&wg);
    pirn_chan_close(c);
}

static void big_frame(void *arg)
{
    char big[200 << 10];
    memset(big, 1, sizeof big);
    CHECK_EQ(big[100], 1);
    pirn_wg_done(arg);
}

CLEAN(sizes_of_stacks)
{
    for (int i = 0; i < 30; i++) {
        pirn_wg wg = {0};
        pirn_attr attr = {.stack_size = (size_t)(i % 3 ? 1 : 256) << 20, .name = "large"};
        pirn_wg_add(&wg, 1);
        CHECK_EQ(pirn_spawn(&attr, big_frame, &wg), 0);
        pirn_wg_wait(&wg);
    }
}

TEST_RUN_ATTR(unguarded_stacks, .procs = "1,2,4", .env = "PIRN_DEBUG=guard=none")
{
    pirn_wg wg = {0};
    for (int i = 0; i < 60; i++) {
        pirn_wg_go(&wg, use_stack, NULL, i);
        pirn_yield();
    }
    pirn_wg_wait(&wg);
}

/* --- what goes with a goroutine --------------------------------------------------------------------------- */

static pirn_local_key key;

static void drop(void *value)
{
    free(value);
}

static void with_name(int i)
{
    struct box *b = calloc(1, sizeof *b);
    pirn_set_name("worker %d", i);
    pirn_local_set(key, b);
    pirn_yield();
    ((struct box *)pirn_local_get(key))->v++;
    if (i % 4 == 0) {
        pirn_exit();
    }
}

CLEAN(names_and_locals)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    CHECK_EQ(pirn_local_new(&key, drop), 0);
    pirn_ctx_use(ctx);
    for (int i = 0; i < 150; i++) {
        pirn_go(with_name, i);
        if (i % 8 == 0) {
            pirn_yield();
        }
    }
    while (pirn_num_goroutines() > 1) {
        pirn_yield();
    }
    pirn_ctx_release(ctx);
}

/* Goroutines that end by pirn_exit, deep in their calls, again and again. */
__attribute__((noinline)) static void deep(int more)
{
    char room[64];
    memset(room, more, sizeof room);
    if (more > 0) {
        deep(more - 1);
    } else if (pirn_id()) {
        pirn_exit();
    }
    CHECK_EQ(room[0], more);
}

CLEAN(exits)
{
    for (int i = 0; i < 150; i++) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, deep, 20);
        pirn_wg_wait(&wg);
    }
}

static void hog(pirn_wg *wg)
{
    for (int i = 0; i < 100; i++) {
        pirn_yield();
    }
    pirn_wg_done(wg);
}

CLEAN(procs)
{
    for (int i = 0; i < 10; i++) {
        pirn_wg wg = {0};
        pirn_wg_add(&wg, 8);
        for (int k = 0; k < 8; k++) {
            pirn_go(hog, &wg);
        }
        pirn_procs(1 + i % 5);
        pirn_wg_wait(&wg);
    }
}

/* --- threads beside the runtime ------------------------------------------------------------------------- */

struct shared {
    pirn_chan(struct box *) c, back;
    pirn_mutex m;
    struct box b;
    pirn_wg wg;
};

static void *thread(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < 50; i++) {
        struct box *b = malloc(sizeof *b);
        b->v = 2;
        pirn_chan_send(s->c, b);
        b = pirn_chan_get(s->back);
        CHECK_EQ(b->v, 3);
        free(b);
        pirn_mutex_lock(&s->m);
        s->b.v++;
        pirn_mutex_unlock(&s->m);
    }
    pirn_wg_done(&s->wg);
    return NULL;
}

static void goroutine(struct shared *s)
{
    for (int i = 0; i < 50; i++) {
        struct box *b = pirn_chan_get(s->c);
        b->v++;
        pirn_chan_send(s->back, b);
        pirn_mutex_lock(&s->m);
        s->b.v++;
        pirn_mutex_unlock(&s->m);
    }
}

TEST_ATTR(foreign_threads, .procs = "1,2,4")
{
    for (int cap = 0; cap < 3; cap++) {
        struct shared s = {.c = pirn_chan_make(struct box *, cap),
                           .back = pirn_chan_make(struct box *, cap)};
        pthread_t t[2];
        CHECK_EQ(pirn_start(&(pirn_config){0}), 0);
        pirn_wg_add(&s.wg, 2);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(pthread_create(&t[i], NULL, thread, &s), 0);
            pirn_wg_go(&s.wg, goroutine, &s);
        }
        pirn_wg_wait(&s.wg);
        CHECK_EQ(s.b.v, 200);
        for (int i = 0; i < 2; i++) {
            pthread_join(t[i], NULL);
        }
        CHECK_EQ(pirn_stop(), 0);
        pirn_chan_release(s.c);
        pirn_chan_release(s.back);
    }
}

/* --- the runtime ------------------------------------------------------------------------------------------- */

static void for_ever(pirn_chan(int) c, int depth)
{
    if (depth) {
        for_ever(c, depth - 1);
    }
    (void)pirn_chan_get(c);
}

static int life(void *arg)
{
    struct box *b = arg;
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_wg wg = {0};
    b->v++;
    for (int i = 0; i < 20; i++) {
        pirn_go(for_ever, c, 5);
        pirn_go(with_name, 1);
        pirn_wg_go(&wg, use_stack, NULL, i);
    }
    pirn_wg_wait(&wg);
    return 0;
}

TEST_ATTR(runs, .procs = "1,2,4")
{
    struct box b = {0};
    CHECK_EQ(pirn_local_new(&key, drop), 0);
    for (int i = 0; i < 3; i++) {
        b.v++;
        CHECK_EQ(pirn_run(life, &b), 0);
    }
    CHECK_EQ(b.v, 6);
}
