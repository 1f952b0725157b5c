/* SPDX-License-Identifier: MIT */
/*
 * LeakSanitizer looks for addresses in global memory, the heap, and the stacks of threads as it knows them. It
 * looks when the program ends; if that is by exit() in a goroutine, others still wait, on stacks that are
 * none of these. So it is told of them, as they are then: the parts in use, the Gs, which have the
 * arguments of goroutines that have not begun, and the Ps. A guard region is never touched.
 *
 * The program may be built with a sanitizer while pirn is not; whether there is one is known when it is loaded.
 */
#include <stdlib.h>

#include "debug/leakmem.h"
#include "debug/unwind.h"
#include "sched/sched.h"

void __lsan_register_root_region(const void *at, size_t size) __attribute__((weak));

static void tell(void *at, size_t size, void *arg)
{
    (void)arg;
    __lsan_register_root_region(at, size);
}

#if TOOL_ASAN
/* With detect_stack_use_after_return frames are elsewhere; the stack has their addresses. */
LOOKS static void tell_frames(const struct g *gp, const char *used, void *arg)
{
    void *lo, *hi, *last = NULL;
    for (void *const *at = (void *const *)(const void *)used;
         gp->tool.fake && at < (void *const *)gp->stack_hi; at++) {
        if (__asan_addr_is_in_fake_stack(gp->tool.fake, *at, &lo, &hi) && lo != last) {
            tell(lo, (size_t)((char *)hi - (char *)lo), arg);
            last = lo;
        }
    }
}
#else
static void tell_frames(const struct g *gp, const char *used, void *arg)
{
    (void)gp, (void)used, (void)arg;
}
#endif

static void tell_stack(struct g *gp, void *arg)
{
    if (gp->stack_hi) {
        char *used = leakmem_used(gp);
        tell(used, (size_t)((char *)gp->stack_hi - used), arg);
        tell_frames(gp, used, arg);
    }
}

/* The tool looks after this: what was registered first is called last. */
static void at_exit(void)
{
    if (at_load(&sched.life, RELAXED) != LIFE_RUNNING) {
        return;
    }
    leakmem_from = NULL; /* all of the stack that calls exit */
    g_for_each(tell_stack, NULL);
    g_for_each_slab(tell, NULL);
    for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
        tell(at_load(&sched.allp[i], RELAXED), sizeof(struct p), NULL);
    }
}

void roots_start(void)
{
    static at_u32 registered;
    if (__lsan_register_root_region && !at_xchg(&registered, 1, RELAXED)) {
        atexit(at_exit);
    }
}
