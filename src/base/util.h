/* SPDX-License-Identifier: MIT */
/* Small words that every file uses. */
#ifndef PIRN_BASE_UTIL_H
#define PIRN_BASE_UTIL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define CACHE_LINE 64
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))
#define EXPORT __attribute__((visibility("default")))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Takes over a caller's struct whose version is told by its size: what is missing is zero, what
 * is unknown must be zero. */
static inline int versioned_copy(void *known, size_t known_size, const void *given, size_t size)
{
    for (size_t i = known_size; i < size; i++) {
        if (((const char *)given)[i]) {
            return -E2BIG;
        }
    }
    memset(known, 0, known_size);
    memcpy(known, given, min_u64(known_size, size));
    return 0;
}

#endif
