/* SPDX-License-Identifier: MIT */
/* An echo by one loop over an epoll descriptor, edge-triggered: two calls a request, and the wait (echo.h). */
#include "echo.h"

#include <sys/epoll.h>

static int epoll;

static void watch(int fd, bool connection)
{
    struct epoll_event e = {.events = connection ? EPOLLIN | EPOLLET : EPOLLIN, .data.fd = fd};
    peer_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0, "epoll_ctl");
}

static void serve(int until)
{
    struct epoll_event events[128];
    char buf[4096];
    for (;;) {
        int n = epoll_wait(epoll, events, 128, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == until) {
                return;
            }
            ssize_t r = events[i].events & EPOLLIN ? recv(fd, buf, sizeof buf, MSG_DONTWAIT) : 0;
            peer_check(r <= 0 || send(fd, buf, (size_t)r, MSG_DONTWAIT | MSG_NOSIGNAL) == r,
                       "send");
        }
    }
}

static void ready(void)
{
    epoll = epoll_create1(EPOLL_CLOEXEC);
}

int main(int argc, char **argv)
{
    return echo_main(argc, argv, "a bare epoll loop", ready);
}
