/* SPDX-License-Identifier: MIT */
/*
 * The heap of timers against a reference that is searched from end to end. Without a runtime: the
 * caller is a foreign thread, whose timers go to the heap of the first P. There are two Ps, and now
 * and then the other one is the first, since a timer that is set again stays where it is. The clock
 * is a number, and seeds are fixed.
 */
#include <string.h>

#include "harness.h"
#include "sched/sched.h"

#define HEAPS 2
#define MOST 10000
#define SLEEPER ((uintptr_t)1) /* as in timers.c */
#define CROWD 20               /* so many times of day at most: many are due at once */

static struct p ps[HEAPS];

enum kind { FIRES, WAKES, ACTS, SLEEPS, KINDS };

/* One entry, and what the reference knows of it. */
static struct entry {
    struct timer timer; /* first */
    struct waiter waiter;
    enum kind kind;
    struct timers *heap; /* NULL: not pending */
    int64_t when, period;
    int fired;  /* in this run */
    bool begun; /* ACTS: and act has not been called yet */
    bool seen;  /* by the check that goes on */
} entries[MOST];

static uint32_t nentries;
static struct rand rnd;
static int64_t clock_now, last_fired;

static struct entry *entry_of(struct timer *t)
{
    return (struct entry *)(void *)t;
}

/* Called in order of time. A new batch goes on where the last one ended. */
static void fired(struct entry *e)
{
    CHECK_EQ(++e->fired, 1);
    CHECK_LE(last_fired, e->when);
    CHECK_LE(e->when, clock_now);
    last_fired = e->when;
}

static struct waiter *fire(struct timer *t)
{
    struct entry *e = entry_of(t);
    fired(e);
    return e->kind == WAKES ? &e->waiter : NULL;
}

static uint64_t begin(struct timer *t)
{
    struct entry *e = entry_of(t);
    fired(e);
    CHECK(!e->begun);
    e->begun = true;
    return at_load(&e->timer.generation, RELAXED);
}

static void act(struct timer *t, uint64_t begun)
{
    struct entry *e = entry_of(t);
    CHECK(e->begun);
    CHECK_EQ(begun, at_load(&e->timer.generation, RELAXED));
    e->begun = false;
}

static const struct timer_kind fires = {.fire = fire}, acts = {.begin = begin, .act = act};

static struct timers *heap_of(struct entry *e)
{
    return at_load(&e->timer.heap, RELAXED);
}

static void init(uint32_t n, uint64_t seed)
{
    rand_seed(&rnd, seed);
    memset(entries, 0, sizeof entries);
    nentries = n;
    clock_now = 1000;
    for (int i = 0; i < HEAPS; i++)
        timers_init(&ps[i].timers);
    at_store(&sched.allp[0], &ps[0], RELAXED);
    for (uint32_t i = 0; i < n; i++) {
        struct entry *e = &entries[i];
        e->kind = (enum kind)rand_below(&rnd, KINDS);
        e->timer.kind = e->kind == ACTS ? &acts : &fires;
        e->waiter.timed = true; /* a thread; it is not counted as one that waits */
    }
}

static void fini(void)
{
    for (int i = 0; i < HEAPS; i++) {
        timers_fini(&ps[i].timers);
        CHECK_EQ(ps[i].timers.n, 0);
        CHECK_EQ(ps[i].timers.room, 0);
        CHECK_EQ(at_load(&ps[i].timers.next, RELAXED), PIRN_NEVER);
    }
    for (uint32_t i = 0; i < nentries; i++)
        CHECK_EQ(heap_of(&entries[i]), NULL);
}

/* --- what must hold --------------------------------------------------------------------------------- */

static struct entry *entry_in(struct timer_slot s)
{
    char *p = (char *)(s.who & ~SLEEPER); // NOLINT(performance-no-int-to-ptr)
    return (struct entry *)(void *)(p - (s.who & SLEEPER ? offsetof(struct entry, waiter) : 0));
}

static void check_slot(struct timers *h, uint32_t i)
{
    struct timer_slot s = h->slot[i];
    struct entry *e = entry_in(s);
    CHECK(i == 0 || h->slot[(i - 1) / 4].when <= s.when);
    CHECK(e >= entries && e < entries + nentries);
    CHECK_EQ(s.who & SLEEPER, e->kind == SLEEPS);
    CHECK(!e->seen);
    e->seen = true;
    CHECK_EQ(e->heap, h);
    CHECK_EQ(s.when, e->when);
    if (e->kind != SLEEPS) {
        CHECK_EQ(e->timer.at, i);
        CHECK_EQ(e->timer.when, e->when);
        CHECK_EQ(e->timer.period, e->period);
    }
}

static void check_heap(struct timers *h)
{
    CHECK_LE(h->n, h->room);
    if (h->n > 1)
        CHECK_EQ((uintptr_t)&h->slot[1] % CACHE_LINE, 0); /* children share one */
    CHECK_EQ(at_load(&h->next, RELAXED), h->n ? h->slot[0].when : PIRN_NEVER);
    for (uint32_t i = 0; i < h->n; i++)
        check_slot(h, i);
}

/* What is pending is in the heap that the reference says, once, and nothing else is. */
static void check_all(void)
{
    for (int i = 0; i < HEAPS; i++)
        check_heap(&ps[i].timers);
    for (uint32_t i = 0; i < nentries; i++) {
        struct entry *e = &entries[i];
        CHECK_EQ(e->seen, e->heap != NULL);
        CHECK(e->kind == SLEEPS || heap_of(e) == e->heap);
        e->seen = false;
    }
}

/* --- operations --------------------------------------------------------------------------------------- */

/* In few places, or anywhere. */
static int64_t some_time(void)
{
    int64_t crowd = rand_below(&rnd, CROWD) * 100;
    return clock_now - 100 + (rand_below(&rnd, 2) ? crowd : rand_below(&rnd, 100 * CROWD));
}

static void sleep_op(struct entry *e)
{
    struct timers *first = &at_load(&sched.allp[0], RELAXED)->timers;
    if (e->heap)
        return; /* can't be disturbed */
    int64_t when = rand_below(&rnd, 20) ? some_time() : PIRN_NEVER;
    note_clear(&e->waiter.note);
    timers_sleep(&e->waiter, when);
    e->when = when;
    e->heap = when == PIRN_NEVER ? NULL : first;
}

static void set_op(struct entry *e)
{
    struct timers *first = &at_load(&sched.allp[0], RELAXED)->timers;
    int64_t when = rand_below(&rnd, 10) ? some_time() : PIRN_NEVER;
    int64_t period = rand_below(&rnd, 3) ? 0 : 1 + rand_below(&rnd, 500);
    uint32_t generation = at_load(&e->timer.generation, RELAXED);
    note_clear(&e->waiter.note);
    CHECK_EQ(timer_set(&e->timer, when, period), e->heap != NULL);
    CHECK_EQ(at_load(&e->timer.generation, RELAXED), generation + 1);
    e->heap = when == PIRN_NEVER ? NULL : e->heap ? e->heap : first;
    e->when = when;
    e->period = period;
}

static void stop_op(struct entry *e)
{
    if (e->kind == SLEEPS)
        return;
    CHECK_EQ(timer_stop(&e->timer), e->heap != NULL);
    e->heap = NULL;
}

static bool is_due(const struct entry *e, const struct timers *h)
{
    return e->heap == h && e->when <= clock_now;
}

static void check_fired(struct entry *e)
{
    bool wakes = e->kind == WAKES || e->kind == SLEEPS;
    CHECK_EQ(e->fired, e->kind != SLEEPS);
    CHECK(!e->begun);
    CHECK_EQ(at_load(&e->waiter.note.posted, RELAXED), wakes);
    if (wakes)
        CHECK_EQ(e->waiter.next, NULL);
    note_clear(&e->waiter.note);
    e->fired = 0;
    if (e->kind == SLEEPS || !e->period) {
        e->heap = NULL;
        return;
    }
    while (e->when <= clock_now)
        e->when += e->period;
}

/* All that are due, and nobody else: who is not has no note posted, and was not called. */
static void run_op(void)
{
    struct timers *h = &ps[rand_below(&rnd, HEAPS)].timers;
    bool any = false;
    clock_now += rand_below(&rnd, 4) ? rand_below(&rnd, 50) : rand_below(&rnd, 500);
    last_fired = INT64_MIN;
    for (uint32_t i = 0; i < nentries; i++)
        any |= is_due(&entries[i], h);
    CHECK_EQ(timers_run(h, clock_now), any);
    for (uint32_t i = 0; i < nentries; i++) {
        struct entry *e = &entries[i];
        if (is_due(e, h)) {
            check_fired(e);
        } else {
            CHECK_EQ(e->fired, 0);
            CHECK_EQ(at_load(&e->waiter.note.posted, RELAXED), 0);
        }
    }
}

/* one_in: so many operations are sets and stops for each that fires. */
static void operate(uint32_t one_in)
{
    struct entry *e = &entries[rand_below(&rnd, nentries)];
    if (rand_below(&rnd, one_in) == 0) {
        run_op();
    } else if (rand_below(&rnd, 100) == 0) {
        at_store(&sched.allp[0], &ps[rand_below(&rnd, HEAPS)], RELAXED);
    } else if (e->kind == SLEEPS) {
        sleep_op(e);
    } else if (rand_below(&rnd, 4)) {
        set_op(e);
    } else {
        stop_op(e);
    }
}

static void run_random(uint32_t n, uint64_t seed, int operations, int check_each, uint32_t one_in)
{
    uint32_t most = 0;
    init(n, seed);
    for (int i = 0; i < operations; i++) {
        operate(one_in);
        if (i % check_each == 0)
            check_all();
        most = most > ps[0].timers.n ? most : ps[0].timers.n;
    }
    check_all();
    CHECK_GT(most, n / 5); /* it was no idle play */
    fini();
}

#define LESS (test_emulated() ? 20 : TEST_TSAN || TEST_ASAN ? 10 : 1)

/* All shapes that a small heap can have. */
TEST(few)
{
    for (uint32_t n = 1; n <= 40; n++)
        run_random(n, n, 50000 / LESS, 1, 8);
}

TEST(some)
{
    run_random(700, 1, 1000000 / LESS, 32, 200);
}

/* The heap doubles its room several times on the way. */
TEST(many)
{
    run_random(MOST, 2, 1000000 / LESS, 3000, 20000);
    run_random(MOST, 3, 300000 / LESS, 3000, 500);
}

/* Rising, falling, all the same: filled and emptied by firing, one tick at a time. */
TEST(orders)
{
    for (int order = 0; order < 3; order++) {
        init(3000, 4);
        for (uint32_t i = 0; i < nentries; i++) {
            struct entry *e = &entries[i];
            e->when = clock_now + 1 + (order == 0 ? i : order == 1 ? nentries - 1 - i : 0);
            e->heap = &ps[0].timers;
            if (e->kind == SLEEPS)
                timers_sleep(&e->waiter, e->when);
            else
                CHECK(!timer_set(&e->timer, e->when, 0));
        }
        check_all();
        for (uint32_t left = nentries; left;) {
            CHECK(!timers_run(&ps[0].timers, clock_now));
            clock_now++;
            last_fired = INT64_MIN;
            CHECK(timers_run(&ps[0].timers, clock_now));
            left -= order == 2 ? nentries : 1;
            CHECK_EQ(ps[0].timers.n, left);
        }
        for (uint32_t i = 0; i < nentries; i++)
            check_fired(&entries[i]);
        check_all();
        fini();
    }
}

/* --- turns -------------------------------------------------------------------------------------------- */

static struct entry *one_timer(enum kind kind, int64_t when, int64_t period)
{
    struct entry *e = &entries[0];
    init(1, 5);
    e->kind = kind;
    e->timer.kind = kind == ACTS ? &acts : &fires;
    e->when = when;
    CHECK(!timer_set(&e->timer, when, period));
    return e;
}

static void run_at(struct entry *e, int64_t now, int64_t next)
{
    clock_now = now;
    last_fired = INT64_MIN;
    e->fired = 0;
    CHECK(timers_run(&ps[0].timers, now));
    CHECK_EQ(e->fired, 1);
    CHECK_EQ(at_load(&ps[0].timers.next, RELAXED), next);
    CHECK_EQ(heap_of(e), next == PIRN_NEVER ? NULL : &ps[0].timers);
    e->when = next;
}

/* Turns that were missed are left out; one that would come after the end of time never comes. */
TEST(turns)
{
    struct entry *e = one_timer(FIRES, 100, 10);
    run_at(e, 100, 110);
    run_at(e, 119, 120);
    run_at(e, 120, 130);
    run_at(e, 1129, 1130);
    run_at(e, PIRN_NEVER - 1, PIRN_NEVER);
    fini();
    e = one_timer(FIRES, 100, PIRN_NEVER - 101);
    run_at(e, 100, PIRN_NEVER - 1);
    run_at(e, PIRN_NEVER - 1, PIRN_NEVER);
    fini();
    for (int64_t period = PIRN_NEVER; period > PIRN_NEVER - 200; period -= 100) {
        e = one_timer(FIRES, 101, period);
        run_at(e, 101, period > PIRN_NEVER - 102 ? PIRN_NEVER : period + 101);
        fini();
    }
    e = one_timer(FIRES, -1000, 300); /* the clock may be asked for the past */
    run_at(e, 0, 200);
    fini();
}

/* By who needs its effect now: the clock is the real one. */
TEST(fire_one)
{
    int64_t hour = 3600 * PIRN_SEC, now = now_ns();
    struct entry *e = one_timer(ACTS, now - PIRN_MS, 0);
    clock_now = INT64_MAX;
    timer_fire_if_due(&e->timer);
    CHECK_EQ(e->fired, 1);
    CHECK(!e->begun);
    CHECK_EQ(heap_of(e), NULL);
    timer_fire_if_due(&e->timer); /* not pending any more */
    CHECK_EQ(e->fired, 1);
    fini();
    e = one_timer(ACTS, now + hour, 0);
    timer_fire_if_due(&e->timer); /* not due */
    CHECK_EQ(e->fired, 0);
    CHECK_EQ(heap_of(e), &ps[0].timers);
    CHECK(timer_stop(&e->timer));
    CHECK(!timer_stop(&e->timer));
    fini();
    e = one_timer(ACTS, now - PIRN_MS, hour);
    clock_now = INT64_MAX;
    timer_fire_if_due(&e->timer);
    CHECK_EQ(e->fired, 1);
    CHECK_EQ(at_load(&ps[0].timers.next, RELAXED), now - PIRN_MS + hour);
    timer_fire_if_due(&e->timer);
    CHECK_EQ(e->fired, 1);
    fini();
}
