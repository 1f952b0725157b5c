/* SPDX-License-Identifier: MIT */
// expect-ok
// Where pirn_go can stand, and in what.
#include <pirn.h>
#pragma GCC diagnostic error "-Wshadow"

#define SPAWN(...) pirn_go(__VA_ARGS__)
#define SPAWN_INT(n) pirn_go(f1, n)
#define AND_THEN(x)                                                                                \
    __extension__({                                                                                \
        x;                                                                                         \
        1;                                                                                         \
    })
#define IN_PAREN(x) (x)
#define SAY_AND_DO(x) (void)#x, (x)

void f0(void);
void f1(int n);
void f2(int n, void *p);
void simple(void *p);

void test(int n, pirn_wg *wg);
void test(int n, pirn_wg *wg)
{
    void (*pirn_f)(int) = f1; /* the names that a user has are his own */
    int pirn_k = 0, fn = 0, a = 0;

    if (n)
        pirn_go(f1, n);
    else
        pirn_go(f0);
    if (n)
        pirn_wg_go(wg, f0);
    else if (n == 2)
        pirn_wg_go(wg, f1, 3);
    else
        pirn_go(simple, wg);
    for (int i = 0; i < 10; pirn_go(f1, i), i++)
        pirn_go(f1, i);
    n ? pirn_go(f0) : (void)0;
    (void)pirn_go(f0), n++;
    switch (n) {
    case 1: pirn_go(f0); break;
    default: pirn_wg_go(wg, f1, fn + a + pirn_k);
    }
    pirn_go(pirn_f, pirn_k++);
    IN_PAREN(pirn_go(f1, n));
    SAY_AND_DO(pirn_go(f2, n, wg));
    SPAWN(f2, 1, wg);
    SPAWN(f0);
    SPAWN_INT(n);
    pirn_go(f2, 1,
            /* a comment */ wg);

    pirn_go(f1, AND_THEN(pirn_go(f1, AND_THEN(pirn_go(f0)))));
    pirn_go(f2, AND_THEN(pirn_go(f2, 1, wg)), AND_THEN(pirn_go(simple, wg)) ? wg : 0);
    pirn_wg_go(wg, f1, AND_THEN(pirn_wg_go(wg, f1, AND_THEN(pirn_wg_go(wg, f0)))));
    pirn_wg_go(AND_THEN(pirn_wg_go(wg, f0)) ? wg : 0, f0);
    pirn_go(AND_THEN(pirn_go(f0)) ? f1 : pirn_f, 2);
}
