/* SPDX-License-Identifier: MIT */
/*
 * A proxy. Where to is fixed, or each client says it in SOCKS5 (RFC 1928: no authentication, CONNECT):
 *
 *     proxy -addr 127.0.0.1:1080                       curl --socks5-hostname 127.0.0.1:1080 ...
 *     proxy -addr 127.0.0.1:8080 -to example.org:80
 *
 * Two goroutines for each connection copy, one in each direction. The end of one direction is passed on
 * by half a close, and the other goes on; when nothing comes or is taken for -idle seconds, both end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <pirn.h>
#include <signal.h>
#include <stdlib.h>

#include "listen.h"

static const pirn_ns HELLO = 10 * PIRN_SEC;
static const char *target; /* NULL: SOCKS5 */
static pirn_ns idle;

/* Bytes from one to the other until there are no more. */
static void copy(int from, int to)
{
    char buf[16 << 10]; /* a goroutine's stack is big enough */
    ssize_t n;
    do {
        pirn_ns by = pirn_now() + idle; /* of both: who only listens is not idle, */
        pirn_fd_deadline(from, by, by);
        pirn_fd_deadline(to, by, by); /* but who takes nothing is */
        n = pirn_read(from, buf, sizeof buf);
    } while (n > 0 && (n = pirn_write_all(to, buf, (size_t)n)) > 0);
    pirn_shutdown(to, SHUT_WR);
    if (n < 0) { /* an error ends the other direction too */
        pirn_fd_cancel(from);
        pirn_fd_cancel(to);
    }
}

/* Greeting: version, number of methods, methods. 0 or -errno. */
static int greet(int fd)
{
    unsigned char head[2], methods[255];
    if (pirn_read_full(fd, head, 2) != 2 || head[0] != 5
        || pirn_read_full(fd, methods, head[1]) != head[1]) {
        return -EPROTO;
    }
    bool good = memchr(methods, 0, head[1]);
    return pirn_write_all(fd, good ? "\5\0" : "\5\xff", 2) == 2 && good ? 0 : -EACCES;
}

/* Request: version, command, 0, type of address, address, port; as an address for pirn_dial. */
static int read_request(int fd, char *addr, size_t size)
{
    unsigned char head[4], port[2], len = 0;
    char host[256] = {0}, text[INET6_ADDRSTRLEN];
    if (pirn_read_full(fd, head, 4) != 4 || head[0] != 5) {
        return -EPROTO;
    }
    bool name = head[3] == 3;
    size_t n = head[3] == 1 ? 4 : head[3] == 4 ? 16 : 0;
    n = name && pirn_read_full(fd, &len, 1) == 1 ? len : n;
    if (n == 0 || pirn_read_full(fd, host, n) != (ssize_t)n || pirn_read_full(fd, port, 2) != 2) {
        return n == 0 && !name ? -EAFNOSUPPORT : -EPROTO;
    }
    if (name ? strlen(host) != n || strpbrk(host, ":[]/@")
             : !inet_ntop(n == 4 ? AF_INET : AF_INET6, host, text, sizeof text)) {
        return -EPROTO;
    }
    snprintf(addr, size, n == 16 && !name ? "[%s]:%d" : "%s:%d", name ? host : text,
             port[0] << 8 | port[1]);
    return head[1] == 1 ? 0 : -EOPNOTSUPP;
}

static unsigned char socks_code(int err)
{
    return err == 0               ? 0
           : err == -ECONNREFUSED ? 5
           : err == -ETIMEDOUT    ? 6
           : err == -EOPNOTSUPP   ? 7
           : err == -EAFNOSUPPORT ? 8
                                  : 4; /* can't be reached */
}

/* Where the client wants to go: a descriptor, or -errno. */
static int reach(int fd)
{
    char addr[300];
    if (target) {
        return pirn_dial_until("tcp", target, pirn_now() + HELLO);
    }
    pirn_fd_deadline(fd, pirn_now() + HELLO, pirn_now() + 2 * HELLO);
    if (greet(fd) != 0) {
        return -EPROTO;
    }
    int err = read_request(fd, addr, sizeof addr);
    int to = err ? err : pirn_dial_until("tcp", addr, pirn_now() + HELLO);
    unsigned char reply[10] = {5, socks_code(to < 0 ? to : 0), 0, 1};
    pirn_write_all(fd, reply, sizeof reply);
    return to;
}

static void serve(int fd)
{
    int to = reach(fd);
    if (to >= 0) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, copy, to, fd);
        copy(fd, to);
        pirn_wg_wait(&wg);
        pirn_close(to);
    }
    pirn_close(fd);
}

static int run(void *arg)
{
    pirn_wg running = {0};
    pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGINT, SIGTERM}, 2);
    pirn_ctx_use(ctx); /* those who are spawned have it too, and end with it */
    int listener = listen_and_say("proxy", arg), fd = listener;
    while (listener >= 0 && (fd = pirn_accept(listener, NULL, NULL)) >= 0) {
        pirn_wg_go(&running, serve, fd);
    }
    pirn_wg_wait(&running);
    pirn_close(listener);
    pirn_ctx_release(ctx);
    return fd == -ECANCELED ? 0 : 1;
}

int main(int argc, char **argv)
{
    enum { ADDR, TO, IDLE };
    static const struct option options[] = {
        {"addr", 1, NULL, ADDR}, {"to", 1, NULL, TO}, {"idle", 1, NULL, IDLE}, {NULL, 0, NULL, 0}};
    char *args[] = {[ADDR] = "127.0.0.1:1080", [TO] = NULL, [IDLE] = "600"};
    for (int o; (o = getopt_long_only(argc, argv, "", options, NULL)) != -1;) {
        if (o == '?') {
            fprintf(stderr, "usage: proxy [-addr HOST:PORT] [-to HOST:PORT] [-idle SECONDS]\n");
            return 2;
        }
        args[o] = optarg;
    }
    target = args[TO];
    idle = (pirn_ns)(strtod(args[IDLE], NULL) * (double)PIRN_SEC);
    return pirn_run(run, args[ADDR]);
}
