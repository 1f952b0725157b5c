/* SPDX-License-Identifier: MIT */
/*
 * A full fence in every thread of the process, by the kernel: what makes the other side of a pair of
 * fences free. Where the call is missing or denied (old kernel, seccomp, an emulator), the other side
 * is told to do a full one itself.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

at_u32 fence_light_is_full;

/* Once, while there is one thread: later it would take the kernel milliseconds. */
__attribute__((constructor(101))) static void membarrier_init(void)
{
    int saved = errno;
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool works = known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED)
                 && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    at_store(&fence_light_is_full, !works, RELAXED);
    errno = saved;
}

/* A filter may have come since. Then nothing is sure that was done with light fences before; a thread
 * that runs does a full one sooner or later, so wait for that. */
void fence_heavy(void)
{
    int saved = errno;
    at_fence(SEQ_CST);
    if (!at_load(&fence_light_is_full, RELAXED)
        && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        struct timespec tick = {.tv_nsec = 20000000};
        at_store(&fence_light_is_full, 1, RELAXED);
        nanosleep(&tick, NULL);
    }
    at_fence(SEQ_CST);
    errno = saved;
}
