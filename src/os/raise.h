/* SPDX-License-Identifier: MIT */
/*
 * A handler that sends its signal to its own thread once more, for whoever handles it when this one returns. It
 * says what it said before: who sent it, or the address. Only that it comes of a fault it does not say, since an
 * emulator would take it for a fault of its own.
 */
#ifndef PIRN_OS_RAISE_H
#define PIRN_OS_RAISE_H

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void raise_again(int sig, const siginfo_t *info)
{
    siginfo_t copy = *info;
    if (copy.si_code > 0) {
        copy.si_code = SI_QUEUE;
    }
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, &copy)) {
        raise(sig); /* then it says nothing */
    }
}

#endif
