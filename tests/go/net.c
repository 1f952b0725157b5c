/* SPDX-License-Identifier: MIT */
/* Connections: what Go's tests of net assert, over loopback. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"
#include "net.h"

#define PROCS .procs = "1,2,4,16"

static void echo(int fd)
{
    char buf[4096];
    ssize_t n;
    while ((n = pirn_read(fd, buf, sizeof buf)) > 0) {
        CHECK_EQ(pirn_write_all(fd, buf, (size_t)n), n);
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(pirn_close(fd), 0);
}

static void serve(int listener)
{
    int fd;
    while ((fd = pirn_accept(listener, NULL, NULL)) >= 0) {
        pirn_go(echo, fd);
    }
    CHECK_EQ(fd, -EBADF);
}

static void ask(const char *net, const char *addr, int rounds)
{
    char text[64], back[64];
    int fd = pirn_dial(net, addr);
    CHECK_GE(fd, 0);
    for (int i = 0; i < rounds; i++) {
        int n = snprintf(text, sizeof text, "round %d of %d", i, rounds);
        CHECK_EQ(pirn_write(fd, text, (size_t)n), n);
        CHECK_EQ(pirn_read_full(fd, back, (size_t)n), n);
        CHECK(memcmp(text, back, (size_t)n) == 0);
    }
    CHECK_EQ(pirn_close(fd), 0);
}

static void echo_over(const char *net, const char *at, int clients, int rounds)
{
    char addr[128];
    pirn_wg wg = {0}, server = {0};
    int listener = pirn_listen(net, at);
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    pirn_wg_go(&server, serve, listener);
    for (int i = 0; i < clients; i++) {
        pirn_wg_go(&wg, ask, net, (const char *)addr, rounds);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_close(listener), 0);
    pirn_wg_wait(&server);
}

TEST_RUN_ATTR(echo_tcp, PROCS)
{
    echo_over("tcp", "127.0.0.1:0", 20, 50);
}

TEST_RUN_ATTR(echo_any, PROCS)
{
    echo_over("tcp", ":0", 2, 2);
}

TEST_RUN_ATTR(echo_unix, PROCS)
{
    char name[64];
    snprintf(name, sizeof name, "@pirn-test-net-%d", getpid());
    echo_over("unix", name, 10, 20);
}
