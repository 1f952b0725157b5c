/* SPDX-License-Identifier: MIT */
// expect-ok
// What fn(args...) takes, without a warning.
#include <pirn.h>
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic error "-Wsign-conversion"
#pragma GCC diagnostic error "-Wshadow"
#pragma GCC diagnostic error "-Wdeclaration-after-statement"

enum colour { RED, GREEN, LOW = -1 };
struct opaque;

void ints(char c, short s, int i, long l, unsigned u, size_t z);
void others(bool b, enum colour c, signed char s, uint8_t u8, int64_t i64, uint16_t u16);
void floats(float f, double d, float g);
void pointers(void *v, const void *cv, int *i, const char *s, struct opaque *o, void (*f)(int));
void simple(void *v);
void taker(pirn_wg *wg);
void f1(int n);

void test(int n, char *p, void *v, int a[3], struct opaque *o, enum colour c, bool b, float f,
          double d);
void test(int n, char *p, void *v, int a[3], struct opaque *o, enum colour c, bool b, float f,
          double d)
{
    int local[3] = {0};
    const char constant[] = "text";
    char letter = 'x';
    pirn_wg wg = {0};

    pirn_go(ints, 'c', 1, 2, 3, 4, 5);
    pirn_go(ints, -1, -2, -3, -4, 5u, 6u);
    pirn_go(ints, 5u, 5L, 5UL, 5u, 5L, 5);
    pirn_go(ints, letter, letter, letter, n, 'u', sizeof n);
    pirn_go(ints, 0, false, RED, c == RED, 0, 0);
    pirn_go(others, true, RED, -1, 255, -1, 65535);
    pirn_go(others, 0, LOW, 'c', 0, INT64_MIN, 0);
    pirn_go(others, b, c, (signed char)n, (uint8_t)n, n, 5L);
    pirn_go(others, n, 1, 1, 1, 1, 1);
    pirn_go(floats, 1.0, 1.0f, 0.5);
    pirn_go(floats, f, f, f);
    pirn_go(floats, 1.5f, d, -2.0f);
    pirn_go(f1, c);
    pirn_go(f1, b);
    pirn_go(f1, *p);
    pirn_go(f1, a[1] + (d > 1));

    pirn_go(pointers, 0, 0, 0, 0, 0, 0);
    pirn_go(pointers, NULL, NULL, NULL, NULL, NULL, NULL);
    pirn_go(pointers, p, p, a, p, o, f1);
    pirn_go(pointers, a, constant, local, constant, o, &f1);
    pirn_go(pointers, v, v, v, v, v, NULL);
    pirn_go(pointers, o, o, &local[1], "literal", v, n ? f1 : 0);
    pirn_go(simple, 0);
    pirn_go(simple, NULL);
    pirn_go(simple, p);
    pirn_go(simple, v);
    pirn_go(simple, o);
    pirn_go(simple, local);
    pirn_go(simple, "literal");
    pirn_go(simple, &wg);
    pirn_wg_go(&wg, taker, &wg);
    pirn_wg_go(&wg, simple, &wg);
    pirn_wg_go(v, f1, 1);
}
