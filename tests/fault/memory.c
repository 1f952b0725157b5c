/* SPDX-License-Identifier: MIT */
/*
 * The N-th mapping and all later ones fail, for each N: the start or a spawn says so, nothing
 * crashes, nothing leaks, and the next runtime works.
 *
 * What pirn maps is counted at the system call: mmap and munmap are the test's own (not with the
 * sanitizers, who have theirs).
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "gate.h"

#define MOST 90 /* mappings */
#define GOROUTINES 400

static at_u64 mapped; /* bytes, net */

#if !TEST_ASAN && !TEST_TSAN
void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    long p = syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
    if (p != -1 && !(flags & MAP_FIXED)) {
        at_add(&mapped, size, RELAXED);
    }
    return (void *)p;
}

int munmap(void *addr, size_t size)
{
    if (size) {
        at_add(&mapped, -size, RELAXED);
    }
    return (int)syscall(SYS_munmap, addr, size);
}
#endif

static int spawn_many(void *arg)
{
    static const size_t sizes[] = {0,       PIRN_STACK_DENSE_2K, 64 << 10, PIRN_STACK_DENSE_8K,
                                   1 << 20, PIRN_STACK_DENSE_4K, 16 << 20, 128 << 10};
    struct outcome *o = arg;
    pirn_wg_add(&o->gate, 1);
    for (int i = 0; i < GOROUTINES; i++) {
        size_t size = sizes[i % (int)ARRAY_LEN(sizes)];
        if ((TEST_ASAN || TEST_TSAN) && size && size < PIRN_STACK_DENSE_8K) {
            size = PIRN_STACK_DENSE_8K;
        }
        spawn_at_gate(o, &(pirn_attr){.stack_size = size, .name = "many"});
        if (i % 16 == 0) {
            pirn_yield();
        }
    }
    open_gate(o);
    return 1;
}

static int attempt(uint32_t fail_after, struct outcome *o)
{
    memset(o, 0, sizeof *o);
    at_store(&mem_fail_after, fail_after, RELAXED);
    int result = pirn_run(spawn_many, o);
    at_store(&mem_fail_after, 0, RELAXED);
    CHECK_EQ(at_load(&o->ran, RELAXED), o->spawned);
    CHECK_EQ(at_load(&mapped, RELAXED), 0);
    return result;
}

static void sweep(void)
{
    struct outcome o;
    int refused_starts = 0, refused_spawns = 0, clean = 0;
    CHECK_EQ(attempt(0, &o), 1); /* a sanitizer begins its own thread with the first */
    int threads = thread_count();
    for (uint32_t n = 1; n <= MOST; n++) {
        int result = attempt(n, &o);
        CHECK(result == -ENOMEM || result == 1);
        refused_starts += result != 1;
        refused_spawns += o.refused;
        clean += result == 1 && o.refused == 0;
        CHECK_EQ(attempt(0, &o), 1); /* as if nothing had happened */
        CHECK_EQ(o.spawned, GOROUTINES);
    }
    printf("%d starts and %d spawns were refused, %d runs were whole\n", refused_starts,
           refused_spawns, clean);
    CHECK_GT(refused_starts, 0); /* the sweep reached all three */
    CHECK_GT(refused_spawns, 0);
    CHECK_GT(clean, 0);
    for (int64_t until = now_ns() + 2 * PIRN_SEC; thread_count() != threads;) {
        CHECK_LT(now_ns(), until);
    }
}

TEST_ATTR(mappings_fail, .procs = "1,2,4,16", .timeout = 60)
{
    sweep();
}

TEST_ATTR(mappings_fail_mprotect, .procs = "1,4", .timeout = 60, .env = "PIRN_DEBUG=guard=mprotect")
{
    sweep();
}

/* --- more Ps need more room --------------------------------------------------------------------- */

static int resize_without_memory(void *arg)
{
    pirn_wg wg = {0};
    struct outcome *o = arg;
    pirn_wg_add(&o->gate, 1);
    pirn_wg_add(&o->all, 1);
    CHECK_EQ(pirn_spawn(&(pirn_attr){.stack_size = 1 << 20}, wait_at_gate, o), 0);
    at_store(&mem_fail_after, 1, RELAXED);
    CHECK_EQ(pirn_procs(1000),
             2); /* 64 cached stacks of 1 MB each for 1000 Ps: more than there are */
    CHECK_EQ(pirn_procs(0), 2);
    at_store(&mem_fail_after, 0, RELAXED);
    CHECK_EQ(pirn_procs(40), 2);
    CHECK_EQ(pirn_procs(2), 40);
    open_gate(o);
    pirn_wg_wait(&wg);
    return 1;
}

TEST(resize_is_refused)
{
    struct outcome o = {0};
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 2}, resize_without_memory, &o), 1);
    CHECK_EQ(at_load(&mapped, RELAXED), 0);
}
