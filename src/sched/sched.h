/* SPDX-License-Identifier: MIT */
/*
 * What the files of the scheduler offer each other and the layers above, file by file. The data is in
 * gmp.h, which is to be read first.
 */
#ifndef PIRN_SCHED_SCHED_H
#define PIRN_SCHED_SCHED_H

#include "sched/above.h"
#include "sched/entry.h"
#include "sched/gmp.h"

/* entry.c */
void m_wait_for_p(struct m *mp);
void m_queue_bound_locked(struct m *mp);
struct m *m_give_way_locked(struct m *mp);
void m_regain(struct m *mp);
void m_settle(struct m *mp);

/* preempt.c */
int preempt_start(void);
void preempt_stop(void);
void preempt_thread_begin(struct m *mp);
void preempt_thread_end(struct m *mp);
void preempt_timer_end_locked(struct m *mp);
int preempt_sigaction(int sig, const struct sigaction *sa, struct sigaction *old);
bool preempt_due(struct m *mp);
void preempt_here(struct m *mp);
void preempt_send(struct m *mp);
void preempt_show_registers(struct m *mp, const void *context); /* into m.regs */
bool preempt_see_registers(struct m *mp, int64_t deadline); /* into m.regs; false: can't be had */
void preempt_check_handler(void);

/* retake.c: on behalf of sysmon */
void retake_start(void);
void retake_stop(void);
/* True: it is worth to look again soon. */
bool retake_look(struct p *pp, int64_t now);
bool retake_is_keen(int64_t now);
bool retake_for_world(struct p *pp);

/* world.c */
bool world_stop(int64_t deadline);
void world_start(void);
void world_end(void);
void p_stopped_locked(struct p *pp);

/* lockthread.c */
void visits_allow(void);
void visits_bounds(void **lo, size_t *size);
void visits_end(void);
struct m *m_first(void); /* of all: for reports */
struct m *m_after(const struct m *mp);
void visit_wait(struct note *n);
void bound_leaves(struct m *mp, struct g *gp);

/* init.c, local.c: their locks, over a fork */
void life_hold(void);
void life_let_go(void);
void local_hold(void);
void local_let_go(void);

/* sigstack.c */
void sigstack_start(void);
void sigstack_look(void);

/* park.c; waiting itself is in park.h */
typedef bool commit_fn(struct g *gp, void *arg);
void make_runnable(struct g *gp); /* checks and sets its status; the caller queues or runs it */
void ready(struct g *gp);
void waiter_ready(struct waiter *w);
void waiter_ready_list(struct waiter *first); /* linked by next, in order */

/* g.c */
#define G_CACHE (PIRN_SMALL ? 4u : 256u)
struct g *g_alloc_slow(struct p *pp);
void g_free_slow(struct p *pp, struct g *gp);

/* pp may be NULL; NULL if out of memory. */
static inline struct g *g_alloc(struct p *pp)
{
    struct g *gp = pp ? pp->gfree : NULL;
    if (unlikely(!gp)) {
        return g_alloc_slow(pp);
    }
    pp->gfree = gp->link;
    pp->ngfree--;
    return gp;
}

static inline void g_free(struct p *pp, struct g *gp)
{
    at_store(&gp->status, G_IDLE, RELAXED);
    if (unlikely(!pp || pp->ngfree >= G_CACHE)) {
        g_free_slow(pp, gp);
        return;
    }
    gp->link = pp->gfree;
    pp->gfree = gp;
    pp->ngfree++;
}

/* Ids come in blocks, so that Ps don't fight over one counter. The first is 1. */
uint64_t g_new_id_slow(struct p *pp);
static inline uint64_t g_new_id(struct p *pp)
{
    return likely(pp && pp->id_next != pp->id_end) ? pp->id_next++ : g_new_id_slow(pp);
}
void g_flush(struct p *pp);
struct gextra *g_extra(struct g *gp);
void g_at_end(struct at_end *e); /* of this goroutine; needs memory, and is left out without */
void g_at_end_run(struct at_end *e);
void g_extra_end(struct g *gp);
void g_extra_dropped(struct g *gp);
void g_for_each(void (*fn)(struct g *, void *), void *arg);
typedef void range_fn(void *at, size_t size, void *arg);
void g_for_each_slab(range_fn *fn, void *arg);
void g_fini(bool keep);
uint32_t g_count(void);
const char *g_status_name(uint32_t status);

/* spawn.c */
int spawn(const pirn_attr *attr, const struct gstart *start, uint16_t flags, const char *site,
          struct pirn_wg *wg);
uint64_t call_captured(const struct gstart *start, uint16_t flags, void **fp);
_Noreturn void g_end_here(bool exits);
/* Also on g0. entered: a foreign thread is inside foreign_enter(). */
int spawn_by_runtime(const struct gstart *start, const char *site, bool entered);
void *g_main(void); /* called by arch_start */

/* schedule.c */
struct g *next_local(struct p *pp);
void m_run(struct m *mp);
void runq_submit(struct p *pp, struct g *gp, bool next);

/* findwork.c */
struct g *find_work(struct m *mp);
bool work_visible(void);
struct walk { /* visits 0 .. n-1 once each, in random order */
    uint32_t at, step, left, n;
};
void walk_begin(struct walk *w, struct rand *r, uint32_t n);
bool walk_next(struct walk *w, uint32_t *i);

/* timers.c; timers.h has the types */
void timers_init(struct timers *h);
void timers_fini(struct timers *h);
bool timer_set(struct timer *t, int64_t when, int64_t period); /* true: it was pending */
bool timer_stop(struct timer *t);                              /* the same */
void timers_sleep(struct waiter *w, int64_t when);
bool timers_run(struct timers *h, int64_t now);
void timer_fire_if_due(struct timer *t);
void timers_look(struct p *pp);
bool timers_steal(struct p *victim, int64_t *now);
int64_t timers_next(void);
bool timers_unattended(void);
bool timers_unkept(void);

/* idle.c */
void m_idle(struct m *mp);
void m_hand_off(struct m *mp, struct g *gp);
void m_post(struct m *mp); /* its note, wherever it sleeps */
void m_wait_locked(struct m *mp);
void m_end_locked(struct m *mp);
void p_bind(struct m *mp, struct p *pp);
struct p *p_unbind(struct m *mp);
struct p *p_take_locked(struct p *old);
struct m *p_heir_locked(struct p *pp, struct g *gp); /* NULL: there is no thread */
struct m *p_pass_on_locked(struct p *pp, struct g *gp);
struct m *p_let_go_locked(struct m *mp, struct g *gp);
void p_let_go_end(struct m *heir);
bool p_has_work(struct p *pp);
void wake_all(void);
static inline bool p_has_queued(struct p *pp) /* a glance */
{
    return at_load(&sched.globq.size, RELAXED) || at_load(&pp->runq.next, RELAXED)
           || at_load(&pp->runq.head, RELAXED) != at_load(&pp->runq.tail, RELAXED);
}
void wake_slow(struct p *pp, bool only_runnext);
void wake_one(struct p *pp);
void wake_for_more(struct p *pp);

/* After work has been put on a queue: [W1] in idle.c. only_runnext: it is nowhere but in pp's
 * runnext. */
static inline void wake_if_idle(struct p *pp, bool only_runnext)
{
    if (unlikely(at_load(&sched.npidle, RELAXED) && !at_load(&sched.nspinning, RELAXED))) {
        wake_slow(pp, only_runnext);
    }
}

/*
 * The only P there is: nobody to wake, and no fence needed. One that others have just been added to may be
 * taken for it: they look at all queues when they begin, and after that sysmon does, if need be. One
 * that retires is not alone: the one that stays may be idle.
 */
static inline bool p_is_alone(const struct p *pp)
{
    return at_load(&sched.nprocs, RELAXED) == 1 && !at_load(&pp->retire, RELAXED);
}

static inline void wake_for(struct p *pp)
{
    if (pp && p_is_alone(pp)) {
        return;
    }
    at_fence(SEQ_CST); /* [W1] */
    wake_if_idle(pp, false);
}
bool spin_begin(struct m *mp);
void spin_end(struct m *mp);
void pidle_put_locked(struct p *pp);
struct p *pidle_get_locked(void);
struct m *midle_get_locked(void);
void midle_take_locked(struct m *mp);

/* m.c, factory.c, sysmon.c */
int factory_start(void);
void factory_stop(void);
void factory_want_locked(struct p *pp, struct g *gp, bool spinning);
void factory_want_procs(int n);
void factory_want_io(void);
void factory_want_spare_locked(void);
void factory_join_locked(struct m *mp);
struct p *factory_take_back_locked(void);
int m_start(struct p *pp, bool born); /* born: it takes a P that waits for a thread */
void factory_born(struct m *mp);
void m_init(struct m *mp);
void m_be(struct m *mp);
void m_tell_all_to_stop(void);
void m_fini(int64_t grace, bool *left_behind);
int sysmon_start(void);
void sysmon_stop(void);
void sysmon_kick(void);
void sysmon_look_now(void);
void sysmon_may_block(void);
void sysmon_let_in(uint64_t signals);
int64_t coarse_now(void);

/* p.c */
int p_resize(int n, struct p *mine, bool follow); /* the number before; mine is kept */
void p_resize_put_off_locked(void);
void p_retire_g0(struct m *mp);
void p_give_up_locked(struct m *mp);
void p_put_back_locked(struct p *pp);
void p_fini(bool keep);

/* stack.c */
int stack_class(size_t size);
int stack_promise_slow(struct p *pp, int class);
void stack_unpromise_slow(struct p *pp, int class);
void stack_cache_full(struct stack_cache *c, int class);
void stack_refill_g0(struct p *pp, int class);
void stack_flush(struct p *pp);
void stack_check(struct g *gp);

static inline struct gtop *g_top(const struct g *gp)
{
    return (struct gtop *)gp->stack_hi - 1;
}

/* Where its first frame begins. */
static inline void *stack_start(const struct g *gp)
{
    return g_top(gp);
}

/* The lowest usable address. */
static inline void *stack_lo(const struct g *gp)
{
    const struct stack_kind *k = &stack_kinds[gp->class];
    return (char *)gp->stack_hi - k->size + k->guard;
}

/* 0 or -ENOMEM. pp may be NULL, here and below. */
static inline int stack_promise(struct p *pp, int class)
{
    if (likely(pp && pp->stacks[class].promises)) {
        pp->stacks[class].promises--;
        return 0;
    }
    return stack_promise_slow(pp, class);
}

static inline void stack_unpromise(struct p *pp, int class)
{
    if (unlikely(!pp || ++pp->stacks[class].promises > 4 * STACK_BATCH)) {
        stack_unpromise_slow(pp, class);
    }
}

/* Takes the stack of a goroutine that has left it for good. */
static inline void stack_give_owner(struct p *pp, struct g *gp)
{
    struct stack_cache *c = &pp->stacks[gp->class];
    if (unlikely(c->n == stack_kinds[gp->class].cache)) {
        stack_cache_full(c, gp->class);
    }
    c->slot[c->n++] = (uintptr_t)gp->stack_hi | (gp->flags & G_UNGUARDED ? SLOT_UNGUARDED : 0);
    gp->stack_hi = NULL;
}

int stack_room_for_procs(uint32_t nprocs); /* 0 or -ENOMEM */
int stack_init(enum guard_kind kind);
void stack_fini(bool keep);
int64_t stack_trim(int64_t now);
bool stack_contains(const void *addr);
enum stack_place { STACK_NONE, STACK_GUARD, STACK_FREE, STACK_USED };
enum stack_place stack_place(const void *addr); /* in the handler of a fault */
void stack_for_each_chunk(range_fn *fn, void *arg);
void stack_metrics(pirn_metrics_v1 *out);

/* foreign.c */
bool foreign_enter(void); /* false: no runtime runs */
void foreign_leave(void);
void foreign_drain(void);
void foreign_late_begin(void); /* a call without a runtime, or the end of one */
void foreign_late_end(void);
/* entered: inside enter, else inside late_begin; it ends either. False: the deadline has passed. */
bool foreign_park(struct waiter *w, bool entered, commit_fn *commit, void *arg, int64_t deadline);
void foreign_ready(struct waiter *w);
void foreign_wait_for_ready(struct waiter *w);

/* local.c, label.c, deadlock.c, debugenv.c */
void local_end(struct g *gp);
void labels_inherit(struct g *gp, const struct g *creator);
void deadlock_check_locked(uint32_t mine);
extern const char *const wait_reason_names[WAIT_REASONS];
struct debug_env {
    enum guard_kind guard;
    bool move;
    locks_held_by_fn *locks_held_by;
    bool no_preempt;
    bool leaks, cycles;
    int64_t thread_idle_most; /* ns, or 0 */
    bool io_says;
    int io;    /* enum pirn_io, in place of the default */
    int procs; /* PIRN_PROCS, or 0 */
};
void debug_env_read(struct debug_env *out);

#endif
