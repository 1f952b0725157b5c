/* SPDX-License-Identifier: MIT */
/*
 * Waiting for descriptors by io_uring (PIRN_IO_URING): in place of the pollers of netpoll.c.
 *
 * A poll descriptor has an operation for each direction. It is handed to the ring when somebody begins to
 * wait and it is not there already; the ring's thread tells pd.c what comes of it. For what pirn made it
 * polls again and again ("multishot", the kernel's edges), so that waiting is only a place in the queue,
 * as with epoll. For any other descriptor it is over with the first event, and the call with that, mostly; if it
 * waits once more, it polls again and again too: what is ready to poll, but not to read, such as a socket with
 * something in its queue of errors, would be told of at once each time.
 *
 * The kernel holds the file for as long as it polls. So nobody leaves it there: pd.c, invariant 5.
 *
 * The operations are in a table of their own by number, which is not there with epoll. They are under the
 * lock of the poll descriptor, except for what uring.h gives to the ring.
 *
 * Errors of a poll count as an event: who waited tries, and is told by the call itself. One that was
 * cancelled, by us or not, is none: if somebody waits it is asked anew.
 *
 * Why by the ring's thread: uring.c. An event costs a wake-up of it, where an idle M would have been woken by
 * epoll itself, so that this is for programs that use the ring anyhow and want one way of waiting; under
 * load the thread is awake and takes many at a time. Rejected: recv and send as operations of the ring. They
 * save the call that reads, but a read that is given up must wait for the kernel, and each costs a hand-over
 * to the thread and back.
 */
#include <poll.h>

#include "io/fd.h"
#include "io/uring.h"
#include "os/poll.h"
#include "os/sysio.h"

#define CHUNK (PIRN_SMALL ? 4 : 1024)
#define CHUNKS 16384

struct ring_pair {
    struct uring_op op[2]; /* by the mode */
};

typedef AT(struct ring_pair *) pairs_t;
static pairs_t pairs[CHUNKS];
static at_u32 nmapped;

static NOINLINE struct ring_pair *map_pairs(pairs_t *at)
{
    struct ring_pair *none = NULL, *fresh = mem_map(CHUNK * sizeof *fresh);
    if (!fresh) {
        return NULL;
    }
    /* RELEASE, ACQUIRE: as [D2] of pd.c */
    if (!at_cas(at, &none, fresh, ACQ_REL, ACQUIRE)) {
        mem_unmap(fresh, CHUNK * sizeof *fresh);
        return none;
    }
    at_add(&nmapped, 1, RELAXED);
    return fresh;
}

/* NULL: no memory. The number is one that has a poll descriptor. */
static struct uring_op *op_of(int fd, enum fd_mode mode)
{
    pairs_t *at = &pairs[fd / CHUNK];
    struct ring_pair *chunk = at_load(at, ACQUIRE);
    chunk = likely(chunk) ? chunk : map_pairs(at);
    return chunk ? &chunk[fd % CHUNK].op[mode] : NULL;
}

static struct waiter *event(struct uring_op *op, int result, bool more)
{
    enum fd_mode mode = (enum fd_mode)op->mode;
    uint32_t ready = result == -ECANCELED ? 0
                     : result < 0         ? mode == FD_READ ? POLL_READ : POLL_WRITE
                                          : poll_ready_of((uint32_t)result);
    return pd_ring_event((uint64_t)op->offset, mode, ready, !more);
}

int ring_ask_locked(struct pd *pd, int fd, enum fd_mode mode, bool *fresh)
{
    /* One that stops is asked anew when it has, if somebody waits then: pd_ring_event. */
    if (pd->ring & (RING_ASKED(mode) | RING_STOPS(mode))) {
        return 0;
    }
    if (pd->kind != FD_SOCKET && sys_is_file(fd)) {
        return FD_NOT_POLLABLE; /* as epoll says; the ring would call it ready, again and again */
    }
    struct uring_op *op = op_of(fd, mode);
    if (!op) {
        return -ENOMEM;
    }
    *op = (struct uring_op){
        .kind = URING_POLL,
        .fd = fd,
        .flags = mode == FD_READ ? POLLIN | POLLPRI | POLLRDHUP : POLLOUT,
        .n = (pd->ours || pd->told & 1u << mode) && uring_polls_on(),
        .offset = (off_t)((uint64_t)pd->seq << 32 | (uint32_t)fd),
        .mode = mode,
        .event = event,
    };
    if (!uring_put(op)) {
        return -ESHUTDOWN;
    }
    pd->ring |= (uint8_t)RING_ASKED(mode);
    *fresh = true;
    return 0;
}

void ring_let_go_locked(struct pd *pd, int fd)
{
    if (unlikely(!uring_up())) {
        pd->ring = 0; /* the runtime ends */
        return;
    }
    for (int i = FD_READ; i <= FD_WRITE; i++) {
        enum fd_mode mode = (enum fd_mode)i;
        if (!(pd->ring & RING_ASKED(mode)) || pd->ring & RING_STOPS(mode)) {
            continue;
        }
        if (uring_cancel(op_of(fd, mode))) {
            pd->ring &= (uint8_t)~RING_ASKED(mode); /* it never began */
        } else {
            pd->ring |= (uint8_t)RING_STOPS(mode);
        }
    }
}

/* The ring has ended; or its thread was left behind, with what it has. */
void ring_polls_stop(bool left_behind)
{
    for (int i = 0; i < CHUNKS && at_load(&nmapped, RELAXED) && !left_behind; i++) {
        struct ring_pair *chunk = at_xchg(&pairs[i], NULL, RELAXED);
        if (chunk) {
            mem_unmap(chunk, CHUNK * sizeof *chunk);
            at_add(&nmapped, (uint32_t)-1, RELAXED);
        }
    }
}
