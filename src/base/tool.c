/* SPDX-License-Identifier: MIT */
/*
 * ThreadSanitizer's fibers, one for each goroutine: making one takes it 0.2 ms, so those of ended
 * goroutines are used again. To TSan two goroutines on the same fiber are one, and races between
 * them are not seen; so a fiber rests until as many others as QUARANTINE have ended after it.
 */
#include "base/tool.h"

#if TOOL_RACE

#include <stdio.h>
#include <sys/mman.h>

#include "base/fatal.h"

void tool_race_begin(void)
{
    if (!__tsan_switch_to_fiber) {
        fatal("pirn-race: the program is not built with -fsanitize=thread");
    }
}

/* TSan sees a new mapping, and forgets who used the old one. */
void tool_forget_memory(void *bottom, size_t size)
{
    if (mmap(bottom, size, PROT_READ | PROT_WRITE,
             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        == MAP_FAILED) {
        fatal("out of memory: cannot map a stack anew");
    }
}

/* TSan can't tell where a goroutine was spawned; its name can. */
void tool_name(void *fiber, uint64_t id, const char *site)
{
    char name[64];
    const char *fn = site ? site : "pirn_spawn", *at = site ? site + strlen(site) + 1 : "";
    const char *file = strrchr(at, '/');
    snprintf(name, sizeof name, "goroutine %lu: %s, %s", (unsigned long)id, fn,
             file ? file + 1 : at);
    __tsan_set_fiber_name(fiber, name);
}

#endif

#if TOOL_TSAN

#include "base/atomic.h"

#define QUARANTINE (TOOL_RACE ? 1024u : 64u)
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
