/* SPDX-License-Identifier: MIT */
/*
 * G, M and P: the data of the scheduler, and who owns each field.
 *
 *   G  a goroutine. While it runs it belongs to its M; while it is runnable, to
 *      the queue it is on; while it waits, to whoever will make it ready. The
 *      memory of a G is never given back while the runtime runs, so a stale
 *      pointer still points to a G.
 *   M  a kernel thread. Its own stack (g0) runs the scheduler when there is
 *      nothing else to run; goroutines switch to each other directly.
 *   P  the right to run goroutines, with the queues and caches that need no lock
 *      because only the M that holds the P uses them ("owner" below).
 *
 * The rule of the switch: nobody may resume a goroutine whose stack is still in
 * use. So whatever makes the old goroutine visible to others (queue it, unlock
 * the object it waits on, free its stack) is a commit action that the far side
 * of the switch carries out, when the old stack has been left: switch.h.
 */
#ifndef PIRN_SCHED_SCHED_H
#define PIRN_SCHED_SCHED_H

#include <pirn.h>
#include <signal.h>
#include <time.h>

#include "arch/arch.h"
#include "base/atomic.h"
#include "base/fatal.h"
#include "base/rand.h"
#include "base/tool.h"
#include "base/util.h"
#include "os/os.h"
#include "sched/timers.h"

#define PROCS_MAX 1024
#define GLOBQ_TICK 61 /* every so many switches the global queue goes first */

/* --- G ----------------------------------------------------------------------------------------- */

/* Who may touch the G and its stack. */
enum g_status {
    G_IDLE,     /* nobody: it is on a free list */
    G_RUNNABLE, /* the queue that holds it */
    G_RUNNING,  /* the M whose curg it is */
    G_WAITING,  /* whoever holds its wait record */
};

enum wait_reason {
    WAIT_NONE,
    WAIT_CHAN_SEND,
    WAIT_CHAN_RECV,
    WAIT_CHAN_SEND_NIL,
    WAIT_CHAN_RECV_NIL,
    WAIT_CHAN_SEND_UNTIL, /* a select, as are the others that can end early */
    WAIT_CHAN_RECV_UNTIL,
    WAIT_COND_UNTIL,
    WAIT_SLEEP_CTX,
    WAIT_GROUP,
    WAIT_SELECT,
    WAIT_SELECT_NONE, /* no case can ever be chosen */
    WAIT_MUTEX,
    WAIT_RWMUTEX_LOCK,
    WAIT_RWMUTEX_RLOCK,
    WAIT_COND,
    WAIT_SEM,
    WAIT_BARRIER,
    WAIT_WG,
    WAIT_SLEEP,
    WAIT_GROUP_ROOM,
    WAIT_TIMER,
    WAIT_READ, /* of a descriptor */
    WAIT_WRITE,
    WAIT_READ_UNTIL, /* selects */
    WAIT_WRITE_UNTIL,
    WAIT_FILE,
    WAIT_OPEN,
    WAIT_CLOSE,
    WAIT_RESOLVE,
    WAIT_PARK,
    WAIT_REASONS
};

enum g_flags {
    G_UNGUARDED = 1, /* no guard region below its stack: canary and sp are checked at switches */
    G_FP_MODES = 2,  /* has FP modes of its own */
    G_SIMPLE = 4,    /* start.fn takes one pointer, in start.slot[0] */
    G_FLOATS = 8,    /* a captured call with floating-point arguments */
    G_MAIN = 16,     /* goroutine 1 */
    G_SITE_PC = 32,  /* site is a return address, not a text */
    G_DROPPED = 64,  /* the runtime ends, and it was stopped at its entry into pirn */
    G_BOUND = 128,   /* runs on run.m only: it was stopped in the midst of its code, or is locked */
    G_CXX = 256,     /* left in the midst of C++ exceptions: gtop.cxx */
};

/* Before the first run: what to call. At most 6 arguments in all: integer registers are
 * kept from the front of slot[], floating-point registers from its back. */
struct gstart {
    void (*fn)(void);
    uint64_t slot[GO_ARGS_MAX];
};

/* One wait of one goroutine or foreign thread: park.h. A goroutine has one in its G, since it
 * mostly waits for one thing at a time, and there a waker finds many of them side by side. */
struct waiter {
    struct waiter *next, *prev;
    struct g *g; /* NULL: a foreign thread, asleep on the note */
    struct note note;
    bool timed;   /* a foreign thread that wakes by itself */
    void *object; /* what it waits for */
};

/* After: what only a started goroutine has. */
struct grun {
    struct waiter waiter; /* of its current wait */
    union {
        int64_t wait_since; /* coarse clock at the last park */
        int64_t result;     /* at the end, in a group */
    };
    struct m *m; /* G_BOUND: where it must run. PIRN_DEBUG=move: where it ran last */
};

/* What is to be done when a goroutine ends, also inside pirn_exit: in the frame of who asks for it. */
struct at_end {
    struct at_end *next;
    void (*fn)(struct at_end *,
               bool dropped); /* dropped: by the stop, not by the goroutine itself */
};

#define LABELS_SIZE 96
#define LABELS_END 3

struct gextra { /* what few goroutines have; made on demand, kept with the G */
    char name[40];
    char labels[LABELS_SIZE];  /* pairs of texts: label.c */
    struct pirn_ctx *ctx;      /* its current context; NULL: the background */
    struct pirn_ctx *own_ctx;  /* the one that it began with, if it uses another now */
    struct pirn_ctx *last_ctx; /* the one that it used before */
    struct at_end *at_end;
    void **locals;
    uint32_t nlocals;
    uint64_t fp_modes; /* G_FP_MODES: while away */
    uint32_t locked;   /* pirn_lock_thread less pirn_unlock_thread */
};

/* What C++ keeps for each thread: __cxa_eh_globals. */
struct cxx_globals {
    void *caught;
    uintptr_t uncaught;
};

/* At the high end of its stack, or thread-local for a thread without goroutines: panic/panic.h. */
struct gtop {
    struct pirn_defer_ *defers;     /* the innermost */
    struct pirn_defer_ *outermost;  /* of the same list */
    struct pirn_panic_info *panics; /* under way, the newest first */
    struct running *running;        /* the deferred call that a panic runs */
    struct pirn_defer_ *unwinds;    /* the next that may be called by code that unwinds a frame */
    struct cxx_globals cxx;         /* G_CXX: while away */
    void *unused;                   /* keeps the stack aligned */
};
_Static_assert(sizeof(struct gtop) % 16 == 0, "the stack begins below it, aligned");

struct g {
    /* one cache line: what a switch touches */
    void *sp;       /* while away; NULL: starts at stack_hi */
    void *stack_hi; /* NULL: not started, has no stack yet */
    struct g *link; /* the one list that it is on */
    AT(uint32_t) status;
    uint8_t class;  /* of its stack */
    uint8_t reason; /* enum wait_reason */
    uint16_t flags;
    uint64_t id;
    uint64_t creator; /* id of the goroutine that spawned it */
    const char *site; /* "fn\0file:line", or NULL */
    struct gextra *extra;
    /* the second line */
    union {
        struct gstart start;
        struct grun run;
    };
    struct pirn_wg *done_wg; /* pirn_wg_go: told when it ends; pirn_group_go: | 1, a group */
    struct tool_stack tool;
} CACHE_ALIGNED;

#if !TOOL_ASAN && !TOOL_TSAN
_Static_assert(sizeof(struct g) == 128, "a G is two cache lines");
#endif

/* --- queues -------------------------------------------------------------------------------------- */

#include "sched/runq.h"

/* globq.c: under sched.lock, but its size may be read at any time. */
struct globq {
    struct glist list;
    struct glist bound; /* those that are put one by one and run on one thread only */
    bool bound_next;    /* whose turn it is */
    at_u32 size;        /* of both */
};
struct g *globq_get_bound_locked(struct globq *q); /* NULL: none */
void globq_put_locked(struct globq *q, struct g *gp);
void globq_put_list_locked(struct globq *q, struct glist *l);
/* One to run; up to max more go into the ring. */
struct g *globq_get_locked(struct globq *q, struct runq *ring, uint32_t procs, uint32_t max);

/* --- stacks: stack.c --------------------------------------------------------------------------- */

#define STACK_CLASSES 18 /* 2, 4, 8 KB dense; 64 KB to 1 GB guarded */
#define STACK_DENSE 3
#define STACK_CACHE 64
#define STACK_CANARY 0x70697264636e6121u

#define STACK_BATCH 32u   /* slots or promises between a P and the pool */
#define SLOT_UNGUARDED 1u /* in the low bit of a slot's high end */

struct stack_kind {
    size_t size, guard;
    uint32_t cache; /* most free slots that a P keeps */
};
extern const struct stack_kind stack_kinds[STACK_CLASSES];

struct stack_cache { /* owner only */
    uint32_t n;
    uint32_t promises;           /* slots that are granted to this P but to no goroutine yet */
    uintptr_t slot[STACK_CACHE]; /* high end, | 1 if unguarded; the last freed is on top */
};

/* --- P ----------------------------------------------------------------------------------------- */

/* p.retire, bits: why a P is to be given up at the next chance. */
enum p_retire { P_RETIRE_PROCS = 1, P_RETIRE_WORLD = 2 };
enum p_status { P_IDLE, P_RUNNING, P_RETIRED, P_STOPPED };

struct p_counts { /* written by the owner, read by anybody */
    at_u64 spawned, ended, switches, steals, stolen, wakes, preempted;
};

struct p {
    int id; /* index in sched.allp; constant */
    /* owner only */
    struct g *gfree;
    uint32_t ngfree;
    int64_t woke_at; /* coarse time of the last wake for runnext alone: idle.c */
    uint64_t id_next, id_end;
    struct rand rand;
    /* under sched.lock */
    struct p *link;      /* idle list, or the factory's list */
    struct g *handoff_g; /* for the M that the factory makes */
    bool handoff_spinning;
    /* atomic */
    at_u32 status;
    at_u32 tick;       /* ++ at every switch that starts a slice */
    at_u32 slice_over; /* sysmon: this slice has lasted too long */
    at_u32 retire;     /* enum p_retire */
    AT(struct m *) m;  /* who has it; changed with the M's p */
    at_u32 timers_due; /* sysmon: look at the timers of all Ps at the next chance */
    struct p_counts counts;
    /* sysmon only */
    uint32_t seen_tick;
    uint64_t seen_switches;
    int64_t seen_since;
    struct blocked_look { /* retake.c: its thread was seen to block */
        struct m *m;
        uint32_t tick, nblocking;
        int64_t since;
    } seen_blocked;
    struct starved_look { /* sysmon.c: work waited here */
        uint64_t first;
        int64_t since;
    } seen_starved;

    struct timers timers;
    struct runq runq;
    struct stack_cache stacks[STACK_CLASSES];
};

/* --- M ----------------------------------------------------------------------------------------- */

/* Where its thread is: entry.c. Written by the thread itself, but for ANNOUNCED to TAKEN. */
enum m_where {
    M_USER,      /* in a goroutine's own code */
    M_RUNTIME,   /* in pirn */
    M_ANNOUNCED, /* between pirn_blocking_begin and _end, and has its P */
    M_TAKEN,     /* the same without: another took it */
};

/* What the thread is to look at when it enters or leaves the runtime. */
enum m_attention {
    M_STOP = 1,     /* the runtime ends: leave at the next entry */
    M_ASKED = 2,    /* somebody is about to take its P, since it seems to block */
    M_LOST = 4,     /* that was done */
    M_PREEMPT = 8,  /* it was in the runtime when its slice was over */
    M_GARBAGE = 16, /* m.garbage is to be freed outside */
    M_FORKED = 32,  /* this is the child of a fork */
};

struct m {
    struct g g0;      /* the thread's own stack; first, so that it is aligned */
    at_u32 where;     /* enum m_where */
    at_u32 attention; /* enum m_attention, bits */
    at_u32 nblocking; /* ++ at each pirn_blocking_begin */
    AT(int) tid;
    AT(bool) has_timer;
    at_u32 signalled; /* by a signal that can't say that it is ours */
    /* owner only */
    struct g *curg; /* NULL on g0 */
    struct p *p;
    struct cxx_globals *cxx; /* of the thread; NULL: there is no C++ in the program */
    void *garbage;           /* to be freed when it is out of the runtime */
    void *brings;            /* memory with which it enters: to be freed if it is stopped there */
    struct g *lockedg;       /* runs this one only */
    bool ends;               /* after a goroutine that ended locked to it */
    bool retires;            /* set with the note: it has slept for long enough */
    bool visits;             /* the thread is pirn_run's, and here for goroutine 1: lockthread.c */
    struct {                 /* preempt.c: at the last tick of its CPU clock */
        struct p *p;
        uint32_t tick;
        uint64_t switches;
    } seen;
    timer_t timer;
    bool spinning;                          /* counted in sched.nspinning */
    void (*commit)(struct m *, struct g *); /* left behind by the last switch: switch.h */
    struct g *commit_g;
    bool (*park_commit)(struct g *, void *); /* of park() */
    void *park_arg;
    struct g *nextg; /* to run first: left by a goroutine that needs g0, or taken with the P */
    struct g *left;  /* told to stop, it left this one inside a call into pirn */
    struct rand rand;
    uint64_t fp_modes; /* the thread's own, while a goroutine with FP modes runs */
    /* set by who wakes it, before the note */
    struct p *nextp;
    struct g *nextp_g; /* to run first */
    struct note park;
    at_u32 polls;       /* sleeps in the poller, not on its note: [P1] */
    uint16_t polled[4]; /* the pollers that were ready then, to be looked at; owner only */
    uint8_t npolled;
    /* for reports, while its goroutine stands still on it */
    AT(const void *) context; /* of the signal handler that it is in */
    AT(void *) stands;        /* the frame in which it waits for a P */
    at_u32 regs_seen;         /* preempt.c: its registers are below */
    uint64_t regs[ARCH_REGS];
    char *thread_pointer;
    void *stack_lo; /* of g0 */
    void *altstack; /* of handlers, if it is ours */
    /* under sched.lock */
    struct m *idle_next, *idle_prev;
    bool idle;         /* on the idle list */
    bool locked_waits; /* counted in nmlocked */
    int64_t idle_since;
    int64_t keeps;  /* on it: keeps the time until then, or PIRN_NEVER */
    bool ended;     /* the thread has gone */
    bool joined;    /* long ago: the M can be used again */
    bool born;      /* see m_start */
    bool listed;    /* in the list of all */
    bool abandoned; /* left behind by a runtime that has ended */
    struct m *all;  /* list of all Ms */
    int id;
    pthread_t thread;
};

/* --- the one runtime ---------------------------------------------------------------------------- */

enum life { LIFE_NONE, LIFE_STARTING, LIFE_RUNNING, LIFE_DRAINING, LIFE_STOPPING, LIFE_FORKED };

/* A lock of its thread's that a goroutine has, and that was not told yet; NULL: none. */
typedef const void *locks_held_by_fn(uint64_t id, const char **kind, const void **site);

struct sched {
    struct lock lock;
    /* under lock */
    struct globq globq;
    struct p *pidle;
    uint32_t ntaken; /* ++ when one is taken from there */
    struct m *midle;
    uint32_t nmidle;      /* threads asleep without a P */
    uint32_t nmlocked;    /* threads asleep because their goroutine waits */
    struct m *mdead;      /* threads that have ended before the runtime, to be joined */
    uint32_t want_spare;  /* threads that are wanted without a P */
    bool stopped;         /* the world */
    uint32_t procs_later; /* asked for while it stands; 0: nothing */
    uint32_t nm;          /* threads that exist or are being made */
    struct m *allm;
    struct p *want_m; /* Ps that wait for the factory */
    uint32_t nwant_m;
    uint32_t nborn; /* threads under way that will take one of them */
    int next_m_id;
    bool deadlock_pending;    /* all asleep, but other threads exist: sysmon looks again */
    int64_t no_threads_until; /* thread creation failed: don't ask before */
    /* atomic */
    at_u32 life;
    at_u32 npidle;          /* length of pidle */
    at_u32 nspinning;       /* 0 or 1 */
    at_u32 nm_gone;         /* threads that have ended; futex of the stop */
    at_u32 nprocs;          /* Ps that are not retired */
    at_u32 nallp;           /* Ps that were ever made: indices below are valid */
    at_u32 futile;          /* the last wake found nothing: idle.c */
    at_u32 nforeign;        /* foreign threads inside a short call */
    at_u32 nforeign_parked; /* foreign threads that wait in pirn */
    at_u32 nforeign_timed;  /* those that wake by themselves are counted apart */
    at_u32 follow_cpus;     /* the default: adapt when affinity or quota change */
    at_u64 coarse_now;      /* clock of the last look of sysmon */
    at_u64 keeper_until;    /* when a sleeping M looks at the timers; changed under lock */
    AT(struct m *)
    poll_m; /* the M that sleeps in the poller; set under lock, cleared by itself */
    at_u64 next_id;
    at_u64 retaken, starved;
    struct p_counts counts; /* of foreign threads; under lock */
    AT(struct p *) allp[PROCS_MAX];
    /* constant while it runs */
    pirn_config config;
    uint64_t era;                    /* which runtime of the process this is */
    int class;                       /* of default stacks */
    bool no_dense;                   /* they would be too small here */
    bool move;                       /* PIRN_DEBUG=move: never twice on the same M */
    locks_held_by_fn *locks_held_by; /* PIRN_DEBUG=locks; preload/locks.c */
    bool leaks;               /* PIRN_DEBUG=leaks: those that are left at the end are shown */
    bool cycles;              /* PIRN_DEBUG=deadlock: circles of mutexes are looked for */
    bool preempt;             /* goroutines are preempted */
    int64_t thread_idle_most; /* ns that a thread sleeps before it ends */
    int preempt_signal;
    bool io_says;       /* PIRN_DEBUG=io=1 */
    sigset_t sigmask;   /* of Ms: that of the thread which started the runtime */
    at_u32 main_exited; /* goroutine 1 called pirn_exit */
};
extern struct sched sched;

/* --- the current M, P and G --------------------------------------------------------------------- */

extern ptrdiff_t m_tls_offset; /* 0 until the first runtime has started */

/* NULL on a thread that is not an M. Never keep it over a switch. */
static inline struct m *getm(void)
{
    ptrdiff_t offset = m_tls_offset;
    if (unlikely(!offset)) {
        return NULL;
    }
    return arch_thread_word(offset);
}

_Noreturn void m_leave_for_good(struct m *mp);
void m_become_foreign(void);
static inline bool m_told_to_stop(const struct m *mp)
{
    return at_load(&mp->attention, RELAXED) & M_STOP;
}

/*
 * enter() is the first line of a public call that needs the P or takes a lock of pirn's, leave() its
 * last: in between the thread can't be preempted, and its P can't be taken. NULL on a foreign thread;
 * does not return once the runtime has been told to stop. entry.c has the design. They don't nest.
 */
void enter_slow(struct m *mp);
COLD _Noreturn void enter_twice(struct m *mp);
COLD _Noreturn void handler_may_not_wait(void);
void leave_slow(struct m *mp);

/* The next entry is with this memory, of the heap: it is freed if the goroutine ends there. */
static inline void bring(void *p)
{
    struct m *mp = getm();
    if (mp) {
        mp->brings = p;
    }
}

static inline struct m *enter(void)
{
    struct m *mp = getm();
    if (likely(mp)) {
        if (unlikely(at_load(&mp->where, RELAXED) != M_USER)) {
            enter_twice(mp);
        }
        at_store(&mp->where, M_RUNTIME, RELAXED);
        at_fence_light(); /* [E1] */
        if (unlikely(at_load(&mp->attention, RELAXED))) {
            enter_slow(mp);
        }
    }
    return mp;
}

/* By one that owes others something: it is not stopped, but if it has no P any more. */
struct m *enter_anyway(void);

/* By the M on which the goroutine is now. */
static inline void leave_from(struct m *mp)
{
    if (unlikely(at_load(&mp->attention, RELAXED))) {
        leave_slow(mp);
    } else {
        at_store(&mp->where, M_USER, RELEASE); /* [E2] */
    }
}

static inline void leave(void)
{
    struct m *mp = getm();
    if (likely(mp)) {
        leave_from(mp);
    }
}

/* For a call that needs neither the P nor a lock: it is only a place where a goroutine can end. */
void stop_here(struct m *mp);
static inline struct m *stop_point(void)
{
    struct m *mp = getm();
    if (mp && unlikely(at_load(&mp->attention, RELAXED))) {
        stop_here(mp);
    }
    return mp;
}

/* Memory of the program's heap: never while the thread is in the runtime. Whoever holds malloc's lock
 * may have been preempted, and wait for the very P of the thread that waits for him. heap_alloc leaves
 * the runtime for it, so no lock may be held, and the P may be another afterwards. */
void *heap_alloc(size_t size); /* zeroed, or NULL */
void heap_free(void *p);
void free_garbage(struct m *mp);

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
bool retake_look(struct p *pp, int64_t now); /* true: it is worth to look again soon */
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
void visit_wait(struct note *n);
void bound_leaves(struct m *mp, struct g *gp);

/* sigstack.c, fork.c */
void sigstack_start(void);
void sigstack_look(void);
COLD _Noreturn void forked_call(void);

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
/* what stands above, called from here: debug/dump.c, sync/waitgroup.c, sync/forget.c, ctx/, io/, panic/ */
void dump_all(int fd);
void dump_left(void);
void dump_forget(const struct g *gp);
void leaks_forget(const struct g *gp); /* debug/leaks.c */
void roots_start(void);                /* debug/roots.c */
void symbols_set_path(void);           /* debug/symbols.c */
int64_t cycles_look(int64_t now);      /* debug/cycles.c: when to look again */
void quit_start(void);                 /* debug/quit.c */
void quit_stop(void);
void quit_if_asked(void);
void dump_locks(const struct g *gp);
void timer_forget_start(const struct gstart *start); /* time/timer.c */
bool netpoll_awaited(void);    /* io/netpoll.c: somebody waits for a descriptor */
bool netpoll_wanted(void);     /* and Ms are to look for it */
bool netpoll_unattended(void); /* and nobody sleeps in the poller */
bool netpoll_look(struct m *mp);
void netpoll_look_at_all(void);
bool netpoll_sleep(struct m *mp, int64_t until);
void netpoll_break(void);
void netpoll_stop(void);
bool signals_pending(void); /* io/watch.c */
void signals_deliver_g0(void);
bool signals_watched(void);
void signals_start(void);
void signals_stop(void);
void io_start(void); /* io/file.c */
void io_make_threads(void);
bool io_stop(int64_t grace, bool left_behind);
int io_threads_idle(void);
struct waiter *wg_done_at_end(struct pirn_wg *wg);
struct waiter *group_done_at_end(struct pirn_group *g, int result);
void group_none(struct pirn_group *g); /* one that was let in does not come */
void defer_link(struct pirn_defer_ *d, const struct gstart *start, uint16_t flags,
                const char *site); /* panic/defer.c */
void panic_start(void);            /* panic/panic.c */
void panic_forget(struct g *gp);
struct cxx_globals *cxx_globals(void); /* panic/unwind.c */
void fault_start(void);                /* panic/fault.c */
void fault_stop(void);
void ctx_ref(struct pirn_ctx *ctx); /* ctx/ctx.c */
void ctx_unref(struct pirn_ctx *ctx);
void sync_forget(struct waiter *w, enum wait_reason reason, bool waiting);
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
