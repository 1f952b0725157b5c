/* SPDX-License-Identifier: MIT */
/* System calls on files and processes; iosys.h has the contract. */
#include "os/iosys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tool.h"
#include "os/fault.h"
#include "os/sigpipe.h"

/* Not inlined into what may change threads: errno is read and forgotten here. */
#define RESULT(which, call)                                                                        \
    do {                                                                                           \
        long r = SYS_TRY(SYS_CALL_##which, call);                                                  \
        return r < 0 ? -errno : (__typeof__(call))r;                                               \
    } while (0)

static ssize_t pread_nowait(int fd, void *buf, size_t n, off_t offset)
{
    struct iovec v = {.iov_base = buf, .iov_len = n};
    ssize_t r = preadv2(fd, &v, 1, offset, RWF_NOWAIT);
    tool_kernel_wrote(buf, r > 0 ? (size_t)r : 0);
    return r;
}

ssize_t sys_pread_nowait(int fd, void *buf, size_t n, off_t offset)
{
    RESULT(PREAD_NOWAIT, pread_nowait(fd, buf, n, offset));
}

ssize_t sys_pread(int fd, void *buf, size_t n, off_t offset)
{
    RESULT(PREAD, pread(fd, buf, n, offset));
}

ssize_t sys_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    RESULT(PWRITE, pwrite(fd, buf, n, offset));
}

int sys_fsync(int fd, bool data_only)
{
    RESULT(FSYNC, data_only ? fdatasync(fd) : fsync(fd));
}

int sys_openat(int dir, const char *path, int flags, mode_t mode)
{
    RESULT(OPEN, openat(dir, path, flags, mode));
}

static ssize_t sendfile_quiet(int out, int in, off_t *offset, size_t n)
{
    struct sigpipe sigpipe;
    sigpipe_keep_out(&sigpipe);
    ssize_t r = sendfile(out, in, offset, n);
    sigpipe_let_in(&sigpipe, r >= 0 && (size_t)r == n);
    return r;
}

ssize_t sys_sendfile(int out, int in, off_t *offset, size_t n)
{
    RESULT(SENDFILE, sendfile_quiet(out, in, offset, n));
}

int sys_pidfd_open(pid_t pid)
{
    if (unlikely(!tool_knows_new_calls())) {
        return -ENOSYS;
    }
    RESULT(PIDFD_OPEN, (int)syscall(SYS_pidfd_open, pid, 0));
}

pid_t sys_waitpid(pid_t pid, int *status, int options)
{
    RESULT(WAITPID, waitpid(pid, status, options));
}

int sys_seekable(int fd)
{
    return SYS_TRY(SYS_CALL_SEEK, lseek(fd, 0, SEEK_CUR)) < 0 ? -errno : 0;
}
