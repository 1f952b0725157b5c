/* SPDX-License-Identifier: MIT */
/*
 * System calls on files and processes, with results >= 0 or -errno: never through errno, whose address a
 * compiler may keep over a change of threads. None of them retries. Tests make them
 * fail: fault.h.
 */
#ifndef PIRN_OS_IOSYS_H
#define PIRN_OS_IOSYS_H

#include <sys/types.h>

#include "os/os.h"

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
