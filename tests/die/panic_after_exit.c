/* SPDX-License-Identifier: MIT */
/*
 * A panic on the way out that nobody recovers.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: on the way\n\ngoroutine 1 \[running\] main:\n
 */
#include <pirn.h>

static void panics(void)
{
    pirn_panic("on the way");
}

static int start(void *arg)
{
    (void)arg;
    pirn_defer(panics);
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
