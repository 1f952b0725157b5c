/* SPDX-License-Identifier: MIT */
/* A call on a descriptor that tries, waits and tries again; io.c has the design. */
#ifndef PIRN_IO_IO_H
#define PIRN_IO_IO_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "io/fd.h"

/* What a try may say, beside a result, -errno, and -EAGAIN: it must wait. */
#define IO_BLOCKS (-5000)    /* it can't be tried: wait, and then make the call that blocks */
#define IO_BLOCK_NOW (-5001) /* the same without the wait */
#define IO_PAUSE (-5002)     /* wait for a moment */

struct io {
    int fd;
    enum fd_mode mode;
    ssize_t (*attempt)(struct io *io); /* does not block */
    ssize_t (*block)(struct io *io);   /* in a blocking section */
    int64_t deadline;                  /* of this call; the descriptor's own counts too */
    bool dont_wait;
    bool hints;   /* a plain read: it may learn from, and be spared by, the short-read hint */
    bool no_ctx;  /* its own business: not ended by a context */
    bool makes;   /* the result is a new socket: known before anything can drop this call */
    size_t total; /* bytes in all; done: so far, of a write that goes on until all is written */
    size_t done;
    bool all;
    bool leaves_room; /* it ended before there was no more room: others may go on */
    size_t at_once;   /* bytes that the call that blocks may write; 0: not known yet */
    struct pd_look look;
    uint64_t era; /* of the runtime in which it began */
    int64_t pause;
    /* of the calls */
    const struct iovec *iov;
    int niov;
    size_t skip; /* bytes of the first that are done */
    struct iovec one;
    struct msghdr *msg;
    struct sockaddr *addr;
    socklen_t *len;
    int flags;
    bool started;
    int in; /* of a file that is sent, with its offset, or NULL */
    off_t *offset;
};

#define IO_INIT(fd_, mode_, attempt_, block_)                                                      \
    {                                                                                              \
        .fd = (fd_), .mode = (mode_), .attempt = (attempt_), .block = (block_),                    \
        .deadline = PIRN_NEVER                                                                     \
    }

ssize_t io_run(struct io *io);

/* A socket of pirn's own; or -errno. Until fd_give() that of a goroutine is closed with the runtime. */
int fd_socket(int family, int type, bool streams);
int fd_give(int fd); /* fd; an error stays what it is */
bool fd_is_tcp(int fd);

#endif
