/* SPDX-License-Identifier: MIT */
/* Stacks: sizes, promises, reuse, guards, and giving memory back (conformance 155). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "go/idle.h"
#include "harness.h"
#include "sched/stack.h"

#define KB ((size_t)1 << 10)
#define GB ((size_t)1 << 30)
#define SANITIZED (TEST_ASAN || TEST_TSAN || TEST_MSAN) /* frames are much bigger then */

/* --- sizes ---------------------------------------------------------------------------------------- */

static const size_t sizes[STACK_CLASSES] = {
    2 * KB,    4 * KB,    8 * KB,  64 * KB, 128 * KB, 256 * KB, 512 * KB, 1024 * KB, 2048 * KB,
    4096 * KB, 8192 * KB, GB / 64, GB / 32, GB / 16,  GB / 8,   GB / 4,   GB / 2,    GB,
};

TEST(classes)
{
    for (int c = 0; c < STACK_CLASSES; c++) {
        CHECK_EQ(stack_kinds[c].size, sizes[c]);
        CHECK_EQ(stack_class(sizes[c]), c);
        CHECK_EQ(stack_class(sizes[c] - 1), c);
        CHECK_EQ(stack_class(sizes[c] + 1), c + 1 < STACK_CLASSES ? c + 1 : -EINVAL);
        CHECK_EQ(stack_kinds[c].guard > 0, c >= STACK_DENSE);
        CHECK_EQ(stack_kinds[c].guard % 4096, 0);
        CHECK_LE(stack_kinds[c].guard, sizes[c] / 4);
        CHECK(stack_kinds[c].cache >= 2 && stack_kinds[c].cache <= STACK_CACHE);
    }
    CHECK_EQ(stack_class(0), -EINVAL);
    CHECK_EQ(stack_class(1), 0);
    CHECK_EQ(stack_class(GB), STACK_CLASSES - 1);
    CHECK_EQ(stack_class(GB + 1), -EINVAL);
    CHECK_EQ(stack_class(SIZE_MAX), -EINVAL);
}

/* --- the pools without a runtime ------------------------------------------------------------------ */

#define CLASS 3 /* 64 KB */

static struct p ps[2]; /* zeroed: empty caches */

static pirn_metrics_v1 stacks_now(void)
{
    pirn_metrics_v1 m = {0};
    stack_metrics(&m);
    return m;
}

static void pools_begin(uint32_t procs)
{
    CHECK_EQ(stack_init(GUARD_NONE), 0);
    CHECK_EQ(stack_room_for_procs(procs), 0);
}

/* What is promised can be taken, though from some point on no memory is to be had. */
TEST(promises_are_kept)
{
    static uintptr_t taken[5000];
    uint32_t promised, got = 0;
    pools_begin(2);
    CHECK_EQ(stack_promise(&ps[0], CLASS), 0);
    at_store(&mem_fail_after, 1, RELAXED); /* every mapping fails from now on */
    for (promised = 1; stack_promise(&ps[0], CLASS) == 0; promised++)
        CHECK_LT(promised, ARRAY_LEN(taken));
    CHECK_GE(promised, STACK_BATCH);
    CHECK_EQ(stack_promise(NULL, CLASS), -ENOMEM);
    CHECK_EQ(stack_promise(NULL, CLASS + 1), -ENOMEM); /* a class without any slot */
    CHECK_EQ(ps[0].stacks[CLASS].promises, 0);
    /* all those goroutines, and two full caches: the pool has that many at least */
    uint32_t need = promised + 2 * stack_kinds[CLASS].cache, n;
    while (got < need && (n = pool_take(CLASS, taken + got, 32)) > 0)
        got += n;
    CHECK_GE(got, need);
    CHECK_EQ(stacks_now().stacks, got);
    CHECK_EQ(stacks_now().stacks_warm, 0);
    pool_give(CLASS, taken, got);
    CHECK_EQ(stacks_now().stacks, 0);
    CHECK_EQ(stacks_now().stacks_warm, got);
    /* a promise that is returned can be given again, and the memory may come back */
    stack_unpromise(NULL, CLASS);
    CHECK_EQ(stack_promise(NULL, CLASS), 0);
    CHECK_EQ(stack_promise(NULL, CLASS), -ENOMEM);
    at_store(&mem_fail_after, 0, RELAXED);
    CHECK_EQ(stack_promise(NULL, CLASS), 0);
    stack_fini(false);
}

/* Nobody else gets what a P holds in reserve; a flush returns it all. */
TEST(promises_of_a_p)
{
    pools_begin(1);
    CHECK_EQ(stack_promise(&ps[0], CLASS), 0);
    CHECK_EQ(ps[0].stacks[CLASS].promises, STACK_BATCH - 1);
    for (uint32_t i = 1; i < STACK_BATCH; i++)
        CHECK_EQ(stack_promise(&ps[0], CLASS), 0);
    CHECK_EQ(ps[0].stacks[CLASS].promises, 0);
    CHECK_EQ(stack_promise(&ps[0], CLASS), 0);
    CHECK_EQ(ps[0].stacks[CLASS].promises, STACK_BATCH - 1);
    /* returned on another P: it keeps some, not all */
    for (uint32_t i = 0; i < STACK_BATCH + 1; i++)
        stack_unpromise(&ps[1], CLASS);
    CHECK_EQ(ps[1].stacks[CLASS].promises, STACK_BATCH + 1);
    stack_flush(&ps[0]);
    stack_flush(&ps[1]);
    for (int p = 0; p < 2; p++)
        CHECK_EQ(ps[p].stacks[CLASS].promises, 0);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK_EQ(stack_promise(&ps[0], CLASS), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        stack_unpromise(&ps[0], CLASS);
        CHECK_LE(ps[0].stacks[CLASS].promises, 4 * STACK_BATCH);
    }
    stack_flush(&ps[0]);
    stack_fini(false);
}

static int by_value(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* Slots don't overlap, whatever chunk they come from, and are all given out again. */
TEST(slots_are_disjoint)
{
    for (int class = 0; class < 6; class ++) {
        enum { N = 2500 };
        static uintptr_t slots[N], again[N];
        pools_begin(1);
        CHECK_EQ(pool_promise(class, N), 0);
        for (int round = 0; round < 2; round++) {
            uint32_t got = 0;
            while (got < N)
                got += pool_take(class, slots + got, N - got < 100 ? N - got : 100);
            qsort(slots, N, sizeof slots[0], by_value);
            for (int i = 1; i < N; i++)
                CHECK_GE((slots[i] & ~7ul) - (slots[i - 1] & ~7ul), stack_kinds[class].size);
            if (round)
                CHECK(!memcmp(slots, again, sizeof slots)); /* warm ones are given out first */
            memcpy(again, slots, sizeof slots);
            pool_give(class, slots, N);
        }
        pool_unpromise(class, N);
        stack_fini(false);
    }
}

/* The last freed is the first taken; a full cache gives its coldest half away. */
TEST(cache_is_lifo)
{
    enum { N = 3 * STACK_CACHE };
    static struct g g[N];
    struct stack_cache *c = &ps[0].stacks[CLASS];
    pools_begin(1);
    CHECK_EQ(pool_promise(CLASS, N), 0);
    for (int i = 0; i < N; i++) {
        if (c->n == 0)
            stack_refill_g0(&ps[0], CLASS);
        CHECK(c->n > 0);
        g[i].class = CLASS;
        g[i].flags = G_UNGUARDED;
        g[i].stack_hi = (void *)(c->slot[--c->n] & ~(uintptr_t)SLOT_UNGUARDED);
    }
    for (int i = 0; i < N; i++) {
        void *hi = g[i].stack_hi;
        stack_give_owner(&ps[0], &g[i]);
        CHECK_EQ(g[i].stack_hi, NULL);
        CHECK_LE(c->n, stack_kinds[CLASS].cache);
        CHECK_EQ(c->slot[c->n - 1], (uintptr_t)hi | SLOT_UNGUARDED);
    }
    CHECK_EQ(stacks_now().stacks, c->n); /* the others are in the pool */
    CHECK_EQ(stacks_now().stacks_warm, N - c->n);
    stack_flush(&ps[0]);
    CHECK_EQ(stacks_now().stacks, 0);
    pool_unpromise(CLASS, N);
    stack_fini(false);
}

/* The clock is ours: all but the floor goes back, and what is in use is not touched. */
TEST(trim_by_the_clock)
{
    enum { N = 20000, KEPT = 100 };
    static uintptr_t slots[N];
    pools_begin(1);
    CHECK_EQ(pool_promise(CLASS, N), 0);
    for (uint32_t got = 0; got < N;)
        got += pool_take(CLASS, slots + got, N - got < 32 ? N - got : 32);
    for (uint32_t i = 0; i < KEPT; i++)
        *(uint64_t *)((slots[i * 7] & ~7ul) - 8) = i;
    int64_t now = now_ns();
    CHECK_EQ(stack_trim(now), INT64_MAX); /* nothing is warm */
    for (uint32_t i = 0; i < N; i++) {
        if (i % 7 || i / 7 >= KEPT)
            pool_give(CLASS, &slots[i], 1);
    }
    CHECK_EQ(stacks_now().stacks, KEPT);
    CHECK_EQ(stacks_now().stacks_warm, N - KEPT);
    uint64_t warm = N;
    int64_t next = now;
    for (int i = 0; next != INT64_MAX; i++) {
        CHECK_LT(i, 2500);
        now += 20 * 1000 * 1000;
        next = stack_trim(now);
        CHECK_LE(stacks_now().stacks_warm, warm);
        warm = stacks_now().stacks_warm;
        if (i < 10)
            CHECK_GT(warm, N / 2); /* the peak of the last second stays */
    }
    CHECK_LE(warm, 64);
    CHECK_GT(warm, 0);
    for (uint32_t i = 0; i < KEPT; i++)
        CHECK_EQ(*(uint64_t *)((slots[i * 7] & ~7ul) - 8), i);
    /* what has been given back can be used again */
    static uintptr_t more[1000];
    uint32_t got = 0;
    while (got < 1000)
        got += pool_take(CLASS, more + got, 32 < 1000 - got ? 32 : 1000 - got);
    for (uint32_t i = 0; i < got; i++)
        *(uint64_t *)((more[i] & ~7ul) - 8) = i;
    pool_give(CLASS, more, got);
    stack_fini(false);
}

/* --- programs that must die ------------------------------------------------------------------------ */

struct with_debug {
    void (*fn)(void);
    const char *debug;
};

static void set_debug_and_call(void *arg)
{
    struct with_debug *w = arg;
    setenv("PIRN_DEBUG", w->debug, 1);
    w->fn();
}

static int in_child(void (*fn)(void), const char *debug)
{
    return test_in_child(set_debug_and_call, &(struct with_debug){fn, debug});
}

static void freed_twice(void)
{
    uintptr_t slot;
    pools_begin(1);
    CHECK_EQ(pool_promise(CLASS, 1), 0);
    CHECK_EQ(pool_take(CLASS, &slot, 1), 1);
    pool_give(CLASS, &slot, 1);
    pool_give(CLASS, &slot, 1);
}

static void too_many_returned(void)
{
    pools_begin(1);
    CHECK_EQ(pool_promise(CLASS, 2), 0);
    pool_unpromise(CLASS, 3);
}

TEST(broken_books)
{
    int status = in_child(freed_twice, "");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_STR(test_said, "fatal error: stack: a slot was freed twice\n");
    status = in_child(too_many_returned, "");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_STR(test_said, "fatal error: stack: more promises returned than given\n");
}

static size_t probe_size;  /* of the stack that is tried */
static ptrdiff_t probe_at; /* the byte that is written, from stack_lo */
static enum guard_kind probe_kind;

__attribute__((noinline, no_sanitize("address", "thread"))) static void poke(void *arg)
{
    (void)arg;
    char *lo = stack_lo(getm()->curg);
    ((volatile char *)lo)[probe_at] = 1;
}

static int spawn_poke(void *arg)
{
    (void)arg;
    pirn_metrics_v1 m;
    pirn_attr attr = {.stack_size = probe_size};
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_EQ(m.guard, probe_kind);
    CHECK_EQ(pirn_spawn(&attr, poke, NULL), 0);
    while (pirn_num_goroutines() > 1)
        pirn_yield();
    return 0;
}

static void run_poke(void)
{
    _exit(pirn_run(spawn_poke, NULL) == 0 ? 0 : 99);
}

/* The lowest byte of a stack can be used; below it all of the guard can't. */
static void try_guard(enum guard_kind kind, const char *debug)
{
    static const size_t tried[] = {0, 64 * KB, 1024 * KB, GB / 16};
    probe_kind = kind;
    for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
        probe_size = tried[i];
        ptrdiff_t guard = (ptrdiff_t)stack_kinds[stack_class(tried[i] ? tried[i] : 256 * KB)].guard;
        ptrdiff_t bad[] = {-1, -4096, -guard / 2, -guard};
        probe_at = 0;
        CHECK_EQ(in_child(run_poke, debug), 0);
        for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
            probe_at = bad[k];
            int status = in_child(run_poke, debug);
            CHECK(WIFSIGNALED(status));
            CHECK_EQ(WTERMSIG(status), SIGSEGV);
        }
    }
}

TEST(guard_default)
{
    try_guard(mem_guard_probe(), "guard=auto");
}

TEST(guard_madvise)
{
    if (mem_guard_probe() != GUARD_MADVISE)
        SKIP("this kernel has no guard regions");
    try_guard(GUARD_MADVISE, "guard=madvise");
}

TEST(guard_mprotect)
{
    try_guard(GUARD_MPROTECT, "guard=mprotect");
}

/* Down to some bytes below the lowest usable address. */
__attribute__((noinline)) static char descend(char *lo)
{
    volatile char frame[512];
    frame[0] = 1;
    if ((char *)__builtin_frame_address(0) > lo - 2048) /* a tool may put the array elsewhere */
        frame[0] = (char)(descend(lo) + 1);
    else
        pirn_yield(); /* looked at when it switches */
    return frame[0];
}

static void overrun(void *arg)
{
    (void)arg;
    descend(stack_lo(getm()->curg));
}

/* The canary is overwritten, but the stack is high again at the switch. */
__attribute__((noinline, no_sanitize("address", "thread"))) static void overwrite(void *arg)
{
    memset(stack_lo(getm()->curg), 0, 8);
    if (arg)
        pirn_yield();
}

static void (*bad_fn)(void *);
static void *bad_arg;
static size_t bad_size;

static int spawn_bad(void *arg)
{
    (void)arg;
    pirn_attr attr = {.stack_size = bad_size};
    CHECK_EQ(pirn_spawn(&attr, bad_fn, bad_arg), 0);
    for (;;)
        pirn_yield(); /* somebody to switch to */
}

static void run_bad(void)
{
    _exit(pirn_run_config(&(pirn_config){.procs = 1}, spawn_bad, NULL) == 0 ? 0 : 99);
}

static void check_overflow(void (*fn)(void *), void *arg, size_t size, size_t shown)
{
    char want[128];
    bad_fn = fn;
    bad_arg = arg;
    bad_size = size;
    int status = in_child(run_bad, "guard=none");
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    snprintf(want, sizeof want, " outgrew its stack of %zu bytes; raise .stack_size\n", shown);
    CHECK(!strncmp(test_said, "fatal error: stack overflow: goroutine ", 39));
    CHECK(strstr(test_said, want));
}

TEST(canary)
{
    check_overflow(overrun, NULL, 0, 256 * KB);
    check_overflow(overrun, NULL, 64 * KB, 64 * KB);
    for (int at_switch = 0; at_switch < 2; at_switch++) { /* or at its end */
        void *arg = at_switch ? test_said : NULL;
        check_overflow(overwrite, arg, 0, 256 * KB);
        check_overflow(overwrite, arg, 1024 * KB, 1024 * KB);
        if (SANITIZED)
            continue; /* whose frames don't fit in a dense stack */
        check_overflow(overwrite, arg, 4 * KB, 4 * KB);
        check_overflow(overwrite, arg, 2 * KB, 2 * KB);
    }
}

/* --- through the public header ---------------------------------------------------------------------- */

static pirn_wg all, gate;
static at_u32 ran;

static void run_only(void *arg)
{
    (void)arg;
    at_add(&ran, 1, RELAXED);
    pirn_wg_done(&all);
}

static void wait_at_gate(void *arg)
{
    char mine[64];
    memset(mine, (int)(uintptr_t)arg, sizeof mine);
    __asm__ volatile("" ::"r"(mine) : "memory");
    at_add(&ran, 1, RELAXED);
    pirn_wg_wait(&gate);
    for (size_t i = 0; i < sizeof mine; i++)
        CHECK_EQ((unsigned char)mine[i], (unsigned char)(uintptr_t)arg);
    pirn_wg_done(&all);
}

static void yield_until_ran(uint32_t n)
{
    for (int64_t until = pirn_now() + 30 * PIRN_SEC; at_load(&ran, RELAXED) < n;) {
        CHECK_LT(pirn_now(), until);
        pirn_yield();
    }
}

/* n of them hold their stacks at the same time, each with contents of its own. */
static void park_many(size_t stack_size, uint32_t n)
{
    pirn_attr attr = {.stack_size = stack_size};
    at_store(&ran, 0, RELAXED);
    pirn_wg_add(&gate, 1);
    pirn_wg_add(&all, (int)n);
    for (uintptr_t i = 0; i < n; i++)
        CHECK_EQ(pirn_spawn(&attr, wait_at_gate, (void *)i), 0);
    yield_until_ran(n);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
}

TEST_RUN_ATTR(dense, .procs = "1,4")
{
    if (SANITIZED)
        SKIP("a sanitizer's frames don't fit");
    for (int round = 0; round < 2; round++) {
        park_many(PIRN_STACK_DENSE_2K, 3000);
        park_many(PIRN_STACK_DENSE_4K, 3000);
        park_many(PIRN_STACK_DENSE_8K, 3000);
        park_many(1, 10); /* rounded up */
        park_many(2049, 10);
    }
}

TEST_RUN_ATTR(many_sizes, .procs = "1,4")
{
    for (size_t size = 64 * KB; size <= GB; size *= 2) {
        park_many(size, size <= GB / 16 ? 50 : 3);
        park_many(size - 12345, 3);
    }
    park_many(8 * KB + 1, 100);
}

TEST_RUN(bad_sizes)
{
    pirn_attr attr = {.stack_size = GB + 1};
    CHECK_EQ(pirn_spawn(&attr, run_only, NULL), -EINVAL);
    attr.stack_size = SIZE_MAX;
    CHECK_EQ(pirn_spawn(&attr, run_only, NULL), -EINVAL);
    attr.stack_size = 0; /* the default */
    pirn_wg_add(&all, 2);
    CHECK_EQ(pirn_spawn(&attr, run_only, NULL), 0);
    CHECK_EQ(pirn_spawn(NULL, run_only, NULL), 0);
    pirn_wg_wait(&all);
    CHECK_EQ(at_load(&ran, RELAXED), 2);
}

TEST(bad_default_sizes)
{
    static const size_t bad[] = {1, 2 * KB, 8 * KB, GB + 1, SIZE_MAX};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(pirn_start(&(pirn_config){.stack_size = bad[i]}), -EINVAL);
    CHECK_EQ(pirn_start(&(pirn_config){.stack_size = 8 * KB + 1}), 0);
    CHECK_EQ(pirn_stop(), 0);
}

static uintptr_t addresses[1000];

static void note_address(int i)
{
    addresses[i] = (uintptr_t)__builtin_frame_address(0) / (256 * KB);
}

static int one_after_the_other(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    for (int i = 0; i < 1000; i++) {
        pirn_wg_go(&wg, note_address, i);
        pirn_wg_wait(&wg);
    }
    return 0;
}

/* One after the other on one P: one stack, or two where the next starts before the last is gone. */
TEST(warm_stack_is_reused)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, one_after_the_other, NULL), 0);
    qsort(addresses, 1000, sizeof addresses[0], by_value);
    int different = 1;
    for (int i = 1; i < 1000; i++)
        different += addresses[i] != addresses[i - 1];
    CHECK_LE(different, 2);
}

#define BURST (TEST_TSAN ? 150 : 5000)

static int burst(void *arg)
{
    (void)arg;
    pirn_metrics_v1 m;
    pirn_wg_add(&all, BURST);
    for (int i = 0; i < BURST; i++)
        CHECK_EQ(pirn_spawn(NULL, run_only, NULL), 0);
    pirn_wg_wait(&all);
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_LE(m.stacks, STACK_CACHE + 2); /* ours, and the cache of one P */
    return 0;
}

/* Goroutines that wait for their first run have no stack. */
TEST(burst_needs_few_stacks)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, burst, NULL), 0);
}

static int park_20000(void *arg)
{
    park_many(0, *(uint32_t *)arg);
    return 0;
}

/* From outside, while nothing runs: the pages of parked goroutines go back by themselves. */
TEST(trim)
{
    uint32_t n = TEST_TSAN ? 600 : 20000;
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_start(NULL), 0);
    CHECK_EQ(pirn_run(park_20000, &n), 0);
    wait_until_idle(); /* the last ones have given back their stacks */
    CHECK_EQ(pirn_metrics(&m), 0);
    uint64_t caches = m.procs * STACK_CACHE;
    CHECK_LE(m.stacks, caches);
    CHECK_GT(m.stacks_warm, n / 2);
    /* all but the floor would take half a minute: the peak decays by 1/64 in 100 ms */
    uint64_t last = m.stacks_warm;
    for (int64_t until = pirn_now() + 20 * PIRN_SEC; last > n / 2;) {
        CHECK_LT(pirn_now(), until);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        CHECK_EQ(pirn_metrics(&m), 0);
        CHECK_LE(m.stacks_warm, last);
        last = m.stacks_warm;
    }
    CHECK_EQ(pirn_run(park_20000, &n), 0); /* they can be used again */
    CHECK_EQ(pirn_stop(), 0);
}

/* The whole way down. */
TEST_ATTR(trim_to_the_floor, .slow = true, .timeout = 120)
{
    uint32_t n = 3000;
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_start(NULL), 0);
    CHECK_EQ(pirn_run(park_20000, &n), 0);
    for (int64_t until = pirn_now() + 90 * PIRN_SEC;;) {
        CHECK_EQ(pirn_metrics(&m), 0);
        if (m.stacks_warm <= 64)
            break;
        CHECK_LT(pirn_now(), until);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* --- spawning from a dense stack --------------------------------------------------------------- */

static pirn_wg dense_all, dense_gate;
static at_u32 dense_ran;

static void dense_leaf(void *arg)
{
    (void)arg;
    pirn_wg_wait(&dense_gate);
    at_add(&dense_ran, 1, RELAXED);
    pirn_wg_done(&dense_all);
}

/* 2 KB must do for a spawn, also where it maps memory and wakes threads. */
static void dense_parent(void *arg)
{
    pirn_attr attr = {.stack_size = PIRN_STACK_DENSE_2K};
    for (int i = 0; i < *(int *)arg; i++) {
        pirn_wg_add(&dense_all, 2);
        CHECK_EQ(pirn_spawn(&attr, dense_leaf, NULL), 0);
        pirn_go(dense_leaf, NULL);
    }
    pirn_wg_done(&dense_all);
}

TEST_RUN_ATTR(dense_spawns, .procs = "1,2,4,16")
{
    int parents = TEST_TSAN ? 4 : 20, each = TEST_TSAN ? 50 : 150;
    pirn_attr attr = {.stack_size = PIRN_STACK_DENSE_2K};
    pirn_wg_add(&dense_gate, 1);
    for (int i = 0; i < parents; i++) {
        pirn_wg_add(&dense_all, 1);
        CHECK_EQ(pirn_spawn(&attr, dense_parent, &each), 0);
    }
    for (int i = 0; i < 100; i++) {
        pirn_yield();
    }
    pirn_wg_done(&dense_gate);
    pirn_wg_wait(&dense_all);
    CHECK_EQ(at_load(&dense_ran, RELAXED), 2 * parents * each);
}

/* --- a number of Ps that there is no room for --------------------------------------------------- */

TEST_RUN(too_many_procs_cost_nothing)
{
    pirn_procs(1);
    CHECK_EQ(pirn_spawn(NULL, dense_leaf, NULL), 0); /* the first chunk is there */
    at_store(&mem_fail_after, 1, RELAXED);
    CHECK_EQ(pirn_procs(1024), 1);
    CHECK_EQ(pirn_procs(0), 1); /* it has stayed as it was */
    pirn_wg_add(&dense_gate, 1);
    pirn_wg_add(&dense_all, 201);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(pirn_spawn(NULL, dense_leaf, NULL), 0);
    }
    at_store(&mem_fail_after, 0, RELAXED);
    pirn_wg_done(&dense_gate);
    pirn_wg_wait(&dense_all);
}

/* --- the stack of a thread ---------------------------------------------------------------------------- */

static __attribute__((noinline)) int endless(volatile char *above)
{
    volatile char frame[512];
    frame[0] = above ? above[0] : 1;
    return frame[0] ? endless(frame) + frame[0] : 0;
}

static void overflow_g0(void *arg)
{
    (void)arg;
    endless(NULL);
}

static int leave_goroutine(void *arg)
{
    struct m *mp = enter();
    (void)arg;
    mp->curg = NULL; /* as if the scheduler ran */
    arch_call_on(mp->g0.sp, overflow_g0, NULL);
    return 0;
}

static void run_overflow_g0(void *arg)
{
    (void)arg;
    pirn_run(leave_goroutine, NULL);
}

/* Conformance 96: the scheduler's own. */
TEST(g0_overflow)
{
    if (TEST_ASAN || TEST_TSAN)
        SKIP("the sanitizer takes the signal itself");
    int status = test_in_child(run_overflow_g0, NULL);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    CHECK(strstr(test_said, "fatal error: stack overflow: on the stack of a thread of pirn's") ==
          test_said);
}
