/* SPDX-License-Identifier: MIT */
/*
 * A hash table from byte strings to values, for redisd. Keys are hashed with SipHash under a random
 * key, so that nobody can choose keys that all fall into one bucket. Not locked: its user locks.
 */
#ifndef EXAMPLES_REDIS_TABLE_H
#define EXAMPLES_REDIS_TABLE_H

#include "resp.h"

struct entry {
    struct entry *next;
    uint64_t hash;
    void *value;     /* the user's */
    int64_t expires; /* ms on the clock of pirn_now(); 0: never */
    int type;        /* the user's */
    uint32_t key_len;
    char key[];
};

struct table {
    struct entry **buckets;
    size_t size; /* of buckets: a power of two, or 0 */
    size_t n;
    void (*free_value)(struct entry *e);
};

void table_seed(void); /* once, before the first table is used */
uint64_t table_hash(struct bytes key);

struct entry *table_find(const struct table *t, struct bytes key);
/* The entry of the key, made if there is none: then its value is NULL. NULL: out of memory. */
struct entry *table_get(struct table *t, struct bytes key);
bool table_remove(struct table *t, struct bytes key); /* false: there was none */
void table_clear(struct table *t);
struct bytes entry_key(const struct entry *e);

/* Calls fn for each entry of buckets from *at on, at most n of them, and moves *at on; true at the end
 * of the table. fn may remove the entry it is called with, and no other. */
bool table_walk(struct table *t, size_t *at, size_t n, void (*fn)(struct entry *e, void *arg),
                void *arg);

#endif
