/* SPDX-License-Identifier: MIT */
/* The machine with sysmon as one of the threads; its time passes when nobody else can go on. */
#ifndef TESTS_MODEL_MACHINE_SYSMON_H
#define TESTS_MODEL_MACHINE_SYSMON_H

#define MACHINE_SYSMON
#include "machine.h"

#define pthread_join(thread, result) ((void)(thread))
#include "../../src/sched/sysmon.c"

int thread_create(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                  bool block_signals)
{
    (void)out, (void)name, (void)fn, (void)arg, (void)block_signals;
    return 0;
}

int cpu_limit_count(const struct cpu_limit *c)
{
    (void)c;
    return (int)at_load(&sched.nprocs, RELAXED);
}

void cpu_limit_open(struct cpu_limit *c)
{
    (void)c;
}

static void machine_sysmon(void)
{
    memset(&sysmon, 0, sizeof sysmon);
    sysmon_start();
}

static void sysmon_thread(void)
{
    sysmon_main(NULL);
}

#endif
