/* SPDX-License-Identifier: MIT */
/*
 * Goroutine-local values: an array for each goroutine that has any, indexed by key. They take the
 * place of __thread, which belongs to the thread and not to the goroutine.
 */
#include <errno.h>
#include <stdlib.h>

#include "sched/sched.h"

#define KEYS_MAX 1024u
#define ROUNDS_MAX 4 /* a destructor may set values again; this often is enough */

static struct lock local_lock = LOCK_INIT(RANK_LOCAL);
static at_u32 nkeys; /* keys live as long as the process */
static void (*dtors[KEYS_MAX])(void *);

void local_hold(void)
{
    lock(&local_lock);
}

void local_let_go(void)
{
    unlock(&local_lock);
}

EXPORT int pirn_local_new(pirn_local_key *key, void (*dtor)(void *))
{
    enter();
    lock(&local_lock);
    uint32_t n = at_load(&nkeys, RELAXED);
    if (n < KEYS_MAX) {
        dtors[n] = dtor;
        at_store(&nkeys, n + 1, RELEASE); /* pairs with the ACQUIRE in pirn_local_set */
        *key = n;
    }
    unlock(&local_lock);
    leave();
    return n < KEYS_MAX ? 0 : -EAGAIN;
}

EXPORT void *pirn_local_get(pirn_local_key key)
{
    struct m *mp = stop_point();
    if (!mp) {
        misuse("pirn_local_get outside a goroutine");
    }
    struct gextra *x = mp->curg->extra;
    return x && key < x->nlocals ? x->locals[key] : NULL;
}

EXPORT int pirn_local_set(pirn_local_key key, void *value)
{
    struct m *mp = stop_point();
    if (!mp) {
        misuse("pirn_local_set outside a goroutine");
    }
    if (key >= at_load(&nkeys, ACQUIRE)) {
        return -EINVAL;
    }
    struct gextra *x = g_extra(mp->curg);
    if (!x) {
        return -ENOMEM;
    }
    if (key >= x->nlocals) {
        uint32_t n = (uint32_t)min_u64(KEYS_MAX, (key + 8) & ~7u);
        void **p = realloc(x->locals, n * sizeof *p);
        if (!p) {
            return -ENOMEM;
        }
        memset(p + x->nlocals, 0, (n - x->nlocals) * sizeof *p);
        x->locals = p;
        x->nlocals = n;
    }
    x->locals[key] = value;
    return 0;
}

/* By the goroutine itself, at its end: the destructors are the program's and may do anything. */
void local_end(struct g *gp)
{
    struct gextra *x = gp->extra;
    bool again = x->nlocals > 0;
    for (int round = 0; round < ROUNDS_MAX && again; round++) {
        again = false;
        for (uint32_t i = 0; i < x->nlocals; i++) {
            void *value = x->locals[i];
            x->locals[i] = NULL;
            if (value && dtors[i]) {
                dtors[i](value);
                again = true;
            }
        }
    }
    free(x->locals);
    x->locals = NULL;
    x->nlocals = 0;
}
