/* SPDX-License-Identifier: MIT */
/*
 * Files, names and child processes: calls that wait without holding up other goroutines.
 *
 * POSIX shapes; results >= 0 or -errno, never through errno, never -EINTR. They may come back on another
 * thread. Any thread may call them, with or without a runtime: outside a goroutine they are the plain
 * blocking calls.
 *
 * A context that ends: pirn_open, pirn_resolve and pirn_wait_pid return -ECANCELED (-ETIMEDOUT) at once.
 * The others may have a buffer that the kernel still fills: they return when that is over, if it can't be
 * stopped with what came of it. What is complete is returned, whatever the context says.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_FILE_H
#define PIRN_FILE_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo;

/* open(2), with O_CLOEXEC added; mode as in open(path, flags, mode), if a file may be made. An
 * open that was given up is closed when it comes after all. */
PIRN_API_ int pirn_open(const char *path, int flags, ...);
PIRN_API_ int pirn_openat(int dir, const char *path, int flags, ...);

/* As pread(2) and pwrite(2), on files that have a position: -ESPIPE on others. */
PIRN_API_ ssize_t pirn_pread(int fd, void *buf, size_t n, off_t offset);
PIRN_API_ ssize_t pirn_pwrite(int fd, const void *buf, size_t n, off_t offset);

PIRN_API_ int pirn_fsync(int fd);
PIRN_API_ int pirn_fdatasync(int fd);

/*
 * From a file to a socket or pipe. Returns when n bytes are sent, or the file ends: how many; fewer, if a
 * context ended or something failed when some had been sent, and the next call says what. offset NULL:
 * from where the file stands; else from *offset, which is moved on. A peer that is gone is -EPIPE, never
 * SIGPIPE. To a descriptor without O_NONBLOCK it sends small pieces, each when there is room for it.
 */
PIRN_API_ ssize_t pirn_sendfile(int out, int in, off_t *offset, size_t n);

/*
 * getaddrinfo(3) on a thread of its own; addresses in numbers need none. All who ask the same at the same
 * time share one lookup. *res is the caller's, for pirn_resolve_free (or freeaddrinfo). host or service
 * may be NULL, as there; not both. 0, or
 *     -ENOENT           there is no such name, or it has no address (EAI_NONAME, EAI_NODATA)
 *     -EAGAIN           no answer for now (EAI_AGAIN)
 *     -EIO              no answer for good (EAI_FAIL)
 *     -EPROTONOSUPPORT  no such service (EAI_SERVICE)
 *     -EAFNOSUPPORT     not in this family (EAI_FAMILY, EAI_ADDRFAMILY)
 *     -ESOCKTNOSUPPORT, -EINVAL, -ENOMEM, -EOVERFLOW  EAI_SOCKTYPE, EAI_BADFLAGS, EAI_MEMORY, EAI_OVERFLOW
 *     -errno            of the system call that failed (EAI_SYSTEM)
 *     -ECANCELED, -ETIMEDOUT  the context ended; the lookup goes on, for others who ask
 */
PIRN_API_ int pirn_resolve(const char *host, const char *service, const struct addrinfo *hints,
                           struct addrinfo **res);
PIRN_API_ void pirn_resolve_free(struct addrinfo *res); /* NULL is nothing */

/*
 * waitpid(pid, status, 0) for a child (pid > 0), or for any as waitpid has it. The child's pid, -ECHILD,
 * or -ECANCELED: then the child was not waited for. status may be NULL. For any child (pid <= 0) a
 * thread waits for as long; in a context it is asked now and then, every 20 ms.
 */
PIRN_API_ pid_t pirn_wait_pid(pid_t pid, int *status);

#ifdef __cplusplus
}
#endif

#endif
