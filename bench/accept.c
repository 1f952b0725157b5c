/* SPDX-License-Identifier: MIT */
/*
 * Connections that come and go: accept, a goroutine, one byte to the client, the end of the connection,
 * close; op = one connection, in CPU time of the server. accept_rate: how many a second, as the time of one.
 * $N clients at a time.
 *
 * The clients are an epoll loop on one thread (load.h). They end a connection by a reset, so that no address
 * is kept from being used again.
 */
#include "load.h"

/* --- the clients -------------------------------------------------------------------------------------- */

static void connect_one(int epoll, int port)
{
    struct sockaddr_in to = load_addr(port);
    struct linger reset = {1, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    bench_check(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0
                    && (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS)
                    && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0,
                "connect");
}

static int load(int port, int conns, int64_t ns)
{
    struct epoll_event events[256];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    long n = 0;
    char c;
    load_begin();
    for (int i = 0; i < conns; i++) {
        connect_one(epoll, port);
    }
    for (int64_t until = load_now() + ns; load_now() < until;) {
        int k = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < k; i++) {
            bench_check(recv(events[i].data.fd, &c, 1, 0) == 1, "recv");
            close(events[i].data.fd);
            connect_one(epoll, port);
            n++;
        }
    }
    printf("%ld\n", n);
    return 0;
}

/* --- the server ------------------------------------------------------------------------------------------ */

static void serve(int fd)
{
    char c;
    pirn_write(fd, "x", 1);
    while (pirn_read(fd, &c, 1) > 0) {
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
    double done;
    bench_value("accept", load_run(accept_all, bench_int("N", 50), &done));
    bench_value("accept_rate", load_ns_each(done));
    return 0;
}

int main(int argc, char **argv)
{
    return load_main(argc, argv, load, run);
}
