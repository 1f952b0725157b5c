/* SPDX-License-Identifier: MIT */
/* One descriptor and the context, as a select. */
#include "io/fdwait.h"

#include <errno.h>
#include <poll.h>

#include "ctx/ctx.h"
#include "io/poller.h"

static int wait_thread(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    while (poll(&p, 1, -1) < 0) {
        if (errno != EINTR && errno != EAGAIN) {
            return -errno;
        }
    }
    return 0;
}

static int wait_for(int fd, pirn_case ready, short events)
{
    struct m *mp = stop_point();
    if (!mp) {
        return wait_thread(fd, events);
    }
    struct pirn_ctx *ctx = ctx_of(mp);
    pirn_case cases[2] = {ready, {.kind_ = PIRN_CASE_RECV_, .chan_ = ctx ? ctx_done(ctx) : NULL}};
    int err = ctx ? ctx_err(ctx) : 0;
    err = err ? err : poller_start();
    return err ? err : pirn_selectv(cases, 2) == 0 ? 0 : ctx_err(ctx);
}

int fd_wait_in(int fd)
{
    return wait_for(fd, (pirn_case){.kind_ = PIRN_CASE_READABLE_, .fd_ = fd}, POLLIN);
}

int fd_wait_out(int fd)
{
    return wait_for(fd, (pirn_case){.kind_ = PIRN_CASE_WRITABLE_, .fd_ = fd}, POLLOUT);
}
