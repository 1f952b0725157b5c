/* SPDX-License-Identifier: MIT */
/*
 * Poll descriptors (pd.c) and the calls that wait for them (io.c): against events, close, deadlines and
 * cancellation. What has come is read by somebody or is still there; nobody waits while there is something
 * to read, or after the descriptor was closed; the number is closed once, by the last who uses it, and
 * nobody uses it afterwards.
 *
 * The kernel is a count of bytes, edge-triggered as epoll is: it tells when a byte comes to a registered
 * descriptor, and when one is registered that has bytes. The thread "poller" hands it on. The readers are
 * foreign threads, without what surrounds their calls. How the kernel and the notes wake a thread is not
 * looked at here, and is one step: else most of what is explored is that.
 *
 * With io_uring (FDS_RING) the thread "ring" is that of uring.c: it hands operations to the kernel, which polls
 * again and again, or once; tells what comes; and cancels. The kernel holds the file for as long as it has
 * an operation: when a call or close returns, and nobody waits, it must not.
 */
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

static struct pd pds[CHUNK];
static struct ring_pair ring_ops[CHUNK];
static struct {
    uint32_t key; /* of its lock */
    int bytes;
    bool registered, closed;
    bool told, waited_for; /* by the poller or the ring, which sleeps on the note */
    uint32_t note;
    uint64_t tag;
} kernel;
static bool ring_holds(void);
/* One reader of what is not pirn's: io_uring has nothing of it when its call returns. */
static bool alone;
static int result[MODEL_THREADS];

/* --- the kernel ---------------------------------------------------------------------------------------- */

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

int netpoll_add(struct pd *pd, int fd)
{
    model_lock(&kernel.key);
    CHECK(!kernel.closed);
    if (kernel.registered) {
        model_unlock(&kernel.key);
        return -EEXIST;
    }
    kernel.registered = true;
    kernel.tag = (uint64_t)pd->seq << 32 | (uint32_t)fd;
    if (kernel.bytes) {
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

static ssize_t take(struct io *io)
{
    model_lock(&kernel.key);
    int n = kernel.bytes < (int)io->total ? kernel.bytes : (int)io->total;
    ssize_t r = kernel.closed ? -EBADF : n ? n : -EAGAIN;
    kernel.bytes -= r > 0 ? n : 0;
    model_unlock(&kernel.key);
    return r;
}

bool fd_is_ready(int fd, enum fd_mode mode)
{
    CHECK(fd == FD && mode == FD_READ);
    model_lock(&kernel.key);
    bool ready = kernel.bytes || kernel.closed;
    model_unlock(&kernel.key);
    return ready;
}

/* --- io_uring -------------------------------------------------------------------------------------------- */

bool netpoll_by_ring;

/* As uring.c has it, in one step each. */
static struct {
    struct uring_op *fresh; /* at most one: only reading is waited for */
    struct uring_op *sent;
    bool ready, cancel;
} ring;

static bool ring_holds(void)
{
    return ring.fresh || ring.sent;
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
    CHECK(!ring.fresh && !ring.sent);
    ring.fresh = op;
    tell_locked();
    model_unlock(&kernel.key);
    return true;
}

bool uring_cancel(struct uring_op *op)
{
    model_lock(&kernel.key);
    bool fresh = ring.fresh == op;
    ring.fresh = fresh ? NULL : ring.fresh;
    ring.cancel |= ring.sent == op;
    if (!fresh) {
        tell_locked();
    }
    model_unlock(&kernel.key);
    return fresh;
}

/* One step of the ring's thread, when there is something to do. */
static void ring_step(void)
{
    model_lock(&kernel.key);
    while (!(ring.sent ? ring.ready || ring.cancel : ring.fresh != NULL)) {
        wait_locked();
    }
    struct uring_op *op = ring.sent;
    if (!op && ring.fresh) { /* submitted: the kernel has the file, and looks at it */
        op = ring.sent = ring.fresh;
        ring.fresh = NULL;
        ring.cancel = false;
        ring.ready = kernel.bytes;
        CHECK(!kernel.closed);
    }
    bool ready = op && ring.ready, cancel = op && ring.cancel && !ready, more = ready && op->n;
    ring.ready = false;
    if ((ready || cancel) && !more) {
        ring.sent = NULL;
    }
    model_unlock(&kernel.key);
    if (!ready && !cancel) {
        return;
    }
    struct waiter *w = op->event(op, cancel ? -ECANCELED : POLL_READ, more);
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
    return fd == FD ? 0 : -EBADF;
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

static void setup_one_byte(void)
{
    setup();
    kernel.bytes = 1;
}

static void come(int n)
{
    model_lock(&kernel.key);
    kernel.bytes += n;
    ring.ready |= ring.sent != NULL;
    if (kernel.registered || ring.sent) {
        tell_locked();
    }
    model_unlock(&kernel.key);
}

static void byte_comes(void)
{
    come(1);
}

static void two_bytes_come(void)
{
    come(2);
}

/* For ever: it may be asleep at the end. */
static void poller(void)
{
    for (;;) {
        model_lock(&kernel.key);
        wait_locked();
        uint64_t tag = kernel.tag;
        uint32_t ready = kernel.bytes ? POLL_READ : 0;
        model_unlock(&kernel.key);
        struct waiter *w = pd_event(tag, ready);
        if (w) {
            waiter_ready_list(w);
        }
    }
}

static void ring_thread(void)
{
    for (;;) {
        ring_step();
    }
}

static void read_until(size_t n, int64_t deadline)
{
    struct io io = IO_INIT(FD, FD_READ, take, NULL);
    io.deadline = deadline;
    io.total = n;
    io.hints = true;
    int r = (int)io_run(&io);
    if (alone) {
        model_lock(&kernel.key);
        CHECK(!ring_holds());
        model_unlock(&kernel.key);
    }
    result[model_self()] = r < 0 || n == 1 ? r : result[model_self()] + r;
}

static void reader(void)
{
    read_until(1, PIRN_NEVER);
}

static void reader_timed(void)
{
    read_until(1, now_ns() + 1000000);
}

static void reader_twice(void)
{
    reader();
    CHECK(result[model_self()] == 1);
    reader();
}

/* Short reads, until two bytes have come: the hint. */
static void reader_of_two(void)
{
    while (result[model_self()] < 2) {
        read_until(3, PIRN_NEVER);
    }
}

static void bytes_come(void)
{
    come(1);
    come(1);
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

/* A deadline that has passed. */
static void deadline_setter(void)
{
    CHECK(pd_deadline(FD, 1, 0) == 0);
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
    CHECK((pd->ring != 0) == (ring.fresh || ring.sent) && !(pd->ring & RING_STOPS_ANY));
    CHECK((pd->ours && !kernel.closed) || !pd->ring);
}

static void one_read(void)
{
    CHECK(count(1) == 1 && kernel.bytes == 0);
    nobody_is_left();
}

static void two_read(void)
{
    CHECK(count(1) == 2 && kernel.bytes == 0);
    nobody_is_left();
}

static void both_came(void)
{
    CHECK(count(2) == 1 && kernel.bytes == 0);
    nobody_is_left();
}

static void read_or(int other, int readers)
{
    CHECK(count(1) + count(other) == readers && count(1) + kernel.bytes == 1);
    nobody_is_left();
}

static void read_or_closed(void)
{
    CHECK(kernel.closed);
    read_or(-EBADF, 1);
}

static void two_read_or_closed(void)
{
    CHECK(kernel.closed);
    read_or(-EBADF, 2);
}

static void read_or_timed_out(void)
{
    read_or(-ETIMEDOUT, 1);
}

static void timed_out(void)
{
    CHECK(count(-ETIMEDOUT) == 1);
    nobody_is_left();
}

static void read_or_cancelled(void)
{
    read_or(-ECANCELED, 1);
}

#define FDS(mname, setup_, finish_, ...)                                                           \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {poller, __VA_ARGS__},             \
          .sleepers = 1, .preemptions = MODEL_UNBOUNDED, .quick = 2)

FDS(event, setup, one_read, byte_comes, reader)
FDS(event_foreign, setup_foreign, one_read, byte_comes, reader)
FDS(event_before, setup_one_byte, one_read, byte_comes, reader_twice)
FDS(short_reads, setup, both_came, bytes_come, reader_of_two)
FDS(short_reads_of_two, setup, both_came, byte_comes, byte_comes, reader_of_two)
FDS(two_readers_one_edge, setup, two_read, two_bytes_come, reader, reader)
FDS(two_readers_foreign, setup_foreign, two_read, two_bytes_come, reader, reader)
FDS(event_and_close, setup, read_or_closed, byte_comes, closer, reader)
FDS(event_and_close_foreign, setup_foreign, read_or_closed, byte_comes, closer, reader)
FDS(close_and_two_readers, setup_one_byte, two_read_or_closed, closer, reader, reader)
FDS(event_and_cancel, setup, read_or_cancelled, byte_comes, canceller, reader)
FDS(event_and_past_deadline, setup, read_or_timed_out, byte_comes, deadline_setter, reader)
FDS(past_deadline, setup, timed_out, deadline_setter, reader)

/* --- calls that could block: they are made in turn, and never do ----------------------------------------------- */

static ssize_t cannot_try(struct io *io)
{
    (void)io;
    model_lock(&kernel.key);
    bool closed = kernel.closed;
    model_unlock(&kernel.key);
    return closed ? -EBADF : IO_BLOCKS;
}

static ssize_t take_at_once(struct io *io)
{
    ssize_t r = take(io);
    CHECK(r != -EAGAIN);
    return r;
}

static void reader_in_turn(void)
{
    struct io io = IO_INIT(FD, FD_READ, cannot_try, take_at_once);
    io.total = 1;
    result[model_self()] = (int)io_run(&io);
}

static void nothing_is_claimed(void)
{
    CHECK(!pds[FD].claims);
    two_read();
}

static void nothing_is_claimed_or_closed(void)
{
    CHECK(!pds[FD].claims);
    two_read_or_closed();
}

static void nothing_is_claimed_and_timed_out(void)
{
    CHECK(!pds[FD].claims);
    timed_out();
}

FDS(in_turn, setup_foreign, nothing_is_claimed, two_bytes_come, reader_in_turn, reader_in_turn)
FDS(in_turn_and_close, setup_one_byte, nothing_is_claimed_or_closed, closer, reader_in_turn,
    reader_in_turn)
FDS(in_turn_and_past_deadline, setup_foreign, nothing_is_claimed_and_timed_out, deadline_setter,
    reader_in_turn)

/* --- with io_uring --------------------------------------------------------------------------------------------- */

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

static void setup_ring_one_byte(void)
{
    setup_one_byte();
    netpoll_by_ring = true;
}

#define FDS_RING(mname, setup_, finish_, ...)                                                      \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {ring_thread, __VA_ARGS__},        \
          .sleepers = 1, .preemptions = MODEL_UNBOUNDED, .quick = 2)

FDS_RING(ring_event, setup_ring, one_read, byte_comes, reader)
FDS_RING(ring_event_foreign, setup_ring_alone, one_read, byte_comes, reader)
FDS_RING(ring_event_before, setup_ring_one_byte, one_read, byte_comes, reader_twice)
FDS_RING(ring_short_reads, setup_ring, both_came, bytes_come, reader_of_two)
FDS_RING(ring_two_readers, setup_ring, two_read, two_bytes_come, reader, reader)
FDS_RING(ring_two_readers_foreign, setup_ring_foreign, two_read, two_bytes_come, reader, reader)
FDS_RING(ring_event_and_close, setup_ring, read_or_closed, byte_comes, closer, reader)
FDS_RING(ring_event_and_close_foreign, setup_ring_foreign, read_or_closed, byte_comes, closer,
         reader)
FDS_RING(ring_event_and_cancel, setup_ring, read_or_cancelled, byte_comes, canceller, reader)
FDS_RING(ring_past_deadline_foreign, setup_ring_alone, read_or_timed_out, byte_comes,
         deadline_setter, reader)
FDS_RING(ring_only_past_deadline, setup_ring_alone, timed_out, deadline_setter, reader)
MODEL(ring_event_and_time, .setup = setup_ring_alone, .finish = read_or_timed_out,
      .threads = {ring_thread, byte_comes, reader_timed}, .sleepers = 1, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* One whose time is up leaves, and another comes before the ring has let go. It is up at any moment: the first
 * does what io.c and select.c do, without a timer. */
static void leaver(void)
{
    struct pd *pd = &pds[FD];
    struct io io = IO_INIT(FD, FD_READ, take, NULL);
    struct waiter w;
    winner_t winner = {NULL};
    void *none = NULL;
    io.total = 1;
    if (pd_begin(pd, FD_READ, &io.look)) {
        return;
    }
    struct chan_op op = {.fd = {.number = FD, .edge = io.look.edge, .mode = FD_READ},
                         .winner = &winner};
    op.waiter = waiter_of(NULL, &w, &op);
    w.timed = false;
    model_note_clear(&w.note);
    int r = (int)take(&io);
    if (r == -EAGAIN && pd_arm(&op)) {
        if (!at_cas(&winner, &none, (void *)&winner, RELAXED, RELAXED)) {
            model_note_wait(&w.note); /* something else was faster */
            r = (int)take(&io);
        }
        CHECK(pd_disarm(&op));
    }
    int err, second = pd_end(pd, FD, FD_READ, r == 1, false, 0);
    if (second == PD_LETS_GO) {
        struct visit v = {.entered = true};
        second = pd_wait_gone(&v, FD, &err);
    }
    CHECK(second == -1);
    result[model_self()] = r == -EAGAIN ? -ETIMEDOUT : r;
}

static void read_by_one_or_the_other(void)
{
    CHECK(result[2] == 1 || result[2] == -ETIMEDOUT);
    CHECK(result[3] == 1 && count(1) + kernel.bytes == 2);
    nobody_is_left();
}

FDS_RING(ring_leaver_and_reader, setup_ring_foreign, read_by_one_or_the_other, two_bytes_come,
         leaver, reader)

/* The one that leaves does not close what the other still uses. */
static void only_closed(void)
{
    CHECK(kernel.closed && result[3] == -EBADF && result[2] != 1);
    nobody_is_left();
}

FDS_RING(ring_leaver_and_close, setup_ring_foreign, only_closed, closer, leaver, reader)

MODEL(event_and_time, .setup = setup, .finish = read_or_timed_out,
      .threads = {poller, byte_comes, reader_timed}, .sleepers = 1, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- a second reader after one whose time was up: the event is not lost with it ------------------------------- */

static void timed_then_reader(void)
{
    reader_timed();
    if (result[model_self()] == -ETIMEDOUT) {
        reader();
    }
}

MODEL(time_then_event, .setup = setup, .finish = one_read,
      .threads = {poller, byte_comes, timed_then_reader}, .sleepers = 1, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- who only watches is told of a deadline: now, or as it begins ---------------------------------------------- */

static void watcher(void)
{
    result[model_self()] = pirn_fd_wait(FD, PIRN_IN, PIRN_NEVER);
}

/* It takes nothing. */
static void ready_or_timed_out(void)
{
    CHECK(count(PIRN_IN) + count(-ETIMEDOUT) == 1 && kernel.bytes == 1);
    nobody_is_left();
}

/* Put off, and then over. */
static void deadline_mover(void)
{
    CHECK(pd_deadline(FD, INT64_MAX / 2, 0) == 0);
    deadline_setter();
}

FDS(watcher_and_past_deadline, setup, timed_out, deadline_setter, watcher)
FDS(watcher_and_moved_deadline, setup_foreign, timed_out, deadline_mover, watcher)
FDS(watcher_and_event, setup, ready_or_timed_out, byte_comes, deadline_setter, watcher)

/* The end of another is no readiness. */
static void watch_until(int64_t deadline)
{
    int r = pirn_fd_wait(FD, PIRN_IN, deadline);
    model_lock(&kernel.key);
    CHECK(r == PIRN_IN ? kernel.bytes : r == -ETIMEDOUT && deadline != PIRN_NEVER);
    model_unlock(&kernel.key);
}

static void watcher_alone(void)
{
    watch_until(PIRN_NEVER);
}

static void watcher_timed(void)
{
    watch_until(now_ns() + 1000000);
}

MODEL(two_watchers, .setup = setup_foreign, .finish = nobody_is_left,
      .threads = {poller, byte_comes, watcher_alone, watcher_timed}, .sleepers = 1, .timeouts = 1,
      .preemptions = 2, .quick = 2)

/* --- an event of before does not count for who has the number next --------------------------------------------- */

static void stale(void)
{
    CHECK(pd_event((uint64_t)1 << 32 | FD, POLL_READ | POLL_ODD) == NULL);
}

static void close_and_make(void)
{
    closer();
    model_lock(&kernel.key);
    kernel.closed = false;
    model_unlock(&kernel.key);
    CHECK(pd_made(FD, FD_SOCKET, true, false) == 0);
}

static void setup_registered(void)
{
    setup();
    pds[FD].registered = true;
    pds[FD].seq = 1;
}

static void as_new(void)
{
    CHECK(!pds[FD].odd);
    CHECK(at_load(&pds[FD].edges[FD_WRITE], RELAXED) == 2); /* close and make only */
}

MODEL(stale_event, .setup = setup_registered, .finish = as_new, .threads = {stale, close_and_make},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)
