/* SPDX-License-Identifier: MIT */
/* System calls that fail from now on, for all threads of the process and what it executes: seccomp. */
#ifndef TESTS_FAULT_DENY_H
#define TESTS_FAULT_DENY_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

static inline void needs_filters(void)
{
    unsigned action = SECCOMP_RET_ERRNO;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action))
        SKIP("there are no filters for system calls (seccomp) here");
}

static inline void add_filter(struct sock_filter *code, unsigned short n)
{
    struct sock_fprog prog = {.len = n, .filter = code};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog), 0);
}

#define LOAD_(field)                                                                               \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define RETURN_(what) BPF_STMT(BPF_RET | BPF_K, what)
#define SKIP_UNLESS_(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)

/* The call fails with err. */
static inline void deny(unsigned nr, unsigned err)
{
    struct sock_filter code[] = {LOAD_(nr), SKIP_UNLESS_(nr, 1), RETURN_(SECCOMP_RET_ERRNO | err),
                                 RETURN_(SECCOMP_RET_ALLOW)};
    add_filter(code, sizeof code / sizeof code[0]);
}

/* The same if its third argument is this. */
static inline void deny_if_third(unsigned nr, unsigned arg, unsigned err)
{
    struct sock_filter code[] = {LOAD_(nr),
                                 SKIP_UNLESS_(nr, 3),
                                 LOAD_(args[2]), /* the low half: little-endian */
                                 SKIP_UNLESS_(arg, 1),
                                 RETURN_(SECCOMP_RET_ERRNO | err),
                                 RETURN_(SECCOMP_RET_ALLOW)};
    add_filter(code, sizeof code / sizeof code[0]);
}

#endif
