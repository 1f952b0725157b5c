/* SPDX-License-Identifier: MIT */
/*
 * Ending the process with a message that explains itself.
 *
 * One report at a time: the first thread to get here reports; others that fail
 * meanwhile wait for the end, so that two reports never mix. A failure inside
 * the report itself (the same thread comes again) ends at once.
 */
#include "base/fatal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"

void (*fatal_dump)(int fd);
void (*fatal_callback)(const char *message);
void (*misuse_raise)(const char *format, va_list ap);

#if AT_NO_FENCES
at_u32 at_fence_word;
#endif

struct out {
    char *at, *end;
    char *flush_from; /* the buffer, if it is written to fd when it is full */
    int fd;
};

static void write_all(int fd, const char *buf, size_t n)
{
    while (n) {
        ssize_t w = write(fd, buf, n);
        if (w < 0 && errno == EINTR) {
            continue;
        }
        if (w <= 0) {
            return; /* nobody left to tell */
        }
        buf += w;
        n -= (size_t)w;
    }
}

static void flush(struct out *o)
{
    write_all(o->fd, o->flush_from, (size_t)(o->at - o->flush_from));
    o->at = o->flush_from;
}

static void put(struct out *o, char c)
{
    if (o->at == o->end && o->flush_from) {
        flush(o);
    }
    if (o->at < o->end) {
        *o->at++ = c;
    }
}

static void put_str(struct out *o, const char *s)
{
    for (s = s ? s : "(null)"; *s; s++) {
        put(o, *s);
    }
}

static void put_uint(struct out *o, uint64_t n, unsigned base)
{
    char digits[20];
    int len = 0;
    do {
        digits[len++] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n);
    while (len) {
        put(o, digits[--len]);
    }
}

static void put_int(struct out *o, int64_t n)
{
    if (n < 0) {
        put(o, '-');
    }
    put_uint(o, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, 10);
}

static void format_to(struct out *o, const char *format, va_list ap)
{
    for (const char *f = format; *f; f++) {
        if (*f != '%') {
            put(o, *f);
            continue;
        }
        int longs = 0;
        for (f++; *f == 'l' || *f == 'z'; f++) {
            longs++;
        }
        if (!*f) {
            put(o, '%');
            return;
        }
        switch (*f) {
        case 's': put_str(o, va_arg(ap, const char *)); break;
        case 'c': put(o, (char)va_arg(ap, int)); break;
        case 'd':
        case 'i': put_int(o, longs ? va_arg(ap, long) : va_arg(ap, int)); break;
        case 'u': put_uint(o, longs ? va_arg(ap, unsigned long) : va_arg(ap, unsigned), 10); break;
        case 'x': put_uint(o, longs ? va_arg(ap, unsigned long) : va_arg(ap, unsigned), 16); break;
        case 'p':
            put_str(o, "0x");
            put_uint(o, (uintptr_t)va_arg(ap, void *), 16);
            break;
        case '%': put(o, '%'); break;
        default: /* an unknown conversion shows itself */
            put(o, '%');
            put(o, *f);
            break;
        }
    }
}

size_t fmt_v(char *buf, size_t size, const char *format, va_list ap)
{
    struct out o = {.at = buf, .end = buf + size - 1};
    format_to(&o, format, ap);
    *o.at = '\0';
    return (size_t)(o.at - buf);
}

size_t fmt(char *buf, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    size_t n = fmt_v(buf, size, format, ap);
    va_end(ap);
    return n;
}

static void say_v(int fd, const char *format, va_list ap)
{
    char line[256];
    struct out o = {.at = line, .end = line + sizeof line, .flush_from = line, .fd = fd};
    format_to(&o, format, ap);
    flush(&o);
}

void say_fd(int fd, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_v(fd, format, ap);
    va_end(ap);
}

void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_v(STDERR_FILENO, format, ap);
    va_end(ap);
}

static at_u32 reporter; /* thread id of the one that reports */

void report_wait(void)
{
    uint32_t who = at_load(&reporter, RELAXED);
    while (who && who != (uint32_t)gettid()) {
        pause(); /* the reporter ends the process */
    }
}

bool report_is_mine(void)
{
    return at_load(&reporter, RELAXED) == (uint32_t)gettid();
}

void report_begin(void)
{
    uint32_t me = (uint32_t)gettid(), nobody = 0;
    if (!at_cas(&reporter, &nobody, me, ACQ_REL, ACQUIRE)) {
        if (nobody == me) {
            say("\nfatal error: failed again while reporting a failure\n");
            abort();
        }
        report_wait();
    }
}

void report_rest(const char *message)
{
    if (fatal_callback) {
        fatal_callback(message);
    }
    if (fatal_dump) {
        fatal_dump(STDERR_FILENO);
    }
}

static void report(const char *kind, const char *format, va_list ap)
{
    static char message[512]; /* the reporter's alone */
    report_begin();
    fmt_v(message, sizeof message, format, ap);
    say("%s: %s\n", kind, message);
    report_rest(message);
}

void throw(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    report("fatal error", format, ap);
    va_end(ap);
    abort();
}

void fatal(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    report("fatal error", format, ap);
    va_end(ap);
    _exit(2);
}

void misuse(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (misuse_raise) {
        va_list again;
        va_copy(again, ap);
        misuse_raise(format, again);
        va_end(again);
    }
    report("panic", format, ap);
    va_end(ap);
    _exit(2);
}
