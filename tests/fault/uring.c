/* SPDX-License-Identifier: MIT */
/*
 * A late event of io_uring's, of the file that had the number before, wakes nobody who waits for the next: seen
 * by how often that one tries, which is counted where calls are made to fail. None fails here.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "../go/net.h"
#include "os/sysio.h"

#define COUNT (1u << 30)

static void begin_to_count(void)
{
    at_store(&sys_fault.after, COUNT, RELAXED);
    at_store(&sys_fault.calls, 1u << SYS_CALL_READ, RELAXED);
}

static uint32_t counted(void)
{
    return COUNT - at_load(&sys_fault.after, RELAXED);
}

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

/* Closed behind pirn's back, the file lives on under another number, and something comes there. */
static void reuse(int i)
{
    char c;
    atomic_int got = 0;
    pirn_wg wg = {0};
    struct pair p = tcp_pair();
    CHECK_EQ(pirn_fd_deadline(p.a, pirn_now() + 10 * PIRN_US, 0), 0);
    CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT); /* the ring polls it from now on */
    int ghost = fcntl(p.a, F_DUPFD_CLOEXEC, 500);
    CHECK_GE(ghost, 500);
    CHECK_EQ(close(p.a), 0);
    if (i % 2) {
        CHECK_EQ(write(p.b, "x", 1), 1);
    }
    int fresh = listen_as(p.a);
    begin_to_count();
    pirn_wg_go(&wg, reads, fresh, &got);
    pirn_yield();
    while (!counted()) {
        pirn_yield();
    }
    CHECK_EQ(write(p.b, "x", 1), 1);
    let_wait();
    uint32_t tries = counted();
    CHECK_EQ(tries, 1);
    send_to(fresh);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 1);
    at_store(&sys_fault.calls, 0, RELAXED);
    CHECK_EQ(pirn_close(fresh), 0);
    CHECK_EQ(close(ghost), 0);
    CHECK_EQ(pirn_close(p.b), 0);
}

static int reuse_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        reuse(i);
    }
    return 0;
}

TEST_ATTR(number_is_used_again, .procs = "1,2,4,16")
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.io = PIRN_IO_URING}, reuse_often, NULL), 0);
}
