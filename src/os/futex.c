/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking threads. errno is left alone: locks are taken and goroutines woken in calls that
 * promise it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/tool.h"
#include "os/os.h"

/* Under ThreadSanitizer (tool_take_signals) who sleeps does so with a time, for only then a signal ends the sleep;
 * and that time is short, for one that came just before it. */
#define LOOK_EVERY ((int64_t)5 * 1000 * 1000 * 1000)

bool futex_wait(const at_u32 *word, uint32_t value, int64_t deadline)
{
    struct timespec t, *limit = NULL;
    bool looks = TOOL_TSAN && deadline > now_ns() + LOOK_EVERY;
    deadline = looks ? now_ns() + LOOK_EVERY : deadline;
    if (deadline != INT64_MAX) {
        if (deadline < 0) {
            deadline = 0;
        }
        t.tv_sec = deadline / 1000000000;
        t.tv_nsec = deadline % 1000000000;
        limit = &t;
    }
    int saved_errno = errno;
    /* WAIT_BITSET, because it takes an absolute time on the monotonic clock. */
    long r = syscall(SYS_futex, &word->v, FUTEX_WAIT_BITSET_PRIVATE, value, limit, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    bool timed_out = r < 0 && errno == ETIMEDOUT && !looks;
    tool_take_signals();
    errno = saved_errno;
    return !timed_out;
}

/* Who waits may have seen the word change and gone on: it may lie in a frame that is no more, or where
 * another word is. The kernel does not look at it, and every wait here looks again. */
void futex_wake(const at_u32 *word, int n)
{
    int saved_errno = errno;
    tool_silence(true);
    syscall(SYS_futex, &word->v, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
    tool_silence(false);
    errno = saved_errno;
}
