/* SPDX-License-Identifier: MIT */
/*
 * Who and where one is, before and after switches that come back on other threads (hazards 1 to 3). What
 * compilers make of this depends on their options: tests/levels builds it with many, and runs it with
 * PIRN_DEBUG=move=1. The library's own code is looked at by tools/check-switch.
 */
#include <fcntl.h>
#include <pirn.h>
#include <stdatomic.h>
#include <unistd.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define MOVE .env = "PIRN_DEBUG=move=1"
#define TIMES (TEST_TSAN || TEST_ASAN ? 100 : 500)

static int empty[2];
static pirn_local_key name;

/* All in one function, so that the compiler sees the same calls again and again. */
static void all_of_it(int me)
{
    uint64_t id = pirn_id();
    int mine = me;
    char byte;
    CHECK_EQ(pirn_local_set(name, &mine), 0);
    for (int i = 0; i < TIMES; i++) {
        errno = 0;
        if ((i + me) % 2) {
            CHECK_EQ(close(-1), -1);
            CHECK_EQ(errno, EBADF);
        } else {
            CHECK_EQ(read(empty[0], &byte, 1), -1);
            CHECK_EQ(errno, EAGAIN);
        }
        pirn_yield();
        errno = me;
        CHECK_EQ(errno, me);
        CHECK_EQ(pirn_id(), id);
        CHECK(pirn_local_get(name) == &mine);
        CHECK_EQ(mine, me);
    }
}

static void all_of_them(void)
{
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(empty, O_NONBLOCK | O_CLOEXEC), 0);
    CHECK_EQ(pirn_local_new(&name, NULL), 0);
    for (int i = 1; i <= 4; i++)
        pirn_wg_go(&wg, all_of_it, i);
    pirn_wg_wait(&wg);
    close(empty[0]);
    close(empty[1]);
}

TEST_RUN_ATTR(over_switches, PROCS)
{
    all_of_them();
}

TEST_RUN_ATTR(over_moves, PROCS, MOVE)
{
    all_of_them();
}

/* With more than one thread in the game, the thread itself must be seen to change. */
TEST_RUN_ATTR(threads_change, PROCS, MOVE)
{
    int changes = 0;
    pid_t last = gettid();
    for (int i = 0; i < 50; i++) {
        pirn_yield();
        pid_t now = gettid();
        changes += now != last;
        last = now;
    }
    CHECK_EQ(changes, 50);
}
