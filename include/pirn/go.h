/* SPDX-License-Identifier: MIT */
/*
 * pirn_go(fn, args...) starts fn(args...) as a goroutine.
 *
 *     pirn_go(serve, conn, 3, 0.5);
 *     pirn_wg_go(&wg, hello, i);
 *
 * fn is any prototyped function, or an expression that gives one, that returns
 * nothing or a scalar of at most 8 bytes. There are 0 to 6 arguments: integers,
 * pointers, floating point, of at most 8 bytes each. fn and the arguments are
 * evaluated once, now, by the caller, and converted as by the call fn(args...).
 * What that call refuses is refused; a wrong pointer type, and integers mixed
 * with pointers or with floating point, do not compile either.
 *
 * How: fn's type is kept and its address exchanged. The compiler checks, converts
 * and places the arguments for fn, but calls pirn_go_args_, which stores the
 * argument registers in thread-local memory; pirn_go_captured_ then starts fn
 * with them, even if fn is printf. No code of the user's runs between the two
 * calls: fn and the arguments are evaluated before the first. A function of type
 * void (void *) needs none of this and takes a shorter way.
 *
 * Limits. An argument must not be narrower than an __int128 or long double
 * parameter, which is not always seen (double for long double: by clang only).
 * Converted silently: floating point for an enum by clang; a pointer or floating
 * point for bool by gcc, if this is a system header. With clang a function that
 * takes arguments must not have __attribute__((noreturn)), but for void (void *)
 * and void (int): declare it _Noreturn.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_GO_H
#define PIRN_GO_H

#ifdef __cplusplus
extern "C" {
#endif

struct pirn_wg;
struct pirn_group;

/*
 * Called by the macros only. `site` is fn's text, a NUL, "file:line"; `wg` may be
 * NULL. `flags`: bit 0, floating-point registers are in use; bits 4-7, the number
 * of floating-point arguments; from bit 8, the number of all arguments.
 */
#define PIRN_GO_FLAGS_(n, floats) ((n)*256u + (floats)*16u + ((floats) != 0 ? 1u : 0u))
PIRN_API_ void pirn_go_args_(void);
PIRN_API_ void pirn_go_captured_(void (*fn)(void), unsigned flags, const char *site,
                                 struct pirn_wg *wg);
PIRN_API_ void pirn_group_begin_(struct pirn_group *g);
PIRN_API_ bool pirn_group_try_begin_(struct pirn_group *g);
PIRN_API_ void pirn_go_simple_(void (*fn)(void *), void *arg, const char *site, struct pirn_wg *wg);

#ifdef __cplusplus
}
#endif

#define PIRN_STR_(x) PIRN_STR2_(x)
#define PIRN_STR2_(x) #x
#define PIRN_SITE_(fn) #fn "\0" __FILE__ ":" PIRN_STR_(__LINE__)

/* clang-format off */

#define PIRN_GO_(n, wg, ...)  PIRN_GO2_(n, wg, __VA_ARGS__)
#define PIRN_GO2_(n, wg, ...) PIRN_GO_##n##_(wg, __VA_ARGS__)
#define PIRN_GO_COUNT2_(fn, a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n

#ifndef __cplusplus

#ifdef __clang__
/* clang does not warn in system headers; with this line marker, go.h is none when installed. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
# 76 "pirn/go.h"
#pragma GCC diagnostic pop
#endif

#define pirn_go(...) PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), (struct pirn_wg *)0, __VA_ARGS__)

/* The same with a pirn_wg_add before, and a pirn_wg_done when fn has returned. */
#define pirn_wg_go(wg, ...)                                                                        \
    __extension__({                                                                                \
        PIRN_DIAG_STRICT_                                                                          \
        struct pirn_wg *pirn_wg_ = (wg);                                                           \
        PIRN_DIAG_POP_                                                                             \
        PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), pirn_wg_, __VA_ARGS__);                              \
    })

/* In place of a wait group, a group: it has been told already. */
#define PIRN_GROUP_WG_(g) ((struct pirn_wg *)(void *)((char *)(g) + 1))
enum { pirn_returns_int_ = 0 };
#define PIRN_GROUP_(g)                                                                             \
    PIRN_DIAG_STRICT_                                                                              \
    enum { pirn_returns_int_ = 1 };                                                                \
    struct pirn_group *pirn_group_ = (g);                                                          \
    PIRN_DIAG_POP_

/* Starts fn(args...), which returns int, in a group; waits for room if it has a limit. */
#define pirn_group_go(g, ...)                                                                      \
    __extension__({                                                                                \
        PIRN_GROUP_(g)                                                                             \
        pirn_group_begin_(pirn_group_);                                                            \
        PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), PIRN_GROUP_WG_(pirn_group_), __VA_ARGS__);           \
    })

/* The same if there is room; false if not. */
#define pirn_group_try_go(g, ...)                                                                  \
    __extension__({                                                                                \
        PIRN_GROUP_(g)                                                                             \
        bool pirn_room_ = pirn_group_try_begin_(pirn_group_);                                      \
        if (pirn_room_)                                                                            \
            PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), PIRN_GROUP_WG_(pirn_group_), __VA_ARGS__);       \
        pirn_room_;                                                                                \
    })

#define PIRN_GO_COUNT_(...) PIRN_GO_COUNT2_(__VA_ARGS__, X, X, X, X, X, X, 6, 5, 4, 3, 2, 1, 0, 0)

#define PIRN_GO_0_(wg, fn)                                                                         \
    __extension__({                                                                                \
        PIRN_CALL_CHECK_(fn, 0, (), )                                                              \
        PIRN_DIAG_QUIET_                                                                           \
        pirn_fn_t_ pirn_fn_ = (fn);                                                                \
        pirn_go_captured_((void (*)(void))pirn_fn_, 0, PIRN_SITE_(fn), wg);                        \
        PIRN_DIAG_POP_                                                                             \
    })
#define PIRN_GO_1_(wg, fn, a)                                                                      \
    __extension__({                                                                                \
        PIRN_CALL_CHECK_(fn, 1, (a), PIRN_KIND_(1, a))                                             \
        PIRN_DIAG_QUIET_                                                                           \
        pirn_fn_t_ pirn_fn_ = (fn);                                                                \
        if (PIRN_IS_SIMPLE_)                                                                       \
            pirn_go_simple_(PIRN_IF_SIMPLE_(pirn_fn_, (void (*)(void *))0),                        \
                            PIRN_IF_SIMPLE_((a), (void *)0), PIRN_SITE_(fn), wg);                  \
        else                                                                                       \
            PIRN_GO_CAPTURED_(wg, fn, 1, (a))                                                      \
        PIRN_DIAG_POP_                                                                             \
        PIRN_CALL_PROBE_(1)                                                                        \
    })
#define PIRN_GO_2_(wg, fn, a, b)                                                                   \
    PIRN_GO_N_(wg, fn, 2, (a, b), PIRN_KIND_(1, a) PIRN_KIND_(2, b))
#define PIRN_GO_3_(wg, fn, a, b, c)                                                                \
    PIRN_GO_N_(wg, fn, 3, (a, b, c), PIRN_KIND_(1, a) PIRN_KIND_(2, b) PIRN_KIND_(3, c))
#define PIRN_GO_4_(wg, fn, a, b, c, d)                                                             \
    PIRN_GO_N_(wg, fn, 4, (a, b, c, d),                                                            \
               PIRN_KIND_(1, a) PIRN_KIND_(2, b) PIRN_KIND_(3, c) PIRN_KIND_(4, d))
#define PIRN_GO_5_(wg, fn, a, b, c, d, e)                                                          \
    PIRN_GO_N_(wg, fn, 5, (a, b, c, d, e),                                                         \
               PIRN_KIND_(1, a) PIRN_KIND_(2, b) PIRN_KIND_(3, c) PIRN_KIND_(4, d)                 \
               PIRN_KIND_(5, e))
#define PIRN_GO_6_(wg, fn, a, b, c, d, e, f)                                                       \
    PIRN_GO_N_(wg, fn, 6, (a, b, c, d, e, f),                                                      \
               PIRN_KIND_(1, a) PIRN_KIND_(2, b) PIRN_KIND_(3, c) PIRN_KIND_(4, d)                 \
               PIRN_KIND_(5, e) PIRN_KIND_(6, f))
#define PIRN_GO_X_(wg, fn, ...)                                                                    \
    __extension__({ _Static_assert(0, "pirn: at most 6 arguments can be passed to " #fn); })

#define PIRN_GO_N_(wg, fn, n, args, kinds)                                                         \
    __extension__({                                                                                \
        PIRN_CALL_CHECK_(fn, n, args, kinds)                                                       \
        PIRN_DIAG_QUIET_                                                                           \
        pirn_fn_t_ pirn_fn_ = (fn);                                                                \
        PIRN_GO_CAPTURED_(wg, fn, n, args)                                                         \
        PIRN_DIAG_POP_                                                                             \
        PIRN_CALL_PROBE_(n)                                                                        \
    })

/* The stub is in a variable: gcc makes a trap of a direct call through a wrong type. */
#define PIRN_GO_CAPTURED_(wg, fn, n, args)                                                         \
    {                                                                                              \
        pirn_fn_t_ pirn_stub_ = (pirn_fn_t_)pirn_go_args_;                                         \
        PIRN_FN_ASSERT_(fn)                                                                        \
        (void)pirn_stub_ args;                                                                     \
        pirn_go_captured_((void (*)(void))pirn_fn_,                                                \
                          PIRN_GO_FLAGS_(n, 0 PIRN_EACH_##n##_(PIRN_ADD_FLOAT_, )),                \
                          PIRN_SITE_(fn), wg);                                                     \
    }

/*
 * The checks: declarations (CHECK) and dead code (PROBE); nothing is evaluated.
 * They leave pirn_fn_t_, the type of fn as a pointer, and pirn_k1_ ..., the kinds
 * of the arguments. The first call is the user's, with what compilers only warn
 * of made an error. The others find what converts silently: they pass for each
 * argument a thing that its own kind of parameter takes and the wrong kind does
 * not, or not without the diagnostic that PIRN_DIAG_PROBE_ makes an error.
 */
#define PIRN_CALL_CHECK_(fn, n, args, kinds)                                                       \
    PIRN_DIAG_STRICT_                                                                              \
    typedef __typeof__((fn) args) pirn_ret_t_;                                                     \
    PIRN_RET_ASSERT_(fn)                                                                           \
    kinds                                                                                          \
    PIRN_EACH_##n##_(PIRN_ARG_ASSERT_, #fn)                                                        \
    PIRN_DIAG_POP_                                                                                 \
    PIRN_DIAG_PROBE_                                                                               \
    typedef PIRN_FN_TYPE_(fn) pirn_fn_t_;                                                          \
    PIRN_PROBE_TYPE_(fn, n)                                                                        \
    PIRN_DIAG_POP_
#define PIRN_CALL_PROBE_(n)                                                                        \
    PIRN_DIAG_PROBE_                                                                               \
    if (0) {                                                                                       \
        PIRN_PROBE_CODE_(n)                                                                        \
    }                                                                                              \
    PIRN_DIAG_POP_

/* Kinds of arguments. 8 is the class of floating point, 5 of pointers; above 8 is no scalar. */
#define PIRN_INTEGER_  0
#define PIRN_POINTER_  1
#define PIRN_FLOATING_ 2
#define PIRN_REFUSED_  3
#define PIRN_KIND_(i, a)                                                                           \
    enum {                                                                                         \
        pirn_k##i##_ = sizeof((void)0, (a)) > 8          ? PIRN_REFUSED_                           \
                       : __builtin_classify_type(a) == 8 ? PIRN_FLOATING_                          \
                       : __builtin_classify_type(a) == 5 ? PIRN_POINTER_                           \
                       : __builtin_classify_type(a) > 8  ? PIRN_REFUSED_                           \
                                                         : PIRN_INTEGER_                           \
    };
#define PIRN_ADD_FLOAT_(i, x) + (pirn_k##i##_ == PIRN_FLOATING_)
#define PIRN_ARG_ASSERT_(i, fn)                                                                    \
    _Static_assert(pirn_k##i##_ != PIRN_REFUSED_,                                                  \
                   "pirn: argument " #i " of " fn " is no scalar of at most 8 bytes");

#define PIRN_IS_SIMPLE_       __builtin_types_compatible_p(pirn_fn_t_, void (*)(void *))
#define PIRN_IF_SIMPLE_(x, y) __builtin_choose_expr(PIRN_IS_SIMPLE_, x, y)

/* n in place of an integer, p of a pointer, f of floating point. */
#define PIRN_AS_(i, n, p, f)                                                                       \
    __builtin_choose_expr(pirn_k##i##_ == PIRN_FLOATING_, f,                                       \
                          __builtin_choose_expr(pirn_k##i##_ == PIRN_POINTER_, p, n))

#define PIRN_RET_ASSERT_(fn)                                                                       \
    _Static_assert(!pirn_returns_int_ || __builtin_types_compatible_p(pirn_ret_t_, int),           \
                   "pirn: " #fn " does not return int");                                           \
    _Static_assert(sizeof PIRN_RET_ <= 8 && __builtin_classify_type(PIRN_RET_) <= 8,               \
                   "pirn: " #fn " returns neither nothing nor a scalar of at most 8 bytes");
#define PIRN_RET_                                                                                  \
    (*(__typeof__(__builtin_choose_expr(__builtin_types_compatible_p(pirn_ret_t_, void),           \
                                        (int *)0, (pirn_ret_t_ *)0)))0)

#ifdef __clang__

/* No floating-point parameter takes a pointer. volatile: or the compiler sees that it fits. */
#define PIRN_PROBE_TYPE_(fn, n)                                                                    \
    enum { pirn_probe_ = sizeof((void)(fn)(PIRN_LIST_##n##_(PIRN_NO_FLOAT_)), 0) };
#define PIRN_PROBE_CODE_(n) (void)pirn_fn_(PIRN_LIST_##n##_(PIRN_NO_INTEGER_));
#define PIRN_NO_FLOAT_(i)   PIRN_AS_(i, (struct pirn_integer_argument_ *)0, (void *)0, 0.0f)
#define PIRN_NO_INTEGER_(i)                                                                        \
    PIRN_AS_(i, 0, "pointer argument", ((volatile pirn_floating_argument_){0}))
struct pirn_integer_argument_;
typedef double pirn_floating_argument_;

/* A type that is written here lacks the attribute noreturn of exit and its like. */
#define PIRN_FN_TYPE_(fn)                                                                          \
    __typeof__(_Generic((fn), void (*)(int): (void (*)(int))0, default: PIRN_DECAY_(fn)))
#define PIRN_FN_ASSERT_(fn)

#else

/*
 * One bit of a long fits in any integer, but gcc does not see that it fits in
 * floating point. volatile float is no integer or bool, but gcc does not warn if
 * the parameter is an enum: hence a second call, with a constant. The names of
 * the types appear in the messages.
 */
#define PIRN_PROBE_TYPE_(fn, n)
#define PIRN_PROBE_CODE_(n)                                                                        \
    (void)pirn_fn_(PIRN_LIST_##n##_(PIRN_NO_MIX_));                                                \
    (void)pirn_fn_(PIRN_LIST_##n##_(PIRN_NO_ENUM_));
#define PIRN_NO_MIX_(i)                                                                            \
    PIRN_AS_(i, (volatile pirn_integer_argument_){0} & (pirn_integer_argument_)1,                  \
             pirn_pointer_argument_, ((volatile pirn_floating_argument_){0}))
#define PIRN_NO_ENUM_(i) PIRN_AS_(i, 0, (void *)0, (pirn_floating_argument_)1e30f)
typedef long pirn_integer_argument_;
typedef float pirn_floating_argument_;
extern char pirn_pointer_argument_[1]; /* not defined */

/*
 * The attributes noreturn and const are in the type of a pointer to a function,
 * as qualifiers, but not in the type of a function's name. A call through such a
 * type would be the last, or none.
 */
#define PIRN_FN_TYPE_(fn) __typeof__(PIRN_DECAY_(fn))
#define PIRN_FN_ASSERT_(fn)                                                                        \
    _Static_assert(                                                                                \
        !__builtin_types_compatible_p(pirn_fn_t_, volatile __typeof__(*(pirn_fn_t_)0) *) &&        \
            !__builtin_types_compatible_p(pirn_fn_t_, const __typeof__(*(pirn_fn_t_)0) *),         \
        "pirn: " #fn " points to a noreturn or const function: pass the function by its name");

#endif

#define PIRN_DECAY_(fn) (1 ? *(__typeof__(fn) *)0 : 0)

#define PIRN_EACH_0_(m, x)
#define PIRN_EACH_1_(m, x) m(1, x)
#define PIRN_EACH_2_(m, x) PIRN_EACH_1_(m, x) m(2, x)
#define PIRN_EACH_3_(m, x) PIRN_EACH_2_(m, x) m(3, x)
#define PIRN_EACH_4_(m, x) PIRN_EACH_3_(m, x) m(4, x)
#define PIRN_EACH_5_(m, x) PIRN_EACH_4_(m, x) m(5, x)
#define PIRN_EACH_6_(m, x) PIRN_EACH_5_(m, x) m(6, x)
#define PIRN_LIST_0_(m)
#define PIRN_LIST_1_(m) m(1)
#define PIRN_LIST_2_(m) PIRN_LIST_1_(m), m(2)
#define PIRN_LIST_3_(m) PIRN_LIST_2_(m), m(3)
#define PIRN_LIST_4_(m) PIRN_LIST_3_(m), m(4)
#define PIRN_LIST_5_(m) PIRN_LIST_4_(m), m(5)
#define PIRN_LIST_6_(m) PIRN_LIST_5_(m), m(6)

/*
 * Diagnostics. -Wshadow is about a pirn_go in the arguments of another. A lost
 * const stays a warning; clang counts it among the wrong pointer types.
 */
#define PIRN_DIAG_(x)         _Pragma(#x)
#define PIRN_DIAG_ERROR_(w)   PIRN_DIAG_(GCC diagnostic error w)
#define PIRN_DIAG_IGNORED_(w) PIRN_DIAG_(GCC diagnostic ignored w)
#define PIRN_DIAG_POP_        _Pragma("GCC diagnostic pop")
#define PIRN_DIAG_STRICT_ /* the user's call, not evaluated */                                     \
    _Pragma("GCC diagnostic push")                                                                 \
    PIRN_DIAG_ERROR_("-Wincompatible-pointer-types")                                               \
    PIRN_DIAG_ERROR_("-Wint-conversion")                                                           \
    PIRN_DIAG_IGNORED_("-Wshadow")                                                                 \
    PIRN_DIAG_CC_STRICT_
#define PIRN_DIAG_QUIET_ /* the call proper, after all has been said */                            \
    _Pragma("GCC diagnostic push")                                                                 \
    PIRN_DIAG_IGNORED_("-Wincompatible-pointer-types")                                             \
    PIRN_DIAG_IGNORED_("-Wint-conversion")                                                         \
    PIRN_DIAG_IGNORED_("-Wpointer-sign")                                                           \
    PIRN_DIAG_IGNORED_("-Wformat")                                                                 \
    PIRN_DIAG_IGNORED_("-Wnonnull")                                                                \
    PIRN_DIAG_IGNORED_("-Wunused-result")                                                          \
    PIRN_DIAG_IGNORED_("-Wdeprecated-declarations")                                                \
    PIRN_DIAG_IGNORED_("-Wshadow")                                                                 \
    PIRN_DIAG_CC_QUIET_
#define PIRN_DIAG_PROBE_ /* calls with arguments of our own */                                     \
    PIRN_DIAG_QUIET_                                                                               \
    PIRN_DIAG_IGNORED_("-Wformat-nonliteral")                                                      \
    PIRN_DIAG_IGNORED_("-Wformat-security")                                                        \
    PIRN_DIAG_IGNORED_("-Wformat-extra-args")                                                      \
    PIRN_DIAG_ERROR_("-Wfloat-conversion")                                                         \
    PIRN_DIAG_CC_PROBE_
#ifdef __clang__
#define PIRN_DIAG_CC_STRICT_                                                                       \
    PIRN_DIAG_IGNORED_("-Wincompatible-pointer-types-discards-qualifiers")                         \
    PIRN_DIAG_(GCC diagnostic warning "-Wincompatible-pointer-types-discards-qualifiers")          \
    PIRN_DIAG_IGNORED_("-Wunevaluated-expression")                                                 \
    PIRN_DIAG_IGNORED_("-Wsizeof-array-decay")
#define PIRN_DIAG_CC_QUIET_                                                                        \
    PIRN_DIAG_IGNORED_("-Wincompatible-pointer-types-discards-qualifiers")                         \
    PIRN_DIAG_IGNORED_("-Wunevaluated-expression")
#define PIRN_DIAG_CC_PROBE_                                                                        \
    PIRN_DIAG_IGNORED_("-Wimplicit-float-conversion")                                              \
    PIRN_DIAG_IGNORED_("-Wabsolute-value")                                                         \
    PIRN_DIAG_ERROR_("-Wdouble-promotion")  /* double for long double */                           \
    PIRN_DIAG_ERROR_("-Wstring-conversion") /* pointer for bool */
#else
#define PIRN_DIAG_CC_STRICT_ PIRN_DIAG_IGNORED_("-Wdouble-promotion")
#define PIRN_DIAG_CC_QUIET_  PIRN_DIAG_IGNORED_("-Wdiscarded-qualifiers")
#define PIRN_DIAG_CC_PROBE_                                                                        \
    PIRN_DIAG_IGNORED_("-Wdouble-promotion")                                                       \
    PIRN_DIAG_IGNORED_("-Wduplicated-branches")                                                    \
    PIRN_DIAG_IGNORED_("-Wrestrict")                                                               \
    PIRN_DIAG_ERROR_("-Wconversion")  /* integer for floating point */                             \
    PIRN_DIAG_ERROR_("-Wfloat-equal") /* floating point for bool */                                \
    PIRN_DIAG_ERROR_("-Woverflow")    /* floating point for enum */                                \
    PIRN_DIAG_ERROR_("-Waddress")     /* pointer for bool */
#endif

/* clang-format on */

#else /* C++: the parameter types are known, so the checks are exact */

extern "C++" {
#include <type_traits>

/* Parameters that take their type from fn alone: the caller converts, as for fn. */
template <class P> struct pirn_same_ {
    using type = P;
};

template <class T>
constexpr bool pirn_is_number_ = std::is_arithmetic<T>::value || std::is_enum<T>::value;

template <class T> constexpr bool pirn_is_passable_()
{
    if constexpr (std::is_scalar<T>::value)
        return sizeof(T) <= 8;
    return false;
}

template <class P, class A> constexpr void pirn_go_check_arg_()
{
    static_assert(
        !pirn_is_number_<
            P> || !pirn_is_number_<A> || std::is_floating_point<P>::value == std::is_floating_point<A>::value,
        "pirn: an integer is passed for floating point, or the reverse");
    static_assert(!std::is_same<P, bool>::value || !std::is_pointer<A>::value,
                  "pirn: a pointer is passed for a bool");
}

/* Never called: sees the arguments before they are converted. */
template <class R, class... P, class... A> constexpr void pirn_go_check_(R (*)(P...), A &&...)
{
    static_assert(sizeof...(P) == sizeof...(A), "pirn: wrong number of arguments");
    if constexpr (sizeof...(P) == sizeof...(A))
        (pirn_go_check_arg_<P, std::decay_t<A>>(), ...);
}
template <class R, class... P, class... A> constexpr void pirn_go_check_(R (*)(P..., ...), A &&...)
{
}

template <class R, class... P, class F, class... A>
inline void pirn_go_capture_(const char *site, struct pirn_wg *wg, F fn, A... args)
{
    static_assert(std::is_void<R>::value || pirn_is_passable_<R>(),
                  "pirn: the function returns neither nothing nor a scalar of at most 8 bytes");
    static_assert(sizeof...(A) <= 6, "pirn: at most 6 arguments can be passed");
    static_assert((pirn_is_passable_<P>() && ...) && (pirn_is_passable_<A>() && ...),
                  "pirn: an argument is no scalar of at most 8 bytes");
    if constexpr (sizeof...(A) != 0) {
        F stub = reinterpret_cast<F>(pirn_go_args_);
        static_cast<void>(stub(args...));
    }
    pirn_go_captured_(reinterpret_cast<void (*)()>(fn),
                      PIRN_GO_FLAGS_(static_cast<unsigned>(sizeof...(A)),
                                     (0u + ... + std::is_floating_point<A>::value)),
                      site, wg);
}
template <class R, class... P>
inline void pirn_go_start_(const char *site, struct pirn_wg *wg, R (*fn)(P...),
                           typename pirn_same_<P>::type... args)
{
    pirn_go_capture_<R, P...>(site, wg, fn, args...);
}
template <class R, class... P, class... A>
inline void pirn_go_start_(const char *site, struct pirn_wg *wg, R (*fn)(P..., ...), A... args)
{
    pirn_go_capture_<R, P...>(site, wg, fn, args...);
}
inline void pirn_go_start_(const char *site, struct pirn_wg *wg, void (*fn)(void *), void *arg)
{
    pirn_go_simple_(fn, arg, site, wg);
}
template <class... P> constexpr void pirn_group_check_(int (*)(P...))
{
}
template <class... P> constexpr void pirn_group_check_(int (*)(P..., ...))
{
}
inline struct pirn_wg *pirn_group_wg_(struct pirn_group *g)
{
    return reinterpret_cast<struct pirn_wg *>(reinterpret_cast<char *>(g) + 1);
}
inline struct pirn_wg *pirn_group_enter_(struct pirn_group *g)
{
    pirn_group_begin_(g);
    return pirn_group_wg_(g);
}
} /* extern "C++" */

/* The plus makes a function pointer of a lambda that captures nothing. */
#define pirn_go(...) PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), nullptr, __VA_ARGS__)
#define pirn_wg_go(wg, ...) PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), wg, __VA_ARGS__)
#define PIRN_FIRST_(a, ...) a
#define PIRN_GROUP_CHECK_(...) pirn_group_check_(+(PIRN_FIRST_(__VA_ARGS__, 0)))
#define pirn_group_go(g, ...)                                                                      \
    (false ? PIRN_GROUP_CHECK_(__VA_ARGS__)                                                        \
           : PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), pirn_group_enter_(g), __VA_ARGS__))
/* g is evaluated twice. */
#define pirn_group_try_go(g, ...)                                                                  \
    (pirn_group_try_begin_(g)                                                                      \
         ? ((false ? PIRN_GROUP_CHECK_(__VA_ARGS__)                                                \
                   : PIRN_GO_(PIRN_GO_COUNT_(__VA_ARGS__), pirn_group_wg_(g), __VA_ARGS__)),       \
            true)                                                                                  \
         : false)
#define PIRN_GO_COUNT_(...) PIRN_GO_COUNT2_(__VA_ARGS__, N, N, N, N, N, N, N, N, N, N, N, N, 0, 0)
#define PIRN_GO_0_(wg, fn)                                                                         \
    (false ? pirn_go_check_(+(fn)) : pirn_go_start_(PIRN_SITE_(fn), wg, +(fn)))
#define PIRN_GO_N_(wg, fn, ...)                                                                    \
    (false ? pirn_go_check_(+(fn), __VA_ARGS__)                                                    \
           : pirn_go_start_(PIRN_SITE_(fn), wg, +(fn), __VA_ARGS__))

#endif
#endif
