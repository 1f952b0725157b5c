/* SPDX-License-Identifier: MIT */
/*
 * The word locks of os.h in one step each, where the sources have loads, a compare and swap, and a
 * loop: for models of what the locks protect. It is included before each source of such a model.
 * Who looks at the word without the lock sees it as it is. The real ones are in the models of
 * os/lock.c, and in those of wait groups.
 */
#ifndef TESTS_MODEL_WORD_H
#define TESTS_MODEL_WORD_H

#include "os/os.h"

uint64_t model_word_lock(at_u64 *word);
void model_word_unlock(at_u64 *word, uint64_t value);
#define word_lock(word) model_word_lock(word)
#define word_unlock(word, value) model_word_unlock(word, value)

#endif
