/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_cond_wait would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_mutex m = {0};
    pirn_cond c = {0};
    pirn_cond_signal(&c);
    pirn_mutex_lock(&m);
    pirn_cond_wait(&c, &m);
    return 0;
}
