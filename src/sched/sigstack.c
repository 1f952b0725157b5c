/* SPDX-License-Identifier: MIT */
/*
 * Handlers of the program's that ask for no signal stack would run on the stack of a goroutine, which
 * may be too small for them. Those that are there when the runtime starts are given SA_ONSTACK, as Go
 * does; one that comes later is told, since to change it then could undo another change of the program's.
 */
#include <signal.h>

#include "sched/sched.h"

#define SIGNALS 65

static uint64_t said;

static bool lacks_stack(int sig, struct sigaction *sa)
{
    return sigaction(sig, NULL, sa) == 0 && !(sa->sa_flags & SA_ONSTACK)
           && (sa->sa_flags & SA_SIGINFO
               || (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN));
}

void sigstack_start(void)
{
    struct sigaction sa;
    said = 0;
    for (int sig = 1; sig < SIGNALS; sig++) {
        if (lacks_stack(sig, &sa)) {
            sa.sa_flags |= SA_ONSTACK;
            sigaction(sig, &sa, NULL);
        }
    }
}

void sigstack_look(void)
{
    struct sigaction sa;
    for (int sig = 1; sig < SIGNALS; sig++) {
        uint64_t bit = (uint64_t)1 << (sig - 1);
        if (!(said & bit) && lacks_stack(sig, &sa)) {
            said |= bit;
            say("pirn: the handler of signal %d has no SA_ONSTACK: it runs on the stacks of "
                "goroutines\n",
                sig);
        }
    }
}
