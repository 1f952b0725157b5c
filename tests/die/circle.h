/* SPDX-License-Identifier: MIT */
/* Two goroutines that each have a mutex and want the other's. */
#include <pirn.h>
#include <stdatomic.h>

static pirn_mutex a, b;
static atomic_int have;

static __attribute__((noinline)) void wants(pirn_mutex *mine, pirn_mutex *others)
{
    pirn_mutex_lock(mine);
    atomic_fetch_add(&have, 1);
    while (atomic_load(&have) < 2)
        pirn_yield();
    pirn_mutex_lock(others);
    __asm__ volatile("");
}

static void first(void)
{
    wants(&a, &b);
    __asm__ volatile("");
}

static void second(void)
{
    wants(&b, &a);
    __asm__ volatile("");
}
