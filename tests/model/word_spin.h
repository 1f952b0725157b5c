/* SPDX-License-Identifier: MIT */
/* The word lock of os.h, for models that look at something else: who finds it held spins. */
#ifndef TESTS_MODEL_WORD_SPIN_H
#define TESTS_MODEL_WORD_SPIN_H

#include "explorer/model.h"
#include "os/os.h"

uint64_t word_lock_slow(at_u64 *word)
{
    for (;;) {
        uint64_t w = at_load(word, RELAXED);
        if (!(w & WORD_LOCKED) && at_cas(word, &w, w | WORD_LOCKED, ACQUIRE, RELAXED)) {
            return w;
        }
        at_pause();
    }
}

void word_unlock(at_u64 *word, uint64_t value)
{
    at_store(word, value, RELEASE);
}

#endif
