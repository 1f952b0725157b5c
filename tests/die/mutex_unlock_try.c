/* SPDX-License-Identifier: MIT */
/*
 * Number 101: what is fatal in Go can't be recovered.
 * expect-exit: 2
 * expect-first-line: fatal error: sync: unlock of unlocked mutex
 */
#include <pirn.h>

static void unlock(void *m)
{
    pirn_mutex_unlock(m);
}

static int start(void *arg)
{
    pirn_mutex m = {0};
    (void)arg;
    pirn_panic_free(pirn_try(unlock, &m));
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
