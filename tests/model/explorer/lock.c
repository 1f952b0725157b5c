/* SPDX-License-Identifier: MIT */
/* Locks as objects of the explorer: one point each, where os/lock.c has several. */
#include "explorer/explorer.h"
#include "os/os.h"

void lock(struct lock *l)
{
    model_lock(l);
}

void unlock(struct lock *l)
{
    model_unlock(l);
}

void lock_must_hold(const struct lock *l)
{
    if (!model_holds((void *)(uintptr_t)l)) {
        model_fail("a lock of rank %d is not held", l->rank);
    }
}
