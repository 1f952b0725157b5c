/* SPDX-License-Identifier: MIT */
/*
 * The ways in which pirn ends the process, and the small formatter behind them.
 *
 * The formatter knows %s %c %d %i %u %x %p %% with the lengths l, ll and z. It
 * needs little stack, takes no lock and allocates nothing, so it may run on a
 * 2 KB stack or in a signal handler, which printf may not.
 */
#ifndef PIRN_BASE_FATAL_H
#define PIRN_BASE_FATAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Like vsnprintf for the conversions above: always terminates, returns what was written. */
size_t fmt_v(char *buf, size_t size, const char *format, va_list ap);
size_t fmt(char *buf, size_t size, const char *format, ...) PRINTF(3, 4);

/* Writes to fd through a small buffer, with as many write(2)s as it takes. */
void say_fd(int fd, const char *format, ...) PRINTF(2, 3);
/* A line of at most 255 characters to stderr: for those in which pirn reports that it degrades. Never waits: what
 * can't be written now is kept, for say_rest(). After report_begin() it waits, and may be longer. */
void say(const char *format, ...) PRINTF(1, 2);
void say_rest(void);
bool say_can(void); /* something could be written to stderr now */

/* A broken invariant: "fatal error: ...", dump, abort. Stays in release builds. */
_Noreturn void throw(const char *format, ...) PRINTF(1, 2);
/* A condition in which Go too ends the program: "fatal error: ...", dump, exit 2. */
_Noreturn void fatal(const char *format, ...) PRINTF(1, 2);
/* A caller's mistake where Go panics: a panic of the goroutine, which it may recover (panic/panic.c), if
 * the thread has left the runtime; else, as if nobody had: "panic: ...", dump, exit 2. */
_Noreturn void misuse(const char *format, ...) PRINTF(1, 2);
/* Raises it. Returns where there can be no panic. */
extern void (*misuse_raise)(const char *format, va_list ap);

/*
 * The parts of a report, for those that say more than a line. One at a time: report_begin() returns to
 * one thread of the process only, the others wait there for its end. Then what is to be said, with
 * say(), then report_rest(): the program's last word and the goroutines. Then the process must end.
 */
void report_begin(void);
void report_rest(const char *message);
/* By who is about to end the process in another way: returns only if there is no report. */
void report_wait(void);
bool report_is_mine(void); /* this thread has begun one */

/* Set while the runtime runs: prints the goroutines to fd. */
extern void (*fatal_dump)(int fd);
/* The program's own last word, if it asked for one. */
extern void (*fatal_callback)(const char *message);

#endif
