/* SPDX-License-Identifier: MIT */
/*
 * Channels and select.
 *
 *     pirn_chan(int) c = pirn_chan_make(int, 16);
 *     pirn_chan_send(c, 42);
 *     int v;
 *     while (pirn_chan_recv(c, &v)) ...            false: closed, and nothing is left
 *     pirn_chan_close(c);
 *     pirn_chan_release(c);
 *
 *     switch (pirn_select(PIRN_RECV(a, &x), PIRN_SEND(b, y), PIRN_DEFAULT)) {
 *     case 0: ...
 *     }
 *
 * pirn_chan(T) is one type wherever it is written; values of another type don't compile. A NULL
 * channel blocks for ever.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_CHAN_H
#define PIRN_CHAN_H

#ifdef __cplusplus
extern "C" {
#endif

/* --- without types, for bindings ------------------------------------------------------------- */

typedef struct pirn_chanv pirn_chanv;

/* Panics if the size is absurd; out of memory is fatal. One reference, the caller's. */
PIRN_API_ pirn_chanv *pirn_chanv_make(size_t elem, size_t cap);
PIRN_API_ pirn_chanv *pirn_chanv_retain(pirn_chanv *c);
/* The last one drops what is buffered, and panics if goroutines wait on it. */
PIRN_API_ void pirn_chanv_release(pirn_chanv *c);
PIRN_API_ void pirn_chanv_send(pirn_chanv *c, const void *elem);    /* may park */
PIRN_API_ bool pirn_chanv_recv(pirn_chanv *c, void *elem);          /* may park; elem may be NULL */
PIRN_API_ int pirn_chanv_try_send(pirn_chanv *c, const void *elem); /* 1, or 0: would block */
PIRN_API_ int pirn_chanv_try_recv(pirn_chanv *c, void *elem); /* 1; 0: would block; -1: closed */
/* 0, -ETIMEDOUT, or what the current context says; receive: -EPIPE when closed. May park. */
PIRN_API_ int pirn_chanv_send_until(pirn_chanv *c, const void *elem, pirn_ns deadline);
PIRN_API_ int pirn_chanv_recv_until(pirn_chanv *c, void *elem, pirn_ns deadline);
PIRN_API_ void pirn_chanv_close(pirn_chanv *c);
PIRN_API_ size_t pirn_chanv_len(const pirn_chanv *c);
PIRN_API_ size_t pirn_chanv_cap(const pirn_chanv *c);
/* A descriptor that is readable while a receive would not block, for another main loop: poll it,
 * never read it. The channel's own. -errno. */
PIRN_API_ int pirn_chanv_fd(pirn_chanv *c);

/* One case of a select. Made by the macros below; a zeroed case is never ready. */
typedef struct pirn_case {
    int kind_;
    unsigned order_;
    union {
        pirn_chanv *chan_;
        pirn_ns until_;
        int fd_;
    };
    void *elem_;
    bool *ok_;
} pirn_case;

enum pirn_case_kind_ {
    PIRN_CASE_NONE_,
    PIRN_CASE_RECV_,
    PIRN_CASE_SEND_,
    PIRN_CASE_DEFAULT_,
    PIRN_CASE_UNTIL_,
    PIRN_CASE_READABLE_,
    PIRN_CASE_WRITABLE_
};

/* Index of the case that was carried out. Ready cases are chosen at random, fairly. May park. */
PIRN_API_ int pirn_selectv(pirn_case *cases, int n);

/* clang-format off */
#define PIRN_DEFAULT        { .kind_ = PIRN_CASE_DEFAULT_ }
#define PIRN_AFTER(ns)      { .kind_ = PIRN_CASE_UNTIL_, .until_ = pirn_deadline(ns) }
#define PIRN_UNTIL(when)    { .kind_ = PIRN_CASE_UNTIL_, .until_ = (when) }
#define PIRN_DONE(ctx)      { .kind_ = PIRN_CASE_RECV_, .chan_ = pirn_ctx_donev(ctx) }
#define PIRN_READABLE(fd)   { .kind_ = PIRN_CASE_READABLE_, .fd_ = (fd) }
#define PIRN_WRITABLE(fd)   { .kind_ = PIRN_CASE_WRITABLE_, .fd_ = (fd) }
/* clang-format on */

#ifdef __cplusplus
}
#else

/* --- with types ------------------------------------------------------------------------------ */

/* clang-format off */
#define pirn_chan(T) __typeof__(__typeof__(T)(*)[])

#define PIRN_CHAN_T_(c) __typeof__((*(c))[0])
/* Not a channel? Then this does not compile: no pointer to an array of known size is both. */
#define PIRN_CHANV_(c)                                                                             \
    ((pirn_chanv *)_Generic((c), PIRN_CHAN_T_(c)(*)[1]:                                            \
        _Generic((c), PIRN_CHAN_T_(c)(*)[2]: (c))))
/* Where to put a value: a T *, or NULL. */
#define PIRN_CHAN_TO_(c, p) (_Generic((p), PIRN_CHAN_T_(c) *: (p), void *: (p)))

#define pirn_chan_make(T, cap) ((pirn_chan(T))pirn_chanv_make(sizeof(T), (size_t)+(cap)))
#define pirn_chan_retain(c) ((__typeof__(c))pirn_chanv_retain(PIRN_CHANV_(c)))
#define pirn_chan_release(c) pirn_chanv_release(PIRN_CHANV_(c))
#define pirn_chan_close(c) pirn_chanv_close(PIRN_CHANV_(c))
#define pirn_chan_len(c) pirn_chanv_len(PIRN_CHANV_(c))
#define pirn_chan_cap(c) pirn_chanv_cap(PIRN_CHANV_(c))
#define pirn_chan_fd(c) pirn_chanv_fd(PIRN_CHANV_(c))

#define pirn_chan_recv(c, p) pirn_chanv_recv(PIRN_CHANV_(c), PIRN_CHAN_TO_(c, p))
#define pirn_chan_try_recv(c, p) pirn_chanv_try_recv(PIRN_CHANV_(c), PIRN_CHAN_TO_(c, p))
#define pirn_chan_recv_until(c, p, deadline)                                                       \
    pirn_chanv_recv_until(PIRN_CHANV_(c), PIRN_CHAN_TO_(c, p), deadline)

/* Names of their own for the locals of each use: one may be an argument of another. */
#define PIRN_CHAN_CAT_(a, b)  a##b
#define PIRN_CHAN_NAME_(a, b) PIRN_CHAN_CAT_(a, b)

/* The value is converted as by an assignment; what assigns a wrong pointer does not compile. */
#define PIRN_CHAN_VALUE_(c, v, c_, v_)                                                             \
    PIRN_DIAG_STRICT_                                                                              \
    pirn_chanv *c_ = PIRN_CHANV_(c);                                                               \
    PIRN_CHAN_T_(c) v_ = (v);                                                                      \
    PIRN_DIAG_POP_

#define pirn_chan_send(c, v)     PIRN_CHAN_SEND_(pirn_chanv_send, c, v, __COUNTER__)
#define pirn_chan_try_send(c, v) PIRN_CHAN_SEND_(pirn_chanv_try_send, c, v, __COUNTER__)
#define PIRN_CHAN_SEND_(fn, c, v, n)                                                               \
    PIRN_CHAN_SEND2_(fn, c, v, PIRN_CHAN_NAME_(pirn_c_, n), PIRN_CHAN_NAME_(pirn_v_, n))
#define PIRN_CHAN_SEND2_(fn, c, v, c_, v_)                                                         \
    __extension__({                                                                                \
        PIRN_CHAN_VALUE_(c, v, c_, v_)                                                             \
        fn(c_, &v_);                                                                               \
    })
#define pirn_chan_send_until(c, v, deadline) PIRN_CHAN_UNTIL_(c, v, deadline, __COUNTER__)
#define PIRN_CHAN_UNTIL_(c, v, deadline, n)                                                        \
    PIRN_CHAN_UNTIL2_(c, v, deadline, PIRN_CHAN_NAME_(pirn_c_, n), PIRN_CHAN_NAME_(pirn_v_, n))
#define PIRN_CHAN_UNTIL2_(c, v, deadline, c_, v_)                                                  \
    __extension__({                                                                                \
        PIRN_CHAN_VALUE_(c, v, c_, v_)                                                             \
        pirn_chanv_send_until(c_, &v_, deadline);                                                  \
    })

/* The type that is not used: of an array there would be a pointer to what is gone. */
#define pirn_chan_get(c) PIRN_CHAN_GET_(c, PIRN_CHAN_NAME_(pirn_v_, __COUNTER__))
#define PIRN_CHAN_GET_(c, v_)                                                                      \
    __extension__({                                                                                \
        PIRN_CHAN_T_(c) v_;                                                                        \
        (void)sizeof(PIRN_CHAN_T_(c)(*)(void));                                                    \
        (void)pirn_chanv_recv(PIRN_CHANV_(c), &v_);                                                \
        v_;                                                                                        \
    })

#define PIRN_RECV(c, p)                                                                            \
    { .kind_ = PIRN_CASE_RECV_, .chan_ = PIRN_CHANV_(c), .elem_ = PIRN_CHAN_TO_(c, p) }
#define PIRN_RECV_OK(c, p, ok)                                                                     \
    { .kind_ = PIRN_CASE_RECV_, .chan_ = PIRN_CHANV_(c), .elem_ = PIRN_CHAN_TO_(c, p), .ok_ = (ok) }
/* The call that is never made: what can't be passed for a T is no value for an array of T either. */
#define PIRN_SEND(c, v)                                                                            \
    {                                                                                              \
        .kind_ = PIRN_CASE_SEND_, .chan_ = PIRN_CHANV_(c),                                         \
        .elem_ = (PIRN_CHAN_T_(c)[1]){(v)}                                                         \
                 + 0 * sizeof(__typeof__(((PIRN_CHAN_T_(c)(*)(PIRN_CHAN_T_(c)))0)(v)))             \
    }

#define pirn_select(...) PIRN_SELECT_(PIRN_CHAN_NAME_(pirn_k_, __COUNTER__), __VA_ARGS__)
#define PIRN_SELECT_(k_, ...)                                                                      \
    __extension__({                                                                                \
        PIRN_DIAG_STRICT_                                                                          \
        pirn_case k_[] = {__VA_ARGS__};                                                            \
        PIRN_DIAG_POP_                                                                             \
        pirn_selectv(k_, (int)(sizeof k_ / sizeof k_[0]));                                         \
    })
/* clang-format on */

#endif

#endif
