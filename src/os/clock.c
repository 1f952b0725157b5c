/* SPDX-License-Identifier: MIT */
/* The one clock: monotonic nanoseconds. */
#include <time.h>

#include "os/os.h"

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
