/* SPDX-License-Identifier: MIT */
/*
 * Lock order, checked in builds with PIRN_DEBUG_CHECKS: a thread takes locks in
 * rising rank. The set held is one bit for each rank, kept by thread: a lock is
 * never held over a change of thread, only over a switch on the same thread
 * (the commit action of a park unlocks on the far side).
 */
#include "base/fatal.h"
#include "base/util.h"
#include "os/os.h"

#if PIRN_DEBUG_CHECKS

static __thread uint32_t held __attribute__((tls_model("initial-exec")));

bool (*lock_allowed)(void);

/* Of any lock, also one without a rank. */
NOINLINE void lock_check_allowed(void)
{
    if (lock_allowed && !lock_allowed()) {
        throw("lock: taken outside the runtime, where its owner may be preempted");
    }
}

NOINLINE void lockrank_acquire(enum lock_rank rank)
{
    lock_check_allowed();
    if (rank == RANK_NONE) {
        return;
    }
    if (held >> rank) {
        throw("lock order: rank %d taken while ranks %x (bits) are held", rank, held);
    }
    held |= 1u << rank;
}

NOINLINE void lockrank_release(enum lock_rank rank)
{
    if (rank == RANK_NONE) {
        return;
    }
    if (!(held & 1u << rank)) {
        throw("lock order: rank %d released but not held", rank);
    }
    held &= ~(1u << rank);
}

NOINLINE bool lockrank_holds(enum lock_rank rank)
{
    return held & 1u << rank;
}

#else

void lockrank_acquire(enum lock_rank rank)
{
    (void)rank;
}
void lockrank_release(enum lock_rank rank)
{
    (void)rank;
}
bool lockrank_holds(enum lock_rank rank)
{
    return rank != RANK_COUNT;
}

#endif
