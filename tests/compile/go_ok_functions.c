/* SPDX-License-Identifier: MIT */
// expect-ok
// What fn can be.
#include <math.h>
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void handler(int n, double d);
struct ops {
    handler *run;
};

void f0(void);
void f2(int n, double d);
int returns_int(int n);
double returns_double(void);
char *returns_pointer(const char *s);
bool returns_bool(bool b);
handler *choose(void);
_Noreturn void never_returns(int a, int b);
static inline void inlined(int n)
{
    (void)n;
}

void test(struct ops *ops, handler *table[], int i, char *p, const char *q, size_t n);
void test(struct ops *ops, handler *table[], int i, char *p, const char *q, size_t n)
{
    handler *variable = f2;
    handler *const constant = f2;

    pirn_go(f0);
    pirn_go(&f0);
    pirn_go((f0));
    pirn_go(f2, 1, 2.0);
    pirn_go(&f2, 1, 2.0);
    pirn_go(*f2, 1, 2.0);
    pirn_go(variable, 1, 2.0);
    pirn_go(*variable, 1, 2.0);
    pirn_go(constant, 1, 2.0);
    pirn_go(table[i++], 1, 2.0);
    pirn_go(ops->run, 1, 2.0);
    pirn_go(choose(), 1, 2.0);
    pirn_go(i ? f2 : variable, 1, 2.0);
    pirn_go((handler *)0, 1, 2.0);
    pirn_go(inlined, 1);
    pirn_go(never_returns, 1, 2);
    pirn_go(returns_int, 1);
    pirn_go(returns_double);
    pirn_go(returns_pointer, "s");
    pirn_go(returns_bool, true);

    pirn_go(printf, "%d %g\n", 3, 2.5);
    pirn_go(printf, "plain\n");
    pirn_go(snprintf, p, n, "%s %d", q, i);
    pirn_go(puts, "text");
    pirn_go(putchar, 'c');
    pirn_go(fflush, stdout);
    pirn_go(write, 1, "text", 4);
    pirn_go(close, i);
    pirn_go(free, p);
    pirn_go(malloc, 10);
    pirn_go(memcpy, p, q, n);
    pirn_go(memset, p, 0, sizeof(double));
    pirn_go(strlen, q);
    pirn_go(abs, i);
    pirn_go(labs, i);
    pirn_go(sqrt, 2.0);
    pirn_go(pow, 2.0f, 0.5);
    pirn_go(ldexp, 0.5, 3);
    pirn_go(strtol, q, NULL, 10);
    pirn_go(execl, "/bin/sh", "sh", (char *)0);
    pirn_go(exit, 3);
    pirn_go(abort);
}
