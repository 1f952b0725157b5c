/* SPDX-License-Identifier: MIT */
/* Pollers by epoll; poll.h has the contract. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/tool.h"
#include "base/util.h"
#include "os/fault.h"
#include "os/os.h"
#include "os/poll.h"

#define EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

static at_u32 no_pwait2; /* the kernel is older than 5.11, or does not allow it */

static int result(int r, int saved)
{
    r = r < 0 ? -errno : r;
    errno = saved;
    return r;
}

int poll_open(void)
{
    int saved = errno;
    return result((int)SYS_TRY(SYS_CALL_EPOLL_OPEN, epoll_create1(EPOLL_CLOEXEC)), saved);
}

static int add(int poller, int fd, uint32_t events, uint64_t tag, bool change)
{
    struct epoll_event e = {.events = events, .data.u64 = tag};
    int saved = errno;
    int r = (int)SYS_TRY(SYS_CALL_EPOLL_ADD, epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e));
    if (r < 0 && errno == EEXIST && change) {
        r = (int)SYS_TRY(SYS_CALL_EPOLL_ADD, epoll_ctl(poller, EPOLL_CTL_MOD, fd, &e));
    }
    return result(r, saved);
}

int poll_add(int poller, int fd, uint64_t tag)
{
    return add(poller, fd, EVENTS, tag, true);
}

int poll_add_new(int poller, int fd, uint64_t tag)
{
    return add(poller, fd, EVENTS, tag, false);
}

int poll_add_level(int poller, int fd, uint64_t tag)
{
    return add(poller, fd, EPOLLIN, tag, true);
}

/* It may be gone already. */
void poll_remove(int poller, int fd)
{
    struct epoll_event none = {0};
    int saved = errno;
    (void)SYS_TRY(SYS_CALL_EPOLL_REMOVE, epoll_ctl(poller, EPOLL_CTL_DEL, fd, &none));
    errno = saved;
}

uint32_t poll_ready_of(uint32_t events)
{
    uint32_t odd = events & (EPOLLHUP | EPOLLERR);
    return (events & (EPOLLIN | EPOLLRDHUP | EPOLLPRI) || odd ? POLL_READ : 0u)
           | (events & EPOLLOUT || odd ? POLL_WRITE : 0u)
           | (events & (EPOLLRDHUP | EPOLLPRI) || odd ? POLL_ODD : 0u);
}

/* In whole milliseconds, never early. */
static int wait_coarse(int poller, struct epoll_event *e, int n, int64_t left)
{
    int64_t ms = left == INT64_MAX ? -1 : left / 1000000 + (left % 1000000 != 0);
    return epoll_wait(poller, e, n, (int)(ms > INT32_MAX ? INT32_MAX : ms));
}

static int wait_until(int poller, struct epoll_event *e, int n, int64_t deadline)
{
    if (deadline == 0) {
        return epoll_wait(poller, e, n, 0);
    }
    int64_t left = deadline == INT64_MAX ? INT64_MAX : deadline - now_ns();
    left = left < 0 ? 0 : left;
    if (left == INT64_MAX || at_load(&no_pwait2, RELAXED) || !tool_knows_new_calls()) {
        return wait_coarse(poller, e, n, left);
    }
    struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    int r =
        (int)SYS_TRY(SYS_CALL_EPOLL_PWAIT2, syscall(SYS_epoll_pwait2, poller, e, n, &t, NULL, 0));
    if (r < 0 && (errno == ENOSYS || errno == EPERM)) {
        at_store(&no_pwait2, 1, RELAXED);
        return wait_coarse(poller, e, n, left);
    }
    tool_kernel_wrote(e, r > 0 ? (size_t)r * sizeof *e : 0);
    return r;
}

int poll_wait(int poller, struct poll_event *out, int n, int64_t deadline)
{
    struct epoll_event e[POLL_BATCH];
    int saved = errno;
    int r = (int)SYS_TRY(SYS_CALL_EPOLL_WAIT, wait_until(poller, e, n, deadline));
    r = result(r, saved);
    for (int i = 0; i < r; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the system call has filled it */
        out[i] = (struct poll_event){.tag = e[i].data.u64, .ready = poll_ready_of(e[i].events)};
    }
    return r == -EINTR ? 0 : r;
}

int poll_break_open(void)
{
    int saved = errno;
    return result((int)SYS_TRY(SYS_CALL_EVENTFD, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), saved);
}

void poll_break_tell(int fd)
{
    uint64_t one = 1;
    int saved = errno;
    if (write(fd, &one, sizeof one) < 0) {
        /* full: then it is readable */
    }
    errno = saved;
}

void poll_break_clear(int fd)
{
    uint64_t count;
    int saved = errno;
    if (read(fd, &count, sizeof count) < 0) {
        /* another was faster */
    }
    errno = saved;
}
