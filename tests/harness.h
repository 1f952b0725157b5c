/* SPDX-License-Identifier: MIT */
/*
 * The test harness. A program holds any number of tests; each is run in a
 * process of its own by run.py:
 *
 *     TEST(fifo) { CHECK_EQ(queue_len(), 3); }
 *     TEST_ATTR(steal, .timeout = 60, .procs = "1,2,4,16") { ... }
 *     TEST_RUN(spawn) { pirn_go(...); }        body runs as goroutine 1
 *     TEST_RUN_ATTR(spawn2, .slow = true) { ... }
 *
 *     ./prog --list     names and attributes
 *     ./prog NAME       runs one; exit 0 passed, 77 skipped, else failed
 *     ./prog NAME 50    50 times in one process (more or less): run.py --times
 *
 * A check that fails says where and ends the process at once. It may be called
 * on any thread and on a small goroutine stack: it needs less than 1 KB and
 * uses write(2) only.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

struct test_attr {
    int timeout;       /* seconds; 0 is run.py's default */
    const char *procs; /* "1,2,4,16": one run for each, with PIRN_PROCS set */
    const char *env;   /* "K=V K=V": set for this test */
    bool slow;         /* left out of the quick run */
    bool alone;        /* measures time: nothing else runs beside it */
    bool once;         /* leaves something behind in the process, such as a call at its exit */
};

struct test {
    const char *name;
    void (*fn)(void);
    struct test_attr attr;
    struct test *next;
};

#define TEST(name) TEST_ATTR(name, .timeout = 0)

#define TEST_ATTR(tname, ...)                                                                      \
    static void test_fn_##tname(void);                                                             \
    static struct test test_rec_##tname = {#tname, test_fn_##tname, {__VA_ARGS__}, NULL};          \
    __attribute__((constructor)) static void test_reg_##tname(void)                                \
    {                                                                                              \
        test_register(&test_rec_##tname);                                                          \
    }                                                                                              \
    static void test_fn_##tname(void)

/* These two need <pirn.h>. */
#define TEST_RUN(name) TEST_RUN_ATTR(name, .timeout = 0)

#define TEST_RUN_ATTR(tname, ...)                                                                  \
    static void test_body_##tname(void);                                                           \
    static int test_main_##tname(void *arg)                                                        \
    {                                                                                              \
        (void)arg;                                                                                 \
        test_body_##tname();                                                                       \
        return 0;                                                                                  \
    }                                                                                              \
    TEST_ATTR(tname, __VA_ARGS__)                                                                  \
    {                                                                                              \
        CHECK_EQ(pirn_run(test_main_##tname, NULL), 0);                                            \
    }                                                                                              \
    static void test_body_##tname(void)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, #cond);                                                  \
    } while (0)

/* Integers and pointers; compared and printed as 64 bits, each evaluated once. */
#define CHECK_EQ(a, b) TEST_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) TEST_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) TEST_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) TEST_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) TEST_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) TEST_CHECK_OP(a, >=, b)

#define TEST_CHECK_OP(a, op, b)                                                                    \
    do {                                                                                           \
        long long test_a_ = (long long)(a), test_b_ = (long long)(b);                              \
        if (!(test_a_ op test_b_))                                                                 \
            test_fail_op(__FILE__, __LINE__, #a " " #op " " #b, test_a_, test_b_);                 \
    } while (0)

#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *test_a_ = (a), *test_b_ = (b);                                                 \
        if (!test_str_eq(test_a_, test_b_))                                                        \
            test_fail_str(__FILE__, __LINE__, #a " == " #b, test_a_, test_b_);                     \
    } while (0)

#define FAIL(why) test_fail(__FILE__, __LINE__, why)
#define SKIP(why) test_skip(why)

/* Which tools the test was compiled for. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif
#ifndef TEST_ASAN
#define TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif
#ifndef TEST_TSAN
#define TEST_TSAN 0
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define TEST_MSAN 1
#endif
#endif
#ifndef TEST_MSAN
#define TEST_MSAN 0
#endif

/* Written by libc or the kernel in a way that MemorySanitizer does not see. */
#if TEST_MSAN
#include <sanitizer/msan_interface.h>
#define TEST_KNOWN(addr, size) __msan_unpoison(addr, size)
#else
#define TEST_KNOWN(addr, size) ((void)(addr), (void)(size))
#endif

/* Threads that preemption makes whenever it wants one: factory.c. */
#define TEST_SPARES_AT_ONCE (PIRN_SMALL ? 8 : 64)
#define TEST_SPARE_THREADS(procs)                                                                  \
    (TEST_SPARES_AT_ONCE > 4 * (int)(procs) ? TEST_SPARES_AT_ONCE : 4 * (int)(procs))

/* Run by an emulator of another processor: slow, and its threads wait for locks of its own. */
bool test_emulated(void);

/*
 * Runs fn(arg) in a child, with the default actions for signals that a sanitizer may have taken
 * over, and then exits 0. Returns its wait status; what it wrote to stderr is in test_said.
 */
int test_in_child(void (*fn)(void *), void *arg);
extern char test_said[65536];

/* CPU time of the process, in microseconds. */
long test_cpu_us(void);

/* Bytes that malloc has given out and not got back; with a sanitizer, whose malloc it is, too. */
size_t test_allocated(void);

/* False too if valgrind's headers were not there at the build: pirn does not know then either. */
bool test_on_valgrind(void);

void test_register(struct test *t);
bool test_str_eq(const char *a, const char *b);
_Noreturn void test_fail(const char *file, int line, const char *what);
_Noreturn void test_fail_op(const char *file, int line, const char *what, long long a, long long b);
_Noreturn void test_fail_str(const char *file, int line, const char *what, const char *a,
                             const char *b);
_Noreturn void test_skip(const char *why);

#endif
