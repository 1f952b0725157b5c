/* SPDX-License-Identifier: MIT */
/*
 * os.h and the fatal errors as the explorer sees them. Locks are in lock.c, which a model leaves out
 * to look at the real ones.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/fatal.h"
#include "explorer/explorer.h"
#include "os/os.h"

/* --- time: passes by being looked at, for each thread on its own, and not before they start -------- */

#define TICK 5000

int64_t now_ns(void)
{
    return ex.cur < 0 ? 0 : (ex.threads[ex.cur].clock += TICK);
}

int64_t thread_cpu_ns(int tid)
{
    return (void)tid, 0;
}

/* --- threads ------------------------------------------------------------------------------------- */

bool futex_wait(const at_u32 *word, uint32_t value, int64_t deadline)
{
    bool in_time = model_futex_wait(&word->v, value, deadline != INT64_MAX);
    if (!in_time && ex.threads[ex.cur].clock < deadline) {
        ex.threads[ex.cur].clock = deadline;
    }
    return in_time;
}

void futex_wake(const at_u32 *word, int n)
{
    if (ex.cur >= 0) {
        model_futex_wake(&word->v, n);
    }
}

void thread_yield(void)
{
    model_pause();
}

/* --- memory -------------------------------------------------------------------------------------- */

void *mem_map(size_t size)
{
    return model_calloc(1, size);
}

void mem_unmap(void *addr, size_t size)
{
    (void)size;
    model_free(addr);
}

void mem_huge(void *addr, size_t size)
{
    (void)addr;
    (void)size;
}

/* --- the ends of the process --------------------------------------------------------------------- */

#define FAIL(name, what)                                                                           \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        char text[300];                                                                            \
        va_list ap;                                                                                \
        va_start(ap, format);                                                                      \
        vsnprintf(text, sizeof text, format, ap);                                                  \
        va_end(ap);                                                                                \
        model_fail("%s: %s", what, text);                                                          \
    }
FAIL(throw, "throw")
FAIL(fatal, "fatal error")
FAIL(misuse, "panic")

void say(const char *format, ...)
{
    (void)format;
}

void say_fd(int fd, const char *format, ...)
{
    (void)fd, (void)format;
}

/* --- what no model looks at: weak, so that one may bring the real thing ------------------------------------- */

#define STUB __attribute__((weak))

at_u32 fence_light_is_full STUB;

STUB void fence_heavy(void)
{
    at_fence(SEQ_CST);
}

#define NEVER(name)                                                                                \
    STUB void name(void);                                                                          \
    STUB void name(void)                                                                           \
    {                                                                                              \
        model_fail(#name);                                                                         \
    }
NEVER(chan_fd_close)
NEVER(chan_tell_fd)
NEVER(group_forget)
NEVER(group_forget_room)
NEVER(fd_cases_look)
NEVER(netpoll_foreign)
NEVER(netpoll_open_visiting)
NEVER(pd_arm)
NEVER(pd_disarm)
NEVER(pd_settle)
NEVER(fd_close_late)
NEVER(signal_end_of)
NEVER(timer_forget)

/* Nobody waits for a descriptor or a signal. */
#define NOBODY(type, name)                                                                         \
    STUB type name(void);                                                                          \
    STUB type name(void)                                                                           \
    {                                                                                              \
        return (type)0;                                                                            \
    }
NOBODY(bool, netpoll_wanted)
NOBODY(bool, netpoll_unattended)
NOBODY(bool, signals_pending)
NOBODY(bool, signals_watched)
NOBODY(void, netpoll_stop)
NOBODY(void, signals_start)
NOBODY(void, signals_stop)
NEVER(netpoll_look_at_all)
NEVER(netpoll_sleep)
NEVER(netpoll_break)
NEVER(signals_deliver_g0)

struct m;
STUB bool netpoll_look(struct m *mp);
STUB bool netpoll_look(struct m *mp)
{
    (void)mp;
    return false;
}

STUB void io_start(void);
STUB void io_start(void)
{
}

STUB void io_make_threads(void);
STUB void io_make_threads(void)
{
}

STUB bool io_stop(int64_t grace, bool left_behind);
STUB bool io_stop(int64_t grace, bool left_behind)
{
    (void)grace;
    return left_behind;
}

STUB int io_threads_idle(void);
STUB int io_threads_idle(void)
{
    return 0;
}

STUB void *thread_altstack_begin(void)
{
    return NULL;
}

STUB void thread_altstack_end(void *stack)
{
    (void)stack;
}
