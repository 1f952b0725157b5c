/* SPDX-License-Identifier: MIT */
/*
 * No memory for a heap of timers: setting one has no way to report that, so it is fatal, as in Go. Small
 * heaps that exist already go on.
 */
#include "stress/recount.h"

static void nothing(void *arg)
{
    (void)arg;
}

static int set_timers(void *arg)
{
    int *n = arg;
    pirn_timer_free(pirn_after_func(PIRN_SEC, nothing, NULL)); /* the first part of the heap */
    at_store(&mem_fail_after, 1, RELAXED);
    for (int i = 0; i < *n; i++) {
        pirn_after_func(PIRN_SEC * 3600, nothing, NULL);
    }
    at_store(&mem_fail_after, 0, RELAXED);
    return 0;
}

static void set_in_child(void *n)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, set_timers, n), 0);
    _exit(0); /* the timers are not freed */
}

TEST(no_room_for_more_timers)
{
    int some = 253, more = 254; /* the first page of it */
    CHECK_EQ(test_in_child(set_in_child, &some), 0);
    int status = test_in_child(set_in_child, &more);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    CHECK(strstr(test_said, "fatal error: out of memory: cannot keep 254 timers") == test_said);
}
