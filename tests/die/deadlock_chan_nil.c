/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[chan send \(NULL channel\)(, \d+ .*)?\] main:$
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = NULL;
    pirn_chan_send(c, 1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
