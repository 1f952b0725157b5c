/* SPDX-License-Identifier: MIT */
/* Who gets how much of a P that all want (conformance 54; HAZARDS 28). */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "go/busy.h"

/* --- shares ----------------------------------------------------------------------------------- */

#define TRIES 5
#define MEASURED                                                                                   \
    (2200 * PIRN_MS) /* of CPU time: under load, who knows what a test has of any other */

/* A counter on a line of its own: they are read while they are written. */
static struct {
    _Alignas(128) atomic_ulong n;
} work[2];

static void counts(int i)
{
    while (!atomic_load_explicit(&stop_loops, memory_order_relaxed)) {
        unsigned long n = atomic_load_explicit(&work[i].n, memory_order_relaxed);
        atomic_store_explicit(&work[i].n, n + 1, memory_order_relaxed);
    }
}

static unsigned long done(int i)
{
    return atomic_load_explicit(&work[i].n, memory_order_relaxed);
}

/* Sleeps for 1 ms again and again; how late it was at most, in the time that the others computed
 * meanwhile: slices are CPU time, and load beside the test makes them longer by the clock. */
static pirn_ns worst_sleep(pirn_ns *worst_by_clock)
{
    pirn_ns worst = 0, cpu, until = read_clock(CLOCK_PROCESS_CPUTIME_ID) + MEASURED;
    *worst_by_clock = 0;
    while ((cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID)) < until) {
        pirn_ns due = pirn_now() + PIRN_MS;
        CHECK_EQ(pirn_sleep(PIRN_MS), 0);
        pirn_ns late = pirn_now() - due,
                others = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu - PIRN_MS;
        worst = others > worst ? others : worst;
        *worst_by_clock = late > *worst_by_clock ? late : *worst_by_clock;
    }
    return worst;
}

/* Load beside the test stretches slices even so, since the kernel looks at a thread's CPU clock at its own
 * ticks, if the thread runs just then: the best of some tries counts. */
static int shares(void *arg)
{
    (void)arg;
    bool fair = false;
    for (int i = 0; i < 2; i++)
        pirn_wg_go(&looping, counts, i);
    SLEEP_UNTIL(done(0) > 0 && done(1) > 0);
    for (int try = 0; try < TRIES && !fair; try++) {
        unsigned long first = done(0), second = done(1);
        uint64_t before = preempted();
        pirn_ns by_clock, worst = worst_sleep(&by_clock);
        first = done(0) - first;
        second = done(1) - second;
        CHECK(first > 0 && second > 0);
        double share = 100 * (double)first / (double)(first + second);
        printf("shares %.1f and %.1f %%, sleeper at most %.1f ms late, %.1f by the clock, %d times "
               "preempted\n",
               share, 100 - share, (double)worst / 1e6, (double)by_clock / 1e6,
               (int)(preempted() - before));
        fair = share >= 35 && share <= 65 && worst <= 3 * SLICE && preempted() >= before + 20;
    }
    CHECK(fair);
    end_loops();
    return 0;
}

TEST_ATTR(two_loops_and_a_sleeper, .alone = true, .timeout = 90)
{
    needs_preemption();
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, shares, NULL), 0);
}

/* --- who was told from outside ------------------------------------------------------------------ */

enum { TURNS = 60 };

static sem_t had_its_turn;
static int told_by[2];  /* a pipe */
static pirn_ns turn_at; /* CPU time of the process, as in worst_sleep() */

static void has_its_turn(void)
{
    turn_at = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    sem_post(&had_its_turn);
}

static void reads_turns(void)
{
    char byte;
    while (pirn_read(told_by[0], &byte, 1) == 1)
        has_its_turn();
}

static void tell_by_pipe(void)
{
    CHECK_EQ(write(told_by[1], "x", 1), 1);
}

/* By a thread without a P: it goes through the global queue. */
static void tell_by_spawn(void)
{
    pirn_go(has_its_turn);
}

/* Tells again and again, each time after a while. What the others computed at most until it was heard. */
static void *tells(void *how)
{
    pirn_ns *worst = malloc(sizeof *worst);
    *worst = 0;
    for (int i = 0; i < TURNS; i++) {
        plain_sleep(PIRN_MS + i * PIRN_MS / 7);
        pirn_ns told_at = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        (*(void (**)(void))how)();
        while (sem_wait(&had_its_turn)) {
        }
        *worst = turn_at - told_at > *worst ? turn_at - told_at : *worst;
    }
    return worst;
}

static void *join(void *thread)
{
    void *result;
    pthread_join(*(pthread_t *)thread, &result);
    return result;
}

/* Beside two loops on the only P. */
static void is_heard(void (*tell)(void))
{
    bool soon = false;
    start_loops(2);
    await_preempted(4); /* the first have to wait for threads to be made */
    for (int try = 0; try < TRIES && !soon; try++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, tells, &tell), 0);
        pirn_ns *worst = pirn_blocking(join, &thread);
        printf("heard after at most %.1f ms of CPU time\n", (double)*worst / 1e6);
        soon = *worst <= 3 * SLICE;
        free(worst);
    }
    CHECK(soon);
    end_loops();
}

/* It waits for sysmon's look at the pollers, for the slice of the loop that runs, and for that of the other. */
static int heard_by_poller(void *arg)
{
    (void)arg;
    pirn_wg reader = {0};
    CHECK_EQ(pipe2(told_by, O_CLOEXEC), 0);
    pirn_wg_go(&reader, reads_turns);
    is_heard(tell_by_pipe);
    close(told_by[1]);
    pirn_wg_wait(&reader);
    close(told_by[0]);
    return 0;
}

static int heard_by_global_queue(void *arg)
{
    (void)arg;
    is_heard(tell_by_spawn);
    return 0;
}

TEST_ATTR(two_loops_and_a_reader, .alone = true, .timeout = 90)
{
    needs_preemption();
    CHECK_EQ(sem_init(&had_its_turn, 0, 0), 0);
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, heard_by_poller, NULL), 0);
}

TEST_ATTR(two_loops_and_the_global_queue, .alone = true, .timeout = 90)
{
    needs_preemption();
    CHECK_EQ(sem_init(&had_its_turn, 0, 0), 0);
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, heard_by_global_queue, NULL), 0);
}

/* --- more loops than Ps: each has its turn, again and again -------------------------------------- */

static struct {
    _Alignas(128) atomic_ulong n;
} turns[34];

static void counts_turns(int i)
{
    while (!atomic_load_explicit(&stop_loops, memory_order_relaxed))
        atomic_fetch_add_explicit(&turns[i].n, 1, memory_order_relaxed);
}

TEST_RUN_ATTR(each_has_its_turn, PROCS, .timeout = 120)
{
    needs_preemption();
    int n = 2 * pirn_procs(0) + 2;
    CHECK_LE(n, 34);
    for (int i = 0; i < n; i++)
        pirn_wg_go(&looping, counts_turns, i);
    for (int round = 0; round < 3; round++) {
        unsigned long before[34];
        for (int i = 0; i < n; i++)
            before[i] = atomic_load(&turns[i].n);
        for (int i = 0; i < n; i++)
            SLEEP_UNTIL(atomic_load(&turns[i].n) > before[i]);
    }
    CHECK_GT(preempted(), 0);
    end_loops();
}

/* --- runnext ---------------------------------------------------------------------------------- */

static pirn_chan(int) to, fro;
static atomic_ulong exchanged;

/* Two that make each other ready for ever; each goes to the front of the queue, and computes a bit. */
static void answers(pirn_ns ns)
{
    int v;
    while (pirn_chan_recv(to, &v)) {
        compute_for(ns);
        pirn_chan_send(fro, v + 1);
    }
}

static void asks(pirn_ns ns)
{
    for (int i = 0; !atomic_load(&stop_loops); i = pirn_chan_get(fro)) {
        compute_for(ns);
        pirn_chan_send(to, i);
        atomic_fetch_add(&exchanged, 1);
    }
    pirn_chan_close(to);
}

/* Main, in the queue behind them, has its turns while they are at it. */
static void pairs_do_not_starve(pirn_ns ns)
{
    to = pirn_chan_make(int, 0);
    fro = pirn_chan_make(int, 0);
    pirn_wg_go(&looping, answers, ns);
    pirn_wg_go(&looping, asks, ns);
    for (int i = 0; i < 30; i++) {
        unsigned long before = atomic_load(&exchanged);
        YIELD_UNTIL(atomic_load(&exchanged) > before);
    }
    end_loops();
    pirn_chan_release(to);
    pirn_chan_release(fro);
}

TEST_RUN_ATTR(two_in_front, PROCS)
{
    pairs_do_not_starve(0);
}

TEST_RUN_ATTR(two_in_front_compute, PROCS)
{
    pairs_do_not_starve(200 * PIRN_US);
}

/* Beside loops the two get their turns too, and so does a sleeper. */
TEST_RUN_ATTR(two_in_front_beside_loops, .slow = true, PROCS, .timeout = 60)
{
    needs_preemption();
    uint64_t before = preempted();
    start_loops(pirn_procs(0));
    pairs_do_not_starve(PIRN_MS);
    CHECK_GT(preempted(), before);
}

/* --- calls that never park -------------------------------------------------------------------- */

static pirn_chan(int) nothing_in_it;
static pirn_mutex mutex;
static atomic_ulong tried;

static void tries_for_ever(void)
{
    pirn_wg wg = {0};
    while (!atomic_load_explicit(&stop_loops, memory_order_relaxed)) {
        int v;
        CHECK_EQ(pirn_chan_try_recv(nothing_in_it, &v), 0);
        if (pirn_mutex_try_lock(&mutex))
            pirn_mutex_unlock(&mutex);
        pirn_wg_add(&wg, 1);
        pirn_wg_done(&wg);
        CHECK_GT(pirn_id(), 1);
        atomic_fetch_add_explicit(&tried, 1, memory_order_relaxed);
    }
}

/* The end of a slice is seen in these calls too: main would not wake up otherwise. */
TEST_RUN_ATTR(calls_that_never_park, PROCS, .timeout = 60)
{
    needs_preemption();
    nothing_in_it = pirn_chan_make(int, 1);
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_wg_go(&looping, tries_for_ever);
    for (int i = 0; i < 20; i++) {
        unsigned long before = atomic_load(&tried);
        SLEEP_UNTIL(atomic_load(&tried) > before);
    }
    end_loops();
    pirn_chan_release(nothing_in_it);
}
