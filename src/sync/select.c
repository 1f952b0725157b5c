/* SPDX-License-Identifier: MIT */
/*
 * Select: one of several channel operations, chosen at random among those that are ready.
 *
 * First a look without locks: of the cases whose channel seems ready one is picked, each as likely as
 * the others, its channel is locked, and if the operation can still be carried out that is the end.
 * Only a select that must wait, or take its default, locks all its channels, in the order of their
 * addresses, so that it sees them as of one time.
 *
 * To wait, an operation is queued on each channel, in the frame of the call if there are few; all of
 * them name one winner, which is set by who serves the first (chan.c). The commit action sets the timer, if there is a
 * deadline, and unlocks all channels. The select goes on when it has been made ready, takes the losers
 * off their queues, locking each of their channels in turn, whether they are still queued or not: so it
 * can't return, and its frame be gone, before the commit has unlocked the last channel. With descriptors
 * there may be no channel, so the commit says when it has come to its end [L1].
 *
 * Everything that waits for more than one thing is a select: an operation with a deadline, a sleep
 * that a context can end, and what brings a word lock of its own (also), such as a condition.
 */
#include "sync/select.h"

#include <stdlib.h>

#include "base/rand.h"
#include "ctx/ctx.h"
#include "io/fd.h"
#include "panic/panic.h"

static bool takes_part(const pirn_case *k)
{
    return (k->kind_ == PIRN_CASE_RECV_ || k->kind_ == PIRN_CASE_SEND_) && k->chan_;
}

/* --- choosing ------------------------------------------------------------------------------------- */

static bool is_fd(const pirn_case *k)
{
    return k->kind_ == PIRN_CASE_READABLE_ || k->kind_ == PIRN_CASE_WRITABLE_;
}

/* Those who wait there may have been chosen elsewhere; who tries to take them finds out. */
static inline bool is_ready(const pirn_case *k, bool locked)
{
    pirn_chanv *c = k->chan_;
    if (unlikely(!takes_part(k))) {
        return is_fd(k) && k->elem_; /* fd_cases_look */
    }
    if (!locked) {
        chan_look(c);
    }
    uint64_t word = at_load(&c->word, RELAXED);
    word = locked ? chan_word_locked(c, word) : word;
    return k->kind_ == PIRN_CASE_SEND_ ? chan_can_send(c, word) : chan_can_recv(word);
}

/* One of those that seem ready, or -1. r NULL: the first. */
static int pick(struct rand *r, const pirn_case *cases, int n, bool locked)
{
    int chosen = -1;
    uint32_t ready = 0;
    for (int i = 0; i < n; i++) {
        /* The k-th that is ready takes the place of the one before with probability 1/k. */
        if (is_ready(&cases[i], locked) && (++ready == 1 || rand_below(r, ready) == 0)) {
            chosen = i;
            if (!r) {
                break;
            }
        }
    }
    return chosen;
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
    if (unlikely(is_fd(k))) {
        return true; /* that it is ready is all */
    }
    bool done = k->kind_ == PIRN_CASE_SEND_ ? chan_send_locked(k->chan_, word, k->elem_)
                                            : chan_recv_locked(k->chan_, word, k->elem_, &ok);
    if (done) {
        finish(k, ok);
    }
    return done;
}

static bool try_case(struct visit v, pirn_case *k)
{
    if (unlikely(is_fd(k))) {
        return true;
    }
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

static void heapsort_channels(struct select *s, int n)
{
    for (int i = n / 2; i-- > 0;) {
        sift_down(s, i, n);
    }
    for (int i = n; i-- > 1;) {
        unsigned greatest = s->cases[0].order_;
        s->cases[0].order_ = s->cases[i].order_;
        s->cases[i].order_ = greatest;
        sift_down(s, 0, i);
    }
}

/* Few, and mostly in order already. */
static void insert_channel(struct select *s, int n, int i)
{
    pirn_case *k = s->cases;
    while (n > 0 && (uintptr_t)nth(s, n - 1) > (uintptr_t)k[i].chan_) {
        k[n].order_ = k[n - 1].order_;
        n--;
    }
    k[n].order_ = (unsigned)i;
}

/* The cases that take part, by address; then one of each channel is kept. */
static void sort_channels(struct select *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (takes_part(&s->cases[i])) {
            if (s->n <= SELECT_FEW) {
                insert_channel(s, n, i);
            } else {
                s->cases[n].order_ = (unsigned)i;
            }
            n++;
        }
    }
    if (s->n > SELECT_FEW) {
        heapsort_channels(s, n);
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
    return at_load(&k->chan_->word, RELAXED) & ~(uint64_t)WORD_LOCKED;
}

static void unlock_all_but(struct select *s, const pirn_chanv *kept)
{
    for (int i = 0; i < s->locked; i++) {
        if (nth(s, i) != kept) {
            chan_unlock(nth(s, i));
        }
    }
}

void select_unlock(struct select *s)
{
    unlock_all_but(s, NULL);
}

static struct rand *rand_of(struct m *mp, struct rand *own)
{
    if (likely(mp)) {
        return &mp->rand;
    }
    rand_seed(own, (uint64_t)now_ns());
    return own;
}

/* As try_case with all channels locked; the others stay locked. */
static bool try_locked(struct visit v, struct select *s, pirn_case *k)
{
    uint64_t word = is_fd(k) ? 0 : locked_word(k);
    if (sends_on_closed(k, word)) {
        unlock_all_but(s, NULL);
        visit_end(v);
        misuse("send on closed channel");
    }
    return carry_out(k, word);
}

int select_try(struct visit v, struct select *s)
{
    struct rand own, *r = s->in_order ? NULL : rand_of(v.mp, &own);
    int i;
    while ((i = pick(r, s->cases, s->n, false)) >= 0) {
        if (try_case(v, &s->cases[i])) {
            return i;
        }
    }
    sort_channels(s);
    lock_all(s);
    while ((i = pick(r, s->cases, s->n, true)) >= 0) {
        if (try_locked(v, s, &s->cases[i])) {
            /* that one was unlocked with the operation */
            unlock_all_but(s, takes_part(&s->cases[i]) ? s->cases[i].chan_ : NULL);
            return i;
        }
    }
    return -1;
}

/* --- waiting ------------------------------------------------------------------------------------------- */

static void queue_all(struct select *s)
{
    for (int i = 0; i < s->n; i++) {
        pirn_case *k = &s->cases[i];
        if (takes_part(k)) {
            struct chan_op *op = &s->ops[i];
            *op = (struct chan_op){.waiter = s->waiter,
                                   .winner = &s->winner,
                                   .chan = k->chan_,
                                   .sends = k->kind_ == PIRN_CASE_SEND_,
                                   .elem = k->elem_};
            k->chan_->selects++;
            chan_put_locked(op);
        } else if (unlikely(is_fd(k))) {
            s->ops[i] = (struct chan_op){
                .waiter = s->waiter,
                .winner = &s->winner,
                .fd = {.number = k->fd_,
                       .edge = s->fd_edge,
                       .mode = k->kind_ == PIRN_CASE_READABLE_ ? FD_READ : FD_WRITE,
                       .watches = !s->fd_tries,
                       .timed = s->fd_timed,
                       .outlives = s->fd_outlive && !s->waiter->g}};
        }
    }
}

static void leave_all(struct select *s, const void *winner)
{
    for (int i = 0; i < s->n; i++) {
        if (takes_part(&s->cases[i]) && &s->ops[i] != winner) {
            chan_leave(&s->ops[i]);
        } else if (unlikely(is_fd(&s->cases[i]))) {
            s->ops[i].fd.lets_go = !pd_disarm(&s->ops[i]);
        }
    }
}

static struct waiter *time_is_up(struct timer *t)
{
    struct select *s = (struct select *)(void *)((char *)t - offsetof(struct select, timer));
    return select_claim(s, t) ? s->waiter : NULL;
}

const struct timer_kind select_timer = {.fire = time_is_up};

/* Descriptors are waited for when no channel is locked any more. The select goes on before that has come
 * to its end only if it was won; [L1] then it waits for it. False: it is not to wait, and nobody else wakes it. */
static NOINLINE bool arm_fds(struct select *s)
{
    bool waits = true;
    for (int i = 0; waits && i < s->n; i++) {
        if (is_fd(&s->cases[i]) && !pd_arm(&s->ops[i])) {
            waits = !select_claim(s, &s->ops[i]);
            s->ops[i].ok = true;
        }
    }
    at_store(&s->armed, 1, RELEASE); /* [L1]; mutants survive: no model has a select of descriptors */
    return waits;
}

/* While a channel is locked the select can't go on to its end; after the last nothing is touched. */
static bool commit_select(struct g *gp, void *arg)
{
    struct select *s = arg;
    struct unlock_to also = s->also;
    int n = s->locked;
    bool fds = s->fds;
    if (gp && s->deadline != PIRN_NEVER) {
        timer_set(&s->timer, s->deadline, 0);
    }
    for (int i = 0; i < n; i++) {
        chan_unlock(nth(s, i));
    }
    if (also.word) {
        word_unlock(also.word, also.value);
    }
    return likely(!fds) || arm_fds(s);
}

void select_forget(struct waiter *w)
{
    struct select *s = w->object;
    leave_all(s, at_load(&s->winner, RELAXED));
    for (int i = 0; s->fds && i < s->n; i++) {
        if (is_fd(&s->cases[i]) && s->ops[i].fd.lets_go && (int)s->ops[i].fd.edge >= 0) {
            fd_close_late(false, (int)s->ops[i].fd.edge);
        }
    }
    if (s->n > SELECT_FEW) {
        free(s->ops);
    }
}

/* Of a descriptor that is not pirn's the ring keeps nothing when the call returns; and one that was closed, whose
 * last user this was, may take its time (SO_LINGER): without the P. */
static NOINLINE void settle_fds(struct visit v, struct select *s)
{
    for (int i = 0; i < s->n; i++) {
        if (is_fd(&s->cases[i]) && s->ops[i].fd.lets_go) {
            pd_settle(v, &s->ops[i]);
        }
    }
}

void *select_wait(struct visit v, struct select *s, enum wait_reason reason)
{
    if (!s->waiter) {
        select_waiter(v, s);
    }
    queue_all(s);
    if (unlikely(s->fds) && !v.mp) {
        netpoll_foreign(1);
    }
    if (likely(v.mp)) {
        park(commit_select, s, reason);
    } else if (!foreign_park(s->waiter, v.entered, commit_select, s, s->deadline)
               && !select_claim(s, &s->timer)) {
        foreign_wait_for_ready(s->waiter);
    }
    while (unlikely(s->fds) && !at_load(&s->armed, ACQUIRE)) { /* [L1], a mutant too */
        thread_yield();
    }
    void *winner = at_load(&s->winner, RELAXED);
    leave_all(s, winner);
    if (v.mp && s->deadline != PIRN_NEVER && winner != &s->timer) {
        timer_stop(&s->timer);
    }
    if (unlikely(s->fds)) {
        settle_fds(v, s);
    }
    if (unlikely(s->fds) && !v.mp) {
        netpoll_foreign(-1); /* from now on it touches no poll descriptor */
    }
    return winner;
}

int select_case_of(const struct select *s, void *winner)
{
    struct chan_op *op = winner;
    int i = (int)(op - s->ops);
    if (!op->ok && op->sends) {
        misuse("send on closed channel");
    }
    chan_say_received(op->chan, !op->sends && takes_part(&s->cases[i]));
    finish(&s->cases[i], op->ok);
    return i;
}

/* --- the call -------------------------------------------------------------------------------------------- */

/* The case that is carried out if no other can be, or not in time; -1: none. */
static int last_resort(const pirn_case *cases, int n, int64_t *deadline)
{
    int which = -1;
    *deadline = PIRN_NEVER;
    for (int i = 0; i < n; i++) {
        if (cases[i].kind_ == PIRN_CASE_DEFAULT_) {
            *deadline = INT64_MIN;
            return i;
        }
        if (cases[i].kind_ == PIRN_CASE_UNTIL_ && cases[i].until_ < *deadline) {
            *deadline = cases[i].until_;
            which = i;
        }
    }
    return which;
}

/* Descriptors among the cases are looked at first: one system call each. */
static bool look_at_fds(pirn_case *cases, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        any |= is_fd(&cases[i]);
    }
    if (unlikely(any)) {
        fd_cases_look(cases, n);
    }
    return any;
}

/* other: the case if none can be carried out in time. err: why descriptors can't be waited for. */
static int select_in(struct visit v, struct select *s, int other, int err)
{
    int i = select_try(v, s);
    if (i >= 0) {
        visit_end(v);
        return i;
    }
    if (other >= 0 && s->deadline <= now_ns()) {
        select_unlock(s);
        visit_end(v);
        return other;
    }
    if (!visit_can_wait(v)) {
        select_unlock(s);
        visit_cant_wait("pirn_select");
    }
    if (err) {
        select_unlock(s);
        fatal("cannot wait for descriptors: %s", strerrordesc_np(-err));
    }
    if (!s->ops) {
        select_unlock(s);
        fatal("out of memory: a select of %d cases", s->n);
    }
    void *winner = select_wait(v, s, s->n ? WAIT_SELECT : WAIT_SELECT_NONE);
    visit_waited_end(v);
    return winner == select_timer_of(s) ? other : select_case_of(s, winner);
}

/* More than there is room for in the frame. A panic frees them too. */
static NOINLINE int select_many(struct select *s, int other, int err)
{
    struct pirn_defer_ d;
    s->ops = malloc((size_t)s->n * sizeof *s->ops); /* NULL will do if it need not wait */
    bring(s->ops);
    struct visit v = visit_begin();
    bring(NULL);
    defer_begin(&d, free, s->ops, __builtin_frame_address(0));
    int i = select_in(v, s, other, err);
    defer_end(&d);
    return i;
}

EXPORT int pirn_selectv(pirn_case *cases, int n)
{
    not_forked();
    int64_t deadline;
    int other = last_resort(cases, n, &deadline);
    struct chan_op few[SELECT_FEW];
    struct select s = SELECT_INIT(cases, few, n, deadline);
    s.fds = look_at_fds(cases, n);
    int err = s.fds && deadline > now_ns() ? netpoll_open_visiting() : 0; /* or it will find out */
    if (unlikely(n > SELECT_FEW)) {
        return select_many(&s, other, err);
    }
    return select_in(visit_begin(), &s, other, err);
}

/* --- one operation with a deadline ------------------------------------------------------------------- */

/* What is complete wins over a context that is cancelled and a deadline that has passed. */
static int do_until(pirn_case *op, int64_t deadline, const char *call)
{
    pirn_case cases[2] = {*op, {.kind_ = PIRN_CASE_RECV_}};
    struct chan_op ops[2];
    struct select s = SELECT_INIT(cases, ops, 2, deadline);
    struct visit v = visit_begin();
    struct pirn_ctx *ctx = ctx_of(v.mp);
    cases[1].chan_ = ctx ? ctx_done(ctx) : NULL;
    s.in_order = true;
    int i = select_try(v, &s);
    if (i >= 0) {
        visit_end(v);
    } else if (deadline <= now_ns()) {
        select_unlock(&s);
        visit_end(v);
        return -ETIMEDOUT;
    } else if (!visit_can_wait(v)) {
        select_unlock(&s);
        visit_cant_wait(call);
    } else {
        void *winner = select_wait(
            v, &s, op->kind_ == PIRN_CASE_SEND_ ? WAIT_CHAN_SEND_UNTIL : WAIT_CHAN_RECV_UNTIL);
        visit_waited_end(v);
        if (winner == select_timer_of(&s)) {
            return -ETIMEDOUT;
        }
        i = select_case_of(&s, winner);
    }
    return i == 0 ? 0 : ctx_err(ctx);
}

EXPORT int pirn_chanv_send_until(pirn_chanv *c, const void *elem, pirn_ns deadline)
{
    pirn_case op = {.kind_ = PIRN_CASE_SEND_, .chan_ = c, .elem_ = (void *)(uintptr_t)elem};
    return do_until(&op, deadline, "pirn_chan_send_until");
}

EXPORT int pirn_chanv_recv_until(pirn_chanv *c, void *elem, pirn_ns deadline)
{
    bool ok = true;
    pirn_case op = {.kind_ = PIRN_CASE_RECV_, .chan_ = c, .elem_ = elem, .ok_ = &ok};
    int err = do_until(&op, deadline, "pirn_chan_recv_until");
    return err ? err : ok ? 0 : -EPIPE;
}
