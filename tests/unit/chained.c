/* SPDX-License-Identifier: MIT */
/*
 * The handler that the program has for the signal that preempts, while it is exchanged all the time: whoever looks
 * sees one of them, whole. Sysmon looks for a new one once a second; here a thread does nothing else.
 */
#include <pthread.h>
#include <string.h>

#include "go/busy.h"
#include "sched/sched.h"

static atomic_bool enough;
static atomic_int with_info, plain;

static void takes_info(int sig, siginfo_t *info, void *context)
{
    CHECK_EQ(sig, SIGURG);
    CHECK(info && context);
    CHECK_EQ(info->si_signo, SIGURG);
    /* While it is in pirn's place it has pirn's too. */
    CHECK(info->si_code == SI_TIMER || info->si_code == SI_QUEUE);
    CHECK(info->si_code == SI_TIMER || info->si_pid == getpid());
    atomic_fetch_add(&with_info, 1);
}

static void takes_the_number(int sig)
{
    CHECK_EQ(sig, SIGURG);
    atomic_fetch_add(&plain, 1);
}

static struct sigaction one_of_two(int i)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    if (i % 2) {
        sa.sa_sigaction = takes_info;
        sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigfillset(&sa.sa_mask);
    } else {
        sa.sa_handler = takes_the_number;
        sa.sa_flags = SA_RESTART | SA_ONSTACK;
        sigemptyset(&sa.sa_mask);
    }
    return sa;
}

static struct sigaction exchange(const struct sigaction *sa)
{
    struct sigaction old;
    enter();
    CHECK_EQ(preempt_sigaction(SIGURG, sa, &old), 0);
    leave();
    return old;
}

/* An emulator reads handler and flags in two steps, without a lock: there only pirn may exchange them. */
static void *exchanges(void *arg)
{
    bool by_both = !test_emulated();
    for (int i = 0; !atomic_load(&enough); i++) {
        struct sigaction sa = one_of_two(i);
        if (by_both && i % 4 < 2) {
            CHECK_EQ(sigaction(SIGURG, &sa, NULL), 0);
            preempt_check_handler();
        } else {
            exchange(&sa);
        }
    }
    return arg;
}

static void *sends(void *arg)
{
    while (!atomic_load(&enough))
        sigqueue(getpid(), SIGURG, (union sigval){.sival_int = 0}); /* or the queue is full */
    return arg;
}

static bool is(const struct sigaction *sa, int i)
{
    struct sigaction should = one_of_two(i);
    return sa->sa_sigaction == should.sa_sigaction
           && (sa->sa_flags & SA_SIGINFO) == (should.sa_flags & SA_SIGINFO)
           && (sa->sa_flags & SA_RESTART) == (should.sa_flags & SA_RESTART)
           && sigismember(&sa->sa_mask, SIGUSR1) == sigismember(&should.sa_mask, SIGUSR1)
           && sigismember(&sa->sa_mask, SIGHUP) == sigismember(&should.sa_mask, SIGHUP);
}

static void *looks(void *arg)
{
    while (!atomic_load(&enough)) {
        struct sigaction sa = exchange(NULL);
        CHECK(is(&sa, 0) || is(&sa, 1));
    }
    return arg;
}

TEST_RUN_ATTR(one_or_the_other, PROCS, .timeout = 60)
{
    needs_preemption();
    void *(*fns[])(void *) = {exchanges, sends, looks};
    pthread_t t[3];
    struct sigaction sa = one_of_two(0);
    exchange(&sa);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, fns[i], NULL), 0);
    start_loops(2);
    await_preempted(10);
    SLEEP_UNTIL(atomic_load(&with_info) > 100 && atomic_load(&plain) > 100);
    pirn_sleep(200 * PIRN_MS);
    end_loops();
    atomic_store(&enough, true);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* A handler that was just installed by sigaction is the one before, not lost and not what counts. */
TEST_RUN_ATTR(a_new_one_is_seen_first, .procs = "1,4")
{
    needs_preemption();
    struct sigaction first = one_of_two(1), second = one_of_two(0);
    CHECK_EQ(sigaction(SIGURG, &first, NULL), 0);
    struct sigaction sa = exchange(&second);
    CHECK(is(&sa, 1));
    enter();
    preempt_check_handler();
    leave();
    sa = exchange(NULL);
    CHECK(is(&sa, 0));
}

static atomic_int from_outside;

static void takes_from_outside(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    CHECK_EQ(info->si_code, SI_USER);
    CHECK_EQ(info->si_pid, 0);
    atomic_fetch_add(&from_outside, 1);
}

/* As the kernel says it of a sender in another PID namespace; and of one for whom it had no room. */
static void send_from_outside(void)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGURG;
    info.si_code = SI_USER;
    CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGURG, &info), 0);
}

/* One that has come, and said whose it is, is not expected any more. */
TEST_RUN_ATTR(from_another_namespace, PROCS)
{
    needs_preemption();
    struct sigaction sa = {.sa_sigaction = takes_from_outside,
                           .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    exchange(&sa);
    for (int i = 1; i <= 20; i++) {
        preempt_send(getm());
        send_from_outside();
        CHECK_EQ(atomic_load(&from_outside), i);
        at_store(&getm()->signalled, 1, RELAXED); /* pirn's own, without its sender */
        send_from_outside();
        CHECK_EQ(atomic_load(&from_outside), i);
    }
}
