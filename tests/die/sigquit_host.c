/* SPDX-License-Identifier: MIT */
/*
 * SIGQUIT while goroutine 1 computes on the thread of pirn_run, to which it is locked: it is shown where it is.
 * expect-exit: 2
 * expect-first-line: SIGQUIT: quit
 * expect-stderr-regex: ^goroutine 1 \[.*\] main:\n\t(computes at .*sigquit_host\.c:\d+|\S*sigquit_host\+0x\w+)$
 * expect-no-stderr: in no module
 * procs: 1,2,4
 * timeout: 20
 */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <pirn.h>

static atomic_bool computing;

static void asks(void)
{
    while (!atomic_load(&computing)) {
        pirn_yield();
    }
    kill(getpid(), SIGQUIT);
}

static __attribute__((noinline)) void computes(void)
{
    atomic_store(&computing, true);
    for (;;) {
        __asm__ volatile("");
    }
}

static int start(void *arg)
{
    (void)arg;
    pirn_lock_thread();
    pirn_go(asks);
    computes();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
