/* SPDX-License-Identifier: MIT */
/* Kernel threads: made with small stacks and a clean signal mask, counted through /proc. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tool.h"
#include "os/os.h"

int thread_create(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                  bool block_signals)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int err = pthread_attr_init(&attr);
    if (err) {
        return -err;
    }
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    if (block_signals) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
    }
    err = pthread_create(out, &attr, fn, arg);
    if (err == EINVAL) {
        err =
            pthread_create(out, NULL, fn, arg); /* much thread-local storage needs a larger stack */
    }
    if (block_signals) {
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    if (!err && name) {
        pthread_setname_np(*out, name);
    }
    return -err;
}

void thread_stack_bounds(void **lo, size_t *size)
{
    pthread_attr_t attr;
    *lo = NULL;
    *size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, lo, size);
        pthread_attr_destroy(&attr);
    }
}

void thread_yield(void)
{
    sched_yield();
}

/* /proc/self/task has one link for each thread, and two of its own. */
int thread_count(void)
{
    struct stat st = {.st_nlink = 0}; /* MemorySanitizer of clang 14 does not know stat */
    return stat("/proc/self/task", &st) ? -errno : (int)st.st_nlink - 2;
}

void *thread_altstack_begin(void)
{
    stack_t old, own = {.ss_size = ALTSTACK};
    if (sigaltstack(NULL, &old) || !(old.ss_flags & SS_DISABLE)) {
        return NULL; /* a sanitizer's, perhaps */
    }
    own.ss_sp = mem_map(ALTSTACK);
    if (own.ss_sp && sigaltstack(&own, NULL)) {
        mem_unmap(own.ss_sp, ALTSTACK);
        own.ss_sp = NULL;
    }
    return own.ss_sp;
}

void thread_altstack_end(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    if (stack && sigaltstack(&none, NULL) == 0 && !tool_keeps_altstack()) {
        mem_unmap(stack, ALTSTACK);
    }
}
