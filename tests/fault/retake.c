/* SPDX-License-Identifier: MIT */
/*
 * What the scheduler needs to see who blocks and to stop who computes is denied: /proc, membarrier,
 * timers, descriptors, threads. The others go on all the same; what is lost is said once.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/resource.h>

#include "fault/deny.h"
#include "go/busy.h"
#include "stress/recount.h"

#define NO_PROC "pirn: cannot read /proc/self/task"
#define NO_FENCE "pirn: no membarrier"
#define NO_TIMERS "pirn: no timers for preemption"
#define NO_THREADS "pirn: cannot make a thread"

/* --- the others go on ------------------------------------------------------------------------------- */

static int fds[2];
static atomic_int entered, returned;
static pirn_wg readers;

static void reads(void)
{
    char byte;
    ssize_t got;
    atomic_fetch_add(&entered, 1);
    do {
        got = read(fds[0], &byte, 1);
    } while (got < 0 && errno == EINTR); /* where nothing else helps it may be interrupted */
    CHECK_EQ(got, 1);
    atomic_fetch_add(&returned, 1);
}

/* As many threads as there are Ps block, and nobody told. */
static void start_readers(int n)
{
    atomic_store(&entered, 0);
    atomic_store(&returned, 0);
    CHECK_EQ(fds[1] ? 0 : pipe2(fds, O_CLOEXEC), 0);
    for (int i = 0; i < n; i++)
        pirn_wg_go(&readers, reads);
}

static void end_readers(int n)
{
    CHECK_EQ(atomic_load(&returned), 0);
    for (int i = 0; i < n; i++)
        CHECK_EQ(write(fds[1], "x", 1), 1);
    pirn_wg_wait(&readers);
}

static void beside_readers(void)
{
    int n = pirn_procs(0);
    start_readers(n);
    YIELD_UNTIL(atomic_load(&entered) == n);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(pirn_sleep(2 * PIRN_MS), 0);
    end_readers(n);
}

static void beside_loops(void)
{
    start_loops(2 * pirn_procs(0));
    await_preempted(6);
    end_loops();
}

static int beside_both(void *arg)
{
    for (int i = 0; i < 2; i++) {
        beside_readers();
        beside_loops();
    }
    int n = pirn_procs(0);
    start_loops(n);
    start_readers(n);
    SLEEP_UNTIL(atomic_load(&entered) == n);
    await_preempted(6);
    end_readers(n);
    end_loops();
    return arg != NULL;
}

static bool short_slices; /* less than sysmon's looks are apart */

static void run_both(void)
{
    pirn_config config = {.time_slice = PIRN_MS};
    if (short_slices)
        CHECK_EQ(pirn_run_config(&config, beside_both, NULL), 0);
    else
        CHECK_EQ(pirn_run(beside_both, NULL), 0);
}

/* Readers only: the P is taken, without a signal. */
static int taken_from_readers(void *arg)
{
    uint64_t before = retaken();
    for (int i = 0; i < 5; i++)
        beside_readers();
    CHECK_GT(retaken(), before);
    return arg != NULL;
}

/* --- /proc ------------------------------------------------------------------------------------------- */

static void deny_proc(void)
{
    deny_if_third(SYS_openat, O_RDONLY | O_CLOEXEC, EACCES);
    CHECK(open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
}

static void without_proc(void)
{
    deny_proc();
    run_both();
}

/* As where it is not mounted, or is that of another namespace. */
static void proc_is_elsewhere(void)
{
    deny_if_third(SYS_openat, O_RDONLY | O_CLOEXEC, ENOENT);
    run_both();
}

TEST_ATTR(proc_not_mounted, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    CHECK_EQ(count_in_stderr(proc_is_elsewhere, NO_PROC), 1);
}

TEST_ATTR(no_proc, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    CHECK_EQ(count_in_stderr(without_proc, NO_PROC), 1);
}

/* Here it is sysmon alone that stops those who block. */
TEST_ATTR(no_proc_short_slices, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    short_slices = true;
    CHECK_EQ(count_in_stderr(without_proc, NO_PROC), 1);
}

static int loses_proc(void *arg)
{
    CHECK_EQ(taken_from_readers(arg), 0);
    deny_proc();
    return beside_both(arg);
}

static void without_proc_later(void)
{
    CHECK_EQ(pirn_run(loses_proc, NULL), 0);
}

TEST_ATTR(no_proc_later, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    CHECK_EQ(count_in_stderr(without_proc_later, NO_PROC), 1);
}

/* No memory for it, once: that passes, and so it is not denied. */
static atomic_int without_memory; /* so many times */

int open64(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (!strncmp(path, "/proc/self/task/", 16) && atomic_load(&without_memory)) {
        atomic_fetch_sub(&without_memory, 1);
        errno = ENOMEM;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "open64");
    return real(path, flags, mode);
}

static void without_memory_once(void)
{
    atomic_store(&without_memory, 1);
    CHECK_EQ(pirn_run(taken_from_readers, NULL), 0);
    CHECK_EQ(atomic_load(&without_memory), 0);
}

TEST_ATTR(no_memory_once, PROCS, .timeout = 60)
{
    CHECK_EQ(count_in_stderr(without_memory_once, NO_PROC), 1);
}

/* A process that may not be dumped: /proc is root's. */
static void not_dumpable(void)
{
    CHECK_EQ(setresuid(65534, 65534, 65534), 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
    CHECK(open("/proc/self/syscall", O_RDONLY) < 0 && errno == EACCES);
    run_both();
}

TEST_ATTR(no_dumps, PROCS, .timeout = 60)
{
    needs_preemption();
    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    CHECK_EQ(count_in_stderr(not_dumpable, NO_PROC), 1);
}

/* --- membarrier -------------------------------------------------------------------------------------- */

static int loses_membarrier(void *arg)
{
    CHECK_EQ(taken_from_readers(arg), 0);
    deny(SYS_membarrier, EPERM);
    CHECK_EQ(syscall(SYS_membarrier, 0, 0, 0), -1);
    if (TEST_TSAN) {
        fence_heavy(); /* as one who takes a P does; without signals the readers would keep theirs */
        return 0;
    }
    for (int i = 0; i < 5; i++)
        beside_readers(); /* they are stopped by signals now */
    return beside_both(arg);
}

/* It is asked for when the program starts; without it nobody's P can be taken behind his back. */
TEST_ATTR(no_membarrier_later, PROCS, .timeout = 60, .once = true)
{
    needs_filters();
    if (at_load(&fence_light_is_full, RELAXED))
        SKIP("there is no membarrier here");
    CHECK_EQ(pirn_run(loses_membarrier, NULL), 0);
    CHECK(at_load(&fence_light_is_full, RELAXED));
}

#define AGAIN "PIRN_TEST_AGAIN"

static void executes_itself(void)
{
    deny(SYS_membarrier, EPERM);
    CHECK_EQ(setenv(AGAIN, "1", 1), 0);
    execl("/proc/self/exe", "retake", "no_membarrier", (char *)NULL);
    FAIL("exec");
}

TEST_ATTR(no_membarrier, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    if (getenv(AGAIN)) {
        CHECK(at_load(&fence_light_is_full, RELAXED));
        run_both();
        return;
    }
    CHECK_EQ(count_in_stderr(executes_itself, NO_FENCE), 1);
}

/* --- timers ------------------------------------------------------------------------------------------ */

static void without_timers(void)
{
    deny(SYS_timer_create, EAGAIN);
    run_both();
}

TEST_ATTR(no_timers, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    CHECK_EQ(count_in_stderr(without_timers, NO_TIMERS), 1);
}

/* And here those who compute. */
TEST_ATTR(no_timers_short_slices, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    short_slices = true;
    CHECK_EQ(count_in_stderr(without_timers, NO_TIMERS), 1);
}

/* The kernel has a limit for them: signals that may be pending. */
static void no_room_for_timers(void)
{
    timer_t t;
    struct rlimit none = {0, 0};
    CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    if (timer_create(CLOCK_MONOTONIC, NULL, &t) == 0)
        SKIP("RLIMIT_SIGPENDING is not heeded here");
    run_both();
}

TEST_ATTR(no_room_for_timers, PROCS, .timeout = 60)
{
    needs_preemption();
    CHECK_EQ(count_in_stderr(no_room_for_timers, NO_TIMERS), 1);
}

/* --- all of it ----------------------------------------------------------------------------------------- */

static void without_all(void)
{
    deny(SYS_timer_create, EAGAIN);
    deny(SYS_membarrier, EPERM);
    deny_proc();
    run_both();
}

TEST_ATTR(nothing_left, PROCS, .timeout = 60)
{
    needs_preemption();
    needs_filters();
    CHECK_EQ(count_in_stderr(without_all, "pirn: "), 2); /* timers; /proc or membarrier */
}

/* --- descriptors ---------------------------------------------------------------------------------------- */

/* There are no more than are open now. */
static void use_up_descriptors(void)
{
    struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (dup(STDERR_FILENO) >= 0) {
    }
    CHECK_EQ(errno, EMFILE);
}

static int loses_descriptors(void *arg)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    use_up_descriptors();
    return taken_from_readers(arg);
}

static void without_descriptors_later(void)
{
    CHECK_EQ(pirn_run(loses_descriptors, NULL), 0);
}

/* One was kept for this. */
TEST_ATTR(no_descriptors_later, PROCS, .timeout = 60)
{
    CHECK_EQ(count_in_stderr(without_descriptors_later, "pirn: "), 0);
}

static void without_descriptors(void)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    use_up_descriptors();
    run_both();
    _exit(0); /* LeakSanitizer would want one */
}

/* There was none to keep: as without /proc. */
TEST_ATTR(no_descriptors, PROCS, .timeout = 60)
{
    needs_preemption();
    CHECK_EQ(count_in_stderr(without_descriptors, NO_PROC), 1);
}

/* --- threads --------------------------------------------------------------------------------------------- */

static void blocks_a_while(void)
{
    plain_sleep(5 * PIRN_MS);
    atomic_fetch_add(&returned, 1);
}

static void computes_a_while(void)
{
    for (pirn_ns until = plain_now() + 5 * PIRN_MS; plain_now() < until;) {
    }
    atomic_fetch_add(&returned, 1);
}

static void announces_a_while(void)
{
    pirn_blocking_begin();
    plain_sleep(5 * PIRN_MS);
    pirn_blocking_end();
    atomic_fetch_add(&returned, 1);
}

/* Threads are asked for, in vain: those that there are do the work. */
static int loses_threads(void *arg)
{
    static void (*const kinds[])(void) = {blocks_a_while, computes_a_while, announces_a_while};
    pirn_wg wg = {0};
    deny(SYS_clone3, EAGAIN);
    deny(SYS_clone, EAGAIN);
    uint64_t threads = metrics().threads;
    for (int i = 0; i < 150; i++)
        pirn_wg_go(&wg, kinds[i % 3]);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(pirn_sleep(PIRN_MS), 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&returned), 150);
    CHECK_LE(metrics().threads, threads);
    return arg != NULL;
}

static void without_threads(void)
{
    CHECK_EQ(pirn_run(loses_threads, NULL), 0);
    _exit(0); /* LeakSanitizer would want one */
}

TEST_ATTR(no_threads, PROCS, .timeout = 60)
{
    needs_filters();
    CHECK_EQ(count_in_stderr(without_threads, NO_THREADS), 1);
}
