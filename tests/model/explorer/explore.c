/* SPDX-License-Identifier: MIT */
/*
 * The search: depth first over all choices, by running the model again and again.
 *
 * A choice is a node of the path: which thread goes on, or which value it sees. An execution
 * follows the path to its end and then takes the first choice at each new node; afterwards the last
 * node that has something left is moved on.
 *
 * Reduction. Operations on a location that only one thread uses, or that nobody writes, commute
 * with everything and are no points at all (memory.c learns which). Without a bound on preemptions
 * there is more:
 *
 * - Dynamic partial order reduction: at a node only one thread is tried at first. When a later
 *   event does not commute with an earlier one of another thread, and nothing in between orders the
 *   two, the node of the earlier one must try the other order too. A load is not tried before a
 *   store, since it may see what was there before; so it is ordered only after the store it sees.
 * - Sleep sets: when thread q has been tried at a node, and another is tried then, q sleeps in that
 *   subtree until somebody does what does not commute with q's operation, since up to there q first
 *   or q later is the same. A load that sleeps and is woken by a store has seen all older stores
 *   already: it is tried with new ones only (fresh).
 * - Of two stores of one value a load sees the older one only, if that tells less (memory.c).
 *
 * With a bound these would lose executions: the one that stands for the others may need more
 * preemptions. So then all are run.
 */
#include <stdlib.h>
#include <string.h>

#include "explorer/explorer.h"

#define PATH_MOST 8192
#define LOOK_AROUND 3000

struct node {
    bool value;                /* else a thread */
    uint8_t n, cur;            /* of values; of threads n is the set that can go on */
    uint8_t todo, done, sleep; /* threads */
    uint8_t fresh[NT];
};
static struct node path[PATH_MOST];
static int depth, length;

/* PCT: threads by priority, lowered at a few random steps. */
static int pct_priority[NT], pct_steps[8];
int pct_depth = 3, pct_length = 64;

static uint32_t rand_below(uint32_t n)
{
    ex.rand ^= ex.rand << 13;
    ex.rand ^= ex.rand >> 7;
    ex.rand ^= ex.rand << 17;
    return (uint32_t)((ex.rand >> 32) * n >> 32);
}

static struct node *node_new(void)
{
    if (length == PATH_MOST) {
        model_fail("more than %d choices in one execution", PATH_MOST);
    }
    struct node *n = &path[length++];
    depth = length;
    return n;
}

/* --- values ------------------------------------------------------------------------------------ */

/* 0 is the newest store, or success: the ordinary case comes first. */
int choose(int n)
{
    int pick = 0;
    if (n > 1 && ex.strategy != DFS) {
        pick = (int)rand_below((uint32_t)n * 2); /* one time in two the ordinary case */
        pick = pick < n ? pick : 0;
    } else if (n > 1) {
        if (depth < length) {
            if (!path[depth].value || path[depth].n != n) {
                model_fail("not deterministic: another choice than before");
            }
            pick = path[depth++].cur;
        } else {
            struct node *node = node_new();
            node->value = true;
            node->n = (uint8_t)n;
            node->cur = 0;
        }
    }
    return pick;
}

/* Of n possibilities only the first few are tried. The replay string must not depend on how many. */
int choose_value(int n, int tried)
{
    if (n > 1 && ex.strategy == REPLAY) {
        int pick = replay_value();
        if (pick >= n) {
            model_fail("the replay string does not fit this model");
        }
        return pick;
    }
    int pick = choose(tried);
    if (n > 1) {
        log_value(pick);
    }
    return pick;
}

/* --- threads ----------------------------------------------------------------------------------- */

static int lowest(unsigned set)
{
    return __builtin_ctz(set);
}

/* A load that may see what was there before a store: so of its order with stores nothing matters but
 * which of them it sees. */
static bool refinable(const struct op *a)
{
    return a->kind == OP_ATOMIC && a->site->kind == MODEL_LOAD && !a->sc && !a->writes;
}

/* Does the order of the two matter? */
static bool dependent(const struct op *a, const struct op *b)
{
    if (a->loc < 0 || b->loc < 0) { /* a fence */
        return a->sc && b->sc;
    }
    if (a->loc != b->loc || (refinable(a) && b->kind != OP_ATOMIC)
        || (refinable(b) && a->kind != OP_ATOMIC)) {
        return false;
    }
    return a->writes || b->writes || (a->sc && b->sc);
}

static void wake_sleepers(int chosen)
{
    const struct op *op = &ex.threads[chosen].op;
    for (int q = 0; q < ex.nthreads; q++) {
        const struct op *other = &ex.threads[q].op;
        if (!(ex.sleep >> q & 1) || !dependent(op, other)) {
            continue;
        }
        ex.sleep &= (uint8_t) ~(1u << q);
        if (refinable(other) && op->kind == OP_ATOMIC) {
            ex.fresh[q] = (uint8_t)ex.locs[other->loc].n;
        }
    }
}

/* --- events, and which orders of them must be tried -------------------------------------------------- */

struct event {
    int node;            /* where its thread was chosen, or -1: there was no choice */
    int index;           /* among all */
    uint16_t events[NT]; /* what comes before it, and itself */
};
static struct event events[NT][STEPS_MOST + 2]; /* of each thread, from 1 */
static int nevents;
static uint16_t last_fence[NT], last_sc[NT];

void events_join(uint16_t *a, const uint16_t *b)
{
    for (int i = 0; i < NT; i++) {
        a[i] = a[i] > b[i] ? a[i] : b[i];
    }
}

static uint16_t later(uint16_t a, uint16_t b)
{
    return a > b ? a : b;
}

/* Number of q's last event that does not commute with op. What is said to be ordered here must also
 * be dependent(), or a thread would sleep while the order in which it would be woken is hidden. */
static uint16_t last_dependent(const struct op *op, int q)
{
    uint16_t last = op->sc ? last_fence[q] : 0;
    if (op->loc < 0) {
        return op->sc ? later(last, last_sc[q]) : 0;
    }
    if (refinable(op)) {
        return 0; /* event_saw() */
    }
    const struct loc *l = &ex.locs[op->loc];
    last = later(last, l->last_write[q]);
    return op->writes || op->sc ? later(last, l->last_sc_read[q]) : last;
}

/* Is number k of r the first event of r since e, and can nothing since e come before it? */
static bool is_first(const struct event *e, int r, uint16_t k)
{
    const uint16_t *before = events[r][k].events;
    for (int q = 0; q < ex.nthreads; q++) {
        uint16_t last = q == r ? (uint16_t)(k - 1) : before[q];
        if (last && events[q][last].index > e->index) {
            return false;
        }
    }
    return true;
}

/* p's next operation must be tried before event e of another thread too, and with it what has
 * happened since e and comes before p's operation, of each thread so many events. None of that
 * depends on e. So at e's node somebody must be tried with whom it can begin; another one who takes
 * part in it won't do, since to try him first is to try something else. */
static void try_before(const struct event *e, int p, const uint16_t *before)
{
    if (e->node < 0) {
        return;
    }
    struct node *node = &path[e->node];
    unsigned can = node->n, known = (unsigned)(node->done | node->todo | 1u << node->cur), by = 0;
    bool alone = true;
    for (int r = 0; r < ex.nthreads; r++) {
        for (uint16_t k = before[r]; k > 0 && events[r][k].index > e->index; k--) {
            alone = false;
            by |= (unsigned)is_first(e, r, k) << r;
        }
    }
    by |= (unsigned)alone << p;
    if (by & (known | node->sleep)) {
        return;
    }
    by &= can;
    node->todo |= (uint8_t)(by ? (by >> p & 1 ? 1u << p : 1u << lowest(by)) : can & ~known);
}

/* Event k of q and p's next operation: unless something orders the two, either may come first.
 * deps: of each thread the last event with which p's operation does not commute. */
static void race_with(int q, uint16_t k, int p, const uint16_t *deps)
{
    uint16_t before[NT];
    memcpy(before, ex.threads[p].events, sizeof before);
    for (int r = 0; r < ex.nthreads; r++) {
        if (deps[r] && (r != q || deps[r] != k)) {
            events_join(before, events[r][deps[r]].events);
        }
    }
    if (before[q] < k) {
        try_before(&events[q][k], p, before);
    }
}

/* p's operation is about to be carried out. */
static void note_event(int p, int node)
{
    struct thread *t = &ex.threads[p];
    const struct op *op = &t->op;
    uint16_t deps[NT];
    for (int q = 0; q < ex.nthreads; q++) {
        deps[q] = q == p ? 0 : last_dependent(op, q);
    }
    /* What leads to the node that was moved on has happened before, and its races were seen then. */
    for (int q = 0; q < ex.nthreads && depth == length; q++) {
        if (deps[q] > t->events[q]) {
            race_with(q, deps[q], p, deps);
        }
        if (q != p && op->kind == OP_ATOMIC && op->writes) {
            race_with(q, ex.locs[op->loc].last_load[q], p, deps); /* it might see this store */
        }
    }
    for (int q = 0; q < ex.nthreads; q++) {
        if (deps[q]) {
            events_join(t->events, events[q][deps[q]].events);
        }
    }
    uint16_t number = ++t->events[p];
    struct event *e = &events[p][number];
    e->node = node;
    e->index = nevents++;
    memcpy(e->events, t->events, sizeof e->events);
    if (op->loc >= 0) {
        struct loc *l = &ex.locs[op->loc];
        (op->writes ? l->last_write : op->sc ? l->last_sc_read : l->last_load)[p] = number;
        if (op->sc) {
            last_sc[p] = number;
        }
    } else if (op->sc) {
        last_fence[p] = number;
    }
}

/* The event that was just carried out comes after these. */
void event_after(const uint16_t *before)
{
    struct thread *t = &ex.threads[ex.cur];
    events_join(t->events, before);
    memcpy(events[ex.cur][t->events[ex.cur]].events, t->events, sizeof t->events);
}

/* It has seen this store. */
void event_saw(const struct msg *m)
{
    if (m->event && m->by != ex.cur) {
        event_after(events[m->by][m->event].events);
    }
}

/* --- who goes on ---------------------------------------------------------------------------------------- */

static bool local(const struct op *op)
{
    switch (op->kind) {
    case OP_LOCK: return !ex.locs[op->loc].shared && ex.locs[op->loc].holder < 0;
    case OP_ATOMIC:
    case OP_WAKE: return !ex.locs[op->loc].shared;
    case OP_FENCE: return !op->sc;
    default: return false;
    }
}

static unsigned enabled_set(void)
{
    unsigned set = 0;
    for (int i = 0; i < ex.nthreads; i++) {
        set |= (unsigned)enabled(&ex.threads[i]) << i;
    }
    return set;
}

/* Nobody can go on by itself: only a deadline can end this. */
bool all_wait(void)
{
    return enabled_set() == 0;
}

static bool sleeps(const struct thread *t)
{
    return t->op.kind == OP_ASLEEP
           || (t->op.kind == OP_LOCK && ex.locs[t->op.loc].holder == NOTE_CLEAR);
}

static bool is_end(void)
{
    for (int i = 0; i < ex.nthreads; i++) {
        struct thread *t = &ex.threads[i];
        if (!t->done && !(sleeps(t) && (ex.model->sleepers >> i & 1))) {
            return false;
        }
    }
    return true;
}

/* p goes on since nobody else can: after all that has happened. */
static void after_everything(int p)
{
    for (int q = 0; q < ex.nthreads; q++) {
        ex.threads[p].events[q] = ex.threads[q].events[q];
    }
}

/* Nobody can go on by itself: time passes. Who pauses looks again a few times; then deadlines come. */
static unsigned when_time_passes(void)
{
    unsigned limited = 0, pausing = 0;
    for (int i = 0; i < ex.nthreads; i++) {
        struct thread *t = &ex.threads[i];
        if (t->done) {
            continue;
        }
        if (t->op.kind == OP_PAUSE) {
            if (t->looked_again++ < LOOK_AGAIN) {
                t->resume = true;
                after_everything(i);
                return 1u << i;
            }
            pausing |= 1u << i;
        }
        limited |= (unsigned)(t->op.kind == OP_ASLEEP && t->has_limit) << i;
    }
    if (limited) {
        return limited;
    }
    if (pausing) {
        model_fail("T%d spins for ever: nobody can change what it waits for", lowest(pausing));
    }
    if (!is_end()) {
        model_fail("deadlock: nobody can go on");
    }
    leave_execution(END_DONE);
}

/* Whoever may time out or wake for no reason: a wake takes that possibility away, and with it the
 * event that would have shown the race. So it is tried everywhere. */
static unsigned may_stop_sleeping(void)
{
    unsigned set = 0;
    for (int i = 0; i < ex.nthreads; i++) {
        set |= (unsigned)(ex.threads[i].op.kind == OP_ASLEEP) << i;
    }
    return set;
}

/* A load that was woken, but not by anything that it could see, sleeps on. */
static void back_to_sleep(void)
{
    for (int q = 0; q < ex.nthreads; q++) {
        if (ex.fresh[q] && !load_has_new(q)) {
            ex.sleep |= (uint8_t)(1u << q);
        }
    }
}

/* time: the threads of can are asleep until a deadline. Then each is tried with the others awake:
 * whoever goes on first takes that possibility from the others, so the order matters. */
static int pick_dfs(unsigned can, unsigned first, bool time)
{
    struct node *node;
    if (depth < length) {
        node = &path[depth++];
        if (node->value || node->n != (uint8_t)can) {
            model_fail("not deterministic: other threads can go on than before");
        }
        ex.sleep = time ? 0 : node->sleep | node->done;
        memcpy(ex.fresh, node->fresh, sizeof ex.fresh);
        return node->cur;
    }
    node = node_new();
    node->value = false;
    node->n = (uint8_t)can;
    node->cur = (uint8_t)(can & first ? lowest(first) : lowest(can));
    node->todo = (uint8_t)(can & ~(1u << node->cur));
    if (ex.bound == MODEL_UNBOUNDED) {
        node->todo &= (uint8_t)may_stop_sleeping();
    }
    node->done = 0;
    node->sleep = ex.sleep;
    memcpy(node->fresh, ex.fresh, sizeof ex.fresh);
    return node->cur;
}

static int pick_pct(unsigned can)
{
    int best = -1;
    for (int i = 0; i < pct_depth; i++) {
        if (pct_steps[i] == ex.steps && ex.last >= 0) {
            pct_priority[ex.last] = -1 - i;
        }
    }
    for (int i = 0; i < ex.nthreads; i++) {
        if ((can >> i & 1) && (best < 0 || pct_priority[i] > pct_priority[best])) {
            best = i;
        }
    }
    return best;
}

/* In the order of the search: who goes on? */
static int schedule(void)
{
    if (ex.strategy == REPLAY && replay_thread() >= 0) {
        return replay_thread();
    }
    for (int i = 0; i < ex.nthreads; i++) {
        if (silent(&ex.threads[i])) {
            return i;
        }
    }
    unsigned can = enabled_set(), last = ex.last >= 0 ? 1u << ex.last : 0;
    if (can && ex.strategy == REPLAY) {
        if (ex.threads[lowest(can)].pauses < SPINS_BLIND) {
            model_fail("the replay string ends here");
        }
        return lowest(can); /* until it is clear that it spins for ever */
    }
    bool time = !can;
    if (time) {
        can = when_time_passes();
        if (silent(&ex.threads[lowest(can)])) {
            return lowest(can);
        }
    }
    bool preempts = can & last;
    if (ex.bound != MODEL_UNBOUNDED && preempts && ex.preempts >= ex.bound) {
        can = last;
    }
    int pick;
    if (ex.strategy == RANDOM) {
        unsigned k = rand_below((uint32_t)__builtin_popcount(can));
        while (k--) {
            can &= can - 1;
        }
        pick = lowest(can);
    } else if (ex.strategy == PCT) {
        pick = pick_pct(can);
    } else {
        back_to_sleep();
        can &= ~(unsigned)ex.sleep;
        if (!can) {
            leave_execution(END_PRUNED);
        }
        bool choice = can & (can - 1);
        pick = choice ? pick_dfs(can, last, time) : lowest(can);
        if (ex.bound == MODEL_UNBOUNDED) {
            wake_sleepers(pick);
            if (time) {
                after_everything(pick);
            }
            note_event(pick, choice ? depth - 1 : -1);
        } else {
            ex.sleep = 0;
        }
    }
    ex.preempts += preempts && pick != ex.last;
    ex.last = pick;
    return pick;
}

/* No point, but in the replay string it looks like an operation, so that it is clear whose it is. */
void no_point(void)
{
    if (ex.strategy == REPLAY) {
        switch_thread(schedule());
    }
    log_thread(ex.cur);
}

int model_pick(int n)
{
    if (ex.cur >= 0) {
        no_point();
    }
    return choose_value(n, n);
}

/* The current thread has announced its operation, or has ended. Returns when it may go on. */
void point(void)
{
    struct thread *t = &ex.threads[ex.cur];
    if (ex.end != END_RUNNING) {
        leave_execution(ex.end);
    }
    if (t->done || ex.strategy == REPLAY || !local(&t->op)) {
        switch_thread(schedule());
    }
    if (++ex.steps > STEPS_MOST) {
        model_fail("more than %d operations: a loop without end?", STEPS_MOST);
    }
    if (t->op.kind != OP_ASLEEP && t->op.kind != OP_PAUSE && t->op.kind != OP_START) {
        log_thread(ex.cur);
    }
}

/* --- executions -------------------------------------------------------------------------------- */

static bool backtrack(void)
{
    while (length > 0) {
        struct node *n = &path[length - 1];
        if (n->value) {
            if (++n->cur < n->n) {
                return true;
            }
        } else {
            if (ex.bound == MODEL_UNBOUNDED) {
                n->done |= (uint8_t)(1u << n->cur);
            }
            if (n->todo) {
                n->cur = (uint8_t)lowest(n->todo);
                n->todo &= (uint8_t)(n->todo - 1);
                return true;
            }
        }
        length--;
    }
    return false;
}

/* How much of the tree lies behind us, if all subtrees of a node were the same. */
static double fraction_done(void)
{
    double done = 0, share = 1;
    for (int i = 0; i < length && share > 1e-9; i++) {
        struct node *n = &path[i];
        int all = n->value ? n->n : __builtin_popcount(n->n);
        int left = n->value ? n->n - n->cur : __builtin_popcount(n->todo) + 1;
        done += share * (all - left) / all;
        share /= all;
    }
    return done;
}

static void pct_begin(void)
{
    for (int i = 0; i < NT; i++) {
        pct_priority[i] = (int)rand_below(1000) + 1;
    }
    for (int i = 0; i < pct_depth; i++) {
        pct_steps[i] = (int)rand_below((uint32_t)pct_length);
    }
}

static void execution(void)
{
    depth = 0;
    ex.stamp++;
    ex.nloc = ex.npool = ex.steps = ex.preempts = ex.stale_loads = 0;
    ex.writes = 0;
    ex.last = ex.cur = -1;
    ex.end = END_RUNNING;
    ex.sleep = 0;
    memset(ex.fresh, 0, sizeof ex.fresh);
    memset(ex.sc, 0, sizeof ex.sc);
    memset(last_fence, 0, sizeof last_fence);
    memset(last_sc, 0, sizeof last_sc);
    nevents = 0;
    log_begin();
    plain_begin();
    if (ex.strategy == PCT) {
        pct_begin();
    }
    if (ex.model->setup) {
        ex.model->setup();
    }
    threads_start();
    threads_run(ex.strategy == REPLAY && replay_thread() >= 0 ? replay_thread() : 0);
    ex.cur = -1;
    ex.operations += (uint64_t)ex.steps;
    if (ex.end == END_DONE) {
        ex.executions++;
        if (ex.model->finish) {
            ex.model->finish();
        }
        plain_end();
    } else if (ex.end == END_PRUNED) {
        ex.pruned++;
    }
}

/* Random executions, until they show no more locations that are shared: each that is found later
 * lets the search begin anew. */
static void look_around(void)
{
    for (int i = 0, known = ex.nshared; i < LOOK_AROUND; i++) {
        ex.strategy = i % 2 ? RANDOM : PCT;
        execution();
        if (ex.nshared != known) {
            known = ex.nshared;
            i = 0;
        }
    }
    ex.strategy = DFS;
}

static void search_anew(void)
{
    outcomes_forget();
    ex.executions = ex.pruned = ex.operations = 0;
    length = 0;
}

/* Until everything has been tried, or progress() ends it. */
void explore(void)
{
    if (ex.strategy == DFS && !ex.model->finds) {
        look_around();
    }
    search_anew();
    for (uint64_t i = 0;; i++) {
        execution();
        if (ex.strategy == REPLAY) {
            return;
        }
        if (ex.strategy == DFS) {
            if (ex.end == END_RESTART) {
                search_anew();
            } else if (!backtrack()) {
                return;
            }
        }
        if (i % 4096 == 0) {
            if (!progress(ex.strategy == DFS ? fraction_done() : -1)) {
                return;
            }
        }
    }
}
