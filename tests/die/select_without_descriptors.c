/* SPDX-License-Identifier: MIT */
/*
 * The first wait for a descriptor needs a thread and an eventfd: a select can't report that there are none.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: cannot wait for descriptors: Too many open files$
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>
#include <sys/resource.h>
#include <unistd.h>

static int start(void *arg)
{
    int fd[2];
    (void)arg;
    if (pipe(fd) || setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3})) {
        return 4;
    }
    return pirn_select(PIRN_READABLE(fd[0]));
}

int main(void)
{
    return pirn_run(start, NULL);
}
