/* SPDX-License-Identifier: MIT */
/*
 * The poller does not hide a deadlock when nobody waits for a descriptor.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 */
#include <unistd.h>

#include <pirn.h>

static int start(void *arg)
{
    int fd[2];
    (void)arg;
    if (pipe(fd) || pirn_select(PIRN_READABLE(fd[0]), PIRN_AFTER(PIRN_MS)) != 1)
        return 1;
    pirn_select();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
