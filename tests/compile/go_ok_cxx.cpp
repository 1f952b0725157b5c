/* SPDX-License-Identifier: MIT */
// expect-ok
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pirn.h>
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic error "-Wshadow"

enum colour { RED };
enum class level { LOW };
struct opaque;

void f0();
void f1(int n);
void no_throw(int n) noexcept;
void numbers(char c, short s, long l, bool b, float f, double d);
void enums(colour c, level l);
int pointers(const char *s, opaque *o, void *v);
void simple(void *p);
[[noreturn]] void never_returns(int a, int b);

void test(int n, opaque *o, pirn_wg *wg, float f);
void test(int n, opaque *o, pirn_wg *wg, float f)
{
    void (*variable)(int) = f1;

    pirn_go(f0);
    pirn_go(&f0);
    pirn_go(f1, n);
    pirn_go(f1, 5L);
    pirn_go(variable, 'c');
    pirn_go(n ? f1 : variable, 2);
    pirn_go(no_throw, 1);
    pirn_go(never_returns, 1, 2);
    pirn_go(&never_returns, 1, 2);
    pirn_go(numbers, 'c', 5, -1, true, 0.5f, f);
    pirn_go(enums, RED, level::LOW);
    pirn_go(pointers, "s", o, o);
    pirn_go(pointers, nullptr, NULL, 0);
    pirn_go(simple, o);
    pirn_go(simple, nullptr);
    pirn_go([] {});
    pirn_go([](int i, double d) { std::printf("%d %g\n", i, d); }, 3, 2.5);
    pirn_go(std::printf, "%d %g\n", 3, 2.5);
    pirn_go(std::strlen, "text");
    pirn_go(std::exit, 3);
    if (n)
        pirn_wg_go(wg, f0);
    else
        pirn_wg_go(wg, f1, 3);
    pirn_wg_go(wg, simple, wg);
}
