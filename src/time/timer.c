/* SPDX-License-Identifier: MIT */
/*
 * Timers and tickers of the program's; sched/timers.c has the heaps.
 *
 * One that calls a function counts the calls that are under way from the moment at which it fires, so
 * that stop_wait and free can wait for them. References: the program's, and one for each such call.
 *
 * One that sends has a channel with room for one, which looks unbuffered. The channel owns the timer;
 * what the program holds is a reference to the channel. Go 1.23's promise, that nothing old is received
 * after stop or reset: both are done under the channel's lock, empty it, and raise the timer's
 * generation, so that a firing that is on its way to the channel finds itself out of date.
 *
 * Locks: the channel's, then the heap's. So a timer fires in two steps: begin, under the heap's lock,
 * and act, under the channel's.
 */
#include "time/timer.h"

#include <stdlib.h>

/* --- functions -------------------------------------------------------------------------------------- */

struct call {             /* of a goroutine that runs fn, in its frame */
    struct at_end at_end; /* first */
    struct call *next;
    struct pirn_timer *timer;
    uint64_t id;
};

static void drop(struct pirn_timer *t)
{
    if (at_add(&t->refs, (uint32_t)-1, ACQ_REL) == 1) {
        if (t->ctx) {
            ctx_unref(t->ctx);
        }
        heap_free(t);
    }
}

/* A call has ended, or will never begin: then c is NULL. */
static void count_off(struct pirn_timer *t, struct call *c)
{
    tool_release(t);
    word_lock(&t->word);
    for (struct call **at = &t->running; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    at_add(&t->calls, (uint32_t)-1, RELAXED);
    struct waiter *first = waitq_take_all(&t->waiters);
    word_unlock(&t->word, 0);
    if (first) {
        waiter_ready_list(first);
    }
    drop(t);
}

static void end_call(struct at_end *e, bool dropped)
{
    struct call *c = (struct call *)(void *)e;
    if (dropped) { /* nothing here needs a runtime, but who waits */
        count_off(c->timer, c);
        return;
    }
    enter_anyway();
    count_off(c->timer, c);
    leave();
}

static void run_call(void *arg)
{
    struct pirn_timer *t = arg;
    struct m *mp = enter_anyway(); /* it does not end here before the call is known */
    struct call c = {.at_end = {.fn = end_call}, .timer = t, .id = mp ? mp->curg->id : 0};
    word_lock(&t->word);
    c.next = t->running;
    t->running = &c;
    word_unlock(&t->word, 0);
    leave();
    g_at_end(&c.at_end);
    tool_acquire(&t->fn); /* after it was set, */
    if (t->ctx) {
        tool_acquire(t->ctx); /* and after its context was cancelled */
    }
    t->fn(t->arg);
    g_at_end_run(&c.at_end);
}

static uint64_t begin_call(struct timer *timer)
{
    struct pirn_timer *t = (struct pirn_timer *)(void *)timer;
    at_add(&t->refs, 1, RELAXED);
    at_add(&t->calls, 1, RELAXED);
    return 0;
}

static void spawn_call(struct pirn_timer *t, bool entered)
{
    struct gstart start = {.fn = (void (*)(void))run_call, .slot = {(uintptr_t)t}};
    int err = spawn_by_runtime(&start, "timer\0pirn_after_func", entered);
    if (err == -ENOMEM) {
        fatal("out of memory: cannot make the goroutine of a timer");
    }
    if (err) { /* no runtime runs: nobody could call it */
        count_off(t, NULL);
    }
}

static void act_call(struct timer *timer, uint64_t begun)
{
    (void)begun;
    spawn_call((struct pirn_timer *)(void *)timer, false); /* on g0 */
}

/* The stop drops a goroutine that has not begun. */
void timer_forget_start(const struct gstart *start)
{
    if (start->fn == (void (*)(void))run_call) {
        count_off((struct pirn_timer *)(uintptr_t)start->slot[0], NULL);
    }
}

void timer_forget(struct waiter *w)
{
    struct pirn_timer *t = w->object;
    uint64_t word = word_lock(&t->word);
    waitq_remove(&t->waiters, w);
    word_unlock(&t->word, word);
}

static const struct timer_kind func_timer = {.begin = begin_call, .act = act_call};

void timer_call(struct pirn_timer *t, struct visit v)
{
    begin_call(&t->timer);
    spawn_call(t, v.entered);
}

static struct pirn_timer *timer_make(const struct timer_kind *kind)
{
    struct pirn_timer *t = calloc(1, sizeof *t);
    if (!t) {
        fatal("out of memory: cannot make a timer");
    }
    t->timer.kind = kind;
    at_store(&t->refs, 1, RELAXED);
    return t;
}

struct pirn_timer *timer_of_func(void (*fn)(void *), void *arg)
{
    if (!fn) {
        misuse("go of nil func value");
    }
    struct pirn_timer *t = timer_make(&func_timer);
    t->fn = fn;
    t->arg = arg;
    return t;
}

/* Those of this goroutine itself don't count. */
static bool others_run_locked(const struct pirn_timer *t, uint64_t me)
{
    uint32_t n = at_load(&t->calls, RELAXED);
    for (const struct call *c = t->running; c; c = c->next) {
        n -= me && c->id == me;
    }
    return n > 0;
}

static void wait_for_calls(struct pirn_timer *t)
{
    struct visit v = visit_begin();
    uint64_t me = v.mp ? v.mp->curg->id : 0;
    for (;;) {
        struct waiter foreign;
        uint64_t word = word_lock(&t->word);
        if (!others_run_locked(t, me)) {
            word_unlock(&t->word, word);
            visit_end(v);
            tool_acquire(t);
            return;
        }
        if (!visit_can_wait(v)) { /* without a runtime none of them runs */
            word_unlock(&t->word, word);
            visit_end(v);
            return;
        }
        struct waiter *w = waiter_of(v.mp, &foreign, t);
        waitq_put(&t->waiters, w);
        struct unlock_to u = {&t->word, word};
        visit_park(v, w, commit_unlock, &u, WAIT_TIMER);
        v = visit_again();
    }
}

/* --- channels --------------------------------------------------------------------------------------- */

static uint64_t begin_send(struct timer *timer)
{
    struct pirn_timer *t = (struct pirn_timer *)(void *)timer;
    uint32_t generation = at_load(&t->timer.generation, RELAXED);
    at_add(&t->sending, 1, RELAXED);
    at_store(&t->begun, generation, RELAXED);
    return generation;
}

static void send_time(struct timer *timer, uint64_t generation)
{
    struct pirn_timer *t = (struct pirn_timer *)(void *)timer;
    pirn_chanv *c = t->chan;
    uint64_t word = word_lock(&c->word);
    pirn_ns now = now_ns();
    at_add(&t->sending, (uint32_t)-1, RELAXED);
    bool current = at_load(&t->timer.generation, RELAXED) == generation;
    if (current) {
        at_store(&t->begun, 0, RELAXED);
    }
    if (!current || c->dead || (word & CHAN_CLOSED) || !chan_send_locked(c, word, &now)) {
        chan_unlock_or_free(c); /* nobody wants it, or the one before was not received */
    }
}

static const struct timer_kind chan_timer = {.begin = begin_send, .act = send_time};

void timer_chan_look(struct pirn_timer *t)
{
    timer_fire_if_due(&t->timer);
}

bool timer_chan_end_locked(struct pirn_timer *t)
{
    timer_stop(&t->timer);
    return at_load(&t->sending, RELAXED) == 0;
}

void timer_chan_free(struct pirn_timer *t)
{
    heap_free(t);
}

/*
 * Stops or sets it. Whether something was still to come, or to be received: what is pending under the
 * channel's lock may fire meanwhile, but its value comes too late. The look at the heap comes first: a
 * firing says that it has begun before it takes the timer out [H1].
 */
static bool set_chan_timer(struct pirn_timer *t, int64_t when, int64_t period)
{
    pirn_chanv *c = t->chan;
    struct visit v = visit_begin();
    if (when != PIRN_NEVER && !v.mp && !v.entered) {
        visit_end(v);
        misuse("a timer is set, and no runtime runs");
    }
    tool_release(&c->timer); /* who sets it, before who receives the time */
    uint64_t word = word_lock(&c->word);
    bool was = at_load(&t->timer.heap, ACQUIRE) /* [H1] */
               || at_load(&t->begun, RELAXED) == at_load(&t->timer.generation, RELAXED)
               || chan_count(word) > 0;
    timer_set(&t->timer, when, period);
    chan_unlock_empty(c, word);
    visit_end(v);
    return was;
}

static struct pirn_timer *chan_timer_make(pirn_ns ns, int64_t period)
{
    struct pirn_timer *t = timer_make(&chan_timer);
    t->chan = pirn_chanv_make(sizeof(pirn_ns), 1);
    struct visit v = visit_begin();
    chan_set_timer(t->chan, t);
    tool_release(&t->chan->timer);
    if (v.mp || v.entered) {
        timer_set(&t->timer, pirn_deadline(ns), period);
    }
    visit_end(v);
    if (!v.mp && !v.entered) {
        pirn_chanv_release(t->chan);
        misuse("a timer is set, and no runtime runs");
    }
    return t;
}

/* -1: no runtime runs. */
static int set_func_timer(struct pirn_timer *t, pirn_ns ns)
{
    struct visit v = visit_begin();
    int was = -1;
    if (v.mp || v.entered) {
        timer_say_set(t);
        was = timer_set(&t->timer, pirn_deadline(ns), 0);
    }
    visit_end(v);
    return was;
}

/* --- calls ------------------------------------------------------------------------------------------ */

EXPORT pirn_timer *pirn_after_func(pirn_ns ns, void (*fn)(void *), void *arg)
{
    not_forked();
    struct pirn_timer *t = timer_of_func(fn, arg);
    if (set_func_timer(t, ns) < 0) {
        free(t);
        misuse("a timer is set, and no runtime runs");
    }
    return t;
}

EXPORT pirn_timer *pirn_timer_new(pirn_ns ns)
{
    return chan_timer_make(ns, 0);
}

EXPORT pirn_chanv *pirn_timer_chanv(pirn_timer *t)
{
    not_forked();
    return t->chan;
}

EXPORT bool pirn_timer_stop(pirn_timer *t)
{
    if (t->chan) {
        return set_chan_timer(t, PIRN_NEVER, 0);
    }
    struct visit v = visit_begin();
    bool was = t->ctx ? ctx_unwatch(t) : timer_stop(&t->timer);
    visit_end(v);
    return was;
}

EXPORT bool pirn_timer_stop_wait(pirn_timer *t)
{
    bool was = pirn_timer_stop(t);
    if (!t->chan) {
        wait_for_calls(t);
    }
    return was;
}

EXPORT bool pirn_timer_reset(pirn_timer *t, pirn_ns ns)
{
    not_forked();
    if (t->ctx) {
        misuse("timer: reset of one that waits for a context");
    }
    if (t->chan) {
        return set_chan_timer(t, pirn_deadline(ns), 0);
    }
    int was = set_func_timer(t, ns);
    if (was < 0) {
        misuse("a timer is set, and no runtime runs");
    }
    return was;
}

EXPORT void pirn_timer_free(pirn_timer *t)
{
    not_forked();
    if (!t) {
        return;
    }
    pirn_timer_stop_wait(t);
    if (t->chan) {
        pirn_chanv_release(t->chan);
    } else {
        struct visit v = visit_begin();
        drop(t);
        visit_end(v);
    }
}

EXPORT pirn_chanv *pirn_afterv(pirn_ns ns)
{
    return chan_timer_make(ns, 0)->chan;
}

static struct pirn_timer *timer_of(pirn_ticker *t)
{
    return (struct pirn_timer *)(void *)t;
}

EXPORT pirn_ticker *pirn_ticker_new(pirn_ns ns)
{
    not_forked();
    if (ns <= 0) {
        misuse("non-positive interval for NewTicker");
    }
    return (pirn_ticker *)(void *)chan_timer_make(ns, ns);
}

EXPORT pirn_chanv *pirn_ticker_chanv(pirn_ticker *t)
{
    not_forked();
    return timer_of(t)->chan;
}

EXPORT void pirn_ticker_reset(pirn_ticker *t, pirn_ns ns)
{
    not_forked();
    if (ns <= 0) {
        misuse("non-positive interval for Ticker.Reset");
    }
    set_chan_timer(timer_of(t), pirn_deadline(ns), ns);
}

EXPORT void pirn_ticker_stop(pirn_ticker *t)
{
    set_chan_timer(timer_of(t), PIRN_NEVER, 0);
}

EXPORT void pirn_ticker_free(pirn_ticker *t)
{
    pirn_timer_free((pirn_timer *)(void *)t);
}
