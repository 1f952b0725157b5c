/* SPDX-License-Identifier: MIT */
/*
 * pirn: goroutines for C.
 *
 *     #include <pirn.h>
 *     #include <stdio.h>
 *
 *     static void hello(int i) { printf("hello from goroutine %d\n", i); }
 *
 *     static int start(void *arg)
 *     {
 *         pirn_wg wg = {0};
 *         for (int i = 0; i < 10; i++)
 *             pirn_wg_go(&wg, hello, i);
 *         pirn_wg_wait(&wg);
 *         return 0;
 *     }
 *
 *     int main(void) { return pirn_run(start, NULL); }
 *
 * Results are >= 0 or -errno, never through errno. A caller's mistake is a
 * panic: a message, the goroutines, exit 2.
 *
 * fork: if a runtime runs, the child may exec or _exit. Any call into pirn is a
 * fatal error there, but for errno (pirn_errno_location) and pirn_version. If
 * none runs, the child is a process like any other.
 */
#ifndef PIRN_H
#define PIRN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PIRN_NORETURN_ [[noreturn]]
extern "C" {
#else
#define PIRN_NORETURN_ _Noreturn
#endif
#define PIRN_API_ __attribute__((visibility("default")))

#define PIRN_VERSION_MAJOR 0
#define PIRN_VERSION_MINOR 1
#define PIRN_VERSION_PATCH 0
#define PIRN_VERSION "0.1.0"
PIRN_API_ const char *pirn_version(void);

/* Nanoseconds: durations, and points in time on the clock of pirn_now(). */
typedef int64_t pirn_ns;
#define PIRN_US ((pirn_ns)1000)
#define PIRN_MS (1000 * PIRN_US)
#define PIRN_SEC (1000 * PIRN_MS)
#define PIRN_NEVER INT64_MAX
PIRN_API_ pirn_ns pirn_now(void);
PIRN_API_ pirn_ns pirn_deadline(pirn_ns ns); /* now + ns; PIRN_NEVER if that is too much */

/* --- life ------------------------------------------------------------------------------------ */

enum pirn_flags {
    PIRN_F_DEADLOCK = 1 << 0,   /* report "all goroutines are asleep" (pirn_run sets it) */
    PIRN_F_SIGQUIT = 1 << 1,    /* SIGQUIT prints the goroutines and exits 2 (pirn_run sets it) */
    PIRN_F_NO_PREEMPT = 1 << 2, /* a goroutine that computes keeps its P */
    /* SIGSEGV, SIGBUS, SIGFPE, SIGILL and abort() in goroutines are explained (pirn_run sets it) */
    PIRN_F_FAULTS = 1 << 3,
};

/* How descriptors and files are waited for. io_uring needs a build with liburing, and may be forbidden. */
enum pirn_io {
    PIRN_IO_AUTO,  /* io_uring for what it does best, if it is there */
    PIRN_IO_EPOLL, /* no io_uring */
    PIRN_IO_URING, /* io_uring where it can be used, if it is there: also in place of epoll */
};

/* Zero is the default of every field. */
typedef struct pirn_config {
    int procs;          /* Ps; default: $PIRN_PROCS, else the CPUs this process may use */
    int max_threads;    /* default 10000; more is a fatal error */
    size_t stack_size;  /* address space of a goroutine's stack; default 256 KB */
    pirn_ns time_slice; /* default 10 ms */
    pirn_ns stop_grace; /* how long a stop waits for goroutines that run; default 1 s */
    uint64_t flags;     /* enum pirn_flags */
    /* Called before the goroutine dump of a fatal end; after a fault, in its signal handler. */
    void (*on_fatal)(const char *message);
    int preempt_signal; /* default SIGURG; a handler of the program's for it is still called */
    int io;             /* enum pirn_io */
    int panic_on_fault; /* SIGSEGV, SIGBUS and SIGFPE in a goroutine are panics; sets PIRN_F_FAULTS */
} pirn_config;

/*
 * Starts the runtime, runs fn(arg) as goroutine 1, returns its result when it
 * returns. Goroutines that still wait then are dropped where they stand; one
 * that runs is stopped at its next call into pirn; threads of the program's own
 * that still wait are not woken, but for those that wait for a descriptor, which
 * wait for it by poll(2) then. -errno if the runtime can't start, -EBUSY from a
 * goroutine. While a runtime runs already (pirn_start), a thread of the program's
 * own may call it: fn runs as one more goroutine. Of the descriptors 0 to 2, those
 * that are closed are opened to /dev/null.
 */
PIRN_API_ int pirn_run(int (*fn)(void *), void *arg);
PIRN_API_ int pirn_run_config_n(const pirn_config *config, size_t size, int (*fn)(void *),
                                void *arg);
static inline int pirn_run_config(const pirn_config *config, int (*fn)(void *), void *arg)
{
    return pirn_run_config_n(config, sizeof *config, fn, arg);
}

/*
 * For a program with threads of its own: the runtime runs in the background,
 * any thread may spawn and wait. Counted: the last stop stops. pirn_stop gives
 * -EDEADLK from a goroutine, -EBUSY while other threads wait in pirn.
 */
PIRN_API_ int pirn_start_n(const pirn_config *config, size_t size);
static inline int pirn_start(const pirn_config *config)
{
    return pirn_start_n(config, sizeof *config);
}
PIRN_API_ int pirn_stop(void);

/* GOMAXPROCS: sets the number of Ps (1 to 1024) if n > 0; returns the number before. */
PIRN_API_ int pirn_procs(int n);

/* --- goroutines ------------------------------------------------------------------------------ */

enum pirn_attr_flags {
    PIRN_ATTR_FP_MODES = 1 << 0, /* rounding mode and FP exceptions of its own */
};

/*
 * Stack sizes are rounded up to a power of two. From 64 KB to 1 GB the stack is
 * guarded and takes memory only as it is used, 4 KB at least. 2, 4 and 8 KB are
 * dense stacks: packed in huge pages, no guard but a canary; for goroutines that
 * are known to be shallow (printf alone takes 2 to 3 KB). They need a program
 * that is linked with -Wl,-z,now, as pkg-config says: else the first call of each
 * function of a shared library would take more. Without it they are guarded ones.
 */
#define PIRN_STACK_DENSE_2K ((size_t)2 << 10)
#define PIRN_STACK_DENSE_4K ((size_t)4 << 10)
#define PIRN_STACK_DENSE_8K ((size_t)8 << 10)

typedef struct pirn_attr {
    const char *name;     /* copied; at most 39 characters are kept */
    size_t stack_size;    /* 0: as configured */
    uint64_t flags;       /* enum pirn_attr_flags */
    struct pirn_ctx *ctx; /* its current context; NULL: that of the spawner */
} pirn_attr;

/*
 * pirn_go(fn, args...), of <pirn/go.h>, starts fn(args...) as a goroutine; this
 * is for those who handle failure: 0, -ENOMEM, -EAGAIN (no runtime runs),
 * -EINVAL (no function, or a stack size that is none).
 */
PIRN_API_ int pirn_spawn_n(const pirn_attr *attr, size_t size, void (*fn)(void *), void *arg);
static inline int pirn_spawn(const pirn_attr *attr, void (*fn)(void *), void *arg)
{
    return pirn_spawn_n(attr, sizeof *attr, fn, arg);
}

PIRN_API_ void pirn_yield(void); /* lets the others run; may come back on another thread */
PIRN_NORETURN_ PIRN_API_ void pirn_exit(void); /* runs the deferred calls, ends this goroutine */
PIRN_API_ uint64_t pirn_id(void);              /* 1 is the first; 0 outside a goroutine */
PIRN_API_ int pirn_num_goroutines(void);
PIRN_API_ void pirn_set_name(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * What this goroutine works for, such as pirn_set_label("tenant", "%s", name): reports show it, and the
 * goroutines that it starts from now on have it too. A format of NULL takes the label away. At most 39
 * characters of a value are kept. 0, -ENOSPC (all labels, with their keys, have room for about 90 characters),
 * -ENOMEM, -EINVAL (no key), -EPERM (outside a goroutine).
 */
PIRN_API_ int pirn_set_label(const char *key, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Around code that may block the thread, such as a plain read(): the others go on meanwhile. begin
 * and end cost nanoseconds; the P is taken away only if the code does block while others have work.
 * No pirn call may stand between them. pirn_blocking() is for what is known to block: it gives the P
 * away at once, calls fn(arg), and returns its result. (Code that blocks without saying so loses its P
 * too, only later.) Both may come back on another thread.
 */
PIRN_API_ void pirn_blocking_begin(void);
PIRN_API_ void pirn_blocking_end(void);
PIRN_API_ void *pirn_blocking(void *(*fn)(void *), void *arg);

/*
 * This goroutine stays on its thread, and nobody else runs there, until as many unlocks; if it ends
 * before, so does the thread. Goroutine 1 goes to the thread that called pirn_run.
 */
PIRN_API_ void pirn_lock_thread(void);
PIRN_API_ void pirn_unlock_thread(void);

/* Goroutine-local values; dtor is called with a value that is not NULL when its goroutine ends. */
typedef uint32_t pirn_local_key;
PIRN_API_ int pirn_local_new(pirn_local_key *key, void (*dtor)(void *)); /* 0, -EAGAIN: too many */
PIRN_API_ void *pirn_local_get(pirn_local_key key);
PIRN_API_ int pirn_local_set(pirn_local_key key, void *value); /* 0, -ENOMEM, -EINVAL */

/* --- seeing inside --------------------------------------------------------------------------- */

/* Counts since the start, and states now, as they are read one after the other. */
typedef struct pirn_metrics_v1 {
    uint64_t procs, threads, threads_idle;
    uint64_t goroutines, spawned;
    uint64_t switches;       /* goroutine to goroutine */
    uint64_t steals, stolen; /* raids on another P that brought something; what they brought */
    uint64_t wakes;          /* of a sleeping thread */
    uint64_t stacks;         /* stack slots in use */
    uint64_t stacks_warm;    /* free slots whose pages are kept */
    uint64_t guard;     /* what guards the stacks: 1 guard regions, 2 mprotect, 3 canary only */
    uint64_t preempted; /* goroutines that were stopped in the midst of computing */
    uint64_t retaken;   /* Ps taken from threads that blocked */
    uint64_t starved;   /* times that work waited beside an idle P: should be 0 */
} pirn_metrics_v1;
PIRN_API_ int pirn_metrics_n(pirn_metrics_v1 *out, size_t size);
static inline int pirn_metrics(pirn_metrics_v1 *out)
{
    return pirn_metrics_n(out, sizeof *out);
}

/*
 * errno: the compiler may keep the address of a thread's errno over a call that
 * brings the goroutine back on another thread. So errno is read through a
 * function that makes no such promise.
 */
PIRN_API_ int *pirn_errno_location(void);
#if !defined(PIRN_NO_ERRNO)
#undef errno
#define errno (*pirn_errno_location())
#endif

#ifdef __cplusplus
}
#endif

/* Each may use those before it. */
/* clang-format off */
#include <pirn/go.h>
#include <pirn/panic.h>
#include <pirn/chan.h>
#include <pirn/sync.h>
#include <pirn/time.h>
#include <pirn/ctx.h>
#include <pirn/signal.h>
#include <pirn/io.h>
#include <pirn/file.h>
#include <pirn/debug.h>
/* clang-format on */

#endif
