/* SPDX-License-Identifier: MIT */
/*
 * The runtime ends, and goroutines that wait are dropped: sync/forget.c takes them out of the queues of
 * objects that live on, and foreign threads that waited behind them go on.
 *
 * M 0 runs the goroutine until it waits, and is the stop afterwards: as in init.c, no call of a foreign
 * thread is under way when the goroutine is dropped, unless it waits.
 */
#define MACHINE_STACKS
#include "machine.h"
#include "sync/chan.h"

#include "ctx/ctx.h"

/* --- what is not looked at ------------------------------------------------------------------------------ */

pirn_chanv *ctx_done(struct pirn_ctx *ctx)
{
    model_fail("context %p", (const void *)ctx);
}
int ctx_err(const struct pirn_ctx *ctx)
{
    model_fail("context %p", (const void *)ctx);
}
bool timer_set(struct timer *t, int64_t when, int64_t period)
{
    model_fail("timer %p, %ld, %ld", (void *)t, (long)when, (long)period);
}
bool timer_stop(struct timer *t)
{
    model_fail("timer %p", (void *)t);
}
void timer_chan_look(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
bool timer_chan_end_locked(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
void timer_chan_free(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
bool stack_contains(const void *addr)
{
    (void)addr;
    return false;
}

/* --- the machine ---------------------------------------------------------------------------------------- */

static struct object {
    pirn_mutex mutex;
    pirn_rwmutex rw;
    pirn_sem sem;
    pirn_cond cond;
    pirn_barrier barrier;
} * o;
static pirn_chanv *a, *b;
static at_u32 waiting;  /* the goroutine */
static at_u32 finished; /* the foreign thread that may wait */

static void setup(void (*fn)(struct m *))
{
    machine_setup(1);
    o = calloc(1, sizeof *o);
    a = pirn_chanv_make(sizeof(int), 0);
    b = pirn_chanv_make(sizeof(int), 0);
    at_store(&waiting, 0, RELAXED);
    at_store(&finished, 0, RELAXED);
    body[0] = fn;
    runq_put_owner(&ps[0].runq, new_goroutine(0));
}

static void forgets(void)
{
    struct g *gp = &gs[0];
    foreign_drain();
    at_store(&sched.life, LIFE_STOPPING, RELAXED);
    foreign_late_begin();
    uint32_t status = at_load(&gp->status, RELAXED);
    if (status == G_WAITING || status == G_RUNNABLE) {
        sync_forget(&gp->run.waiter, gp->reason, status == G_WAITING);
    }
    foreign_late_end();
    at_store(&sched.life, LIFE_NONE, RELAXED);
}

/* A foreign thread that may wait does so before the stop, or needs not: without a runtime it can't. */
static void runs(void)
{
    m_run_one(m_begin(0));
    set_current_m(NULL);
    at_store(&waiting, 1, RELEASE);
}

static void runs_and_forgets(void)
{
    runs();
    forgets();
}

static void runs_while_foreign_waits(void)
{
    runs();
    while (!at_load(&finished, RELAXED) && !at_load(&sched.nforeign_parked, RELAXED)) {
        at_pause();
    }
}

static void runs_and_forgets_later(void)
{
    runs_while_foreign_waits();
    forgets();
}

static void at_rest(void)
{
    CHECK(!(o->mutex.state_ & ~(uint64_t)4) && !o->mutex.waiters_); /* HELD, if it got it */
    CHECK(!(o->rw.state_ & 8) && !o->rw.waiters_);                  /* WAITERS */
    CHECK(!o->sem.state_ && !o->sem.waiters_);
    CHECK(!o->cond.state_ && !o->cond.waiters_);
    CHECK(!o->barrier.state_ && !o->barrier.waiters_);
    CHECK(!a->receivers.first && !a->senders.first && !a->selects);
    CHECK(!b->receivers.first && !b->senders.first && !b->selects);
    pirn_chanv_release(a);
    pirn_chanv_release(b);
    free(o);
}

#define FORGET(mname, setup_, ...)                                                                 \
    MODEL(mname, .setup = setup_, .finish = at_rest, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- mutex: it was woken to try again, and did not come to it ----------------------------------------------- */

static void locks(struct m *mp)
{
    (void)mp;
    pirn_mutex_lock(&o->mutex);
    pirn_mutex_unlock(&o->mutex);
}

static void setup_mutex(void)
{
    setup(locks);
    o->mutex.state_ = 4; /* HELD, by a foreign thread */
}

static void unlocks_and_forgets(void)
{
    runs_while_foreign_waits();
    pirn_mutex_unlock(&o->mutex); /* the first in the queue is woken */
    forgets();
}

/* It queues behind the goroutine. */
static void foreign_locks(void)
{
    while (!at_load(&waiting, ACQUIRE)) {
        at_pause();
    }
    locks(NULL);
    at_store(&finished, 1, RELAXED);
}

FORGET(mutex, setup_mutex, unlocks_and_forgets, foreign_locks)

/* --- who waited behind it is let in ------------------------------------------------------------------------- */

static void writes(struct m *mp)
{
    (void)mp;
    pirn_rwmutex_lock(&o->rw);
    pirn_rwmutex_unlock(&o->rw);
}

static void setup_rw(void)
{
    setup(writes);
    pirn_rwmutex_rlock(&o->rw); /* and stays inside */
}

static void foreign_reads(void)
{
    pirn_rwmutex_rlock(&o->rw);
    pirn_rwmutex_runlock(&o->rw);
    at_store(&finished, 1, RELAXED);
}

FORGET(rwmutex, setup_rw, runs_and_forgets_later, foreign_reads)

static void acquires_two(struct m *mp)
{
    (void)mp;
    pirn_sem_acquire(&o->sem, 2);
}

static void setup_sem(void)
{
    setup(acquires_two);
    pirn_sem_init(&o->sem, 1);
}

static void foreign_acquires_one(void)
{
    pirn_sem_acquire(&o->sem, 1);
    pirn_sem_release(&o->sem, 1);
    at_store(&finished, 1, RELAXED);
}

FORGET(sem, setup_sem, runs_and_forgets_later, foreign_acquires_one)

/* --- nobody waits behind it; a partner does not meet it ------------------------------------------------------ */

static void waits(struct m *mp)
{
    (void)mp;
    pirn_mutex_lock(&o->mutex);
    pirn_cond_wait(&o->cond, &o->mutex);
    pirn_mutex_unlock(&o->mutex);
}

static void setup_cond(void)
{
    setup(waits);
}

static void foreign_signals(void)
{
    pirn_cond_signal(&o->cond);
}

FORGET(cond, setup_cond, runs_and_forgets, foreign_signals)

static void meets(struct m *mp)
{
    (void)mp;
    pirn_barrier_wait(&o->barrier);
}

static void setup_barrier(void)
{
    setup(meets);
    pirn_barrier_init(&o->barrier, 3);
}

static void looks_at_the_barrier(void)
{
    CHECK(o->barrier.arrived_ == 0);
    at_rest();
}

MODEL(barrier, .setup = setup_barrier, .finish = looks_at_the_barrier,
      .threads = {runs_and_forgets}, .preemptions = MODEL_UNBOUNDED)

static void receives(struct m *mp)
{
    (void)mp;
    int v;
    pirn_chanv_recv(a, &v);
}

static void selects(struct m *mp)
{
    (void)mp;
    int v;
    bool ok;
    pirn_case cases[] = {{.kind_ = PIRN_CASE_RECV_, .chan_ = a, .elem_ = &v, .ok_ = &ok},
                         {.kind_ = PIRN_CASE_RECV_, .chan_ = b, .elem_ = &v, .ok_ = &ok}};
    pirn_selectv(cases, 2);
}

static void setup_recv(void)
{
    setup(receives);
}

static void setup_select(void)
{
    setup(selects);
}

static void foreign_tries_to_send(void)
{
    int v = 1;
    pirn_chanv_try_send(a, &v);
}

static void foreign_closes(void)
{
    pirn_chanv_close(a);
}

FORGET(recv, setup_recv, runs_and_forgets)
FORGET(select_against_send, setup_select, runs_and_forgets, foreign_tries_to_send)
FORGET(select_against_close, setup_select, runs_and_forgets, foreign_closes)
