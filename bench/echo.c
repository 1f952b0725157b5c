/* SPDX-License-Identifier: MIT */
/*
 * A TCP echo server, one goroutine a connection; op = one request of 64 bytes, in CPU time of the server
 * (all its threads, user and system), and in time. N connections, each with one request under way.
 *
 * The clients (load.h) are an epoll loop on one thread. It has each connection echo once, and is ready.
 */
#include "load.h"

enum { SIZE = 64 };

/* --- the clients -------------------------------------------------------------------------------------- */

static int connect_one(int port)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = load_addr(port);
    bench_check(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void ask(int fd)
{
    static const char request[SIZE];
    bench_check(send(fd, request, SIZE, MSG_NOSIGNAL) == SIZE, "send");
}

/* Until so many answers have come, or it is time. *got: bytes of the answer, for each descriptor. */
static long collect(int epoll, int *got, long most, int64_t until, bool again)
{
    long n = 0;
    struct epoll_event events[256];
    char buf[SIZE];
    while (n < most && load_now() < until) {
        int k = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < k; i++) {
            int fd = events[i].data.fd;
            ssize_t r = recv(fd, buf, (size_t)(SIZE - got[fd]), 0);
            bench_check(r > 0, "recv");
            got[fd] += (int)r;
            if (got[fd] == SIZE) {
                got[fd] = 0;
                n++;
                if (again) {
                    ask(fd);
                }
            }
        }
    }
    return n;
}

static int load(int port, int conns, int64_t ns)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), *fds = calloc((size_t)conns, sizeof *fds);
    int *got = calloc((size_t)conns + 100, 2 * sizeof *got);
    for (int i = 0; i < conns; i++) {
        fds[i] = connect_one(port);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[i]};
        bench_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e) == 0, "epoll_ctl");
        ask(fds[i]);
    }
    bench_check(collect(epoll, got, conns, INT64_MAX, false) == conns, "warm up");
    load_begin();
    for (int i = 0; i < conns; i++) {
        ask(fds[i]);
    }
    printf("%ld\n", collect(epoll, got, INT64_MAX, load_now() + ns, true));
    return 0;
}

/* --- the server ------------------------------------------------------------------------------------------ */

static void serve(int fd)
{
    char buf[4096];
    ssize_t n;
    while ((n = pirn_read(fd, buf, sizeof buf)) > 0 && pirn_write(fd, buf, (size_t)n) == n) {
    }
    pirn_close(fd);
}

static void accept_all(int listener)
{
    for (int fd; (fd = pirn_accept(listener, NULL, NULL)) >= 0;) {
        pirn_go(serve, fd);
    }
}

static int run(void *arg)
{
    (void)arg;
    int conns = bench_int("N", 100);
    char name[32];
    double done;
    snprintf(name, sizeof name, "echo_%d", conns);
    bench_value(name, load_run(accept_all, conns, &done));
    snprintf(name, sizeof name, "echo_rate_%d", conns);
    bench_value(name, load_ns_each(done));
    return 0;
}

int main(int argc, char **argv)
{
    return load_main(argc, argv, load, run);
}
