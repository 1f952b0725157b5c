/* SPDX-License-Identifier: MIT */
/*
 * Timers: a 4-ary heap for each P, and who looks at them when.
 *
 * A timer goes into the heap of the P that sets it, and stays there until it fires, is stopped, or
 * the runtime ends: heaps belong to the runtime, and everybody looks at those of retired Ps too.
 * t->heap says where it is: NULL to H by CAS under H's lock, H to NULL under H's lock. So whoever
 * holds the lock of a timer's heap owns the timer, stop and reset are exact, and nothing of a timer
 * that was stopped stays behind. A goroutine that sleeps, and can't be disturbed, is in the heap
 * without a timer (timers_sleep).
 *
 * Who fires, always on g0:
 * - the owner of the P, each time that it looks for work, and when sysmon tells it to (timers_due);
 * - thieves, in their last round: a P that computes keeps no timer waiting while another is idle;
 * - when Ps are idle, a sleeping M that has taken on to keep the time: it sleeps until the first
 *   timer of all heaps is due (sched.keeper_until), takes an idle P and looks for work.
 *
 * Who keeps the time. A timer is attended to if a keeper sleeps that wakes in time.
 *   Who adds a timer:   put it in a heap (next);   [T1] full fence; an idle P, no spinner, and no
 *                                                  keeper that wakes in time? wake an M.
 *   Who goes to sleep:  put the P on the idle list,
 *                       or stop to be the keeper;  [T2] full fence; look at next of every heap.
 *   Who has found work: stop spinning, or stop to
 *                       be the keeper;             [T3] as [T2]; a timer without keeper? wake an M.
 * So at least one of the two sees the other's store. [T2] and [T3] are the fences [W2] and [W3] of
 * idle.c. An M on g0 that adds a timer (the commit action of a sleep, if nobody was there to switch to)
 * leaves out [T1]: it is about to do [T2] or [T3]. A timer that is not due soon needs no keeper while a P runs: sysmon looks
 * every 10 ms.
 *
 * Differs from Go: heaps are exact, so there is no cleaning, and timers never move.
 */
#include "sched/sched.h"

#define ARITY 4
#define SHIFT (ARITY - 1) /* unused before the first slot, so that children share a cache line */
#define ROOM_FIRST (4096 / sizeof(struct timer_slot) - SHIFT)
#define SLOT_SLEEPER 1u
#define BATCH 128                        /* fired in one hold of the lock */
#define SOON ((int64_t)20 * 1000 * 1000) /* two looks of sysmon */

/* --- the heap, under its lock -------------------------------------------------------------------- */

static bool is_sleeper(struct timer_slot s)
{
    return s.who & SLOT_SLEEPER;
}

static struct waiter *sleeper_in(struct timer_slot s)
{
    return (struct waiter *)(s.who & ~(uintptr_t)SLOT_SLEEPER);
}

static struct timer *timer_in(struct timer_slot s)
{
    return (struct timer *)s.who;
}

static void put_at(struct timers *h, uint32_t i, struct timer_slot s)
{
    h->slot[i] = s;
    if (!is_sleeper(s)) {
        timer_in(s)->at = i;
    }
}

static void sift_up(struct timers *h, uint32_t i, struct timer_slot s)
{
    while (i > 0 && s.when < h->slot[(i - 1) / ARITY].when) {
        put_at(h, i, h->slot[(i - 1) / ARITY]);
        i = (i - 1) / ARITY;
    }
    put_at(h, i, s);
}

static uint32_t least_child(const struct timers *h, uint32_t i)
{
    uint32_t first = ARITY * i + 1, least = first;
    for (uint32_t k = first + 1; k < first + ARITY && k < h->n; k++) {
        if (h->slot[k].when < h->slot[least].when) {
            least = k;
        }
    }
    return least;
}

static void sift_down(struct timers *h, uint32_t i, struct timer_slot s)
{
    while (ARITY * i + 1 < h->n) {
        uint32_t child = least_child(h, i);
        if (s.when <= h->slot[child].when) {
            break;
        }
        put_at(h, i, h->slot[child]);
        i = child;
    }
    put_at(h, i, s);
}

/* s takes place i, and then the one that fits. */
static void settle(struct timers *h, uint32_t i, struct timer_slot s)
{
    if (i > 0 && s.when < h->slot[(i - 1) / ARITY].when) {
        sift_up(h, i, s);
    } else {
        sift_down(h, i, s);
    }
}

static void tell_next(struct timers *h)
{
    uint64_t next = h->n ? (uint64_t)h->slot[0].when : PIRN_NEVER;
    if (at_load(&h->next, RELAXED) != next) {
        at_store(&h->next, next, RELAXED);
    }
}

static size_t bytes_of(size_t room)
{
    return (room + SHIFT) * sizeof(struct timer_slot);
}

static void free_slots(struct timers *h)
{
    if (h->room) {
        mem_unmap(h->slot - SHIFT, bytes_of(h->room));
    }
}

static void grow(struct timers *h)
{
    size_t room = h->room ? 2 * (size_t)h->room + SHIFT : ROOM_FIRST;
    struct timer_slot *map = mem_map(bytes_of(room));
    if (!map) {
        unlock(&h->lock);
        fatal("out of memory: cannot keep %u timers", h->n + 1);
    }
    if (h->n) {
        memcpy(map + SHIFT, h->slot, h->n * sizeof *map);
    }
    free_slots(h);
    h->slot = map + SHIFT;
    h->room = (uint32_t)room;
}

static void insert(struct timers *h, struct timer_slot s)
{
    if (unlikely(h->n == h->room)) {
        grow(h);
    }
    h->n++;
    sift_up(h, h->n - 1, s);
    tell_next(h);
}

static void remove_at(struct timers *h, uint32_t i)
{
    struct timer_slot last = h->slot[--h->n];
    if (i < h->n) {
        settle(h, i, last);
    }
    tell_next(h);
}

/* The last access to the timer: whoever sees NULL may free it. */
static void take_out(struct timers *h, struct timer *t)
{
    remove_at(h, t->at);
    at_store(&t->heap, NULL, RELEASE);
}

static void set_time(struct timers *h, struct timer *t, int64_t when)
{
    t->when = when;
    settle(h, t->at, (struct timer_slot){when, (uintptr_t)t});
    tell_next(h);
}

/* --- setting and stopping ------------------------------------------------------------------------ */

void timers_init(struct timers *h)
{
    *h = (struct timers){.lock = LOCK_INIT(RANK_TIMERS)};
    at_store(&h->next, PIRN_NEVER, RELAXED);
}

/* The runtime has ended. Timers of the program's live on, and are not pending. */
void timers_fini(struct timers *h)
{
    for (uint32_t i = 0; i < h->n; i++) {
        if (!is_sleeper(h->slot[i])) {
            at_store(&timer_in(h->slot[i])->heap, NULL, RELAXED);
        }
    }
    free_slots(h);
    timers_init(h);
}

/* NULL: it is not pending. */
static struct timers *lock_heap_of(struct timer *t)
{
    for (;;) {
        struct timers *h = at_load(&t->heap, ACQUIRE);
        if (!h) {
            return NULL;
        }
        lock(&h->lock);
        if (at_load(&t->heap, RELAXED) == h) {
            return h;
        }
        unlock(&h->lock);
    }
}

bool timer_stop(struct timer *t)
{
    struct timers *h = lock_heap_of(t);
    if (h) {
        take_out(h, t);
        unlock(&h->lock);
    }
    return h;
}

/* Foreign threads use the first P's. */
static struct timers *my_heap(struct m *mp)
{
    return mp ? &mp->p->timers : &at_load(&sched.allp[0], RELAXED)->timers;
}

static bool has_keeper(int64_t when)
{
    return when >= (int64_t)at_load(&sched.keeper_until, RELAXED);
}

/* For a caller with a P: while it runs, sysmon does not sleep. */
static bool is_far(int64_t when)
{
    return when > coarse_now() + SOON;
}

static void see_to(int64_t when)
{
    struct m *mp = getm();
    if (mp && !mp->curg) {
        return; /* on g0: will look itself */
    }
    at_fence(SEQ_CST); /* [T1] */
    if (at_load(&sched.npidle, RELAXED) && !at_load(&sched.nspinning, RELAXED) && !has_keeper(when)
        && !(mp && is_far(when))) {
        wake_one(mp ? mp->p : NULL);
    }
}

/* True if it was pending. */
bool timer_set(struct timer *t, int64_t when, int64_t period)
{
    struct timers *h;
    bool was;
    for (;;) {
        struct timers *none = NULL;
        if ((was = (h = lock_heap_of(t)))) {
            break;
        }
        if (when == PIRN_NEVER) {
            at_add(&t->generation, 1, RELAXED);
            return false;
        }
        h = my_heap(getm());
        lock(&h->lock);
        /* ACQUIRE: after whoever took it out last. (A mutant that survives: models have one heap.) */
        if (at_cas(&t->heap, &none, h, ACQUIRE, RELAXED)) {
            break;
        }
        unlock(&h->lock); /* somebody else has set it meanwhile */
    }
    t->period = period;
    at_add(&t->generation, 1, RELAXED);
    if (!was) {
        t->when = when;
        insert(h, (struct timer_slot){when, (uintptr_t)t});
    } else if (when == PIRN_NEVER) {
        take_out(h, t);
    } else {
        set_time(h, t, when);
    }
    unlock(&h->lock);
    if (when != PIRN_NEVER) {
        see_to(when);
    }
    return was;
}

/*
 * A commit action: w, whose goroutine parks, is made ready then. Nobody else can: so there is no timer to
 * stop, and neither heap nor firing touches the stack of the goroutine, which is mostly in no cache.
 */
void timers_sleep(struct waiter *w, int64_t when)
{
    if (when != PIRN_NEVER) {
        struct timers *h = my_heap(getm());
        lock(&h->lock);
        insert(h, (struct timer_slot){when, (uintptr_t)w | SLOT_SLEEPER});
        unlock(&h->lock);
        see_to(when);
    }
}

/* --- firing --------------------------------------------------------------------------------------- */

/* The next turn that is still to come: those that were missed are left out. */
static int64_t next_turn(const struct timer *t, int64_t now)
{
    int64_t missed, when;
    missed = (now - t->when) / t->period;
    return __builtin_mul_overflow(missed + 1, t->period, &when)
                   || __builtin_add_overflow(t->when, when, &when)
               ? PIRN_NEVER
               : when;
}

static void turn_over(struct timers *h, struct timer *t, int64_t now)
{
    int64_t when = t->period ? next_turn(t, now) : PIRN_NEVER;
    if (when == PIRN_NEVER) {
        take_out(h, t);
    } else {
        set_time(h, t, when);
    }
}

static void ready_all(struct waiter **due, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        due[i]->next = i + 1 < n ? due[i + 1] : NULL;
    }
    if (n) {
        waiter_ready_list(due[0]);
    }
}

/* Fires what is due. On g0, with a P. True: something was. */
bool timers_run(struct timers *h, int64_t now)
{
    bool any = false, more;
    do {
        struct waiter *due[BATCH], *w;
        struct timer *acts = NULL;
        uint64_t begun = 0;
        uint32_t n = 0;
        lock(&h->lock);
        while ((more = h->n && h->slot[0].when <= now) && n < BATCH && !acts) {
            any = true;
            if (is_sleeper(h->slot[0])) {
                due[n] = sleeper_in(h->slot[0]);
                __builtin_prefetch(due[n++], 1);
                remove_at(h, 0);
                continue;
            }
            struct timer *t = timer_in(h->slot[0]);
            if (t->kind->act) {
                begun = t->kind->begin(t);
                acts = t;
            } else if ((w = t->kind->fire(t))) {
                due[n++] = w;
            }
            turn_over(h, t, now);
        }
        unlock(&h->lock);
        ready_all(due, n);
        if (acts) {
            acts->kind->act(acts, begun);
        }
    } while (more);
    return any;
}

/* The same for one, by anybody who may make goroutines ready: its act, if nobody else got to it. */
void timer_fire_if_due(struct timer *t)
{
    struct timers *h = lock_heap_of(t);
    int64_t now = h ? now_ns() : 0;
    if (!h) {
        return;
    }
    bool due = t->when <= now;
    uint64_t begun = due ? t->kind->begin(t) : 0;
    if (due) {
        turn_over(h, t, now);
    }
    unlock(&h->lock);
    if (due) {
        t->kind->act(t, begun);
    }
}

static bool run_if_due(struct timers *h, int64_t *now)
{
    int64_t next = (int64_t)at_load(&h->next, RELAXED);
    if (next == PIRN_NEVER) {
        return false;
    }
    *now = *now ? *now : now_ns();
    return next <= *now && timers_run(h, *now);
}

/* Each time that the owner looks for work. */
void timers_look(struct p *pp)
{
    int64_t now = 0;
    if (likely(!at_load(&pp->timers_due, RELAXED))) {
        run_if_due(&pp->timers, &now);
        return;
    }
    at_store(&pp->timers_due, 0, RELAXED);
    for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
        run_if_due(&at_load(&sched.allp[i], RELAXED)->timers, &now);
    }
}

/* By a thief. */
bool timers_steal(struct p *victim, int64_t *now)
{
    return run_if_due(&victim->timers, now);
}

/* --- keeping the time ------------------------------------------------------------------------------ */

/* When the first timer of all is due, or PIRN_NEVER. */
int64_t timers_next(void)
{
    int64_t next = PIRN_NEVER;
    uint32_t n = at_load(&sched.nallp, ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        int64_t when = (int64_t)at_load(&at_load(&sched.allp[i], RELAXED)->timers.next, RELAXED);
        next = when < next ? when : next;
    }
    return next;
}

/* The same whenever it is due: no P may run, and sysmon may sleep. */
bool timers_unkept(void)
{
    int64_t when = timers_next();
    return when != PIRN_NEVER && !has_keeper(when);
}

/* A timer that is due soon, and nobody sleeps who would wake in time. */
bool timers_unattended(void)
{
    int64_t when = timers_next();
    return !has_keeper(when) && !is_far(when);
}
