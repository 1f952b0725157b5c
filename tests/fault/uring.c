/* SPDX-License-Identifier: MIT */
/*
 * A late event of io_uring's, of the file that had the number before, wakes nobody who waits for the next: seen
 * by how often that one tries, which is counted where calls are made to fail. None fails here.
 */
#include "reuse.h"

#include "fail.h"

#define COUNT EVERY_TIME

static void begin_to_count(void)
{
    fail(CALL(READ), COUNT, 0, 0);
}

static uint32_t counted(void)
{
    return COUNT - at_load(&sys_fault.after, RELAXED);
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
    fail_no_more();
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
