/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: fatal error: sync: unlock of unlocked mutex
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    pirn_mutex_unlock(&m);
    pirn_mutex_unlock(&m);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
