/* SPDX-License-Identifier: MIT */
/*
 * Select: one of several channel operations, chosen at random among those that are ready.
 *
 * First a look without locks: of the cases whose channel seems ready one is picked, each as likely as
 * the others, its channel is locked, and if the operation can still be carried out that is the end.
 * Only a select that must wait, or take its default, locks all its channels, in the order of their
 * addresses, so that it sees them as of one time.
 *
 * To wait, an operation is queued on each channel, in the case itself; all of them name one winner,
 * which is set by who serves the first (chan.c). The commit action unlocks all channels. The select
 * goes on when it has been made ready, takes the losers off their queues, locking each of their
 * channels in turn, whether they are still queued or not: so it can't return, and its cases be gone,
 * before the commit has unlocked the last channel.
 */
#include "sync/chan.h"

#include "base/rand.h"

struct select {
    pirn_case *cases;
    int n, locked; /* channels, without duplicates; their cases by order_ */
    winner_t winner;
    struct waiter *waiter;
};

static struct chan_op *op_of(pirn_case *k)
{
    _Static_assert(sizeof(struct chan_op) <= sizeof k->op_, "a case has room for its operation");
    return (struct chan_op *)(void *)k->op_;
}

static bool takes_part(const pirn_case *k)
{
    return k->chan_ && (k->kind_ == PIRN_CASE_RECV_ || k->kind_ == PIRN_CASE_SEND_);
}

/* Those who wait there may have been chosen elsewhere; who tries to take them finds out. */
static bool is_ready(const pirn_case *k, bool locked)
{
    const pirn_chanv *c = k->chan_;
    if (!takes_part(k)) {
        return false;
    }
    uint64_t word = at_load(&c->word, RELAXED);
    word = locked ? chan_word_locked(c, word) : word;
    return k->kind_ == PIRN_CASE_SEND_ ? chan_can_send(c, word) : chan_can_recv(word);
}

/* One of those that seem ready, or -1. */
static int pick(struct rand *r, const pirn_case *cases, int n, bool locked)
{
    uint32_t ready = 0;
    for (int i = 0; i < n; i++) {
        ready += is_ready(&cases[i], locked);
    }
    if (ready == 0) {
        return -1;
    }
    /* They may change meanwhile: the last that is ready will do. */
    int last = -1;
    for (uint32_t k = ready > 1 ? rand_below(r, ready) : 0, i = 0; i < (uint32_t)n; i++) {
        if (is_ready(&cases[i], locked)) {
            last = (int)i;
            if (k-- == 0) {
                break;
            }
        }
    }
    return last;
}

static void finish(pirn_case *k, bool ok)
{
    if (k->ok_) {
        *k->ok_ = ok;
    }
}

static bool sends_on_closed(const pirn_case *k, uint64_t word)
{
    return k->kind_ == PIRN_CASE_SEND_ && unlikely(word & CHAN_CLOSED);
}

/* With the channel locked: unlocks it if it could be done. */
static bool carry_out(pirn_case *k, uint64_t word)
{
    bool ok = true;
    bool done = k->kind_ == PIRN_CASE_SEND_ ? chan_send_locked(k->chan_, word, k->elem_)
                                            : chan_recv_locked(k->chan_, word, k->elem_, &ok);
    if (done) {
        finish(k, ok);
    }
    return done;
}

static bool try_case(struct visit v, pirn_case *k)
{
    uint64_t word = word_lock(&k->chan_->word);
    if (sends_on_closed(k, word)) {
        word_unlock(&k->chan_->word, word);
        visit_end(v);
        misuse("send on closed channel");
    }
    if (carry_out(k, word)) {
        return true;
    }
    chan_unlock(k->chan_);
    return false;
}

/* --- all channels at once ---------------------------------------------------------------------------- */

static pirn_chanv *nth(const struct select *s, int i)
{
    return s->cases[s->cases[i].order_].chan_;
}

static void sift_down(struct select *s, int i, int n)
{
    pirn_case *k = s->cases;
    unsigned x = k[i].order_;
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && nth(s, child) < nth(s, child + 1)) {
            child++;
        }
        if ((uintptr_t)k[x].chan_ >= (uintptr_t)nth(s, child)) {
            break;
        }
        k[i].order_ = k[child].order_;
    }
    k[i].order_ = x;
}

/* Heapsort of the cases that take part, by address; then one of each channel is kept. */
static void sort_channels(struct select *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (takes_part(&s->cases[i])) {
            s->cases[n++].order_ = (unsigned)i;
        }
    }
    for (int i = n / 2; i-- > 0;) {
        sift_down(s, i, n);
    }
    for (int i = n; i-- > 1;) {
        unsigned greatest = s->cases[0].order_;
        s->cases[0].order_ = s->cases[i].order_;
        s->cases[i].order_ = greatest;
        sift_down(s, 0, i);
    }
    s->locked = 0;
    for (int i = 0; i < n; i++) {
        if (s->locked == 0 || nth(s, i) != nth(s, s->locked - 1)) {
            s->cases[s->locked++].order_ = s->cases[i].order_;
        }
    }
}

static void lock_all(struct select *s)
{
    for (int i = 0; i < s->locked; i++) {
        word_lock(&nth(s, i)->word);
    }
}

static uint64_t locked_word(const pirn_case *k)
{
    return at_load(&k->chan_->word, RELAXED) & ~(uint64_t)WORD_LOCK_BITS;
}

static void unlock_all_but(struct select *s, const pirn_chanv *kept)
{
    for (int i = 0; i < s->locked; i++) {
        if (nth(s, i) != kept) {
            chan_unlock(nth(s, i));
        }
    }
}

/* While a channel is locked the select can't go on to its end; after the last nothing is touched. */
static bool commit_select(struct g *gp, void *arg)
{
    (void)gp;
    struct select *s = arg;
    for (int i = 0, n = s->locked; i < n; i++) {
        chan_unlock(nth(s, i));
    }
    return true;
}

/* As try_case with all channels locked; the others stay locked. */
static bool try_locked(struct visit v, struct select *s, pirn_case *k)
{
    uint64_t word = locked_word(k);
    if (sends_on_closed(k, word)) {
        unlock_all_but(s, NULL);
        visit_end(v);
        misuse("send on closed channel");
    }
    return carry_out(k, word);
}

static void queue_all(struct select *s)
{
    for (int i = 0; i < s->n; i++) {
        pirn_case *k = &s->cases[i];
        if (takes_part(k)) {
            struct chan_op *op = op_of(k);
            *op = (struct chan_op){.waiter = s->waiter,
                                   .winner = &s->winner,
                                   .chan = k->chan_,
                                   .sends = k->kind_ == PIRN_CASE_SEND_,
                                   .elem = k->elem_};
            k->chan_->selects++;
            chan_put_locked(op);
        }
    }
}

static void leave_all(struct select *s, const struct chan_op *winner)
{
    for (int i = 0; i < s->n; i++) {
        if (takes_part(&s->cases[i]) && op_of(&s->cases[i]) != winner) {
            chan_leave(op_of(&s->cases[i]));
        }
    }
}

void select_forget(struct waiter *w)
{
    struct select *s = w->object;
    leave_all(s, at_load(&s->winner, RELAXED));
}

/* --- the call -------------------------------------------------------------------------------------------- */

static struct rand *rand_of(struct m *mp, struct rand *own)
{
    if (likely(mp)) {
        return &mp->rand;
    }
    rand_seed(own, (uint64_t)now_ns());
    return own;
}

static int default_of(const pirn_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        if (cases[i].kind_ == PIRN_CASE_DEFAULT_) {
            return i;
        }
    }
    return -1;
}

/* With all channels locked, and none ready. */
ALWAYS_INLINE int wait_for_one(struct visit v, struct select *s)
{
    struct waiter foreign;
    s->waiter = waiter_of(v.mp, &foreign, s);
    queue_all(s);
    waiter_park(s->waiter, commit_select, s, s->n ? WAIT_SELECT : WAIT_SELECT_NONE);
    struct chan_op *op = at_load(&s->winner, RELAXED);
    leave_all(s, op);
    pirn_case *k = (pirn_case *)(void *)((char *)op - offsetof(pirn_case, op_));
    if (!op->ok && op->sends) {
        misuse("send on closed channel");
    }
    finish(k, op->ok);
    return (int)(k - s->cases);
}

EXPORT int pirn_selectv(pirn_case *cases, int n)
{
    struct rand own, *r;
    struct select s = {.cases = cases, .n = n};
    struct visit v = visit_begin();
    r = rand_of(v.mp, &own);
    int i, other = default_of(cases, n);
    while ((i = pick(r, cases, n, false)) >= 0) {
        if (try_case(v, &cases[i])) {
            visit_end(v);
            return i;
        }
    }
    sort_channels(&s);
    lock_all(&s);
    while ((i = pick(r, cases, n, true)) >= 0 && !try_locked(v, &s, &cases[i])) {
    }
    if (i >= 0) {
        unlock_all_but(&s, cases[i].chan_); /* that one was unlocked with the operation */
    } else if (other >= 0) {
        unlock_all_but(&s, NULL);
        i = other;
    } else if (!visit_may_wait(v)) {
        unlock_all_but(&s, NULL);
        visit_would_block(v, "pirn_select");
    } else {
        return wait_for_one(v, &s);
    }
    visit_end(v);
    return i;
}
