/* SPDX-License-Identifier: MIT */
/*
 * What the models of poll descriptors share: the kernel, the ring's thread, and the calls.
 *
 * The kernel is a count of bytes that can be read, room for bytes that can be written, and whether the other
 * side is gone. It is edge-triggered as epoll is: it tells when there is more of either at a registered
 * descriptor, and when one is registered that is ready; and it tells all that the descriptor is ready for by
 * the time that it is asked. The thread "poller" hands it on. Who reads and writes are foreign threads, without
 * what surrounds their calls. How the kernel and the notes wake a thread is not looked at here, and is one step:
 * else most of what is explored is that.
 *
 * With io_uring (FDS_RING) the thread "ring" is that of uring.c: it hands operations to the kernel, one for each
 * direction, which polls again and again, or once; tells what comes; and cancels. The kernel holds the file for
 * as long as it has an operation: when a call or close returns, and nobody waits, it must not.
 */
#ifndef TESTS_MODEL_FD_KERNEL_H
#define TESTS_MODEL_FD_KERNEL_H

#define NOTES_IN_ONE 1
#include "foreign_lean.h"
#include "foreign_only.h"
#include "io/io.h"
#include "os/poll.h"
#include "sync/select.h"

#include "../../src/io/pd.c"
#include "../../src/io/pd_ring.c"
#include "../../src/io/uring_poll.c"

#define FD 1
#define MODES 2

static struct pd pds[CHUNK];
static struct ring_pair ring_ops[CHUNK];
static struct {
    uint32_t key; /* of its lock */
    int bytes, room;
    bool gone;
    bool registered, closed;
    bool told, waited_for; /* by the poller or the ring, which sleeps on the note */
    uint32_t note;
    uint64_t tag;
} kernel;
static bool ring_holds(void);
/* One call on what is not pirn's: io_uring has nothing of it when the call returns. */
static bool alone;
static int result[MODEL_THREADS];

/* --- the kernel ---------------------------------------------------------------------------------------- */

static uint32_t ready_locked(void)
{
    return (kernel.bytes || kernel.gone ? POLL_READ : 0u)
           | (kernel.room || kernel.gone ? POLL_WRITE : 0u) | (kernel.gone ? POLL_ODD : 0u);
}

static void tell_locked(void)
{
    kernel.told = true;
    if (kernel.waited_for) {
        kernel.waited_for = false;
        model_note_post(&kernel.note);
    }
}

/* Until it was told since the last time. */
static void wait_locked(void)
{
    while (!kernel.told) {
        kernel.waited_for = true;
        model_note_clear(&kernel.note);
        model_unlock(&kernel.key);
        model_note_wait(&kernel.note);
        model_lock(&kernel.key);
    }
    kernel.told = false;
}

/* As epoll_ctl: what pirn believes to be registered is left as it is, any other has a new tag, and is looked at. */
int netpoll_add(struct pd *pd, int fd)
{
    model_lock(&kernel.key);
    CHECK(!kernel.closed);
    if (kernel.registered && pd->registered) {
        model_unlock(&kernel.key);
        return -EEXIST;
    }
    kernel.registered = true;
    kernel.tag = (uint64_t)pd->seq << 32 | (uint32_t)fd;
    if (ready_locked()) {
        tell_locked();
    }
    model_unlock(&kernel.key);
    return 0;
}

void netpoll_remove(struct pd *pd, int fd)
{
    (void)pd, (void)fd;
    model_lock(&kernel.key);
    kernel.registered = false;
    model_unlock(&kernel.key);
}

int sys_close(int fd)
{
    model_fail("descriptor %d is closed late", fd);
}

int sys_close_number(int fd, int *err)
{
    CHECK(fd == FD && pds[FD].refs == 0);
    model_lock(&kernel.key);
    CHECK(!kernel.closed && !ring_holds());
    kernel.closed = true;
    model_unlock(&kernel.key);
    *err = 0;
    return -1;
}

bool sys_is_file(int fd)
{
    (void)fd;
    return false;
}

/* Of what there is, as much as is wanted. */
static ssize_t move(int *there, size_t wanted, int when_gone)
{
    model_lock(&kernel.key);
    int n = *there < (int)wanted ? *there : (int)wanted;
    ssize_t r = kernel.closed ? -EBADF : n ? n : kernel.gone ? when_gone : -EAGAIN;
    *there -= r > 0 ? n : 0;
    model_unlock(&kernel.key);
    return r;
}

static ssize_t take(struct io *io)
{
    return move(&kernel.bytes, io->total, 0);
}

bool fd_is_ready(int fd, enum fd_mode mode)
{
    CHECK(fd == FD);
    model_lock(&kernel.key);
    bool ready = kernel.closed || ready_locked() & (mode == FD_READ ? POLL_READ : POLL_WRITE);
    model_unlock(&kernel.key);
    return ready;
}

/* --- io_uring -------------------------------------------------------------------------------------------- */

bool netpoll_by_ring;

/* As uring.c has it, in one step each. By the mode. */
static struct {
    struct uring_op *fresh, *sent;
    bool ready, cancel;
} ring[MODES];

static bool ring_holds(void)
{
    return ring[FD_READ].fresh || ring[FD_READ].sent || ring[FD_WRITE].fresh || ring[FD_WRITE].sent;
}

bool uring_up(void)
{
    return true;
}

bool uring_polls_on(void)
{
    return true;
}

uint32_t poll_ready_of(uint32_t events)
{
    return events;
}

bool uring_put(struct uring_op *op)
{
    model_lock(&kernel.key);
    CHECK(!ring[op->mode].fresh && !ring[op->mode].sent);
    ring[op->mode].fresh = op;
    tell_locked();
    model_unlock(&kernel.key);
    return true;
}

bool uring_cancel(struct uring_op *op)
{
    model_lock(&kernel.key);
    bool fresh = ring[op->mode].fresh == op;
    ring[op->mode].fresh = fresh ? NULL : ring[op->mode].fresh;
    ring[op->mode].cancel |= ring[op->mode].sent == op;
    if (!fresh) {
        tell_locked();
    }
    model_unlock(&kernel.key);
    return fresh;
}

/* What an operation is told: its own direction, and that the other side is gone, which is of both. */
static uint32_t ring_ready_locked(int mode)
{
    uint32_t ready = ready_locked();
    return kernel.gone ? POLL_READ | POLL_WRITE | POLL_ODD
                       : ready & (mode == FD_READ ? POLL_READ : POLL_WRITE);
}

static bool has_something_to_do(int mode)
{
    return ring[mode].sent ? ring[mode].ready || ring[mode].cancel : ring[mode].fresh != NULL;
}

/* One step of the ring's thread, when there is something to do. */
static void ring_step(void)
{
    model_lock(&kernel.key);
    while (!has_something_to_do(FD_READ) && !has_something_to_do(FD_WRITE)) {
        wait_locked();
    }
    int mode = !has_something_to_do(FD_READ)   ? FD_WRITE
               : has_something_to_do(FD_WRITE) ? model_pick(MODES)
                                               : FD_READ;
    struct uring_op *op = ring[mode].sent;
    if (!op) { /* submitted: the kernel has the file, and looks at it */
        op = ring[mode].sent = ring[mode].fresh;
        ring[mode].fresh = NULL;
        ring[mode].cancel = false;
        ring[mode].ready = ring_ready_locked(mode);
        CHECK(!kernel.closed);
    }
    /* Somebody may have taken what there was: it is told of it still, as it was when it came. */
    bool ready = ring[mode].ready, cancel = ring[mode].cancel && !ready, more = ready && op->n;
    uint32_t what = (mode == FD_READ ? POLL_READ : POLL_WRITE) | ring_ready_locked(mode);
    ring[mode].ready = false;
    if ((ready || cancel) && !more) {
        ring[mode].sent = NULL;
    }
    model_unlock(&kernel.key);
    if (!ready && !cancel) {
        return;
    }
    struct waiter *w = op->event(op, cancel ? -ECANCELED : (int)what, more);
    if (w) {
        waiter_ready_list(w);
    }
}

/* --- what is not looked at -------------------------------------------------------------------------------- */

void netpoll_waits(int change)
{
    (void)change;
}
void netpoll_foreign(int change)
{
    (void)change;
}
void netpoll_wake(void)
{
}
int sys_socket(int domain, int type, int protocol)
{
    model_fail("a socket is made: %d %d %d", domain, type, protocol);
}
int sys_shutdown(int fd, int how)
{
    model_fail("descriptor %d is shut down: %d", fd, how);
}
int sys_sockopt(int fd, int level, int name)
{
    model_fail("descriptor %d is asked: %d %d", fd, level, name);
}
int sys_peername(int fd)
{
    model_fail("descriptor %d is asked for its peer", fd);
}
bool sys_has_ulp(int fd)
{
    model_fail("descriptor %d is asked", fd);
}
int *pirn_errno_location(void)
{
    static int ignored;
    return &ignored;
}
int sys_flags(int fd)
{
    model_lock(&kernel.key);
    bool open = fd == FD && !kernel.closed;
    model_unlock(&kernel.key);
    return open ? 0 : -EBADF;
}
int sys_poll(int fd, short events, int64_t deadline)
{
    model_fail("poll of %d, %d, %ld", fd, events, (long)deadline);
}
int pirn_sleep(pirn_ns ns)
{
    model_fail("sleep of %ld", (long)ns);
}
void pirn_blocking_begin(void)
{
    model_fail("a call blocks");
}
void pirn_blocking_end(void)
{
}

/* --- the threads -------------------------------------------------------------------------------------------- */

static void setup(void)
{
    memset(pds, 0, sizeof pds);
    memset(&kernel, 0, sizeof kernel);
    memset(result, 0, sizeof result);
    at_store(&table[0], pds, RELAXED);
    memset(&ring, 0, sizeof ring);
    memset(ring_ops, 0, sizeof ring_ops);
    at_store(&pairs[0], ring_ops, RELAXED);
    netpoll_by_ring = alone = false;
    pds[FD].ours = true;
    pds[FD].kind = FD_SOCKET;
    pds[FD].streams = true;
}

/* Not pirn's: registered for each wait. */
static void setup_foreign(void)
{
    setup();
    pds[FD].ours = pds[FD].streams = false;
    pds[FD].kind = FD_ANY;
}

static void setup_ring(void)
{
    setup();
    netpoll_by_ring = true;
}

static void setup_ring_foreign(void)
{
    setup_foreign();
    netpoll_by_ring = true;
}

static void setup_ring_alone(void)
{
    setup_ring_foreign();
    alone = true;
}

/* One edge, whatever it is of. */
static void come(int bytes, int room, bool gone)
{
    model_lock(&kernel.key);
    kernel.bytes += bytes;
    kernel.room += room;
    kernel.gone |= gone;
    ring[FD_READ].ready |= ring[FD_READ].sent && (bytes || gone);
    ring[FD_WRITE].ready |= ring[FD_WRITE].sent && (room || gone);
    if (kernel.registered || ring[FD_READ].sent || ring[FD_WRITE].sent) {
        tell_locked();
    }
    model_unlock(&kernel.key);
}

/* Tells of what the descriptor is ready for by now. Has the lock, and gives it back. */
static void tell_event_locked(void)
{
    uint64_t tag = kernel.tag;
    uint32_t ready = ready_locked();
    model_unlock(&kernel.key);
    struct waiter *w = pd_event(tag, ready);
    if (w) {
        waiter_ready_list(w);
    }
}

/* For ever: it may be asleep at the end. */
static void poller(void)
{
    for (;;) {
        model_lock(&kernel.key);
        wait_locked();
        tell_event_locked();
    }
}

static void ring_thread(void)
{
    for (;;) {
        ring_step();
    }
}

static int call(struct io *io)
{
    int r = (int)io_run(io);
    if (alone) {
        model_lock(&kernel.key);
        CHECK(!ring_holds());
        model_unlock(&kernel.key);
    }
    return r;
}

static void read_until(size_t n, int64_t deadline)
{
    struct io io = IO_INIT(FD, FD_READ, take, NULL);
    io.deadline = deadline;
    io.total = n;
    io.hints = true;
    int r = call(&io);
    result[model_self()] = r < 0 || n == 1 ? r : result[model_self()] + r;
}

static void reader(void)
{
    read_until(1, PIRN_NEVER);
}

static void closer(void)
{
    int err, second = pd_close(FD, &err);
    if (second == PD_LETS_GO) {
        struct visit v = {.entered = true};
        second = pd_wait_gone(&v, FD, &err);
    }
    CHECK(second == -1 && err == 0);
}

static void canceller(void)
{
    CHECK(pd_cancel(FD) == 0);
}

static int count(int r)
{
    int n = 0;
    for (int i = 0; i < MODEL_THREADS; i++) {
        n += result[i] == r;
    }
    return n;
}

static void nobody_is_left(void)
{
    struct pd *pd = &pds[FD];
    CHECK(pd->refs == 0 && !pd->q[FD_READ].first && !pd->q[FD_WRITE].first);
    CHECK(pd->ours || !pd->registered);
    CHECK(!pd->closing && !pd->leavers);
    for (int mode = FD_READ; mode <= FD_WRITE; mode++) {
        CHECK(!(pd->ring & RING_ASKED(mode)) == !(ring[mode].fresh || ring[mode].sent));
    }
    CHECK(!(pd->ring & RING_STOPS_ANY));
    CHECK((pd->ours && !kernel.closed) || !pd->ring);
}

#define FDS(mname, setup_, finish_, ...)                                                           \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {poller, __VA_ARGS__},             \
          .sleepers = 1, .preemptions = MODEL_UNBOUNDED, .quick = 2)
#define FDS_RING(mname, setup_, finish_, ...)                                                      \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {ring_thread, __VA_ARGS__},        \
          .sleepers = 1, .preemptions = MODEL_UNBOUNDED, .quick = 2)

#endif
