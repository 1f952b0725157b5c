/* SPDX-License-Identifier: MIT */
/*
 * The child of a fork has one thread, and of the runtime only a picture: it may exec or _exit. Any call
 * there that needs the runtime says so and ends.
 */
#include <pthread.h>
#include <unistd.h>

#include "sched/sched.h"

static void in_child(void)
{
    struct m *mp = getm();
    if (at_load(&sched.life, RELAXED) == LIFE_NONE) {
        return; /* nor is there one in the child */
    }
    if (mp) {
        at_or(&mp->attention, M_FORKED, RELAXED);
    }
    fatal_dump = NULL; /* the others are not here */
    fatal_callback = NULL;
    at_store(&sched.life, LIFE_FORKED, RELAXED);
}

__attribute__((constructor(102))) static void fork_init(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void forked_call(void)
{
    say("fatal error: a call into pirn in the child of a fork: it may exec or _exit only\n");
    _exit(2);
}
