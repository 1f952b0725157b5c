/* SPDX-License-Identifier: MIT */
/*
 * Channels, selects and locks: what must panic, with Go's words, and what must wait for ever
 * (conformance 14, 15, 18, 21 to 24, 101, 105). Each program runs in a child.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

struct program {
    void (*fn)(void);
    const char *name;
    const char *says; /* the first line of stderr */
    const char *more; /* and what follows it somewhere, or NULL */
};

static int start(void *arg)
{
    const struct program *p = arg;
    p->fn();
    return 0;
}

static void run(void *arg)
{
    pirn_run(start, arg);
}

static void check_all(const struct program *p, size_t n)
{
    for (; n; p++, n--) {
        int status = test_in_child(run, (void *)(uintptr_t)p);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 2
            || strncmp(test_said, p->says, strlen(p->says)) || test_said[strlen(p->says)] != '\n'
            || (p->more && !strstr(test_said, p->more))) {
            printf("%s: status %x; it said\n%s\nand not\n%s\n%s\n", p->name, (unsigned)status,
                   test_said, p->says, p->more ? p->more : "");
            fflush(stdout);
            FAIL("a program did not die as it should");
        }
    }
}

#define P(fn, says) PM(fn, says, NULL)
#define PM(fn, says, more)                                                                         \
    {                                                                                              \
        fn, #fn, says, more                                                                        \
    }
#define CHECK_ALL(...)                                                                             \
    do {                                                                                           \
        static const struct program programs_[] = {__VA_ARGS__};                                   \
        check_all(programs_, sizeof programs_ / sizeof *programs_);                                \
    } while (0)

static void settle(void)
{
    for (int i = 0; i < 50; i++)
        pirn_yield();
}

/* --- closed channels ------------------------------------------------------------------------------------- */

static pirn_chan(int) closed(int cap)
{
    pirn_chan(int) c = pirn_chan_make(int, cap);
    pirn_chan_close(c);
    return c;
}

static void send_closed(void)
{
    pirn_chan_send(closed(0), 1);
}
static void send_closed_buffered(void)
{
    pirn_chan_send(closed(2), 1);
}
static void send_closed_full(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    pirn_chan_close(c);
    pirn_chan_send(c, 1);
}
static void try_send_closed(void)
{
    pirn_chan_try_send(closed(0), 1);
}
static void try_send_closed_full(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    pirn_chan_close(c);
    pirn_chan_try_send(c, 1);
}
static void select_closed(void)
{
    pirn_select(PIRN_SEND(closed(0), 1));
}
static void select_closed_default(void)
{
    pirn_select(PIRN_SEND(closed(1), 1), PIRN_DEFAULT);
}
static void select_closed_other(void)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    pirn_select(PIRN_RECV(never, NULL), PIRN_SEND(closed(0), 1), PIRN_SEND(never, 1));
}

static void close_later(pirn_chan(int) c)
{
    settle();
    pirn_chan_close(c);
}
static void send_closed_meanwhile(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(close_later, c);
    pirn_chan_send(c, 1);
}
static void select_closed_meanwhile(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0), never = pirn_chan_make(int, 0);
    pirn_go(close_later, c);
    pirn_select(PIRN_RECV(never, NULL), PIRN_SEND(c, 1));
}
static void close_closed(void)
{
    pirn_chan_close(closed(0));
}
static void close_closed_buffered(void)
{
    pirn_chan_close(closed(5));
}
static void close_null(void)
{
    pirn_chan(int) c = NULL;
    pirn_chan_close(c);
}

TEST_ATTR(closed_channels, PROCS, .timeout = 60)
{
    static const char sent[] = "panic: send on closed channel",
                      again[] = "panic: close of closed channel",
                      main_runs[] = "\ngoroutine 1 [running]";
    CHECK_ALL(PM(send_closed, sent, main_runs), PM(send_closed_buffered, sent, main_runs),
              PM(send_closed_full, sent, main_runs), PM(try_send_closed, sent, main_runs),
              PM(try_send_closed_full, sent, main_runs), PM(select_closed, sent, main_runs),
              PM(select_closed_default, sent, main_runs), PM(select_closed_other, sent, main_runs),
              PM(send_closed_meanwhile, sent, main_runs),
              PM(select_closed_meanwhile, sent, main_runs), PM(close_closed, again, main_runs),
              PM(close_closed_buffered, again, main_runs),
              PM(close_null, "panic: close of nil channel", main_runs));
}

/* --- sizes -------------------------------------------------------------------------------------------------- */

static void negative_int(void)
{
    volatile int n = -1;
    pirn_chan_make(int, n);
}
static void negative_short(void)
{
    volatile short n = -1;
    pirn_chan_make(int, n);
}
static void negative_char(void)
{
    volatile signed char n = -1;
    pirn_chan_make(char, n);
}
static void negative_long(void)
{
    volatile int64_t n = INT64_MIN;
    pirn_chan_make(int, n);
}
static void negative_of_nothing(void)
{
    volatile int n = -1;
    pirn_chanv_make(0, (size_t)n);
}
static void overflow_int64(void)
{
    volatile int64_t n = INT64_MAX;
    pirn_chan_make(int, n);
}
static void overflow_uint64(void)
{
    volatile uint64_t n = (uint64_t)1 << 63;
    pirn_chan_make(char, n);
}
static void overflow_wraps(void)
{
    volatile size_t n = ((size_t)1 << 61) + 1; /* times 8: 8 */
    pirn_chan_make(int64_t, n);
}
static void absurd_element(void)
{
    volatile size_t n = (size_t)1 << 62;
    pirn_chanv_make(n, 2);
}

TEST(sizes)
{
    static const char range[] = "panic: makechan: size out of range";
    CHECK_ALL(P(negative_int, range), P(negative_short, range), P(negative_char, range),
              P(negative_long, range), P(negative_of_nothing, range), P(overflow_int64, range),
              P(overflow_uint64, range), P(overflow_wraps, range), P(absurd_element, range));
}

/* --- released while somebody waits ---------------------------------------------------------------------------- */

static void receives(pirn_chan(int) c)
{
    pirn_chan_get(c);
}
static void sends(pirn_chan(int) c)
{
    pirn_chan_send(c, 1);
}
static void selects(pirn_chan(int) c)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    pirn_select(PIRN_RECV(never, NULL), PIRN_RECV(c, NULL));
}
static void release_under(void (*fn)(pirn_chan(int)))
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(fn, c); /* has id 2: the first of its P, which is reported below */
    settle();
    pirn_chan_release(c);
}
static void release_under_receiver(void)
{
    release_under(receives);
}
static void release_under_sender(void)
{
    release_under(sends);
}
static void release_under_select(void)
{
    release_under(selects);
}

/* With one P only: there it is certain that the other waits. */
TEST_ATTR(released_too_early, .procs = "1")
{
    static const char says[] = "panic: release of the last reference to a channel on which "
                               "goroutine 2 waits";
    CHECK_ALL(P(release_under_receiver, says), P(release_under_sender, says),
              P(release_under_select, says));
}

/* --- for ever ------------------------------------------------------------------------------------------------- */

static void send_null(void)
{
    pirn_chan(int) c = NULL;
    pirn_chan_send(c, 1);
}
static void recv_null(void)
{
    pirn_chan(int) c = NULL;
    pirn_chan_get(c);
}
static void select_null(void)
{
    pirn_chan(int) c = NULL;
    pirn_select(PIRN_SEND(c, 1), PIRN_RECV(c, NULL));
}
static void select_nothing(void)
{
    pirn_selectv(NULL, 0);
}
static void select_zeroed(void)
{
    pirn_case cases[3] = {0};
    pirn_selectv(cases, 3);
}
static void select_not_ready(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0), full = pirn_chan_make(int, 1);
    pirn_chan_send(full, 1);
    pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(c, 1), PIRN_SEND(full, 1));
}
static void recv_empty(void)
{
    pirn_chan_get(pirn_chan_make(int, 3));
}
static void send_full(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    pirn_chan_send(c, 1);
}
static void lock_twice(void)
{
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    pirn_mutex_lock(&m);
}
static void write_after_read(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_rlock(&m);
    pirn_rwmutex_lock(&m);
}
static void read_after_write(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_lock(&m);
    pirn_rwmutex_rlock(&m);
}
static void wait_alone(void)
{
    pirn_mutex m = {0};
    pirn_cond c = {0};
    pirn_mutex_lock(&m);
    pirn_cond_wait(&c, &m);
}
static void acquire_nothing(void)
{
    pirn_sem s = {0};
    pirn_sem_acquire(&s, 1);
}
static void barrier_alone(void)
{
    pirn_barrier b;
    pirn_barrier_init(&b, 2);
    pirn_barrier_wait(&b);
}

TEST_ATTR(waits_for_ever, PROCS, .timeout = 60)
{
    static const char asleep[] = "fatal error: all goroutines are asleep - deadlock!";
#define WAITS(fn, why) PM(fn, asleep, "\ngoroutine 1 [" why)
    CHECK_ALL(WAITS(send_null, "chan send (NULL channel)"),
              WAITS(recv_null, "chan receive (NULL channel)"),
              WAITS(select_null, "select (no cases)"), WAITS(select_nothing, "select (no cases)"),
              WAITS(select_zeroed, "select (no cases)"), WAITS(select_not_ready, "select]"),
              WAITS(recv_empty, "chan receive]"), WAITS(send_full, "chan send]"),
              WAITS(lock_twice, "mutex lock"), WAITS(write_after_read, "rwmutex lock"),
              WAITS(read_after_write, "rwmutex rlock"), WAITS(wait_alone, "cond wait"),
              WAITS(acquire_nothing, "semaphore acquire"), WAITS(barrier_alone, "barrier wait"));
}

/* --- locks ------------------------------------------------------------------------------------------------------ */

static void unlock_fresh(void)
{
    pirn_mutex m = {0};
    pirn_mutex_unlock(&m);
}
static void unlock_twice(void)
{
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    pirn_mutex_unlock(&m);
    pirn_mutex_unlock(&m);
}
static void runlock_fresh(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_runlock(&m);
}
static void runlock_twice(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_rlock(&m);
    pirn_rwmutex_runlock(&m);
    pirn_rwmutex_runlock(&m);
}
static void runlock_written(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_lock(&m);
    pirn_rwmutex_runlock(&m);
}
static void write_unlock_fresh(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_unlock(&m);
}
static void write_unlock_read(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_rlock(&m);
    pirn_rwmutex_unlock(&m);
}
static void write_unlock_twice(void)
{
    pirn_rwmutex m = {0};
    pirn_rwmutex_lock(&m);
    pirn_rwmutex_unlock(&m);
    pirn_rwmutex_unlock(&m);
}
static void wait_unlocked(void)
{
    pirn_mutex m = {0};
    pirn_cond c = {0};
    pirn_cond_wait(&c, &m);
}
static void wg_below_zero(void)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 2);
    pirn_wg_add(&wg, -3);
}
static void sem_release_negative(void)
{
    pirn_sem s = PIRN_SEM_INIT(1);
    pirn_sem_release(&s, -1);
}
static void sem_release_too_much(void)
{
    pirn_sem s = PIRN_SEM_INIT(INT64_MAX);
    pirn_sem_release(&s, 1);
}
static void sem_acquire_negative(void)
{
    pirn_sem s = PIRN_SEM_INIT(1);
    pirn_sem_acquire(&s, -1);
}
static void sem_init_negative(void)
{
    pirn_sem s;
    pirn_sem_init(&s, -1);
}
static void barrier_of_none(void)
{
    pirn_barrier b;
    pirn_barrier_init(&b, 0);
}

TEST(locks)
{
    static const char unlock[] = "fatal error: sync: unlock of unlocked mutex",
                      runlock[] = "fatal error: sync: RUnlock of unlocked RWMutex",
                      wunlock[] = "fatal error: sync: Unlock of unlocked RWMutex",
                      permits[] = "panic: semaphore: negative number of permits",
                      released[] = "panic: semaphore: released more than can be held";
    CHECK_ALL(P(unlock_fresh, unlock), P(unlock_twice, unlock), P(runlock_fresh, runlock),
              P(runlock_twice, runlock), P(runlock_written, runlock),
              P(write_unlock_fresh, wunlock), P(write_unlock_read, wunlock),
              P(write_unlock_twice, wunlock), P(wait_unlocked, unlock),
              P(wg_below_zero, "panic: sync: negative WaitGroup counter"),
              P(sem_release_negative, released), P(sem_release_too_much, released),
              P(sem_acquire_negative, permits), P(sem_init_negative, permits),
              P(barrier_of_none, "panic: barrier: for fewer than one"));
}
