/* SPDX-License-Identifier: MIT */
/*
 * What a goroutine waits for, for those who look for goroutines that nobody can wake (debug/leaks.c).
 *
 * The record of a wait names the operation, in the frame of its call; operations on objects that are made by
 * value (mutex, semaphore, condition) begin with a pointer to theirs.
 */
#include "sync/select.h"

static void say_chan(pirn_chanv *c, wait_object_fn *fn, void *arg)
{
    if (c) {
        fn(c, sizeof *c + c->cap * c->elem, true, arg);
    }
}

static bool of_select(const struct select *s, wait_object_fn *fn, void *arg)
{
    if (s->fds || s->deadline != PIRN_NEVER) {
        return false;
    }
    for (int i = 0; i < s->n; i++) {
        const pirn_case *k = &s->cases[i];
        if (k->kind_ == PIRN_CASE_RECV_ || k->kind_ == PIRN_CASE_SEND_) {
            say_chan(k->chan_, fn, arg);
        }
    }
    if (s->also.word) {
        fn(s->also.word, sizeof *s->also.word, false, arg);
    }
    return true;
}

bool sync_waits_for(const struct waiter *w, enum wait_reason reason, wait_object_fn *fn, void *arg)
{
    switch (reason) {
    case WAIT_CHAN_SEND:
    case WAIT_CHAN_RECV: say_chan(((struct chan_op *)w->object)->chan, fn, arg); return true;
    case WAIT_CHAN_SEND_NIL:
    case WAIT_CHAN_RECV_NIL:
    case WAIT_SELECT_NONE: return true; /* nothing will ever come */
    case WAIT_CHAN_SEND_UNTIL:
    case WAIT_CHAN_RECV_UNTIL:
    case WAIT_GROUP:
    case WAIT_SELECT: return of_select(w->object, fn, arg);
    case WAIT_MUTEX:
    case WAIT_RWMUTEX_LOCK:
    case WAIT_RWMUTEX_RLOCK:
    case WAIT_COND:
    case WAIT_SEM: fn(*(void **)w->object, sizeof(void *), false, arg); return true;
    case WAIT_BARRIER:
    case WAIT_GROUP_ROOM:
    case WAIT_WG: fn(w->object, sizeof(void *), false, arg); return true;
    case WAIT_NONE:
    case WAIT_COND_UNTIL:
    case WAIT_SLEEP_CTX:
    case WAIT_SLEEP:
    case WAIT_TIMER:
    case WAIT_READ: /* the world outside may end these */
    case WAIT_WRITE:
    case WAIT_READ_UNTIL:
    case WAIT_WRITE_UNTIL:
    case WAIT_FILE:
    case WAIT_OPEN:
    case WAIT_CLOSE:
    case WAIT_RESOLVE:
    case WAIT_PARK:
    case WAIT_REASONS: break;
    }
    return false;
}
