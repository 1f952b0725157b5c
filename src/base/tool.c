/* SPDX-License-Identifier: MIT */
/*
 * ThreadSanitizer's fibers, one for each goroutine: making one takes it 0.2 ms, so those of ended
 * goroutines are used again. To TSan two goroutines on the same fiber are one, and races between
 * them are not seen; so a fiber rests until as many others as QUARANTINE have ended after it.
 */
#include "base/tool.h"

#if TOOL_TSAN

#include "base/atomic.h"

#define QUARANTINE 64u
#define ROOM 8192u /* TSan can't have more */

static struct {
    at_u32 lock; /* a spin lock: this layer has no other, and the sections are a few lines */
    uint32_t first, n;
    void *fiber[ROOM];
} resting;

static void spin_lock(void)
{
    while (at_xchg(&resting.lock, 1, ACQUIRE)) {
        at_pause();
    }
}

static void spin_unlock(void)
{
    at_store(&resting.lock, 0, RELEASE);
}

void *tool_fiber_take(void)
{
    void *fiber = NULL;
    spin_lock();
    if (resting.n > QUARANTINE) {
        fiber = resting.fiber[resting.first];
        resting.first = (resting.first + 1) % ROOM;
        resting.n--;
    }
    spin_unlock();
    return fiber ? fiber : __tsan_create_fiber(0);
}

void tool_fiber_give(void *fiber)
{
    spin_lock();
    bool room = resting.n < ROOM;
    if (room) {
        resting.fiber[(resting.first + resting.n++) % ROOM] = fiber;
    }
    spin_unlock();
    if (!room) {
        __tsan_destroy_fiber(fiber);
    }
}

#endif
