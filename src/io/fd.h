/* SPDX-License-Identifier: MIT */
/*
 * Poll descriptors: what pirn knows of a descriptor, by its number. pd.c has the design, netpoll.c the
 * pollers, io.c the calls that wait.
 */
#ifndef PIRN_IO_FD_H
#define PIRN_IO_FD_H

#include <errno.h>

#include "sync/chan.h"

enum fd_mode { FD_READ, FD_WRITE };

/* How it is asked without being waited for. */
enum fd_kind {
    FD_ANY,    /* not known: the number may be another file's the next time */
    FD_SOCKET, /* MSG_DONTWAIT */
    FD_OTHER,  /* RWF_NOWAIT, if the file allows it */
};

struct pd {
    at_u64 word; /* a word lock; under it: */
    struct chan_queue q[2];
    int64_t deadline[2]; /* 0: none */
    at_u32 edges[2];     /* ++ whenever who waits must look again; may be read at any time */
    uint32_t seq;        /* ++ with each registration, and each end: events of before don't count */
    uint32_t refs;       /* calls that use it now */
    uint32_t life;       /* ++ with the end of each runtime that knew of it */
    uint32_t times;      /* ++ with each change of a deadline */
    uint32_t
        file; /* ++ when pirn makes another file of the number: calls on the one before are over */
    uint16_t poller; /* with which it is registered */
    uint8_t ring;    /* what io_uring was asked: RING_ASKED and RING_STOPS of each mode */
    uint8_t kind;    /* enum fd_kind */
    uint8_t told;   /* a bit for each mode: io_uring has told of it, in the calls that use it now */
    uint8_t claims; /* PD_CLAIMED and PD_WANTED of each mode */
    bool ours;      /* pirn made it, or may treat it so: it stays registered */
    bool held;      /* a call of pirn's has made it, and not yet returned it to the program */
    bool registered;
    bool closing;           /* by pirn_close, once refs is 0 */
    bool cancelled;         /* by pirn_fd_cancel */
    bool streams;           /* the short-read hint is allowed */
    bool empty;             /* the hint: nothing to read, and no edge since */
    bool odd;               /* its end, an error or urgent data was seen: no hints any more */
    struct leaver *leavers; /* who wait until io_uring has let go of it */
} CACHE_ALIGNED;

#define PD_CLAIMED(mode) (1u << (mode)) /* a call that could block is under way */
#define PD_WANTED(mode) (4u << (mode))  /* others wait until it is over */

#define RING_ASKED(mode) (1u << (mode))
#define RING_STOPS(mode) (4u << (mode))
#define RING_STOPS_ANY (RING_STOPS(FD_READ) | RING_STOPS(FD_WRITE))

/* Why a wait has ended, beside 0 (try again) and -errno. */
#define FD_NOT_POLLABLE 1 /* a file: it is always ready */
#define FD_ENDED 2        /* the runtime has, and this thread only watches; who tries finds out */
#define FD_TIME 3         /* the deadline is over, or another by now: to be looked at again */

/* --- pd.c: by who is in the runtime ------------------------------------------------------------------- */

struct pd *pd_get(int fd); /* NULL: no memory, or not a descriptor */
int pd_none(int fd);       /* which of the two: -ENOMEM or -EBADF */

struct pd_look { /* what a call needs to know before it tries */
    uint32_t edge;
    uint32_t file; /* on which it began; the others compare it */
    enum fd_kind kind;
    bool empty, streams;
    int64_t deadline; /* PIRN_NEVER: none */
};

/* Counts a call that uses it. 0, or -EBADF, -ECANCELED: it is not counted. */
int pd_begin(struct pd *pd, enum fd_mode mode, struct pd_look *out);
/* How often its deadlines were changed: one who is told of new ones gives it to pd_arm(). */
uint32_t pd_times(struct pd *pd);
/* Counts one that is not ended by pirn_fd_cancel. 0 or -EBADF. */
int pd_hold(struct pd *pd);
/* Looks again: what it waited for has come. The same results, and -EBADF for a call on the file before; but it stays
 * counted. */
int pd_again(struct pd *pd, enum fd_mode mode, struct pd_look *out);
/* Calls that could block, of which one is made at a time: if it is ready then, it stays so. False: another is
 * under way; when that is over there is news, after the edge that is noted. */
bool pd_claim(struct pd *pd, enum fd_mode mode, struct pd_look *out);
void pd_unclaim(struct pd *pd, enum fd_mode mode);
/* The call is over. drained: it has read all there was at the time of `edge`. passes_on: others may go on
 * too. The result is for the caller to close, where it may wait; -1: nothing; or PD_LETS_GO. */
#define PD_LETS_GO (-2) /* io_uring has it still: pd_wait_gone() */
int pd_end(struct pd *pd, int fd, enum fd_mode mode, bool passes_on, bool drained, uint32_t edge);

/* A commit action, or part of one: true: it waits. False: it need not, op->fd.why says more. After true,
 * op may be gone, unless it is of a select. */
bool pd_arm(struct chan_op *op);
/* Off again, if it was there. False: pd_settle() is to be called; op->fd.edge is what is left to be done, as the
 * result of pd_end(). */
bool pd_disarm(struct chan_op *op);
/* Waits until io_uring has let go of the descriptor, and closes it if that was still to be done. The result
 * and *err as those of pd_close. In a visit, which a thread may find to be over afterwards. */
int pd_wait_gone(struct visit *v, int fd, int *err);
/* The same for a select: after the visit of a thread, and with what is left to be closed. */
void pd_settle(struct visit v, struct chan_op *op);

/* Those who may go on, as a list; NULL: nobody. */
struct waiter *pd_event(uint64_t tag, uint32_t ready);
void pd_prefetch(uint64_t far, uint64_t near);
/* The same from io_uring. over: it asks no more in this mode, until it is told to. */
struct waiter *pd_ring_event(uint64_t tag, enum fd_mode mode, uint32_t ready, bool over);
/* 0 or -ENOMEM. held: until pd_give() it is closed with the runtime; not for a foreign thread, which goes on
 * without one and closes it itself. */
int pd_made(int fd, enum fd_kind kind, bool streams, bool held);
void pd_give(int fd);
void pd_renew(
    int fd); /* pirn has just opened it, for the program or for itself, and will not keep it */
int pd_adopt(int fd, enum fd_kind kind, bool streams); /* the same, or -EBADF */
int pd_close(int fd, int *err);                        /* the same */
int pd_cancel(int fd);
int pd_deadline(int fd, int64_t read, int64_t write);

/* The runtime ends: they are not registered any more. unmap: nobody will touch them. */
void pd_forget_all(bool unmap);

/* --- fd.c: calls that are made outside the runtime ------------------------------------------------------ */

/* While such a call is under way the number is nobody else's, though it may be closed. */
struct fd_use {
    struct pd *pd; /* NULL: not counted, there is no runtime */
    int fd;
    enum fd_mode mode;
    uint32_t file;
    uint64_t era;
};

void fd_renew(int fd);                                     /* pd_renew(), if it is one */
int fd_begin(struct fd_use *u, int fd, enum fd_mode mode); /* 0; -EBADF, -ECANCELED, -ENOMEM */
int fd_again(struct fd_use *u,
             bool timed);      /* the same, and it stays counted; timed: or -ETIMEDOUT */
void fd_end(struct fd_use *u); /* also if it did not begin */
/* What may wait (SO_LINGER). By a goroutine in the runtime, which it leaves meanwhile; or by a thread that is not. */
void fd_close_late(bool goroutine, int second);

/* --- uring_poll.c: under the lock of the poll descriptor --------------------------------------------------- */

#if PIRN_HAVE_LIBURING || PIRN_FLAVOUR_MODEL
/* 0, FD_NOT_POLLABLE or -errno. *fresh: it asks from now on, so it will tell if it is ready already. */
int ring_ask_locked(struct pd *pd, int fd, enum fd_mode mode, bool *fresh);
void ring_let_go_locked(struct pd *pd, int fd); /* pd->ring says whether it has */
void ring_polls_stop(bool left_behind);
#else
static inline int ring_ask_locked(struct pd *pd, int fd, enum fd_mode mode, bool *fresh)
{
    (void)pd, (void)fd, (void)mode, (void)fresh;
    return -ENOSYS;
}
static inline void ring_let_go_locked(struct pd *pd, int fd)
{
    (void)pd, (void)fd;
}
static inline void ring_polls_stop(bool left_behind)
{
    (void)left_behind;
}
#endif

/* --- netpoll.c ------------------------------------------------------------------------------------------ */

extern bool netpoll_by_ring; /* io_uring tells; set before any M runs */

/* With the poller of this P, which it notes; 0: it will tell if it is ready already; or -errno. If it is
 * registered, with the same; -EEXIST: it is still that file. */
int netpoll_add(struct pd *pd, int fd);
void netpoll_remove(struct pd *pd, int fd);
void netpoll_waits(int change);   /* how many wait */
void netpoll_foreign(int change); /* foreign threads that will come back to a poll descriptor */
void netpoll_wake(void);          /* a foreign thread has begun to wait */
int netpoll_open_visiting(void);  /* not in the runtime; -ESRCH: there is none */
int netpoll_open(void);           /* 0 or -errno */

/* --- selects: cases on descriptors (netpoll.c) ---------------------------------------------------------- */

/* Marks the cases whose descriptor is ready. Not in the runtime. */
void fd_cases_look(pirn_case *cases, int n);
bool fd_is_ready(int fd, enum fd_mode mode);

#endif
