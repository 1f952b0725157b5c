/* SPDX-License-Identifier: MIT */
/*
 * A seam for tests: the N-th system call from now on, of those in a set, gives an error. It is not made, or, since the
 * kernel is not always so kind (a connect that is interrupted goes on, a close that fails has closed), it is made
 * and the error is given all the same.
 *
 * Every system call of the I/O layer goes through here: sysio.c, iosys.c, poll_epoll.c, io/uring.c. While the set is
 * empty that is a load of a word that nobody writes.
 */
#ifndef PIRN_OS_FAULT_H
#define PIRN_OS_FAULT_H

#include <errno.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "base/util.h"

enum sys_call {
    SYS_CALL_READ,  /* of all kinds but those of iosys.c */
    SYS_CALL_WRITE, /* the same */
    SYS_CALL_ACCEPT,
    SYS_CALL_CONNECT,
    SYS_CALL_SOCKET,
    SYS_CALL_BIND,
    SYS_CALL_LISTEN,
    SYS_CALL_OPTION, /* getsockopt */
    SYS_CALL_SET_OPTION,
    SYS_CALL_NAME, /* getpeername, getsockname */
    SYS_CALL_SHUTDOWN,
    SYS_CALL_UNLINK,
    SYS_CALL_FLAGS, /* F_GETFL */
    SYS_CALL_DUP,
    SYS_CALL_STAT,
    SYS_CALL_SEEK,
    SYS_CALL_CLOSE,
    SYS_CALL_POLL,
    SYS_CALL_EPOLL_OPEN,
    SYS_CALL_EPOLL_ADD, /* and to change it */
    SYS_CALL_EPOLL_REMOVE,
    SYS_CALL_EPOLL_WAIT,
    SYS_CALL_EPOLL_PWAIT2,
    SYS_CALL_EVENTFD,
    SYS_CALL_PREAD_NOWAIT,
    SYS_CALL_PREAD,
    SYS_CALL_PWRITE,
    SYS_CALL_FSYNC,
    SYS_CALL_OPEN,
    SYS_CALL_SENDFILE,
    SYS_CALL_PIDFD_OPEN,
    SYS_CALL_WAITPID,
    SYS_CALL_RING_SETUP,
    SYS_CALL_RING_REGISTER,
    SYS_CALL_RING_ENTER,
    SYS_CALL_RING_OP, /* what the ring is asked for: the error is that of its completion */
    SYS_CALLS
};

struct sys_fault {
    at_u64 calls; /* those that may fail, a bit each */
    at_u32 after; /* how many of them go well before */
    at_u32 times; /* how many fail */
    at_u32 error;
    at_u32 made; /* they are made all the same */
};
extern struct sys_fault sys_fault;
int sys_fault_now(enum sys_call call);

/* 0, or the error that this call is to give. */
#define SYS_FAULT(call) (unlikely(at_load(&sys_fault.calls, RELAXED)) ? sys_fault_now(call) : 0)

/* The result of a call that sets errno. */
#define SYS_TRY(call, expression)                                                                  \
    ({                                                                                             \
        int fault_ = SYS_FAULT(call);                                                              \
        long try_ = -1;                                                                            \
        if (likely(!fault_) || at_load(&sys_fault.made, RELAXED)) {                                \
            try_ = (long)(expression);                                                             \
        }                                                                                          \
        if (unlikely(fault_)) {                                                                    \
            try_ = -1;                                                                             \
            errno = fault_;                                                                        \
        }                                                                                          \
        try_;                                                                                      \
    })

#endif
