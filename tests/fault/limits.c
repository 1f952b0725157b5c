/* SPDX-License-Identifier: MIT */
/*
 * Address space ends, at every size from nothing to a gigabyte: a process of its own for each. The
 * start, or a spawn, is refused; what was accepted runs.
 */
#include <sys/resource.h>

#include "gate.h"

#define GOROUTINES 300

static int spawn_many(void *arg)
{
    static const size_t sizes[] = {0, 64 << 10, PIRN_STACK_DENSE_8K, 1 << 20, PIRN_STACK_DENSE_2K};
    struct outcome *o = arg;
    pirn_wg_add(&o->gate, 1);
    for (int i = 0; i < GOROUTINES; i++) {
        spawn_at_gate(o, &(pirn_attr){.stack_size = sizes[i % (int)ARRAY_LEN(sizes)]});
    }
    open_gate(o);
    return 1;
}

enum { WHOLE, SPAWN_REFUSED, START_REFUSED, KINDS };

/* In the child: how did it go? */
static int with_room(int64_t bytes)
{
    struct outcome o = {0};
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)(proc_status("VmSize") + bytes);
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    int result = pirn_run_config(&(pirn_config){.procs = 4}, spawn_many, &o);
    CHECK_EQ(at_load(&o.ran, RELAXED), o.spawned);
    if (result != 1) {
        CHECK(result == -ENOMEM || result == -EAGAIN);
        return START_REFUSED;
    }
    /* The limit goes, and all is well. */
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    int refused = o.refused;
    o = (struct outcome){0};
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 4}, spawn_many, &o), 1);
    CHECK_EQ(o.spawned, GOROUTINES);
    return refused ? SPAWN_REFUSED : WHOLE;
}

TEST_ATTR(address_space, .timeout = 90)
{
    int kinds[KINDS] = {0};
    if (TEST_ASAN || TEST_TSAN) {
        SKIP("the sanitizer's shadow needs the address space");
    }
    for (int64_t kb = 0; kb <= 1 << 20; kb = kb < 8192 ? kb + 192 : kb + kb / 8) {
        int status;
        pid_t pid = fork();
        CHECK_GE(pid, 0);
        if (pid == 0) {
            _exit(100 + with_room(kb * 1024));
        }
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) < 100) {
            fprintf(stderr, "with %lld KB of room: wait status 0x%x\n", (long long)kb, status);
            FAIL("the process with little address space died");
        }
        kinds[WEXITSTATUS(status) - 100]++;
    }
    printf("%d whole, %d with refused spawns, %d refused starts\n", kinds[WHOLE],
           kinds[SPAWN_REFUSED], kinds[START_REFUSED]);
    CHECK_GT(kinds[START_REFUSED], 0);
    CHECK_GT(kinds[SPAWN_REFUSED], 0);
    CHECK_GT(kinds[WHOLE], 0);
}
