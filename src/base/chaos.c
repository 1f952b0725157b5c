/* SPDX-License-Identifier: MIT */
/*
 * The chaos flavour: before one atomic operation in some hundred a thread
 * pauses for a moment, yields its CPU, or sleeps, at random. PIRN_CHAOS_SEED
 * fixes the seed; threads differ by their id.
 */
#include "base/atomic.h"

#if PIRN_FLAVOUR_CHAOS

#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/rand.h"

static __thread struct rand chaos __attribute__((tls_model("initial-exec")));

static void chaos_start(void)
{
    const char *seed = secure_getenv("PIRN_CHAOS_SEED");
    rand_seed(&chaos, (seed ? strtoull(seed, NULL, 0) : 1) + (uint64_t)gettid() * 7919);
}

void chaos_point(void)
{
    if (chaos.state == 0) {
        chaos_start();
    }
    uint32_t r = rand_below(&chaos, 20000);
    if (r < 200) {
        for (uint32_t i = rand_below(&chaos, 300); i; i--) {
            at_pause();
        }
    } else if (r < 230) {
        sched_yield();
    } else if (r < 232) {
        nanosleep(&(struct timespec){.tv_nsec = rand_below(&chaos, 200000)}, NULL);
    }
}

#endif
