/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: semaphore: negative number of permits
 */
#include <pirn.h>

int main(void)
{
    pirn_sem s;
    pirn_sem_init(&s, -1);
    return 0;
}
