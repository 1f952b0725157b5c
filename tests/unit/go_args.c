/* SPDX-License-Identifier: MIT */
/*
 * pirn_go: what arrives is what fn(args...) would have passed. A goroutine
 * leaves what it was given in `got`; the wait group says when it has.
 */
#include <pirn.h>

#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum colour { RED, GREEN = 7 };
enum level { LOW = -5, HIGH = 5 };

static pirn_wg wg;
static struct {
    int calls;
    long long i[6];
    double d[6];
    const void *p[6];
    char text[100];
} got;

static void called(void)
{
    __atomic_fetch_add(&got.calls, 1, __ATOMIC_RELAXED);
}

static void reset(void)
{
    memset(&got, 0, sizeof got);
}

static void ran(int calls)
{
    pirn_wg_wait(&wg);
    CHECK_EQ(got.calls, calls);
}

/* --- arities --------------------------------------------------------------------------------- */

static void i0(void)
{
    called();
}

static void i1(int a)
{
    called();
    got.i[0] = a;
}

static void i2(int a, int b)
{
    i1(a);
    got.i[1] = b;
}

static void i3(int a, int b, int c)
{
    i2(a, b);
    got.i[2] = c;
}

static void i4(int a, int b, int c, int d)
{
    i3(a, b, c);
    got.i[3] = d;
}

static void i5(int a, int b, int c, int d, int e)
{
    i4(a, b, c, d);
    got.i[4] = e;
}

static void i6(int a, int b, int c, int d, int e, int f)
{
    i5(a, b, c, d, e);
    got.i[5] = f;
}

static void check_i(int n)
{
    ran(1);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(got.i[i], i < n ? 11 * (i + 1) : 0);
    reset();
}

TEST_RUN(integers)
{
    pirn_wg_go(&wg, i0);
    check_i(0);
    pirn_wg_go(&wg, i1, 11);
    check_i(1);
    pirn_wg_go(&wg, i2, 11, 22);
    check_i(2);
    pirn_wg_go(&wg, i3, 11, 22, 33);
    check_i(3);
    pirn_wg_go(&wg, i4, 11, 22, 33, 44);
    check_i(4);
    pirn_wg_go(&wg, i5, 11, 22, 33, 44, 55);
    check_i(5);
    pirn_wg_go(&wg, i6, 11, 22, 33, 44, 55, 66);
    check_i(6);
}

static void d1(double a)
{
    called();
    got.d[0] = a;
}

static void d2(double a, double b)
{
    d1(a);
    got.d[1] = b;
}

static void d3(double a, double b, double c)
{
    d2(a, b);
    got.d[2] = c;
}

static void d4(double a, double b, double c, double d)
{
    d3(a, b, c);
    got.d[3] = d;
}

static void d5(double a, double b, double c, double d, double e)
{
    d4(a, b, c, d);
    got.d[4] = e;
}

static void d6(double a, double b, double c, double d, double e, double f)
{
    d5(a, b, c, d, e);
    got.d[5] = f;
}

static void f6(float a, float b, float c, float d, float e, float f)
{
    d6((double)a, (double)b, (double)c, (double)d, (double)e, (double)f);
}

static void check_d(int n)
{
    ran(1);
    for (int i = 0; i < 6; i++)
        CHECK(got.d[i] == (i < n ? 1.25 * (i + 1) : 0));
    reset();
}

TEST_RUN(doubles)
{
    pirn_wg_go(&wg, d1, 1.25);
    check_d(1);
    pirn_wg_go(&wg, d2, 1.25, 2.5);
    check_d(2);
    pirn_wg_go(&wg, d3, 1.25, 2.5, 3.75);
    check_d(3);
    pirn_wg_go(&wg, d4, 1.25, 2.5, 3.75, 5.0);
    check_d(4);
    pirn_wg_go(&wg, d5, 1.25, 2.5, 3.75, 5.0, 6.25);
    check_d(5);
    pirn_wg_go(&wg, d6, 1.25, 2.5, 3.75, 5.0, 6.25, 7.5);
    check_d(6);
}

TEST_RUN(floats)
{
    float a = 1.25f;
    double b = 2.5;

    pirn_wg_go(&wg, f6, 1.25f, 2.5f, 3.75f, 5.0f, 6.25f, 7.5f);
    check_d(6);
    pirn_wg_go(&wg, f6, a, 2.5, 3.75, 5.0, 6.25, 7.5); /* double for float, float for double */
    check_d(6);
    pirn_wg_go(&wg, d6, a, b, 3.75f, 4 * a, 6.25f, 7.5f);
    check_d(6);
    pirn_wg_go(&wg, f6, (float)1e-40, -0.0f, 3e38f, 0.1f, 0.0f, -1.5f);
    ran(1);
    CHECK(got.d[0] == (double)1e-40f && got.d[2] == (double)3e38f && got.d[3] == (double)0.1f);
    CHECK(1 / got.d[1] < 0 && got.d[5] == -1.5);
}

static void p6(void *a, const char *b, int *c, enum colour *d, void (*e)(void), const void *f)
{
    called();
    got.p[0] = a;
    got.p[1] = b;
    got.p[2] = c;
    got.p[3] = d;
    got.p[4] = (const void *)(uintptr_t)e;
    got.p[5] = f;
}

TEST_RUN(pointers)
{
    int n[3] = {0};
    enum colour c = RED;
    void *v = &c;
    static const char text[] = "text";

    pirn_wg_go(&wg, p6, &n[1], "literal", n, &c, i0, text);
    ran(1);
    CHECK(got.p[0] == &n[1] && got.p[2] == n && got.p[3] == &c && got.p[5] == text);
    CHECK_STR(got.p[1], "literal");
    CHECK_EQ((uintptr_t)got.p[4], (uintptr_t)i0);
    pirn_wg_go(&wg, p6, text + 2 == NULL ? NULL : v, v, v, v, &i0, v); /* void * for T * */
    ran(2);
    CHECK(got.p[0] == v && got.p[1] == v && got.p[2] == v && got.p[3] == v && got.p[5] == v);
    pirn_wg_go(&wg, p6, 0, NULL, 0, 0L, NULL, (void *)0);
    ran(3);
    for (int i = 0; i < 6; i++)
        CHECK(got.p[i] == NULL);
}

/* --- mixed kinds and narrow types ------------------------------------------------------------ */

static void mixed(int a, double b, long c, float d, void *e, double f)
{
    called();
    got.i[0] = a;
    got.d[1] = b;
    got.i[2] = c;
    got.d[3] = (double)d;
    got.p[4] = e;
    got.d[5] = f;
}

static void last_is_float(const char *a, char b, unsigned short c, bool d, enum level e, float f)
{
    called();
    got.p[0] = a;
    got.i[1] = b;
    got.i[2] = c;
    got.i[3] = d;
    got.i[4] = e;
    got.d[5] = (double)f;
}

TEST_RUN(mixed_kinds)
{
    pirn_wg_go(&wg, mixed, -1, -2.5, -3, -4.5f, &wg, 1e300);
    ran(1);
    CHECK_EQ(got.i[0], -1);
    CHECK(got.d[1] == -2.5);
    CHECK_EQ(got.i[2], -3);
    CHECK(got.d[3] == -4.5);
    CHECK(got.p[4] == &wg);
    CHECK(got.d[5] == 1e300);
    pirn_wg_go(&wg, last_is_float, "s", 'c', 65535, true, LOW, 0.5f);
    ran(2);
    CHECK_STR(got.p[0], "s");
    CHECK_EQ(got.i[1], 'c');
    CHECK_EQ(got.i[2], 65535);
    CHECK_EQ(got.i[3], 1);
    CHECK_EQ(got.i[4], -5);
    CHECK(got.d[5] == 0.5);
}

static void narrow(signed char a, short b, bool c, enum level d, unsigned char e, enum colour f)
{
    i6(a, b, c, (int)d, e, (int)f);
}

static void wide(long a, long long b, unsigned long c, uint64_t d, int64_t e, size_t f)
{
    called();
    got.i[0] = a;
    got.i[1] = b;
    got.i[2] = (long long)c;
    got.i[3] = (long long)d;
    got.i[4] = e;
    got.i[5] = (long long)f;
}

TEST_RUN(narrow_types)
{
    int minus = -1, three = 3;
    signed char sc = -128;
    short s = -32768;
    unsigned char uc = 255;
    bool yes = true;
    enum level low = LOW;

    pirn_wg_go(&wg, narrow, -1, -2, false, HIGH, 255, GREEN);
    ran(1);
    CHECK_EQ(got.i[0], -1);
    CHECK_EQ(got.i[1], -2);
    CHECK_EQ(got.i[2], 0);
    CHECK_EQ(got.i[3], 5);
    CHECK_EQ(got.i[4], 255);
    CHECK_EQ(got.i[5], 7);
    pirn_wg_go(&wg, narrow, sc, s, yes, low, uc, RED);
    ran(2);
    CHECK_EQ(got.i[0], -128);
    CHECK_EQ(got.i[1], -32768);
    CHECK_EQ(got.i[2], 1);
    CHECK_EQ(got.i[3], -5);
    CHECK_EQ(got.i[4], 255);
    CHECK_EQ(got.i[5], 0);
    pirn_wg_go(&wg, narrow, 'c', 5L, 2, 5, 5u, 7); /* bool: any value that is not 0 */
    ran(3);
    CHECK_EQ(got.i[0], 'c');
    CHECK_EQ(got.i[2], 1);
    CHECK_EQ(got.i[4], 5);
    pirn_wg_go(&wg, wide, minus, sc, 5u, 0x80000000u, s, 'f'); /* sign and zero extension */
    ran(4);
    CHECK_EQ(got.i[0], -1);
    CHECK_EQ(got.i[1], -128);
    CHECK_EQ(got.i[2], 5);
    CHECK_EQ(got.i[3], 0x80000000ll);
    CHECK_EQ(got.i[4], -32768);
    CHECK_EQ(got.i[5], 'f');
    pirn_wg_go(&wg, wide, 0, 1, 2, UINT64_MAX, INT64_MIN, sizeof(int));
    ran(5);
    CHECK_EQ(got.i[0], 0);
    CHECK_EQ(got.i[3], -1);
    CHECK_EQ(got.i[4], INT64_MIN);
    CHECK_EQ(got.i[5], 4);
    pirn_wg_go(&wg, i6, minus, sc, s, uc, yes, three * 2L > 5);
    ran(6);
    CHECK_EQ(got.i[0], -1);
    CHECK_EQ(got.i[1], -128);
    CHECK_EQ(got.i[2], -32768);
    CHECK_EQ(got.i[3], 255);
    CHECK_EQ(got.i[4], 1);
    CHECK_EQ(got.i[5], 1);
}

/* --- variadic functions ---------------------------------------------------------------------- */

static void sum(const char *kinds, ...)
{
    va_list ap;

    va_start(ap, kinds);
    for (int i = 0; kinds[i] != '\0'; i++) {
        if (kinds[i] == 'd')
            got.d[i] = va_arg(ap, double);
        else if (kinds[i] == 'l')
            got.i[i] = va_arg(ap, long);
        else
            got.i[i] = va_arg(ap, int);
    }
    va_end(ap);
    called();
}

TEST_RUN(variadic)
{
    float f = 0.5f;
    signed char c = -3;

    pirn_wg_go(&wg, snprintf, got.text, sizeof got.text, "%d %s %g", -3, "and", 2.5);
    pirn_wg_wait(&wg);
    CHECK_STR(got.text, "-3 and 2.5");
    pirn_wg_go(&wg, sprintf, got.text, "%g %g %g %d", f, 2.5, -1e100, c);
    pirn_wg_wait(&wg);
    CHECK_STR(got.text, "0.5 2.5 -1e+100 -3");
    pirn_wg_go(&wg, snprintf, got.text, 4, "plain");
    pirn_wg_wait(&wg);
    CHECK_STR(got.text, "pla");
    pirn_wg_go(&wg, sum, "idild", c, f, -7, -1L, 1e9);
    ran(1);
    CHECK_EQ(got.i[0], -3);
    CHECK(got.d[1] == 0.5);
    CHECK_EQ(got.i[2], -7);
    CHECK_EQ(got.i[3], -1);
    CHECK(got.d[4] == 1e9);
    pirn_wg_go(&wg, sum, "");
    ran(2);
}

/* --- what fn can be -------------------------------------------------------------------------- */

static int asked;

static void (*choose(int which))(int, int)
{
    void (*const table[])(int, int) = {NULL, i2};

    asked++;
    return table[which];
}

TEST_RUN(function_expressions)
{
    void (*f)(int, int) = i2;
    void (*const cf)(int, int) = i2;
    void (*table[3])(int, int) = {NULL, i2, NULL};
    struct {
        void (*f)(int, int);
    } holder = {i2}, *h = &holder;
    int at = 1, n = 0;

    pirn_wg_go(&wg, &i2, 1, n++);
    ran(1);
    pirn_wg_go(&wg, f, 1, n++);
    ran(2);
    pirn_wg_go(&wg, *f, 1, n++);
    ran(3);
    pirn_wg_go(&wg, cf, 1, n++);
    ran(4);
    pirn_wg_go(&wg, table[at++], 1, n++);
    ran(5);
    CHECK_EQ(at, 2);
    pirn_wg_go(&wg, choose(1), 1, n++);
    ran(6);
    CHECK_EQ(asked, 1);
    pirn_wg_go(&wg, at == 2 ? f : NULL, 1, n++);
    ran(7);
    pirn_wg_go(&wg, h->f, 1, n++);
    ran(8);
    pirn_wg_go(&wg, (void (*)(int, int))table[1], 1, n++);
    ran(9);
    CHECK_EQ(got.i[1], 8);
    CHECK_EQ(n, 9);
}

static double returns_double(double d)
{
    d1(d);
    return d;
}

static const char *returns_pointer(const char *p)
{
    called();
    got.p[0] = p;
    return p;
}

__attribute__((warn_unused_result)) static int returns_int(int a, int b)
{
    i2(a, b);
    return a;
}

static bool returns_bool(void *p)
{
    called();
    got.p[0] = p;
    return p != NULL;
}

static float returns_float(void)
{
    called();
    return 1;
}

static enum colour returns_enum(enum colour c)
{
    i1((int)c);
    return c;
}

TEST_RUN(return_values)
{
    pirn_wg_go(&wg, returns_double, 1.25);
    ran(1);
    pirn_wg_go(&wg, returns_pointer, "p");
    ran(2);
    CHECK_STR(got.p[0], "p");
    pirn_wg_go(&wg, returns_int, 3, 4);
    ran(3);
    CHECK_EQ(got.i[1], 4);
    pirn_wg_go(&wg, returns_bool, &wg);
    ran(4);
    CHECK(got.p[0] == &wg);
    pirn_wg_go(&wg, returns_float);
    ran(5);
    pirn_wg_go(&wg, returns_enum, GREEN);
    ran(6);
    CHECK_EQ(got.i[0], 7);
    CHECK(got.d[0] == 1.25);
}

/* Compilers think that nothing comes after a call of the one, or that the other can be left out. */
static _Noreturn void never_returns(int a, double b)
{
    i1(a);
    got.d[0] = b;
    pirn_wg_done(&wg);
    pirn_exit();
}

__attribute__((const, noinline)) static int is_const(int a, int b)
{
    volatile int *calls = &got.calls;

    *calls = *calls + 1;
    return a + b;
}

TEST_RUN(attributes_of_functions)
{
    pirn_wg_add(&wg, 1);
    pirn_go(never_returns, 3, 1.5);
    ran(1);
    CHECK_EQ(got.i[0], 3);
    CHECK(got.d[0] == 1.5);
    pirn_wg_go(&wg, is_const, 1, 2);
    ran(2);
    pirn_wg_go(&wg, strlen, "pure");
    pirn_wg_wait(&wg);
}

/* --- evaluation ------------------------------------------------------------------------------ */

static int groups;

static pirn_wg *group(void)
{
    groups++;
    return &wg;
}

static void takes_pointer(void *p)
{
    called();
    got.p[0] = p;
}

static void adds(int *p, int n)
{
    __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

TEST_RUN(evaluated_once_and_now)
{
    int n = 0, sum_of_all = 0;
    char buffer[2], *p = buffer;
    double d = 1;

    pirn_wg_go(group(), i2, n++, 5);
    n = 100;
    ran(1);
    CHECK_EQ(groups, 1);
    CHECK_EQ(got.i[0], 0);
    pirn_wg_go(group(), takes_pointer, p++);
    ran(2);
    CHECK_EQ(groups, 2);
    CHECK(p == buffer + 1 && got.p[0] == buffer);
    pirn_wg_go(&wg, d1, d *= 3);
    ran(3);
    CHECK(d == 3 && got.d[0] == 3);
    for (int i = 1; i <= 1000; i++)
        pirn_wg_go(&wg, adds, &sum_of_all, i);
    pirn_wg_wait(&wg);
    CHECK_EQ(sum_of_all, 500500);
}

TEST_RUN(simple_functions)
{
    int n = 0;

    pirn_wg_go(&wg, takes_pointer, &n);
    ran(1);
    CHECK(got.p[0] == &n);
    pirn_wg_go(&wg, &takes_pointer, "literal");
    ran(2);
    CHECK_STR(got.p[0], "literal");
    pirn_wg_go(&wg, takes_pointer, NULL);
    ran(3);
    CHECK(got.p[0] == NULL);
    got.p[0] = &n;
    pirn_wg_go(&wg, takes_pointer, 0);
    ran(4);
    CHECK(got.p[0] == NULL);
}

static void done1(int a)
{
    i1(a);
    pirn_wg_done(&wg);
}

static void done_simple(void *p)
{
    takes_pointer(p);
    pirn_wg_done(&wg);
}

static void done0(void)
{
    called();
    pirn_wg_done(&wg);
}

TEST_RUN(without_wait_group)
{
    for (int i = 0; i < 3; i++) {
        pirn_wg_add(&wg, 1);
        if (i == 0)
            pirn_go(done0);
        else if (i == 1)
            pirn_go(done1, 4);
        else
            pirn_go(done_simple, &wg);
        ran(i + 1);
    }
    CHECK_EQ(got.i[0], 4);
    CHECK(got.p[0] == &wg);
}

#define STARTED(...)                                                                               \
    __extension__({                                                                                \
        pirn_wg_go(&wg, __VA_ARGS__);                                                              \
        20;                                                                                        \
    })

TEST_RUN(nested)
{
    pirn_wg_go(&wg, i2, 10, STARTED(d2, 1.5, 2.5));
    ran(2);
    CHECK_EQ(got.i[0], 10);
    CHECK_EQ(got.i[1], 20);
    CHECK(got.d[0] == 1.5 && got.d[1] == 2.5);
    pirn_wg_go(&wg, i3, STARTED(returns_bool, &got), STARTED(i0) + 10, 40);
    ran(5);
    CHECK_EQ(got.i[0], 20);
    CHECK_EQ(got.i[1], 30);
    CHECK_EQ(got.i[2], 40);
    CHECK(got.p[0] == &got);
}
