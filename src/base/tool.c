/* SPDX-License-Identifier: MIT */
/*
 * Valgrind marks the stack above and below sp whenever sp moves, and must not when it moves to another
 * stack. That it believes if the new sp is in a stack that it has been told of, other than the last such
 * stack. But it has one "last stack" for all threads: once another thread has run, it takes the next
 * frame that this one makes for a switch too, leaves it as it was, not to be accessed, and complains of
 * each access. (So its code reads, version 3.19, and so the false reports looked that signals brought about.)
 * So telling it of each goroutine's stack is wrong with two threads.
 *
 * Here it is told of two stacks: the first page, and all the rest of the address space. Whatever runs is
 * on the second one, so no frame looks like a switch; and arch/ lets sp go to another stack by way of the
 * first page, which is a switch, and another one back. The stacks of threads it knows by itself, so it is
 * told of the second one anew whenever a thread becomes an M: else a switch to g0 would end in that of the
 * thread. Switches of other libraries, which tell valgrind of their stacks, are not seen as such any more.
 *
 * ThreadSanitizer's fibers, one for each goroutine: making one takes it 0.2 ms, so those of ended
 * goroutines are used again. To TSan two goroutines on the same fiber are one, and races between
 * them are not seen; so a fiber rests until as many others as QUARANTINE have ended after it.
 */
#include "base/tool.h"

#if PIRN_HAVE_VALGRIND

bool tool_on_valgrind;

__attribute__((constructor(101))) static void look_for_valgrind(void)
{
    tool_on_valgrind = RUNNING_ON_VALGRIND;
}

#define FIRST_PAGE ((uintptr_t)4096)

void tool_stacks_begin(void)
{
    (void)VALGRIND_STACK_REGISTER(0, FIRST_PAGE - 1);
    tool_stacks_again();
}

/* What it was told last it finds first. */
void tool_stacks_again(void)
{
    (void)VALGRIND_STACK_REGISTER(FIRST_PAGE, UINTPTR_MAX);
}

#endif

#if TOOL_RACE

#include <stdio.h>
#include <sys/mman.h>

#include "base/fatal.h"

/* Before anything of pirn's is called. */
__attribute__((constructor(101))) static void refuse_without_tsan(void)
{
    if (!__tsan_switch_to_fiber) {
        fatal("pirn-race: the program is not built with -fsanitize=thread");
    }
}

/*
 * The linker puts these in the place of libc's functions in this library (src/meson.build), which TSan
 * watches. It knows nothing of what orders the runtime's own accesses, and would report them; and they
 * might hide those of the program.
 */
#define WRAP(ret, name, params, args)                                                              \
    ret __real_##name params;                                                                      \
    ret __wrap_##name params;                                                                      \
    ret __wrap_##name params                                                                       \
    {                                                                                              \
        __tsan_ignore_thread_begin();                                                              \
        ret result = __real_##name args;                                                           \
        __tsan_ignore_thread_end();                                                                \
        return result;                                                                             \
    }

WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(void *, aligned_alloc, (size_t align, size_t n), (align, n))
WRAP(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))
WRAP(void *, mmap64, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
    __tsan_ignore_thread_begin();
    __real_free(p);
    __tsan_ignore_thread_end();
}

void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memset(void *to, int c, size_t n);

/* volatile: else the compiler finds that this is memmove. */
void *__wrap_memmove(void *to, const void *from, size_t n)
{
    volatile unsigned char *t = to;
    const volatile unsigned char *f = from;
    for (size_t i = 0; i < n; i++) {
        size_t k = (uintptr_t)to <= (uintptr_t)from ? i : n - 1 - i;
        t[k] = f[k];
    }
    return to;
}

void *__wrap_memcpy(void *to, const void *from, size_t n)
{
    return __wrap_memmove(to, from, n);
}

void *__wrap_memset(void *to, int c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ((volatile unsigned char *)to)[i] = (unsigned char)c;
    }
    return to;
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
    bool unfinished[ROOM];
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
    bool unfinished = false;
    spin_lock();
    if (resting.n > QUARANTINE) {
        fiber = resting.fiber[resting.first];
        unfinished = resting.unfinished[resting.first];
        resting.first = (resting.first + 1) % ROOM;
        resting.n--;
    }
    spin_unlock();
    if (unfinished) {
        __tsan_destroy_fiber(fiber);
        fiber = NULL;
    }
    return fiber ? fiber : __tsan_create_fiber(0);
}

void tool_fiber_give(void *fiber, bool unfinished)
{
    spin_lock();
    bool room = resting.n < ROOM;
    if (room) {
        uint32_t i = (resting.first + resting.n++) % ROOM;
        resting.fiber[i] = fiber;
        resting.unfinished[i] = unfinished;
    }
    spin_unlock();
    if (!room) {
        __tsan_destroy_fiber(fiber);
    }
}

#endif
