/* SPDX-License-Identifier: MIT */
/*
 * Once. done_ is set when the function has ended, also by a panic or pirn_exit; until then the others wait
 * for the mutex.
 */
#include "panic/panic.h"
#include "sync/waitq.h"

static at_u64 *done_of(pirn_once *o)
{
    return (at_u64 *)(void *)&o->done_;
}

static void end_once(void *arg)
{
    pirn_once *o = arg;
    tool_release(o);
    at_store(done_of(o), 1, RELEASE); /* pairs with the ACQUIRE of who comes later */
    pirn_mutex_unlock(&o->mutex_);
}

EXPORT void pirn_once_do(pirn_once *o, void (*fn)(void *), void *arg)
{
    not_forked();
    if (likely(at_load(done_of(o), ACQUIRE))) {
        tool_acquire(o);
        return;
    }
    pirn_mutex_lock(&o->mutex_);
    if (at_load(done_of(o), RELAXED)) {
        pirn_mutex_unlock(&o->mutex_);
        return;
    }
    struct pirn_defer_ d;
    defer_begin(&d, end_once, o, __builtin_frame_address(0));
    fn(arg);
    defer_end(&d);
}
