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
 * sees by the way that sp takes that it is a switch (tool.c, arch/).
 *
 * PIRN_RACE: the library for programs that look for races of their own (docs/races.md). The program is
 * built with -fsanitize=thread, pirn itself is not: a switch orders nothing, so goroutines that share a
 * thread are as two threads to TSan, and what orders them is said by tool_release() and tool_acquire().
 * What the runtime itself does is unknown to TSan: the loads and stores, and, since they are wrapped
 * (tool.c), its calls of libc functions that TSan knows. On g0 nothing is acquired: g0 makes all kinds
 * of goroutines ready, and would pass on to one what it knows of the other.
 */
#ifndef PIRN_BASE_TOOL_H
#define PIRN_BASE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define TOOL_MSAN 1
#endif
#endif

#ifndef PIRN_RACE
#define PIRN_RACE 0
#endif
#if PIRN_RACE
#define TOOL_TSAN 1
#endif
#define TOOL_RACE PIRN_RACE

#ifndef TOOL_ASAN
#define TOOL_ASAN 0
#endif
#ifndef TOOL_TSAN
#define TOOL_TSAN 0
#endif
#ifndef TOOL_MSAN
#define TOOL_MSAN 0
#endif

#if TOOL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if TOOL_TSAN
#include <sanitizer/tsan_interface.h>
#include <signal.h>
#endif
#if TOOL_MSAN
#include <sanitizer/msan_interface.h>
#endif
#if PIRN_HAVE_VALGRIND
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>
extern bool tool_on_valgrind; /* tool.c, also read in arch/ */
/* On valgrind; a switch must follow at once, off the main stack. Again: on a thread that will switch. */
void tool_stacks_begin(void);
void tool_stacks_again(void);
#endif
#if TOOL_RACE
/* Of TSan; gcc has no header with these. */
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);
void __tsan_atomic64_store(volatile int64_t *addr, int64_t value, int order);
#define TOOL_TSAN_RELEASE 3
#pragma weak __tsan_acquire
#pragma weak __tsan_atomic64_store
#pragma weak __tsan_create_fiber
#pragma weak __tsan_destroy_fiber
#pragma weak __tsan_get_current_fiber
#pragma weak __tsan_ignore_thread_begin
#pragma weak __tsan_ignore_thread_end
#pragma weak __tsan_release
#pragma weak __tsan_set_fiber_name
#pragma weak __tsan_switch_to_fiber
#endif

/* Threads that the tool itself runs in this process. */
#define TOOL_THREADS TOOL_TSAN

#define TOOL_UNPOISON ((size_t)256 << 10)

/* The code of a goroutine needs far more stack than without the tool. */
#define TOOL_BIG_FRAMES (TOOL_ASAN || TOOL_TSAN || TOOL_MSAN)

/* An ended goroutine may run the next one on its stack without a switch. */
#define TOOL_TAKEOVER (!TOOL_TSAN)

/* What was done before the release is done before what follows the acquire of the same address. */
static inline void tool_release(const void *addr)
{
    (void)addr;
#if TOOL_RACE
    __tsan_release((void *)(uintptr_t)addr);
#endif
}

static inline void tool_acquire(const void *addr)
{
    (void)addr;
#if TOOL_RACE
    __tsan_acquire((void *)(uintptr_t)addr);
#endif
}

/* From one to one: who acquires *word comes after this release, and after nobody who used it before.
 * Zeroes *word, which the program must not know. */
static inline void tool_hand_over(void *word)
{
    (void)word;
#if TOOL_RACE
    __tsan_atomic64_store((volatile int64_t *)word, 0, TOOL_TSAN_RELEASE);
#endif
}

/* tool.c */
void tool_forget_memory(void *bottom, size_t size); /* nobody has ever used it */
void tool_name(void *fiber, uint64_t id, const char *site);

/* A fiber costs TSan most of a megabyte, so they are used again; but not those of goroutines that have
 * not returned from all their calls, for TSan still has these. */
void *tool_fiber_take(void);
void tool_fiber_give(void *fiber, bool unfinished);

struct tool_stack { /* empty, without such a tool */
#if TOOL_ASAN
    void *fake;         /* ASan's shadow frames while away */
    const void *bottom; /* lowest address */
    size_t size;
#endif
#if TOOL_TSAN
    void *fiber;
    bool unfinished; /* it ends inside its calls */
#endif
#if TOOL_RACE
    uint64_t word; /* who makes it ready, to it */
#endif
};

static inline void tool_thread_begin(struct tool_stack *t, void *bottom, size_t size)
{
    *t = (struct tool_stack){};
    (void)bottom, (void)size;
#if PIRN_HAVE_VALGRIND
    if (unlikely(tool_on_valgrind)) {
        tool_stacks_again();
    }
#endif
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
#if TOOL_RACE
    tool_forget_memory(bottom, size);
#endif
#if TOOL_TSAN
    t->fiber = tool_fiber_take();
#endif
}

/* New memory, where a stack may have been: frames that were never left have poisoned it. */
static inline void tool_map(void *addr, size_t size)
{
    (void)addr, (void)size;
#if TOOL_ASAN
    __asan_unpoison_memory_region(addr, size);
#endif
}

/* MemorySanitizer and valgrind have not seen who has written this, and perhaps nobody has: it is looked at on
 * purpose. Written by a function that they do not know, by frames that have been left, or found anywhere. */
static inline void tool_looks_at(const void *addr, size_t size)
{
    (void)addr, (void)size;
#if TOOL_MSAN
    __msan_unpoison(addr, size);
#endif
#if PIRN_HAVE_VALGRIND
    if (unlikely(tool_on_valgrind)) {
        (void)VALGRIND_MAKE_MEM_DEFINED(addr, size);
    }
#endif
}

/* Around a call to which only an address matters, not what is there: valgrind would miss the memory. */
static inline void tool_silence(bool on)
{
    (void)on;
#if PIRN_HAVE_VALGRIND
    if (unlikely(tool_on_valgrind)) {
        if (on) {
            VALGRIND_DISABLE_ERROR_REPORTING;
        } else {
            VALGRIND_ENABLE_ERROR_REPORTING;
        }
    }
#endif
}

/* A frame, or a part of one, below the sp of a stack that is not in use: valgrind does not see it coming. */
static inline void tool_frame_made(void *addr, size_t size)
{
    (void)addr, (void)size;
#if PIRN_HAVE_VALGRIND
    if (unlikely(tool_on_valgrind)) {
        (void)VALGRIND_MAKE_MEM_UNDEFINED(addr, size);
    }
#endif
}

/* By the kernel, in a call that MemorySanitizer of clang 14 does not know. */
static inline void tool_kernel_wrote(void *addr, size_t size)
{
    (void)addr, (void)size;
#if TOOL_MSAN
    __msan_unpoison(addr, size);
#endif
}

/* ThreadSanitizer puts signals off until the thread calls something that it knows, which one that sleeps in plain
 * system calls does not: without this ^C would not end a server. */
static inline void tool_take_signals(void)
{
#if TOOL_TSAN
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
#endif
}

/* By who makes a goroutine ready, and by itself when it goes on. */
static inline void tool_ready(struct tool_stack *t)
{
    (void)t;
#if TOOL_RACE
    tool_hand_over(&t->word);
#endif
}

static inline void tool_go_on(struct tool_stack *t)
{
    (void)t;
#if TOOL_RACE
    tool_acquire(&t->word);
#endif
}

/* The first thing of a goroutine. site: "fn\0file:line", or NULL. */
static inline void tool_goroutine_begin(struct tool_stack *t, uint64_t id, const char *site)
{
    (void)t, (void)id, (void)site;
#if TOOL_RACE
    tool_name(t->fiber, id, site);
    tool_go_on(t);
#endif
}

/* In the name of a goroutine that waits: an acquire and a release. */
static inline void tool_pass_for(struct tool_stack *t, const void *addr)
{
    (void)t, (void)addr;
#if TOOL_RACE
    void *me = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(t->fiber, __tsan_switch_to_fiber_no_sync);
    tool_acquire(addr);
    tool_release(addr);
    __tsan_switch_to_fiber(me, __tsan_switch_to_fiber_no_sync);
#endif
}

/* The goroutine will not return from the calls that it is in. */
static inline void tool_unfinished(struct tool_stack *t)
{
    (void)t;
#if TOOL_RACE
    t->unfinished = true;
#endif
}

static inline void tool_stack_end(struct tool_stack *t)
{
    (void)t;
#if TOOL_TSAN
    if (t->fiber) {
        tool_fiber_give(t->fiber, t->unfinished);
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
    __tsan_switch_to_fiber(to->fiber, TOOL_RACE ? __tsan_switch_to_fiber_no_sync : 0);
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

/* Valgrind goes on using an alternate signal stack after sigaltstack has taken it away. */
static inline bool tool_keeps_altstack(void)
{
#if PIRN_HAVE_VALGRIND
    return tool_on_valgrind;
#else
    return false;
#endif
}

/* Valgrind does not know process_madvise, epoll_pwait2 and pidfd_open, and says so. One that waits in
 * io_uring_enter keeps all other threads from running there. */
static inline bool tool_knows_new_calls(void)
{
#if PIRN_HAVE_VALGRIND
    return !tool_on_valgrind;
#else
    return true;
#endif
}

#endif
