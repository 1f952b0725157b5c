/* SPDX-License-Identifier: MIT */
/* What the tests of the network share. */
#ifndef TESTS_GO_NET_H
#define TESTS_GO_NET_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pirn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "harness.h"

/* Where it listens, as a text for pirn_dial. */
__attribute__((unused)) static void addr_of(int fd, char *out, size_t room)
{
    struct sockaddr_storage any;
    socklen_t len = sizeof any;
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&any, &len), 0);
    if (any.ss_family == AF_UNIX) {
        struct sockaddr_un *un = (struct sockaddr_un *)&any;
        size_t n = len - offsetof(struct sockaddr_un, sun_path);
        memcpy(out, un->sun_path, n);
        out[n] = 0;
        if (!un->sun_path[0]) {
            out[0] = '@';
        }
        return;
    }
    if (any.ss_family == AF_INET) {
        char text[INET_ADDRSTRLEN];
        struct sockaddr_in *in = (struct sockaddr_in *)&any;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(out, room, "%s:%d", text, ntohs(in->sin_port));
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&any;
        char text[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
        snprintf(out, room, "[%s]:%d", strcmp(text, "::") ? text : "::1", ntohs(in6->sin6_port));
    }
}

/* One that listens, but answers nobody who comes: its queue is full. */
struct full {
    int listener, n, fds[8];
    char addr[64];
};

__attribute__((unused)) static void full_begin(struct full *f, uint32_t host)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    struct tcp_info queue = {0};
    socklen_t len = sizeof at;
    f->n = 0;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(f->listener, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(listen(f->listener, 0), 0);
    CHECK_EQ(getsockname(f->listener, (struct sockaddr *)&at, &len), 0);
    addr_of(f->listener, f->addr, sizeof f->addr);
    while (queue.tcpi_unacked <= queue.tcpi_sacked) { /* who are in it, and how many may be */
        CHECK_LT(f->n, 8);
        f->fds[f->n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(connect(f->fds[f->n++], (struct sockaddr *)&at, len), 0);
        do { /* connected is who has been answered, a moment before it is in the queue */
            len = sizeof queue;
            CHECK_EQ(getsockopt(f->listener, IPPROTO_TCP, TCP_INFO, &queue, &len), 0);
            len = sizeof at;
        } while (queue.tcpi_unacked < (unsigned)f->n);
    }
}

__attribute__((unused)) static void full_end(struct full *f)
{
    while (f->n)
        CHECK_EQ(close(f->fds[--f->n]), 0);
    CHECK_EQ(close(f->listener), 0);
}

/* Two ends of a TCP connection, both made by pirn. */
struct pair {
    int a, b;
};

__attribute__((unused)) static struct pair tcp_pair(void)
{
    char addr[128];
    struct pair p;
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    p.a = pirn_dial("tcp", addr);
    CHECK_GE(p.a, 0);
    p.b = pirn_accept(listener, NULL, NULL);
    CHECK_GE(p.b, 0);
    CHECK_EQ(pirn_close(listener), 0);
    return p;
}

__attribute__((unused)) static void close_pair(struct pair p)
{
    CHECK_EQ(pirn_close(p.a), 0);
    CHECK_EQ(pirn_close(p.b), 0);
}

/* A name for this machine; where there is none (a bare system has no /etc/hosts), its address. */
__attribute__((unused)) static const char *this_machine(void)
{
    struct addrinfo *found = NULL;
    bool known = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    if (known)
        freeaddrinfo(found);
    return known ? "localhost" : "127.0.0.1";
}

/* Until somebody waits in a call of that kind: nothing tells, so it looks. */
__attribute__((unused)) static void let_wait(void)
{
    pirn_sleep(2 * PIRN_MS);
}

/* A socket whose number is that, or the next that is free. */
__attribute__((unused)) static int listen_udp_as(int number, bool adopt)
{
    int fd = pirn_listen("udp", "127.0.0.1:0");
    CHECK_GE(fd, 0);
    int as = fcntl(fd, F_DUPFD_CLOEXEC, number);
    CHECK_GE(as, number);
    CHECK_EQ(pirn_close(fd), 0);
    if (adopt) {
        CHECK_EQ(pirn_fd_adopt(as), 0);
    }
    return as;
}

__attribute__((unused)) static int count_sockets(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct stat st = {.st_mode = 0};
        n += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    }
    return n;
}

#endif
