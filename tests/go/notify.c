/* SPDX-License-Identifier: MIT */
/*
 * Signals that are sent to channels (conformance 144, 145, 147). Left out: TestSignalTrace, since there is no
 * tracer.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define LONG (20 * PIRN_SEC)

typedef pirn_chan(int) ints;

/* valgrind 3.19: m_signals.c, async_signalhandler; syswrap-main.c, vgPlain_client_syscall. */
static void skip_if_fault_signals_break_it(void)
{
    if (test_on_valgrind()) {
        SKIP("valgrind fails on an assertion of its own when somebody sends it a signal of faults");
    }
}

static void send_self(int sig)
{
    CHECK_EQ(kill(getpid(), sig), 0);
}

static int next_of(ints c)
{
    int sig = 0;
    CHECK_EQ(pirn_chan_recv_until(c, &sig, pirn_deadline(LONG)), 0);
    return sig;
}

static ints notified(int sig)
{
    ints c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_signal_notify(c, sig), 0);
    return c;
}

static void stop_and_release(ints c)
{
    pirn_signal_stop(c);
    pirn_chan_release(c);
}

static bool has_action(int sig, void (*handler)(int))
{
    struct sigaction sa;
    CHECK_EQ(sigaction(sig, NULL, &sa), 0);
    return sa.sa_handler == handler;
}

/* The program's own handler: how often, and for a signal from somewhere else. */
static atomic_int own, strange;

static void count(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    atomic_fetch_add(&own, 1);
    atomic_fetch_add(&strange, info->si_pid != getpid());
}

static bool is_counted(int sig)
{
    struct sigaction sa;
    CHECK_EQ(sigaction(sig, NULL, &sa), 0);
    return sa.sa_sigaction == count;
}

static void count_signal(int sig)
{
    struct sigaction sa = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    CHECK_EQ(sigaction(sig, &sa, NULL), 0);
    atomic_store(&own, 0);
    atomic_store(&strange, 0);
}

/* --- what is sent to whom ------------------------------------------------------------------------ */

TEST_RUN_ATTR(signals_arrive, PROCS)
{
    ints c = notified(SIGHUP);
    for (int i = 0; i < 50; i++) {
        send_self(SIGHUP);
        CHECK_EQ(next_of(c), SIGHUP);
    }
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    send_self(SIGUSR1);
    CHECK_EQ(next_of(c), SIGUSR1);
    send_self(SIGHUP);
    CHECK_EQ(next_of(c), SIGHUP);
    stop_and_release(c);
    CHECK(has_action(SIGHUP, SIG_DFL) && has_action(SIGUSR1, SIG_DFL));
}

TEST_RUN_ATTR(two_channels, PROCS)
{
    ints both = notified(SIGHUP), hup = notified(SIGHUP), other = notified(SIGUSR2);
    CHECK_EQ(pirn_signal_notify(both, SIGUSR1), 0);
    for (int i = 0; i < 50; i++) {
        send_self(SIGHUP);
        CHECK_EQ(next_of(both), SIGHUP);
        CHECK_EQ(next_of(hup), SIGHUP);
        send_self(SIGUSR1);
        CHECK_EQ(next_of(both), SIGUSR1);
    }
    pirn_signal_stop(both);
    CHECK(!has_action(SIGHUP, SIG_DFL) && has_action(SIGUSR1, SIG_DFL));
    send_self(SIGHUP);
    CHECK_EQ(next_of(hup), SIGHUP);
    CHECK_EQ(pirn_chan_len(both), 0);
    CHECK_EQ(pirn_chan_len(other), 0);
    pirn_chan_release(both);
    stop_and_release(hup);
    CHECK(has_action(SIGHUP, SIG_DFL));
    stop_and_release(other);
}

TEST_RUN_ATTR(twice_is_once, PROCS)
{
    ints c = pirn_chan_make(int, 8);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    raise(SIGUSR1);
    CHECK_EQ(next_of(c), SIGUSR1);
    raise(SIGUSR1);
    pirn_signal_stop(c); /* what has come is there when it returns */
    CHECK_EQ(pirn_chan_len(c), 1);
    CHECK(has_action(SIGUSR1, SIG_DFL));
    pirn_signal_stop(c);
    pirn_chan_release(c);
}

TEST_RUN_ATTR(a_full_channel_misses_it, PROCS)
{
    ints full = notified(SIGUSR1), none = pirn_chan_make(int, 0), c = notified(SIGUSR1);
    CHECK_EQ(pirn_signal_notify(none, SIGUSR1), 0);
    pirn_chan_send(full, 77);
    for (int i = 0; i < 20; i++) {
        send_self(SIGUSR1);
        CHECK_EQ(next_of(c), SIGUSR1);
    }
    stop_and_release(none);
    stop_and_release(c);
    pirn_signal_stop(full);
    CHECK_EQ(next_of(full), 77);
    CHECK_EQ(pirn_chan_len(full), 0);
    pirn_chan_release(full);
}

static void receives(ints c, pirn_wg *ready)
{
    pirn_wg_done(ready);
    CHECK_EQ(pirn_chan_get(c), SIGUSR1);
}

static atomic_int ended;

static void *storm(void *arg)
{
    int sig = *(int *)arg;
    while (!atomic_load(&ended)) {
        send_self(sig);
        usleep(50);
    }
    return NULL;
}

static pthread_t start_storm(int *sig)
{
    pthread_t thread;
    atomic_store(&ended, 0);
    CHECK_EQ(pthread_create(&thread, NULL, storm, sig), 0);
    return thread;
}

static void end_storm(pthread_t thread)
{
    atomic_store(&ended, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* For good: what a storm has sent last may still be on its way to a thread when all is over. */
static void ignore_the_rest(int sig)
{
    signal(sig, SIG_IGN);
}

/* Without a buffer it reaches who waits; as many of them as signals come. */
TEST_RUN_ATTR(without_a_buffer, PROCS)
{
    int sig = SIGUSR1;
    pirn_wg wg = {0}, ready = {0};
    ints c = pirn_chan_make(int, 0);
    ignore_the_rest(sig);
    CHECK_EQ(pirn_signal_notify(c, sig), 0);
    pirn_wg_add(&ready, 5);
    for (int i = 0; i < 5; i++)
        pirn_wg_go(&wg, receives, c, &ready);
    pirn_wg_wait(&ready);
    pthread_t thread = start_storm(&sig);
    pirn_wg_wait(&wg);
    end_storm(thread);
    stop_and_release(c);
}

/* In a select, beside other things. */
TEST_RUN_ATTR(in_a_select, PROCS)
{
    ints c = notified(SIGUSR1), other = pirn_chan_make(int, 0);
    int v = 0;
    CHECK_EQ(pirn_select(PIRN_RECV(c, &v), PIRN_AFTER(PIRN_MS)), 1);
    send_self(SIGUSR1);
    CHECK_EQ(pirn_select(PIRN_RECV(other, &v), PIRN_RECV(c, &v), PIRN_AFTER(LONG)), 1);
    CHECK_EQ(v, SIGUSR1);
    stop_and_release(c);
    pirn_chan_release(other);
}

TEST_RUN_ATTR(beside_a_context, PROCS)
{
    ints c = notified(SIGUSR1);
    pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1, SIGUSR2}, 2);
    send_self(SIGUSR1);
    CHECK_EQ(next_of(c), SIGUSR1);
    pirn_chan_recv(pirn_ctx_done(ctx), NULL);
    pirn_ctx_release(ctx);
    CHECK(has_action(SIGUSR2, SIG_DFL));
    send_self(SIGUSR1);
    CHECK_EQ(next_of(c), SIGUSR1);
    stop_and_release(c);
}

/* The notify holds the channel. */
TEST_RUN_ATTR(the_channel_is_kept, PROCS)
{
    size_t before = 0;
    for (int i = 0; i < 300; i++) {
        ints c = pirn_chan_make(int, 256); /* large beside what a thread more would take */
        CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
        CHECK_EQ(pirn_signal_notify(c, SIGUSR2), 0);
        pirn_chan_release(c);
        send_self(SIGUSR2);
        CHECK_EQ(next_of(c), SIGUSR2);
        if (i % 2) {
            pirn_signal_stop(c);
        } else {
            CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
            raise(SIGUSR2);
            CHECK_EQ(next_of(c), SIGUSR2);
            CHECK_EQ(pirn_signal_ignore(SIGUSR2), 0);
            CHECK_EQ(pirn_signal_reset(SIGUSR2), 0);
        }
        if (i == 99)
            before = test_allocated();
    }
    CHECK_LE(test_allocated(), before + 200 * 256);
}

static int each_signal(void *arg)
{
    (void)arg;
    ints c = pirn_chan_make(int, 64);
    int caught = 0;
    for (int sig = 1; sig <= 64; sig++) {
        int err = pirn_signal_notify(c, sig);
        bool cant =
            sig == SIGKILL || sig == SIGSTOP || (sig > 31 && sig < SIGRTMIN) || sig > SIGRTMAX;
        CHECK_EQ(err, cant ? -EINVAL : 0);
        if (!err) {
            send_self(sig);
            CHECK_EQ(next_of(c), sig);
            caught++;
        }
    }
    CHECK_GT(caught, 50);
    stop_and_release(c);
    return 0;
}

/* Also those that come of faults, if somebody sends them. */
TEST(every_signal)
{
    skip_if_fault_signals_break_it();
    CHECK_EQ(pirn_run(each_signal, NULL), 0);
}

TEST_RUN_ATTR(sigcont, PROCS)
{
    ints c = notified(SIGCONT);
    send_self(SIGCONT);
    CHECK_EQ(next_of(c), SIGCONT);
    stop_and_release(c);
    send_self(SIGCONT);
}

TEST_RUN_ATTR(to_a_thread, PROCS)
{
    int sig = SIGRTMIN + 1;
    ints c = notified(sig);
    for (int i = 0; i < 50; i++) {
        pthread_kill(pthread_self(), sig);
        CHECK_EQ(next_of(c), sig);
    }
    stop_and_release(c);
}

/* It is that thread's: while this one blocks it, no other gets it, and nobody is told. */
TEST_RUN_ATTR(to_a_thread_that_blocks_it, PROCS)
{
    int sig = SIGRTMIN + 1;
    sigset_t set, old, pending;
    ints c = notified(sig);
    pirn_lock_thread();
    sigemptyset(&set);
    sigaddset(&set, sig);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
        CHECK_EQ(pthread_kill(pthread_self(), sig), 0);
        pirn_sleep(PIRN_MS); /* others run, who could take it */
        CHECK_EQ(pirn_chan_len(c), 0);
        CHECK_EQ(sigpending(&pending), 0);
        CHECK_EQ(sigismember(&pending, sig), 1);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
        CHECK_EQ(next_of(c), sig);
    }
    pirn_unlock_thread();
    stop_and_release(c);
}

/* --- errors ------------------------------------------------------------------------------------ */

static const int bogus[] = {0, -1, 65, 1000, SIGKILL, SIGSTOP, 32};

TEST_RUN(cant_be_caught)
{
    ints c = pirn_chan_make(int, 1);
    for (size_t i = 0; i < sizeof bogus / sizeof bogus[0]; i++) {
        CHECK_EQ(pirn_signal_notify(c, bogus[i]), -EINVAL);
        CHECK_EQ(pirn_signal_ignore(bogus[i]), -EINVAL);
        CHECK_EQ(pirn_signal_reset(bogus[i]), -EINVAL);
        CHECK(!pirn_signal_ignored(bogus[i]));
    }
    pirn_signal_stop(c);
    pirn_signal_stop((ints)NULL);
    pirn_chan_release(c);
    pirn_chanv *wide = pirn_chanv_make(sizeof(long), 1);
    CHECK_EQ(pirn_signal_notifyv(wide, SIGUSR1), -EINVAL);
    pirn_chanv_release(wide);
}

TEST(without_a_runtime)
{
    ints c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), -EAGAIN);
    CHECK(has_action(SIGUSR1, SIG_DFL));
    pirn_signal_stop(c);
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
    CHECK(pirn_signal_ignored(SIGUSR1));
    raise(SIGUSR1);
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    CHECK(has_action(SIGUSR1, SIG_DFL));
    pirn_chan_release(c);
}

TEST_RUN_ATTR(without_descriptors, .once = true)
{
    struct rlimit old;
    ints c = pirn_chan_make(int, 1);
    getrlimit(RLIMIT_NOFILE, &old);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, old.rlim_max});
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0); /* it needs none */
    raise(SIGUSR1);
    CHECK_EQ(next_of(c), SIGUSR1);
    setrlimit(RLIMIT_NOFILE, &old);
    stop_and_release(c);
}

/* --- stop, reset, ignore ------------------------------------------------------------------------ */

TEST_RUN_ATTR(the_handler_comes_back, PROCS)
{
    count_signal(SIGUSR1);
    for (int i = 1; i <= 20; i++) {
        ints c = notified(SIGUSR1);
        raise(SIGUSR1);
        CHECK_EQ(next_of(c), SIGUSR1);
        CHECK_EQ(atomic_load(&own), i - 1);
        i % 2 ? pirn_signal_stop(c) : (void)pirn_signal_reset(SIGUSR1);
        raise(SIGUSR1);
        CHECK_EQ(atomic_load(&own), i);
        CHECK_EQ(pirn_chan_len(c), 0);
        pirn_chan_release(c);
    }
    signal(SIGUSR1, SIG_DFL);
}

TEST_RUN_ATTR(ignore_and_reset, PROCS)
{
    count_signal(SIGUSR1);
    ints c = notified(SIGUSR1);
    CHECK(!pirn_signal_ignored(SIGUSR1));
    raise(SIGUSR1);
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0); /* what came before it has been sent */
    CHECK_EQ(pirn_chan_len(c), 1);
    CHECK_EQ(next_of(c), SIGUSR1);
    CHECK(pirn_signal_ignored(SIGUSR1));
    raise(SIGUSR1);
    pirn_signal_stop(c); /* it wants nothing: the signal is still ignored */
    CHECK(pirn_signal_ignored(SIGUSR1));
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    CHECK(!pirn_signal_ignored(SIGUSR1));
    raise(SIGUSR1);
    CHECK_EQ(next_of(c), SIGUSR1);
    pirn_signal_stop(c); /* what was before both */
    CHECK(!pirn_signal_ignored(SIGUSR1));
    CHECK_EQ(atomic_load(&own), 0);
    raise(SIGUSR1);
    CHECK_EQ(atomic_load(&own), 1);
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
    raise(SIGUSR1);
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    raise(SIGUSR1);
    CHECK_EQ(atomic_load(&own), 2);
    CHECK_EQ(pirn_chan_len(c), 0);
    pirn_chan_release(c);
    signal(SIGUSR1, SIG_DFL);
}

/* One signal of several; of all who want it, contexts too. */
TEST_RUN_ATTR(reset_is_for_all, PROCS)
{
    ints a = notified(SIGUSR1), b = notified(SIGUSR1);
    pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1}, 1);
    CHECK_EQ(pirn_signal_notify(b, SIGUSR2), 0);
    CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    CHECK_EQ(next_of(b), SIGUSR2);
    CHECK_EQ(pirn_chan_len(a), 0);
    CHECK_EQ(pirn_ctx_err(ctx), 0);
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    CHECK(has_action(SIGUSR1, SIG_DFL) && !has_action(SIGUSR2, SIG_DFL));
    pirn_ctx_release(ctx);
    stop_and_release(b);
    CHECK(has_action(SIGUSR2, SIG_DFL));
    stop_and_release(a);
}

/* What has come before the reset cancels the context, though that is done by another. */
TEST_RUN_ATTR(reset_after_it_came, PROCS)
{
    for (int i = 0; i < 200; i++) {
        pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1}, 1);
        raise(SIGUSR1);
        CHECK_EQ(i % 2 ? pirn_signal_ignore(SIGUSR1) : pirn_signal_reset(SIGUSR1), 0);
        pirn_chan_recv(pirn_ctx_done(ctx), NULL);
        CHECK_EQ(pirn_ctx_cause(ctx), -EINTR);
        pirn_ctx_release(ctx);
        CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    }
}

/* Ignored when the program starts, as by nohup: so it stays, but while somebody wants it. */
TEST_RUN_ATTR(ignored_from_the_start, PROCS)
{
    signal(SIGHUP, SIG_IGN);
    CHECK(pirn_signal_ignored(SIGHUP));
    raise(SIGHUP);
    ints c = notified(SIGHUP);
    CHECK(!pirn_signal_ignored(SIGHUP));
    raise(SIGHUP);
    CHECK_EQ(next_of(c), SIGHUP);
    pirn_signal_stop(c);
    CHECK(pirn_signal_ignored(SIGHUP));
    raise(SIGHUP);
    CHECK_EQ(pirn_signal_notify(c, SIGHUP), 0);
    CHECK_EQ(pirn_signal_reset(SIGHUP), 0);
    CHECK(pirn_signal_ignored(SIGHUP));
    CHECK_EQ(pirn_chan_len(c), 0);
    pirn_chan_release(c);
    signal(SIGHUP, SIG_DFL);
}

/* A signal before the notify is not for it. */
TEST_RUN_ATTR(of_the_past, PROCS)
{
    ints first = notified(SIGUSR1);
    for (int i = 0; i < 500; i++) {
        raise(SIGUSR1);
        ints next = notified(SIGUSR1);
        CHECK_EQ(pirn_chan_len(next), 0);
        CHECK_EQ(next_of(first), SIGUSR1);
        CHECK_EQ(pirn_chan_len(next), 0);
        stop_and_release(next);
    }
    stop_and_release(first);
}

static void stops_itself(ints c)
{
    CHECK_EQ(pirn_chan_get(c), SIGUSR1);
    pirn_signal_stop(c);
    size_t n = pirn_chan_len(c);
    for (int i = 0; i < 20; i++)
        pirn_yield();
    CHECK_EQ(pirn_chan_len(c), n);
    pirn_chan_release(c);
}

/* Each who is told stops at once, while more come; nothing is sent after that. */
TEST_RUN_ATTR(stop_inside, PROCS)
{
    int sig = SIGUSR1;
    count_signal(sig);
    pthread_t thread = start_storm(&sig);
    for (int i = 0; i < 20; i++) {
        pirn_wg wg = {0};
        for (int j = 0; j < 4; j++) {
            ints c = pirn_chan_make(int, 4);
            CHECK_EQ(pirn_signal_notify(c, sig), 0);
            pirn_wg_go(&wg, stops_itself, c);
        }
        pirn_wg_wait(&wg);
    }
    end_storm(thread);
    ignore_the_rest(sig);
}

/* The same with reset and ignore: whoever wants it afterwards gets it. */
TEST_RUN_ATTR(reset_while_they_come, PROCS)
{
    int sig = SIGUSR1;
    count_signal(sig);
    pthread_t thread = start_storm(&sig);
    for (int i = 0; i < 50; i++) {
        ints c = notified(sig);
        CHECK_EQ(next_of(c), sig);
        CHECK_EQ(i % 2 ? pirn_signal_reset(sig) : pirn_signal_ignore(sig), 0);
        size_t n = pirn_chan_len(c);
        for (int j = 0; j < 20; j++)
            pirn_yield();
        CHECK_EQ(pirn_chan_len(c), n);
        CHECK_EQ(pirn_signal_ignored(sig), i % 2 == 0);
        CHECK_EQ(pirn_signal_reset(sig), 0);
        pirn_chan_release(c);
    }
    end_storm(thread);
    CHECK_EQ(atomic_load(&strange), 0);
    ignore_the_rest(sig);
}

/* --- never lost ---------------------------------------------------------------------------------- */

static void spin(unsigned n)
{
    for (volatile unsigned i = 0; i < n; i++) {
    }
}

/* Sends one signal for each round that begins. */
static atomic_int begun, sent;
static int sent_signal;

static void *sends_each(void *arg)
{
    unsigned seed = 7;
    (void)arg;
    for (int i = 1; !atomic_load(&ended); i++) {
        while (atomic_load(&begun) < i && !atomic_load(&ended))
            sched_yield();
        if (atomic_load(&begun) < i)
            break;
        spin((unsigned)rand_r(&seed) % 4000);
        send_self(sent_signal);
        atomic_store(&sent, i);
    }
    return NULL;
}

static pthread_t start_sender(int sig)
{
    pthread_t thread;
    sent_signal = sig;
    atomic_store(&begun, 0);
    atomic_store(&sent, 0);
    atomic_store(&ended, 0);
    CHECK_EQ(pthread_create(&thread, NULL, sends_each, NULL), 0);
    return thread;
}

/* A signal and a stop at once; the signal has been sent when it returns. */
static void stop_in_round(ints c, int round, unsigned *seed)
{
    CHECK_EQ(pirn_signal_notify(c, sent_signal), 0);
    atomic_store(&begun, round);
    spin((unsigned)rand_r(seed) % 8000);
    pirn_signal_stop(c);
    while (atomic_load(&sent) < round)
        pirn_yield();
}

/* The channel or the handler has each of them, and only one of the two. */
TEST_RUN_ATTR(sent_or_handled, PROCS, .timeout = 60)
{
    unsigned seed = 1;
    int chan = 0, rounds = 500;
    count_signal(SIGUSR1);
    pthread_t thread = start_sender(SIGUSR1);
    ints c = pirn_chan_make(int, 2);
    for (int i = 1; i <= rounds; i++) {
        stop_in_round(c, i, &seed);
        chan += pirn_chan_try_recv(c, NULL);
        pirn_ns late = pirn_deadline(LONG);
        while (chan + atomic_load(&own) < i && pirn_now() < late)
            pirn_yield();
        CHECK_EQ(chan + atomic_load(&own), i);
        CHECK_EQ(pirn_chan_len(c), 0);
    }
    end_storm(thread);
    CHECK_EQ(atomic_load(&strange), 0);
    pirn_chan_release(c);
    signal(SIGUSR1, SIG_DFL);
}

/* A handler that was called for a channel, and gets to run only when that has been stopped. */
TEST_RUN(a_handler_comes_too_late)
{
    struct sigaction pirns;
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_USER};
    sigset_t usr1, old;
    info.si_pid = getpid();
    count_signal(SIGUSR1);
    for (int again = 0; again < 2; again++) {
        ints c = notified(SIGUSR1);
        sigaction(SIGUSR1, NULL, &pirns);
        pirn_signal_stop(c);
        sigemptyset(&usr1);
        sigaddset(&usr1, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &usr1, &old);
        pirns.sa_sigaction(SIGUSR1, &info, NULL);
        if (again)
            CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
        CHECK_EQ(atomic_load(&own) + (int)pirn_chan_len(c), again);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        CHECK_EQ(atomic_load(&own), 1);
        if (again)
            CHECK_EQ(next_of(c), SIGUSR1);
        CHECK_EQ(atomic_load(&strange), 0);
        stop_and_release(c);
    }
    signal(SIGUSR1, SIG_DFL);
}

static int caught_or_fatal(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    start_sender(SIGINT);
    ints c = pirn_chan_make(int, 2);
    for (int i = 1; i <= 20; i++) {
        stop_in_round(c, i, &seed);
        if (pirn_chan_try_recv(c, NULL) != 1) {
            pirn_sleep(LONG); /* it kills */
            FAIL("lost signal");
        }
    }
    return 0;
}

static void run_caught_or_fatal(void *arg)
{
    signal(SIGINT, SIG_DFL);
    _exit(pirn_run(caught_or_fatal, arg));
}

/* As Go's TestAtomicStop: without a handler of the program's. */
TEST_ATTR(caught_or_kills, PROCS, .timeout = 60)
{
    int killed = 0;
    for (unsigned i = 0; i < 30; i++) {
        int status = test_in_child(run_caught_or_fatal, &i);
        CHECK_STR(test_said, "");
        CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGINT : WEXITSTATUS(status) == 0);
        killed += WIFSIGNALED(status);
    }
    CHECK_GT(killed, 0);
}

/* --- dying ----------------------------------------------------------------------------------------- */

static int dies_of_term(void *arg)
{
    int how = *(int *)arg;
    ints c = pirn_chan_make(int, 1);
    if (how > 0) {
        CHECK_EQ(pirn_signal_notify(c, SIGTERM), 0);
        raise(SIGTERM);
        CHECK_EQ(next_of(c), SIGTERM);
    }
    if (how == 1)
        pirn_signal_stop(c);
    if (how == 2)
        CHECK_EQ(pirn_signal_reset(SIGTERM), 0);
    if (how == 3) {
        CHECK_EQ(pirn_signal_ignore(SIGTERM), 0);
        raise(SIGTERM);
        CHECK_EQ(pirn_signal_reset(SIGTERM), 0);
    }
    raise(SIGTERM);
    return 0;
}

static void run_dies_of_term(void *arg)
{
    pirn_run(dies_of_term, arg);
}

TEST(the_status_shows_the_signal)
{
    for (int how = 0; how < 4; how++) {
        int status = test_in_child(run_dies_of_term, &how);
        CHECK_STR(test_said, "");
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
}

static int *volatile nowhere;

static int faults(void *arg)
{
    (void)arg;
    ints c = notified(SIGSEGV);
    send_self(SIGSEGV);
    CHECK_EQ(next_of(c), SIGSEGV);
    nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *nowhere = 1;
    return 0;
}

static void run_faults(void *arg)
{
    (void)arg;
    pirn_run(faults, NULL);
}

static void exits(int sig, siginfo_t *info, void *context)
{
    (void)context;
    _exit(sig == SIGSEGV && info->si_addr == nowhere ? 7 : 8);
}

static void run_handled_fault(void *arg)
{
    (void)arg;
    struct sigaction sa = {.sa_sigaction = exits, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &sa, NULL);
    pirn_run(faults, NULL);
}

/* A fault is no news for a channel: the program can't go on. */
TEST(a_fault_is_fatal)
{
    skip_if_fault_signals_break_it();
    int status = test_in_child(run_faults, NULL);
    CHECK(strstr(test_said, "fatal error: SIGSEGV at address ") == test_said);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = test_in_child(run_handled_fault, NULL);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Ignored it is nothing, whoever sends it. */
static int ignores_trap(void *arg)
{
    CHECK_EQ(pirn_signal_ignore(SIGTRAP), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(kill(getpid(), SIGTRAP), 0);
        CHECK_EQ(raise(SIGTRAP), 0);
        pirn_yield();
    }
    return arg != NULL;
}

static void run_ignores_trap(void *arg)
{
    CHECK_EQ(pirn_run(ignores_trap, arg), 0);
}

TEST(sigtrap_is_ignored)
{
    skip_if_fault_signals_break_it();
    CHECK_EQ(test_in_child(run_ignores_trap, NULL), 0);
    CHECK_STR(test_said, "");
}

/* The first process of a namespace, of which the kernel takes care: it gets what it wants, and its end shows. */
static int runs_as_the_first(void *arg)
{
    ints c = notified(SIGTERM);
    CHECK_EQ(getpid(), 1);
    send_self(SIGTERM);
    CHECK_EQ(next_of(c), SIGTERM);
    stop_and_release(c);
    if (!arg)
        faults(NULL);
    send_self(SIGQUIT);
    pirn_sleep(LONG);
    return 0;
}

static void run_as_the_first(void *arg)
{
    int status;
    if (unshare(CLONE_NEWPID))
        _exit(77);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0)
        _exit(pirn_run(runs_as_the_first, arg));
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(arg ? WIFEXITED(status) && WEXITSTATUS(status) == 2
              : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* What it said first; but that /proc is that of another namespace, if it came to that. */
static const char *said_first(void)
{
    const char *no_proc = "pirn: cannot read /proc/";
    return strncmp(test_said, no_proc, strlen(no_proc)) ? test_said : strchr(test_said, '\n') + 1;
}

TEST(pid_1)
{
    int quits = 1, status = test_in_child(run_as_the_first, &quits);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no namespace of processes can be made here");
    CHECK(strstr(test_said, "SIGQUIT: quit") == said_first());
    CHECK_EQ(status, 0);
    if (test_on_valgrind())
        SKIP("the rest: valgrind reports the fault, which is meant");
    status = test_in_child(run_as_the_first, NULL);
    fputs(test_said, stderr);
    CHECK_EQ(status, 0);
    CHECK(strstr(test_said, "fatal error: SIGSEGV at address ") == said_first());
}

/* --- life -------------------------------------------------------------------------------------------- */

/* Nobody but the kernel could go on: that is no deadlock. */
TEST_RUN_ATTR(no_deadlock, PROCS)
{
    ints c = notified(SIGALRM);
    struct itimerval in_30_ms = {.it_value = {.tv_usec = 30000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &in_30_ms, NULL), 0);
    CHECK_EQ(pirn_chan_get(c), SIGALRM);
    stop_and_release(c);
}

static void *foreign(void *arg)
{
    ints c = *(ints *)arg;
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    for (int i = 0; i < 20; i++) {
        raise(SIGUSR1);
        CHECK_EQ(pirn_chan_get(c), SIGUSR1);
    }
    pirn_signal_stop(c);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR2), 0);
    raise(SIGUSR2);
    return NULL;
}

TEST_RUN_ATTR(from_a_foreign_thread, PROCS)
{
    pthread_t thread;
    ints c = pirn_chan_make(int, 1);
    CHECK_EQ(pthread_create(&thread, NULL, foreign, &c), 0);
    while (has_action(SIGUSR2, SIG_DFL))
        pirn_sleep(PIRN_MS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(next_of(c), SIGUSR2);
    stop_and_release(c);
}

static ints kept;

static int leaves_it(void *arg)
{
    (void)arg;
    kept = notified(SIGUSR1);
    send_self(SIGUSR1);
    CHECK_EQ(next_of(kept), SIGUSR1);
    return 0;
}

static int finds_it(void *arg)
{
    (void)arg;
    CHECK(!is_counted(SIGUSR1));
    send_self(SIGUSR1);
    CHECK_EQ(pirn_chan_get(kept), SIGUSR1); /* nothing else goes on: no deadlock */
    return 0;
}

/* From a runtime to the next; between them the signal is the program's. */
TEST_ATTR(from_runtime_to_runtime, PROCS)
{
    count_signal(SIGUSR1);
    CHECK_EQ(pirn_run(leaves_it, NULL), 0);
    for (int i = 1; i <= 5; i++) {
        raise(SIGUSR1);
        CHECK_EQ(atomic_load(&own), i);
        CHECK_EQ(pirn_run(finds_it, NULL), 0);
    }
    stop_and_release(kept);
    CHECK_EQ(pirn_run(leaves_it, NULL), 0);
    CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    CHECK(is_counted(SIGUSR1));
    signal(SIGUSR1, SIG_DFL);
    pirn_chan_release(kept);
}

static int notifies(void *arg)
{
    ints c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    if (arg)
        CHECK_EQ(next_of(c), SIGUSR1);
    stop_and_release(c);
    return 0;
}

/* The runtime comes and goes while signals come. */
TEST_ATTR(start_and_stop_in_a_storm, PROCS)
{
    if (test_on_valgrind()) /* 3.19, "Can't extend stack"; so does a program without pirn */
        SKIP("valgrind dies of SA_ONSTACK without such a stack, when the first thread's must grow");
    int sig = SIGUSR1;
    count_signal(sig);
    pthread_t thread = start_storm(&sig);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(pirn_run(i % 5 ? notifies : leaves_it, i % 2 ? &sig : NULL), 0);
        if (i % 5 == 0)
            pirn_chan_release(kept); /* and is notified still */
    }
    end_storm(thread);
    CHECK_EQ(pirn_signal_reset(sig), 0);
    ignore_the_rest(sig);
}

/* --- stress ------------------------------------------------------------------------------------------ */

static void nothing(void)
{
}

static void spawns(void)
{
    while (!atomic_load(&ended)) {
        pirn_wg wg = {0};
        for (int i = 0; i < 10; i++)
            pirn_wg_go(&wg, nothing);
        pirn_wg_wait(&wg);
        pirn_yield();
    }
}

static void comes_and_goes(unsigned seed)
{
    static const int sigs[] = {SIGUSR1, SIGUSR2, SIGHUP};
    for (int i = 0; i < 100; i++) {
        ints c = notified(sigs[(unsigned)rand_r(&seed) % 3]);
        if (i % 3 == 0)
            CHECK_EQ(pirn_signal_notify(c, SIGUSR2), 0);
        pirn_chan_recv_until(c, NULL, pirn_deadline(rand_r(&seed) % 3 * PIRN_MS / 2));
        if (i % 10 == 9)
            CHECK_EQ(pirn_signal_reset(sigs[(unsigned)rand_r(&seed) % 3]), 0);
        stop_and_release(c);
    }
}

/* Signals, goroutines that come and go, and channels that are notified and stopped. */
TEST_RUN_ATTR(stress, PROCS, .timeout = 60)
{
    int sigs[] = {SIGUSR1, SIGUSR2, SIGHUP};
    pthread_t threads[3];
    pirn_wg churn = {0}, wg = {0};
    for (int i = 0; i < 3; i++) {
        count_signal(sigs[i]);
        threads[i] = start_storm(&sigs[i]);
    }
    for (int i = 0; i < 4; i++) {
        pirn_wg_go(&churn, spawns);
        pirn_wg_go(&wg, comes_and_goes, (unsigned)i);
    }
    pirn_wg_wait(&wg);
    for (int i = 0; i < 3; i++)
        end_storm(threads[i]);
    pirn_wg_wait(&churn);
    CHECK_EQ(atomic_load(&strange), 0);
    for (int i = 0; i < 3; i++) {
        CHECK(is_counted(sigs[i]));
        ignore_the_rest(sigs[i]);
    }
}

/* --- blocked when the runtime starts ------------------------------------------------------------ */

static int watches_what_is_blocked(void *arg)
{
    ints c = notified(SIGUSR1);
    sigset_t pending;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        send_self(SIGUSR1);
        CHECK_EQ(next_of(c), SIGUSR1);
    }
    pirn_signal_stop(c);
    send_self(SIGUSR1); /* would end the process */
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGUSR1), 1);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    CHECK_EQ(next_of(c), SIGUSR1);
    pirn_signal_stop(c);
    pirn_chan_release(c);
    return 0;
}

TEST_ATTR(blocked_at_start, PROCS, .timeout = 60)
{
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pirn_run(watches_what_is_blocked, NULL), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}
