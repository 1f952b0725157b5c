/* SPDX-License-Identifier: MIT */
/* See redis_table.h. */
#include "redis_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* -- SipHash-1-3 ------------------------------------------------------------------------------ */

static uint64_t seed[2];

void table_seed(void)
{
    if (getrandom(seed, sizeof seed, 0) != sizeof seed) {
        seed[0] = (uint64_t)(uintptr_t)&seed; /* better than nothing */
    }
}

static uint64_t rotl(uint64_t x, int b)
{
    return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

uint64_t table_hash(struct bytes key)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d,
                     seed[0] ^ 0x6c7967656e657261, seed[1] ^ 0x7465646279746573};
    for (size_t i = 0; i <= key.n; i += 8) {
        uint64_t m = 0;
        if (i + 8 <= key.n) {
            memcpy(&m, key.p + i, 8);
        } else {
            if (key.n > i) {
                memcpy(&m, key.p + i, key.n - i);
            }
            m |= (uint64_t)key.n << 56;
        }
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* -- The table -------------------------------------------------------------------------------- */

struct bytes entry_key(const struct entry *e)
{
    return (struct bytes){e->key, e->key_len};
}

static struct entry **find_link(const struct table *t, struct bytes key, uint64_t hash)
{
    struct entry **link = &t->buckets[hash & (t->size - 1)];
    for (; *link; link = &(*link)->next) {
        struct entry *e = *link;
        if (e->hash == hash && e->key_len == key.n && memcmp(e->key, key.p, key.n) == 0) {
            break;
        }
    }
    return link;
}

struct entry *table_find(const struct table *t, struct bytes key)
{
    return t->n > 0 ? *find_link(t, key, table_hash(key)) : NULL;
}

/* To size buckets, all at once. If there is no memory it stays as it is, and is a little slower. */
static void resize(struct table *t, size_t size)
{
    struct entry **buckets = calloc(size, sizeof *buckets);
    if (!buckets) {
        return;
    }
    for (size_t i = 0; i < t->size; i++) {
        for (struct entry *e = t->buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = buckets[e->hash & (size - 1)];
            buckets[e->hash & (size - 1)] = e;
        }
    }
    free(t->buckets);
    t->buckets = buckets;
    t->size = size;
}

struct entry *table_get(struct table *t, struct bytes key)
{
    if (t->n >= t->size) {
        resize(t, t->size ? t->size * 2 : 16);
    }
    if (t->size == 0) {
        return NULL;
    }
    uint64_t hash = table_hash(key);
    struct entry **link = find_link(t, key, hash), *e = *link;
    if (e) {
        return e;
    }
    e = malloc(sizeof *e + key.n);
    if (!e) {
        return NULL;
    }
    *e = (struct entry){.hash = hash, .key_len = (uint32_t)key.n};
    memcpy(e->key, key.p, key.n);
    *link = e;
    t->n++;
    return e;
}

static void remove_at(struct table *t, struct entry **link)
{
    struct entry *e = *link;
    *link = e->next;
    t->n--;
    t->free_value(e);
    free(e);
}

bool table_remove(struct table *t, struct bytes key)
{
    struct entry **link = t->n > 0 ? find_link(t, key, table_hash(key)) : NULL;
    if (!link || !*link) {
        return false;
    }
    remove_at(t, link);
    return true;
}

void table_clear(struct table *t)
{
    for (size_t i = 0; i < t->size; i++) {
        while (t->buckets[i]) {
            remove_at(t, &t->buckets[i]);
        }
    }
    free(t->buckets);
    t->buckets = NULL;
    t->size = 0;
}

bool table_walk(struct table *t, size_t *at, size_t n, void (*fn)(struct entry *e, void *arg),
                void *arg)
{
    for (; n > 0 && *at < t->size; n--, ++*at) {
        for (struct entry *e = t->buckets[*at], *next; e; e = next) {
            next = e->next;
            fn(e, arg);
        }
    }
    return *at >= t->size;
}
