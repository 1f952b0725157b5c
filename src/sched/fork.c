/* SPDX-License-Identifier: MIT */
/*
 * The child of a fork has one thread, and of the runtime only a picture: it may exec or _exit. Any other call into
 * pirn says so and ends (not_forked, M_FORKED), also one that could do without the runtime: what is allowed should
 * not depend on how it is done. Left are pirn_errno_location and pirn_version, of which pirn.h tells.
 *
 * Without a runtime the child is a process like any other. The locks that are taken then are held over the fork, so
 * that they are free in the child, and what is under them whole.
 */
#include <pthread.h>
#include <unistd.h>

#include "sched/sched.h"

bool forked;

static __thread bool holds __attribute__((tls_model("initial-exec"))); /* the locks */

static void before(void)
{
    /* A start that comes in between is waited for. */
    holds = !getm() && at_load(&sched.life, RELAXED) == LIFE_NONE;
    if (holds) {
        life_hold();
        foreign_late_begin(); /* in which those of the signals are taken */
        local_hold();
    }
}

static void after(void)
{
    if (holds) {
        local_let_go();
        foreign_late_end();
        life_let_go();
        holds = false;
    }
}

static void in_child(void)
{
    struct m *mp = getm();
    after();
    /* One whose goroutine was left behind has no runtime any more, but is no foreign thread either. */
    if (at_load(&sched.life, RELAXED) == LIFE_NONE && !mp) {
        return;
    }
    if (mp) {
        at_or(&mp->attention, M_FORKED, RELAXED);
    }
    fatal_dump = NULL; /* the others are not here */
    fatal_callback = NULL;
    at_store(&sched.life, LIFE_FORKED, RELAXED);
    forked = true;
}

__attribute__((constructor(102))) static void fork_init(void)
{
    pthread_atfork(before, after, in_child);
}

void forked_call(void)
{
    say_fd(STDERR_FILENO,
           "fatal error: a call into pirn in the child of a fork: it may exec or _exit only\n");
    _exit(2);
}
