/* SPDX-License-Identifier: MIT */
/*
 * A program that closes every descriptor it does not know closes those of the poller: it is told.
 * expect-exit: 2
 * expect-stderr-regex: cannot wait for descriptors, somebody has closed those of the poller
 */
#include <pirn.h>
#include <unistd.h>

static void wait_for(int fd)
{
    char c;
    pirn_read(fd, &c, 1);
}

static int start(void *arg)
{
    int *fd = arg;
    pirn_go(wait_for, fd[0]);
    pirn_sleep(5 * PIRN_MS);
    for (int i = 3; i < 256; i++) {
        if (i != fd[0] && i != fd[1]) {
            close(i);
        }
    }
    pirn_sleep(10 * PIRN_SEC);
    return 0;
}

int main(void)
{
    int fd[2];
    if (pipe(fd)) {
        return 4;
    }
    return pirn_run(start, fd);
}
