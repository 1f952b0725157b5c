/* SPDX-License-Identifier: MIT */
/*
 * Inside the stack allocator: stack.c has the per-P side, stackmem.c the pools behind it.
 */
#ifndef PIRN_SCHED_STACK_H
#define PIRN_SCHED_STACK_H

#include "sched/sched.h"

#define CHUNK_SLOTS 1024u /* most slots of a chunk */
#define CHUNK_WORDS (CHUNK_SLOTS / 64)

struct chunk {
    char *base;
    uint32_t nslots;
    uint32_t nguarded;     /* slots below this index have their guard */
    uint32_t nmprotected;  /* of these, those that count against MPROTECT_LIMIT */
    uint32_t nfree, nwarm; /* set bits below */
    bool unguarded;
    uint64_t free[CHUNK_WORDS];
    uint64_t warm[CHUNK_WORDS]; /* free, and its pages are kept; a subset of free */
};

struct pool { /* one for each class, under its lock */
    struct lock lock;
    int class;
    size_t slot_size;
    struct chunk **chunks; /* sorted by base */
    uint32_t nchunks, room;
    uint32_t nfull;    /* chunks below this index have no free slot */
    uint32_t nprocs;   /* Ps whose caches must be filled too */
    uint64_t total;    /* slots of all chunks */
    uint64_t promised; /* granted to Ps and goroutines */
    uint64_t out;      /* with Ps and goroutines */
    uint64_t warm;     /* sum of nwarm */
    uint64_t peak;     /* of out, decaying */
    int64_t trimmed_at;
    uint32_t guard_batch; /* doubles: small programs guard few */
};

int pool_promise(int class, uint32_t n); /* 0 or -ENOMEM */
void pool_unpromise(int class, uint32_t n);
uint32_t pool_take(int class, uintptr_t *slots, uint32_t n); /* at least one if promises are kept */
void pool_give(int class, const uintptr_t *slots, uint32_t n);

#endif
