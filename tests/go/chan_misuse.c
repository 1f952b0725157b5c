/* SPDX-License-Identifier: MIT */
/*
 * Sends on closed channels in every phrasing, and capacities of every width: what panics, with Go's
 * words (conformance 14, 15, 18, 21, 24). Each program runs in a child. All else that must die is in
 * tests/die.
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
        if (TEST_TSAN && n % 4)
            continue; /* the end of a process takes it a second */
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
