/* SPDX-License-Identifier: MIT */
/*
 * Calls on descriptors: try, and if there is nothing yet, wait and try again.
 *
 * The try does not block and is made in the runtime: it is short, and the P stays. A file that can't be
 * tried is waited for, and then the plain call is made in a blocking section, by one at a time and for no more
 * than there is room for (rw.c), so that it does not block, and can be ended. It still does if another process is
 * faster; and for files, which are never not ready. Flags of descriptors are never changed (rule R7).
 *
 * The wait is a plain park, or a select if a context or deadline can end it; pd.c has what ends it. What is
 * complete wins over both, except that a call that begins too late does not begin.
 *
 * A foreign thread does the same, and waits on its note. Without a runtime it waits by poll(); if the
 * runtime ends while it waits it is woken (pd_forget_all), and goes on that way.
 */
#include "io/io.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "ctx/ctx.h"
#include "os/sysio.h"
#include "sync/select.h"

#define PAUSE_FIRST (2 * PIRN_MS)
#define PAUSE_MOST (128 * PIRN_MS)

static bool outside(const struct visit *v)
{
    return !v->mp && !v->entered;
}

/* After a wait. A foreign thread may find another runtime, which knows nothing of its call: as if none. */
static void come_in(struct visit *v, const struct io *io, bool goroutine)
{
    v->mp = goroutine ? getm() : NULL;
    v->entered = !goroutine && foreign_enter();
    if (unlikely(v->entered && sched.era != io->era)) {
        foreign_leave();
        v->entered = false;
    }
}

/* --- the wait -------------------------------------------------------------------------------------------- */

static bool commit_arm(struct g *gp, void *arg)
{
    (void)gp;
    return pd_arm(arg);
}

static int wait_plain(struct visit *v, struct io *io)
{
    struct waiter foreign;
    struct chan_op op = {.fd = {.number = io->fd,
                                .edge = io->look.edge,
                                .mode = (uint8_t)io->mode,
                                .outlives = !v->mp}};
    bool goroutine = v->mp;
    op.waiter = waiter_of(v->mp, &foreign, &op);
    visit_park(*v, op.waiter, commit_arm, &op, io->mode == FD_READ ? WAIT_READ : WAIT_WRITE);
    come_in(v, io, goroutine);
    return op.fd.why;
}

static NOINLINE int wait_select(struct visit *v, struct io *io, struct pirn_ctx *ctx, int64_t until)
{
    pirn_case cases[2] = {
        {.kind_ = io->mode == FD_READ ? PIRN_CASE_READABLE_ : PIRN_CASE_WRITABLE_, .fd_ = io->fd},
        {.kind_ = PIRN_CASE_RECV_, .chan_ = ctx ? ctx_done(ctx) : NULL}};
    struct chan_op ops[2];
    struct select s = SELECT_INIT(cases, ops, 2, until);
    bool goroutine = v->mp;
    s.fds = s.fd_tries = s.fd_outlive = s.in_order = true;
    s.fd_edge = io->look.edge;
    if (select_try(*v, &s) >= 0) {
        return ctx_err(ctx);
    }
    if (until <= now_ns()) {
        select_unlock(&s);
        return FD_TIME;
    }
    void *winner = select_wait(*v, &s, io->mode == FD_READ ? WAIT_READ_UNTIL : WAIT_WRITE_UNTIL);
    come_in(v, io, goroutine);
    return winner == &ops[0]               ? ops[0].fd.why
           : winner == select_timer_of(&s) ? FD_TIME
                                           : ctx_err(ctx);
}

static int64_t first_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void sleep_outside(int64_t ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

/* A pause that can't be made by the poller: there may be no descriptor for one. */
static int pause_without_poller(struct visit *v, const struct io *io, int64_t ns)
{
    bool goroutine = v->mp;
    int err = 0;
    if (goroutine) {
        leave();
        err = pirn_sleep(ns);
        enter();
    } else {
        foreign_leave();
        sleep_outside(ns);
    }
    come_in(v, io, goroutine);
    return err;
}

static int wait_for_a_moment(struct visit *v, struct io *io, struct pirn_ctx *ctx, int64_t until)
{
    io->pause = io->pause ? first_of(2 * io->pause, PAUSE_MOST) : PAUSE_FIRST;
    int64_t then = now_ns() + io->pause;
    int err = wait_select(v, io, ctx, first_of(until, then));
    if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOSPC) {
        err = pause_without_poller(v, io, io->pause);
    }
    return err == FD_TIME && now_ns() < until ? 0 : err;
}

/*
 * The time that it knew of is up. But the deadline may have been changed between the look and now, and by
 * somebody who was told so in time: what counts is the one that is there after the clock was read.
 * 0: there is time; or -errno.
 */
static NOINLINE int time_is_up(struct pd *pd, struct io *io)
{
    int64_t now = now_ns();
    int err = pd_again(pd, io->mode, &io->look);
    return !err && first_of(io->deadline, io->look.deadline) <= now ? -ETIMEDOUT : err;
}

/* 0: try again; FD_NOT_POLLABLE; or -errno. */
static int io_wait(struct visit *v, struct pd *pd, struct io *io, bool pause)
{
    int64_t until = first_of(io->deadline, io->look.deadline);
    struct pirn_ctx *ctx = io->no_ctx ? NULL : ctx_of(v->mp);
    int err = unlikely(pause)                       ? wait_for_a_moment(v, io, ctx, until)
              : likely(!ctx && until == PIRN_NEVER) ? wait_plain(v, io)
                                                    : wait_select(v, io, ctx, until);
    if (unlikely(outside(v))) {
        return err == FD_TIME ? -ETIMEDOUT : err;
    }
    return err == FD_TIME ? time_is_up(pd, io) : err ? err : pd_again(pd, io->mode, &io->look);
}

/* --- the call that blocks -------------------------------------------------------------------------------- */

static ssize_t call_blocking(struct visit *v, struct io *io)
{
    bool goroutine = v->mp;
    ssize_t r;
    if (goroutine) {
        leave();
        pirn_blocking_begin();
        r = io->block(io);
        pirn_blocking_end();
        enter();
    } else {
        foreign_leave();
        r = io->block(io);
    }
    come_in(v, io, goroutine);
    return r;
}

static short poll_events(const struct io *io)
{
    return io->mode == FD_READ ? POLLIN | POLLPRI | POLLRDHUP : POLLOUT;
}

/* A write that goes on until all is written. */
static bool has_more(struct io *io, ssize_t r)
{
    return r > 0 && io->all && (io->done += (size_t)r) < io->total;
}

/* No runtime runs, or it has ended meanwhile. */
static ssize_t run_outside(struct io *io)
{
    for (;;) {
        ssize_t r = io->attempt(io);
        /* A file is always ready for poll(), whatever is in the page cache. */
        if (r == IO_BLOCKS || r == IO_BLOCK_NOW
            || (r == -EAGAIN && io->block && !io->dont_wait && sys_is_file(io->fd))) {
            r = io->block(io);
        }
        if (has_more(io, r)) {
            continue;
        }
        if (r == IO_PAUSE && now_ns() < io->deadline) {
            sleep_outside(PAUSE_FIRST);
        } else if (r == IO_PAUSE) {
            return -ETIMEDOUT;
        } else if (r != -EAGAIN || io->dont_wait) {
            return r;
        }
        int ready = r == IO_PAUSE ? 1 : sys_poll(io->fd, poll_events(io), io->deadline);
        if (ready <= 0) {
            return ready ? ready : -ETIMEDOUT;
        }
    }
}

/* --- try and wait ------------------------------------------------------------------------------------------ */

static bool must_wait(ssize_t r)
{
    return r == -EAGAIN || r == IO_BLOCKS || r == IO_PAUSE;
}

/* IO_BLOCKS: it is another's turn, or not ready. */
static NOINLINE ssize_t call_in_turn(struct visit *v, struct pd *pd, struct io *io)
{
    if (!pd_claim(pd, io->mode, &io->look)) {
        return IO_BLOCKS;
    }
    ssize_t r = fd_is_ready(io->fd, io->mode) ? call_blocking(v, io) : IO_BLOCKS;
    if (!outside(v)) {
        pd_unclaim(pd, io->mode);
    }
    return r;
}

static ssize_t attempt(struct visit *v, struct pd *pd, struct io *io)
{
    ssize_t r = io->attempt(io);
    if (unlikely(r == IO_BLOCK_NOW)) {
        if (io->dont_wait) {
            return -EAGAIN;
        }
        r = call_blocking(v, io);
    } else if (unlikely(r == IO_BLOCKS)) {
        r = call_in_turn(v, pd, io);
    }
    if (io->makes && r >= 0 && !outside(v)) {
        bool streams = io->look.streams || (io->look.kind == FD_ANY && fd_is_tcp((int)r));
        int err = pd_made((int)r, FD_SOCKET, streams, v->mp);
        if (err) {
            sys_close((int)r);
            return err;
        }
    }
    return r;
}

/* The context, and a deadline that is over before it begins. */
static int may_begin(const struct visit *v, struct pd *pd, struct io *io)
{
    struct pirn_ctx *ctx = io->no_ctx ? NULL : ctx_of(v->mp);
    int err = unlikely(ctx) ? ctx_err(ctx) : 0;
    int64_t until = first_of(io->deadline, io->look.deadline);
    return !err && until != PIRN_NEVER && until <= now_ns() ? time_is_up(pd, io) : err;
}

/* One that has written some, and has more: 0, or why it is over. */
static int go_on(const struct visit *v, struct pd *pd, struct io *io)
{
    int err = pd_again(pd, io->mode, &io->look);
    err = err ? err : may_begin(v, pd, io);
    io->leaves_room = err;
    return err;
}

static ssize_t try_and_wait(struct visit *v, struct pd *pd, struct io *io)
{
    ssize_t r = may_begin(v, pd, io);
    if (unlikely(r)) {
        return r;
    }
    bool spare = io->look.empty && io->hints;
    for (;;) {
        r = spare ? -EAGAIN : attempt(v, pd, io);
        spare = false;
        if (has_more(io, r) && !outside(v)) {
            if ((r = go_on(v, pd, io))) {
                return r;
            }
            continue;
        }
        if (!must_wait(r) || unlikely(outside(v))) {
            return r;
        }
        if (unlikely(io->dont_wait)) {
            return -EAGAIN;
        }
        int err = io_wait(v, pd, io, r == IO_PAUSE);
        if (unlikely(err == FD_NOT_POLLABLE)) {
            r = call_blocking(v, io);
            if (has_more(io, r) && !outside(v)) {
                if ((r = go_on(v, pd, io))) {
                    return r;
                }
                continue;
            }
            if (!must_wait(r)) {
                return r;
            }
            err = outside(v) ? -EAGAIN : pause_without_poller(v, io, PIRN_MS); /* a strange file */
        }
        if (err) {
            return err;
        }
    }
}

static bool ended_early(ssize_t r)
{
    return r == -EAGAIN || r == -ETIMEDOUT || r == -ECANCELED || r == -EBADF;
}

static void io_leave(const struct visit *v)
{
    if (likely(v->mp)) {
        leave();
    } else if (v->entered) {
        foreign_leave();
    }
}

static ssize_t result_of(const struct io *io, ssize_t r)
{
    return io->all && io->done ? (ssize_t)io->done : r;
}

ssize_t io_run(struct io *io)
{
    struct visit v = {.mp = enter(), .again = true};
    if (unlikely(!v.mp) && !(v.entered = foreign_enter())) {
        return result_of(io, run_outside(io));
    }
    int second = -1;
    io->era = sched.era;
    struct pd *pd = pd_get(io->fd);
    ssize_t r = likely(pd) ? pd_begin(pd, io->mode, &io->look) : pd_none(io->fd);
    if (likely(!r)) {
        r = try_and_wait(&v, pd, io);
        if (likely(!outside(&v))) {
            bool drained = io->hints && r > 0 && (size_t)r < io->total;
            /* One that paused left what it was woken for. */
            bool passes_on = !ended_early(r) || io->pause || io->leaves_room;
            second = pd_end(pd, io->fd, io->mode, passes_on, drained, io->look.edge);
            if (unlikely(second == PD_LETS_GO)) {
                int err;
                second = pd_wait_gone(&v, io->fd, &err);
            }
        }
    }
    io_leave(&v);
    if (unlikely(second >= 0)) {
        pirn_blocking_begin();
        sys_close(second);
        pirn_blocking_end();
    }
    if (unlikely(outside(&v)) && must_wait(r)) {
        io->deadline = first_of(io->deadline, io->look.deadline); /* the runtime has forgotten it */
        r = run_outside(io);
    }
    return result_of(io, r);
}
