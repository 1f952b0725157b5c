/* SPDX-License-Identifier: MIT */
/*
 * Waiting for goroutines. Objects are valid when zeroed, barriers aside, and need no destruction; one
 * may go as soon as every waiting call on it has returned.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_SYNC_H
#define PIRN_SYNC_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A wait group: a counter that can be waited on until it is zero. It may go out
 * of scope as soon as every pirn_wg_wait on it has returned, also while the
 * pirn_wg_done that released them is still executing.
 */
typedef struct pirn_wg {
    uint64_t state_;
    void *waiters_;
} pirn_wg;

PIRN_API_ void pirn_wg_add(pirn_wg *wg, int n); /* panics if the counter falls below zero */
PIRN_API_ void pirn_wg_done(pirn_wg *wg);
PIRN_API_ void pirn_wg_wait(pirn_wg *wg); /* may park */
/* pirn_wg_go(wg, fn, args...), of <pirn/go.h>: pirn_go with an add before and a done after. */

/* Not recursive. Go's two modes: fast under contention, and nobody waits for more than about 1 ms
 * behind others that came later. */
typedef struct pirn_mutex {
    uint64_t state_;
    void *waiters_;
} pirn_mutex;

PIRN_API_ void pirn_mutex_lock(pirn_mutex *m); /* may park */
PIRN_API_ bool pirn_mutex_try_lock(pirn_mutex *m);
PIRN_API_ void pirn_mutex_unlock(pirn_mutex *m); /* by anybody; fatal if it is not locked */

/* Many readers or one writer. A reader that comes while a writer waits waits behind it. */
typedef struct pirn_rwmutex {
    uint64_t state_;
    void *waiters_;
} pirn_rwmutex;

PIRN_API_ void pirn_rwmutex_lock(pirn_rwmutex *m);  /* may park */
PIRN_API_ void pirn_rwmutex_rlock(pirn_rwmutex *m); /* may park */
PIRN_API_ bool pirn_rwmutex_try_lock(pirn_rwmutex *m);
PIRN_API_ bool pirn_rwmutex_try_rlock(pirn_rwmutex *m);
PIRN_API_ void pirn_rwmutex_unlock(pirn_rwmutex *m);
PIRN_API_ void pirn_rwmutex_runlock(pirn_rwmutex *m);

typedef struct pirn_cond {
    uint64_t state_;
    void *waiters_;
} pirn_cond;

PIRN_API_ void pirn_cond_wait(pirn_cond *c, pirn_mutex *m); /* may park */
/* 0, -ETIMEDOUT, or what the current context says. The mutex is locked in any case. */
PIRN_API_ int pirn_cond_wait_until(pirn_cond *c, pirn_mutex *m, pirn_ns deadline);
PIRN_API_ void pirn_cond_signal(pirn_cond *c);
PIRN_API_ void pirn_cond_broadcast(pirn_cond *c);

/* fn(arg) is called once, by the first; the others wait until it has returned. May park. */
typedef struct pirn_once {
    uint64_t done_;
    pirn_mutex mutex_;
} pirn_once;

PIRN_API_ void pirn_once_do(pirn_once *o, void (*fn)(void *), void *arg);

/* A weighted semaphore, first come first served. Zeroed it has no permits. */
typedef struct pirn_sem {
    uint64_t state_;
    int64_t n_;
    void *waiters_;
} pirn_sem;

#define PIRN_SEM_INIT(n)                                                                           \
    {                                                                                              \
        0, (n), NULL                                                                               \
    }
PIRN_API_ void pirn_sem_init(pirn_sem *s, int64_t n);
PIRN_API_ void pirn_sem_acquire(pirn_sem *s, int64_t n); /* may park */
PIRN_API_ bool pirn_sem_try_acquire(pirn_sem *s, int64_t n);
PIRN_API_ void pirn_sem_release(pirn_sem *s, int64_t n);

/* n that wait for each other, again and again. */
typedef struct pirn_barrier {
    uint64_t state_;
    int n_, arrived_;
    void *waiters_;
} pirn_barrier;

PIRN_API_ void pirn_barrier_init(pirn_barrier *b, int n);
PIRN_API_ bool pirn_barrier_wait(pirn_barrier *b); /* may park; true for one of the n */

#ifdef __cplusplus
}
#endif

#endif
