/* SPDX-License-Identifier: MIT */
/*
 * The unwinder on the stacks of goroutines: it ends at their first frame, in arch_start, wherever the
 * goroutine has been meanwhile, and whatever instruction of a switch it begins at.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "harness.h"
#include "sched/sched.h"

#if defined(__GLIBC__)
#include <execinfo.h>

#define PROCS .procs = "1,2,4,16"
#define MOST 2000
#define FEW (TEST_TSAN ? 20 : 1)

struct trace {
    int n;
    void *pc[MOST];
};

/* The first call loads a library and allocates. */
__attribute__((noinline)) static void trace(struct trace *t)
{
    memset(t, 0, sizeof *t);
    t->n = backtrace(t->pc, MOST);
    CHECK_GT(t->n, 1);
    CHECK_LT(t->n, MOST); /* it has found an end */
}

/* arch_call_on is the next one in both files. */
static bool is_start(const void *pc)
{
    uintptr_t start = (uintptr_t)arch_start, behind = (uintptr_t)arch_call_on;
    return (uintptr_t)pc >= start && (uintptr_t)pc < behind;
}

/* The start is the last frame, and is there once. */
static void ends_at_start(const struct trace *t)
{
    CHECK(is_start(t->pc[t->n - 1]));
    for (int i = 0; i < t->n - 1; i++)
        CHECK(!is_start(t->pc[i]));
}

/* --- where it has been ----------------------------------------------------------------------------- */

static void same(const struct trace *a, const struct trace *b)
{
    CHECK_EQ(a->n, b->n);
    for (int i = 3; i < a->n; i++) /* a tool's, trace(), and its caller, unrolled perhaps */
        CHECK_EQ(a->pc[i], b->pc[i]);
}

/* All its traces are the same. */
static void wander(at_u32 *moved)
{
    struct trace *first = calloc(1, sizeof *first), *now = calloc(1, sizeof *now);
    struct m *mp = getm();
    for (int i = 0; i < 100 / FEW; i++) {
        trace(i ? now : first);
        ends_at_start(first);
        if (i)
            same(first, now);
        if (i % 3)
            pirn_yield();
        else
            pirn_sleep(i % 2 ? PIRN_US : 50 * PIRN_US);
        at_add(moved, getm() != mp, RELAXED);
        mp = getm();
    }
    free(first);
    free(now);
}

static void wander_all(void)
{
    static at_u32 moved;
    pirn_wg wg = {0};
    for (int i = 0; i < 50 / FEW + 2; i++)
        pirn_wg_go(&wg, wander, &moved);
    wander(&moved);
    pirn_wg_wait(&wg);
    if (sched.move && pirn_procs(0) > 1)
        CHECK_GT(at_load(&moved, RELAXED), 0);
}

TEST_RUN_ATTR(yields, PROCS)
{
    wander_all();
}

/* To another thread at every switch. */
TEST_RUN_ATTR(moves, PROCS, .env = "PIRN_DEBUG=move=1")
{
    wander_all();
}

/* --- how deep it is ---------------------------------------------------------------------------------- */

__attribute__((noinline)) static int descend(int n, struct trace *t)
{
    if (n == 0) {
        trace(t);
        return 0;
    }
    int below = descend(n - 1, t);
    __asm__ volatile("" : "+r"(below)); /* no tail call */
    return below + 1;
}

/* How many frames in a row return to one place: those of descend() below the first. */
static int repeated(const struct trace *t)
{
    int best = 0, run = 0;
    for (int i = 1; i < t->n; i++) {
        run = t->pc[i] == t->pc[i - 1] ? run + 1 : 0;
        best = run > best ? run : best;
    }
    return best + 1;
}

static void deep(int n)
{
    struct trace *t = calloc(1, sizeof *t), *base = calloc(1, sizeof *base);
    CHECK_EQ(descend(0, base), 0);
    CHECK_EQ(descend(n, t), n);
    ends_at_start(t);
    CHECK_EQ(t->n, base->n + n);
    pirn_yield();
    CHECK_EQ(descend(n, t), n);
    ends_at_start(t);
    CHECK_EQ(t->n, base->n + n);
    CHECK_LE(n - 1, repeated(t)); /* gcc may unroll the outermost */
    free(t);
    free(base);
}

TEST_RUN_ATTR(recursion, PROCS)
{
    pirn_wg wg = {0};
    for (int n = 10; n <= 1000; n *= 10)
        pirn_wg_go(&wg, deep, n);
    pirn_wg_wait(&wg);
}

/* --- other threads ------------------------------------------------------------------------------------ */

static void *thread_end;

static void *foreign(void *arg)
{
    static pirn_wg wg;
    static pirn_mutex mutex;
    struct trace *first = calloc(1, sizeof *first), *now = calloc(1, sizeof *now);
    for (int i = 0; i < 20; i++) {
        trace(i ? now : first);
        if (i)
            same(first, now);
        for (int k = 0; k < first->n; k++)
            CHECK(!is_start(first->pc[k]));
        if (arg) { /* has waited for goroutines */
            pirn_mutex_lock(&mutex);
            pirn_wg_go(&wg, pirn_yield);
            pirn_wg_wait(&wg);
            pirn_mutex_unlock(&mutex);
        }
    }
    thread_end = first->pc[first->n - 1];
    free(first);
    free(now);
    return NULL;
}

static void in_thread(void *arg)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, foreign, arg), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

TEST_ATTR(foreign_threads, PROCS)
{
    in_thread(NULL);
    CHECK_EQ(pirn_start(NULL), 0);
    in_thread(&thread_end);
    foreign(&thread_end);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- at any instruction -------------------------------------------------------------------------------- */

#define SAMPLES 50u

static at_u32 on_goroutines, elsewhere, over;

/* Of whatever was interrupted: a goroutine, an M on its own stack, a switch between them. */
static void check_backtrace(void)
{
    void *pc[100];
    int n = backtrace(pc, 100);
    CHECK(n > 1 && n < 100);
    if (is_start(pc[n - 1])) {
        at_add(&on_goroutines, 1, RELAXED);
    } else {
        CHECK_EQ(pc[n - 1], thread_end);
        at_add(&elsewhere, 1, RELAXED);
    }
}

/* Two instructions that a handler returns to. The kernel's can be unwound, an emulator's not. */
static bool on_the_way_back(const ucontext_t *u, const char *way)
{
#if defined(__aarch64__)
    const char *pc = (const char *)u->uc_mcontext.pc;
    return test_emulated() && pc >= way && pc < way + 8;
#else
    (void)u;
    (void)way;
    return false;
#endif
}

static void on_prof(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    if (!on_the_way_back(context, __builtin_return_address(0)))
        check_backtrace();
}

static uint32_t samples(void)
{
    return at_load(&on_goroutines, RELAXED) + at_load(&elsewhere, RELAXED);
}

/* One M after the other, as soon as the last one has answered, or does not for a while. */
static void *interrupt_all(void *arg)
{
    while (!at_load(&over, RELAXED)) {
        pthread_t ms[64];
        uint32_t n = 0;
        lock(&sched.lock);
        for (struct m *mp = sched.allm; mp && n < ARRAY_LEN(ms); mp = mp->all)
            if ((ms[n] = mp->thread)) /* 0: its thread is being made */
                n++;
        unlock(&sched.lock);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t before = samples();
            if (pthread_kill(ms[i], SIGPROF))
                continue; /* being made, too */
            for (int k = 0; k < 1000 && samples() == before; k++)
                sched_yield();
        }
    }
    return arg;
}

static void nothing(void)
{
}

static void switch_much(void)
{
    pirn_wg wg = {0};
    while (!at_load(&over, RELAXED)) {
        for (int i = 0; i < 50; i++)
            pirn_yield();
        pirn_wg_go(&wg, nothing);
        pirn_wg_wait(&wg);
    }
}

static int switch_while_interrupted(void *arg)
{
    pthread_t t;
    pirn_wg wg = {0};
    CHECK_EQ(pthread_create(&t, NULL, interrupt_all, NULL), 0);
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&wg, switch_much);
    for (pirn_ns until = pirn_now() + 60 * PIRN_SEC; at_load(&on_goroutines, RELAXED) < SAMPLES;) {
        CHECK_LT(pirn_now(), until);
        pirn_yield();
    }
    at_store(&over, 1, RELAXED);
    CHECK_EQ(pthread_join(t, NULL), 0); /* before any M ends */
    pirn_wg_wait(&wg);
    return arg != NULL;
}

TEST_ATTR(interrupted, .procs = "1,2,4")
{
    struct sigaction sa = {.sa_sigaction = on_prof, .sa_flags = SA_RESTART | SA_SIGINFO};
    if (TEST_TSAN)
        SKIP("ThreadSanitizer puts signals off until a call that it knows");
    in_thread(NULL);
    CHECK_EQ(sigaction(SIGPROF, &sa, NULL), 0);
    CHECK_EQ(pirn_run(switch_while_interrupted, NULL), 0);
}

/* --- at every instruction --------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define SINGLE_STEP 0x100

static at_u32 steps, steps_of_switch;

static void on_step(int sig, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    uintptr_t at = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    (void)sig;
    (void)info;
    check_backtrace();
    at_add(&steps, 1, RELAXED);
    if (at >= (uintptr_t)arch_switch && at < (uintptr_t)arch_call_on)
        at_add(&steps_of_switch, 1, RELAXED);
    if (at_load(&over, RELAXED))
        u->uc_mcontext.gregs[REG_EFL] &= ~SINGLE_STEP;
}

static void step_from_here(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= SINGLE_STEP;
}

static void yield_twice(void)
{
    pirn_yield();
    pirn_yield();
}

/* The flag is the thread's: whatever its goroutines do from now on. */
static int step(void *arg)
{
    pirn_wg wg = {0};
    CHECK_EQ(raise(SIGUSR1), 0);
    for (int i = 0; i < 3; i++)
        pirn_wg_go(&wg, yield_twice);
    pirn_yield();
    pirn_wg_wait(&wg);
    pirn_sleep(1); /* nobody else runs: by way of g0 */
    at_store(&over, 1, RELAXED);
    return arg != NULL;
}

TEST(every_instruction)
{
    struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    if (TEST_TSAN)
        SKIP("ThreadSanitizer puts signals off until a call that it knows");
    in_thread(NULL);
    CHECK_EQ(sigaction(SIGTRAP, &sa, NULL), 0);
    sa.sa_sigaction = step_from_here;
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1, .flags = PIRN_F_NO_PREEMPT}, step, NULL),
             0);
    if (!at_load(&steps, RELAXED))
        SKIP("no single steps here");
    CHECK_GT(at_load(&steps_of_switch, RELAXED), 100);
    CHECK_GT(at_load(&on_goroutines, RELAXED), 100);
    CHECK_GT(at_load(&elsewhere, RELAXED), 100);
}
#endif

/* --- gdb ------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) void innermost(void)
{
    CHECK_EQ(raise(SIGTRAP), 0);
    __asm__ volatile("");
}

static __attribute__((noinline)) int outermost(void *arg)
{
    pirn_yield();
    innermost();
    __asm__ volatile("");
    return arg != NULL;
}

/* It begins in the C library, and ends at the start of the goroutine. */
TEST(gdb_unwinds)
{
    static char said[65536];
    if (test_emulated())
        SKIP("gdb would show the emulator");
    if (TEST_ASAN || TEST_TSAN)
        SKIP("a sanitizer's runtime does not run under gdb everywhere");
    if (system("gdb --version >/dev/null 2>&1"))
        SKIP("gdb is not installed");
    if (getenv("PIRN_TEST_UNDER_GDB"))
        exit(pirn_run(outermost, NULL));
    char self[512] = "", cmd[1024];
    CHECK_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
    snprintf(cmd, sizeof cmd,
             "PIRN_TEST_UNDER_GDB=1 gdb -nx -batch -ex 'set debuginfod enabled off' -ex run -ex bt "
             "--args '%s' gdb_unwinds 2>&1 </dev/null",
             self);
    FILE *gdb = popen(cmd, "r");
    CHECK(gdb != NULL);
    size_t n = fread(said, 1, sizeof said - 1, gdb);
    said[n] = '\0';
    pclose(gdb);
    if (strstr(said, "ptrace: Operation not permitted"))
        SKIP("gdb must not trace here");
    char *first = strstr(said, "innermost"), *last = strstr(said, "outermost"),
         *start = strstr(said, "arch_start");
    printf("%s", said);
    CHECK(first && last && start && first < last && last < start);
    CHECK(!strchr(start, '#')); /* no frame behind it */
    CHECK(!strstr(said, "corrupt stack"));
}

#else

TEST(backtrace)
{
    SKIP("backtrace() is glibc's");
}

#endif
