/* SPDX-License-Identifier: MIT */
/*
 * System calls on files and processes, with results >= 0 or -errno: never through errno, whose address a
 * compiler may keep over a change of threads. None of them retries.
 *
 * A seam for tests: io_fail asks that the N-th of these calls from now on fails, without being made.
 */
#ifndef PIRN_OS_IOSYS_H
#define PIRN_OS_IOSYS_H

#include <sys/types.h>

#include "os/os.h"

enum io_call { /* for io_fail_only */
               IO_ANY,
               IO_PREAD_NOWAIT,
               IO_PREAD,
               IO_PWRITE,
               IO_FSYNC,
               IO_OPEN,
               IO_SENDFILE,
               IO_PIDFD_OPEN,
               IO_WAITPID,
};

/* Tests: the N-th call from now on, of one kind or of any, fails with this errno; once. 0: off. */
extern at_u32 io_fail_after, io_fail_errno, io_fail_only;
int io_refused(enum io_call which); /* 0, or the errno */

ssize_t sys_pread_nowait(int fd, void *buf, size_t n, off_t offset); /* RWF_NOWAIT */
ssize_t sys_pread(int fd, void *buf, size_t n, off_t offset);
ssize_t sys_pwrite(int fd, const void *buf, size_t n, off_t offset);
int sys_fsync(int fd, bool data_only);
int sys_openat(int dir, const char *path, int flags, mode_t mode);
ssize_t sys_sendfile(int out, int in, off_t *offset, size_t n); /* raises no SIGPIPE */
int sys_pidfd_open(pid_t pid);
pid_t sys_waitpid(pid_t pid, int *status, int options);
int sys_seekable(int fd); /* 0; -ESPIPE, -EBADF */

#endif
