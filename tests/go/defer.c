/* SPDX-License-Identifier: MIT */
/* pirn_defer: numbers 68, 69, 79 and 90 of the conformance list, and rule R10. Also built by tests/levels. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

static char events[4096]; /* of tests with one goroutine */

static void note(const char *text)
{
    size_t n = strlen(events);
    CHECK_LT(n + strlen(text) + 2, sizeof events);
    strcat(strcat(events, text), " ");
}

static void note_int(int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    note(text);
}

static void expect(const char *text)
{
    CHECK_STR(events, text);
    events[0] = '\0';
}

/* --- order ------------------------------------------------------------------------------------------- */

static void in_order(void)
{
    for (int i = 0; i < 10; i++) {
        pirn_defer(note_int, i);
        note("in");
        if (i == 1)
            continue;
        if (i == 3)
            break;
    }
    pirn_defer(note, "first");
    pirn_defer(note, "second");
    {
        pirn_defer(note, "block");
    }
    note("end");
}

TEST_RUN(last_in_first_out)
{
    in_order();
    expect("in 0 in 1 in 2 in 3 block end second first ");
}

static int by_return(int n)
{
    pirn_defer(note, "outer");
    if (n > 0) {
        pirn_defer(note, "inner");
        return n;
    }
    return 0;
}

static void by_goto(void)
{
    int n = 0;
again : {
    pirn_defer(note_int, n);
    if (n++ < 2)
        goto again;
}
    note("out");
}

TEST_RUN(any_way_out)
{
    CHECK_EQ(by_return(1), 1);
    expect("inner outer ");
    CHECK_EQ(by_return(0), 0);
    expect("outer ");
    by_goto();
    expect("0 1 2 out ");
}

/* --- arguments --------------------------------------------------------------------------------------- */

static int evaluated;

static int once(int n)
{
    evaluated++;
    return n;
}

static double sum;

static void six(int a, const char *b, double c, long d, float e, void *f)
{
    sum = a + (double)strlen(b) + c + (double)d + (double)e + (f != NULL);
}

static long returns(char a, short b)
{
    sum = a + b;
    return 1;
}

static void all_kinds(void)
{
    int n = 1;
    pirn_defer(note_int, n);
    n = 2;
    pirn_defer(note_int, once(n));
    n = 3;
    CHECK_EQ(evaluated, 1);
    {
        pirn_defer(six, 1, "ab", 0.5, 4L, 0.25f, &n);
    }
    CHECK(fabs(sum - 8.75) < 1e-9);
    {
        pirn_defer(returns, 'a', 3);
    }
    CHECK(fabs(sum - ('a' + 3)) < 1e-9);
    {
        void *p = malloc(10);
        pirn_defer(free, p);
    }
    {
        void (*pointer)(const char *) = note;
        pirn_defer(pointer, "pointer");
        pointer = NULL;
    }
    {
        char text[64];
        {
            pirn_defer(snprintf, text, sizeof text, "%s %d %.1f", "variadic", 7, 2.5);
            text[0] = '\0';
        }
        CHECK_STR(text, "variadic 7 2.5");
    }
}

TEST_RUN(arguments_are_evaluated_now)
{
    all_kinds();
    CHECK_EQ(evaluated, 1);
    expect("pointer 2 1 ");
}

static void conditional(int which)
{
    pirn_defer(note_int, 0);
    if (which & 1) {
        pirn_defer(note_int, 1);
        if (which & 2) {
            pirn_defer(note_int, 2);
            note("2");
        }
    }
    while (which & 4) {
        pirn_defer(note_int, 4);
        which &= ~4;
    }
}

TEST_RUN(conditions)
{
    conditional(0);
    expect("0 ");
    conditional(3);
    expect("2 2 1 0 ");
    conditional(7);
    expect("2 2 1 4 0 ");
}

/* --- jumps ------------------------------------------------------------------------------------------- */

#ifndef __clang__ /* which does not compile it */
static void jumped_past(int n)
{
    switch (n) {
    case 0:;
        pirn_defer(note, "set");
        note("case");
        break;
    case 1: note("past"); break;
    }
}

/* Also over what a record was before. */
TEST_RUN(a_jump_past_it)
{
    for (int i = 0; i < 4; i++)
        jumped_past(i % 2);
    expect("case set past case set past ");
}
#endif

static jmp_buf out;

static __attribute__((noinline)) void leave_by_longjmp(const char *text)
{
    pirn_defer(note, text);
    pirn_defer(note, "never");
    longjmp(out, 1);
}

static __attribute__((noinline)) int use_stack(int n)
{
    volatile char room[2000];
    memset((void *)(uintptr_t)room, n, sizeof room);
    return room[n];
}

static void longjmps(int use)
{
    pirn_defer(note, "outer");
    for (volatile int i = 0; i < 3; i++) {
        if (setjmp(out) == 0)
            leave_by_longjmp("never");
        if (use)
            CHECK_EQ(use_stack(use), use);
    }
    {
        pirn_defer(note, "inner");
    }
}

static void longjmp_then_panic(void *arg)
{
    pirn_defer(note, "outer");
    if (setjmp(out) == 0)
        leave_by_longjmp("never");
    if (arg)
        CHECK_EQ(use_stack(1), 1);
    pirn_panic("after a longjmp");
}

static void longjmp_at_end(void)
{
    if (setjmp(out) == 0)
        leave_by_longjmp("never");
}

static void longjmp_then_exit(void)
{
    longjmp_at_end();
    pirn_exit();
}

/* What it leaves behind is forgotten. */
TEST_RUN(longjmp)
{
    pirn_wg wg = {0};
    for (int use = 0; use < 2; use++) {
        longjmps(use);
        expect("inner outer ");
        pirn_panic_info *p = pirn_try(longjmp_then_panic, use ? &wg : NULL);
        CHECK_STR(pirn_panic_message(p), "after a longjmp");
        pirn_panic_free(p);
        expect("outer ");
    }
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, longjmp_at_end);
        pirn_wg_wait(&wg); /* one at a time: they share the jmp_buf */
        pirn_wg_go(&wg, longjmp_then_exit);
        pirn_wg_wait(&wg);
    }
    expect("");
}

/* --- deep, many, anywhere ---------------------------------------------------------------------------- */

static void add(int *n, int by)
{
    *n += by;
}

static __attribute__((noinline)) void deep(int n, int *total)
{
    pirn_defer(add, total, 1);
    if (n > 0)
        deep(n - 1, total);
    else
        pirn_yield();
}

static void deep_with_panic(void *arg)
{
    int *total = arg;
    pirn_defer(add, total, 1000);
    deep(200, total);
    pirn_panic("deep");
}

static __attribute__((noinline)) void deep_panic(int n, int *total)
{
    pirn_defer(add, total, 1);
    if (n > 0)
        deep_panic(n - 1, total);
    else if (*total == 0)
        pirn_panic("far");
}

static void panic_far(void *arg)
{
    deep_panic(200, arg);
}

static void goroutine(int n)
{
    int total = 0;
    deep(n, &total);
    CHECK_EQ(total, n + 1);
    total = 0;
    pirn_panic_free(pirn_try(deep_with_panic, &total));
    CHECK_EQ(total, 1201);
    total = 0;
    pirn_panic_free(pirn_try(panic_far, &total));
    CHECK_EQ(total, 201);
}

TEST_RUN_ATTR(deep_stacks, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 40; i++)
        pirn_wg_go(&wg, goroutine, i * 5);
    pirn_wg_wait(&wg);
}

static void dense(void *arg)
{
    int total = 0;
    pirn_defer(pirn_wg_done, arg);
    {
        pirn_defer(add, &total, 1);
        pirn_yield();
    }
    CHECK_EQ(total, 1);
}

TEST_RUN_ATTR(dense_stacks, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 100; i++) {
        pirn_wg_add(&wg, 1);
        int err = pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_2K}, dense, &wg);
        CHECK_EQ(err, 0);
    }
    pirn_wg_wait(&wg);
}

static pirn_mutex mutex;
static int guarded;

static void locked(void)
{
    for (int i = 0; i < 100; i++) {
        pirn_mutex_lock(&mutex);
        pirn_defer(pirn_mutex_unlock, &mutex);
        int n = guarded;
        pirn_yield();
        guarded = n + 1;
    }
}

/* They may wait, and go on on another thread. */
TEST_RUN_ATTR(calls_that_wait, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, locked);
    pirn_wg_wait(&wg);
    CHECK_EQ(guarded, 1000);
}

static void exits(void)
{
    pirn_defer(note, "one");
    {
        pirn_defer(note, "two");
        pirn_exit();
    }
}

TEST_RUN(exit_runs_them)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, exits);
    pirn_wg_wait(&wg);
    expect("two one ");
}

static void *thread(void *arg)
{
    in_order();
    longjmps(0);
    return arg;
}

TEST(threads)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    pthread_join(t, NULL);
    expect("in 0 in 1 in 2 in 3 block end second first inner outer ");
    longjmps(1);
    expect("inner outer ");
}
