/* SPDX-License-Identifier: MIT */
/*
 * Panic, defer, recover.
 *
 *     FILE *f = fopen(path, "r");
 *     pirn_defer(fclose, f);
 *     ...
 *     if (!valid)
 *         pirn_panic("%s: line %d is no number", path, line);
 *
 * pirn_defer(fn, args...) is a declaration. It evaluates its arguments now, and calls fn when the
 * enclosing block is left: at its end, by break, continue, goto or return, by a panic or by pirn_exit; at
 * each turn, if the block is the body of a loop. The last comes first. It takes any fn that pirn_go takes.
 * A jump past it (into the case of a switch, say) defers nothing; after an if, and in a case, it needs
 * braces.
 *
 * pirn_panic(format, ...) runs the deferred calls of the goroutine, up to the innermost pirn_try, which
 * returns what it was. Without one the program ends: the message, the goroutines, exit 2. A deferred call
 * may stop that by pirn_recover().
 *
 * Outside goroutines all of this is about the calling thread; but a panic that is recovered there needs a
 * pirn_try to come to.
 *
 * A longjmp out of a block does not run its deferred calls; they are forgotten. C++: destructors run, and
 * exceptions too leave a block with its deferred calls; a catch (...) must rethrow a panic, as it must
 * rethrow the cancellation of a thread, and a panic must not leave a function that is noexcept. With less than
 * 4 KB of stack left (dense stacks of 2 and 4 KB have no more) there is no room for the unwinder: deferred calls
 * run, destructors don't.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_PANIC_H
#define PIRN_PANIC_H

#ifdef __cplusplus
extern "C" {
#endif

/* What a goroutine, or a call of pirn_try, has panicked with. */
typedef struct pirn_panic_info pirn_panic_info;

PIRN_NORETURN_ PIRN_API_ void pirn_panic(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/*
 * Calls fn(arg). NULL if it has returned, or has panicked and a deferred call has recovered that; else the
 * panic, to be freed. pirn_exit passes through.
 */
PIRN_API_ pirn_panic_info *pirn_try(void (*fn)(void *), void *arg);
PIRN_API_ const char *pirn_panic_message(const pirn_panic_info *p); /* until it is freed */
PIRN_API_ void pirn_panic_free(pirn_panic_info *p);

/*
 * In a function that was deferred, and is called by a panic: its message, once, and the panic is over;
 * else NULL, also in what that function calls. The deferred calls that remain are run, up to the
 * innermost pirn_try, which returns NULL; without one the goroutine ends. The text is there until the
 * deferred call returns.
 */
PIRN_API_ const char *pirn_recover(void);
PIRN_API_ const char *pirn_recover_(void *frame, const char *function);
#define pirn_recover() pirn_recover_(__builtin_frame_address(0), __func__)

/* --- how pirn_defer does it ---------------------------------------------------------------------- */

/* Lies in the block, and is in the list of the goroutine until it has been called. */
struct pirn_defer_ {
    struct pirn_defer_ *outer_, *inner_;
    uintptr_t mark_; /* that it is in the list */
    void *frame_;    /* of the function */
    const char *site_;
    unsigned kind_, flags_;
    void (*fn_)(void);
    uint64_t slot_[6];
};

PIRN_API_ void pirn_defer_end_(struct pirn_defer_ *d);

/* What lies below, a longjmp has left behind. In outer_ until it is in the list. */
static inline __attribute__((always_inline, unused)) void *pirn_sp_(void)
{
    void *sp;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
#else
    __asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
    return sp;
}

#ifdef __cplusplus
}
#endif

/* clang-format off */

#define pirn_defer(...) PIRN_DEFER_(__COUNTER__, __VA_ARGS__)
#define PIRN_DEFER_(id, ...) PIRN_DEFER2_(id, __VA_ARGS__)
#define PIRN_DEFER_FIRST_(fn, ...) fn

#ifndef __cplusplus

/* In place of a wait group of pirn_go, the record: the arguments are checked and kept in the same way. */
#define PIRN_DEFER2_(id, ...)                                                                      \
    struct pirn_defer_ pirn_defer_##id##_ __attribute__((cleanup(pirn_defer_end_)));               \
    __extension__ int pirn_deferred_##id##_ __attribute__((unused)) = ({                           \
        pirn_defer_##id##_.frame_ = __builtin_frame_address(0);                                    \
        pirn_defer_##id##_.outer_ = (struct pirn_defer_ *)pirn_sp_();                              \
        pirn_defer_##id##_.kind_ = PIRN_DEFER_NAMED_(PIRN_DEFER_FIRST_(__VA_ARGS__, 0));           \
        PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), PIRN_DEFER_WG_(pirn_defer_##id##_), __VA_ARGS__);    \
        0;                                                                                         \
    })
#define PIRN_DEFER_WG_(d) ((struct pirn_wg *)(void *)((char *)&(d) + 2))
/* 1: fn is the name of a function, not a pointer. */
#define PIRN_DEFER_NAMED_(fn)                                                                      \
    ((unsigned)__builtin_types_compatible_p(__typeof__(fn), __typeof__(*(fn))))

#else

#define PIRN_DEFER2_(id, ...)                                                                      \
    struct pirn_defer_ pirn_defer_##id##_ __attribute__((cleanup(pirn_defer_end_)));               \
    int pirn_deferred_##id##_ __attribute__((unused)) =                                            \
        (static_cast<void>(pirn_defer_##id##_.frame_ = __builtin_frame_address(0)),                \
         static_cast<void>(pirn_defer_##id##_.outer_ =                                             \
                               static_cast<struct pirn_defer_ *>(pirn_sp_())),                     \
         static_cast<void>(pirn_defer_##id##_.kind_ = 0),                                          \
         PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), pirn_defer_wg_(&pirn_defer_##id##_), __VA_ARGS__),  \
         0)

extern "C++" {
inline struct pirn_wg *pirn_defer_wg_(struct pirn_defer_ *d)
{
    return reinterpret_cast<struct pirn_wg *>(reinterpret_cast<char *>(d) + 2);
}
}

#endif

/* clang-format on */

#endif
