/* SPDX-License-Identifier: MIT */
/*
 * Handlers that the program installs for a signal while pirn watches or ignores it: they stay when pirn has done
 * with the signal, and are what comes back after the next time.
 */
#include <signal.h>

#include "go/busy.h"

typedef pirn_chan(int) ints;

static atomic_int calls;

static void counts(int sig)
{
    (void)sig;
    atomic_fetch_add(&calls, 1);
}

static void install(void)
{
    struct sigaction sa = {.sa_handler = counts, .sa_flags = SA_RESTART | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
}

static bool is_installed(void)
{
    struct sigaction sa;
    CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
    return sa.sa_handler == counts;
}

static void check_called(void)
{
    int before = atomic_load(&calls);
    CHECK(is_installed());
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(atomic_load(&calls), before + 1);
}

static ints watched(void)
{
    ints c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    return c;
}

static void stop_and_release(ints c)
{
    pirn_signal_stop(c);
    pirn_chan_release(c);
}

static void install_default(void)
{
    CHECK(signal(SIGUSR1, SIG_DFL) != SIG_ERR);
}

TEST_RUN_ATTR(stays_after_a_stop, PROCS)
{
    ints c = watched();
    install();
    stop_and_release(c);
    check_called();
    stop_and_release(watched()); /* and it comes back */
    check_called();
}

TEST_RUN_ATTR(stays_after_a_reset, PROCS)
{
    ints c = watched();
    install();
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    check_called();
    stop_and_release(c);
    check_called();
}

TEST_RUN_ATTR(stays_after_a_context, PROCS)
{
    pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1}, 1);
    install();
    pirn_ctx_release(ctx);
    check_called();
}

/* What is ignored meanwhile is that one, and so it comes back. */
TEST_RUN_ATTR(stays_after_an_ignore, PROCS)
{
    ints c = watched();
    install();
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
    CHECK(pirn_signal_ignored(SIGUSR1));
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    check_called();
    stop_and_release(c);
}

/* --- beyond the runtime ------------------------------------------------------------------------------ */

static ints kept;

static int leaves_it_watched(void *arg)
{
    kept = watched();
    install();
    return arg != NULL;
}

TEST_ATTR(stays_after_the_runtime, PROCS)
{
    CHECK_EQ(pirn_run(leaves_it_watched, NULL), 0);
    check_called();
    stop_and_release(kept);
    check_called();
}

static int ignores(void *arg)
{
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
    CHECK(pirn_signal_ignored(SIGUSR1));
    return arg != NULL;
}

static int watches_once(void *arg)
{
    stop_and_release(watched());
    return arg != NULL;
}

/* Of all that was there before, the last counts. */
TEST_ATTR(installed_after_an_ignore, PROCS)
{
    install_default();
    CHECK_EQ(pirn_run(ignores, NULL), 0);
    install();
    CHECK_EQ(pirn_run(watches_once, NULL), 0);
    check_called();
    CHECK_EQ(pirn_run(ignores, NULL), 0);
    install();
    CHECK_EQ(pirn_run(ignores, NULL), 0); /* again, not still */
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    check_called();
}

/* --- one that calls pirn's ----------------------------------------------------------------------------- */

static struct sigaction before_mine;

static void counts_and_calls_on(int sig, siginfo_t *info, void *context)
{
    counts(sig);
    if (before_mine.sa_flags & SA_SIGINFO)
        before_mine.sa_sigaction(sig, info, context);
}

/* While pirn watches it goes on to that; afterwards it is not sent round for ever. */
TEST_RUN_ATTR(calls_the_one_before, PROCS)
{
    if (TEST_TSAN)
        SKIP("TSan calls a handler only when its thread calls a function that TSan knows");
    ints c = watched();
    struct sigaction sa = {.sa_sigaction = counts_and_calls_on,
                           .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGUSR1, &sa, &before_mine), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(pirn_chan_get(c), SIGUSR1);
    pirn_signal_stop(c);
    for (int i = 2; i <= 5; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(atomic_load(&calls), i);
    }
    CHECK_EQ(pirn_chan_len(c), 0);
    pirn_chan_release(c);
    install_default();
}
