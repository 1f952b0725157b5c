/* SPDX-License-Identifier: MIT */
/* For tests in which a number is used again: another file with it, and who reads. */
#ifndef TESTS_FAULT_REUSE_H
#define TESTS_FAULT_REUSE_H

#include <stdatomic.h>
#include <unistd.h>

#include "../go/net.h"

static void reads(int fd, atomic_int *got)
{
    char c;
    atomic_store(got, (int)pirn_read(fd, &c, 1));
}

/* A socket of pirn's with that number, which is free: the lowest, or soon. */
static int listen_as(int number)
{
    int others[64], n = 0, fd;
    while ((fd = pirn_listen("udp", "127.0.0.1:0")) != number) {
        CHECK(fd >= 0 && n < 64);
        others[n++] = fd;
    }
    while (n) {
        CHECK_EQ(pirn_close(others[--n]), 0);
    }
    return fd;
}

static void send_to(int fd)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    CHECK_EQ(sendto(from, "z", 1, 0, (struct sockaddr *)&at, len), 1);
    CHECK_EQ(close(from), 0);
}

#endif
