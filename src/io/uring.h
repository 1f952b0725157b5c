/* SPDX-License-Identifier: MIT */
/* Operations that the kernel carries out by itself; uring.c has the design. */
#ifndef PIRN_IO_URING_H
#define PIRN_IO_URING_H

#include <sys/types.h>

#include "io/pending.h"

enum uring_kind { URING_READ, URING_WRITE, URING_FSYNC, URING_FDATASYNC, URING_OPEN, URING_POLL };

/* One operation, in the frame of the call or on the heap; it stays until it is done. */
struct uring_op {
    struct pending pending;
    /* what to do */
    enum uring_kind kind;
    int fd;      /* of the file, or of the folder */
    void *where; /* the buffer, or the path */
    size_t n;
    off_t offset;
    int flags;
    mode_t mode;
    /* what came of it, once it is done: >= 0 or -errno; -ECANCELED by a cancel or by itself */
    int result;
    struct waiter *(*done)(struct uring_op *); /* in place of pending_done(); or NULL */
    /* URING_POLL: flags are the events, n != 0: again and again. more: there will be others. */
    struct waiter *(*event)(struct uring_op *, int result, bool more);
    int fault; /* tests: it does nothing, and this is its error; the ring's thread alone */
    /* the ring's, under its lock */
    struct uring_op *next, *prev;
    enum { URING_FRESH = 1, URING_SENT } state;
    enum { URING_WANTED, URING_CANCEL, URING_CANCEL_SENT } cancel;
};

#if PIRN_HAVE_LIBURING || PIRN_FLAVOUR_MODEL
void uring_want(void);     /* the factory is asked for it, if it was not; in the runtime or not */
bool uring_up(void);       /* a ring is there */
bool uring_polls_on(void); /* it can be asked to poll again and again */
void uring_start(void);    /* before any M runs; it may fail */
void uring_start_if_asked(void);      /* by the factory */
bool uring_stop(int64_t grace);       /* true: something could not be stopped, and is left behind */
bool uring_put(struct uring_op *);    /* in the runtime; false: there is no ring */
bool uring_cancel(struct uring_op *); /* the same; true: it never began, and is done */
int uring_idle(void);                 /* threads that wait for work; -1: they have some */
#else
static inline void uring_want(void)
{
}
static inline bool uring_up(void)
{
    return false;
}
static inline void uring_start(void)
{
}
static inline void uring_start_if_asked(void)
{
}
static inline bool uring_stop(int64_t grace)
{
    (void)grace;
    return false;
}
static inline bool uring_put(struct uring_op *op)
{
    (void)op;
    return false;
}
static inline bool uring_cancel(struct uring_op *op)
{
    (void)op;
    return false;
}
static inline int uring_idle(void)
{
    return 0;
}
#endif

#endif
