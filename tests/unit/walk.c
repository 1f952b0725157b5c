/* SPDX-License-Identifier: MIT */
/* The order in which Ps are visited (conformance 43). The seeds are fixed: the same at every run. */
#include <string.h>

#include "harness.h"
#include "sched/sched.h"

#define MOST 64u
#define WALKS 4000u

TEST(visits_all_once)
{
    struct rand r;
    rand_seed(&r, 1);
    for (uint32_t n = 1; n <= MOST; n++) {
        for (uint32_t k = 0; k < 200; k++) {
            bool seen[MOST] = {false};
            struct walk w;
            uint32_t i, visited = 0;
            walk_begin(&w, &r, n);
            while (walk_next(&w, &i)) {
                CHECK_LT(i, n);
                CHECK(!seen[i]);
                seen[i] = true;
                visited++;
            }
            CHECK_EQ(visited, n);
            CHECK(!walk_next(&w, &i)); /* it stays at its end */
        }
    }
}

TEST(many_ps)
{
    static bool seen[PROCS_MAX];
    struct rand r;
    rand_seed(&r, 2);
    for (uint32_t n = PROCS_MAX - 30; n <= PROCS_MAX; n++) {
        struct walk w;
        uint32_t i, visited = 0;
        memset(seen, 0, sizeof seen);
        walk_begin(&w, &r, n);
        while (walk_next(&w, &i)) {
            CHECK(i < n && !seen[i]);
            seen[i] = true;
            visited++;
        }
        CHECK_EQ(visited, n);
    }
}

static bool coprime(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a == 1;
}

/* Every start and every possible step occurs, none much more often than the others. */
TEST(starts_and_steps_spread)
{
    struct rand r;
    rand_seed(&r, 3);
    for (uint32_t n = 1; n <= MOST; n++) {
        uint32_t start[MOST] = {0}, step[MOST + 1] = {0}, nsteps = 0, possible = 0;
        for (uint32_t k = 0; k < WALKS; k++) {
            struct walk w;
            walk_begin(&w, &r, n);
            CHECK_LT(w.at, n);
            CHECK(w.step >= 1 && w.step <= n && coprime(w.step, n));
            start[w.at]++;
            step[w.step]++;
        }
        for (uint32_t i = 1; i <= n; i++) {
            CHECK_GT(start[i - 1], WALKS / n / 3);
            CHECK_LT(start[i - 1], WALKS / n * 3 + 1);
            possible += coprime(i, n);
            nsteps += step[i] > 0;
        }
        CHECK_EQ(nsteps, possible);
        CHECK(n < 3 || nsteps >= 2);
        for (uint32_t i = 1; i <= n; i++)
            CHECK(!step[i] || (step[i] > WALKS / possible / 3 && step[i] <= WALKS / possible * 3));
    }
}

/* Neighbouring seeds part at once: threads that start together do not walk together. */
TEST(seeds_differ)
{
    uint32_t same = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct rand a, b;
        struct walk x, y;
        rand_seed(&a, seed);
        rand_seed(&b, seed + 1);
        walk_begin(&x, &a, MOST);
        walk_begin(&y, &b, MOST);
        same += x.at == y.at && x.step == y.step;
    }
    CHECK_LT(same, 10); /* of 1000; by chance 1000 / (64 * 32) */
}
