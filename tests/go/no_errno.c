/* SPDX-License-Identifier: MIT */
/* PIRN_NO_ERRNO: errno stays the C library's. Results of pirn never came through it. */
#define PIRN_NO_ERRNO
#include <pirn.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

TEST(errno_is_left_alone)
{
    CHECK(!strstr(TEXT(errno), "pirn"));
    errno = EDOM;
    CHECK_EQ(*pirn_errno_location(), EDOM); /* it is there all the same, and is the same */
    *pirn_errno_location() = ERANGE;
    CHECK_EQ(errno, ERANGE);
}

static void fail_to_close(void)
{
    CHECK_EQ(close(-1), -1);
    CHECK_EQ(errno, EBADF);
}

TEST_RUN_ATTR(errno_between_switches, .procs = "1,2,4,16")
{
    pirn_wg wg = {0};
    for (int i = 0; i < 100; i++)
        pirn_wg_go(&wg, fail_to_close);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_chan_recv_until((pirn_chan(int))NULL, NULL, pirn_deadline(PIRN_MS)), -ETIMEDOUT);
}
