/* SPDX-License-Identifier: MIT */
/*
 * pirn_leak_report: goroutines that nobody can wake are found, and others are not.
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* The channels are lost, which is the point. */
#define LOSES .env = "ASAN_OPTIONS=detect_leaks=0"
#define PROCS .procs = "1,2,4,16", LOSES

typedef pirn_chan(int) chan;

#define YIELD_UNTIL(cond)                                                                          \
    do {                                                                                           \
        while (!(cond))                                                                            \
            pirn_yield();                                                                          \
    } while (0)

static atomic_int waiting;
static chan known;

/* What was on the stack before is no longer there. */
static __attribute__((noinline)) void forget(void)
{
    volatile char junk[4096];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = 0;
}

static void until_waiting(int n)
{
    YIELD_UNTIL(atomic_load(&waiting) == n);
    for (int i = 0; i < 10; i++) /* from there to the wait itself is a few instructions */
        pirn_yield();
    forget();
}

static void needs_reports(void)
{
    if (TEST_TSAN)
        SKIP("there are no reports under ThreadSanitizer");
}

static int report(void)
{
    needs_reports();
    forget();
    int n = pirn_leak_report(-1);
    for (int i = 0; n == -EBUSY && i < 100; i++) { /* not all have stopped within a second */
        n = pirn_leak_report(-1);
    }
    return n;
}

static void receives(chan c)
{
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(c, NULL);
}

static void sends(chan c)
{
    atomic_fetch_add(&waiting, 1);
    pirn_chan_send(c, 1);
}

static void selects(chan a, chan b)
{
    atomic_fetch_add(&waiting, 1);
    (void)pirn_select(PIRN_RECV(a, NULL), PIRN_SEND(b, 1));
}

static void receives_nil(void)
{
    chan none = NULL;
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(none, NULL);
}

static void waits_for_its_own(void)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    atomic_fetch_add(&waiting, 1);
    pirn_wg_wait(&wg);
}

static void locks_twice(void)
{
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    atomic_fetch_add(&waiting, 1);
    pirn_mutex_lock(&m);
}

static __attribute__((noinline)) void plant(void)
{
    pirn_go(receives, pirn_chan_make(int, 0));
    pirn_go(sends, pirn_chan_make(int, 0));
    pirn_go(selects, pirn_chan_make(int, 0), pirn_chan_make(int, 0));
    pirn_go(receives_nil);
    pirn_go(waits_for_its_own);
    pirn_go(locks_twice);
}

TEST_RUN_ATTR(planted, PROCS, .once = true) /* what is left of the last time has addresses */
{
    if (test_on_valgrind()) /* its own memory is searched too, perhaps that is why */
        SKIP("of the three one is never found there");
    plant();
    until_waiting(6);
    /* An address may be left in some corner; those that need none are always found. */
    int n;
    YIELD_UNTIL((n = report()) >= 3);
    CHECK_LE(n, 6);
}

/* On one P nothing else runs in between, so no address is left. */
TEST_RUN_ATTR(planted_all, .procs = "1", LOSES, .once = true)
{
    if (TEST_ASAN || TEST_TSAN || test_on_valgrind())
        SKIP("the tool keeps addresses");
    plant();
    until_waiting(6);
    YIELD_UNTIL(report() == 6);
}

/* --- none ------------------------------------------------------------------------------------------ */

static void relays(chan from, chan to)
{
    int v = 0;
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(from, &v);
    pirn_chan_send(to, v);
}

/* Each is known only to the one before, and the first to main. */
TEST_RUN_ATTR(a_chain_that_main_holds, PROCS)
{
    enum { N = 100 };
    chan first = pirn_chan_make(int, 0), c = first;
    for (int i = 0; i < N; i++) {
        chan next = pirn_chan_make(int, 0);
        pirn_go(relays, c, next);
        c = next;
    }
    pirn_go(receives, c);
    c = NULL;
    until_waiting(N + 1);
    CHECK_EQ(report(), 0);
    pirn_chan_send(first, 1);
}

static void *cell;

TEST_RUN_ATTR(in_the_heap_or_static, PROCS)
{
    struct box {
        char pad[100];
        chan c;
    } *box = malloc(sizeof *box);
    box->c = pirn_chan_make(int, 0);
    cell = box;
    known = pirn_chan_make(int, 0);
    pirn_go(receives, box->c);
    pirn_go(sends, known);
    until_waiting(2);
    CHECK_EQ(report(), 0);
    pirn_chan_send(box->c, 1);
    CHECK_EQ(pirn_chan_get(known), 1);
}

static void in_frame(pirn_wg *wg)
{
    atomic_fetch_add(&waiting, 1);
    pirn_wg_wait(wg);
}

/* The wait group lies on the stack of one that sleeps. */
static void sleeps_with(pirn_wg *done)
{
    struct {
        char pad[300];
        pirn_wg wg;
    } s = {.wg = {0}};
    pirn_wg_add(&s.wg, 1);
    pirn_go(in_frame, &s.wg);
    pirn_wg_wait(done);
    pirn_wg_done(&s.wg);
    pirn_sleep(10 * PIRN_MS);
}

TEST_RUN_ATTR(on_the_stack_of_a_live_one, PROCS)
{
    static pirn_wg done;
    pirn_wg_add(&done, 1);
    pirn_go(sleeps_with, &done);
    until_waiting(1);
    CHECK_EQ(report(), 0);
    pirn_wg_done(&done);
}

static void with_deadline(chan c)
{
    atomic_fetch_add(&waiting, 1);
    (void)pirn_select(PIRN_RECV(c, NULL), PIRN_AFTER(1000 * PIRN_SEC));
}

static void until(chan c)
{
    atomic_fetch_add(&waiting, 1);
    CHECK_EQ(pirn_chan_recv_until(c, NULL, pirn_deadline(1000 * PIRN_SEC)), 0);
}

static void readable(int fd)
{
    atomic_fetch_add(&waiting, 1);
    (void)pirn_select(PIRN_READABLE(fd));
}

static void sleeps(void)
{
    atomic_fetch_add(&waiting, 1);
    pirn_sleep(1000 * PIRN_SEC);
}

static void after(void)
{
    pirn_chan(pirn_ns) c = pirn_after(1000 * PIRN_SEC);
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(c, NULL);
}

TEST_RUN_ATTR(what_comes_by_itself, PROCS)
{
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    pirn_go(with_deadline, pirn_chan_make(int, 0));
    pirn_go(until, pirn_chan_make(int, 0));
    pirn_go(readable, fds[0]);
    pirn_go(sleeps);
    pirn_go(after);
    until_waiting(5);
    CHECK_EQ(report(), 0);
}

/* In the registers of one that blocks its thread, perhaps nowhere else. */
static void reads(int fd, chan c)
{
    char byte;
    atomic_fetch_add(&waiting, 1);
    while (read(fd, &byte, 1) != 1) {
    }
    pirn_chan_send(c, 1);
}

static __attribute__((noinline)) void plant_reader(int fd)
{
    chan c = pirn_chan_make(int, 0);
    pirn_go(reads, fd, c);
    pirn_go(receives, c);
}

TEST_RUN_ATTR(known_to_one_that_blocks, PROCS)
{
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    plant_reader(fds[0]);
    until_waiting(2);
    CHECK_EQ(report(), 0);
    CHECK_EQ(write(fds[1], "", 1), 1);
}

static void computes(chan c)
{
    atomic_fetch_add(&waiting, 1);
    for (pirn_ns end = pirn_now() + 50 * PIRN_MS; pirn_now() < end;)
        __asm__ volatile("");
    pirn_chan_send(c, 1);
}

static __attribute__((noinline)) void plant_computing(void)
{
    chan c = pirn_chan_make(int, 0);
    pirn_go(computes, c);
    pirn_go(receives, c);
}

TEST_RUN_ATTR(known_to_one_that_computes, .procs = "2,4,16", LOSES)
{
    plant_computing();
    YIELD_UNTIL(atomic_load(&waiting) == 2);
    CHECK_EQ(report(), 0);
}

/* --- the report itself ------------------------------------------------------------------------------- */

TEST_RUN(written)
{
    static char text[65536];
    needs_reports();
    FILE *f = tmpfile();
    CHECK(f != NULL);
    pirn_go(receives_nil);
    until_waiting(1);
    YIELD_UNTIL(pirn_leak_report(fileno(f)) == 1);
    rewind(f);
    CHECK_GT(fread(text, 1, sizeof text - 1, f), 0);
    printf("%s", text);
    CHECK(strstr(text, "1 goroutine waits for what nobody else can reach:\n\ngoroutine ") == text);
    CHECK(strstr(text, " [chan receive (NULL channel)") != NULL);
    CHECK(strstr(text, "created by goroutine 1 at ") != NULL);
    fclose(f);
}

TEST(without_a_runtime)
{
    CHECK_EQ(pirn_leak_report(-1), -EAGAIN);
    CHECK_EQ(pirn_dump(STDERR_FILENO), -EAGAIN);
}

static void dense(void *arg)
{
    *(int *)arg = pirn_leak_report(-1);
    ((int *)arg)[1] = pirn_dump(-1);
    atomic_fetch_add(&waiting, 1);
}

TEST_RUN(from_a_dense_stack)
{
    static int results[2];
    CHECK_EQ(pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_8K}, dense, results), 0);
    YIELD_UNTIL(atomic_load(&waiting) == 1);
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        SKIP("there are no dense stacks");
    CHECK_EQ(results[0], -ENOTSUP);
    CHECK_EQ(results[1], -ENOTSUP);
}

/* Ten thousand, found quickly. */
TEST_RUN_ATTR(many, .procs = "2")
{
    int n = 10000;
    needs_reports();
    for (int i = 0; i < n; i++)
        pirn_go(receives_nil);
    YIELD_UNTIL(atomic_load(&waiting) == n);
    YIELD_UNTIL(report() == n);
}
