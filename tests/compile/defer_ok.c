/* SPDX-License-Identifier: MIT */
// expect-ok
// Where pirn_defer can stand, with what.
// also: -O2
// also: -O2 -Wshadow -Wconversion
// also: -O3 -Wunused -Wuninitialized
// also: -std=gnu2x
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>

enum colour { RED };
void f0(void);
void f1(int n);
void f6(int a, const char *b, double c, long d, float e, void *f);
double returns_double(enum colour c, bool b);
void simple(void *p);
_Noreturn void never_returns(int n);

#define AT_END(...) pirn_defer(__VA_ARGS__)

static inline void in_header(int n)
{
    pirn_defer(f1, n);
}

int test(int n, void *p, FILE *f);
int test(int n, void *p, FILE *f)
{
    void (*variable)(int) = f1;
    pirn_defer(f0);
    pirn_defer(&f0);
    pirn_defer(f1, n);
    pirn_defer(variable, 5L);
    pirn_defer(n ? f1 : variable, 'c');
    pirn_defer(f6, n, "x", 0.5, 1, 0.25f, p);
    pirn_defer(returns_double, RED, true);
    pirn_defer(simple, p);
    pirn_defer(simple, NULL);
    pirn_defer(fclose, f);
    pirn_defer(free, p);
    pirn_defer(printf, "%d %s\n", n, "x");
    pirn_defer(pirn_recover);
    AT_END(f1, 1);
    AT_END(f1, 2);
    if (n) {
        pirn_defer(f1, n);
    }
    for (int i = 0; i < n; i++) {
        pirn_defer(f1, i);
        if (i == 3)
            continue;
        if (i == 4)
            break;
        if (i == 5)
            goto out;
    }
    switch (n) {
    case 1: {
        pirn_defer(f1, 1);
        break;
    }
    default: break;
    }
out:
    in_header(n);
    const char *message = pirn_recover();
    pirn_panic_info *info = pirn_try(simple, p);
    if (info)
        puts(pirn_panic_message(info));
    pirn_panic_free(info);
    if (n == 7)
        pirn_panic("%s %d", message ? message : "", n);
    if (n == 8) {
        pirn_defer(never_returns, 1);
        return 1;
    }
    return 0;
}
