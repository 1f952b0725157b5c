/* SPDX-License-Identifier: MIT */
/*
 * Number 98: SIGQUIT while some wait and some compute: all are shown, and where those are that compute.
 * expect-exit: 2
 * expect-first-line: SIGQUIT: quit
 * expect-stderr-regex: ^goroutine 1 \[.*\] main:$
 * expect-stderr-regex: ^goroutine \d+ \[.*\] receives "one":$
 * expect-stderr-regex: ^goroutine \d+ \[.*\] receives "two":$
 * expect-stderr-regex: ^goroutine \d+ \[(running|runnable|preempted).*\] computes:$
 * expect-stderr-regex: ^goroutine \d+ \[(running|preempted)\] computes:\n(\tand .*\n)?\t(computes at .*sigquit\.c:\d+|\S*sigquit\+0x\w+)$
 * procs: 1,2,4,16
 * timeout: 20
 */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <pirn.h>

static pirn_chan(int) c;
static atomic_int waiting;

static void receives(const char *name)
{
    pirn_set_name("%s", name);
    atomic_fetch_add(&waiting, 1);
    (void)pirn_chan_get(c);
}

static void computes(bool asks)
{
    if (asks) {
        kill(getpid(), SIGQUIT);
    }
    for (;;) {
        __asm__ volatile("");
    }
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    c = pirn_chan_make(int, 0);
    pirn_wg_go(&wg, receives, "one");
    pirn_wg_go(&wg, receives, "two");
    while (atomic_load(&waiting) < 2) {
        pirn_yield();
    }
    for (int i = 0; i < 3; i++) {
        pirn_wg_go(&wg, computes, i == 2);
    }
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
