/* SPDX-License-Identifier: MIT */
/*
 * io_uring: one ring, and one thread that fills and empties it.
 *
 * A goroutine leaves its operation in a list and waits. The thread takes what is in the list, hands it
 * to the kernel in one call, sleeps there until something is complete, and makes those ready whom it
 * concerns. It sleeps in the kernel with an operation of its own outstanding, the read of an eventfd,
 * which is written if it sleeps when the list grows.
 *
 * Why a thread, and not the Ms: completions are worked off by the task that submitted the operation, and
 * for that the kernel interrupts whatever call it is in (epoll_wait and others end with EINTR); what was
 * passed on to a kernel worker is cancelled when the submitter's thread ends. So neither may be a thread
 * that runs the program's code. With DEFER_TASKRUN nothing is interrupted, but nobody else could reap.
 *
 * An operation belongs to the ring from uring_put to the PENDING_DONE of its record (one that polls: to
 * its last event), and is touched no more after that. Its buffer is the kernel's until then, cancelled or not: who gives up asks for a
 * cancel, and waits for the end all the same.
 *
 * The end of the runtime: what was not handed on is dropped, the rest is cancelled, and the thread
 * leaves when all of it has come back. Only then stacks are unmapped. What the kernel does not give
 * back within the grace time (a dead network file system) leaves ring, thread and stacks behind.
 *
 * Lock: ring.lock (RANK_URING) for the lists; the thread alone uses the ring itself. A word lock of a
 * record is not taken under it. state is stored RELEASE [U1]: who sees that it is up sees the eventfd.
 *
 * It is an option of the build, and may be forbidden where the program runs: then state is FAILED, a
 * line under PIRN_DEBUG=io=1 says why, files use threads, and descriptors epoll.
 */
#include "io/uring.h"

#include "io/files.h"
#include "os/fault.h"

#include <liburing.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ENTRIES (PIRN_SMALL ? 4u : 64u)
#define COMPLETIONS (PIRN_SMALL ? 8u : 1024u)

enum { NONE, ASKED, STARTING, UP, FAILED };

/* What is not an operation, by its address. */
static char event_tag, cancel_tag;

struct list {
    struct uring_op *first, *last;
};

static struct {
    struct lock lock;
    /* under the lock */
    struct list fresh, sent;
    uint32_t n; /* in both, but for those that poll: who waits for them is counted by netpoll.c */
    bool asleep, stop, want_cancel;
    bool delivers; /* some are complete, and perhaps not yet made ready */
    /* the thread's */
    struct io_uring ring;
    uint64_t count; /* of the eventfd */
    bool armed;
    /* by who starts and stops it */
    pthread_t thread;
    int event; /* eventfd */
    at_u32 state;
    at_u32 ended;  /* futex of the stop */
    at_u32 orphan; /* left behind: there will be no other ring in this process */
} ring = {.lock = LOCK_INIT(RANK_URING)};

/* --- lists ----------------------------------------------------------------------------------------- */

static void put_last(struct list *l, struct uring_op *op)
{
    op->next = NULL;
    op->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = op;
    l->last = op;
}

static void take_out(struct list *l, struct uring_op *op)
{
    *(op->prev ? &op->prev->next : &l->first) = op->next;
    *(op->next ? &op->next->prev : &l->last) = op->prev;
}

static uint32_t counts(const struct uring_op *op)
{
    return op->kind != URING_POLL;
}

static void kick(void)
{
    uint64_t one = 1; /* it blocks, as the ring's read of it must, but not before 2^64 of these */
    if (write(ring.event, &one, sizeof one) < 0) {
        throw("uring: its eventfd is gone: %s", strerrordesc_np(errno));
    }
}

bool uring_up(void)
{
    return at_load(&ring.state, ACQUIRE) == UP; /* [U1] */
}

bool uring_polls_on(void)
{
    return ring.ring.features & IORING_FEAT_RSRC_TAGS; /* of the same age, 5.13 */
}

bool uring_put(struct uring_op *op)
{
    if (!uring_up()) {
        return false;
    }
    lock(&ring.lock);
    if (unlikely(ring.stop)) {
        unlock(&ring.lock);
        return false;
    }
    bool asleep = ring.asleep;
    ring.asleep = false;
    op->state = URING_FRESH;
    put_last(&ring.fresh, op);
    ring.n += counts(op);
    unlock(&ring.lock);
    if (asleep) {
        kick();
    }
    return true;
}

bool uring_cancel(struct uring_op *op)
{
    lock(&ring.lock);
    bool fresh = op->state == URING_FRESH, asleep = false;
    if (fresh) {
        take_out(&ring.fresh, op);
        ring.n -= counts(op);
        op->result = -ECANCELED;
    } else if (op->state == URING_SENT) {
        op->cancel = URING_CANCEL;
        ring.want_cancel = true;
        asleep = ring.asleep;
        ring.asleep = false;
    }
    op->state = fresh ? (__typeof__(op->state))0 : op->state;
    unlock(&ring.lock);
    if (asleep) {
        kick();
    }
    return fresh;
}

int uring_idle(void)
{
    if (!uring_up()) {
        return at_load(&ring.state, RELAXED) == STARTING ? -1 : 0;
    }
    lock(&ring.lock);
    int idle = ring.n || ring.delivers ? -1 : 1;
    unlock(&ring.lock);
    return idle;
}

/* --- the thread: into the ring ------------------------------------------------------------------------ */

static void prepare_op(struct io_uring_sqe *sqe, struct uring_op *op)
{
    if (unlikely(op->fault)) {
        io_uring_prep_nop(sqe);
        io_uring_sqe_set_data(sqe, op);
        return;
    }
    switch (op->kind) {
    case URING_READ:
        io_uring_prep_read(sqe, op->fd, op->where, (unsigned)op->n, (uint64_t)op->offset);
        break;
    case URING_WRITE:
        io_uring_prep_write(sqe, op->fd, op->where, (unsigned)op->n, (uint64_t)op->offset);
        break;
    case URING_FSYNC: io_uring_prep_fsync(sqe, op->fd, 0); break;
    case URING_FDATASYNC: io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC); break;
    case URING_OPEN:
        io_uring_prep_openat(sqe, op->fd, op->where, op->flags, op->mode);
        /* At once it would be tried with O_NONBLOCK, which opens a FIFO that has no other end. */
        sqe->flags |= IOSQE_ASYNC;
        break;
    case URING_POLL:
        if (op->n) {
            io_uring_prep_poll_multishot(sqe, op->fd, (unsigned)op->flags);
        } else {
            io_uring_prep_poll_add(sqe, op->fd, (unsigned)op->flags);
        }
        break;
    }
    io_uring_sqe_set_data(sqe, op);
}

static void arm_event(void)
{
    struct io_uring_sqe *sqe = ring.armed ? NULL : io_uring_get_sqe(&ring.ring);
    if (sqe) {
        io_uring_prep_read(sqe, ring.event, &ring.count, sizeof ring.count, 0);
        io_uring_sqe_set_data(sqe, &event_tag);
        ring.armed = true;
    }
}

static void send_cancels_locked(void)
{
    struct io_uring_sqe *sqe;
    if (!ring.want_cancel) {
        return;
    }
    for (struct uring_op *op = ring.sent.first; op; op = op->next) {
        if (op->cancel == URING_CANCEL) {
            if (!(sqe = io_uring_get_sqe(&ring.ring))) {
                return;
            }
            io_uring_prep_cancel(sqe, op, 0);
            io_uring_sqe_set_data(sqe, &cancel_tag);
            op->cancel = URING_CANCEL_SENT;
        }
    }
    ring.want_cancel = false;
}

/* Everything that waits, as far as there is room. False: nothing is left, it may sleep. */
static bool fill(void)
{
    struct io_uring_sqe *sqe;
    arm_event();
    lock(&ring.lock);
    ring.delivers = false;
    send_cancels_locked(); /* before a new operation at the address of one that is over */
    while (ring.fresh.first && (sqe = io_uring_get_sqe(&ring.ring))) {
        struct uring_op *op = ring.fresh.first;
        take_out(&ring.fresh, op);
        op->fault = SYS_FAULT(SYS_CALL_RING_OP);
        prepare_op(sqe, op);
        op->state = URING_SENT;
        put_last(&ring.sent, op);
    }
    bool more = ring.fresh.first || ring.want_cancel || !ring.armed;
    ring.asleep = !more;
    unlock(&ring.lock);
    return more;
}

/* --- the thread: out of it ------------------------------------------------------------------------------ */

/* The kernel's own codes for a call that a signal has interrupted come through, if the call was made by a
 * worker; and a cancel is such a signal. */
static int result_of(int r)
{
    return r <= -512 && r >= -516 ? -ECANCELED : r == -EINTR ? -ECANCELED : r;
}

/* Whom to make ready. more: it goes on. */
static struct waiter *complete(struct uring_op *op, int result, bool more)
{
    lock(&ring.lock);
    if (!more) {
        take_out(&ring.sent, op);
        op->state = (__typeof__(op->state))0;
        ring.n -= counts(op);
    }
    ring.delivers = true;
    bool stop = ring.stop; /* then nobody is made ready, so nobody must be taken off its queue */
    unlock(&ring.lock);
    if (op->event) {
        return op->event(op, stop ? -ECANCELED : result_of(result), more);
    }
    op->result = result_of(result);
    return op->done ? op->done(op) : pending_done(&op->pending);
}

static struct waiter *reap(void)
{
    struct io_uring_cqe *cqe;
    struct waiter *first = NULL, **last = &first;
    while (io_uring_peek_cqe(&ring.ring, &cqe) == 0) {
        void *what = io_uring_cqe_get_data(cqe);
        int result = cqe->res;
        bool more = cqe->flags & IORING_CQE_F_MORE;
        io_uring_cqe_seen(&ring.ring, cqe);
        if (what == &event_tag) {
            ring.armed = false;
        } else if (what != &cancel_tag) {
            int fault = ((struct uring_op *)what)->fault;
            for (*last = complete(what, unlikely(fault) ? -fault : result, more); *last;
                 last = &(*last)->next) {
            }
        }
    }
    *last = NULL;
    return first;
}

static void deliver(struct waiter *first)
{
    struct visit v = visit_again();
    waiter_ready_list(first);
    visit_end(v);
}

/* The runtime ends: true once nothing is under way. Those who wait are not woken any more. */
static bool wind_up(void)
{
    lock(&ring.lock);
    while (ring.fresh.first) {
        struct uring_op *op = ring.fresh.first;
        take_out(&ring.fresh, op);
        put_last(&ring.sent, op);
        unlock(&ring.lock);
        complete(op, -ECANCELED, false);
        lock(&ring.lock);
    }
    for (struct uring_op *op = ring.sent.first; op; op = op->next) {
        if (op->cancel == URING_WANTED) {
            op->cancel = URING_CANCEL;
            ring.want_cancel = true;
        }
    }
    bool over = !ring.sent.first;
    unlock(&ring.lock);
    return over;
}

static bool told_to_stop(void)
{
    lock(&ring.lock);
    bool stop = ring.stop;
    unlock(&ring.lock);
    return stop;
}

/* wait: until something is complete. */
static int submit(bool wait)
{
    int fault = SYS_FAULT(SYS_CALL_RING_ENTER);
    return unlikely(fault) ? -fault : io_uring_submit_and_wait(&ring.ring, wait);
}

static void turn(void)
{
    for (bool stop = told_to_stop(); !stop || !wind_up(); stop = told_to_stop()) {
        bool more = fill();
        int r = submit(!more);
        if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY) {
            throw("uring: the kernel takes nothing more: %s", strerrordesc_np(-r));
        }
        if (r == -EAGAIN || r == -EBUSY) {
            thread_yield(); /* no memory for it now, or completions first */
        }
        struct waiter *first = reap();
        if (first && !stop) {
            deliver(first);
        }
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

/* The calls that are used, all of the same age; and one that goes through: io_uring_enter may be
 * forbidden by itself. */
static int check_ring(void)
{
    static const unsigned char needed[] = {IORING_OP_READ,         IORING_OP_WRITE,
                                           IORING_OP_FSYNC,        IORING_OP_OPENAT,
                                           IORING_OP_ASYNC_CANCEL, IORING_OP_POLL_ADD};
    union {
        struct io_uring_probe probe;
        char room[sizeof(struct io_uring_probe) + 64 * sizeof(struct io_uring_probe_op)];
    } u;
    memset(&u, 0, sizeof u);
    int fault = SYS_FAULT(SYS_CALL_RING_REGISTER);
    int err = unlikely(fault) ? -fault : io_uring_register_probe(&ring.ring, &u.probe, 64);
    for (size_t i = 0; !err && i < sizeof needed; i++) {
        err = io_uring_opcode_supported(&u.probe, needed[i]) ? 0 : -EOPNOTSUPP;
    }
    if (err || !(ring.ring.features & IORING_FEAT_NODROP)) {
        return err ? err : -EOPNOTSUPP;
    }
    io_uring_prep_nop(io_uring_get_sqe(&ring.ring));
    struct io_uring_cqe *cqe;
    int r;
    do {
        r = submit(true);
    } while (r == -EINTR);
    if (r < 0 || (r = io_uring_peek_cqe(&ring.ring, &cqe)) < 0) {
        return r;
    }
    io_uring_cqe_seen(&ring.ring, cqe);
    return 0;
}

static int make_ring(void)
{
    static const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0};
    int err = !tool_knows_new_calls() ? -EOPNOTSUPP : -EINVAL;
    for (size_t i = 0; err == -EINVAL && i < ARRAY_LEN(flags); i++) {
        struct io_uring_params p = {.flags = flags[i] | IORING_SETUP_CQSIZE,
                                    .cq_entries = COMPLETIONS};
        int fault = SYS_FAULT(SYS_CALL_RING_SETUP);
        err = unlikely(fault) ? -fault : io_uring_queue_init_params(ENTRIES, &ring.ring, &p);
    }
    if (err) {
        return err;
    }
    io_uring_ring_dontfork(&ring.ring);
    err = check_ring();
    if (err) {
        io_uring_queue_exit(&ring.ring);
    }
    return err;
}

static void say_how(int err)
{
    if (sched.io_says) {
        say(err ? "pirn: io_uring is not used (%s): files use threads, descriptors epoll\n"
                : "pirn: io_uring is used for files%s\n",
            err               ? strerrordesc_np(-err)
            : io_ring_first() ? " and to wait for descriptors"
                              : "");
    }
}

static void *uring_main(void *arg)
{
    (void)arg;
    int err = make_ring();
    say_how(err);
    at_store(&ring.state, err ? FAILED : UP, RELEASE); /* [U1] */
    futex_wake(&ring.state, INT_MAX);
    if (!err) {
        turn();
        io_uring_queue_exit(&ring.ring);
    }
    at_store(&ring.ended, 1, RELEASE);
    futex_wake(&ring.ended, 1);
    return NULL;
}

void uring_start(void)
{
    if (at_load(&ring.orphan, RELAXED)) {
        return;
    }
    ring.fresh = ring.sent = (struct list){0};
    ring.n = 0;
    ring.asleep = ring.stop = ring.want_cancel = ring.delivers = ring.armed = false;
    at_store(&ring.ended, 0, RELAXED);
    at_store(&ring.state, STARTING, RELAXED);
    ring.event = (int)SYS_TRY(SYS_CALL_EVENTFD, eventfd(0, EFD_CLOEXEC));
    int err = ring.event < 0 ? -errno : 0;
    if (!err && (err = thread_create(&ring.thread, "pirn-uring", uring_main, NULL, true))) {
        close(ring.event);
    }
    if (err) {
        say_how(err);
        at_store(&ring.ended, 2, RELAXED); /* there is no thread */
        at_store(&ring.state, FAILED, RELAXED);
        return;
    }
    while (at_load(&ring.state, ACQUIRE) == STARTING) {
        futex_wait(&ring.state, STARTING, INT64_MAX);
    }
}

void uring_start_if_asked(void)
{
    if (at_load(&ring.state, RELAXED) == ASKED) {
        uring_start();
    }
}

void uring_want(void)
{
    uint32_t none = NONE;
    if (at_load(&ring.state, RELAXED) == NONE
        && at_cas(&ring.state, &none, ASKED, RELAXED, RELAXED)) {
        factory_want_io();
    }
}

bool uring_stop(int64_t grace)
{
    uint32_t state = at_load(&ring.state, RELAXED);
    bool left = false;
    if (at_load(&ring.orphan, RELAXED)) {
        return false; /* of an earlier runtime */
    }
    if (state == UP || state == FAILED) {
        int64_t now = now_ns(), until = grace > INT64_MAX - now ? INT64_MAX : now + grace;
        if (state == UP) {
            lock(&ring.lock);
            ring.stop = true;
            unlock(&ring.lock);
            kick();
        }
        while (!at_load(&ring.ended, ACQUIRE) && !left) {
            left = !futex_wait(&ring.ended, 0, until) && !at_load(&ring.ended, ACQUIRE);
        }
        if (left) {
            say("pirn: the kernel still has an operation on a file after the runtime has ended; it "
                "is "
                "left behind\n");
            at_store(&ring.orphan, 1, RELAXED);
            pthread_detach(ring.thread);
        } else if (at_load(&ring.ended, RELAXED) == 1) {
            pthread_join(ring.thread, NULL);
            close(ring.event); /* here: the kick is over */
        }
    }
    at_store(&ring.state, left ? FAILED : NONE, RELAXED);
    return left;
}
