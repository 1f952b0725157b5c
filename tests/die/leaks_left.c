/* SPDX-License-Identifier: MIT */
/*
 * PIRN_DEBUG=leaks=1: those that are left when pirn_run returns are shown, with their stacks and where they
 * come from.
 * expect-exit: 0
 * expect-first-line: pirn: 4 goroutines are left as the runtime ends:
 * expect-stderr-regex: ^goroutine \d+ \[chan receive(, .*)?\] receives:\n\tand 2 more: \d+, \d+\n(\t.*\n)+\tcreated by goroutine 1 at .*leaks_left\.c:101$
 * expect-stderr-regex: ^goroutine \d+ \[mutex lock(, .*)?\] locks "the last":\n(\t.*\n)+\tcreated by goroutine 1 at .*leaks_left\.c:102$
 * expect-no-stderr: goroutine 1 [
 * env: PIRN_DEBUG=leaks=1
 * procs: 1,4
 */
#include <pirn.h>
#include <stdatomic.h>

static atomic_int begun;
static pirn_mutex held;

static void receives(pirn_chan(int) c)
{
    atomic_fetch_add(&begun, 1);
    pirn_chan_recv(c, NULL);
}

static void locks(void)
{
    pirn_set_name("the last");
    atomic_fetch_add(&begun, 1);
    pirn_mutex_lock(&held);
}

static void ends(void)
{
}

static int start(void *arg)
{
    static pirn_chan(int) c;
    c = pirn_chan_make(int, 0);
    pirn_mutex_lock(&held);
    pirn_go(ends);
    for (int i = 0; i < 3; i++)
#line 101
        pirn_go(receives, c);
    pirn_go(locks);
    while (atomic_load(&begun) < 4)
        pirn_yield();
    pirn_sleep(20 * PIRN_MS); /* until they wait */
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
