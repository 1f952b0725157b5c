/* SPDX-License-Identifier: MIT */
/*
 * A panic on a thread of the program's own; there is a runtime.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: on a thread\n\nthread \d+, outside goroutines:\n\t(main at .*panic_thread\.c:\d+|\S*panic_thread\+0x\w+)\n(\t.*\n)*\ngoroutine \d+ \[.*\] waits:\n
 * expect-stdout: deferred
 */
#include <pirn.h>
#include <unistd.h>

static pirn_sem never, begun;

static void waits(void)
{
    pirn_sem_release(&begun, 1);
    pirn_sem_acquire(&never, 1);
}

static void deferred(void)
{
    if (write(1, "deferred\n", 9) < 0) {
        _exit(5);
    }
}

int main(void)
{
    if (pirn_start(NULL)) {
        return 1;
    }
    pirn_go(waits);
    pirn_sem_acquire(&begun, 1);
    pirn_defer(deferred);
    pirn_panic("on a thread");
}
