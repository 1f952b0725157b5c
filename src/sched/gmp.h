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
#ifndef PIRN_SCHED_GMP_H
#define PIRN_SCHED_GMP_H

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
/* p.slice_over, by sysmon: this slice has lasted too long; or, through however many, the ring's turn has not come. */
enum slice_over { SLICE_GOES_ON, SLICE_OVER, SLICE_RING_STARVES };
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
    at_u32 slice_over; /* enum slice_over */
    at_u32 retire;     /* enum p_retire */
    AT(struct m *) m;  /* who has it; changed with the M's p */
    at_u32 timers_due; /* sysmon: look at the timers of all Ps at the next chance */
    struct p_counts counts;
    /* sysmon only */
    uint32_t seen_tick, seen_head;
    uint64_t seen_switches;
    int64_t seen_since, seen_head_since;
    int64_t signalled_at; /* retake.c: its thread, or when a slice began since */
    struct blocked_look { /* retake.c: its thread was seen to block */
        struct m *m;
        uint32_t tick, nblocking;
        int64_t since;
    } seen_blocked;
    struct cpu_look { /* retake.c: how long its thread had run */
        struct m *m;
        int64_t at, used;
    } seen_cpu;
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
    M_GIVEN,     /* in the function of pirn_blocking, which gave it away */
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
    struct {          /* with a P that was passed on to it: when, and its CPU clock; retake.c */
        AT(int64_t) at, used;
    } went_on;
    struct note park;
    at_u32 polls; /* sleeps in the poller, not on its note: [P1] */
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
    struct g *nextp_g;  /* to run first */
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

#endif
