/* SPDX-License-Identifier: MIT */
/*
 * Poll descriptors (pd.c) and the calls that wait for them (io.c): reading, against events, close, deadlines and
 * cancellation. What has come is read by somebody or is still there; nobody waits while there is something
 * to read, or after the descriptor was closed; the number is closed once, by the last who uses it, and
 * nobody uses it afterwards. fd_write.c has writing, and both at once; fd_kernel.h what is around them.
 */
#include "fd_kernel.h"

/* --- the threads -------------------------------------------------------------------------------------------- */

static void setup_one_byte(void)
{
    setup();
    kernel.bytes = 1;
}

static void byte_comes(void)
{
    come(1, 0, false);
}

static void two_bytes_come(void)
{
    come(2, 0, false);
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
    byte_comes();
    byte_comes();
}

/* A deadline that has passed. */
static void deadline_setter(void)
{
    CHECK(pd_deadline(FD, 1, 0) == 0);
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

/* --- a hint that was wrong: it is no plain stream any more, and has bytes though the last read was short ----------- */

static void setup_wrong_hint(void)
{
    setup_one_byte();
    pds[FD].empty = pds[FD].registered = kernel.registered = true;
    kernel.tag = FD;
}

static void adopter(void)
{
    CHECK(pd_adopt(FD, FD_SOCKET, false) == 0);
}

/* Who waits because of it is woken, and who comes later tries. No event is to come. */
FDS(adopted_again, setup_wrong_hint, one_read, adopter, reader)

/* --- the table: its part for a number is mapped once, by the first who asks for it --------------------------------- */

static void setup_no_table(void)
{
    setup();
    at_store(&table[0], NULL, RELAXED);
    at_store(&nchunks, 0, RELAXED);
}

/* Nobody's news is in a part that was thrown away. */
static void both_are_known(void)
{
    struct pd *pd = pd_get(FD);
    CHECK(pd->cancelled && pd->deadline[FD_READ] == 1 && at_load(&nchunks, RELAXED) == 1);
}

MODEL(mapped_by_two, .setup = setup_no_table, .finish = both_are_known,
      .threads = {deadline_setter, canceller}, .leaks = true, .preemptions = MODEL_UNBOUNDED,
      .quick = 2)

/* --- with io_uring --------------------------------------------------------------------------------------------- */

static void setup_ring_one_byte(void)
{
    setup_one_byte();
    netpoll_by_ring = true;
}

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
    bool fresh;
    uint64_t word = word_lock(&pds[FD].word);
    CHECK(register_locked(&pds[FD], FD, FD_READ, &fresh) == 0 && fresh);
    word_unlock(&pds[FD].word, word);
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
