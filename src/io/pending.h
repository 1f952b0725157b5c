/* SPDX-License-Identifier: MIT */
/*
 * One result that a thread of pirn's own will bring: the ring's, or one of the helpers'. In the frame of
 * the goroutine that waits, or in memory of the heap.
 *
 * word: a word lock, and PENDING_DONE. The goroutine waits in a select, which its context can end; the
 * word lock is what the select brings of its own. Who brings the result says PENDING_DONE under the lock
 * and claims the select: if the context was faster, the goroutine finds PENDING_DONE when it looks again.
 * After that the record may be gone, so it is the last that is touched.
 */
#ifndef PIRN_IO_PENDING_H
#define PIRN_IO_PENDING_H

#include "sync/select.h"

#define PENDING_DONE ((uint64_t)4)

struct pending {
    at_u64 word;
    struct select *select; /* that waits; NULL: none. Under the lock */
};

/* In the runtime. True: it is done, which wins over the context. False: the context has ended. */
bool pending_wait(struct pending *p, enum wait_reason reason);
/* False: that, or time is up. */
bool pending_wait_until(struct pending *p, int64_t deadline, enum wait_reason reason);
/* The same as the first whatever the context says. */
void pending_wait_done(struct pending *p);
bool pending_is_done(struct pending *p);

/* By the thread that brings it: whom to make ready, or NULL. */
struct waiter *pending_done(struct pending *p);

/* The context of this goroutine: 0, or the error that it has ended with. In the runtime or not. */
int pending_ctx_err(void);

#endif
