/* SPDX-License-Identifier: MIT */
/*
 * Channels.
 *
 * word      a word lock, the flags CLOSED, RECEIVERS and SENDERS (their queue is not empty), and the
 *           number of buffered elements; changed by the one store that unlocks. So who reads the word
 *           without the lock sees the channel as it was at one time, and a try-operation that must
 *           fail needs no lock.
 * buf       a ring of cap elements, the oldest at head.
 * receivers, senders
 *           queues of operations that wait, oldest first. An operation lies in the frame of its
 *           call, so a channel allocates nothing after it was made, and waiting can't fail.
 *
 * Invariants, whenever the lock is free
 * 1. If receivers wait, the buffer is empty and no sender waits. If senders wait, the buffer is full.
 *    (Operations of selects that were won elsewhere, but are still queued, don't count.)
 * 2. A closed channel has no waiters.
 *
 * A partner that waits is served straight from frame to frame: its value is copied to its place, its
 * operation is taken off the queue, then the lock is freed, then it is made ready. That is the last
 * that is done to the channel or to the operation: whoever goes on may free both [R9].
 *
 * An operation of a select is in several queues, and belongs to who sets its winner first, by CAS
 * from NULL. One that has lost is removed by who meets it, or by its select when that goes on, which
 * comes back to the channel in any case; so it is counted (selects), and if the last reference goes
 * meanwhile, the last select to come back frees the channel.
 *
 * References. An operation that is under way holds its channel in this sense: after the step that
 * lets a partner go on nothing is touched. So no count is kept for operations.
 *
 * Differs from Go: nothing is allocated for a wait, and the fast paths read one word.
 */
#include "sync/chan.h"

#include <stdlib.h>

/* --- queues -------------------------------------------------------------------------------------- */

static struct chan_queue *queue_of(struct chan_op *op)
{
    return op->sends ? &op->chan->senders : &op->chan->receivers;
}

void chan_put_locked(struct chan_op *op)
{
    struct chan_queue *q = queue_of(op);
    tool_hand_over(&op->next); /* who waits, before its partner goes on */
    op->queued = true;
    op->next = NULL;
    op->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = op;
    q->last = op;
}

static void remove_locked(struct chan_op *op)
{
    struct chan_queue *q = queue_of(op);
    op->queued = false;
    *(op->prev ? &op->prev->next : &q->first) = op->next;
    *(op->next ? &op->next->prev : &q->last) = op->prev;
}

/* The first that nobody else has chosen. It is ours then, to be made ready. */
static struct chan_op *take_locked(struct chan_queue *q)
{
    struct chan_op *op;
    while ((op = q->first)) {
        void *none = NULL;
        remove_locked(op);
        if (!op->winner) {
            return op;
        }
        if (at_cas(op->winner, &none, (void *)op, RELAXED, RELAXED)) {
            op->chan->selects--; /* it does not come back to this channel */
            return op;
        }
    }
    return NULL;
}

uint64_t chan_word_locked(const pirn_chanv *c, uint64_t word)
{
    word &= ~(CHAN_RECEIVERS | CHAN_SENDERS);
    return word | (c->receivers.first ? CHAN_RECEIVERS : 0) | (c->senders.first ? CHAN_SENDERS : 0);
}

/* Unlocks, with the flags as the queues are now. */
static inline void unlock_as(pirn_chanv *c, uint64_t word)
{
    word = chan_word_locked(c, word);
    if (unlikely(word & CHAN_FD)) {
        chan_tell_fd(c, word);
    }
    word_unlock(&c->word, word);
}

void chan_unlock(pirn_chanv *c)
{
    unlock_as(c, at_load(&c->word, RELAXED) & ~(uint64_t)WORD_LOCKED);
}

void chan_unlock_empty(pirn_chanv *c, uint64_t word)
{
    c->head = 0;
    unlock_as(c, word & (CHAN_ONE - 1));
}

/* --- elements ------------------------------------------------------------------------------------ */

/* Either may be NULL: nobody wants the value, or there is none. */
static inline void copy(void *to, const void *from, size_t size)
{
    if (!to) {
        return;
    }
    if (!from) {
        memset(to, 0, size);
    } else if (size == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else {
        memcpy(to, from, size);
    }
}

static inline void *slot(pirn_chanv *c, size_t i)
{
    i += c->head;
    return c->buf + (i < c->cap ? i : i - c->cap) * c->elem;
}

/*
 * For a detector of races. Without a buffer, each of the partners comes after what the other did before
 * it met him. With one, a place in it orders those who use it one after the other: so the k-th receive
 * is ordered before the end of the (k + cap)-th send, and nothing else. What goes straight from frame to
 * frame is told as if it went through the buffer.
 */
static inline void acquire(const void *addr)
{
    struct m *mp = TOOL_RACE ? getm() : NULL;
    if (!mp || mp->curg) { /* not on g0 (base/tool.h) */
        tool_acquire(addr);
    }
}

static inline void pass(const void *slot)
{
    acquire(slot);
    tool_release(slot);
}

/* A thread can't be spoken for: it and its partner seem ordered both ways. */
static inline void pass_for(const struct chan_op *op, const void *slot)
{
    if (TOOL_RACE && op->waiter->g) {
        tool_pass_for(&op->waiter->g->tool, slot);
    } else {
        acquire(&op->next);
        pass(slot);
    }
}

static inline void drop_oldest(pirn_chanv *c)
{
    c->head = c->head + 1 < c->cap ? c->head + 1 : 0;
}

/* To one who waits: the buffer is empty. */
static inline void say_sent_to(pirn_chanv *c, const struct chan_op *to)
{
    if (!TOOL_RACE || c->cap == 0) {
        acquire(&to->next);
        return;
    }
    pass(slot(c, 0));
    pass_for(to, slot(c, 0));
    drop_oldest(c);
}

/* --- operations, under the lock ---------------------------------------------------------------------- */

/* The waiter of an operation that was chosen; the operation may be gone when it is ready. */
static inline struct waiter *serve(struct chan_op *op, bool ok)
{
    op->ok = ok;
    return op->waiter;
}

ALWAYS_INLINE bool send_locked(pirn_chanv *c, uint64_t word, const void *elem)
{
    struct chan_op *to;
    size_t n = chan_count(word);
    if (c->receivers.first && (to = take_locked(&c->receivers))) {
        say_sent_to(c, to);
        copy(to->elem, elem, c->elem);
        struct waiter *w = serve(to, true);
        unlock_as(c, word);
        waiter_ready(w);
        return true;
    }
    if (n < c->cap) {
        pass(slot(c, n));
        copy(slot(c, n), elem, c->elem);
        unlock_as(c, word + CHAN_ONE);
        return true;
    }
    return false;
}

ALWAYS_INLINE bool recv_locked(pirn_chanv *c, uint64_t word, void *elem, bool *ok)
{
    struct chan_op *from;
    size_t n = chan_count(word);
    if (n > 0) {
        pass(slot(c, 0));
        chan_say_received(c, c->timer);
        copy(elem, slot(c, 0), c->elem);
        drop_oldest(c);
        struct waiter *w = NULL;
        if (c->senders.first
            && (from = take_locked(&c->senders))) { /* its value is the youngest now */
            pass_for(from, slot(c, n - 1));
            copy(slot(c, n - 1), from->elem, c->elem);
            w = serve(from, true);
        } else {
            word -= CHAN_ONE;
        }
        *ok = true;
        unlock_as(c, word);
        if (w) {
            waiter_ready(w);
        }
        return true;
    }
    if (c->senders.first && (from = take_locked(&c->senders))) {
        acquire(&from->next);
        copy(elem, from->elem, c->elem);
        struct waiter *w = serve(from, true);
        *ok = true;
        unlock_as(c, word);
        waiter_ready(w);
        return true;
    }
    if (word & CHAN_CLOSED) {
        tool_acquire(c);
        *ok = false;
        copy(elem, NULL, c->elem);
        word_unlock(&c->word, word);
        return true;
    }
    return false;
}

bool chan_send_locked(pirn_chanv *c, uint64_t word, const void *elem)
{
    return send_locked(c, word, elem);
}

bool chan_recv_locked(pirn_chanv *c, uint64_t word, void *elem, bool *ok)
{
    return recv_locked(c, word, elem, ok);
}

/* --- calls ------------------------------------------------------------------------------------------ */

/* Waits in the queue; the lock is held. True: a partner came; false: the channel was closed. */
ALWAYS_INLINE bool wait_in_queue(struct visit v, pirn_chanv *c, uint64_t word, bool sends,
                                 void *elem)
{
    struct waiter foreign;
    struct chan_op op = {.chan = c, .sends = sends, .elem = elem};
    op.waiter = waiter_of(v.mp, &foreign, &op);
    chan_put_locked(&op);
    struct unlock_to u = {&c->word, chan_word_locked(c, word)};
    if (unlikely(word & CHAN_FD)) {
        chan_tell_fd(c, u.value);
    }
    visit_park(v, op.waiter, commit_unlock, &u, sends ? WAIT_CHAN_SEND : WAIT_CHAN_RECV);
    visit_waited_end(v);
    chan_say_received(c, !sends);
    return op.ok;
}

static bool commit_for_ever(struct g *gp, void *arg)
{
    (void)gp, (void)arg;
    return true;
}

/* A NULL channel. */
static _Noreturn void wait_for_ever(const char *call, enum wait_reason reason)
{
    struct waiter foreign;
    struct visit v = visit_begin();
    if (!visit_can_wait(v)) {
        visit_cant_wait(call);
    }
    visit_park(v, waiter_of(v.mp, &foreign, NULL), commit_for_ever, NULL, reason);
    throw("chan: woken from a wait for ever");
}

/* Locks it. */
static inline uint64_t lock_to_send(pirn_chanv *c, struct visit v)
{
    uint64_t word = word_lock(&c->word);
    if (unlikely(word & CHAN_CLOSED)) {
        word_unlock(&c->word, word);
        visit_end(v);
        misuse("send on closed channel");
    }
    return word;
}

EXPORT void pirn_chanv_send(pirn_chanv *c, const void *elem)
{
    if (unlikely(!c)) {
        wait_for_ever("pirn_chan_send", WAIT_CHAN_SEND_NIL);
    }
    struct visit v = visit_begin();
    uint64_t word = lock_to_send(c, v);
    if (send_locked(c, word, elem)) {
        visit_end(v);
        return;
    }
    visit_must_wait(v, &c->word, chan_word_locked(c, word), "pirn_chan_send");
    if (!wait_in_queue(v, c, word, true, (void *)(uintptr_t)elem)) {
        misuse("send on closed channel");
    }
}

EXPORT bool pirn_chanv_recv(pirn_chanv *c, void *elem)
{
    bool ok;
    if (unlikely(!c)) {
        wait_for_ever("pirn_chan_recv", WAIT_CHAN_RECV_NIL);
    }
    struct visit v = visit_begin();
    chan_look(c);
    uint64_t word = word_lock(&c->word);
    if (recv_locked(c, word, elem, &ok)) {
        visit_end(v);
        return ok;
    }
    visit_must_wait(v, &c->word, chan_word_locked(c, word), "pirn_chan_recv");
    return wait_in_queue(v, c, word, false, elem);
}

/*
 * No lock is needed to see that it can't be done. [K1] The fence orders this look after what the
 * caller did before on other channels: of two that send on one and then look at the other, one sees
 * the other's.
 */
static bool cant_send(const pirn_chanv *c)
{
    if (!c || chan_can_send(c, at_load(&c->word, RELAXED))) {
        return !c;
    }
    at_fence(SEQ_CST); /* [K1] */
    return !chan_can_send(c, at_load(&c->word, RELAXED));
}

static bool cant_recv(const pirn_chanv *c)
{
    if (!c || at_load(&c->word, RELAXED) & CHAN_TIMER
        || chan_can_recv(at_load(&c->word, RELAXED))) {
        return !c;
    }
    at_fence(SEQ_CST); /* [K1] */
    return !chan_can_recv(at_load(&c->word, RELAXED));
}

EXPORT int pirn_chanv_try_send(pirn_chanv *c, const void *elem)
{
    stop_point();
    if (cant_send(c)) {
        return 0;
    }
    struct visit v = visit_begin();
    uint64_t word = lock_to_send(c, v);
    bool sent = send_locked(c, word, elem);
    if (!sent) {
        chan_unlock(c);
    }
    visit_end(v);
    return sent;
}

EXPORT int pirn_chanv_try_recv(pirn_chanv *c, void *elem)
{
    bool ok = false;
    stop_point();
    if (cant_recv(c)) {
        return 0;
    }
    struct visit v = visit_begin();
    chan_look(c);
    uint64_t word = word_lock(&c->word);
    bool done = recv_locked(c, word, elem, &ok);
    if (!done) {
        chan_unlock(c);
    }
    visit_end(v);
    return done ? (ok ? 1 : -1) : 0;
}

/* All that wait are taken at once, and made ready after the lock is free. False: it is closed. */
bool chan_close(pirn_chanv *c)
{
    struct waiter *first = NULL, **last = &first;
    struct chan_op *op;
    uint64_t word = word_lock(&c->word);
    if (word & CHAN_CLOSED) {
        word_unlock(&c->word, word);
        return false;
    }
    tool_release(c);
    while ((op = take_locked(&c->receivers)) || (op = take_locked(&c->senders))) {
        if (!op->sends) {
            copy(op->elem, NULL, c->elem);
        }
        *last = serve(op, false);
        last = &(*last)->next;
    }
    *last = NULL;
    unlock_as(c, word | CHAN_CLOSED);
    if (first) {
        waiter_ready_list(first);
    }
    return true;
}

EXPORT void pirn_chanv_close(pirn_chanv *c)
{
    not_forked();
    if (!c) {
        misuse("close of nil channel");
    }
    struct visit v = visit_begin();
    bool closed = chan_close(c);
    visit_end(v);
    if (!closed) {
        misuse("close of closed channel");
    }
}

EXPORT size_t pirn_chanv_len(const pirn_chanv *c)
{
    not_forked();
    return c && !c->timer ? chan_count(at_load(&c->word, RELAXED)) : 0;
}

EXPORT size_t pirn_chanv_cap(const pirn_chanv *c)
{
    not_forked();
    return c && !c->timer ? c->cap : 0;
}

/* --- life ------------------------------------------------------------------------------------------- */

EXPORT pirn_chanv *pirn_chanv_make(size_t elem, size_t cap)
{
    not_forked();
    size_t size;
    if (cap > CHAN_MOST || __builtin_mul_overflow(elem, cap, &size)
        || size > PTRDIFF_MAX - sizeof(pirn_chanv)) {
        misuse("makechan: size out of range");
    }
    pirn_chanv *c = malloc(sizeof *c + size);
    if (!c) {
        fatal("out of memory: a channel of %zu bytes", sizeof *c + size);
    }
    *c = (pirn_chanv){.cap = cap, .elem = elem};
    at_store(&c->refs, 1, RELAXED);
    return c;
}

/* Before anybody else knows the channel. */
void chan_set_timer(pirn_chanv *c, struct pirn_timer *t)
{
    c->timer = t;
    at_store(&c->word, CHAN_TIMER, RELAXED);
}

EXPORT pirn_chanv *pirn_chanv_retain(pirn_chanv *c)
{
    not_forked();
    if (c && at_add(&c->refs, 1, RELAXED) == 0) {
        misuse("retain of a channel after its last release");
    }
    return c;
}

/* Does somebody wait there who can never go on? Those that were chosen elsewhere don't. */
static const struct chan_op *unclaimed(const struct chan_queue *q)
{
    for (const struct chan_op *op = q->first; op; op = op->next) {
        if (!op->winner || !at_load(op->winner, RELAXED)) {
            return op;
        }
    }
    return NULL;
}

static bool drop_reference(pirn_chanv *c)
{
    uint32_t refs = c ? at_add(&c->refs, (uint32_t)-1, ACQ_REL) : 2;
    if (unlikely(refs == 0)) {
        misuse("release of a channel after its last release");
    }
    return refs == 1;
}

#define NOBODY UINT64_MAX

/* Who waits there, and so it can't be: a goroutine, or 0 for a thread. */
static uint64_t release_last(pirn_chanv *c)
{
    uint64_t word = word_lock(&c->word);
    const struct chan_op *op = unclaimed(&c->receivers);
    if (op || (op = unclaimed(&c->senders))) {
        uint64_t id = op->waiter->g ? op->waiter->g->id : 0;
        word_unlock(&c->word, word);
        at_add(&c->refs, 1, RELAXED); /* who recovers from this still has it */
        return id;
    }
    c->dead = true;
    chan_unlock_or_free(c);
    return NOBODY;
}

static void check_nobody(uint64_t id)
{
    if (unlikely(id != NOBODY)) {
        misuse(id ? "release of the last reference to a channel on which goroutine %lu waits"
                  : "release of the last reference to a channel on which a thread waits",
               id);
    }
}

void chan_release(pirn_chanv *c)
{
    if (drop_reference(c)) {
        check_nobody(release_last(c));
    }
}

EXPORT void pirn_chanv_release(pirn_chanv *c)
{
    not_forked();
    uint64_t id;
    if (!drop_reference(c)) {
        return;
    }
    if (c->timer) {                     /* a heap of the runtime's is looked at */
        struct visit v = visit_owing(); /* nobody else will free it */
        id = release_last(c);
        visit_end(v);
    } else {
        enter_anyway();
        id = release_last(c);
        leave();
    }
    check_nobody(id);
}

void chan_unlock_or_free(pirn_chanv *c)
{
    /* The timer is stopped at once: who comes back later may do so without a runtime. */
    bool gone = c->dead && (!c->timer || timer_chan_end_locked(c->timer)) && c->selects == 0;
    chan_unlock(c);
    if (gone) {
        if (c->timer) {
            timer_chan_free(c->timer);
        }
        if (at_load(&c->word, RELAXED) & CHAN_FD) {
            chan_fd_close(c);
        }
        heap_free(c);
    }
}

void chan_forget(struct waiter *w, bool waiting)
{
    if (waiting) {
        chan_leave(w->object);
    }
}

void chan_leave(struct chan_op *op)
{
    pirn_chanv *c = op->chan;
    word_lock(&c->word);
    if (op->queued) {
        remove_locked(op);
    }
    c->selects -= op->winner != NULL;
    chan_unlock_or_free(c);
}
