/* SPDX-License-Identifier: MIT */
/*
 * Preemption at the shortest slices under libc_work.h, alone and with what makes it harder: one arena for
 * all, more Ps than CPUs, signals from elsewhere, pauses of the whole process; and more goroutines that
 * compute than there can be threads (HAZARDS 4 to 6, 10, 14, 19, 33, 35; R11).
 */
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "stress/libc_work.h"

TEST_ATTR(preempt, .procs = "1,2,4,16", .timeout = 90)
{
    corrupt_nothing(0);
}

/* One arena: a goroutine that is stopped in malloc holds the lock that all others want. */
TEST_ATTR(preempt_one_arena, .slow = true, .procs = "1,2,16", .timeout = 90)
{
    mallopt(M_ARENA_MAX, 1);
    corrupt_nothing(0);
}

TEST_ATTR(preempt_one_cpu, .timeout = 120)
{
    cpu_set_t set;
    int cpu = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET((size_t)(cpu < 0 ? 0 : cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        SKIP("sched_setaffinity is not permitted");
    }
    corrupt_nothing(16);
}

/* --- signals from elsewhere ------------------------------------------------------------------- */

static at_u64 shots;
static int64_t storm_lasted;

/* So many a millisecond, each at a thread by chance. Where it has slept too long it makes up for that. */
static void *storm(void *arg)
{
    pid_t tids[512];
    int n = 0;
    int64_t begun = now_ns(), done = 0;
    struct rand r;
    rand_seed(&r, (uint64_t)begun);
    for (uint32_t i = 0; !at_load(&over, RELAXED); i++) {
        if (i % 32 == 0) {
            n = list_threads(tids, 512); /* some may end before they are shot at */
        }
        for (int64_t due = (now_ns() - begun) * *(int *)arg / PIRN_MS; done < due; done++) {
            pid_t tid = tids[rand_below(&r, (uint32_t)n)];
            at_add(&shots, syscall(SYS_tgkill, getpid(), tid, SIGURG) == 0, RELAXED);
        }
        sleep_ns(PIRN_MS / 2);
    }
    storm_lasted = now_ns() - begun;
    return NULL;
}

static void in_a_storm(int a_millisecond)
{
    pthread_t t;
    skip_if_never();
    CHECK_EQ(pthread_create(&t, NULL, storm, &a_millisecond), 0);
    corrupt_nothing(0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    long long ms = storm_lasted / PIRN_MS, sent = (long long)at_load(&shots, RELAXED);
    printf("%lld signals in %lld ms\n", sent, ms);
    CHECK_GE(sent, ms * a_millisecond / 2);
}

TEST_ATTR(preempt_storm_1khz, .procs = "1,2,4,16", .timeout = 90)
{
    in_a_storm(1);
}

TEST_ATTR(preempt_storm_10khz, .procs = "1,2,16", .timeout = 90)
{
    in_a_storm(10);
}

/* The number of Ps changes meanwhile, and threads come and go: who makes them needs the lock too, and the P
 * of who has it may be one too many. */
static void *change_procs(void *arg)
{
    struct rand r;
    rand_seed(&r, (uint64_t)now_ns());
    while (!at_load(&over, RELAXED)) {
        pirn_procs(1 + (int)rand_below(&r, 8));
        sleep_ns((1 + rand_below(&r, 6)) * PIRN_MS);
    }
    return arg;
}

TEST_ATTR(preempt_procs_change, .procs = "2", .env = "PIRN_DEBUG=idle=5", .timeout = 90)
{
    pthread_t t;
    skip_if_never();
    mallopt(M_ARENA_MAX, 1);
    CHECK_EQ(pthread_create(&t, NULL, change_procs, NULL), 0);
    in_a_storm(1);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

/* --- pauses of the whole process -------------------------------------------------------------- */

/* A process of its own, until the pipe is closed; what it has stopped it continues. */
static void pause_parent(pid_t parent, int until_fd)
{
    struct rand r;
    struct pollfd p = {.fd = until_fd, .events = POLLIN};
    rand_seed(&r, (uint64_t)now_ns());
    while (poll(&p, 1, 1 + (int)rand_below(&r, 40)) == 0 && kill(parent, SIGSTOP) == 0) {
        sleep_ns(rand_below(&r, 20) * PIRN_MS);
        kill(parent, SIGCONT);
    }
    _exit(0);
}

#define PAUSES 10

static at_u32 continued;

static void note_continued(int sig)
{
    (void)sig;
    at_add(&continued, 1, RELAXED);
}

static bool paused_enough(void)
{
    return at_load(&continued, RELAXED) >= PAUSES;
}

TEST_ATTR(preempt_stop_and_continue, .slow = true, .procs = "1,2,4,16", .timeout = 90)
{
    int fds[2], status;
    struct sigaction sa = {.sa_handler = note_continued, .sa_flags = SA_RESTART | SA_ONSTACK};
    skip_if_never();
    sigaction(SIGCONT, &sa, NULL);
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t parent = getpid(), pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        close(fds[1]);
        pause_parent(parent, fds[0]);
    }
    seen_enough = paused_enough;
    corrupt_nothing(0);
    close(fds[1]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_GE(at_load(&continued, RELAXED), PAUSES);
}

/* --- many that compute (R11) ------------------------------------------------------------------ */

static at_u64 computed;

/* It is on one thread all the time, which does nothing else meanwhile. */
static void compute_for(int64_t ns)
{
    for (int64_t until = thread_cpu_ns(0) + ns; thread_cpu_ns(0) < until;) {
        compute(1000);
    }
    at_add(&computed, 1, RELAXED);
}

/* Each takes longer than a slice, and they are more than the threads that preemption may make. */
static int many(void *arg)
{
    uint64_t n = stress_long() ? 20000 : 120, most = 0;
    int64_t ns = stress_long() ? 50 * PIRN_MS : 30 * PIRN_MS;
    pirn_wg wg = {0};
    pirn_metrics_v1 m;
    (void)arg;
    for (uint64_t i = 0; i < n; i++) {
        pirn_wg_go(&wg, compute_for, ns);
    }
    do {
        pirn_sleep(20 * PIRN_MS);
        CHECK_EQ(pirn_metrics(&m), 0);
        most = m.threads > most ? m.threads : most;
    } while (at_load(&computed, RELAXED) < n);
    pirn_wg_wait(&wg);
    printf("%llu preempted, at most %llu threads\n", (unsigned long long)m.preempted,
           (unsigned long long)most);
    CHECK_GT(m.preempted, 0);
    /* Beside those that are stopped: those that run, and spares. */
    CHECK_LE(most, TEST_SPARE_THREADS(m.procs) + 2 * (int)m.procs + 2);
    return 0;
}

TEST_ATTR(preempt_many, .slow = true, .procs = "1,2,4,16", .timeout = 90)
{
    pirn_config config = {.time_slice = PIRN_MS};
    skip_if_never();
    CHECK_EQ(pirn_run_config(&config, many, NULL), 0);
}
