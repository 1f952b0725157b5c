/* SPDX-License-Identifier: MIT */
/*
 * Unlocked twice while somebody waited: the one that was woken does not have it yet.
 * expect-exit: 2
 * expect-first-line: fatal error: sync: unlock of unlocked mutex
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 * procs: 1
 */
#include <pirn.h>

static void locks(pirn_mutex *m)
{
    pirn_mutex_lock(m);
}

static int start(void *arg)
{
    (void)arg;
    static pirn_mutex m;
    pirn_mutex_lock(&m);
    pirn_go(locks, &m);
    pirn_yield();
    pirn_mutex_unlock(&m);
    pirn_mutex_unlock(&m);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
