/* SPDX-License-Identifier: MIT */
/*
 * Partial deadlock: goroutines that wait for each other's mutexes, in a circle. The others may go on, so the
 * detector of deadlocks (sched/deadlock.c) sees nothing.
 *
 * A mutex knows the goroutine that has it (sync/mutex.c). Those who have a mutex that is waited for are the
 * nodes, and the mutex that one of them waits for is its edge; a circle of edges is a deadlock. It is
 * looked at while everybody runs. What is read may be gone already, so it is read by way of the kernel. A dump shows what it sees; under PIRN_DEBUG=deadlock=1 sysmon looks every
 * quarter of a second, and reports a circle that it has seen twice, once.
 *
 * (A mutex may be unlocked by anybody. A program that does that by design may be told of a circle which a
 * third goroutine would have opened.)
 */
#include "debug/cycles.h"

#include <unistd.h>

#include "debug/groups.h"
#include "sync/waitq.h"

#define LOOK_EVERY ((int64_t)250 * 1000 * 1000)
#define NODES 4096u /* a power of two; goroutines that have a mutex which is waited for */
#define SHOWN 16u   /* of a circle */

struct node {
    uint64_t id;
    uint64_t holder; /* of the mutex that it waits for; 0: it waits for none */
    uintptr_t mutex;
    uint32_t mark; /* of the walk that came by */
};

struct graph {
    struct node node[NODES];
    uint32_t n;
};

static struct graph graph; /* under busy */
static at_u32 busy;

/* --- edges ------------------------------------------------------------------------------------------- */

/* 0: it does not wait for one. The operation of a wait begins with its mutex (sync/waits.c). */
LOOKS static uintptr_t mutex_waited_for(const struct g *gp)
{
    uint64_t mutex;
    if (at_load(&gp->status, ACQUIRE) != G_WAITING || gp->reason != WAIT_MUTEX) {
        return 0;
    }
    return peek((uintptr_t)gp->run.waiter.object, &mutex) ? (uintptr_t)mutex : 0;
}

uint64_t mutex_holder(const struct g *gp)
{
    uint64_t state;
    uintptr_t m = mutex_waited_for(gp);
    return m && peek(m + offsetof(pirn_mutex, state_), &state) ? mutex_owner(state) : 0;
}

static struct node *find(uint64_t id, bool add)
{
    for (uint64_t i = id * 0x9e3779b97f4a7c15u >> 32;; i++) {
        struct node *n = &graph.node[i % NODES];
        if (n->id == id) {
            return n;
        }
        if (!n->id) {
            if (!add || graph.n == NODES / 2) {
                return NULL;
            }
            graph.n++;
            n->id = id;
            return n;
        }
    }
}

static void add_holder(struct g *gp, void *arg)
{
    uint64_t holder = mutex_holder(gp);
    (void)arg;
    if (holder) {
        find(holder, true);
    }
}

LOOKS static void add_edge(struct g *gp, void *arg)
{
    struct node *n = find(gp->id, false);
    (void)arg;
    if (n) {
        n->mutex = mutex_waited_for(gp);
        n->holder = mutex_holder(gp);
    }
}

static bool build(void)
{
    uint32_t none = 0;
    if (!at_cas(&busy, &none, 1, ACQUIRE, RELAXED)) {
        return false;
    }
    graph.n = 0;
    memset(graph.node, 0, sizeof graph.node);
    g_for_each(add_holder, NULL);
    if (graph.n) {
        g_for_each(add_edge, NULL);
    }
    return true;
}

static void done(void)
{
    at_store(&busy, 0, RELEASE);
}

/* --- circles ------------------------------------------------------------------------------------------ */

static struct node *next_of(const struct node *n)
{
    return n->holder ? find(n->holder, false) : NULL;
}

/* A node of the next circle that no walk has come by; *at: where to go on. */
static struct node *next_circle(uint32_t *at)
{
    while (*at < NODES) {
        struct node *n = &graph.node[(*at)++];
        uint32_t walk = *at;
        for (; n && n->id && !n->mark; n = next_of(n)) {
            n->mark = walk;
        }
        if (n && n->id && n->mark == walk) {
            return n;
        }
    }
    return NULL;
}

static void say_circle(int fd, struct node *first)
{
    struct node *n = first;
    uint32_t shown = 0;
    say_fd(fd, "\ndeadlock of mutexes:\n");
    do {
        say_fd(fd, "\tgoroutine %lu waits for mutex %p, which is held by goroutine %lu\n", n->id,
               (void *)n->mutex, n->holder);
        n = next_of(n);
    } while (n && n != first && ++shown < SHOWN);
    if (n != first) {
        say_fd(fd, "\t...\n");
    }
}

int cycles_print(int fd)
{
    int found = 0;
    uint32_t at = 0;
    if (!build()) {
        return 0;
    }
    for (struct node *n; graph.n && (n = next_circle(&at));) {
        say_circle(fd, n);
        found++;
    }
    done();
    return found;
}

/* --- sysmon -------------------------------------------------------------------------------------------- */

static struct groups picture; /* sysmon's */
struct keys {
    uint64_t key[64];
    uint32_t n; /* of all; the last are kept */
};
static struct keys seen; /* the circles of the last look */
static struct keys told; /* those that were reported */
static int64_t look_at;

/* The same whichever of its goroutines comes first. */
static uint64_t key_of(struct node *first)
{
    uint64_t key = 0;
    struct node *n = first;
    do {
        key += (n->id * 0x9e3779b97f4a7c15u) ^ n->mutex;
        n = next_of(n);
    } while (n && n != first);
    return key | 1;
}

static bool has(const struct keys *k, uint64_t key)
{
    for (uint32_t i = 0; i < min_u64(k->n, ARRAY_LEN(k->key)); i++) {
        if (k->key[i] == key) {
            return true;
        }
    }
    return false;
}

static void keep(struct keys *k, uint64_t key)
{
    k->key[k->n++ % ARRAY_LEN(k->key)] = key;
}

struct members {
    struct node *first;
};

LOOKS static void add_member(struct g *gp, void *arg)
{
    struct members *m = arg;
    struct node *n = m->first;
    do {
        if (n->id == gp->id) {
            groups_add(&picture, gp);
            return;
        }
        n = next_of(n);
    } while (n && n != m->first);
}

static void tell(struct node *first, uint64_t key)
{
    keep(&told, key);
    say_fd(STDERR_FILENO, "pirn: some goroutines wait for each other:\n");
    say_circle(STDERR_FILENO, first);
    groups_begin(&picture, NULL);
    picture.here.known = 0;
    g_for_each(add_member, &(struct members){first});
    groups_print(&picture, STDERR_FILENO);
    say_fd(STDERR_FILENO, "\n");
}

int64_t cycles_look(int64_t now)
{
    uint32_t at = 0;
    struct keys now_seen = {.n = 0};
    if (likely(!sched.cycles)) {
        return INT64_MAX;
    }
    if (now < look_at || !build()) {
        return look_at;
    }
    for (struct node *n; graph.n && (n = next_circle(&at));) {
        uint64_t key = key_of(n);
        if (has(&told, key)) {
            continue;
        }
        if (has(&seen, key) && say_can()) { /* else sysmon would wait here, and all others for it */
            tell(n, key);
        } else {
            keep(&now_seen, key);
        }
    }
    seen = now_seen;
    done();
    return look_at = now + LOOK_EVERY;
}
