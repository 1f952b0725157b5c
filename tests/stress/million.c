/* SPDX-License-Identifier: MIT */
/*
 * A million goroutines at once, each parked on a stack of its own: what they cost, and that all of
 * them come back.
 */
#include "stress/recount.h"

#define MILLION 1000000

static pirn_wg gate, all;
static at_u64 woken;

static void wait_at_gate(void *arg)
{
    (void)arg;
    pirn_wg_wait(&gate);
    at_add(&woken, 1, RELAXED);
    pirn_wg_done(&all);
}

static int count_mappings(void)
{
    int n = 0, c;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    while ((c = getc(f)) != EOF) {
        n += c == '\n';
    }
    fclose(f);
    return n;
}

static int64_t memory(void)
{
    return proc_status("VmRSS") + proc_status("VmPTE");
}

static void skip_if_too_small(int64_t bytes)
{
    if (TEST_ASAN || TEST_TSAN) {
        SKIP("a sanitizer has not the memory, or the fibers, for a million stacks");
    }
    if (sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE) < bytes) {
        SKIP("not enough memory for a million stacks");
    }
}

/* most_with_tables: with the kernel's page tables, of which each stack of 256 KB takes an eighth of a page. */
static void park_a_million(size_t stack_size, int64_t most, int64_t most_with_tables)
{
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_start(NULL), 0);
    int64_t before = memory(), resident = proc_status("VmRSS");
    pirn_wg_add(&gate, 1);
    for (int i = 0; i < MILLION; i++) {
        pirn_wg_add(&all, 1);
        CHECK_EQ(pirn_spawn(&(pirn_attr){.stack_size = stack_size}, wait_at_gate, NULL), 0);
    }
    recount(MILLION); /* all have parked */
    int64_t each = (memory() - before) / MILLION;
    resident = (proc_status("VmRSS") - resident) / MILLION;
    CHECK_EQ(pirn_metrics(&m), 0);
    int mappings = count_mappings();
    printf("%lld bytes each, %lld with page tables, %d mappings, guard %d\n", (long long)resident,
           (long long)each, mappings, (int)m.guard);
    CHECK_EQ(m.goroutines, MILLION);
    CHECK_GE(m.stacks, MILLION);
    CHECK_LE(resident, most);
    CHECK_LE(each, most_with_tables);
    if (m.guard == GUARD_MADVISE) {
        CHECK_LT(mappings, 2000);
    }
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
    CHECK_EQ(at_load(&woken, RELAXED), MILLION);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
    CHECK_LT(count_mappings(), 2000);
    CHECK_LT(memory() - before, (int64_t)100 << 20); /* all given back */
}

TEST_ATTR(million_guarded, .timeout = 120, .alone = true, .slow = true)
{
    skip_if_too_small((int64_t)7 << 30);
    park_a_million(0, 4700, 4900);
}

TEST_ATTR(million_dense, .timeout = 120, .alone = true, .slow = true)
{
    skip_if_too_small((int64_t)4 << 30);
    park_a_million(PIRN_STACK_DENSE_2K, 2400, 2400);
}
