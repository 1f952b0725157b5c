/* SPDX-License-Identifier: MIT */
/*
 * Seeing where goroutines are. docs/debugging.md shows what the reports look like.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_DEBUG_H
#define PIRN_DEBUG_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes what every goroutine does and where it stands, those alike as one entry. The others stand still while it
 * looks, for at most 200 ms, and go on while it writes. 0, -EAGAIN: no runtime runs, -ENOTSUP: this
 * goroutine has a dense stack, which is too small for it.
 */
PIRN_API_ int pirn_dump(int fd);

/*
 * Goroutines that wait, and that nobody can wake any more: what they wait for is in no memory but their own.
 * Writes them to fd (-1: nowhere) and returns how many there are, or -errno: -EAGAIN, -ENOTSUP as above
 * (and under ThreadSanitizer),
 * -ENOMEM, -EACCES (/proc or process_vm_readv is denied), -EBUSY (some could not be stopped in time). It looks for addresses in all of the program's memory and errs on
 * the side of silence.
 */
PIRN_API_ int pirn_leak_report(int fd);

/* Where this goroutine or thread is, the innermost frame first: what its calls return to. The number of them. */
PIRN_API_ int pirn_backtrace(void **pcs, int max);
/* One line for each: "<tab>FUNCTION at FILE:LINE", or "<tab>MODULE+0xADDRESS", which addr2line understands. */
PIRN_API_ void pirn_backtrace_print(int fd, void *const *pcs, int n);

#ifdef __cplusplus
}
#endif

#endif
