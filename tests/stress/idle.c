/* SPDX-License-Identifier: MIT */
/*
 * An idle program uses no CPU: less than 1 ms in 2 s with 10,000 goroutines parked, once the
 * stacks that were too many have been given back, for which there are 30 s. A sanitizer's own
 * thread, which wakes ten times a second, is left out: those that exist before the runtime starts. In a
 * program that computes the runtime's own watchman uses little.
 */
#include <dirent.h>

#include "stress/recount.h"

#define PARKED (TEST_TSAN ? 2000 : 10000)
#define BURST (TEST_TSAN ? 500 : 2000)

static void wait_at(pirn_wg *gate)
{
    pirn_wg_wait(gate);
}

static void park_many(pirn_wg *gate, pirn_wg *all, int n)
{
    pirn_wg_add(gate, 1);
    for (int i = 0; i < n; i++) {
        pirn_wg_go(all, wait_at, gate);
    }
}

static void burst(void)
{
    pirn_wg gate = {0}, all = {0};
    park_many(&gate, &all, BURST);
    sleep_ns(20 * PIRN_MS);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
}

static pid_t tool_thread; /* 0 if there is none */

static void *say_tid(void *tid)
{
    *(pid_t *)tid = gettid();
    return NULL;
}

static void note_tool_thread(void)
{
    pthread_t first; /* ThreadSanitizer makes its own together with the first */
    pid_t first_tid; /* which may still be listed when it has been joined */
    CHECK_EQ(pthread_create(&first, NULL, say_tid, &first_tid), 0);
    CHECK_EQ(pthread_join(first, NULL), 0);
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        pid_t tid = atoi(e->d_name);
        if (tid && tid != getpid() && tid != first_tid) {
            CHECK_EQ(tool_thread, 0);
            tool_thread = tid;
        }
    }
    closedir(dir);
}

static int64_t cpu_ns(clockid_t clock)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(clock, &t), 0);
    return (int64_t)t.tv_sec * PIRN_SEC + t.tv_nsec;
}

/* Of the whole process, but for the thread that measures and the tool's. */
static int64_t pirn_cpu_ns(void)
{
    int64_t others = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    if (tool_thread) { /* the clock that pthread_getcpuclockid() would name */
        others += cpu_ns((clockid_t)(~(unsigned)tool_thread << 3 | 6));
    }
    return process_cpu_ns() - others;
}

#define MOST (PIRN_MS / 2) /* of CPU in a second */

static void must_be_idle(const char *when)
{
    int64_t used = 0, until = now_ns() + 30 * PIRN_SEC;
    do {
        int64_t before = pirn_cpu_ns();
        sleep_ns(1 * PIRN_SEC);
        used = pirn_cpu_ns() - before;
    } while (used >= MOST && now_ns() < until);
    printf("%s: %lld us of CPU in 1 s\n", when, (long long)used / 1000);
    if (used >= MOST) {
        show_state(STDERR_FILENO);
        FAIL("an idle runtime uses CPU");
    }
}

TEST_ATTR(idle_in_the_background, .timeout = 100, .alone = true)
{
    pirn_wg gate = {0}, all = {0};
    note_tool_thread();
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    must_be_idle("nothing started");
    park_many(&gate, &all, PARKED);
    must_be_idle("parked");
    burst();
    must_be_idle("after a burst");
    recount(PARKED);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

/* So do goroutines that sleep, and timers that are far away, whoever keeps the time meanwhile. */
static void sleep_for_a_day(void)
{
    pirn_sleep(86400 * PIRN_SEC);
    FAIL("a day has passed");
}

static void never_called(void *arg)
{
    (void)arg;
    FAIL("a day has passed");
}

TEST_ATTR(idle_with_sleepers, .timeout = 100, .alone = true)
{
    pirn_timer *timers[100];
    note_tool_thread();
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    for (int i = 0; i < 1000; i++) {
        pirn_go(sleep_for_a_day);
    }
    for (int i = 0; i < (int)ARRAY_LEN(timers); i++) {
        timers[i] = pirn_after_func((86400 + i) * PIRN_SEC, never_called, NULL);
    }
    must_be_idle("asleep");
    for (int i = 0; i < 20; i++) {
        pirn_timer *near = pirn_timer_new(PIRN_MS);
        pirn_chan_get(pirn_timer_chan(near));
        pirn_timer_free(near);
    }
    must_be_idle("asleep, after short timers");
    recount(1000);
    for (int i = 0; i < (int)ARRAY_LEN(timers); i++) {
        pirn_timer_free(timers[i]);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* The detector of deadlocks has a thread of the program's own to wait for. */
static pirn_wg finish;

static void *measure(void *arg)
{
    (void)arg;
    must_be_idle("under pirn_run");
    burst();
    must_be_idle("under pirn_run, after a burst");
    pirn_wg_done(&finish);
    return NULL;
}

static int wait_for_measure(void *arg)
{
    static pirn_wg gate, all;
    pthread_t t;
    (void)arg;
    pirn_wg_add(&finish, 1);
    park_many(&gate, &all, PARKED);
    CHECK_EQ(pthread_create(&t, NULL, measure, NULL), 0);
    pirn_wg_wait(&finish);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 7;
}

TEST_ATTR(idle_with_a_thread, .timeout = 100, .alone = true)
{
    note_tool_thread();
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 4}, wait_for_measure, NULL), 7);
}

/* Some block their threads, with or without a word: they lose their Ps, though nobody wants those. */
static int never_written[2];

static void blocks(bool announced)
{
    char byte;
    if (announced) {
        pirn_blocking_begin();
    }
    CHECK_EQ(read(never_written[0], &byte, 1), 0);
    if (announced) {
        pirn_blocking_end();
    }
}

TEST_ATTR(idle_while_some_block, .timeout = 100, .alone = true)
{
    pirn_wg all = {0};
    note_tool_thread();
    CHECK_EQ(pipe2(never_written, O_CLOEXEC), 0);
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    for (int i = 0; i < 3; i++) {
        pirn_wg_go(&all, blocks, i == 0);
    }
    must_be_idle("some block");
    close(never_written[1]);
    pirn_wg_wait(&all);
    close(never_written[0]);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- busy ----------------------------------------------------------------------------------------- */

/* The folder in /proc of the thread with this name. */
static void find_thread(const char *name, char *folder, size_t size)
{
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    folder[0] = '\0';
    for (struct dirent *e; (e = readdir(dir));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f && fgets(comm, sizeof comm, f) && !strcmp(comm, name)) {
            snprintf(folder, size, "/proc/self/task/%s", e->d_name);
        }
        if (f) {
            fclose(f);
        }
    }
    closedir(dir);
    CHECK(folder[0] != '\0');
}

/* How often it has gone to sleep. */
static long count_sleeps(const char *folder)
{
    char path[320], line[100];
    long n = -1;
    snprintf(path, sizeof path, "%s/status", folder);
    FILE *f = fopen(path, "re");
    CHECK(f != NULL);
    while (n < 0 && fgets(line, sizeof line, f)) {
        sscanf(line, "voluntary_ctxt_switches: %ld", &n);
    }
    fclose(f);
    CHECK_GE(n, 0);
    return n;
}

static at_u32 enough;

static void compute(void)
{
    while (!at_load(&enough, RELAXED)) {
    }
}

/* Code that could block, and says so again and again. */
static void announce(void)
{
    while (!at_load(&enough, RELAXED)) {
        pirn_blocking_begin();
        getppid();
        pirn_blocking_end();
        pirn_yield();
    }
}

/* Sysmon itself looks every 5 ms while more compute than there are Ps: what a look costs is the benchmarks' to
 * say. A thread that loses its CPU to others may seem to block, and is looked at again soon: the best counts. */
static int looks_now_and_then(void *arg)
{
    void (*work)(void) = *(void (**)(void))arg;
    int most = work == compute ? 250 : 500; /* a second time each, for those that may block */
    pirn_wg wg = {0};
    char folder[300];
    int64_t from = now_ns();
    double best = 1e9;
    find_thread("pirn-sysmon\n", folder, sizeof folder);
    for (int i = 0; i < 3 * pirn_procs(0); i++) {
        pirn_wg_go(&wg, work);
    }
    do {
        int64_t wall = now_ns();
        long before = count_sleeps(folder);
        pirn_sleep(PIRN_SEC / 2);
        double each = (double)(count_sleeps(folder) - before) * 1e9 / (double)(now_ns() - wall);
        best = each < best ? each : best;
    } while (best > most && now_ns() < from + 10 * PIRN_SEC);
    at_store(&enough, 1, RELAXED);
    pirn_wg_wait(&wg);
    printf("sysmon: %.0f looks a second\n", best);
    CHECK(best <= most);
    return 0;
}

static void is_seldom_looked_at(void (*work)(void))
{
    if (PIRN_FLAVOUR_CHAOS) {
        SKIP("the pauses of this flavour are sleeps of sysmon's too");
    }
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 2}, looks_now_and_then, &work), 0);
}

TEST_ATTR(busy, .timeout = 60, .alone = true)
{
    if (TEST_TSAN) {
        SKIP("without preemption nobody would measure");
    }
    is_seldom_looked_at(compute);
}

TEST_ATTR(busy_with_short_calls, .timeout = 60, .alone = true)
{
    is_seldom_looked_at(announce);
}
