/* SPDX-License-Identifier: MIT */
/* The harness itself: what passes. What must fail is in tests/selftest.py. */
#include "harness.h"

#include <stdlib.h>

TEST(checks_pass)
{
    int n = 0;

    CHECK(n == 0);
    CHECK_EQ(n++, 0);
    CHECK_EQ(n, 1); /* evaluated once */
    CHECK_NE(-1, 0xffffffffu);
    CHECK_LT(-5, 3);
    CHECK_LE(3, 3);
    CHECK_GT(4, 3);
    CHECK_GE(4, 4);
    CHECK_STR("a", "a");
    CHECK_STR(NULL, NULL);
}

TEST_ATTR(attributes_reach_the_test, .timeout = 10, .procs = "1,2", .env = "A=1 B=x=y")
{
    const char *procs = getenv("PIRN_PROCS");

    CHECK(procs != NULL);
    CHECK(test_str_eq(procs, "1") || test_str_eq(procs, "2"));
    CHECK_STR(getenv("A"), "1");
    CHECK_STR(getenv("B"), "x=y");
}
