/* SPDX-License-Identifier: MIT */
/* What tests/gdb/run looks at: goroutines that wait, compute and have not begun; then a trap. */
#include <pirn.h>
#include <signal.h>
#include <stdatomic.h>

static pirn_mutex mutex;
static atomic_int waiting, computing;

static __attribute__((noinline)) void innermost(pirn_chan(int) c)
{
    int local_of_innermost = 4711;
    __asm__ volatile("" : "+m"(local_of_innermost));
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(c, &local_of_innermost);
    __asm__ volatile("");
}

static void receives(pirn_chan(int) c)
{
    pirn_set_name("the receiver");
    pirn_set_label("tenant", "acme");
    pirn_set_label("request", "%d", 17);
    innermost(c);
    __asm__ volatile("");
}

static void locks(void)
{
    atomic_fetch_add(&waiting, 1);
    pirn_mutex_lock(&mutex);
    __asm__ volatile("");
}

static void computes(void)
{
    atomic_store(&computing, 1);
    for (;;)
        __asm__ volatile("");
}

static int start(void *arg)
{
    pirn_mutex_lock(&mutex);
    pirn_go(receives, pirn_chan_make(int, 0));
    pirn_go(locks);
    pirn_go(computes);
    while (atomic_load(&waiting) < 2 || !atomic_load(&computing))
        pirn_yield();
    for (int i = 0; i < 100; i++)
        pirn_yield();
    raise(SIGTRAP);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
