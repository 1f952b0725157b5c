/* SPDX-License-Identifier: MIT */
/*
 * Three named goroutines and main, each waiting for the next.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[wait group wait.*\] main:$
 * expect-stderr-regex: ^goroutine \d+ \[wait group wait.*\] waiter "first":\n(\t.*\n)+\tcreated by goroutine 1 at .*deadlock_named\.c:101$
 * expect-stderr-regex: ^goroutine \d+ \[wait group wait.*\] waiter "second":\n(\t.*\n)+\tcreated by goroutine 1 at .*deadlock_named\.c:102$
 * expect-stderr-regex: ^goroutine \d+ \[wait group wait.*\] "third":\n(\t.*\n)+\tcreated by goroutine 1 at .*$
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>

static pirn_wg never;

static void waiter(const char *name)
{
    pirn_set_name("%s", name);
    pirn_wg_wait(&never);
}

static void wait_only(void *arg)
{
    pirn_wg_wait(arg);
}

static int start(void *arg)
{
    (void)arg;
    pirn_wg_add(&never, 1);
#line 101 /* what the report must name, however the file is formatted */
    pirn_go(waiter, "first");
    pirn_go(waiter, "second");
    pirn_spawn(&(pirn_attr){.name = "third"}, wait_only, &never);
    pirn_wg_wait(&never);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
