/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: semaphore: negative number of permits
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_sem s = {0};
    (void)pirn_sem_try_acquire(&s, -1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
