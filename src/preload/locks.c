/* SPDX-License-Identifier: MIT */
/*
 * libpirn-locks.so, for LD_PRELOAD: remembers which goroutine has which of the locks that belong to a
 * thread, so that PIRN_DEBUG=locks=1 can tell of a goroutine that has waited in pirn with such a lock: it
 * goes on on another thread, which is not the owner.
 *
 * A library of its own: pirn itself must not put its hands on the program's locks. It needs pirn_id() and
 * nothing else of pirn.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/atomic.h"

#define API __attribute__((visibility("default")))
#define HELD 4096 /* locks that are held at a time; more are not remembered */
#define NEAR 64

uint64_t pirn_id(void) __attribute__((weak));
API const void *pirn_locks_held_by(uint64_t id, const char **kind, const void **site);

struct held {
    const void *lock; /* NULL: free */
    uint64_t id;
    const char *kind;
    const void *site;
    bool told;
};

static struct held table[HELD];
static at_u32 busy; /* a spin lock: nothing here may call what is replaced */

static void table_lock(void)
{
    while (at_xchg(&busy, 1, ACQUIRE)) {
        at_pause();
    }
}

static void table_unlock(void)
{
    at_store(&busy, 0, RELEASE);
}

/* lock: the one that has it; NULL: a free one near where it belongs. */
static struct held *find(const void *near, const void *lock)
{
    uintptr_t at = (uintptr_t)near / 8;
    for (uintptr_t i = 0; i < NEAR; i++) {
        struct held *h = &table[(at + i) % HELD];
        if (h->lock == lock) {
            return h;
        }
    }
    return NULL;
}

static void remember(uint64_t id, const void *lock, const char *kind, const void *site)
{
    table_lock();
    struct held *h = id ? find(lock, NULL) : NULL;
    if (h) {
        *h = (struct held){.lock = lock, .id = id, .kind = kind, .site = site};
    }
    table_unlock();
}

/* Whoever unlocks it: who, is not asked, for the question may end a goroutine. */
static void forget(const void *lock)
{
    table_lock();
    struct held *h = find(lock, lock);
    if (h) {
        h->lock = NULL;
    }
    table_unlock();
}

/* By pirn. A lock that the goroutine has and that was not told yet, or NULL. */
const void *pirn_locks_held_by(uint64_t id, const char **kind, const void **site)
{
    const void *lock = NULL;
    table_lock();
    for (int i = 0; i < HELD && !lock; i++) {
        struct held *h = &table[i];
        if (h->lock && h->id == id && !h->told) {
            h->told = true;
            lock = h->lock;
            *kind = h->kind;
            *site = h->site;
        }
    }
    table_unlock();
    return lock;
}

/* Goroutine 0 is a thread. */
static uint64_t current(void)
{
    return pirn_id ? pirn_id() : 0;
}

/* The function that this one stands for. */
#define REAL(type, name, args)                                                                     \
    type(*real) args;                                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

/* One that takes a lock: its parameters, and what it is called with. 0: it has it. */
#define TAKES(name, kind, args, call)                                                              \
    API int name args                                                                              \
    {                                                                                              \
        REAL(int, name, args);                                                                     \
        uint64_t id = current();                                                                   \
        int err = real call;                                                                       \
        if (err == 0) {                                                                            \
            remember(id, (const void *)lock, kind, __builtin_return_address(0));                   \
        }                                                                                          \
        return err;                                                                                \
    }

#define GIVES(name, args, call)                                                                    \
    API int name args                                                                              \
    {                                                                                              \
        REAL(int, name, args);                                                                     \
        forget((const void *)lock);                                                                \
        return real call;                                                                          \
    }

typedef const struct timespec until;

TAKES(pthread_mutex_lock, "pthread mutex", (pthread_mutex_t * lock), (lock))
TAKES(pthread_mutex_trylock, "pthread mutex", (pthread_mutex_t * lock), (lock))
TAKES(pthread_mutex_timedlock, "pthread mutex", (pthread_mutex_t * lock, until *at), (lock, at))
TAKES(pthread_mutex_clocklock, "pthread mutex",
      (pthread_mutex_t * lock, clockid_t clock, until *at), (lock, clock, at))
GIVES(pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))
TAKES(pthread_rwlock_rdlock, "pthread rwlock", (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_tryrdlock, "pthread rwlock", (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_wrlock, "pthread rwlock", (pthread_rwlock_t * lock), (lock))
TAKES(pthread_rwlock_trywrlock, "pthread rwlock", (pthread_rwlock_t * lock), (lock))
GIVES(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
TAKES(pthread_spin_lock, "pthread spin lock", (pthread_spinlock_t * lock), (lock))
TAKES(pthread_spin_trylock, "pthread spin lock", (pthread_spinlock_t * lock), (lock))
GIVES(pthread_spin_unlock, (pthread_spinlock_t * lock), (lock))
TAKES(ftrylockfile, "FILE lock", (FILE * lock), (lock))

API void flockfile(FILE *lock)
{
    REAL(void, flockfile, (FILE *));
    uint64_t id = current();
    real(lock);
    remember(id, lock, "FILE lock", __builtin_return_address(0));
}

API void funlockfile(FILE *lock)
{
    REAL(void, funlockfile, (FILE *));
    forget(lock);
    real(lock);
}
