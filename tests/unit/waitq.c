/* SPDX-License-Identifier: MIT */
/* The queue of waiters against an array: every operation at every place, and at random. */
#include <string.h>

#include "harness.h"
#include "sync/waitq.h"

#define MOST 64u

static struct waiter waiters[MOST];
static void *q;

/* The reference: in order from the first. */
static struct waiter *want[MOST];
static uint32_t n;

static void begin(void)
{
    memset(waiters, 0, sizeof waiters);
    q = NULL;
    n = 0;
}

/* The ring, in both directions, ends where it began; the queue points to its last. */
static void check(void)
{
    CHECK_EQ(waitq_first(&q), n ? want[0] : NULL);
    CHECK_EQ(q, n ? want[n - 1] : NULL);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(want[i]->next, want[(i + 1) % n]);
        CHECK_EQ(want[i]->prev, want[(i + n - 1) % n]);
    }
}

static void put(struct waiter *w)
{
    waitq_put(&q, w);
    want[n++] = w;
    check();
}

static void put_first(struct waiter *w)
{
    waitq_put_first(&q, w);
    memmove(want + 1, want, n++ * sizeof want[0]);
    want[0] = w;
    check();
}

static void drop(uint32_t i)
{
    n--;
    memmove(want + i, want + i + 1, (n - i) * sizeof want[0]);
    check();
}

/* Who was taken out is in no queue, and is not found again. */
static void check_out(struct waiter *w)
{
    CHECK_EQ(w->next, NULL);
    CHECK(!waitq_remove(&q, w));
    check();
}

static void remove_at(uint32_t i)
{
    struct waiter *w = want[i];
    CHECK(waitq_remove(&q, w));
    drop(i);
    check_out(w);
}

static void take(void)
{
    struct waiter *first = n ? want[0] : NULL;
    CHECK_EQ(waitq_take(&q), first);
    if (first) {
        drop(0);
        check_out(first);
    }
}

static void take_all(void)
{
    struct waiter *w = waitq_take_all(&q);
    for (uint32_t i = 0; i < n; i++) {
        struct waiter *next = w->next;
        CHECK_EQ(w, want[i]);
        w->next = NULL; /* as those do who make them ready */
        w = next;
    }
    CHECK_EQ(w, NULL);
    n = 0;
    check();
}

TEST(empty)
{
    begin();
    check();
    take();
    take_all();
    CHECK(!waitq_remove(&q, &waiters[0]));
    check();
}

static void fill(uint32_t k)
{
    begin();
    for (uint32_t i = 0; i < k; i++)
        put(&waiters[i]);
}

/* First come, first served; who is put first goes before all. */
TEST(order)
{
    for (uint32_t k = 1; k < MOST; k++) {
        fill(k);
        for (uint32_t i = 0; i < k; i++)
            take();
        take();
        fill(k);
        put_first(&waiters[k]);
        CHECK_EQ(waitq_first(&q), &waiters[k]);
        take();
        CHECK_EQ(waitq_first(&q), &waiters[0]);
        take_all();
        begin();
        for (uint32_t i = 0; i < k; i++)
            put_first(&waiters[i]);
        CHECK_EQ(waitq_first(&q), &waiters[k - 1]);
        take_all();
    }
}

/* The first, the last, the only one, and those between. */
TEST(removed_anywhere)
{
    for (uint32_t k = 1; k < 12; k++) {
        for (uint32_t i = 0; i < k; i++) {
            for (uint32_t j = 0; j + 1 < k; j++) {
                fill(k);
                remove_at(i);
                remove_at(j);
                put(&waiters[i]);
                take_all();
            }
            fill(k);
            remove_at(i);
            put_first(&waiters[i]);
            take_all();
        }
    }
}

static struct waiter *somebody_out(struct rand *r)
{
    struct waiter *w;
    do {
        w = &waiters[rand_below(r, MOST)];
    } while (w->next);
    return w;
}

static void operate(struct rand *r, uint32_t fullness)
{
    uint32_t op = rand_below(r, 100);
    if (op == 0 && rand_below(r, 20) == 0)
        take_all();
    else if (n < MOST && op < fullness)
        op % 2 ? put(somebody_out(r)) : put_first(somebody_out(r));
    else if (n && op % 3)
        remove_at(rand_below(r, n));
    else
        take();
}

/* Mostly short, and mostly long. */
TEST(random)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        struct rand r;
        rand_seed(&r, seed);
        begin();
        for (int i = 0; i < 20000; i++)
            operate(&r, 40 + seed);
        take_all();
    }
}
