/* SPDX-License-Identifier: MIT */
/*
 * The kernel's limit of mappings, which guards made by mprotect reach: beyond it stacks have a
 * canary, said once; and when the stacks have been given back there are guards again.
 */
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

TEST_ATTR(beyond_the_limit, .timeout = 60, .env = "PIRN_DEBUG=guard=mprotect", .procs = "1,4")
{
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
    CHECK_EQ(count_in_stderr(park_repeatedly, "pirn: no more guard regions"), 1);
}
