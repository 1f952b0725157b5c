/* SPDX-License-Identifier: MIT */
/* The program's calls about a descriptor: closing it, its deadlines, waiting for it. pd.c has the design. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>

#include "ctx/ctx.h"
#include "io/io.h"
#include "os/sysio.h"
#include "sync/select.h"

static bool is_open(int fd)
{
    return sys_flags(fd) != -EBADF;
}

/* --- in the runtime, or beside it -------------------------------------------------------------------------- */

static bool come_in(struct visit *v)
{
    *v = (struct visit){.mp = enter(), .again = true};
    return v->mp || (v->entered = foreign_enter());
}

static void go_out(struct visit v)
{
    v.mp ? leave() : foreign_leave();
}

EXPORT int pirn_close(int fd)
{
    struct visit v;
    int err, second = -1;
    if (come_in(&v)) {
        second = pd_close(fd, &err);
        if (unlikely(second == PD_LETS_GO)) {
            second = pd_wait_gone(&v, fd, &err);
        }
        if (likely(v.mp || v.entered)) {
            go_out(v);
        }
    } else {
        err = sys_close(fd);
    }
    if (second >= 0) {
        pirn_blocking_begin();
        int late = sys_close(second);
        pirn_blocking_end();
        err = err ? err : late;
    }
    return err;
}

static void close_second(int second)
{
    if (unlikely(second >= 0)) {
        pirn_blocking_begin();
        sys_close(second);
        pirn_blocking_end();
    }
}

/* It owes others something: it comes back in any case. */
void fd_close_late(bool goroutine, int second)
{
    if (!goroutine) {
        sys_close(second);
        return;
    }
    leave();
    close_second(second);
    enter_anyway();
}

int fd_begin(struct fd_use *u, int fd, enum fd_mode mode)
{
    struct visit v;
    struct pd_look look = {.file = 0};
    *u = (struct fd_use){.fd = fd, .mode = mode};
    if (!come_in(&v)) {
        return 0;
    }
    struct pd *pd = pd_get(fd);
    int err = pd ? pd_begin(pd, mode, &look) : pd_none(fd);
    u->pd = err ? NULL : pd;
    u->file = look.file;
    u->era = sched.era;
    go_out(v);
    return err;
}

/* A thread may have stayed for longer than its runtime, which has forgotten its call then. */
static bool come_back(struct visit *v, const struct fd_use *u)
{
    if (!u->pd || !come_in(v)) {
        return false;
    }
    if (unlikely(sched.era != u->era)) {
        go_out(*v);
        return false;
    }
    return true;
}

int fd_again(struct fd_use *u, bool timed)
{
    struct visit v;
    struct pd_look look = {.file = u->file};
    if (!come_back(&v, u)) {
        return 0;
    }
    int64_t now = timed ? now_ns() : 0; /* before the look: time_is_up() in io.c */
    int err = pd_again(u->pd, u->mode, &look);
    go_out(v);
    return !err && look.deadline <= now ? -ETIMEDOUT : err;
}

/* second: what pd_end() has left to be done. */
static void end_visit(struct visit v, int fd, int second)
{
    int err;
    if (unlikely(second == PD_LETS_GO)) {
        second = pd_wait_gone(&v, fd, &err);
    }
    if (likely(v.mp || v.entered)) {
        go_out(v);
    }
    close_second(second);
}

void fd_end(struct fd_use *u)
{
    struct visit v;
    if (come_back(&v, u)) {
        end_visit(v, u->fd, pd_end(u->pd, u->fd, u->mode, true, false, 0));
    }
}

/*
 * What changes a descriptor is counted before it looks whether the number is open. Closed in between, it
 * would change a number that nobody has, and whoever has it next would find it so. In a visit, which
 * let_go() ends; 0 or -errno.
 */
static int hold(int fd, struct pd **held)
{
    struct pd *pd = pd_get(fd);
    int err = pd ? pd_hold(pd) : pd_none(fd);
    *held = err ? NULL : pd;
    return err ? err : is_open(fd) ? 0 : -EBADF;
}

static void let_go(struct visit v, int fd, struct pd *held)
{
    end_visit(v, fd, held ? pd_end(held, fd, FD_READ, false, false, 0) : -1);
}

EXPORT int pirn_fd_deadline(int fd, pirn_ns read, pirn_ns write)
{
    struct visit v;
    struct pd *held;
    if (!come_in(&v)) {
        return -ESRCH;
    }
    int err = hold(fd, &held);
    err = !err && sys_is_file(fd) ? -EINVAL : err;
    err =
        err ? err : pd_deadline(fd, read == PIRN_NEVER ? 0 : read, write == PIRN_NEVER ? 0 : write);
    let_go(v, fd, held);
    return err;
}

EXPORT int pirn_fd_cancel(int fd)
{
    struct visit v;
    struct pd *held;
    if (!come_in(&v)) {
        return -ESRCH;
    }
    int err = hold(fd, &held);
    err = err ? err : pd_cancel(fd);
    let_go(v, fd, held);
    return err;
}

bool fd_is_tcp(int fd)
{
    int domain = sys_sockopt(fd, SOL_SOCKET, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6)
           && sys_sockopt(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
}

/* Accept and connect can't be told not to wait: one that blocks is asked for its flags, as if not known. */
static enum fd_kind kind_of(int fd, int type)
{
    int flags = sys_flags(fd);
    bool may_block = (flags < 0 || !(flags & O_NONBLOCK)) && sys_peername(fd) == -ENOTCONN;
    return type < 0 ? FD_OTHER : may_block ? FD_ANY : FD_SOCKET;
}

EXPORT int pirn_fd_adopt(int fd)
{
    struct visit v;
    struct pd *held;
    if (!come_in(&v)) {
        return -ESRCH;
    }
    int err = hold(fd, &held);
    int type = sys_sockopt(fd, SOL_SOCKET, SO_TYPE);
    bool streams = type >= 0 && fd_is_tcp(fd) && !sys_has_ulp(fd);
    err = err ? err : pd_adopt(fd, kind_of(fd, type), streams);
    let_go(v, fd, held);
    return err;
}

/* Made in the runtime, so that it is known before this goroutine can be dropped. */
int fd_socket(int family, int type, bool streams)
{
    struct visit v;
    bool in = come_in(&v);
    int fd = sys_socket(family, type, 0);
    int err = in && fd >= 0 ? pd_made(fd, FD_SOCKET, streams, v.mp) : 0;
    if (err) {
        sys_close(fd);
    }
    if (in) {
        go_out(v);
    }
    return err ? err : fd;
}

void fd_renew(int fd)
{
    struct visit v;
    if (fd >= 0 && come_in(&v)) {
        pd_renew(fd);
        go_out(v);
    }
}

int fd_give(int fd)
{
    struct visit v;
    if (fd >= 0 && come_in(&v)) {
        pd_give(fd);
        go_out(v);
    }
    return fd;
}

EXPORT int pirn_shutdown(int fd, int how)
{
    struct visit v;
    struct pd *held;
    if (!come_in(&v)) {
        return sys_shutdown(fd, how);
    }
    int err = hold(fd, &held);
    err = err ? err : sys_shutdown(fd, how);
    let_go(v, fd, held);
    return err;
}

/* --- waiting until it is ready ------------------------------------------------------------------------------- */

static int look_now(int fd, int events)
{
    return (events & PIRN_IN && fd_is_ready(fd, FD_READ) ? PIRN_IN : 0)
           | (events & PIRN_OUT && fd_is_ready(fd, FD_WRITE) ? PIRN_OUT : 0);
}

/* 0: time is up. */
static int wait_outside(int fd, int events, int64_t deadline)
{
    short wanted = (short)((events & PIRN_IN ? POLLIN | POLLPRI | POLLRDHUP : 0)
                           | (events & PIRN_OUT ? POLLOUT : 0));
    int r = sys_poll(fd, wanted, deadline == 0 ? 1 : deadline);
    return r > 0 ? look_now(fd, events) : r;
}

/* In a visit, which it ends. 0: it was ready; FD_TIME: the time is up or has been changed; or -errno. */
static int wait_in(struct visit v, int fd, int events, int64_t deadline, uint32_t times)
{
    struct pirn_ctx *ctx = ctx_of(v.mp);
    pirn_case cases[3] = {
        {.kind_ = events & PIRN_IN ? PIRN_CASE_READABLE_ : PIRN_CASE_NONE_, .fd_ = fd},
        {.kind_ = events & PIRN_OUT ? PIRN_CASE_WRITABLE_ : PIRN_CASE_NONE_, .fd_ = fd},
        {.kind_ = PIRN_CASE_RECV_, .chan_ = ctx ? ctx_done(ctx) : NULL}};
    struct chan_op ops[3];
    struct select s = SELECT_INIT(cases, ops, 3, deadline);
    s.fds = s.fd_outlive = s.fd_timed = s.in_order = true;
    s.fd_edge = times;
    if (select_try(v, &s) >= 0) {
        go_out(v);
        return ctx_err(ctx);
    }
    if (deadline <= now_ns()) {
        select_unlock(&s);
        go_out(v);
        return FD_TIME;
    }
    void *winner = select_wait(v, &s, WAIT_SELECT);
    visit_waited_end(v);
    if (winner == select_timer_of(&s)) {
        return FD_TIME;
    }
    int i = (int)((struct chan_op *)winner - ops);
    if (unlikely(i < 2 && ops[i].fd.why == FD_ENDED)) {
        int r = wait_outside(fd, events, deadline);
        return r < 0 ? r : r ? 0 : -ETIMEDOUT;
    }
    return i == 2 ? ctx_err(ctx) : ops[i].fd.why == FD_NOT_POLLABLE ? 0 : ops[i].fd.why;
}

/* The deadlines of the descriptor, and whether it may be waited for at all. */
static int look_first(const struct fd_use *u, int events, int64_t *deadline, uint32_t *times)
{
    struct pd_look look = {.file = u->file};
    *times = pd_times(u->pd);
    for (int mode = FD_READ; mode <= FD_WRITE; mode++) {
        int err = pd_again(u->pd, (enum fd_mode)mode, &look);
        if (err) {
            return err;
        }
        if (events & (mode == FD_READ ? PIRN_IN : PIRN_OUT) && look.deadline < *deadline) {
            *deadline = look.deadline;
        }
    }
    return 0;
}

static int wait_counted(const struct fd_use *u, int events, pirn_ns deadline)
{
    struct visit v;
    int fd = u->fd;
    while (come_back(&v, u)) {
        struct pirn_ctx *ctx = ctx_of(v.mp);
        int64_t until = deadline, now = now_ns(); /* before the look: time_is_up() in io.c */
        uint32_t times = 0;
        int err = look_first(u, events, &until, &times);
        err = !err && ctx ? ctx_err(ctx) : err;
        int r = err ? err : look_now(fd, events);
        r = !r && until <= now ? -ETIMEDOUT : r;
        if (r) {
            go_out(v);
            return r;
        }
        err = wait_in(v, fd, events, until, times);
        if (err == FD_TIME) {
            continue;
        }
        r = err ? err : look_now(fd, events);
        return r ? r : events; /* another was faster: it was ready */
    }
    int r = wait_outside(fd, events, deadline);
    return r ? r : -ETIMEDOUT;
}

/* It is counted throughout: a number that is closed meanwhile would look ready. */
EXPORT int pirn_fd_wait(int fd, int events, pirn_ns deadline)
{
    not_forked();
    struct fd_use use;
    if (!(events & (PIRN_IN | PIRN_OUT)) || events & ~(PIRN_IN | PIRN_OUT)) {
        return -EINVAL;
    }
    int r = fd_begin(&use, fd, events & PIRN_IN ? FD_READ : FD_WRITE);
    r = r ? r : is_open(fd) ? wait_counted(&use, events, deadline) : -EBADF;
    int closed = r > 0 ? fd_again(&use, false) : 0;
    fd_end(&use);
    return closed ? closed : r;
}
