/* SPDX-License-Identifier: MIT */
/*
 * A context that signals cancel needs a thread and an eventfd.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: cannot watch signals: Too many open files$
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>
#include <signal.h>
#include <sys/resource.h>

static int start(void *arg)
{
    (void)arg;
    if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3})) {
        return 4;
    }
    pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGINT}, 1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
