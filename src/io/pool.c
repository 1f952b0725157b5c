/* SPDX-License-Identifier: MIT */
/*
 * Helper threads: for a call that blocks its thread, and whose caller may give up before it is over. (Who
 * waits to the end in any case needs no helper: its own thread does it, without a P.)
 *
 * A queue of jobs for each kind, of which so many may run at a time. Lookups end, and are many on a bad day: 64.
 * An open may wait for ever, for the other end of a FIFO that only another open brings: as many as there may be
 * threads that block otherwise, max_threads. So neither waits behind the other.
 *
 * There are as many helpers as are busy at a time; the factory makes one when there are more jobs that may run
 * than helpers without work. A helper that has had nothing to do for some seconds ends. If no thread can be
 * made and there is none, or none but in opens, the jobs in the queues are refused: their owners do them on
 * their own threads.
 *
 * Invariants, under pool.lock (RANK_POOL)
 * 1. nidle helpers sleep or are about to look at the queues; so a job for each of them will be taken.
 * 2. A helper is in the list of those that live, or in that of those to be joined.
 * 3. A job whose owner gives up is taken off its queue: what waits there is still wanted.
 *
 * The end of the runtime: jobs that have not begun are dropped. Helpers have the grace time to finish;
 * one that does not is taken off the lists and left behind, with its job, which must then look after
 * itself.
 *
 * Signals are blocked in helpers: handlers of the program's don't run there.
 */
#include "io/pool.h"

#include <limits.h>
#include <stdlib.h>

#include "io/uring.h"

#define LOOKUPS_MOST (PIRN_SMALL ? 4u : 64u)
#define IDLE_MOST ((PIRN_SMALL ? 20 * PIRN_MS : 5 * PIRN_SEC))

struct helper {
    struct helper *next, *prev;
    pthread_t thread;
    bool abandoned; /* under the lock */
};

struct queue {
    struct pool_job *first, *last;
    uint32_t nqueued, nrunning;
};

static struct {
    struct lock lock;
    /* under the lock */
    struct queue q[POOL_QUEUES];
    uint32_t nidle, nliving;
    uint32_t nnew; /* of the living: have not begun to look for jobs */
    struct helper *living, *dead;
    bool stop, refuses; /* refuses: one that is off its queue has not been told yet */
    at_u32 word;        /* ++ for each job; futex */
    at_u32 gone;        /* ++ for each helper that ends; futex of the stop */
} pool = {.lock = LOCK_INIT(RANK_POOL)};

static void remove_locked(struct pool_job *job)
{
    struct queue *q = &pool.q[job->kind->queue];
    job->queued = false;
    *(job->prev ? &job->prev->next : &q->first) = job->next;
    *(job->next ? &job->next->prev : &q->last) = job->prev;
    q->nqueued--;
}

static struct pool_job *take_any_locked(void)
{
    for (int i = 0; i < POOL_QUEUES; i++) {
        struct pool_job *job = pool.q[i].first;
        if (job) {
            remove_locked(job);
            return job;
        }
    }
    return NULL;
}

/* How many of a queue may begin now. */
static uint32_t may_run_locked(enum pool_queue i)
{
    uint32_t most = i == POOL_LOOKUPS ? LOOKUPS_MOST : (uint32_t)sched.config.max_threads;
    uint32_t room = most > pool.q[i].nrunning ? most - pool.q[i].nrunning : 0;
    return (uint32_t)min_u64(pool.q[i].nqueued, room);
}

static struct pool_job *take_to_run_locked(void)
{
    for (int i = 0; i < POOL_QUEUES; i++) {
        if (may_run_locked((enum pool_queue)i)) {
            struct pool_job *job = pool.q[i].first;
            remove_locked(job);
            return job;
        }
    }
    return NULL;
}

static bool wants_more_locked(void)
{
    uint32_t n = may_run_locked(POOL_LOOKUPS) + may_run_locked(POOL_OPENS);
    return n > pool.nidle + pool.nnew;
}

void pool_put(struct pool_job *job)
{
    struct queue *q = &pool.q[job->kind->queue];
    lock(&pool.lock);
    job->queued = true;
    job->next = NULL;
    job->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = job;
    q->last = job;
    q->nqueued++;
    bool wake = pool.nidle > 0;
    bool more = wants_more_locked();
    at_add(&pool.word, 1, RELAXED);
    unlock(&pool.lock);
    if (wake) {
        futex_wake(&pool.word, 1);
    }
    if (more) {
        factory_want_io();
    }
}

bool pool_take_back(struct pool_job *job)
{
    lock(&pool.lock);
    bool queued = job->queued;
    if (queued) {
        remove_locked(job);
    }
    unlock(&pool.lock);
    return queued;
}

/* With the ring's, since those who ask want to know of all. */
int pool_idle(void)
{
    int uring = uring_idle();
    lock(&pool.lock);
    bool queued = pool.q[POOL_LOOKUPS].first || pool.q[POOL_OPENS].first;
    bool busy = queued || pool.refuses || pool.nidle < pool.nliving;
    int n = busy || uring < 0 ? -1 : (int)pool.nidle + uring;
    unlock(&pool.lock);
    return n;
}

/* --- a helper ---------------------------------------------------------------------------------------- */

/* Under the lock, before and after. False: there was nothing to do for long. */
static bool sleep_locked(struct helper *h)
{
    uint32_t seen = at_load(&pool.word, RELAXED);
    pool.nidle++;
    unlock(&pool.lock);
    bool woken = futex_wait(&pool.word, seen, now_ns() + IDLE_MOST);
    lock(&pool.lock);
    pool.nidle -= !h->abandoned;
    return woken;
}

/* Under the lock, before and after. False: it was left behind. */
static bool run_locked(struct helper *h, struct pool_job *job)
{
    struct queue *q = &pool.q[job->kind->queue];
    q->nrunning++;
    unlock(&pool.lock);
    job->kind->run(job);
    lock(&pool.lock);
    q->nrunning -= !h->abandoned;
    return !h->abandoned;
}

static void unlink_locked(struct helper *h)
{
    *(h->prev ? &h->prev->next : &pool.living) = h->next;
    if (h->next) {
        h->next->prev = h->prev;
    }
    pool.nliving--;
}

static void *helper_main(void *arg)
{
    struct helper *h = arg;
    struct pool_job *job;
    lock(&pool.lock);
    pool.nnew -= !h->abandoned;
    for (bool woken = true; !pool.stop && !h->abandoned;) {
        if ((job = take_to_run_locked())) {
            if (!run_locked(h, job)) {
                break;
            }
            woken = true;
        } else if (!woken) {
            break;
        } else {
            woken = sleep_locked(h);
        }
    }
    bool abandoned = h->abandoned;
    if (!abandoned) {
        unlink_locked(h);
        h->next = pool.dead;
        pool.dead = h;
        at_add(&pool.gone, 1, RELAXED);
        futex_wake(&pool.gone, 1);
    }
    unlock(&pool.lock);
    if (abandoned) {
        free(h);
    }
    return NULL;
}

/* --- life: by the factory, or by the stop when that has ended ------------------------------------------ */

static void join_dead(void)
{
    lock(&pool.lock);
    struct helper *h = pool.dead;
    pool.dead = NULL;
    unlock(&pool.lock);
    for (struct helper *next; h; h = next) {
        next = h->next;
        pthread_join(h->thread, NULL);
        free(h);
    }
}

static int make_one(void)
{
    struct helper *h = calloc(1, sizeof *h);
    if (!h) {
        return -ENOMEM;
    }
    lock(&pool.lock);
    h->next = pool.living;
    if (h->next) {
        h->next->prev = h;
    }
    pool.living = h;
    pool.nliving++;
    pool.nnew++;
    unlock(&pool.lock); /* who has malloc's lock may be waiting for who waits for this one */
    int err = thread_create(&h->thread, "pirn-helper", helper_main, h, true);
    if (err) {
        lock(&pool.lock);
        unlink_locked(h);
        pool.nnew--;
        unlock(&pool.lock);
        free(h);
    }
    return err;
}

/* There is nobody who would take them; or who does not wait for what one of them may bring. */
static void refuse_all(void)
{
    struct pool_job *job;
    do {
        lock(&pool.lock);
        job = pool.nliving > pool.q[POOL_OPENS].nrunning ? NULL : take_any_locked();
        pool.refuses = job;
        unlock(&pool.lock);
        if (job) {
            job->kind->refused(job);
        }
    } while (job);
}

void pool_make(void)
{
    int err = 0;
    for (bool more = true; more && !err;) {
        join_dead();
        lock(&pool.lock);
        more = wants_more_locked();
        unlock(&pool.lock);
        err = more ? make_one() : 0;
    }
    if (err) {
        refuse_all();
    }
}

/* True: some did not end in time. */
static bool wait_for_end(int64_t grace)
{
    int64_t now = now_ns(), until = grace > INT64_MAX - now ? INT64_MAX : now + grace;
    for (;;) {
        lock(&pool.lock);
        uint32_t gone = at_load(&pool.gone, RELAXED);
        bool over = !pool.living;
        unlock(&pool.lock);
        if (over || !futex_wait(&pool.gone, gone, until)) {
            return !over;
        }
    }
}

static uint32_t abandon_all(void)
{
    uint32_t n = 0;
    lock(&pool.lock);
    for (struct helper *h = pool.living; h; h = h->next, n++) {
        h->abandoned = true;
        pthread_detach(h->thread);
    }
    pool.living = NULL;
    pool.nliving = pool.nidle = pool.nnew = 0;
    pool.q[POOL_LOOKUPS].nrunning = pool.q[POOL_OPENS].nrunning = 0;
    unlock(&pool.lock);
    return n;
}

bool pool_stop(int64_t grace)
{
    struct pool_job *job;
    lock(&pool.lock);
    pool.stop = true;
    at_add(&pool.word, 1, RELAXED);
    unlock(&pool.lock);
    futex_wake(&pool.word, INT_MAX);
    uint32_t left = wait_for_end(grace) ? abandon_all() : 0;
    if (left) {
        say("pirn: still busy after the runtime has ended, and left behind: %u helper thread%s\n",
            left, left == 1 ? "" : "s");
    }
    join_dead();
    lock(&pool.lock);
    while ((job = take_any_locked())) {
        unlock(&pool.lock);
        job->kind->dropped(job);
        lock(&pool.lock);
    }
    pool.stop = false;
    unlock(&pool.lock);
    return left;
}
