/* SPDX-License-Identifier: MIT */
/*
 * The ring of a P: order and counts at every size (conformance 40), stealing (41), never empty in
 * appearance (42), one owner against thieves, and indices that wrap at 2^32.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "harness.h"
#include "sched/sched.h"

/* Where head and tail begin: at zero, and so that they wrap within the test. */
static const uint32_t starts[] = {0, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX - RING / 2,
                                  0x80000000u};

static struct g gs[2 * RING + 2];

static void begin(struct runq *q, uint32_t at)
{
    memset(q, 0, sizeof *q);
    at_store(&q->head, at, RELAXED);
    at_store(&q->tail, at, RELAXED);
}

static void put(struct runq *q, struct g *gp)
{
    struct glist overflow = {0};
    if (runq_room_owner(q) > 0) {
        CHECK(!runq_put_full_owner(q, gp, &overflow)); /* there is room: nothing happens */
        CHECK_EQ(overflow.n, 0);
    }
    CHECK(runq_put_owner(q, gp));
}

static void fill(struct runq *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        put(q, &gs[i]);
}

static void check_len(const struct runq *q, uint32_t n)
{
    CHECK_EQ(runq_len(q), n);
    CHECK_EQ(runq_room_owner(q), RING - n);
    CHECK_EQ(runq_empty(q), n == 0 && !at_load(&q->next, RELAXED));
    CHECK(runq_valid(q));
}

/* What the owner runs next: runnext, else the head of the ring. */
static struct g *get_any(struct runq *q)
{
    struct g *gp = runq_take_next_owner(q);
    return gp ? gp : runq_get_owner(q);
}

TEST(order_and_count)
{
    static struct runq q;
    for (size_t s = 0; s < ARRAY_LEN(starts); s++) {
        for (uint32_t n = 0; n <= RING; n++) {
            begin(&q, starts[s]);
            for (uint32_t i = 0; i < n; i++) {
                check_len(&q, i);
                put(&q, &gs[i]);
            }
            for (uint32_t i = 0; i < n; i++) {
                check_len(&q, n - i);
                CHECK_EQ(runq_get_owner(&q), &gs[i]);
            }
            check_len(&q, 0);
            CHECK_EQ(runq_get_owner(&q), NULL);
            check_len(&q, 0);
        }
    }
}

/* Puts and gets in turn, at each length, several times round the ring. */
TEST(order_while_it_turns)
{
    static struct runq q;
    for (uint32_t n = 1; n <= RING; n += n < 8 ? 1 : 31) {
        begin(&q, UINT32_MAX - RING);
        fill(&q, n - 1);
        for (uint32_t i = 0; i < 3 * RING; i++) {
            put(&q, &gs[(n - 1 + i) % ARRAY_LEN(gs)]);
            check_len(&q, n);
            CHECK_EQ(runq_get_owner(&q), &gs[i % ARRAY_LEN(gs)]);
        }
    }
}

TEST(overflow)
{
    static struct runq q;
    for (size_t s = 0; s < ARRAY_LEN(starts); s++) {
        begin(&q, starts[s]);
        fill(&q, RING);
        struct glist over = {0};
        CHECK(!runq_put_owner(&q, &gs[RING]));
        check_len(&q, RING);
        CHECK(runq_put_full_owner(&q, &gs[RING], &over));
        CHECK_EQ(over.n, RING / 2 + 1);
        for (uint32_t i = 0; i < RING / 2; i++)
            CHECK_EQ(glist_get(&over), &gs[i]);
        CHECK_EQ(glist_get(&over), &gs[RING]);
        CHECK_EQ(glist_get(&over), NULL);
        CHECK_EQ(over.n, 0);
        check_len(&q, RING / 2);
        for (uint32_t i = RING / 2; i < RING; i++)
            CHECK_EQ(runq_get_owner(&q), &gs[i]);
        check_len(&q, 0);
    }
}

TEST(runnext)
{
    static struct runq q;
    begin(&q, 0);
    CHECK_EQ(runq_take_next_owner(&q), NULL);
    put(&q, &gs[0]);
    CHECK_EQ(runq_put_next_owner(&q, &gs[1]), NULL);
    CHECK(!runq_empty(&q));
    struct g *kicked = runq_put_next_owner(&q, &gs[2]); /* the last put runs first */
    CHECK_EQ(kicked, &gs[1]);
    put(&q, kicked); /* whom it pushed aside queues at the tail */
    CHECK_EQ(get_any(&q), &gs[2]);
    CHECK_EQ(runq_get_owner(&q), &gs[0]);
    CHECK_EQ(runq_get_owner(&q), &gs[1]);
    CHECK(runq_empty(&q));

    /* runnext alone makes the queue not empty, but has no place in the ring */
    CHECK_EQ(runq_put_next_owner(&q, &gs[3]), NULL);
    CHECK(!runq_empty(&q));
    CHECK_EQ(runq_len(&q), 0);
    CHECK_EQ(runq_steal_next(&q, &gs[4]), NULL); /* another one is there */
    CHECK_EQ(runq_steal_next(&q, &gs[3]), &gs[3]);
    CHECK_EQ(runq_steal_next(&q, &gs[3]), NULL);
    CHECK(runq_empty(&q));
    CHECK_EQ(runq_put_next_owner(&q, &gs[5]), NULL);
    CHECK_EQ(runq_take_next_owner(&q), &gs[5]);
    CHECK(runq_empty(&q));
}

/* The thief gets the older half, rounded up; the youngest of it to run at once. */
TEST(steal_half)
{
    static struct runq src, dst;
    for (size_t s = 0; s < ARRAY_LEN(starts); s++) {
        for (uint32_t n = 0; n <= RING; n++) {
            begin(&src, starts[s]);
            begin(&dst, starts[(s + n) % ARRAY_LEN(starts)]);
            fill(&src, n);
            CHECK_EQ(runq_put_next_owner(&src, &gs[RING + 1]), NULL);
            uint32_t stolen = 12345, half = n - n / 2;
            struct g *gp = runq_steal(&dst, &src, &stolen);
            if (n == 0) {
                CHECK_EQ(gp, NULL);
                check_len(&dst, 0);
            } else {
                CHECK_EQ(stolen, half);
                CHECK_EQ(gp, &gs[half - 1]);
                check_len(&dst, half - 1);
                check_len(&src, n / 2);
            }
            for (uint32_t i = 0; i + 1 < half; i++)
                CHECK_EQ(runq_get_owner(&dst), &gs[i]);
            CHECK_EQ(runq_get_owner(&dst), NULL);
            CHECK_EQ(runq_take_next_owner(&src), &gs[RING + 1]); /* runnext is not stolen so */
            for (uint32_t i = half; i < n; i++)
                CHECK_EQ(runq_get_owner(&src), &gs[i]);
            check_len(&src, 0);
        }
    }
}

TEST(valid)
{
    static struct runq q;
    begin(&q, UINT32_MAX - 1);
    CHECK(runq_valid(&q));
    fill(&q, RING);
    CHECK(runq_valid(&q));
    at_store(&q.slot[1], NULL, RELAXED);
    CHECK(!runq_valid(&q));
    begin(&q, 7);
    fill(&q, 2);
    at_store(&q.slot[(7 + 2) % RING], NULL, RELAXED); /* not between head and tail */
    CHECK(runq_valid(&q));
    at_store(&q.tail, 7 + RING + 1, RELAXED);
    CHECK(!runq_valid(&q));
    at_store(&q.tail, 6, RELAXED);
    CHECK(!runq_valid(&q));
    CHECK_EQ(runq_len(&q), 0);
}

/* --- several threads ----------------------------------------------------------------------------- */

/*
 * Each worker owns a ring, and is a thief of the others' when its own is empty. A G is marked when
 * it is put, and unmarked by who gets it: a second get, or a get of one that was never put, is seen
 * at once; at the end as many were got as were put.
 */
#define WORKERS 4
#define GS_EACH (4 * RING)

static struct worker {
    struct runq q;
    struct g gs[GS_EACH];
    struct rand rand;
    uint32_t id, next_g;
    uint64_t to_put, got;
} workers[WORKERS];
static at_u64 left; /* not got yet */

static void got(struct worker *w, struct g *gp)
{
    uint32_t put = 1;
    CHECK(at_cas(&gp->status, &put, 0, ACQ_REL, RELAXED));
    w->got++;
    at_add(&left, (uint64_t)-1, RELAXED);
}

static void put_marked(struct worker *w, struct g *gp)
{
    struct glist over = {0};
    while (!runq_put_owner(&w->q, gp)) {
        if (runq_put_full_owner(&w->q, gp, &over)) {
            CHECK_EQ(over.n, RING / 2 + 1);
            while ((gp = glist_get(&over)))
                got(w, gp);
            return;
        }
        CHECK_EQ(over.n, 0);
    }
}

static void put_one(struct worker *w)
{
    for (uint32_t i = 0; i < GS_EACH; i++) {
        struct g *gp = &w->gs[w->next_g++ % GS_EACH];
        if (at_load(&gp->status, ACQUIRE) == 0) {
            w->to_put--;
            at_store(&gp->status, 1, RELAXED);
            if (rand_below(&w->rand, 4) == 0)
                gp = runq_put_next_owner(&w->q, gp);
            if (gp)
                put_marked(w, gp);
            return;
        }
    }
}

static void steal_some(struct worker *w)
{
    struct worker *victim = &workers[rand_below(&w->rand, WORKERS)];
    uint32_t stolen;
    if (victim == w)
        return;
    struct g *gp = runq_steal(&w->q, &victim->q, &stolen);
    if (gp) {
        CHECK_LE(runq_len(&w->q), stolen - 1); /* others may have taken some again */
    } else if ((gp = at_load(&victim->q.next, RELAXED))) {
        gp = runq_steal_next(&victim->q, gp);
    }
    if (gp)
        got(w, gp);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    while (at_load(&left, RELAXED)) {
        for (uint32_t n = rand_below(&w->rand, RING + RING / 4); n && w->to_put; n--)
            put_one(w);
        CHECK(runq_valid(&w->q));
        struct g *gp = NULL;
        for (uint32_t n = rand_below(&w->rand, RING) + 1; n && (gp = get_any(&w->q)); n--)
            got(w, gp);
        if (!gp && runq_len(&w->q) == 0)
            steal_some(w);
        if (!gp && !w->to_put && rand_below(&w->rand, 64) == 0)
            sched_yield(); /* a thief with nothing to do lets the owner run */
    }
    return NULL;
}

static void run_workers(uint32_t producers, uint64_t n)
{
    pthread_t threads[WORKERS];
    at_store(&left, producers * n, RELAXED);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        w->id = i;
        w->to_put = i < producers ? n : 0;
        begin(&w->q, UINT32_MAX - 1000 * i - 100);
        rand_seed(&w->rand, i + producers);
    }
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    uint64_t all = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(runq_empty(&workers[i].q));
        CHECK(runq_valid(&workers[i].q));
        all += workers[i].got;
        for (uint32_t k = 0; k < GS_EACH; k++)
            CHECK_EQ(at_load(&workers[i].gs[k].status, RELAXED), 0);
    }
    CHECK_EQ(all, producers * n);
}

TEST(owner_against_thieves)
{
    run_workers(1, TEST_TSAN ? 100000 : 1000000);
}

TEST(all_steal_from_all)
{
    run_workers(WORKERS, TEST_TSAN ? 50000 : 300000);
}

/* --- never empty in appearance ------------------------------------------------------------------- */

#define ROUNDS 100000u

static struct runq busy;
static at_u32 looked, finished;

static void *look(void *arg)
{
    (void)arg;
    while (!at_load(&finished, ACQUIRE)) {
        CHECK(!runq_empty(&busy));
        at_add(&looked, 1, RELAXED);
    }
    return NULL;
}

/* There is always one element at least, now in runnext, now in the ring. */
TEST(never_appears_empty)
{
    pthread_t looker;
    struct g *free_g = &gs[1], *gp;
    begin(&busy, UINT32_MAX - ROUNDS / 2);
    runq_put_next_owner(&busy, &gs[0]);
    CHECK_EQ(pthread_create(&looker, NULL, look, NULL), 0);
    for (uint32_t i = 0; i < ROUNDS || at_load(&looked, RELAXED) < ROUNDS; i++) {
        gp = free_g;
        if (i & 1 || i & 8)
            gp = runq_put_next_owner(&busy, gp);
        if (gp)
            put(&busy, gp);
        free_g = get_any(&busy);
        CHECK(free_g);
        if (i & 2 && (gp = runq_take_next_owner(&busy))) { /* from runnext to the ring, and back */
            put(&busy, free_g);
            free_g = gp;
        }
    }
    at_store(&finished, 1, RELEASE);
    pthread_join(looker, NULL);
}
