/* SPDX-License-Identifier: MIT */
/* For programs without a race: what TSan reports is a mistake of pirn's. */
#ifndef TESTS_CLEAN_H
#define TESTS_CLEAN_H

#include <pirn.h>

#include "harness.h"

#define CLEAN(name) TEST_RUN_ATTR(name, .procs = "1,2,4")

/* No place of the program's memory is another's: a race on one is a race on it alone. */
struct box {
    long v;
    char room[56];
};

#endif
