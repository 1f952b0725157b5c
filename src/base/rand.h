/* SPDX-License-Identifier: MIT */
/* Cheap random numbers for scheduling decisions; one generator for each owner, no locks. */
#ifndef PIRN_BASE_RAND_H
#define PIRN_BASE_RAND_H

#include <stdint.h>

struct rand {
    uint64_t state;
};

/* Any seed will do, zero too: it is mixed so that neighbouring seeds part at once. */
static inline void rand_seed(struct rand *r, uint64_t seed)
{
    seed += 0x9e3779b97f4a7c15u;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
    r->state = (seed ^ (seed >> 31)) | 1;
}

/* xorshift64*: the high half is the good half. */
static inline uint32_t rand_u32(struct rand *r)
{
    uint64_t x = r->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    r->state = x;
    return (uint32_t)((x * 0x2545f4914f6cdd1du) >> 32);
}

/* Uniform enough in [0, n), n > 0, without a division. */
static inline uint32_t rand_below(struct rand *r, uint32_t n)
{
    return (uint32_t)(((uint64_t)rand_u32(r) * n) >> 32);
}

#endif
