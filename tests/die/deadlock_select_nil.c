/* SPDX-License-Identifier: MIT */
/*
 * Cases that are never ready are cases all the same.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[select(, \d+ .*)?\] main:$
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = NULL;
    (void)pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(c, 1));
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
