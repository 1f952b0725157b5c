/* SPDX-License-Identifier: MIT */
/*
 * Inside the explorer.
 *
 *   explore.c  the search: which thread goes on, which store a load sees, what has been tried
 *   memory.c   C11 memory: histories of stores with views
 *   thread.c   model threads as coroutines of one kernel thread; locks, futexes, pauses
 *   plain.c    plain accesses: data races, use after free, leaks
 *   report.c   failures, replay strings, traces, sites
 *   main.c     options, the loop over models
 *   os.c       os.h on top of all this: the explorer is a port of pirn
 *
 * An operation is announced (thread.op), then point() decides who goes on; a thread that is chosen
 * carries out what it announced and runs to its next operation. So the search sees the next
 * operation of every thread before it decides.
 */
#ifndef TESTS_MODEL_EXPLORER_H
#define TESTS_MODEL_EXPLORER_H

#include "explorer/model.h"

#define NT MODEL_THREADS
#define NL 128          /* locations in one execution */
#define NMSG 255        /* stores to one location */
#define STEPS_MOST 4000 /* operations in one execution */
#define SPINS_BLIND 2   /* pauses after which a load sees the newest store only */
#define LOOK_AGAIN 8    /* for a thread that pauses, when nobody else can go on */
#define STACK_SIZE (64 * 1024)
#define NOTE_CLEAR NT    /* loc.holder of a note that was not posted yet: no thread */
#define EXIT_OTHER_BUG 3 /* not the one that the model is to find */

/* What a thread has seen: of each location the newest store, of each thread its time. The times
 * are happens-before; the locations may be ahead of it, by SC fences. */
struct view {
    uint8_t loc[NL];
    uint16_t clk[NT];
};

struct msg { /* a store */
    uint64_t value;
    struct view view; /* what an acquire load of it sees */
    int by, event;    /* the thread, and the number of its event; 0: none */
};

struct loc { /* an atomic variable, a lock or a futex, by its address */
    const volatile void *addr;
    unsigned size;
    int n, base; /* stores are base .. n-1 */
    uint16_t msg[NMSG + 1];
    int holder;       /* of a lock, or -1; or NOTE_CLEAR */
    struct view view; /* of a lock: what its last holder saw; of a futex: what its users saw */
    uint16_t last_load[NT], last_sc_read[NT], last_write[NT]; /* event of each thread */
    uint16_t events[NT];    /* of a lock: those before its release */
    uint8_t users, writers; /* threads */
    bool shared, plainly_written;
    struct cell *cell; /* plain.c */
};

enum op_kind { OP_START, OP_ATOMIC, OP_FENCE, OP_LOCK, OP_WAIT, OP_WAKE, OP_ASLEEP, OP_PAUSE };

struct op {
    enum op_kind kind;
    const struct model_site *site; /* of OP_ATOMIC and OP_FENCE */
    void *pc;                      /* of the others: who called */
    int loc;                       /* or -1 */
    bool writes, sc;
};

struct thread {
    void *sp;
    struct op op;
    bool done, woken, resume;
    bool has_limit;         /* OP_ASLEEP: a deadline */
    int spurious, timeouts; /* so many so far */
    int spins;              /* pauses since its last write */
    int pauses;             /* pauses since the last write of another */
    int looked_again;
    bool stale; /* a load since the last pause was not of the newest store */
    uint32_t writes_at_pause, own_writes; /* pause: of the others */
    int64_t clock;
    uint16_t events[NT];       /* of each thread the events that must come before its next one */
    struct view cur, acq, rel; /* seen; seen by an acquire fence; published by relaxed stores */
    uint64_t tls[4];
    char *stack;
};

enum strategy { DFS, RANDOM, PCT, REPLAY };
enum end { END_RUNNING, END_DONE, END_PRUNED, END_RESTART };

struct explorer {
    struct model *model;
    enum strategy strategy;
    int bound; /* of preemptions and of loads that see an old store, or MODEL_UNBOUNDED */
    bool trace;
    /* this execution */
    struct thread threads[NT];
    int nthreads, cur; /* -1: setup or finish */
    enum end end;
    struct loc locs[NL];
    int nloc;
    struct msg pool[STEPS_MOST + NL];
    int npool;
    uint8_t sc[NL]; /* of each location the store that SC operations and fences must see */
    int steps, preempts, stale_loads, last;
    uint32_t writes, stamp;
    uint8_t sleep;     /* threads whose next operation has been explored from here already */
    uint8_t fresh[NT]; /* ... but for loads of stores from this one on */
    /* the search */
    uint64_t executions, pruned, operations;
    int nshared; /* locations that are known to be shared */
    uint64_t rand;
};
extern struct explorer ex;

/* explore.c */
void point(void);
void no_point(void);
int choose(int n);                  /* of n possibilities */
int choose_value(int n, int tried); /* the same, logged for the replay */
void explore(void);
bool all_wait(void);
void events_join(uint16_t *a, const uint16_t *b);
void event_after(const uint16_t *before);
void event_saw(const struct msg *m);

/* memory.c */
int loc_of(const volatile void *addr, unsigned size);
void view_join(struct view *a, const struct view *b);
bool load_has_new(int q);

/* thread.c */
void threads_start(void);
void threads_run(int first);
bool enabled(const struct thread *t);
bool silent(const struct thread *t);
_Noreturn void leave_execution(enum end end);
void switch_thread(int to);
bool is_thread_local(const volatile void *addr);

/* plain.c */
void plain_begin(void);
void plain_end(void);
void plain_check_atomic(struct loc *l, bool writes);
void plain_new_loc(struct loc *l);

/* report.c */
void log_begin(void);
void log_thread(int t);
void log_value(int v);
int replay_thread(void); /* -1 at the end of the string */
int replay_value(void);
void replay_parse(const char *s);
void trace_op(const struct op *op, const char *what, uint64_t value, int behind);
void trace_show(void);
const char *order_name(int order);
const char *place_of(void *pc);
extern char **report_argv;
extern bool report_no_trace;

/* main.c */
double seconds_now(void);
void outcomes_forget(void);
bool progress(double fraction); /* false: stop here */

#endif
