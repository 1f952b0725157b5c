/* SPDX-License-Identifier: MIT */
/*
 * Stacks between the caches of the Ps and the pool: no slot is given out twice or lost, who has a
 * promise gets a slot, and sysmon may trim what is free at any time.
 */
#include "explorer/model.h"
#include "sched/stack.h"

#define CLASS 13 /* large slots: few in a chunk, two in a cache */

struct sched sched;
ptrdiff_t m_tls_offset; /* no Ms here */
static struct p ps[2];
static int users[64]; /* of each slot */

/* Addresses that nobody touches. */
static char *const lowest = (char *)((uintptr_t)1 << 40);
static size_t reserved;

void *mem_reserve(size_t size)
{
    char *p = lowest + reserved;
    reserved += size;
    return p;
}

int mem_guard(enum guard_kind kind, const struct mem_range *ranges, int n)
{
    (void)kind, (void)ranges, (void)n;
    return 0;
}

int mem_drop(const struct mem_range *ranges, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK(users[(size_t)((char *)ranges[i].addr - lowest) / stack_kinds[CLASS].size] == 0);
    }
    return 0;
}

int mem_drop_range(void *addr, size_t size)
{
    size_t slot = stack_kinds[CLASS].size;
    for (size_t at = (size_t)((char *)addr - lowest); size; at += slot, size -= slot) {
        CHECK(users[at / slot] == 0);
    }
    return 0;
}

enum guard_kind mem_guard_probe(void)
{
    return GUARD_MADVISE;
}

static bool kicked[MODEL_THREADS]; /* sysmon, by this thread */

void sysmon_kick(void)
{
    kicked[model_self()] = true;
}

const char *g_status_name(uint32_t status)
{
    (void)status;
    return "";
}

static void setup(void)
{
    memset(&sched, 0, sizeof sched);
    memset(ps, 0, sizeof ps);
    memset(users, 0, sizeof users);
    memset(kicked, 0, sizeof kicked);
    reserved = 0;
    stack_fini(true); /* the heap is new each time */
    stack_init(GUARD_AUTO);
    CHECK(stack_room_for_procs(2) == 0);
}

static void use(struct p *pp)
{
    struct stack_cache *c = &pp->stacks[CLASS];
    CHECK(stack_promise(pp, CLASS) == 0);
    if (c->n == 0) {
        stack_refill_g0(pp, CLASS);
    }
    CHECK(c->n > 0);
    uintptr_t slot = c->slot[--c->n];
    size_t i = ((slot & ~(uintptr_t)SLOT_UNGUARDED) - (uintptr_t)lowest) / stack_kinds[CLASS].size;
    users[i - 1]++; /* a race if two have it */
    CHECK(users[i - 1] == 1);
    users[i - 1]--;
    c->slot[c->n++] = slot;
    stack_unpromise(pp, CLASS);
    stack_flush(pp);
    CHECK(kicked[model_self()]); /* there is something to trim */
}

static void uses0(void)
{
    use(&ps[0]);
}

static void uses1(void)
{
    use(&ps[1]);
}

static void trims(void)
{
    stack_trim(PIRN_SEC);
}

static void all_back(void)
{
    pirn_metrics_v1 m = {0};
    stack_metrics(&m);
    CHECK(m.stacks == 0);
    CHECK(ps[0].stacks[CLASS].n == 0 && ps[1].stacks[CLASS].n == 0);
}

MODEL(two_ps, .setup = setup, .finish = all_back, .leaks = true, .threads = {uses0, uses1},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)
MODEL(two_ps_and_trim, .setup = setup, .finish = all_back, .leaks = true,
      .threads = {uses0, uses1, trims}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
