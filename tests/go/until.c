/* SPDX-License-Identifier: MIT */
/*
 * Calls that end early: by a deadline, or by the current context. What is complete wins over both, and
 * nothing is lost: a value is with the sender or with the receiver, and a signal wakes somebody.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define LONG (3600 * PIRN_SEC)

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        pirn_yield();
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 16;
}

/* --- every call that returns an error code ------------------------------------------------------------------ */

static pirn_mutex mutex;
static pirn_cond cond;
static pirn_chan(int) full, empty;

static int call_sleep(void)
{
    return pirn_sleep(LONG);
}

static int call_sleep_for_ever(void)
{
    return pirn_sleep(PIRN_NEVER);
}

static int call_sleep_until(void)
{
    return pirn_sleep_until(pirn_deadline(LONG));
}

static int call_send(void)
{
    return pirn_chan_send_until(full, 1, PIRN_NEVER);
}

static int call_send_late(void)
{
    return pirn_chan_send_until(full, 1, pirn_deadline(LONG));
}

static int call_recv(void)
{
    int v = 7, err = pirn_chan_recv_until(empty, &v, PIRN_NEVER);
    CHECK_EQ(v, 7);
    return err;
}

static int call_recv_nil(void)
{
    pirn_chan(int) none = NULL;
    return pirn_chan_recv_until(none, NULL, pirn_deadline(LONG));
}

static int call_cond(void)
{
    pirn_mutex_lock(&mutex);
    int err = pirn_cond_wait_until(&cond, &mutex, PIRN_NEVER);
    CHECK(!pirn_mutex_try_lock(&mutex)); /* is locked */
    pirn_mutex_unlock(&mutex);
    return err;
}

static int call_cond_late(void)
{
    pirn_mutex_lock(&mutex);
    int err = pirn_cond_wait_until(&cond, &mutex, pirn_deadline(LONG));
    pirn_mutex_unlock(&mutex);
    return err;
}

static int (*const calls[])(void) = {call_sleep,    call_sleep_for_ever, call_sleep_until,
                                     call_send,     call_send_late,      call_recv,
                                     call_recv_nil, call_cond,           call_cond_late};
enum { CALLS = sizeof calls / sizeof *calls };

static void make_call(int i, pirn_ctx *ctx, atomic_int *result)
{
    pirn_ctx_use(ctx);
    atomic_store(result, calls[i]());
}

static void make_channels(void)
{
    full = pirn_chan_make(int, 0);
    empty = pirn_chan_make(int, 1);
}

static void free_channels(void)
{
    pirn_chan_release(full);
    pirn_chan_release(empty);
}

static void all_calls(pirn_ctx *ctx, pirn_wg *wg, atomic_int result[CALLS])
{
    for (int i = 0; i < CALLS; i++) {
        atomic_store(&result[i], 1);
        pirn_wg_go(wg, make_call, i, ctx, &result[i]);
    }
}

static void check_all(atomic_int result[CALLS], int wanted)
{
    for (int i = 0; i < CALLS; i++)
        CHECK_EQ(atomic_load(&result[i]), wanted);
}

TEST_RUN_ATTR(cancel_reaches_all, PROCS)
{
    make_channels();
    for (int i = 0; i < 20; i++) {
        atomic_int result[CALLS];
        pirn_wg wg = {0};
        pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_ctx *ctx = pirn_ctx_with_cancel(parent);
        all_calls(ctx, &wg, result);
        if (i % 2)
            settle();
        check_all(result, 1);
        pirn_ctx_cancel(i % 3 ? ctx : parent, -EIO);
        pirn_wg_wait(&wg);
        check_all(result, -ECANCELED); /* not the cause */
        pirn_ctx_release(ctx);
        pirn_ctx_release(parent);
    }
    free_channels();
}

TEST_RUN_ATTR(deadline_of_the_context_reaches_all, PROCS)
{
    atomic_int result[CALLS];
    pirn_wg wg = {0};
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 2 * PIRN_MS);
    pirn_ctx *child = pirn_ctx_with_cancel(ctx);
    make_channels();
    all_calls(child, &wg, result);
    pirn_wg_wait(&wg);
    check_all(result, -ETIMEDOUT);
    pirn_ctx_release(child);
    pirn_ctx_release(ctx);
    free_channels();
}

/* There is nobody who could end the wait. */
TEST_RUN_ATTR(at_once_when_cancelled_already, PROCS)
{
    make_channels();
    for (int i = 0; i < 2; i++) {
        pirn_ctx *ctx = i ? pirn_ctx_with_timeout(pirn_ctx_background(), -1)
                          : pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_ctx_cancel(ctx, 0);
        pirn_ctx *before = pirn_ctx_use(ctx);
        for (int k = 0; k < CALLS; k++)
            CHECK_EQ(calls[k](), i ? -ETIMEDOUT : -ECANCELED);
        pirn_ctx_use(before);
        pirn_ctx_release(ctx);
    }
    free_channels();
}

/* --- calls that don't ------------------------------------------------------------------------------------------ */

static pirn_chan(int) quiet;
static pirn_wg quiet_wg;
static pirn_sem quiet_sem;
static pirn_mutex quiet_mutex;

static void not_reached(int which, pirn_ctx *ctx, atomic_int *passed)
{
    int v;
    pirn_ctx_use(ctx);
    switch (which) {
    case 0: pirn_chan_send(quiet, 1); break;
    case 1: pirn_chan_recv(quiet, &v); break;
    case 2: pirn_select(PIRN_RECV(quiet, &v)); break;
    case 3:
        pirn_mutex_lock(&quiet_mutex);
        pirn_mutex_unlock(&quiet_mutex);
        break;
    case 4: pirn_wg_wait(&quiet_wg); break;
    case 5: pirn_sem_acquire(&quiet_sem, 1); break;
    default:
        pirn_mutex_lock(&mutex);
        pirn_cond_wait(&cond, &mutex);
        pirn_mutex_unlock(&mutex);
    }
    atomic_store(passed, 1);
}

static void let_go(int which)
{
    switch (which) {
    case 0: pirn_chan_get(quiet); break;
    case 1:
    case 2: pirn_chan_send(quiet, 1); break;
    case 3: pirn_mutex_unlock(&quiet_mutex); break;
    case 4: pirn_wg_done(&quiet_wg); break;
    case 5: pirn_sem_release(&quiet_sem, 1); break;
    default:
        pirn_mutex_lock(&mutex);
        pirn_cond_signal(&cond);
        pirn_mutex_unlock(&mutex);
    }
}

TEST_RUN_ATTR(cancel_does_not_reach_the_others, PROCS)
{
    quiet = pirn_chan_make(int, 0);
    pirn_mutex_lock(&quiet_mutex);
    pirn_wg_add(&quiet_wg, 1);
    for (int which = 0; which < 7; which++) {
        for (int late = 0; late < (which == 3 || which == 4 ? 1 : 2); late++) {
            atomic_int passed = 0;
            pirn_wg wg = {0};
            pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
            if (late)
                pirn_ctx_cancel(ctx, 0);
            pirn_wg_go(&wg, not_reached, which, ctx, &passed);
            settle();
            pirn_ctx_cancel(ctx, 0);
            settle();
            CHECK_EQ(atomic_load(&passed), 0);
            do {
                let_go(which);
                pirn_yield();
            } while (which == 6 && !atomic_load(&passed)); /* a signal may have come too early */
            pirn_wg_wait(&wg);
            pirn_ctx_release(ctx);
        }
    }
    pirn_chan_release(quiet);
}

TEST_RUN_ATTR(select_says_done_if_asked, PROCS)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS);
    CHECK_EQ(pirn_select(PIRN_RECV(c, NULL), PIRN_DONE(ctx), PIRN_DONE(NULL)), 1);
    pirn_ctx_use(ctx);
    CHECK_EQ(pirn_select(PIRN_RECV(c, NULL), PIRN_DONE(NULL)), 1);
    CHECK_EQ(pirn_select(PIRN_RECV(c, NULL), PIRN_AFTER(0)), 1);
    pirn_ctx_release(ctx);
    pirn_chan_release(c);
}

/* --- what is complete wins ---------------------------------------------------------------------------------------- */

static void send_plain(pirn_chan(int) c, int v)
{
    pirn_chan_send(c, v);
}

static void recv_plain(pirn_chan(int) c, int v)
{
    CHECK_EQ(pirn_chan_get(c), v);
}

static void complete_wins(pirn_ns deadline)
{
    int v;
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 2), u = pirn_chan_make(int, 0);
    CHECK_EQ(pirn_chan_send_until(c, 1, deadline), 0);
    CHECK_EQ(pirn_chan_send_until(c, 2, deadline), 0);
    CHECK_LT(pirn_chan_send_until(c, 3, deadline), 0);
    CHECK_EQ(pirn_chan_recv_until(c, &v, deadline), 0);
    CHECK_EQ(v, 1);
    pirn_chan_close(c);
    CHECK_EQ(pirn_chan_recv_until(c, &v, deadline), 0);
    CHECK_EQ(v, 2);
    CHECK_EQ(pirn_chan_recv_until(c, &v, deadline), -EPIPE);
    CHECK_EQ(v, 0);
    pirn_wg_go(&wg, send_plain, u, 5);
    while (pirn_chan_recv_until(u, &v, deadline)) /* until the partner is there */
        pirn_yield();
    CHECK_EQ(v, 5);
    pirn_wg_go(&wg, recv_plain, u, 6);
    while (pirn_chan_send_until(u, 6, deadline))
        pirn_yield();
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
    pirn_chan_release(u);
}

TEST_RUN_ATTR(complete_wins_over_all, PROCS)
{
    complete_wins(INT64_MIN);
    complete_wins(0);
    complete_wins(pirn_now());
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx_use(ctx);
    pirn_ctx_cancel(ctx, 0);
    complete_wins(PIRN_NEVER);
    complete_wins(0);
    pirn_ctx_release(ctx);
}

/* --- deadlines ------------------------------------------------------------------------------------------------------ */

TEST_RUN_ATTR(time_outs, PROCS)
{
    pirn_chan(int) none = NULL, c = pirn_chan_make(int, 0), *of[] = {&none, &c};
    for (int i = 0; i < 2; i++) {
        int v = 7;
        for (pirn_ns d = 2 * PIRN_MS; d > -3 * PIRN_MS; d -= PIRN_MS) {
            pirn_ns deadline = pirn_now() + d;
            CHECK_EQ(pirn_chan_recv_until(*of[i], &v, deadline), -ETIMEDOUT);
            CHECK_LE(deadline, pirn_now()); /* never early */
            deadline = pirn_now() + d;
            CHECK_EQ(pirn_chan_send_until(*of[i], 1, deadline), -ETIMEDOUT);
            CHECK_LE(deadline, pirn_now());
        }
        CHECK_EQ(v, 7);
        CHECK_EQ(pirn_chan_recv_until(*of[i], NULL, INT64_MIN), -ETIMEDOUT);
    }
    pirn_mutex_lock(&mutex);
    for (pirn_ns d = 2 * PIRN_MS; d > -3 * PIRN_MS; d -= PIRN_MS) {
        pirn_ns deadline = pirn_now() + d;
        CHECK_EQ(pirn_cond_wait_until(&cond, &mutex, deadline), -ETIMEDOUT);
        CHECK_LE(deadline, pirn_now());
        CHECK(!pirn_mutex_try_lock(&mutex));
    }
    pirn_mutex_unlock(&mutex);
    pirn_chan_release(c);
}

static void recv_until_closed(pirn_chan(int) c, pirn_ns deadline)
{
    int v = 7;
    CHECK_EQ(pirn_chan_recv_until(c, &v, deadline), -EPIPE);
    CHECK_EQ(v, 0);
}

TEST_RUN_ATTR(close_ends_a_receive, PROCS)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, recv_until_closed, c, i % 2 ? PIRN_NEVER : pirn_deadline(LONG));
    settle();
    pirn_chan_close(c);
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
}

/* --- nothing is lost: channels ---------------------------------------------------------------------------------------- */

enum { PARTIES = 6 };
static atomic_llong sent_sum, got_sum, sent_n, got_n, gave_up;

/* The end may come by the deadline of the call, by the context's, or by a cancel. */
static pirn_ns patience(unsigned *seed, pirn_ctx **ctx)
{
    pirn_ns ns = next(seed) % 4 == 0 ? 0 : next(seed) & 0x7fff;
    *ctx = NULL;
    if (next(seed) % 4 || !pirn_id()) /* a thread has no current context */
        return pirn_deadline(ns);
    *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), ns);
    return PIRN_NEVER;
}

static void impatient_sender(pirn_chan(long) c, unsigned seed, int times)
{
    for (int i = 1; i <= times; i++) {
        pirn_ctx *ctx, *before = NULL;
        pirn_ns deadline = patience(&seed, &ctx);
        if (ctx)
            before = pirn_ctx_use(ctx);
        int err = pirn_chan_send_until(c, i, deadline);
        if (ctx) {
            pirn_ctx_use(before);
            pirn_ctx_release(ctx);
        }
        if (err == 0) {
            atomic_fetch_add(&sent_sum, i);
            atomic_fetch_add(&sent_n, 1);
        } else {
            CHECK_EQ(err, -ETIMEDOUT);
            atomic_fetch_add(&gave_up, 1);
            if (next(&seed) % 8 == 0)
                pirn_yield();
        }
    }
}

static void impatient_receiver(pirn_chan(long) c, unsigned seed)
{
    for (int err = 0; err != -EPIPE;) {
        long v = -1;
        pirn_ctx *ctx, *before = NULL;
        pirn_ns deadline = patience(&seed, &ctx);
        if (ctx)
            before = pirn_ctx_use(ctx);
        err = pirn_chan_recv_until(c, &v, deadline);
        if (ctx) {
            pirn_ctx_use(before);
            pirn_ctx_release(ctx);
        }
        if (err == 0) {
            atomic_fetch_add(&got_sum, v);
            atomic_fetch_add(&got_n, 1);
        } else if (err == -ETIMEDOUT) {
            CHECK_EQ(v, -1);
            atomic_fetch_add(&gave_up, 1);
        } else {
            CHECK_EQ(err, -EPIPE);
        }
    }
}

static void check_sums(void)
{
    CHECK_EQ(atomic_load(&sent_n), atomic_load(&got_n));
    CHECK_EQ(atomic_load(&sent_sum), atomic_load(&got_sum));
}

TEST_RUN_ATTR(sent_once_received_once, PROCS, .timeout = 60)
{
    for (int cap = 0; cap < 4; cap += 1 + cap) {
        pirn_wg senders = {0}, receivers = {0};
        pirn_chan(long) c = pirn_chan_make(long, cap);
        for (unsigned i = 0; i < PARTIES; i++) {
            pirn_wg_go(&senders, impatient_sender, c, i, TEST_TSAN ? 200 : 1500);
            pirn_wg_go(&receivers, impatient_receiver, c, i + 100);
        }
        pirn_wg_wait(&senders);
        pirn_chan_close(c);
        pirn_wg_wait(&receivers);
        check_sums();
        pirn_chan_release(c);
    }
}

/* A cancel that comes at the same time as the partner. */
static void send_in(pirn_ctx *ctx, pirn_chan(long) c, atomic_int *result)
{
    pirn_ctx_use(ctx);
    atomic_store(result, pirn_chan_send_until(c, 9, PIRN_NEVER));
}

static void cancel_now(pirn_ctx *ctx)
{
    pirn_ctx_cancel(ctx, 0);
}

TEST_RUN_ATTR(cancel_and_partner_at_once, PROCS)
{
    pirn_chan(long) c = pirn_chan_make(long, 0);
    for (int i = 0; i < (TEST_TSAN ? 300 : 2000); i++) {
        atomic_int result = 1;
        long v = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_wg_go(&wg, send_in, ctx, c, &result);
        if (i % 2)
            pirn_yield();
        pirn_wg_go(&wg, cancel_now, ctx);
        int err = -ETIMEDOUT;
        while (atomic_load(&result) == 1 && err) {
            err = pirn_chan_recv_until(c, &v, pirn_deadline(i % 5 * PIRN_US));
            pirn_yield();
        }
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&result), err == 0 ? 0 : -ECANCELED);
        CHECK_EQ(v, err == 0 ? 9 : 0);
        pirn_ctx_release(ctx);
    }
    pirn_chan_release(c);
}

/* --- nothing is lost: signals -------------------------------------------------------------------------------------------- */

static int waiting, woken; /* under the mutex */

static void patient(void)
{
    pirn_mutex_lock(&mutex);
    waiting++;
    CHECK_EQ(pirn_cond_wait_until(&cond, &mutex, PIRN_NEVER), 0);
    waiting--;
    woken++;
    pirn_mutex_unlock(&mutex);
}

static void impatient(unsigned seed, pirn_ctx *ctx)
{
    if (ctx)
        pirn_ctx_use(ctx);
    pirn_mutex_lock(&mutex);
    int err =
        pirn_cond_wait_until(&cond, &mutex, ctx ? PIRN_NEVER : pirn_deadline(next(&seed) & 0x3fff));
    CHECK(err == 0 || err == (ctx ? -ECANCELED : -ETIMEDOUT));
    woken += err == 0;
    pirn_mutex_unlock(&mutex);
}

static int woken_now(void)
{
    pirn_mutex_lock(&mutex);
    int n = woken;
    pirn_mutex_unlock(&mutex);
    return n;
}

static void signal_in_turn(int *signals, unsigned *seed)
{
    pirn_mutex_lock(&mutex);
    CHECK_EQ(waiting, 1); /* so each signal finds somebody */
    pirn_cond_signal(&cond);
    pirn_mutex_unlock(&mutex);
    ++*signals;
    if (next(seed) % 2)
        pirn_yield();
}

/*
 * Impatient ones come first in the queue, and end at about the time of the signal; a patient one stands
 * behind them. One signal, one of them: if it went to one that has ended, nobody would be woken.
 */
static void rounds_of_signals(int rounds, bool by_ctx)
{
    unsigned seed = 1;
    int signals = 0;
    for (int i = 0; i < rounds; i++) {
        pirn_wg wg = {0};
        pirn_ctx *ctx = by_ctx ? pirn_ctx_with_cancel(pirn_ctx_background()) : NULL;
        for (int k = 0; k < 3; k++)
            pirn_wg_go(&wg, impatient, next(&seed), ctx);
        pirn_yield();
        pirn_wg_go(&wg, patient);
        for (bool there = false; !there; pirn_yield()) {
            pirn_mutex_lock(&mutex);
            there = waiting;
            pirn_mutex_unlock(&mutex);
        }
        if (by_ctx && i % 2)
            pirn_wg_go(&wg, cancel_now, ctx);
        else if (by_ctx)
            pirn_ctx_cancel(ctx, 0); /* they are chosen, and have not left the queue yet */
        int before = signals;
        signal_in_turn(&signals, &seed);
        while (woken_now() != before + 1)
            pirn_yield();
        for (int wanted = 1; wanted;) { /* the patient one goes last */
            pirn_mutex_lock(&mutex);
            wanted = waiting;
            pirn_mutex_unlock(&mutex);
            if (wanted) {
                int n = signals;
                signal_in_turn(&signals, &seed);
                while (woken_now() != n + 1)
                    pirn_yield();
            }
        }
        if (by_ctx)
            pirn_ctx_cancel(ctx, 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(woken, signals);
        if (by_ctx)
            pirn_ctx_release(ctx);
    }
}

TEST_RUN_ATTR(no_signal_is_lost_to_a_time_out, PROCS, .timeout = 60)
{
    rounds_of_signals(TEST_TSAN ? 200 : 1000, false);
}

TEST_RUN_ATTR(no_signal_is_lost_to_a_cancel, PROCS, .timeout = 60)
{
    rounds_of_signals(TEST_TSAN ? 200 : 1000, true);
}

/* Broadcast: all that wait, and none twice. */
TEST_RUN_ATTR(broadcast_and_time_outs, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 50 : 300); i++) {
        pirn_wg wg = {0};
        woken = 0;
        for (unsigned k = 0; k < 5; k++)
            pirn_wg_go(&wg, impatient, (unsigned)i + k, NULL);
        pirn_wg_go(&wg, patient);
        for (bool there = false; !there; pirn_yield()) {
            pirn_mutex_lock(&mutex);
            there = waiting;
            pirn_mutex_unlock(&mutex);
        }
        pirn_cond_broadcast(&cond);
        pirn_wg_wait(&wg);
        CHECK_GE(woken, 1);
        CHECK_LE(woken, 6);
        CHECK_EQ(waiting, 0);
    }
}

/* --- other threads ---------------------------------------------------------------------------------------------------------- */

static pirn_chan(long) shared;

static void *thread_sends(void *arg)
{
    impatient_sender(shared, (unsigned)(uintptr_t)arg, TEST_TSAN ? 100 : 500);
    return NULL;
}

static void *thread_receives(void *arg)
{
    impatient_receiver(shared, (unsigned)(uintptr_t)arg);
    return NULL;
}

TEST_ATTR(threads_sent_once_received_once, PROCS, .timeout = 60)
{
    pthread_t s[3], r[3];
    CHECK_EQ(pirn_start(NULL), 0);
    for (int cap = 0; cap < 3; cap += 2) {
        pirn_wg senders = {0}, receivers = {0};
        shared = pirn_chan_make(long, cap);
        for (unsigned i = 0; i < 3; i++) {
            pthread_create(&s[i], NULL, thread_sends, (void *)(uintptr_t)i);
            pthread_create(&r[i], NULL, thread_receives, (void *)(uintptr_t)(i + 10));
            pirn_wg_go(&senders, impatient_sender, shared, i + 20, TEST_TSAN ? 100 : 500);
            pirn_wg_go(&receivers, impatient_receiver, shared, i + 30);
        }
        pirn_wg_wait(&senders);
        for (int i = 0; i < 3; i++)
            pthread_join(s[i], NULL);
        pirn_chan_close(shared);
        pirn_wg_wait(&receivers);
        for (int i = 0; i < 3; i++)
            pthread_join(r[i], NULL);
        check_sums();
        pirn_chan_release(shared);
    }
    CHECK_EQ(pirn_stop(), 0);
}

enum { VALUE, QUIT, LATE };

static void *thread_selects(void *arg)
{
    pirn_chan(int) quit = arg;
    unsigned seed = 3;
    long v;
    for (;;) {
        switch (pirn_select([VALUE] = PIRN_RECV(shared, &v), [QUIT] = PIRN_RECV(quit, NULL),
                            [LATE] = PIRN_AFTER(next(&seed) & 0x3fff))) {
        case VALUE:
            atomic_fetch_add(&got_sum, v);
            atomic_fetch_add(&got_n, 1);
            break;
        case LATE: break;
        default: return NULL;
        }
    }
}

TEST_ATTR(threads_select, PROCS, .timeout = 60)
{
    pthread_t t[3];
    pirn_wg senders = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    pirn_chan(int) quit = pirn_chan_make(int, 0);
    shared = pirn_chan_make(long, 0);
    for (unsigned i = 0; i < 3; i++) {
        pthread_create(&t[i], NULL, thread_selects, quit);
        pirn_wg_go(&senders, impatient_sender, shared, i, TEST_TSAN ? 200 : 1000);
    }
    pirn_wg_wait(&senders);
    pirn_chan_close(quit);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    check_sums();
    pirn_chan_release(shared);
    pirn_chan_release(quit);
    CHECK_EQ(pirn_stop(), 0);
}

static int tokens; /* under the mutex; each is put there with a signal */
static atomic_int taken;

static void take_tokens(unsigned seed, int n)
{
    for (int i = 0; i < n; i++) {
        pirn_mutex_lock(&mutex);
        while (tokens == 0) {
            int err = pirn_cond_wait_until(&cond, &mutex, pirn_deadline(next(&seed) & 0x7fff));
            CHECK(err == 0 || err == -ETIMEDOUT);
            CHECK(!pirn_mutex_try_lock(&mutex));
        }
        tokens--;
        pirn_mutex_unlock(&mutex);
        atomic_fetch_add(&taken, 1);
    }
}

static void *thread_takes(void *arg)
{
    take_tokens((unsigned)(uintptr_t)arg, 200);
    return NULL;
}

TEST_ATTR(threads_wait_on_a_condition, PROCS, .timeout = 60)
{
    pthread_t t[3];
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        pthread_create(&t[i], NULL, thread_takes, (void *)(uintptr_t)i);
        pirn_wg_go(&wg, take_tokens, i + 10, 200);
    }
    for (int i = 0; i < 6 * 200; i++) {
        pirn_mutex_lock(&mutex);
        tokens++;
        pirn_mutex_unlock(&mutex);
        pirn_cond_signal(&cond);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&taken), 6 * 200);
    CHECK_EQ(tokens, 0);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- without a runtime ------------------------------------------------------------------------------------------------------- */

static pirn_ctx *kept;
static atomic_int results[CALLS];

static int leave_all_calls(void *arg)
{
    (void)arg;
    static pirn_wg wg;
    wg = (pirn_wg){0};
    all_calls(kept, &wg, results);
    settle();
    return 0;
}

static int wait_on_cond(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    woken = 0;
    pirn_wg_go(&wg, patient);
    for (bool there = false; !there; pirn_yield()) {
        pirn_mutex_lock(&mutex);
        there = waiting;
        pirn_mutex_unlock(&mutex);
    }
    pirn_cond_signal(&cond);
    pirn_wg_wait(&wg);
    CHECK_EQ(woken, 1);
    return 0;
}

/* Those that wait are dropped with the runtime; what they waited for lives on. */
TEST_ATTR(dropped, PROCS)
{
    make_channels();
    for (int i = 0; i < 10; i++) {
        kept = pirn_ctx_with_cancel(pirn_ctx_background());
        CHECK_EQ(pirn_run(leave_all_calls, NULL), 0);
        check_all(results, 1);
        if (i % 2)
            pirn_ctx_cancel(kept, 0);
        pirn_cond_broadcast(&cond);
        CHECK_EQ(pirn_chan_try_recv(full, NULL), 0);
        if (pirn_mutex_try_lock(&mutex)) /* or one was dropped while it held it */
            pirn_mutex_unlock(&mutex);
        else
            mutex = (pirn_mutex){0};
        CHECK_EQ(pirn_run(wait_on_cond, NULL), 0);
        pirn_ctx_release(kept);
        check_all(results, 1);
    }
    free_channels();
}

/* Without a runtime what does not wait works. */
TEST(without_a_runtime)
{
    int v;
    pirn_chan(int) c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_chan_send_until(c, 3, 0), 0);
    CHECK_EQ(pirn_chan_send_until(c, 4, 0), -ETIMEDOUT);
    CHECK_EQ(pirn_chan_recv_until(c, &v, PIRN_NEVER), 0);
    CHECK_EQ(v, 3);
    CHECK_EQ(pirn_chan_recv_until(c, &v, pirn_now()), -ETIMEDOUT);
    pirn_mutex_lock(&mutex);
    CHECK_EQ(pirn_cond_wait_until(&cond, &mutex, pirn_now()), -ETIMEDOUT);
    pirn_mutex_unlock(&mutex);
    CHECK_EQ(pirn_sleep(PIRN_MS), 0);
    pirn_chan_release(c);
}
