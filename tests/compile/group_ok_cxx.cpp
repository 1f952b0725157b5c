/* SPDX-License-Identifier: MIT */
// expect-ok
#include <cstdio>
#include <pirn.h>
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic error "-Wshadow"

int none();
int number(int n);
int mixed(char c, double d, const char *s, float f, void *p);
int no_throw(int n) noexcept;

void test(pirn_group *g, void *p, float f);
void test(pirn_group *g, void *p, float f)
{
    int (*variable)(int) = number;

    pirn_group_go(g, none);
    pirn_group_go(g, &none);
    pirn_group_go(g, number, 5);
    pirn_group_go(g, variable, 'c');
    pirn_group_go(g, no_throw, 1);
    pirn_group_go(g, mixed, 'c', 2.5, "text", f, p);
    pirn_group_go(g, [](int i) { return i; }, 3);
    pirn_group_go(g, std::puts, "text");
    pirn_group_go(g, std::printf, "%d\n", 3);
    if (pirn_group_try_go(g, none) && !pirn_group_try_go(g, number, 2))
        pirn_group_go(g, none);
    else
        pirn_group_go(g, number, 3);
    pirn_ctx_release(pirn_ctx_with_cancel(pirn_group_ctx(g)));
    pirn_group_wait(g);
}
