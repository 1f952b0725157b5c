/* SPDX-License-Identifier: MIT */
/* The word locks of os.h in one step each: explorer/word.h. */
#include "explorer/word.h"

#include "explorer/explorer.h"

/* The word itself is an atomic variable, so the lock of the explorer's is another object: one for each
 * address, for as long as the process lives, so that all executions have the same. */
#define WORDS 64
static const at_u64 *words[WORDS];
static _Alignas(8) char keys[WORDS * 8];

static void *key_of(const at_u64 *word)
{
    for (int i = 0; i < WORDS; i++) {
        words[i] = words[i] ? words[i] : word;
        if (words[i] == word) {
            return &keys[i * 8];
        }
    }
    model_fail("more than %d word locks", WORDS);
}

uint64_t model_word_lock(at_u64 *word)
{
    model_lock(key_of(word));
    uint64_t w = at_or(word, WORD_LOCKED, ACQUIRE);
    CHECK(!(w & WORD_LOCKED));
    return w;
}

void model_word_unlock(at_u64 *word, uint64_t value)
{
    CHECK(!(value & WORD_LOCKED));
    CHECK(at_xchg(word, value, RELEASE) & WORD_LOCKED);
    model_unlock(key_of(word));
}
