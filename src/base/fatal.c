/* SPDX-License-Identifier: MIT */
/*
 * Ending the process with a message that explains itself.
 *
 * One report at a time: the first thread to get here reports; others that fail
 * meanwhile wait for the end, so that two reports never mix. A failure inside
 * the report itself (the same thread comes again) ends at once.
 *
 * Lines that are no report (say) come from threads on which all others depend,
 * such as sysmon, and from under locks, while stderr may be a full pipe that
 * nobody reads. So they are written only if that can be done at once. Else they
 * are kept, and written before what is said next or by say_rest(); what finds no
 * room is lost, which is said too.
 */
#include "base/fatal.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
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

void say_fd(int fd, const char *format, ...)
{
    char line[256];
    struct out o = {.at = line, .end = line + sizeof line, .flush_from = line, .fd = fd};
    va_list ap;
    va_start(ap, format);
    format_to(&o, format, ap);
    va_end(ap);
    flush(&o);
}

/* --- without waiting ----------------------------------------------------------------------------- */

static struct {
    at_u32 taken; /* one at a time; who finds it taken does without */
    at_u32 n;     /* bytes; written by who has taken it */
    at_u32 lost;  /* lines */
    char text[1024];
} later;

bool say_can(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) != 0; /* an error shows itself */
}

static bool is_file(void)
{
    struct stat st;
    return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

/* What it would take without waiting; -1: nothing now. Where the kernel can't be told not to wait (terminals, old
 * kernels), it is asked before, and other writers may be faster. */
static ssize_t try_write(const char *buf, size_t n)
{
    struct iovec v = {(void *)(uintptr_t)buf, n};
    ssize_t w = pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT);
    if (w < 0 && errno != EPIPE && (errno != EAGAIN || is_file())) {
        w = say_can() ? write(STDERR_FILENO, buf, n) : -1;
        errno = w < 0 && errno != EPIPE && errno != EBADF ? EAGAIN : errno;
    }
    return w >= 0 || errno == EAGAIN ? w : (ssize_t)n; /* nobody left to tell */
}

/* How much of it could be written. */
static size_t write_now(const char *buf, size_t n)
{
    size_t done = 0;
    for (ssize_t w; done < n && (w = try_write(buf + done, n - done)) > 0;) {
        done += (size_t)w;
    }
    return done;
}

static bool take_later(void)
{
    return !at_load(&later.taken, RELAXED) && !at_xchg(&later.taken, 1, ACQUIRE);
}

static void put_later(const char *buf, size_t n)
{
    uint32_t have = at_load(&later.n, RELAXED);
    if (n > sizeof later.text - have) {
        at_add(&later.lost, 1, RELAXED);
        return;
    }
    memcpy(later.text + have, buf, n);
    at_store(&later.n, have + (uint32_t)n, RELAXED);
}

static bool put_lost(void)
{
    char line[64];
    uint32_t lost = at_xchg(&later.lost, 0, RELAXED);
    if (lost) {
        put_later(line, fmt(line, sizeof line, "pirn: %u lines are lost here\n", lost));
    }
    return lost;
}

/* False: something is left. */
static bool write_later(void)
{
    uint32_t n, done;
    do {
        n = at_load(&later.n, RELAXED);
        done = (uint32_t)write_now(later.text, n);
        memmove(later.text, later.text + done, n - done);
        at_store(&later.n, n - done, RELAXED);
    } while (done == n && put_lost());
    return done == n;
}

void say_rest(void)
{
    if (at_load(&later.n, RELAXED) && take_later()) {
        write_later();
        at_store(&later.taken, 0, RELEASE);
    }
}

void say(const char *format, ...)
{
    char line[256];
    struct out o = {.at = line, .end = line + sizeof line};
    int saved = errno;
    if (report_is_mine()) { /* waits for as long as it takes */
        o.flush_from = line;
        o.fd = STDERR_FILENO;
    }
    va_list ap;
    va_start(ap, format);
    format_to(&o, format, ap);
    va_end(ap);
    size_t n = (size_t)(o.at - line);
    if (o.flush_from) {
        flush(&o);
    } else if (!take_later()) {
        at_add(&later.lost, write_now(line, n) != n, RELAXED);
    } else {
        size_t done = write_later() ? write_now(line, n) : 0;
        if (done < n) {
            put_later(line + done, n - done);
        }
        at_store(&later.taken, 0, RELEASE);
    }
    errno = saved;
}

/* --- reports ------------------------------------------------------------------------------------- */

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
    if (take_later()) { /* it came before */
        write_all(STDERR_FILENO, later.text, at_load(&later.n, RELAXED));
        at_store(&later.n, 0, RELAXED);
        at_store(&later.taken, 0, RELEASE);
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
