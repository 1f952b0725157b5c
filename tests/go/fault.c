/* SPDX-License-Identifier: MIT */
/* Faults that are panics, and handlers of the program's: numbers 72, 73 and 77 of the conformance list, rule R8. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

/* It is right: the accesses are wrong, and what pirn makes of them is not its business. */
static void skip_if_reported(void)
{
    if (test_on_valgrind()) {
        SKIP("valgrind reports the faults, which are meant");
    }
}

#define PROCS .procs = "1,2,4,16"

static void skip_where_it_is_taken(void)
{
    if (TEST_ASAN || TEST_TSAN)
        SKIP("the sanitizer takes the signal itself");
}

static void expect_panic(void (*fn)(void *), void *arg, const char *text)
{
    pirn_panic_info *p = pirn_try(fn, arg);
    CHECK(p != NULL);
    CHECK_STR(pirn_panic_message(p), text);
    pirn_panic_free(p);
}

static void with_faults(int (*fn)(void *))
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.panic_on_fault = 1}, fn, NULL), 0);
}

/* A sanitizer has something to say on what these do. */
#define UNWATCHED __attribute__((no_sanitize("undefined", "address")))

UNWATCHED static void write_to(void *p)
{
    *(volatile char *)p = 1;
}

#if defined(__x86_64__)
UNWATCHED static void divide(void *n)
{
    *(volatile int *)n = 7 / *(volatile int *)n;
}
#endif

UNWATCHED static void jump_to_null(void *arg)
{
    void (*volatile none)(void);
    memcpy((void *)&none, arg, sizeof none);
    none();
}

static int all(void *arg)
{
    char text[128];
    void *none = NULL;
    for (int i = 0; i < 50; i++) {
        char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect_panic(write_to, NULL,
                     "runtime error: invalid memory address or nil pointer dereference");
        expect_panic(jump_to_null, &none,
                     "runtime error: invalid memory address or nil pointer dereference");
        snprintf(text, sizeof text, "runtime error: SIGSEGV at address %p", (void *)(p + 5));
        expect_panic(write_to, p + 5, text);
        CHECK_EQ(mprotect(p, 4096, PROT_NONE), 0);
        expect_panic(write_to, p + 5, text);
        munmap(p, 4096);
#if defined(__x86_64__)
        int zero = 0;
        expect_panic(divide, &zero, "runtime error: integer divide by zero");
#endif
        pirn_yield();
    }
    return arg != NULL;
}

static int in_many(void *arg)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, all, arg);
    pirn_wg_wait(&wg);
    return 0;
}

/* Number 72. */
TEST_ATTR(faults_are_panics, PROCS)
{
    skip_if_reported();
    if (TEST_TSAN)
        SKIP("the sanitizer puts signals off");
    with_faults(in_many);
}

/* --- progress ---------------------------------------------------------------------------------------- */

static volatile size_t copied;
static char *pages;
static size_t seen;

static void see(void)
{
    CHECK(pirn_recover() != NULL);
    seen = copied;
}

UNWATCHED static void copy_too_much(void *arg)
{
    (void)arg;
    pirn_defer(see);
    for (copied = 0;; copied++)
        pages[copied] = (char)copied;
}

static int copies(void *arg)
{
    size_t size = 4 * (size_t)sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(pages + size / 2, size / 2), 0);
    CHECK(pirn_try(copy_too_much, NULL) == NULL);
    CHECK_EQ(seen, size / 2);
    return arg != NULL;
}

/* Numbers 73 and 77. */
TEST(variables_are_as_at_the_fault)
{
    skip_if_reported();
    if (TEST_TSAN)
        SKIP("the sanitizer puts signals off");
    with_faults(copies);
}

static double sum_in_registers(double a, double b, double c)
{
    for (int i = 0; i < 100; i++)
        a = a * 0.5 + b * c;
    return a;
}

static int keeps_registers(void *arg)
{
    double want = sum_in_registers(1, 2, 3);
    for (int i = 0; i < 200; i++) {
        double x = 1, y = 2, z = 3;
        __asm__ volatile("" : "+r"(arg));
        pirn_panic_free(pirn_try(write_to, NULL));
        double got = sum_in_registers(x, y, z);
        CHECK(got == want);
        pirn_yield();
    }
    return 0;
}

TEST_ATTR(registers_of_the_caller, PROCS)
{
    skip_if_reported();
    if (TEST_TSAN)
        SKIP("the sanitizer puts signals off");
    with_faults(keeps_registers);
}

/* --- in deferred calls ------------------------------------------------------------------------------- */

static void writes_null(void)
{
    write_to(NULL);
}

static void fault_in_deferred(void *arg)
{
    pirn_defer(writes_null);
    pirn_panic("%s", (char *)arg);
}

static int in_deferred(void *arg)
{
    for (int i = 0; i < 20; i++)
        expect_panic(fault_in_deferred, "first",
                     "runtime error: invalid memory address or nil pointer dereference");
    return arg != NULL;
}

TEST(in_a_deferred_call)
{
    skip_if_reported();
    if (TEST_TSAN)
        SKIP("the sanitizer puts signals off");
    with_faults(in_deferred);
}

/* --- handlers of the program's ----------------------------------------------------------------------- */

static atomic_int handled;
static char *page;

/* Repairs it. */
static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (info->si_addr != page || mprotect(page, 4096, PROT_READ | PROT_WRITE))
        _exit(6);
    atomic_fetch_add(&handled, 1);
}

static void set_handler(void)
{
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
}

static int touches(void *arg)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(mprotect(page, 4096, PROT_NONE), 0);
        write_to(page);
    }
    return arg != NULL;
}

static void *touch_in_thread(void *arg)
{
    touches(arg);
    return NULL;
}

static int touches_everywhere(void *arg)
{
    pthread_t t;
    touches(arg);
    CHECK_EQ(pthread_create(&t, NULL, touch_in_thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 0;
}

static bool is_ours(void)
{
    struct sigaction sa;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &sa), 0);
    return sa.sa_sigaction == handler;
}

/* One from before is called for what it knows, and put back at the end. */
TEST(handler_from_before)
{
    skip_if_reported();
    skip_where_it_is_taken();
    set_handler();
    CHECK_EQ(pirn_run(touches_everywhere, NULL), 0);
    CHECK_EQ(atomic_load(&handled), 40);
    CHECK(is_ours());
}

static int set_later(void *arg)
{
    set_handler();
    return touches_everywhere(arg);
}

TEST(handler_from_later)
{
    skip_if_reported();
    skip_where_it_is_taken();
    CHECK_EQ(pirn_run(set_later, NULL), 0);
    CHECK_EQ(atomic_load(&handled), 40);
    CHECK(is_ours());
}

static struct sigaction pirns;

/* Not its own affair: the one from before. */
static void chains(int sig, siginfo_t *info, void *context)
{
    atomic_fetch_add(&handled, 1);
    pirns.sa_sigaction(sig, info, context);
}

static int chain(void *arg)
{
    struct sigaction sa = {.sa_sigaction = chains, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &sa, &pirns), 0);
    for (int i = 0; i < 10; i++)
        expect_panic(write_to, NULL,
                     "runtime error: invalid memory address or nil pointer dereference");
    return arg != NULL;
}

TEST(handler_that_calls_ours)
{
    skip_if_reported();
    if (TEST_TSAN)
        SKIP("the sanitizer puts signals off");
    with_faults(chain);
    CHECK_EQ(atomic_load(&handled), 10);
}

static atomic_int sent;

static void on_sent(int sig)
{
    (void)sig;
    atomic_fetch_add(&sent, 1);
}

static int raises(void *arg)
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(raise(SIGFPE), 0);
        CHECK_EQ(raise(SIGSEGV), 0); /* to this thread: none is lost among others */
    }
    return arg != NULL;
}

/* What somebody sends is no fault. */
TEST(sent)
{
    signal(SIGFPE, on_sent);
    signal(SIGSEGV, on_sent);
    with_faults(raises);
    CHECK_EQ(atomic_load(&sent), 20);
}

static int nothing(void *arg)
{
    return arg != NULL;
}

TEST(actions_are_put_back)
{
    enum { N = 5 };
    struct sigaction before[N], after;
    int sigs[N] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (int i = 0; i < N; i++)
        CHECK_EQ(sigaction(sigs[i], NULL, &before[i]), 0);
    for (int k = 0; k < 3; k++)
        with_faults(nothing);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(sigaction(sigs[i], NULL, &after), 0);
        CHECK(after.sa_handler == before[i].sa_handler);
    }
}
