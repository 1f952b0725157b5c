/* SPDX-License-Identifier: MIT */
/*
 * pirn_go has no way to report failure: out of memory is fatal, as in Go.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: out of memory: cannot make a goroutine \(\d+ exist\)$
 * expect-stderr-regex: ^goroutine \d+ \[wait group wait.*\] waiter:\n\tand \d+ more: \d+, 
 * skip-in: asan its shadow needs the address space
 * skip-in: tsan its shadow needs the address space
 * timeout: 20
 */
#include <pirn.h>
#include <sys/resource.h>

static pirn_wg never;

static void waiter(void)
{
    pirn_wg_wait(&never);
}

static int start(void *arg)
{
    (void)arg;
    pirn_wg_add(&never, 1);
    for (int i = 0; i < 1000 * 1000; i++) {
        pirn_go(waiter);
        pirn_yield();
    }
    return 3; /* 250 GB of stacks do not fit */
}

int main(void)
{
    struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    if (setrlimit(RLIMIT_AS, &limit)) {
        return 4;
    }
    return pirn_run(start, NULL);
}
