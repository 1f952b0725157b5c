/* SPDX-License-Identifier: MIT */
/*
 * How long an object must live, and which calls keep the goroutine on its thread.
 *
 * An object may be freed as soon as every waiting call on it has returned, while the unlock, done,
 * signal, close or release that let the waiter go is still executing [R9]: here it is, in every round,
 * and AddressSanitizer looks on. A channel may lose its last reference while an operation of a select
 * that was won elsewhere is still queued on it [R15]. Calls that can't wait don't move the goroutine
 * to another thread, so a pthread mutex may be held over them [R1].
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define MOVES .procs = "1,2,4,16", .env = "PIRN_DEBUG=move=1"
#define ROUNDS (TEST_TSAN ? 200 : 2000)

/* Not always in the same order. */
static void dawdle(int i)
{
    for (i %= 4; i; i--)
        pirn_yield();
}

/*
 * Each test: a partner, a goroutine, that lets the waiter go, and the waiter, who frees the object.
 * The waiter is a goroutine, or a thread of the program's own: that one runs on another CPU at once.
 */
#define BY_BOTH(name)                                                                              \
    static void name(void);                                                                        \
    TEST_RUN_ATTR(name##_goroutine, PROCS)                                                         \
    {                                                                                              \
        name();                                                                                    \
    }                                                                                              \
    TEST_ATTR(name##_thread, PROCS)                                                                \
    {                                                                                              \
        CHECK_EQ(pirn_start(NULL), 0);                                                             \
        name();                                                                                    \
        CHECK_EQ(pirn_stop(), 0);                                                                  \
    }                                                                                              \
    static void name(void)

#define EACH_ROUND(i) for (int i = 0; i < ROUNDS; i++)

/* --- R9: mutexes ----------------------------------------------------------------------------------------- */

static void unlock_it(pirn_mutex *m, int i)
{
    dawdle(i);
    pirn_mutex_unlock(m);
}

BY_BOTH(mutex_freed_by_the_next)
{
    EACH_ROUND(i)
    {
        pirn_mutex *m = calloc(1, sizeof *m);
        pirn_mutex_lock(m);
        pirn_go(unlock_it, m, i);
        dawdle(i / 4);
        pirn_mutex_lock(m);
        free(m);
    }
}

static void write_unlock_it(pirn_rwmutex *m, int i)
{
    dawdle(i);
    pirn_rwmutex_unlock(m);
}

static void read_unlock_it(pirn_rwmutex *m, int i)
{
    dawdle(i);
    pirn_rwmutex_runlock(m);
}

BY_BOTH(rwmutex_freed_by_the_next)
{
    EACH_ROUND(i)
    {
        pirn_rwmutex *m = calloc(1, sizeof *m);
        int readers = i % 3;
        for (int k = 0; k < readers; k++)
            pirn_rwmutex_rlock(m);
        if (!readers)
            pirn_rwmutex_lock(m);
        for (int k = 0; k < readers; k++)
            pirn_go(read_unlock_it, m, i + k);
        if (!readers)
            pirn_go(write_unlock_it, m, i);
        dawdle(i / 4);
        if (!readers && i % 2)
            pirn_rwmutex_rlock(m);
        else
            pirn_rwmutex_lock(m);
        free(m);
    }
}

/* --- R9: conditions --------------------------------------------------------------------------------------- */

struct condition {
    pirn_mutex m;
    pirn_cond c;
    int refs;
};

static void signal_it(struct condition *s, int i)
{
    dawdle(i);
    pirn_mutex_lock(&s->m); /* it waits */
    if (i % 2) {
        pirn_cond_signal(&s->c);
        pirn_mutex_unlock(&s->m);
    } else {
        pirn_mutex_unlock(&s->m);
        if (i % 4)
            pirn_cond_signal(&s->c);
        else
            pirn_cond_broadcast(&s->c);
    }
}

BY_BOTH(cond_freed_by_the_waiter)
{
    EACH_ROUND(i)
    {
        struct condition *s = calloc(1, sizeof *s);
        pirn_mutex_lock(&s->m);
        pirn_go(signal_it, s, i);
        dawdle(i / 4);
        pirn_cond_wait(&s->c, &s->m);
        pirn_mutex_unlock(&s->m);
        free(s);
    }
}

static void wait_and_drop(struct condition *s)
{
    pirn_mutex_lock(&s->m);
    s->refs++;
    pirn_cond_wait(&s->c, &s->m);
    int left = --s->refs;
    pirn_mutex_unlock(&s->m);
    if (!left)
        free(s);
}

/* Freed by the last of those that a broadcast has woken. */
BY_BOTH(cond_freed_by_the_last_waiter)
{
    for (int i = 0; i < ROUNDS / 4; i++) {
        struct condition *s = calloc(1, sizeof *s);
        pirn_wg wg = {0};
        for (int k = 0; k < 3; k++)
            pirn_wg_go(&wg, wait_and_drop, s);
        for (bool all = false; !all; pirn_yield()) {
            pirn_mutex_lock(&s->m);
            all = s->refs == 3;
            pirn_mutex_unlock(&s->m);
        }
        pirn_cond_broadcast(&s->c);
        pirn_wg_wait(&wg);
    }
}

/* --- R9: semaphores, barriers, wait groups ------------------------------------------------------------------- */

static void release_it(pirn_sem *s, int i)
{
    dawdle(i);
    pirn_sem_release(s, 1 + i % 2);
}

BY_BOTH(sem_freed_by_the_waiter)
{
    EACH_ROUND(i)
    {
        pirn_sem *s = calloc(1, sizeof *s);
        pirn_go(release_it, s, i);
        dawdle(i / 4);
        pirn_sem_acquire(s, 1 + i % 2);
        free(s);
    }
}

struct meeting {
    pirn_barrier b;
    atomic_int refs;
};

static void meet(struct meeting *s, int i)
{
    dawdle(i);
    pirn_barrier_wait(&s->b);
    if (atomic_fetch_sub(&s->refs, 1) == 1)
        free(s);
}

BY_BOTH(barrier_freed_by_the_last)
{
    for (int i = 0; i < ROUNDS / 2; i++) {
        struct meeting *s = calloc(1, sizeof *s);
        pirn_wg wg = {0};
        pirn_barrier_init(&s->b, 3);
        atomic_init(&s->refs, 3);
        pirn_wg_go(&wg, meet, s, i);
        pirn_wg_go(&wg, meet, s, i / 2);
        meet(s, i / 4);
        pirn_wg_wait(&wg);
    }
}

static void done_with_it(pirn_wg *wg, int i)
{
    dawdle(i);
    pirn_wg_done(wg);
}

/* By pirn_wg_done, and by the end of a goroutine. */
BY_BOTH(wg_freed_by_the_waiter)
{
    EACH_ROUND(i)
    {
        pirn_wg *wg = calloc(1, sizeof *wg);
        if (i % 2) {
            pirn_wg_add(wg, 1);
            pirn_go(done_with_it, wg, i);
        } else {
            pirn_wg_go(wg, dawdle, i);
        }
        dawdle(i / 4);
        pirn_wg_wait(wg);
        free(wg);
    }
}

/* --- R9 and R15: channels -------------------------------------------------------------------------------------- */

static void close_it(pirn_chan(int) c, int i)
{
    dawdle(i);
    pirn_chan_close(c); /* an operation under way holds its channel */
}

BY_BOTH(chan_freed_when_closed)
{
    EACH_ROUND(i)
    {
        pirn_chan(int) c = pirn_chan_make(int, i % 3);
        pirn_go(close_it, c, i);
        dawdle(i / 4);
        CHECK(!pirn_chan_recv(c, NULL));
        pirn_chan_release(c);
    }
}

static void receive_it(pirn_chan(int) c, int i)
{
    dawdle(i);
    pirn_chan_get(c);
}

BY_BOTH(chan_freed_by_the_sender)
{
    EACH_ROUND(i)
    {
        pirn_chan(int) c = pirn_chan_make(int, 0);
        pirn_go(receive_it, c, i);
        dawdle(i / 4);
        pirn_chan_send(c, 1);
        pirn_chan_release(c);
    }
}

#define WIDE 6

/* Lets a select go by one of its channels, and has the last reference to all of them. */
static void win_and_release(pirn_chan(int) * chans, int i)
{
    pirn_chan(int) mine[WIDE];
    for (int k = 0; k < WIDE; k++)
        mine[k] = chans[k];
    dawdle(i);
    switch (i / 8 % 3) {
    case 0: pirn_chan_send(mine[i % WIDE], 7); break;
    case 1: pirn_select(PIRN_SEND(mine[i % WIDE], 7), PIRN_RECV(mine[i % WIDE], NULL)); break;
    case 2:
        while (!pirn_chan_try_send(mine[i % WIDE], 7))
            pirn_yield();
    }
    for (int k = 0; k < WIDE; k++)
        pirn_chan_release(mine[(i + k) % WIDE]); /* the losers may still be queued */
}

BY_BOTH(losers_released)
{
    EACH_ROUND(i)
    {
        int v[WIDE];
        pirn_chan(int) *chans = calloc(WIDE, sizeof *chans);
        pirn_case k[WIDE];
        for (int n = 0; n < WIDE; n++)
            chans[n] = pirn_chan_make(int, 0);
        for (int n = 0; n < WIDE; n++)
            k[n] = (pirn_case)PIRN_RECV(chans[n], &v[n]);
        pirn_go(win_and_release, chans, i);
        CHECK_EQ(pirn_selectv(k, WIDE), i % WIDE);
        CHECK_EQ(v[i % WIDE], 7);
        free(chans);
    }
}

/* The same with the losers as senders, and a channel that is named by several cases. */
static void take_and_release(pirn_chan(int) a, pirn_chan(int) b, int i)
{
    dawdle(i);
    CHECK_EQ(pirn_chan_get(a), 1);
    pirn_chan_release(b);
    pirn_chan_release(a);
}

BY_BOTH(losing_senders_released)
{
    EACH_ROUND(i)
    {
        pirn_chan(int) a = pirn_chan_make(int, 0), b = pirn_chan_make(int, 1);
        pirn_chan_send(b, 1);
        pirn_go(take_and_release, a, b, i);
        int k = pirn_select(PIRN_SEND(b, 2), PIRN_SEND(a, 1), PIRN_SEND(b, 3), PIRN_SEND(a, 1));
        CHECK(k == 1 || k == 3);
    }
}

/* --- R1: calls that stay on their thread ------------------------------------------------------------------------ */

static struct {
    pirn_mutex mutex, cond_mutex;
    pirn_rwmutex rw;
    pirn_sem sem;
    pirn_cond cond;
    pirn_chan(int) c, full;
    atomic_bool stop;
    atomic_int ended;
} all;

/* Others keep the objects busy, so that the calls find somebody to let go. */
static void lock_all_the_time(void)
{
    while (!atomic_load(&all.stop)) {
        pirn_mutex_lock(&all.mutex);
        pirn_yield();
        pirn_mutex_unlock(&all.mutex);
        pirn_rwmutex_rlock(&all.rw);
        pirn_yield();
        pirn_rwmutex_runlock(&all.rw);
        pirn_rwmutex_lock(&all.rw);
        pirn_rwmutex_unlock(&all.rw);
        pirn_sem_acquire(&all.sem, 1);
        pirn_yield();
        pirn_sem_release(&all.sem, 1);
    }
    atomic_fetch_add(&all.ended, 1);
}

static void wait_all_the_time(void)
{
    for (;;) {
        pirn_mutex_lock(&all.cond_mutex);
        pirn_cond_wait(&all.cond, &all.cond_mutex);
        pirn_mutex_unlock(&all.cond_mutex);
    }
}

static void receive_all_the_time(void)
{
    for (;;) {
        pirn_select(PIRN_RECV(all.c, NULL), PIRN_RECV(all.full, NULL));
        pirn_yield(); /* else the two hand a P to each other, a whole slice long */
    }
}

static void send_all_the_time(void)
{
    for (;;) {
        pirn_chan_send(all.full, 1);
        pirn_yield();
    }
}

static void nothing(void)
{
}

#define STAYS(call)                                                                                \
    do {                                                                                           \
        call;                                                                                      \
        CHECK_EQ(gettid(), tid);                                                                   \
    } while (0)

static int nothing_much(void)
{
    return 0;
}

static int sleep_long(void)
{
    return pirn_sleep(3600 * PIRN_SEC);
}

/* What is let go in each round, once. */
struct let_go {
    pirn_wg awaited;
    pirn_chan(int) watched;
    pirn_ctx *ctx;
    pirn_group group;
};

/* Each of them, in every state that the object may be in. */
static void call_all(pid_t tid, int i, struct let_go *once)
{
    int v;
    STAYS((void)pirn_chan_try_send(all.c, i));
    STAYS((void)pirn_chan_try_send(all.full, i));
    STAYS((void)pirn_chan_try_recv(all.full, &v));
    STAYS((void)pirn_chan_len(all.full));
    STAYS((void)pirn_chan_cap(all.full));
    STAYS(pirn_chan_release(pirn_chan_retain(all.c)));
    bool got;
    STAYS(got = pirn_mutex_try_lock(&all.mutex));
    if (got)
        STAYS(pirn_mutex_unlock(&all.mutex));
    STAYS(got = pirn_rwmutex_try_lock(&all.rw));
    if (got)
        STAYS(pirn_rwmutex_unlock(&all.rw));
    STAYS(got = pirn_rwmutex_try_rlock(&all.rw));
    if (got)
        STAYS(pirn_rwmutex_runlock(&all.rw));
    STAYS(got = pirn_sem_try_acquire(&all.sem, 1));
    if (got)
        STAYS(pirn_sem_release(&all.sem, 1));
    STAYS(pirn_cond_signal(&all.cond));
    STAYS(pirn_cond_broadcast(&all.cond));
    STAYS(pirn_chan_close(once->watched));
    STAYS(pirn_go(nothing));
    STAYS(pirn_wg_done(&once->awaited));
    STAYS((void)pirn_group_try_go(&once->group, nothing_much)); /* the limit may be reached */
    STAYS((void)pirn_group_try_go(&once->group, sleep_long));
    STAYS(pirn_ctx_cancel(once->ctx, 0));
    STAYS(pirn_group_cancel(&once->group));
    STAYS((void)pirn_group_try_go(&once->group, nothing_much));
    STAYS((void)pirn_id());
    STAYS((void)pirn_now());
    STAYS((void)pirn_num_goroutines());
}

static void await(pirn_wg *wg, pirn_wg *ended)
{
    pirn_wg_wait(wg);
    pirn_wg_done(ended);
}

static void watch(pirn_chan(int) c, pirn_wg *ended)
{
    CHECK(!pirn_chan_recv(c, NULL));
    pirn_wg_done(ended);
}

static void sleep_in(pirn_ctx *ctx, pirn_wg *ended)
{
    pirn_ctx_use(ctx);
    CHECK_EQ(pirn_sleep(3600 * PIRN_SEC), -ECANCELED);
    pirn_wg_done(ended);
}

static void hold_over_calls(int rounds)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t held;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    CHECK_EQ(pthread_mutex_init(&held, &attr), 0);
    for (int i = 0; i < rounds; i++) {
        pirn_wg ended = {0};
        struct let_go once = {.watched = pirn_chan_make(int, 0),
                              .ctx = pirn_ctx_with_cancel(pirn_ctx_background())};
        pirn_wg_add(&once.awaited, 1);
        pirn_wg_add(&ended, 3);
        pirn_go(await, &once.awaited, &ended);
        pirn_go(watch, once.watched, &ended);
        pirn_go(sleep_in, once.ctx, &ended);
        pirn_group_init(&once.group, NULL);
        pirn_group_set_limit(&once.group, 1 + i % 3);
        pirn_group_go(&once.group, sleep_long);
        dawdle(i);
        CHECK_EQ(pthread_mutex_lock(&held), 0);
        call_all(gettid(), i, &once);
        CHECK_EQ(pthread_mutex_unlock(&held), 0);
        pirn_wg_wait(&ended);
        CHECK_EQ(pirn_group_wait(&once.group), -ECANCELED);
        pirn_ctx_release(once.ctx);
        pirn_chan_release(once.watched);
    }
    pthread_mutex_destroy(&held);
    pthread_mutexattr_destroy(&attr);
}

static void hold_mutexes(void)
{
    pirn_wg wg = {0};
    all.c = pirn_chan_make(int, 0);
    all.full = pirn_chan_make(int, 1);
    pirn_sem_init(&all.sem, 1);
    for (int i = 0; i < 3; i++) {
        pirn_go(lock_all_the_time);
        pirn_go(wait_all_the_time);
    }
    pirn_go(receive_all_the_time);
    pirn_go(send_all_the_time);
    for (int i = 0; i < 3; i++)
        pirn_wg_go(&wg, hold_over_calls, TEST_TSAN ? 50 : 500);
    pirn_wg_wait(&wg);
    atomic_store(&all.stop, true);
    while (atomic_load(&all.ended) < 3)
        pirn_yield();
}

TEST_RUN_ATTR(threads_are_kept, PROCS, .timeout = 60)
{
    hold_mutexes();
}

TEST_RUN_ATTR(threads_are_kept_move, MOVES, .timeout = 60)
{
    hold_mutexes();
}
