/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: fatal error: sync: Unlock of unlocked RWMutex
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_rwmutex m = {0};
    pirn_rwmutex_rlock(&m);
    pirn_rwmutex_unlock(&m);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
