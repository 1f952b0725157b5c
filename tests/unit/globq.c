/* SPDX-License-Identifier: MIT */
/* The global queue: order, fair shares, limits. No lock is needed: the test is alone. */
#include <string.h>

#include "harness.h"
#include "sched/sched.h"

#define N (4 * RING)

static struct g gs[N];
static struct globq q;
static struct runq ring;

static void begin(uint32_t n)
{
    memset(&q, 0, sizeof q);
    memset(&ring, 0, sizeof ring);
    for (uint32_t i = 0; i < n; i++)
        globq_put_locked(&q, &gs[i]);
    CHECK_EQ(at_load(&q.size, RELAXED), n);
}

static struct g *ring_get(void)
{
    return runq_get_owner(&ring);
}

/* What a get of max by one of procs Ps must bring: one, and so many more into the ring. */
static uint32_t share(uint32_t n, uint32_t procs, uint32_t max, uint32_t room)
{
    uint32_t s = n / procs + 1;
    s = s < n ? s : n;
    s = s < max ? s : max;
    s = s < RING / 2 ? s : RING / 2;
    return s - 1 < room ? s : room + 1;
}

TEST(order)
{
    begin(N);
    for (uint32_t i = 0; i < N; i++) {
        CHECK_EQ(globq_get_locked(&q, &ring, 1, 1), &gs[i]);
        CHECK_EQ(at_load(&q.size, RELAXED), N - 1 - i);
        CHECK(runq_empty(&ring));
    }
    CHECK_EQ(q.list.n, 0);
    CHECK_EQ(q.list.head, NULL);
    CHECK_EQ(q.list.tail, NULL);
}

TEST(lists)
{
    struct glist l = {0};
    begin(0);
    globq_put_list_locked(&q, &l); /* an empty one changes nothing */
    CHECK_EQ(at_load(&q.size, RELAXED), 0);
    glist_put(&l, &gs[0]);
    globq_put_list_locked(&q, &l); /* into an empty queue */
    CHECK_EQ(l.n, 0);
    CHECK_EQ(l.head, NULL);
    CHECK_EQ(l.tail, NULL);
    glist_put(&l, &gs[1]);
    glist_put(&l, &gs[2]);
    globq_put_list_locked(&q, &l);
    globq_put_locked(&q, &gs[3]);
    CHECK_EQ(at_load(&q.size, RELAXED), 4);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(globq_get_locked(&q, &ring, 1, 1), &gs[i]);
    CHECK_EQ(at_load(&q.size, RELAXED), 0);
}

/* Every number of Ps, lengths around the limits: the share is fair, in order, and the rest stays. */
TEST(fair_share)
{
    static const uint32_t maxima[] = {1, 2, RING / 2, RING, UINT32_MAX};
    for (uint32_t procs = 1; procs <= 64; procs++) {
        for (uint32_t n = 1; n <= N; n += n < 70 ? 1 : 61) {
            for (size_t m = 0; m < ARRAY_LEN(maxima); m++) {
                begin(n);
                CHECK_EQ(globq_get_locked(&q, &ring, procs, maxima[m]), &gs[0]);
                uint32_t want = share(n, procs, maxima[m], RING);
                CHECK_EQ(runq_len(&ring), want - 1);
                CHECK_EQ(at_load(&q.size, RELAXED), n - want);
                CHECK_EQ(q.list.n, n - want);
                for (uint32_t i = 1; i < want; i++)
                    CHECK_EQ(ring_get(), &gs[i]);
                CHECK_EQ(q.list.head, want < n ? &gs[want] : NULL);
            }
        }
    }
}

/* The ring takes what it has room for; what does not fit stays in the queue. */
TEST(ring_room)
{
    for (uint32_t used = 0; used <= RING; used++) {
        begin(2 * RING);
        for (uint32_t i = 0; i < used; i++)
            CHECK(runq_put_owner(&ring, &gs[2 * RING + i]));
        CHECK_EQ(globq_get_locked(&q, &ring, 1, UINT32_MAX), &gs[0]);
        uint32_t want = share(2 * RING, 1, UINT32_MAX, RING - used);
        CHECK_EQ(runq_len(&ring), used + want - 1);
        CHECK_EQ(at_load(&q.size, RELAXED), 2 * RING - want);
        for (uint32_t i = 0; i < used; i++)
            CHECK_EQ(ring_get(), &gs[2 * RING + i]);
        for (uint32_t i = 1; i < want; i++)
            CHECK_EQ(ring_get(), &gs[i]);
        CHECK_EQ(globq_get_locked(&q, &ring, 1, 1), &gs[want]);
    }
}

/* All Ps together empty the queue, and nothing is lost on the way. */
TEST(drained_by_all)
{
    for (uint32_t procs = 1; procs <= 16; procs++) {
        static bool seen[N];
        uint32_t n = 0;
        memset(seen, 0, sizeof seen);
        begin(N);
        while (q.list.n) {
            for (struct g *gp = globq_get_locked(&q, &ring, procs, UINT32_MAX); gp;
                 gp = ring_get()) {
                CHECK(!seen[gp - gs]);
                seen[gp - gs] = true;
                n++;
            }
        }
        CHECK_EQ(n, N);
    }
}
