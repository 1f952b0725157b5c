/* SPDX-License-Identifier: MIT */
/*
 * A thread of the program's own that waits in pirn itself can wake nobody.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * procs: 1,2,4,16
 * timeout: 5
 */
#include <pirn.h>
#include <pthread.h>

static pirn_wg never;

static void *waiter(void *arg)
{
    (void)arg;
    pirn_wg_wait(&never);
    return NULL;
}

static int start(void *arg)
{
    pthread_t t;
    (void)arg;
    pirn_wg_add(&never, 1);
    for (int i = 0; i < 3; i++) {
        if (pthread_create(&t, NULL, waiter, NULL)) {
            return 1;
        }
    }
    pirn_wg_wait(&never);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
