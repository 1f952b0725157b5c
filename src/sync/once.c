/* SPDX-License-Identifier: MIT */
/*
 * Once. done_ is set when the function has ended, also by pirn_exit; until then the others wait for the
 * mutex.
 */
#include "sync/waitq.h"

struct once_call {
    struct at_end at_end; /* first */
    pirn_once *once;
};

static at_u64 *done_of(pirn_once *o)
{
    return (at_u64 *)(void *)&o->done_;
}

static void end_once(struct at_end *e)
{
    pirn_once *o = ((struct once_call *)(void *)e)->once;
    at_store(done_of(o), 1, RELEASE); /* pairs with the ACQUIRE of who comes later */
    pirn_mutex_unlock(&o->mutex_);
}

EXPORT void pirn_once_do(pirn_once *o, void (*fn)(void *), void *arg)
{
    if (likely(at_load(done_of(o), ACQUIRE))) {
        return;
    }
    pirn_mutex_lock(&o->mutex_);
    if (at_load(done_of(o), RELAXED)) {
        pirn_mutex_unlock(&o->mutex_);
        return;
    }
    struct once_call call = {.at_end = {.fn = end_once}, .once = o};
    g_at_end(&call.at_end);
    fn(arg);
    g_at_end_run(&call.at_end);
}
