/* SPDX-License-Identifier: MIT */
/* The memory in which debug/leaks.c looks for addresses: leakmem.c. */
#ifndef PIRN_DEBUG_LEAKMEM_H
#define PIRN_DEBUG_LEAKMEM_H

#include "sched/sched.h"

struct owned { /* a stack, and whose it is */
    uintptr_t hi;
    struct g *g;
};

struct range {
    uintptr_t lo, hi;
};

struct leakmem {
    char *at, *end;       /* working memory, from one mapping */
    struct owned *stacks; /* sorted */
    uint32_t nstacks, stacks_room;
    struct range *without; /* pirn's own; sorted */
    uint32_t nwithout, without_room;
    uintptr_t *buffer;
    size_t size; /* of the mapping */
    void *base;
};

typedef void words_fn(const uintptr_t *words, size_t n, uintptr_t where);

/* Working memory with room for more bytes, and what is needed here. own: the searcher's, left out too. False: there
 * is no memory. */
bool leakmem_begin(struct leakmem *m, size_t more, void *own, size_t own_size);
void leakmem_end(struct leakmem *m);
void *leakmem_take(struct leakmem *m, size_t size);

/* The goroutine whose stack this is part of; NULL: none. */
struct g *leakmem_goroutine_at(const struct leakmem *m, const void *addr);
/* Of who searches: where the frames of the search end, and those of the program begin. */
extern void *leakmem_from;
/* Where the used part of its stack begins. */
void *leakmem_used(const struct g *gp);
/* All that the program can write to, without goroutine stacks and what is pirn's. False: it can't
 * be read, or not /proc. */
bool leakmem_search(struct leakmem *m, words_fn *fn);

void leakmem_sort(void *array, uint32_t n, size_t size, bool (*before)(const void *, const void *));

#endif
