/* SPDX-License-Identifier: MIT */
/* What mutexes and their like order, each on its own. */
#include "clean.h"

#define N 300
#define GS 4

/* --- mutexes ---------------------------------------------------------------------------------------- */

static pirn_mutex m;

static void under_lock(struct box *b, bool tries)
{
    for (int i = 0; i < N; i++) {
        if (tries) {
            while (!pirn_mutex_try_lock(&m)) {
                pirn_yield();
            }
        } else {
            pirn_mutex_lock(&m);
        }
        b->v++;
        if (i % 16 == 0) {
            pirn_yield(); /* somebody waits */
        }
        pirn_mutex_unlock(&m);
    }
}

CLEAN(mutex)
{
    struct box b = {0};
    pirn_wg wg = {0};
    for (int i = 0; i < GS; i++) {
        pirn_wg_go(&wg, under_lock, &b, i % 2);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(b.v, GS * N);
}

/* It may be passed on: locked by one, unlocked by the other. */
static void unlock_for(pirn_mutex *mutex, struct box *b)
{
    b->v = 1;
    pirn_mutex_unlock(mutex);
}

CLEAN(mutex_passed_on)
{
    for (int i = 0; i < 40; i++) {
        pirn_mutex mine = {0};
        struct box b = {0};
        pirn_mutex_lock(&mine);
        pirn_go(unlock_for, &mine, &b);
        pirn_mutex_lock(&mine);
        CHECK_EQ(b.v, 1);
    }
}

static pirn_rwmutex rw;

static void write_or_read(struct box *b, int which)
{
    for (int i = 0; i < N; i++) {
        if (which == 0) {
            pirn_rwmutex_lock(&rw);
            b->v++;
            pirn_rwmutex_unlock(&rw);
        } else if (which == 1) {
            if (pirn_rwmutex_try_lock(&rw)) {
                b->v++;
                pirn_rwmutex_unlock(&rw);
            }
        } else if (which == 2 || pirn_rwmutex_try_rlock(&rw)) {
            if (which == 2) {
                pirn_rwmutex_rlock(&rw);
            }
            CHECK_GE(b->v, 0);
            if (i % 16 == 0) {
                pirn_yield();
            }
            pirn_rwmutex_runlock(&rw);
        }
    }
}

CLEAN(rwmutex)
{
    struct box b = {0};
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++) {
        pirn_wg_go(&wg, write_or_read, &b, i % 4);
    }
    pirn_wg_wait(&wg);
    CHECK_GE(b.v, N);
}

/* --- conditions ------------------------------------------------------------------------------------- */

static pirn_cond cond;

static void turns(struct box *b, long me, bool timed)
{
    for (int i = 0; i < N / 4; i++) {
        pirn_mutex_lock(&m);
        while (b->v % GS != me) {
            if (timed) {
                pirn_cond_wait_until(&cond, &m, pirn_deadline(60 * PIRN_SEC));
            } else {
                pirn_cond_wait(&cond, &m);
            }
        }
        b->v++;
        pirn_mutex_unlock(&m);
        pirn_cond_broadcast(&cond);
    }
}

CLEAN(cond)
{
    struct box b = {0};
    pirn_wg wg = {0};
    for (int i = 0; i < GS; i++) {
        pirn_wg_go(&wg, turns, &b, i, i % 2);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(b.v, GS * (N / 4));
}

static void wait_for_signal(struct box *b, long *ready)
{
    pirn_mutex_lock(&m);
    ++*ready;
    pirn_cond_wait(&cond, &m);
    pirn_mutex_unlock(&m);
    CHECK_EQ(b->v, 6);
}

/* What was done before a signal is done before the wait that it ends, mutex or not. */
CLEAN(cond_signal)
{
    for (int i = 0; i < 15; i++) {
        struct box b = {0};
        pirn_wg wg = {0};
        long ready = 0;
        pirn_wg_go(&wg, wait_for_signal, &b, &ready);
        for (bool waits = false; !waits;) {
            pirn_yield();
            pirn_mutex_lock(&m);
            waits = ready;
            pirn_mutex_unlock(&m);
        }
        b.v = 6;
        pirn_cond_signal(&cond);
        pirn_wg_wait(&wg);
    }
}

/* --- semaphores, barriers, wait groups, once ------------------------------------------------------ */

static pirn_sem sem = PIRN_SEM_INIT(1);

static void with_permit(struct box *b, bool tries)
{
    for (int i = 0; i < N; i++) {
        if (tries) {
            while (!pirn_sem_try_acquire(&sem, 1)) {
                pirn_yield();
            }
        } else {
            pirn_sem_acquire(&sem, 1);
        }
        b->v++;
        if (i % 16 == 0) {
            pirn_yield();
        }
        pirn_sem_release(&sem, 1);
    }
}

CLEAN(semaphore)
{
    struct box b = {0};
    pirn_wg wg = {0};
    for (int i = 0; i < GS; i++) {
        pirn_wg_go(&wg, with_permit, &b, i % 2);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(b.v, GS * N);
}

static pirn_barrier barrier;

static void rounds(struct box *boxes, int me)
{
    for (int i = 1; i <= 50; i++) {
        boxes[me].v = i;
        pirn_barrier_wait(&barrier);
        for (int k = 0; k < GS; k++) {
            CHECK_EQ(boxes[k].v, i);
        }
        pirn_barrier_wait(&barrier);
    }
}

CLEAN(barrier)
{
    struct box boxes[GS] = {0};
    pirn_wg wg = {0};
    pirn_barrier_init(&barrier, GS);
    for (int i = 0; i < GS; i++) {
        pirn_wg_go(&wg, rounds, boxes, i);
    }
    pirn_wg_wait(&wg);
}

static void set(struct box *b, pirn_wg *done)
{
    b->v++;
    if (done) {
        pirn_wg_done(done);
    }
}

static void wait_and_look(pirn_wg *wg, struct box *boxes)
{
    pirn_wg_wait(wg);
    for (int i = 0; i < GS; i++) {
        CHECK_EQ(boxes[i].v, 1);
    }
}

CLEAN(wait_group)
{
    for (int i = 0; i < 15; i++) {
        struct box boxes[GS] = {0};
        pirn_wg wg = {0}, waiters = {0};
        pirn_wg_add(&wg, GS);
        pirn_wg_go(&waiters, wait_and_look, &wg, boxes);
        for (int k = 0; k < GS; k++) {
            pirn_go(set, &boxes[k], &wg);
        }
        pirn_wg_go(&waiters, wait_and_look, &wg, boxes);
        wait_and_look(&wg, boxes);
        pirn_wg_wait(&waiters);
        for (int k = 0; k < GS; k++) {
            boxes[k].v = 0;
            pirn_wg_go(&wg, set, &boxes[k], NULL);
        }
        wait_and_look(&wg, boxes);
    }
}

struct once_box {
    pirn_once once;
    struct box b;
};

static void init(void *arg)
{
    struct once_box *o = arg;
    o->b.v++;
    pirn_yield();
}

static void init_and_look(struct once_box *o)
{
    pirn_once_do(&o->once, init, o);
    CHECK_EQ(o->b.v, 1);
}

CLEAN(once)
{
    for (int i = 0; i < 15; i++) {
        struct once_box o = {0};
        pirn_wg wg = {0};
        for (int k = 0; k < GS; k++) {
            pirn_wg_go(&wg, init_and_look, &o);
        }
        init_and_look(&o);
        pirn_wg_wait(&wg);
    }
}

/* --- groups ----------------------------------------------------------------------------------------- */

static int child(struct box *b, int err)
{
    b->v++;
    return err;
}

CLEAN(groups)
{
    for (int i = 0; i < 15; i++) {
        struct box boxes[GS] = {0};
        pirn_group g;
        pirn_group_init(&g, NULL);
        for (int k = 0; k < GS; k++) {
            pirn_group_go(&g, child, &boxes[k], k == 2 ? -EIO : 0);
        }
        CHECK_EQ(pirn_group_wait(&g), -EIO);
        for (int k = 0; k < GS; k++) {
            CHECK_EQ(boxes[k].v, 1);
        }
    }
}

/* One at a time: they are ordered, whether their starter had to wait for room or not. */
CLEAN(group_of_one_at_a_time)
{
    struct box b = {0};
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 1);
    for (int i = 0; i < 60; i++) {
        if (i % 3 == 0) {
            pirn_yield();
        }
        if (i % 5 == 0) {
            while (!pirn_group_try_go(&g, child, &b, 0)) {
                pirn_yield();
            }
        } else {
            pirn_group_go(&g, child, &b, 0);
        }
    }
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(b.v, 60);
}
