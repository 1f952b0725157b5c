/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target is a file that defines this function, which aborts on what must not be. tests/fuzz/run
 * gives it to libFuzzer; in the other builds replay.c calls it with the files of its corpus.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

#endif
