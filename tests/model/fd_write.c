/* SPDX-License-Identifier: MIT */
/*
 * Poll descriptors (pd.c) and the calls that wait for them (io.c): writing, and both directions of one descriptor,
 * against events, close, deadlines and cancellation. fd.c has reading alone, fd_kernel.h what is around them.
 *
 * Room is used by somebody or is still there, and nobody waits for it while it is there. One event, close or
 * cancellation is for both directions; a deadline, or somebody's turn, only for its own. At the end nobody is
 * counted or queued, in either.
 *
 * FDS_BOTH has a reader and a writer. In FDS_TOLD who has news tells it too, and there is no poller: the descriptor
 * is registered before, as one that pirn made is after its first wait. That is all of the protocol but for the
 * registering, and a tenth of the executions.
 */
#include "fd_kernel.h"

/* Of a model with one in each direction. */
enum { READER = 1, WRITER = 2 };

#define FDS_BOTH(mname, setup_, finish_, ...)                                                      \
    FDS(mname, setup_, finish_, reader, writer, __VA_ARGS__)
#define FDS_TOLD(mname, setup_, finish_, ...)                                                      \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- the threads -------------------------------------------------------------------------------------------- */

static void setup_room(void)
{
    setup();
    kernel.room = 1;
}

static void setup_ring_room(void)
{
    setup_room();
    netpoll_by_ring = true;
}

static void setup_registered(void)
{
    setup();
    pds[FD].registered = kernel.registered = true;
    kernel.tag = FD;
}

static void setup_registered_room(void)
{
    setup_registered();
    kernel.room = 2;
}

static void come_and_tell(int bytes, int room, bool gone)
{
    come(bytes, room, gone);
    model_lock(&kernel.key);
    tell_event_locked();
}

static void room_comes(void)
{
    come(0, 1, false);
}

static void two_rooms_come(void)
{
    come(0, 2, false);
}

static void room_comes_twice(void)
{
    room_comes();
    room_comes();
}

static void both_come(void)
{
    come(1, 1, false);
}

static void one_comes_after_the_other(void)
{
    come(1, 0, false);
    come(0, 1, false);
}

static void one_is_told_after_the_other(void)
{
    come_and_tell(1, 0, false);
    come_and_tell(0, 1, false);
}

static void other_side_goes(void)
{
    come(0, 0, true);
}

static ssize_t give(struct io *io)
{
    return move(&kernel.room, io->total - io->done, -EPIPE);
}

static void write_until(size_t n, bool all, int64_t deadline)
{
    struct io io = IO_INIT(FD, FD_WRITE, give, NULL);
    io.deadline = deadline;
    io.total = n;
    io.all = all;
    result[model_self()] = call(&io);
}

static void writer(void)
{
    write_until(1, false, PIRN_NEVER);
}

static void writer_timed(void)
{
    write_until(1, false, now_ns() + 1000000);
}

static void writer_twice(void)
{
    writer();
    CHECK(result[model_self()] == 1);
    writer();
}

static void writer_of_two(void)
{
    write_until(2, true, PIRN_NEVER);
}

static void past_deadline_of_writing(void)
{
    CHECK(pd_deadline(FD, 0, 1) == 0);
}

static void past_deadline_of_reading(void)
{
    CHECK(pd_deadline(FD, 1, 0) == 0);
}

/* --- one who writes, or two -------------------------------------------------------------------------------- */

static void one_written(void)
{
    CHECK(count(1) == 1 && kernel.room == 0);
    nobody_is_left();
}

static void two_written(void)
{
    CHECK(count(1) == 2 && kernel.room == 0);
    nobody_is_left();
}

static void all_written(void)
{
    CHECK(count(2) == 1 && kernel.room == 0);
    nobody_is_left();
}

static void written_or(int other, int writers)
{
    CHECK(count(1) + count(other) == writers && count(1) + kernel.room == 1);
    nobody_is_left();
}

static void written_or_closed(void)
{
    CHECK(kernel.closed);
    written_or(-EBADF, 1);
}

static void two_written_or_closed(void)
{
    CHECK(kernel.closed);
    written_or(-EBADF, 2);
}

static void written_or_cancelled(void)
{
    written_or(-ECANCELED, 1);
}

static void written_or_timed_out(void)
{
    written_or(-ETIMEDOUT, 1);
}

static void timed_out(void)
{
    CHECK(count(-ETIMEDOUT) == 1);
    nobody_is_left();
}

/* The event comes before the try, between it and the wait, or after: whoever writes goes on, and all room is used. */
FDS(room, setup, one_written, room_comes, writer)
FDS(room_foreign, setup_foreign, one_written, room_comes, writer)
FDS(room_before, setup_room, one_written, room_comes, writer_twice)
FDS(room_bit_by_bit, setup, all_written, room_comes_twice, writer_of_two)
/* One edge wakes one, and that one the next. */
FDS(two_writers_one_edge, setup, two_written, two_rooms_come, writer, writer)
FDS(two_writers_foreign, setup_foreign, two_written, two_rooms_come, writer, writer)
/* What ends the wait ends it, and takes no room: it is written, or it is told why not and the room is left. */
FDS(room_and_close, setup, written_or_closed, room_comes, closer, writer)
FDS(room_and_close_foreign, setup_foreign, written_or_closed, room_comes, closer, writer)
FDS(close_and_two_writers, setup_room, two_written_or_closed, closer, writer, writer)
FDS(room_and_cancel, setup, written_or_cancelled, room_comes, canceller, writer)
FDS(room_and_past_deadline, setup, written_or_timed_out, room_comes, past_deadline_of_writing,
    writer)
FDS(past_deadline, setup, timed_out, past_deadline_of_writing, writer)
MODEL(room_and_time, .setup = setup, .finish = written_or_timed_out,
      .threads = {poller, room_comes, writer_timed}, .sleepers = 1, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* Of two there is room for one: what was written counts, whatever ends the wait for the rest; or nothing was. */
FDS(part_and_close, setup_room, written_or_closed, closer, writer_of_two)
FDS(part_and_cancel, setup_room, written_or_cancelled, canceller, writer_of_two)
FDS(part_and_past_deadline, setup_room, written_or_timed_out, past_deadline_of_writing,
    writer_of_two)

/* One whose time is up while it writes, and while there is room: the other is told of that. */
static ssize_t give_one_slowly(struct io *io)
{
    ssize_t r = move(&kernel.room, 1, -EPIPE);
    io->deadline = r == 1 ? 1 : io->deadline;
    return r;
}

static void writer_too_slow(void)
{
    struct io io = IO_INIT(FD, FD_WRITE, give_one_slowly, NULL);
    io.total = 2;
    io.all = true;
    result[model_self()] = call(&io);
}

FDS(room_is_left, setup, two_written, two_rooms_come, writer_too_slow, writer)

/* --- one in each direction --------------------------------------------------------------------------------- */

static void both_have(int read, int written)
{
    CHECK(result[READER] == read && result[WRITER] == written);
    nobody_is_left();
}

static void both_moved(void)
{
    CHECK(kernel.bytes == 0 && kernel.room == 0);
    both_have(1, 1);
}

static void both_found_it_gone(void)
{
    both_have(0, -EPIPE);
}

/* Who had to wait had it registered, and then it is known that nothing is as usual. */
static void both_found_it_gone_and_odd(void)
{
    CHECK(pds[FD].odd == pds[FD].registered);
    both_found_it_gone();
}

/* Closed meanwhile, or before. */
static void both_closed(void)
{
    CHECK(kernel.closed);
    both_have(-EBADF, -EBADF);
}

static void both_cancelled(void)
{
    both_have(-ECANCELED, -ECANCELED);
}

static void both_timed_out(void)
{
    both_have(-ETIMEDOUT, -ETIMEDOUT);
}

static void past_deadlines(void)
{
    CHECK(pd_deadline(FD, 1, 1) == 0);
}

/* One event is for both: that there are bytes and room, or that the other side is gone. */
FDS_BOTH(both_by_one_edge, setup, both_moved, both_come)
FDS_BOTH(gone, setup, both_found_it_gone_and_odd, other_side_goes)
FDS_BOTH(gone_foreign, setup_foreign, both_found_it_gone, other_side_goes)

/* An edge of one direction is told with what the other is ready for; who waits there stays, or tries in vain. */
FDS_TOLD(both_by_two_edges, setup_registered, both_moved, one_is_told_after_the_other, reader,
         writer)

/* Each is woken, in both directions, and the last of them closes the number. */
FDS_BOTH(close_both, setup, both_closed, closer)
FDS_BOTH(close_both_foreign, setup_foreign, both_closed, closer)
FDS_BOTH(cancel_both, setup, both_cancelled, canceller)
FDS_BOTH(cancel_both_foreign, setup_foreign, both_cancelled, canceller)
FDS_BOTH(past_deadlines_of_both, setup, both_timed_out, past_deadlines)

/* It wakes one in each direction, and that one the next: who finds it gone uses nothing up. */
static void two_writers_found_it_gone(void)
{
    CHECK(count(-EPIPE) == 2);
    nobody_is_left();
}

FDS(gone_and_two_writers, setup, two_writers_found_it_gone, other_side_goes, writer, writer)

/* Who begins after the end has been told of is refused, though there is room and another is about to leave. */
static void close_then_write(void)
{
    closer();
    writer();
    CHECK(result[model_self()] == -EBADF);
}

static void cancel_then_write(void)
{
    canceller();
    writer();
    CHECK(result[model_self()] == -ECANCELED);
}

FDS_TOLD(write_after_close, setup_registered_room, nobody_is_left, close_then_write, reader)
FDS_TOLD(write_after_cancel, setup_registered_room, nobody_is_left, cancel_then_write, reader)

/* An edge of one direction, and then the end of both: at most one has moved, the rest is told that it is closed. */
static void room_then_close(void)
{
    room_comes();
    closer();
}

static void one_may_have_written(void)
{
    int written = result[WRITER] == 1;
    CHECK(kernel.closed && written + kernel.room == 1);
    both_have(-EBADF, written ? 1 : -EBADF);
}

FDS_BOTH(room_then_close_both, setup, one_may_have_written, room_then_close)

/* A deadline of one direction is nothing to the other. */
static void past_for_the_reader(void)
{
    past_deadline_of_reading();
    room_comes();
}

static void past_for_the_reader_told(void)
{
    past_deadline_of_reading();
    come_and_tell(0, 1, false);
}

static void past_for_the_writer_told(void)
{
    past_deadline_of_writing();
    come_and_tell(1, 0, false);
}

static void only_written(void)
{
    both_have(-ETIMEDOUT, 1);
}

static void only_read(void)
{
    both_have(1, -ETIMEDOUT);
}

FDS(room_and_deadline_of_reading, setup, one_written, room_comes, past_deadline_of_reading, writer)
FDS_TOLD(only_the_reader_is_late, setup_registered, only_written, past_for_the_reader_told, reader,
         writer)
FDS_TOLD(only_the_writer_is_late, setup_registered, only_read, past_for_the_writer_told, reader,
         writer)

/* --- calls that could block: a turn in one direction is none in the other --------------------------------------- */

static ssize_t cannot_try(struct io *io)
{
    (void)io;
    return IO_BLOCKS;
}

static ssize_t take_at_once(struct io *io)
{
    ssize_t r = take(io);
    CHECK(r == 1);
    return r;
}

static ssize_t give_at_once(struct io *io)
{
    ssize_t r = give(io);
    CHECK(r == 1);
    return r;
}

static void reader_in_turn(void)
{
    struct io io = IO_INIT(FD, FD_READ, cannot_try, take_at_once);
    io.total = 1;
    result[model_self()] = call(&io);
}

static void writer_in_turn(void)
{
    struct io io = IO_INIT(FD, FD_WRITE, cannot_try, give_at_once);
    io.total = 1;
    result[model_self()] = call(&io);
}

static void nothing_is_claimed(void)
{
    CHECK(!pds[FD].claims);
    both_moved();
}

static void written_in_turn(void)
{
    CHECK(!pds[FD].claims);
    two_written();
}

static void setup_both(void)
{
    setup_foreign();
    kernel.bytes = kernel.room = 1;
}

/* Each is ready, and made at once, whosever turn the other direction is. */
FDS(in_turn_both, setup_both, nothing_is_claimed, reader_in_turn, writer_in_turn)
/* Two of one direction one after the other; who had to wait for its turn is woken for it: no event is to come. */
FDS_TOLD(writers_in_turn, setup_registered_room, written_in_turn, writer_in_turn, writer_in_turn)

/* --- who only watches: one wait for both, of which the first that comes wins ------------------------------------ */

static void watch(int events)
{
    result[model_self()] = pirn_fd_wait(FD, events, PIRN_NEVER);
}

static void watcher_of_room(void)
{
    watch(PIRN_OUT);
}

static void watcher_of_both(void)
{
    watch(PIRN_IN | PIRN_OUT);
}

static void room_seen(void)
{
    CHECK(count(PIRN_OUT) == 1 && kernel.room == 1);
    nobody_is_left();
}

/* It looks at one after the other, so what came in between may be told without the other. */
static void some_seen(void)
{
    CHECK(count(PIRN_IN) + count(PIRN_OUT) + count(PIRN_IN | PIRN_OUT) == 1);
    nobody_is_left();
}

static void watching_closed(void)
{
    CHECK(kernel.closed && count(-EBADF) == 1);
    nobody_is_left();
}

static void watching_cancelled(void)
{
    CHECK(count(-ECANCELED) == 1);
    nobody_is_left();
}

/* One who watches, and one who writes: an edge for two is for both. */
static void two_rooms_are_told(void)
{
    come_and_tell(0, 2, false);
}

static void seen_and_written(void)
{
    CHECK(count(PIRN_OUT) == 1 && count(1) == 1 && kernel.room == 1);
    nobody_is_left();
}

_Static_assert(PIRN_OUT != 1, "count() tells a byte that was written from room that was seen");

/* It is told of what it asked for, and of nothing else, and leaves that; or why it ended, once for both directions. */
FDS(watcher_and_room, setup, room_seen, room_comes, watcher_of_room)
FDS(watcher_of_both_and_room, setup_foreign, room_seen, room_comes, watcher_of_both)
FDS(watcher_of_both_and_both, setup, some_seen, both_come, watcher_of_both)
FDS(watcher_of_both_and_gone, setup, some_seen, other_side_goes, watcher_of_both)
FDS(watcher_of_both_and_two_edges, setup, some_seen, one_comes_after_the_other, watcher_of_both)
FDS(watcher_of_both_and_close, setup, watching_closed, closer, watcher_of_both)
FDS(watcher_of_both_and_cancel, setup, watching_cancelled, canceller, watcher_of_both)
FDS(watcher_of_both_and_deadline, setup, timed_out, past_deadline_of_writing, watcher_of_both)
FDS(watcher_and_deadline_of_reading, setup, room_seen, past_for_the_reader, watcher_of_room)
FDS_TOLD(watcher_and_writer, setup_registered, seen_and_written, two_rooms_are_told,
         watcher_of_room, writer)

/* --- a number that is another file's by now: closed behind pirn's back, and made anew --------------------------- */

static void is_another(void)
{
    model_lock(&kernel.key);
    kernel.registered = false;
    model_unlock(&kernel.key);
}

static void made_anew(void)
{
    is_another();
    CHECK(pd_made(FD, FD_SOCKET, true, false) == 0);
    room_comes();
}

/* By what is not a socket of pirn's. */
static void renewed_only(void)
{
    is_another();
    pd_renew(FD);
    room_comes();
}

/* Not pirn's, and nobody has said so: another call is there still, for which the old one was registered. */
static void setup_another_behind(void)
{
    setup_foreign();
    pds[FD].registered = true;
    pds[FD].refs = 1;
}

/* Who begins to wait has the new one registered. */
static void written_to_another(void)
{
    CHECK(count(1) == 1 && kernel.room == 0 && pds[FD].refs == 1);
}

FDS(another_behind_a_writer, setup_another_behind, written_to_another, room_comes, writer)

/* Who waited for the old one is told; who had not begun to has the new one. */
static void told_or_written(void)
{
    CHECK(result[WRITER] == (kernel.room ? -EBADF : 1));
    nobody_is_left();
}

FDS(made_anew_under_a_writer, setup, told_or_written, made_anew, writer)
FDS(renewed_under_a_writer, setup, told_or_written, renewed_only, writer)

/* Nothing is left of the old one: that it was cancelled, its deadline, or whose turn it was. */
static void setup_old_one(void)
{
    setup_registered();
    pds[FD].cancelled = true;
    pds[FD].deadline[FD_WRITE] = 1;
    pds[FD].claims = PD_CLAIMED(FD_WRITE);
}

static void made_anew_and_written(void)
{
    made_anew();
    writer_in_turn();
}

FDS(made_anew_as_new, setup_old_one, one_written, made_anew_and_written)

/* --- with io_uring: an operation for each direction ------------------------------------------------------------- */

/* One that polls again and again for each: as after the first waits. */
static void setup_ring_asked(void)
{
    bool fresh;
    setup_ring();
    for (int mode = FD_READ; mode <= FD_WRITE; mode++) {
        CHECK(ring_ask_locked(&pds[FD], FD, (enum fd_mode)mode, &fresh) == 0 && fresh);
        ring[mode].sent = ring[mode].fresh;
        ring[mode].fresh = NULL;
    }
    kernel.told = false;
}

/* As with epoll; and when nobody waits the ring has nothing of what is closed, or is not pirn's. */
FDS_RING(ring_room, setup_ring, one_written, room_comes, writer)
FDS_RING(ring_room_foreign, setup_ring_alone, one_written, room_comes, writer)
FDS_RING(ring_room_before, setup_ring_room, one_written, room_comes, writer_twice)
FDS_RING(ring_room_bit_by_bit, setup_ring, all_written, room_comes_twice, writer_of_two)
FDS_RING(ring_two_writers, setup_ring, two_written, two_rooms_come, writer, writer)
FDS_RING(ring_room_and_close, setup_ring, written_or_closed, room_comes, closer, writer)
FDS_RING(ring_room_and_close_foreign, setup_ring_foreign, written_or_closed, room_comes, closer,
         writer)
FDS_RING(ring_room_and_cancel, setup_ring, written_or_cancelled, room_comes, canceller, writer)
FDS_RING(ring_past_deadline_foreign, setup_ring_alone, timed_out, past_deadline_of_writing, writer)

/* It lets go of the old one, and has the new one, if somebody waits for that. */
FDS_RING(ring_made_anew, setup_ring, told_or_written, made_anew, writer)

/* Each operation tells its own direction; that the other side is gone is told by both, and to both. */
static void ring_tells_both(void)
{
    ring_step();
    ring_step();
}

FDS_TOLD(ring_both, setup_ring_asked, both_moved, ring_tells_both, reader, writer, both_come)
FDS_TOLD(ring_gone, setup_ring_asked, both_found_it_gone, ring_tells_both, reader, writer,
         other_side_goes)

/* The last who leaves waits until the ring has let go of both. */
FDS_RING(ring_close_both, setup_ring, both_closed, reader, writer, closer)
FDS_RING(ring_close_both_foreign, setup_ring_foreign, both_closed, reader, writer, closer)
FDS_RING(ring_cancel_both, setup_ring, both_cancelled, reader, writer, canceller)
