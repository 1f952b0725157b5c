/* SPDX-License-Identifier: MIT */
/*
 * The kernel's limit of mappings, which guards made by mprotect reach: beyond it stacks have a
 * canary, said once; and when the stacks have been given back there are guards again. And programs that lock
 * their memory.
 */
#include <sys/mman.h>

#include "stress/recount.h"

#define PARKED (TEST_TSAN ? 4000 : 40000)

static pirn_wg gate;

static void wait_at_gate(void)
{
    pirn_wg_wait(&gate);
}

struct guards {
    int guarded, unguarded;
};

static void count_guards(struct g *gp, void *arg)
{
    struct guards *n = arg;
    if (gp->stack_hi) {
        *(gp->flags & G_UNGUARDED ? &n->unguarded : &n->guarded) += 1;
    }
}

/* Parks so many at once, and tells how many of them have a guard. */
static struct guards park_many(int n)
{
    pirn_wg all = {0};
    struct guards guards = {0};
    gate = (pirn_wg){0};
    pirn_wg_add(&gate, 1);
    for (int i = 0; i < n; i++) {
        pirn_wg_go(&all, wait_at_gate);
    }
    recount((uint64_t)n);
    g_for_each(count_guards, &guards);
    CHECK_EQ(guards.guarded + guards.unguarded, n);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
    recount(0);
    return guards;
}

/* What sysmon does in a minute of rest. */
static void trim_all(void)
{
    pirn_metrics_v1 m = {0};
    static int64_t now; /* of its own: it runs ahead */
    now = now ? now : now_ns();
    lock_at_rest();
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        stack_flush(at_load(&sched.allp[i], RELAXED));
    }
    unlock(&sched.lock);
    for (int i = 0; i < 2000; i++) {
        stack_trim(now += 100 * PIRN_MS);
    }
    stack_metrics(&m);
    CHECK_EQ(m.stacks, 0);
    CHECK_LE(m.stacks_warm, 64);
}

static void park_beyond(void)
{
    CHECK_EQ(pirn_start(NULL), 0);
    struct guards g = park_many(PARKED);
    CHECK_EQ(pirn_stop(), 0);
    printf("%d guarded, %d not\n", g.guarded, g.unguarded);
    CHECK_GE(g.guarded, PARKED > 32768 ? 20000 : PARKED);
}

/* detect_stack_use_after_return=1: ASan maps a second stack for each goroutine, and dies when it can't. */
static bool has_second_stacks(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    return TEST_ASAN && options && strstr(options, "use_after_return=1");
}

TEST_ATTR(beyond_the_limit, .timeout = 60, .env = "PIRN_DEBUG=guard=mprotect", .procs = "1,4")
{
    if (has_second_stacks()) {
        SKIP("the sanitizer needs the mappings itself");
    }
    CHECK_EQ(count_in_stderr(park_beyond, "pirn: no more guard regions"), PARKED > 32768);
}

/* Guards that have been given back can be had again, as often as one likes. */
static void park_repeatedly(void)
{
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 2}), 0);
    for (int i = 0; i < 5; i++) {
        struct guards g = park_many(PARKED);
        printf("burst %d: %d guarded, %d not\n", i, g.guarded, g.unguarded);
        CHECK_GE(g.guarded, 20000);
        trim_all();
    }
    CHECK_EQ(pirn_stop(), 0);
}

TEST_ATTR(again_and_again, .timeout = 90, .env = "PIRN_DEBUG=guard=mprotect")
{
    if (TEST_TSAN) {
        SKIP("the sanitizer has not the fibers");
    }
    if (has_second_stacks()) {
        SKIP("the sanitizer needs the mappings itself");
    }
    CHECK_EQ(count_in_stderr(park_repeatedly, "pirn: no more guard regions"), 1);
}

/* --- locked memory ------------------------------------------------------------------------------- */

static bool can_lock_memory(void)
{
    /* The sanitizers' shadow is more than there is. */
    bool can = !TEST_ASAN && !TEST_TSAN && mlockall(MCL_CURRENT) == 0;
    munlockall();
    return can;
}

/* Small ones: what is mapped is there at once. */
static const pirn_config small_stacks = {.procs = 2, .stack_size = 64 << 10};

static void park_locked(void)
{
    pirn_metrics_v1 m;
    CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
    CHECK_EQ(pirn_start(&small_stacks), 0);
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_EQ(m.guard, GUARD_MPROTECT);
    struct guards g = park_many(300);
    CHECK_EQ(g.guarded, 300);
    CHECK_EQ(pirn_stop(), 0);
}

/* Where all memory is locked the kernel knows only guards by mprotect. */
TEST_ATTR(locked_memory, .timeout = 60)
{
    if (!can_lock_memory()) {
        SKIP("memory can't be locked here");
    }
    CHECK_EQ(count_in_stderr(park_locked, "pirn: no more guard regions"), 0);
}

static void park_locked_later(void)
{
    CHECK_EQ(pirn_start(&small_stacks), 0);
    struct guards g = park_many(10);
    CHECK_EQ(g.guarded, 10);
    CHECK_EQ(mlockall(MCL_CURRENT), 0);
    for (int i = 0; i < 3; i++) {
        park_many(300);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* A program that locks it later has the guards that there are, and for the others a canary. */
TEST_ATTR(locked_memory_later, .timeout = 60)
{
    if (!can_lock_memory()) {
        SKIP("memory can't be locked here");
    }
    CHECK_EQ(count_in_stderr(park_locked_later, "pirn: no more guard regions"),
             mem_guard_probe() == GUARD_MADVISE);
}
