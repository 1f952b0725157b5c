/* SPDX-License-Identifier: MIT */
/* The one clock: monotonic nanoseconds; and those of threads, which go while they run. */
#include <time.h>

#include "os/os.h"

#define CPU_CLOCK_OF_THREAD 6 /* the kernel's bits for "what the scheduler counts", "of a thread" */

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) ? 0 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t thread_cpu_ns(int tid)
{
    return read_clock(tid ? (int)(~(unsigned)tid << 3 | CPU_CLOCK_OF_THREAD)
                          : CLOCK_THREAD_CPUTIME_ID);
}
