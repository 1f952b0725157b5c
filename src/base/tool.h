/* SPDX-License-Identifier: MIT */
/*
 * What the memory and race tools must be told about stacks and switches.
 *
 * Order of calls: tool_stack_begin() when a goroutine is about to run on a
 * stack for the first time, tool_leave() on the old stack right before each
 * switch, tool_arrive() as the first thing on the new one, tool_stack_end() on
 * another stack once the goroutine has left its own for good. A thread's own
 * stack is announced with tool_thread_begin().
 *
 * AddressSanitizer wants the bounds of the stack it goes to, and a NULL handle
 * only when the old stack is left for ever. ThreadSanitizer has one fiber for
 * each goroutine; a switch is a synchronisation there, because the fields that
 * belong to the owner of a P pass from goroutine to goroutine with it. Valgrind
 * is told of each stack slot when it is cut.
 */
#ifndef PIRN_BASE_TOOL_H
#define PIRN_BASE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#if defined(__SANITIZE_ADDRESS__)
#define TOOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOOL_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define TOOL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TOOL_TSAN 1
#endif
#endif

#ifndef TOOL_ASAN
#define TOOL_ASAN 0
#endif
#ifndef TOOL_TSAN
#define TOOL_TSAN 0
#endif

#if TOOL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if TOOL_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if PIRN_HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif

/* Threads that the tool itself runs in this process. */
#define TOOL_THREADS TOOL_TSAN

#define TOOL_UNPOISON ((size_t)256 << 10)

/* The code of a goroutine needs far more stack than without the tool. */
#define TOOL_BIG_FRAMES (TOOL_ASAN || TOOL_TSAN)

/* An ended goroutine may run the next one on its stack without a switch. */
#define TOOL_TAKEOVER (!TOOL_TSAN)

/* tool.c: a fiber costs TSan most of a megabyte, so they are used again. */
void *tool_fiber_take(void);
void tool_fiber_give(void *fiber);

struct tool_stack { /* empty, without such a tool */
#if TOOL_ASAN
    void *fake;         /* ASan's shadow frames while away */
    const void *bottom; /* lowest address */
    size_t size;
#endif
#if TOOL_TSAN
    void *fiber;
#endif
};

static inline void tool_thread_begin(struct tool_stack *t, void *bottom, size_t size)
{
    *t = (struct tool_stack){};
    (void)bottom, (void)size;
#if TOOL_ASAN
    t->bottom = bottom;
    t->size = size;
#endif
#if TOOL_TSAN
    t->fiber = __tsan_get_current_fiber();
#endif
}

static inline void tool_stack_begin(struct tool_stack *t, void *bottom, size_t size)
{
    *t = (struct tool_stack){};
    (void)bottom, (void)size;
#if TOOL_ASAN
    t->bottom = bottom;
    t->size = size;
    /* Frames that were never left poison the stack for its next user. Not all of a huge stack:
     * that would make its shadow memory present. */
    size_t top = size < TOOL_UNPOISON ? size : TOOL_UNPOISON;
    __asan_unpoison_memory_region((char *)bottom + size - top, top);
#endif
#if TOOL_TSAN
    t->fiber = tool_fiber_take();
#endif
}

static inline void tool_stack_end(struct tool_stack *t)
{
    (void)t;
#if TOOL_TSAN
    if (t->fiber) {
        tool_fiber_give(t->fiber);
        t->fiber = NULL;
    }
#endif
}

/* from is NULL when the stack is left for good. */
ALWAYS_INLINE void tool_leave(struct tool_stack *from, struct tool_stack *to)
{
    (void)from, (void)to;
#if TOOL_ASAN
    __sanitizer_start_switch_fiber(from ? &from->fake : NULL, to->bottom, to->size);
#endif
#if TOOL_TSAN
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
}

ALWAYS_INLINE void tool_arrive(struct tool_stack *me)
{
    (void)me;
#if TOOL_ASAN
    __sanitizer_finish_switch_fiber(me->fake, NULL, NULL);
    me->fake = NULL;
#endif
}

/* Valgrind does not know process_madvise, and says so. */
static inline bool tool_knows_new_calls(void)
{
#if PIRN_HAVE_VALGRIND
    return !RUNNING_ON_VALGRIND;
#else
    return true;
#endif
}

/* Returns an id for tool_slot_drop. */
static inline unsigned tool_slot_cut(void *lo, void *hi)
{
    (void)lo, (void)hi;
#if PIRN_HAVE_VALGRIND
    return VALGRIND_STACK_REGISTER(lo, hi);
#else
    return 0;
#endif
}

static inline void tool_slot_drop(unsigned id)
{
    (void)id;
#if PIRN_HAVE_VALGRIND
    VALGRIND_STACK_DEREGISTER(id);
#endif
}

#endif
