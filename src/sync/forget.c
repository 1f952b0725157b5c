/* SPDX-License-Identifier: MIT */
/*
 * At the end of the runtime goroutines that wait are dropped where they stand. Their records lie in
 * the queues of objects, and many objects live on: on the heap, in static memory, on the stacks of
 * other threads. Here they are taken out. A goroutine that had been made ready, but had not come back
 * to its call, may owe something too: its operations in the other queues of a select, or the word
 * that it tries for a mutex. What it had been given, a lock or permits, it keeps: as one that was
 * dropped while it held them.
 */
#include "io/fd.h"
#include "sync/waitq.h"

void sync_forget(struct waiter *w, enum wait_reason reason, bool waiting)
{
    switch (reason) {
    case WAIT_CHAN_SEND:
    case WAIT_CHAN_RECV: chan_forget(w, waiting); break;
    case WAIT_CHAN_SEND_UNTIL:
    case WAIT_CHAN_RECV_UNTIL:
    case WAIT_SLEEP_CTX:
    case WAIT_READ_UNTIL:
    case WAIT_WRITE_UNTIL:
    case WAIT_FILE:
    case WAIT_OPEN:
    case WAIT_RESOLVE:
    case WAIT_SELECT: select_forget(w); break;
    case WAIT_GROUP:
        group_forget(w);
        select_forget(w);
        break;
    case WAIT_GROUP_ROOM: group_forget_room(w); break;
    case WAIT_MUTEX: mutex_forget(w); break;
    case WAIT_RWMUTEX_LOCK:
    case WAIT_RWMUTEX_RLOCK: rwmutex_forget(w); break;
    case WAIT_COND:
    case WAIT_COND_UNTIL: cond_forget(w); break;
    case WAIT_READ:
    case WAIT_WRITE: pd_disarm(w->object); break;
    case WAIT_TIMER: timer_forget(w); break;
    case WAIT_SEM: sem_forget(w); break;
    case WAIT_BARRIER: barrier_forget(w); break;
    case WAIT_WG:
        if (waiting && !stack_contains(w->object)) {
            wg_forget_goroutines(w->object);
        }
        break;
    case WAIT_NONE:
    case WAIT_CHAN_SEND_NIL:
    case WAIT_CHAN_RECV_NIL:
    case WAIT_SELECT_NONE:
    case WAIT_SLEEP: /* it goes with the heap */
    case WAIT_CLOSE:
    case WAIT_PARK:
    case WAIT_REASONS: break;
    }
}
