/* SPDX-License-Identifier: MIT */
/*
 * Park and ready, with goroutines that really switch: one that was made ready goes on once, on
 * whichever M, and only after it has left its stack; what is on its stack is whole.
 */
#define MACHINE_STACKS
#include "machine.h"

static struct lock list_lock;
static struct waiter *list; /* of those who wait, last first; under list_lock */
static at_u32 posted;       /* don't wait any more */

static void queue(int p, int i, void (*fn)(struct m *mp))
{
    body[i] = fn;
    runq_put_owner(&ps[p].runq, new_goroutine(i));
}

static void setup(uint32_t n)
{
    machine_setup(n);
    memset(&list_lock, 0, sizeof list_lock);
    list = NULL;
    at_store(&posted, 0, RELAXED);
}

/* --- an object with a lock: the commit action unlocks it ------------------------------------------------ */

static bool commit_unlock(struct g *gp, void *arg)
{
    (void)gp;
    unlock(arg);
    return true;
}

static void waits(struct m *mp)
{
    struct waiter foreign;
    volatile int on_stack = 41;
    struct visit v = visit_begin();
    CHECK(visit_can_wait(v));
    lock(&list_lock);
    if (at_load(&posted, RELAXED)) {
        unlock(&list_lock);
        visit_end(v);
        return;
    }
    struct waiter *w = waiter_of(mp, &foreign, &list);
    w->next = list;
    list = w;
    on_stack++;
    visit_park(v, w, commit_unlock, &list_lock, WAIT_PARK);
    CHECK(on_stack == 42);
    visit_waited_end(v);
}

static void posts_entered(void)
{
    lock(&list_lock);
    struct waiter *first = list;
    list = NULL;
    at_store(&posted, 1, RELAXED);
    unlock(&list_lock);
    if (first) {
        waiter_ready_list(first);
    }
}

static void posts(struct m *mp)
{
    (void)mp;
    enter();
    posts_entered();
    leave();
}

static void foreign_posts(void)
{
    CHECK(foreign_enter());
    posts_entered();
    foreign_leave();
}

static void foreign_waits(void)
{
    waits(NULL);
}

static void rested(void)
{
    all_ran();
    CHECK(at_load(&sched.nforeign, RELAXED) == 0);
    CHECK(at_load(&sched.nforeign_parked, RELAXED) == 0);
    CHECK(list == NULL);
}

static void setup_waiter(void)
{
    setup(1);
    queue(0, 0, waits);
}

static void setup_waiter_two(void)
{
    setup(2);
    machine_idle(1);
    queue(0, 0, waits);
}

static void setup_pair(void)
{
    setup(2);
    queue(0, 0, waits);
    queue(1, 1, posts);
}

static void setup_poster(void)
{
    setup(1);
    queue(0, 0, posts);
}

static void setup_pair_on_one(void)
{
    setup(1);
    queue(0, 0, waits);
    queue(0, 1, posts);
}

#define PARK(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = rested, .sleepers = 3, .threads = {__VA_ARGS__},       \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

PARK(ready_by_foreign, setup_waiter, m0, foreign_posts)
PARK(ready_by_foreign_two_ms, setup_waiter_two, m0, m1, foreign_posts)
PARK(ready_by_goroutine, setup_pair, m0_once, m1)
PARK(ready_on_one, setup_pair_on_one, m0)
PARK(foreign_waits_for_goroutine, setup_poster, m0, foreign_waits)

/* --- a commit that refuses -------------------------------------------------------------------------------- */

static bool commit_refuses(struct g *gp, void *arg)
{
    (void)gp;
    unlock(arg);
    return false;
}

static void parks_in_vain(struct m *mp)
{
    (void)mp;
    volatile int on_stack = 41;
    enter();
    lock(&list_lock);
    on_stack++;
    park(commit_refuses, &list_lock, WAIT_PARK);
    CHECK(on_stack == 42);
    leave();
}

static void setup_in_vain(void)
{
    setup(2);
    queue(0, 0, parks_in_vain);
}

PARK(commit_says_no, setup_in_vain, m0_until, m1_until)

/* --- without a lock: the commit publishes the G ----------------------------------------------------------------- */

static AT(struct g *) published;

static bool commit_publish(struct g *gp, void *arg)
{
    (void)arg;
    at_store(&published, gp, RELAXED);
    return true;
}

static void publishes(struct m *mp)
{
    (void)mp;
    volatile int on_stack = 41;
    on_stack++;
    enter();
    park(commit_publish, NULL, WAIT_PARK);
    CHECK(on_stack == 42);
    leave();
}

/* Shares nothing with the goroutine but the G: the status itself must order what was written before
 * the park. Here the one who makes it ready looks at the stack pointer itself, as whoever resumes
 * it would. */
static void foreign_finds(void)
{
    struct g *gp;
    while (!(gp = at_load(&published, RELAXED))) {
        at_pause();
    }
    CHECK(foreign_enter());
    while (at_load(&gp->status, RELAXED) != G_WAITING) {
        at_pause();
    }
    make_runnable(gp);
    CHECK(gp->sp != NULL);
    lock(&sched.lock);
    globq_put_locked(&sched.globq, gp);
    unlock(&sched.lock);
    wake_for(NULL);
    foreign_leave();
}

static void setup_publish(void)
{
    setup(1);
    at_store(&published, NULL, RELAXED);
    queue(0, 0, publishes);
}

PARK(ready_without_lock, setup_publish, m0, foreign_finds)

/* --- a second ready is refused ------------------------------------------------------------------------------------- */

static void foreign_finds_twice(void)
{
    foreign_finds();
    ready(at_load(&published, RELAXED));
}

MODEL(second_ready_throws, .setup = setup_publish, .threads = {m0, foreign_finds_twice},
      .sleepers = 3, .finds = "ready of goroutine 7, which is", .preemptions = 2)

/* --- many at once ------------------------------------------------------------------------------------------------------ */

PARK(ready_of_a_list, setup_pair_on_one, m0, foreign_waits)

/* Who makes them ready is busy afterwards: another M must be woken. They are parked before they have
 * begun. */
static void nothing(struct m *mp)
{
    (void)mp;
}

static void setup_list_busy(void)
{
    static struct waiter waiters[2];
    setup(2);
    machine_idle(1);
    memset(waiters, 0, sizeof waiters);
    for (int i = 0; i < 2; i++) {
        body[i] = nothing;
        waiters[i].g = new_goroutine(i);
        at_store(&gs[i].status, G_WAITING, RELAXED);
    }
    list = &waiters[1];
    list->next = &waiters[0];
}

static void busy_posts_list(void)
{
    set_current_m(&ms[0]);
    posts_entered();
    wait_for(0);
    wait_for(1);
}

PARK(ready_of_a_list_wakes, setup_list_busy, busy_posts_list, m1)

/* --- yield: the goroutine queues behind its own back ------------------------------------------------------------------------ */

static void yields(struct m *mp)
{
    (void)mp;
    volatile int on_stack = 41;
    on_stack++;
    pirn_yield();
    CHECK(on_stack == 42);
}

static void setup_yield(void)
{
    setup(2);
    queue(0, 0, yields);
    queue(0, 1, nothing);
}

PARK(yield_and_steal, setup_yield, m0, m1_once)
