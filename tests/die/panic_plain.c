/* SPDX-License-Identifier: MIT */
/*
 * Number 81: the message, its goroutine with its frames, who has made it, the others.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: boom 7\n\ngoroutine \d+ \[running\] worker "busy":\n\t(worker at .*panic_plain\.c:\d+|\S*panic_plain\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at .*panic_plain.c:\d+\n\ngoroutine 1 \[(wait group wait|running).*\] main:\n(\t.*\n)+\tstarted by pirn_run\n
 * expect-stdout: deferred
 * procs: 1,4
 */
#include <pirn.h>
#include <unistd.h>

static void deferred(void)
{
    if (write(1, "deferred\n", 9) < 0) {
        _exit(5);
    }
}

static void worker(int n)
{
    pirn_defer(deferred);
    pirn_set_name("busy");
    pirn_panic("boom %d", n);
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_go(&wg, worker, 7);
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
