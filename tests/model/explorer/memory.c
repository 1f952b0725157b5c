/* SPDX-License-Identifier: MIT */
/*
 * C11 memory by views.
 *
 * Each location keeps its stores in the order in which they were carried out, and each thread
 * remembers of each location the newest store it knows of. A load may see that one or any newer:
 * the search tries them all. A store carries a view, what its thread knew when it (or a release
 * fence before it) published; an acquire load takes that over, a relaxed one keeps it aside for an
 * acquire fence. A read-modify-write sees the newest store and passes on its view: that is the
 * release sequence.
 *
 * SC: the order of execution is the total order S. sc[l] is the store of l that later SC loads must
 * see, which SC stores and SC loads of l move on. An SC fence takes over all of sc, and moves it to
 * what its thread knows. SC accesses are no fences: they order nothing but themselves.
 *
 * What this can't show: stores to one location always take effect in the order of execution (2+2W),
 * and no load sees a store that comes later (load buffering).
 */
#include <string.h>

#include "explorer/explorer.h"

void view_join(struct view *a, const struct view *b)
{
    for (int i = 0; i < NL; i++) {
        a->loc[i] = a->loc[i] > b->loc[i] ? a->loc[i] : b->loc[i];
    }
    for (int i = 0; i < NT; i++) {
        a->clk[i] = a->clk[i] > b->clk[i] ? a->clk[i] : b->clk[i];
    }
}

static void join_locs(uint8_t *a, const uint8_t *b)
{
    for (int i = 0; i < NL; i++) {
        a[i] = a[i] > b[i] ? a[i] : b[i];
    }
}

static bool acquires(int order)
{
    return order == ACQUIRE || order == ACQ_REL || order == SEQ_CST;
}

static bool releases(int order)
{
    return order == RELEASE || order == ACQ_REL || order == SEQ_CST;
}

/* --- locations --------------------------------------------------------------------------------- */

/* Two tables by address: of this execution, whose entries carry its stamp; and of all locations
 * that were ever seen to be shared, which stays. */
#define TABLE 1024u
static struct {
    const volatile void *addr;
    uint32_t stamp;
    int loc;
} table[TABLE];
static const volatile void *shared[TABLE];

static unsigned hash(const volatile void *addr)
{
    return (unsigned)(((uintptr_t)addr * 0x9e3779b97f4a7c15u) >> 54) % TABLE;
}

static bool is_shared(const volatile void *addr, bool add)
{
    unsigned h = hash(addr);
    for (; shared[h]; h = (h + 1) % TABLE) {
        if (shared[h] == addr) {
            return true;
        }
    }
    if (add) {
        shared[h] = addr;
        ex.nshared++;
    }
    return false;
}

static uint64_t memory_get(const volatile void *addr, unsigned size)
{
    uint64_t v = 0;
    memcpy(&v, (const void *)(uintptr_t)addr, size);
    return v;
}

static void memory_put(const volatile void *addr, unsigned size, uint64_t v)
{
    memcpy((void *)(uintptr_t)addr, &v, size);
}

static void push(struct loc *l, uint64_t value, const struct view *view)
{
    if (l->n == NMSG || ex.npool == STEPS_MOST + NL) {
        model_fail("more stores than the explorer can keep: the model is too long");
    }
    struct msg *m = &ex.pool[ex.npool];
    l->msg[l->n++] = (uint16_t)ex.npool++;
    m->value = value;
    m->by = ex.cur;
    m->event = 0;
    m->view = *view;
}

static struct loc *loc_new(const volatile void *addr, unsigned size)
{
    static const struct view nothing;
    if (ex.nloc == NL) {
        model_fail("more than %d atomic variables: the model is too big", NL);
    }
    struct loc *l = &ex.locs[ex.nloc++];
    l->addr = addr;
    l->size = size;
    l->n = l->base = 0;
    l->holder = -1;
    l->view = nothing;
    memset(l->last_load, 0, sizeof l->last_load);
    memset(l->last_sc_read, 0, sizeof l->last_sc_read);
    memset(l->last_write, 0, sizeof l->last_write);
    memset(l->events, 0, sizeof l->events);
    l->users = l->writers = 0;
    l->shared = is_shared(addr, false);
    l->plainly_written = false;
    push(l, memory_get(addr, size), &nothing);
    plain_new_loc(l);
    return l;
}

/* The slot of addr in the table, or the one where it belongs. */
static unsigned find(const volatile void *addr)
{
    unsigned h = hash(addr);
    while (table[h].stamp == ex.stamp && table[h].addr != addr) {
        h = (h + 1) % TABLE;
    }
    return h;
}

int loc_of(const volatile void *addr, unsigned size)
{
    unsigned h = find(addr);
    if (table[h].stamp != ex.stamp) {
        table[h].addr = addr;
        table[h].stamp = ex.stamp;
        table[h].loc = (int)(loc_new(addr, size) - ex.locs);
    }
    struct loc *l = &ex.locs[table[h].loc];
    if (size > l->size) { /* a futex on one half of the variable came first */
        if (l->n > 1) {
            model_fail("T%d uses an atomic variable in another size than before", ex.cur);
        }
        l->size = size;
        ex.pool[l->msg[0]].value = memory_get(addr, size);
        plain_new_loc(l);
    }
    return table[h].loc;
}

/* Who uses it? That it is shared must be known before the search begins, so then it starts anew. */
static void note_use(struct loc *l, bool writes)
{
    l->users |= (uint8_t)(1u << ex.cur);
    if (writes) {
        l->writers |= (uint8_t)(1u << ex.cur);
    }
    if (!l->shared && l->writers && (l->users & (l->users - 1))) {
        l->shared = true;
        is_shared(l->addr, true);
        if (ex.strategy == DFS) {
            leave_execution(END_RESTART);
        }
    }
}

/* --- operations -------------------------------------------------------------------------------- */

static void take_view(struct thread *t, const struct msg *m, int order)
{
    view_join(acquires(order) ? &t->cur : &t->acq, &m->view);
}

static int oldest_visible(const struct thread *t, const struct loc *l, int i, int order)
{
    int lo = t->cur.loc[i] > l->base ? t->cur.loc[i] : l->base;
    return order == SEQ_CST && ex.sc[i] > lo ? ex.sc[i] : lo;
}

static uint64_t see(struct thread *t, struct loc *l, int i, int idx, int order)
{
    const struct msg *m = &ex.pool[l->msg[idx]];
    if (t->cur.loc[i] < idx) {
        t->cur.loc[i] = (uint8_t)idx;
    }
    if (order == SEQ_CST && ex.sc[i] < idx) {
        ex.sc[i] = (uint8_t)idx;
    }
    take_view(t, m, order);
    if (idx < l->n - 1) {
        t->stale = true;
        ex.stale_loads++;
    }
    return m->value;
}

static void put(struct thread *t, struct loc *l, int i, uint64_t value, int order,
                const struct view *base)
{
    struct view w = releases(order) ? t->cur : t->rel;
    int idx = l->n;
    if (l->size < 8) {
        value &= ((uint64_t)1 << l->size * 8) - 1;
    }
    t->cur.loc[i] = (uint8_t)idx;
    w.loc[i] = (uint8_t)idx;
    if (base) {
        view_join(&w, base);
    }
    push(l, value, &w);
    ex.pool[l->msg[idx]].event = t->events[ex.cur];
    memory_put(l->addr, l->size, value);
    if (order == SEQ_CST) {
        ex.sc[i] = (uint8_t)idx;
    }
    ex.writes++;
    t->own_writes++;
    t->spins = 0;
}

static bool view_within(const struct view *a, const struct view *b)
{
    bool within = true;
    for (int i = 0; i < NL; i++) {
        within &= a->loc[i] <= b->loc[i];
    }
    for (int i = 0; i < NT; i++) {
        within &= a->clk[i] <= b->clk[i];
    }
    return within;
}

/* An older store of the same value that tells less: whatever can happen after store j has been seen
 * can happen after that one too. */
static bool subsumed(const struct loc *l, int lo, int j)
{
    const struct msg *m = &ex.pool[l->msg[j]];
    for (int i = lo; i < j; i++) {
        const struct msg *older = &ex.pool[l->msg[i]];
        if (older->value == m->value && view_within(&older->view, &m->view)) {
            return true;
        }
    }
    return false;
}

/* The bound on preemptions bounds also how many loads see anything but the newest store. */
static bool out_of_stale_loads(void)
{
    return ex.strategy == DFS && ex.bound != MODEL_UNBOUNDED && ex.stale_loads >= ex.bound;
}

/* Which of the stores from lo on does a load see? */
static int choose_store(const struct loc *l, int lo, bool sc)
{
    int newest = l->n - 1, can[NMSG], n = 0, from = lo;
    if (newest == lo) {
        return newest;
    }
    if (ex.strategy == REPLAY) {
        return newest - replay_value();
    }
    bool reduce = ex.strategy == DFS && ex.bound == MODEL_UNBOUNDED;
    if (out_of_stale_loads()) {
        from = newest;
    } else if (ex.fresh[ex.cur] > lo) {
        from = ex.fresh[ex.cur];
    }
    for (int k = newest; k >= from; k--) {
        if (!reduce || sc || !subsumed(l, lo, k)) {
            can[n++] = k;
        }
    }
    int idx = can[choose(n)];
    log_value(newest - idx);
    return idx;
}

/* Is there something for q's load to see that it was not tried with before it slept? */
bool load_has_new(int q)
{
    const struct thread *t = &ex.threads[q];
    const struct loc *l = &ex.locs[t->op.loc];
    if (l->plainly_written) {
        return true;
    }
    int lo = oldest_visible(t, l, t->op.loc, t->op.site->order);
    for (int k = ex.fresh[q]; k < l->n; k++) {
        if (!subsumed(l, lo, k)) {
            return true;
        }
    }
    return false;
}

static uint64_t do_load(struct thread *t, struct loc *l, int i, int order)
{
    int newest = l->n - 1;
    /* Who spins sees what is new in the end. */
    int idx = t->spins >= SPINS_BLIND
                  ? newest
                  : choose_store(l, oldest_visible(t, l, i, order), order == SEQ_CST);
    uint64_t v = see(t, l, i, idx, order);
    event_saw(&ex.pool[l->msg[idx]]);
    trace_op(&t->op, "", v, newest - idx);
    return v;
}

static uint64_t do_store(struct thread *t, struct loc *l, int i, int order, uint64_t value)
{
    put(t, l, i, value, order, NULL);
    trace_op(&t->op, "", value, 0);
    return 0;
}

static uint64_t do_rmw(struct thread *t, struct loc *l, int i, const struct model_site *s,
                       uint64_t x)
{
    const struct msg *m = &ex.pool[l->msg[l->n - 1]];
    struct view base = m->view;
    uint64_t old = see(t, l, i, l->n - 1, s->order), value = x;
    if (s->kind == MODEL_ADD) {
        value = old + x;
    } else if (s->kind == MODEL_AND) {
        value = old & x;
    } else if (s->kind == MODEL_OR) {
        value = old | x;
    }
    put(t, l, i, value, s->order, &base);
    trace_op(&t->op, "", value, 0);
    return old;
}

/* Succeeds on the newest store only. It may fail because it sees an older one, or, if weak, for no
 * reason at all. */
static uint64_t do_cas(struct thread *t, struct loc *l, int i, const struct model_site *s,
                       uint64_t x, uint64_t expected, bool *ok)
{
    int can[NMSG], n = 0, newest = l->n - 1;
    uint64_t newest_value = ex.pool[l->msg[newest]].value;
    if (newest_value == expected) {
        can[n++] = -1; /* success */
    }
    int tried = n;
    for (int k = newest; k >= oldest_visible(t, l, i, s->fail_order); k--) {
        if (ex.pool[l->msg[k]].value != expected || s->kind == MODEL_CAS_WEAK) {
            can[n++] = k;
        }
        if (k == newest || !out_of_stale_loads()) {
            tried = n;
        }
    }
    int pick = can[choose_value(n, t->spins >= SPINS_BLIND ? 1 : tried)];
    if (pick >= 0) {
        *ok = false;
        uint64_t v = see(t, l, i, pick, s->fail_order);
        trace_op(&t->op, "fails, ", v, newest - pick);
        return v;
    }
    *ok = true;
    do_rmw(t, l, i, s, x);
    return expected;
}

/* Setup and finish run alone. */
static uint64_t quiet_op(const struct model_site *s, const volatile void *addr, unsigned size,
                         uint64_t x, uint64_t expected, bool *ok)
{
    uint64_t old = memory_get(addr, size);
    if (size < 8) {
        expected &= ((uint64_t)1 << size * 8) - 1;
    }
    switch (s->kind) {
    case MODEL_STORE:
    case MODEL_XCHG: memory_put(addr, size, x); break;
    case MODEL_ADD: memory_put(addr, size, old + x); break;
    case MODEL_AND: memory_put(addr, size, old & x); break;
    case MODEL_OR: memory_put(addr, size, old | x); break;
    case MODEL_CAS:
    case MODEL_CAS_WEAK:
        *ok = old == expected;
        if (*ok) {
            memory_put(addr, size, x);
        }
        break;
    case MODEL_LOAD:
    case MODEL_FENCE: break;
    }
    return old;
}

/* A plain store has changed the memory: everything older is gone. Who comes next must
 * know of it, or there was a race, which plain.c reports. */
static void begin_anew(struct loc *l)
{
    static const struct view nothing;
    l->plainly_written = false;
    l->base = l->n;
    push(l, memory_get(l->addr, l->size), &nothing);
}

uint64_t model_op(const struct model_site *s, const volatile void *addr, unsigned size, uint64_t x,
                  uint64_t expected, bool *ok)
{
    if (ex.cur < 0) {
        return quiet_op(s, addr, size, x, expected, ok);
    }
    struct thread *t = &ex.threads[ex.cur];
    int i = loc_of(addr, size);
    struct loc *l = &ex.locs[i];
    bool writes = s->kind != MODEL_LOAD;
    if (size < 8) {
        expected &= ((uint64_t)1 << size * 8) - 1;
    }
    t->op = (struct op){.kind = OP_ATOMIC,
                        .site = s,
                        .loc = i,
                        .writes = writes || t->spins >= SPINS_BLIND, /* all stores matter to it */
                        .sc = s->order == SEQ_CST || s->fail_order == SEQ_CST};
    note_use(l, writes);
    point();
    if (l->plainly_written) {
        begin_anew(l);
    }
    uint64_t r;
    switch (s->kind) {
    case MODEL_LOAD: r = do_load(t, l, i, s->order); break;
    case MODEL_STORE: r = do_store(t, l, i, s->order, x); break;
    case MODEL_CAS:
    case MODEL_CAS_WEAK: r = do_cas(t, l, i, s, x, expected, ok); break;
    default: r = do_rmw(t, l, i, s, x); break;
    }
    /* Afterwards: what it acquires comes before it, and a CAS that fails writes nothing. */
    plain_check_atomic(l, writes && !(ok && !*ok));
    ex.fresh[ex.cur] = 0;
    t->cur.clk[ex.cur]++;
    return r;
}

void model_fence(const struct model_site *s)
{
    if (ex.cur < 0) {
        return;
    }
    struct thread *t = &ex.threads[ex.cur];
    t->op = (struct op){.kind = OP_FENCE, .site = s, .loc = -1, .sc = s->order == SEQ_CST};
    point();
    if (acquires(s->order)) {
        view_join(&t->cur, &t->acq);
    }
    if (s->order == SEQ_CST) {
        join_locs(t->cur.loc, ex.sc);
        join_locs(ex.sc, t->cur.loc);
    }
    if (releases(s->order)) {
        t->rel = t->cur;
    }
    trace_op(&t->op, "", 0, 0);
    t->cur.clk[ex.cur]++;
}

/* --- futexes and locks ------------------------------------------------------------------------- */

/*
 * The kernel's side of a futex: both calls order themselves like SC fences of their own, so that
 * either the sleeper sees the store, or the waker sees the sleeper. The value that the kernel reads
 * may still be an older one as long as nobody called wake. No happens-before comes of it.
 */
static void futex_meet(struct thread *t, struct loc *l)
{
    join_locs(t->cur.loc, l->view.loc);
    join_locs(l->view.loc, t->cur.loc);
}

/* While all waited for a deadline time has passed, in which every store reaches everybody. Nothing
 * that is not atomic is ordered by that. */
static void see_the_newest(struct thread *t)
{
    for (int i = 0; i < ex.nloc; i++) {
        t->cur.loc[i] = (uint8_t)(ex.locs[i].n - 1);
    }
}

bool model_futex_wait(const volatile void *addr, uint32_t value, bool limit)
{
    struct thread *t = &ex.threads[ex.cur];
    int i = loc_of(addr, 4);
    struct loc *l = &ex.locs[i];
    t->op =
        (struct op){.kind = OP_WAIT, .pc = __builtin_return_address(0), .loc = i, .writes = true};
    note_use(l, false);
    point();
    futex_meet(t, l);
    if (l->plainly_written) {
        begin_anew(l);
    }
    int newest = l->n - 1;
    int n = newest - oldest_visible(t, l, i, RELAXED) + 1;
    int idx = newest - choose_value(n, out_of_stale_loads() ? 1 : n);
    uint64_t found = see(t, l, i, idx, RELAXED);
    plain_check_atomic(l, false);
    if ((uint32_t)found != value) {
        trace_op(&t->op, "returns at once, ", found, newest - idx);
        return true;
    }
    trace_op(&t->op, "sleeps, ", found, newest - idx);
    t->op.kind = OP_ASLEEP;
    t->has_limit = limit;
    t->woken = false;
    point();
    t->spins = 0;
    bool timed_out = false;
    if (!t->woken) { /* by its deadline, or for no reason */
        if (all_wait()) {
            see_the_newest(t);
        }
        log_thread(ex.cur);
        bool spurious = t->spurious < ex.model->spurious;
        timed_out = limit && (!spurious || choose_value(2, 2) == 0);
        *(timed_out ? &t->timeouts : &t->spurious) += 1;
        trace_op(&t->op, timed_out ? "times out " : "wakes for no reason ", 0, 0);
        t->woken = true; /* nobody else is to wake it now, even if it does nothing more */
    }
    return !timed_out;
}

void model_futex_wake(const volatile void *addr, int n)
{
    struct thread *t = &ex.threads[ex.cur];
    int i = loc_of(addr, 4);
    struct loc *l = &ex.locs[i];
    t->op =
        (struct op){.kind = OP_WAKE, .pc = __builtin_return_address(0), .loc = i, .writes = true};
    note_use(l, true);
    point();
    futex_meet(t, l);
    uint64_t woken = 0;
    for (; n > 0; n--, woken++) {
        int asleep[NT], k = 0;
        for (int q = 0; q < ex.nthreads; q++) {
            struct thread *s = &ex.threads[q];
            if (s->op.kind == OP_ASLEEP && !s->woken && s->op.loc == i) {
                asleep[k++] = q;
            }
        }
        if (k == 0) {
            break;
        }
        struct thread *s = &ex.threads[asleep[choose_value(k, k)]];
        s->woken = true;
        events_join(s->events, t->events);
    }
    trace_op(&t->op, "wakes ", woken, 0);
    t->cur.clk[ex.cur]++;
}

void model_lock(void *addr)
{
    if (ex.cur < 0) {
        return;
    }
    struct thread *t = &ex.threads[ex.cur];
    int i = loc_of(addr, 1);
    struct loc *l = &ex.locs[i];
    t->op =
        (struct op){.kind = OP_LOCK, .pc = __builtin_return_address(0), .loc = i, .writes = true};
    note_use(l, true);
    if (l->holder == ex.cur) {
        model_fail("T%d takes a lock that it holds", ex.cur);
    }
    point();
    l->holder = ex.cur;
    view_join(&t->cur, &l->view);
    if (l->shared) { /* else this was no event */
        event_after(l->events);
    }
    plain_check_atomic(l, true);
    trace_op(&t->op, "", 0, 0);
}

static void let_go(struct loc *l)
{
    struct thread *t = &ex.threads[ex.cur];
    l->holder = -1;
    plain_check_atomic(l, true);
    view_join(&l->view, &t->cur);
    events_join(l->events, t->events);
    ex.writes++;
    t->own_writes++;
    t->cur.clk[ex.cur]++;
}

/* No point of its own: until it is done nobody else can do anything with the lock. */
void model_unlock(void *addr)
{
    if (ex.cur < 0) {
        return;
    }
    struct loc *l = &ex.locs[loc_of(addr, 1)];
    if (l->holder != ex.cur) {
        model_fail("T%d gives back a lock that it does not hold", ex.cur);
    }
    let_go(l);
}

bool model_holds(void *addr)
{
    return ex.cur < 0 || ex.locs[loc_of(addr, 1)].holder == ex.cur;
}

/* A note is a lock that is held until it is posted. The wait is the only step: to clear it concerns nobody
 * yet, and to post it early is no loss, since who waits need not go on at once. */
void model_note_clear(void *addr)
{
    struct loc *l = &ex.locs[loc_of(addr, 1)];
    l->holder = NOTE_CLEAR;
    if (ex.cur >= 0) {
        note_use(l, true);
        plain_check_atomic(l, true);
    }
}

void model_note_post(void *addr)
{
    struct loc *l = &ex.locs[loc_of(addr, 1)];
    note_use(l, true);
    no_point();
    if (l->holder != NOTE_CLEAR) {
        model_fail("T%d posts a note that nobody waits for", ex.cur);
    }
    let_go(l);
}

void model_note_wait(void *addr)
{
    model_lock(addr);
}
