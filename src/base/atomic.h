/* SPDX-License-Identifier: MIT */
/*
 * Every atomic operation of pirn, in one place.
 *
 * An atomic variable is declared AT(type) and touched only through the at_*
 * macros below, each of which takes its memory order by name. So the source
 * that ships can be compiled in other flavours:
 *
 *   native  the compiler's atomics;
 *   chaos   the same with a seeded random delay before each operation, which
 *           opens the windows that a quiet machine keeps shut (chaos.c);
 *   model   each operation calls model_op(), where the explorer decides which
 *           thread runs next and which store a load sees (tests/model).
 *
 * Raw __atomic or _Atomic anywhere else is an error of tools/check-atomics.
 *
 * ThreadSanitizer does not understand fences. In that build a fence is a
 * sequentially consistent read-modify-write of one dummy word, which orders at
 * least as much.
 */
#ifndef PIRN_BASE_ATOMIC_H
#define PIRN_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define AT(type)                                                                                   \
    struct {                                                                                       \
        type v;                                                                                    \
    }

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define ACQ_REL __ATOMIC_ACQ_REL
#define SEQ_CST __ATOMIC_SEQ_CST

typedef AT(uint32_t) at_u32;
typedef AT(uint64_t) at_u64;

#if PIRN_FLAVOUR_MODEL

/*
 * The explorer's side of the seam (tests/model/explorer); sizes are 1, 2, 4 or 8 bytes. Each
 * operation in the source is a site, so that a failure can name it, and so that the explorer can
 * weaken its order without a new build.
 */
enum model_kind {
    MODEL_LOAD,
    MODEL_STORE,
    MODEL_XCHG,
    MODEL_ADD,
    MODEL_AND,
    MODEL_OR,
    MODEL_CAS,
    MODEL_CAS_WEAK,
    MODEL_FENCE,
};
struct model_site {
    const char *file, *text;
    int line;
    enum model_kind kind;
    int order, fail_order;
};
uint64_t model_op(const struct model_site *site, const volatile void *addr, unsigned size,
                  uint64_t operand, uint64_t expected, bool *cas_ok);
void model_fence(const struct model_site *site);
void model_pause(void);

#define AT_SITE(kind, text, order, fail_order)                                                     \
    ({                                                                                             \
        static struct model_site at_site_ __attribute__((section("model_sites"), used)) = {        \
            __FILE__, text, __LINE__, kind, order, fail_order};                                    \
        &at_site_;                                                                                 \
    })
#define AT_U64(x) ((uint64_t)(uintptr_t)(x))
/* text is what stands in the source, before macros in it are replaced. */
#define AT_OP(kind, p, text, x, e, order, fail_order, ok)                                          \
    ({                                                                                             \
        (__typeof__((p)->v))(uintptr_t)model_op(AT_SITE(kind, text, order, fail_order), &(p)->v,   \
                                                sizeof((p)->v), AT_U64(x), AT_U64(e), ok);         \
    })
#define AT_CAS(kind, p, text, expected, x, order, fail_order)                                      \
    ({                                                                                             \
        bool at_ok_ = false;                                                                       \
        *(expected) = AT_OP(kind, p, text, x, *(expected), order, fail_order, &at_ok_);            \
        at_ok_;                                                                                    \
    })
#define at_load(p, order) AT_OP(MODEL_LOAD, p, #p, 0, 0, order, 0, 0)
#define at_store(p, x, order) ((void)AT_OP(MODEL_STORE, p, #p, x, 0, order, 0, 0))
#define at_xchg(p, x, order) AT_OP(MODEL_XCHG, p, #p, x, 0, order, 0, 0)
#define at_add(p, x, order) AT_OP(MODEL_ADD, p, #p, x, 0, order, 0, 0)
#define at_and(p, x, order) AT_OP(MODEL_AND, p, #p, x, 0, order, 0, 0)
#define at_or(p, x, order) AT_OP(MODEL_OR, p, #p, x, 0, order, 0, 0)
#define at_cas(p, expected, x, order, fail_order)                                                  \
    AT_CAS(MODEL_CAS, p, #p, expected, x, order, fail_order)
#define at_cas_weak(p, expected, x, order, fail_order)                                             \
    AT_CAS(MODEL_CAS_WEAK, p, #p, expected, x, order, fail_order)
#define at_fence(order) model_fence(AT_SITE(MODEL_FENCE, "fence", order, 0))
#define at_fence_after_rmw() at_fence(SEQ_CST)
#define at_fence_light() at_fence(SEQ_CST)
#define at_pause() model_pause()

#else

#if PIRN_FLAVOUR_CHAOS
void chaos_point(void);
#define AT_POINT() chaos_point()
#else
#define AT_POINT() ((void)0)
#endif

#define at_load(p, order) (AT_POINT(), __atomic_load_n(&(p)->v, order))
#define at_store(p, x, order) (AT_POINT(), __atomic_store_n(&(p)->v, x, order))
#define at_xchg(p, x, order) (AT_POINT(), __atomic_exchange_n(&(p)->v, x, order))
/* The read-modify-writes return the value before. */
#define at_add(p, x, order) (AT_POINT(), __atomic_fetch_add(&(p)->v, x, order))
#define at_and(p, x, order) (AT_POINT(), __atomic_fetch_and(&(p)->v, x, order))
#define at_or(p, x, order) (AT_POINT(), __atomic_fetch_or(&(p)->v, x, order))
/* On failure *expected holds what was found. */
#define at_cas(p, expected, x, order, fail_order)                                                  \
    (AT_POINT(), __atomic_compare_exchange_n(&(p)->v, expected, x, false, order, fail_order))
/* The same, but it may fail for no reason: for loops, where it is cheaper on some machines. */
#define at_cas_weak(p, expected, x, order, fail_order)                                             \
    (AT_POINT(), __atomic_compare_exchange_n(&(p)->v, expected, x, true, order, fail_order))

#if defined(__SANITIZE_THREAD__)
#define AT_NO_FENCES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AT_NO_FENCES 1
#endif
#endif

#ifndef AT_NO_FENCES
#define AT_NO_FENCES 0
#endif

#if AT_NO_FENCES
extern at_u32 at_fence_word;
#define at_fence(order) ((void)at_add(&at_fence_word, 0, SEQ_CST))
#else
#define at_fence(order) (AT_POINT(), __atomic_thread_fence(order))
#endif

/* A full fence right after an atomic read-modify-write. On x86 the locked instruction is one
 * already, so only the compiler must be told; the model knows no such favour. */
#if defined(__x86_64__) && !AT_NO_FENCES && !PIRN_FLAVOUR_CHAOS
#define at_fence_after_rmw() __asm__ volatile("" ::: "memory")
#else
#define at_fence_after_rmw() at_fence(SEQ_CST)
#endif

/*
 * Two fences that pair with each other as two full ones: the light one orders only what the compiler
 * does, the heavy one (os/membarrier.c) makes all other threads of the process do a full one.
 */
#define at_fence_light() __atomic_signal_fence(SEQ_CST)

/* Hint inside a spin loop. */
#if defined(__x86_64__)
#define at_pause() __builtin_ia32_pause()
#else
#define at_pause() __asm__ volatile("isb" ::: "memory")
#endif

#endif /* native, chaos */

/* Adds to a counter that only its owner writes and others read. */
#define at_count(p, n) at_store(p, at_load(p, RELAXED) + (n), RELAXED)

#endif
