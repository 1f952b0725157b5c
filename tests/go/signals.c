/* SPDX-License-Identifier: MIT */
/* Contexts that signals cancel (conformance 146). */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

static pirn_ctx *watch(int sig)
{
    return pirn_ctx_with_signals(pirn_ctx_background(), &sig, 1);
}

static bool is_default(int sig)
{
    struct sigaction sa;
    sigaction(sig, NULL, &sa);
    return sa.sa_handler == SIG_DFL;
}

TEST_RUN_ATTR(signal_cancels, PROCS)
{
    for (int i = 0; i < 20; i++) {
        pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1, SIGTERM}, 2);
        CHECK_EQ(pirn_ctx_err(ctx), 0);
        CHECK(!is_default(SIGTERM));
        kill(getpid(), i % 2 ? SIGUSR1 : SIGTERM);
        pirn_chan_recv(pirn_ctx_done(ctx), NULL);
        CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED);
        CHECK_EQ(pirn_ctx_cause(ctx), -EINTR);
        pirn_ctx_release(ctx);
        CHECK(is_default(SIGUSR1) && is_default(SIGTERM));
    }
}

/* A context that is made while a signal cancels others waits for the next signal. */
TEST_RUN_ATTR(signal_cancels_once, PROCS)
{
    for (int i = 0; i < 500; i++) {
        pirn_ctx *first = watch(SIGUSR1);
        raise(SIGUSR1);
        pirn_chan_recv(pirn_ctx_done(first), NULL);
        pirn_ctx *next = watch(SIGUSR1);
        for (int j = 0; j < 20; j++)
            pirn_yield();
        CHECK_EQ(pirn_ctx_err(next), 0);
        pirn_ctx_release(next);
        pirn_ctx_release(first);
    }
}

/* The same for one that is made after a signal has come, for somebody who has gone. */
TEST_RUN_ATTR(signal_of_the_past, PROCS)
{
    for (int i = 0; i < 500; i++) {
        pirn_ctx *first = watch(SIGUSR1);
        raise(SIGUSR1);
        pirn_ctx_release(first);
        pirn_ctx *next = watch(SIGUSR1);
        for (int j = 0; j < 20; j++)
            pirn_yield();
        CHECK_EQ(pirn_ctx_err(next), 0);
        pirn_ctx_release(next);
    }
}

static void sleeps_in(pirn_ctx *ctx)
{
    pirn_ctx_use(ctx);
    CHECK_EQ(pirn_sleep(1000 * PIRN_SEC), -ECANCELED);
}

/* All contexts that watch it, with those below them; nobody else. */
TEST_RUN_ATTR(all_who_watch, PROCS)
{
    pirn_ctx *a = watch(SIGUSR1), *b = watch(SIGUSR1), *other = watch(SIGUSR2);
    pirn_ctx *below = pirn_ctx_with_cancel(b);
    pirn_wg wg = {0};
    pirn_wg_go(&wg, sleeps_in, a);
    pirn_wg_go(&wg, sleeps_in, below);
    kill(getpid(), SIGUSR1);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_ctx_err(b), -ECANCELED);
    CHECK_EQ(pirn_ctx_err(other), 0);
    pirn_ctx_release(below);
    pirn_ctx_release(b);
    pirn_ctx_release(a);
    CHECK(is_default(SIGUSR1) && !is_default(SIGUSR2));
    pirn_ctx_release(other);
    CHECK(is_default(SIGUSR2));
}

static atomic_int own;

static void count(int sig)
{
    (void)sig;
    atomic_fetch_add(&own, 1);
}

/* The program's handler is back when the last has gone, also if the parent was cancelled. */
TEST_RUN_ATTR(handler_comes_back, PROCS)
{
    struct sigaction sa = {.sa_handler = count, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGUSR1, &sa, NULL);
    pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *ctx = pirn_ctx_with_signals(parent, (int[]){SIGUSR1}, 1);
    raise(SIGUSR1);
    pirn_chan_recv(pirn_ctx_done(ctx), NULL);
    CHECK_EQ(atomic_load(&own), 0);
    pirn_ctx_release(ctx);
    raise(SIGUSR1);
    CHECK_EQ(atomic_load(&own), 1);
    ctx = pirn_ctx_with_signals(parent, (int[]){SIGUSR1}, 1);
    pirn_ctx_cancel(parent, 0);
    CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED);
    raise(SIGUSR1);
    CHECK_EQ(atomic_load(&own), 2);
    pirn_ctx_release(ctx);
    ctx = pirn_ctx_with_signals(parent, (int[]){SIGUSR1}, 1); /* cancelled from the beginning */
    CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED);
    raise(SIGUSR1);
    CHECK_EQ(atomic_load(&own), 3);
    pirn_ctx_release(ctx);
    pirn_ctx_release(parent);
}

/* While everybody computes; to a thread of the program's own; again and again. */
static atomic_int stop;

static void computes(void)
{
    while (!atomic_load(&stop)) {
        for (volatile int i = 0; i < 1000; i++) {
        }
        pirn_yield();
    }
}

static void *signals(void *arg)
{
    pirn_ctx *ctx = arg;
    while (!pirn_ctx_err(ctx)) {
        kill(getpid(), SIGUSR2);
        usleep(100);
    }
    return NULL;
}

TEST_RUN_ATTR(under_load, PROCS)
{
    pirn_wg wg = {0};
    atomic_store(&stop, 0);
    signal(SIGUSR2, count);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, computes);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        pirn_ctx *ctx = watch(SIGUSR2);
        pthread_create(&thread, NULL, signals, ctx);
        pirn_chan_recv(pirn_ctx_done(ctx), NULL);
        pthread_join(thread, NULL);
        pirn_ctx_release(ctx);
    }
    atomic_store(&stop, 1);
    pirn_wg_wait(&wg);
}

static void watches_for_ever(void)
{
    pirn_ctx *ctx = watch(SIGUSR1);
    pirn_chan_recv(pirn_ctx_done(ctx), NULL);
}

static pirn_ctx *kept;

static int leaves_watchers(void *arg)
{
    (void)arg;
    kept = watch(SIGUSR2);
    pirn_go(watches_for_ever);
    while (is_default(SIGUSR1))
        pirn_yield();
    return 0;
}

static int cancelled_by_usr2(void *arg)
{
    (void)arg;
    pirn_ctx *other = watch(SIGUSR1); /* from here on both are watched again */
    CHECK(!is_default(SIGUSR2));
    raise(SIGUSR2);
    pirn_chan_recv(pirn_ctx_done(kept), NULL);
    pirn_ctx_release(other);
    return 0;
}

/* The runtime ends with contexts that nobody will release: the signals are the program's again. */
TEST_ATTR(end_with_watchers, PROCS)
{
    CHECK_EQ(pirn_run(leaves_watchers, NULL), 0);
    CHECK(is_default(SIGUSR1) && is_default(SIGUSR2));
    CHECK_EQ(pirn_run(cancelled_by_usr2, NULL), 0);
    CHECK(is_default(SIGUSR1) && is_default(SIGUSR2));
    pirn_ctx_release(kept);
}
