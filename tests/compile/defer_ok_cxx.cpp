/* SPDX-License-Identifier: MIT */
// expect-ok
// also: -O2 -Wshadow -Wconversion
// also: -std=c++20
#include <cstdio>
#include <cstdlib>
#include <pirn.h>

enum class level { LOW };
void f0();
void f1(int n);
void f6(int a, const char *b, double c, long d, float e, void *f);
void enums(level l);
void simple(void *p);

int test(int n, void *p, FILE *f);
int test(int n, void *p, FILE *f)
{
    void (*variable)(int) = f1;
    pirn_defer(f0);
    pirn_defer(f1, n);
    pirn_defer(variable, 5);
    pirn_defer(f6, n, "x", 0.5, 1L, 0.25f, p);
    pirn_defer(enums, level::LOW);
    pirn_defer(simple, p);
    pirn_defer(fclose, f);
    pirn_defer([](int k) { std::printf("%d\n", k); }, n);
    pirn_defer([] { std::puts(pirn_recover() ? "recovered" : "not"); });
    for (int i = 0; i < n; i++) {
        pirn_defer(f1, i);
        if (i == 3)
            break;
    }
    pirn_panic_info *info = pirn_try(simple, p);
    pirn_panic_free(info);
    if (n == 7)
        pirn_panic("%d", n);
    return 0;
}
