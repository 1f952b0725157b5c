/* SPDX-License-Identifier: MIT */
/*
 * Poll descriptors: who waits for a descriptor, and what ends the wait.
 *
 * A table by number, in chunks that are mapped when they are first needed, so that a poll descriptor is
 * found without a lock and never moves. Everything in one is under its word lock.
 *
 * A call counts itself (refs), reads `edges`, tries, and if there is nothing it waits: under the lock, if
 * `edges` is still what it was, its operation goes on the queue of its direction. Who has news (an event of
 * the poller, a new deadline, pirn_fd_cancel, pirn_close) takes the lock, adds to `edges`, and takes
 * operations off. So no news is lost between the try and the wait. [D1]
 * Who only watches does not try, and needs no edges: it looks when it is queued. A new deadline is no readiness:
 * pirn_fd_wait is told of it by another word, and compares `times` instead; a select has a time of its own.
 *
 * Invariants
 * 1. An operation is on a queue only while the descriptor is registered with a poller, and neither closing
 *    nor cancelled.
 * 2. An event wakes one operation of its direction, and everybody who only watches (selects), if it is ready
 *    still: io_uring may tell of what was read long before, by one who did not have to wait. One that was
 *    woken tries; if it got something it wakes the next that tries, since there may be more: pd_end. If there
 *    is nothing, the next event is still to come. Who only watches is told by events alone: that somebody
 *    has read, or given up, does not make it ready.
 * 3. The number is closed by the last call that uses it, under the lock, and the poll descriptor cleared: a
 *    call that came too late finds that it is closed, whoever gets the number next finds it new. An event
 *    carries the number and seq; an old one does nothing. A number that was closed behind pirn's back, and that
 *    pirn has made anew, is another file: a call on the one before ends, though it had been woken to try again.
 * 4. What pirn made stays registered, edge-triggered. Any other is registered while calls use it, since
 *    the number may mean another file the next time; or now: who begins to wait registers it again.
 * 5. With io_uring, what it was asked to watch is a file that it holds: closing the number would not close
 *    the file. So who is the last to use it tells the ring to let go, waits until it has, and closes the
 *    number then. `closing` stays set until that, so nobody begins. [D3] ring, leavers: under the lock.
 * 6. Of calls that could block (io.c) one is made at a time in a direction, and only if it is ready: so it does
 *    not, and close, deadlines and contexts need not end it. Those who come meanwhile wait, and one of them
 *    is woken when it is over.
 *
 * The short-read hint: a read of less than was asked for has emptied a TCP socket. The next read then waits
 * without trying. Not if an edge came since the one that was known before the read, and never again once
 * the end, an error or urgent data has been seen.
 *
 * Locks: a word lock each, taken after those of channels are given back; the lock of the pollers is taken
 * under it. Who won a select is claimed under it, and made ready after.
 *
 * Differs from Go: a direction has a queue, not one place, and no lock of its own for calls: who reads
 * together shares what comes. Deadlines are the waiter's timers, not the descriptor's.
 */
#include <errno.h>
#include <poll.h>

#include "io/fd.h"
#include "io/pd.h"
#include "os/poll.h"
#include "os/sysio.h"

#define CHUNK (PIRN_SMALL ? 4 : 1024)
#define CHUNKS 16384

typedef AT(struct pd *) chunk_t;
static chunk_t table[CHUNKS];
static at_u32 nchunks; /* how many were mapped */

/* --- the table ------------------------------------------------------------------------------------------ */

static NOINLINE struct pd *map_chunk(chunk_t *at)
{
    struct pd *none = NULL, *fresh = mem_map(CHUNK * sizeof *fresh);
    if (!fresh) {
        return NULL;
    }
    /* RELEASE, ACQUIRE: [D2] zeroed pages, which are so for everybody; for tools that look for races. */
    if (!at_cas(at, &none, fresh, ACQ_REL, ACQUIRE)) {
        mem_unmap(fresh, CHUNK * sizeof *fresh);
        return none;
    }
    at_add(&nchunks, 1, RELAXED);
    return fresh;
}

struct pd *pd_get(int fd)
{
    if (unlikely(fd < 0 || fd / CHUNK >= CHUNKS)) {
        return NULL;
    }
    struct pd *chunk = at_load(&table[fd / CHUNK], ACQUIRE); /* [D2] */
    chunk = likely(chunk) ? chunk : map_chunk(&table[fd / CHUNK]);
    return chunk ? &chunk[fd % CHUNK] : NULL;
}

COLD int pd_none(int fd)
{
    return fd < 0 || sys_flags(fd) == -EBADF ? -EBADF : -ENOMEM;
}

/* --- the whole, under the lock ------------------------------------------------------------------------------- */

/* Nobody uses it: as if the number had never been seen; but for what io_uring has of it. */
static void clear_locked(struct pd *pd)
{
    pd->seq++;
    pd->deadline[0] = pd->deadline[1] = 0;
    pd->kind = FD_ANY;
    pd->claims = pd->told = 0;
    pd->ours = pd->held = pd->registered = pd->closing = pd->cancelled = false;
    pd->streams = pd->empty = pd->odd = false;
}

static void unregister_locked(struct pd *pd, int fd)
{
    if (pd->registered) {
        pd->registered = false;
        pd->seq++;
        netpoll_remove(pd, fd);
    }
    if (unlikely(pd->ring)) {
        ring_let_go_locked(pd, fd);
    }
}

/* --- calls --------------------------------------------------------------------------------------------------- */

static int look_locked(struct pd *pd, enum fd_mode mode, struct pd_look *out)
{
    out->edge = at_load(&pd->edges[mode], RELAXED);
    out->kind = (enum fd_kind)pd->kind;
    out->streams = pd->streams;
    out->empty = mode == FD_READ && pd->empty;
    out->deadline = pd->deadline[mode] ? pd->deadline[mode] : PIRN_NEVER;
    return unlikely(pd->closing || out->file != pd->file) ? -EBADF
           : unlikely(pd->cancelled)                      ? -ECANCELED
                                                          : 0;
}

int pd_begin(struct pd *pd, enum fd_mode mode, struct pd_look *out)
{
    uint64_t word = word_lock(&pd->word);
    out->file = pd->file;
    int err = look_locked(pd, mode, out);
    pd->refs += !err;
    word_unlock(&pd->word, word);
    return err;
}

uint32_t pd_times(struct pd *pd)
{
    uint64_t word = word_lock(&pd->word);
    uint32_t times = pd->times;
    word_unlock(&pd->word, word);
    return times;
}

int pd_hold(struct pd *pd)
{
    uint64_t word = word_lock(&pd->word);
    int err = pd->closing ? -EBADF : 0;
    pd->refs += !err;
    word_unlock(&pd->word, word);
    return err;
}

int pd_again(struct pd *pd, enum fd_mode mode, struct pd_look *out)
{
    uint64_t word = word_lock(&pd->word);
    int err = look_locked(pd, mode, out);
    word_unlock(&pd->word, word);
    return err;
}

/* Looks anew: who is told of news that came meanwhile must know all of it, or it would wait past a deadline. */
bool pd_claim(struct pd *pd, enum fd_mode mode, struct pd_look *out)
{
    uint32_t edge = out->edge;
    uint64_t word = word_lock(&pd->word);
    bool over = look_locked(pd, mode, out);
    bool free = !over && !(pd->claims & PD_CLAIMED(mode));
    if (over) {
        out->edge = edge; /* so that pd_arm does not let it wait, and it is told why */
    } else {
        pd->claims |= (uint8_t)(free ? PD_CLAIMED(mode) : PD_WANTED(mode));
    }
    word_unlock(&pd->word, word);
    return free;
}

void pd_unclaim(struct pd *pd, enum fd_mode mode)
{
    struct taken t = {NULL, &t.first};
    uint64_t word = word_lock(&pd->word);
    bool wanted = pd->claims & PD_WANTED(mode);
    pd->claims &= (uint8_t) ~(PD_CLAIMED(mode) | PD_WANTED(mode));
    if (wanted) {
        news_locked(pd, mode); /* for who has not begun to wait yet */
        pass_on_locked(pd, mode, &t);
    }
    word_unlock(&pd->word, word);
    if (unlikely(t.first)) {
        waiter_ready_list(t.first);
    }
}

/* Under the lock, so that nobody finds the number before it is free, or another's. */
int pd_close_locked(struct pd *pd, int fd, int *err)
{
    unregister_locked(pd, fd);
    if (unlikely(pd->ring)) {
        return PD_LETS_GO;
    }
    int second = sys_close_number(fd, err);
    clear_locked(pd);
    return second;
}

/* One call less. The result of pd_close_locked(), or -1. */
static int drop_ref_locked(struct pd *pd, int fd)
{
    int err;
    if (unlikely(pd->refs == 0)) {
        throw("pd: descriptor %d is used by nobody, and one more ends", fd);
    }
    pd->refs--;
    if (likely(pd->refs || (pd->ours && !pd->closing))) {
        return -1;
    }
    if (pd->closing) {
        return pd_close_locked(pd, fd, &err);
    }
    pd->told = 0;
    unregister_locked(pd, fd);
    return unlikely(pd->ring) ? PD_LETS_GO : -1;
}

int pd_end(struct pd *pd, int fd, enum fd_mode mode, bool passes_on, bool drained, uint32_t edge)
{
    struct taken t = {NULL, &t.first};
    uint64_t word = word_lock(&pd->word);
    if (drained && pd->streams && !pd->odd && edge == at_load(&pd->edges[FD_READ], RELAXED)) {
        pd->empty = true;
    }
    if (unlikely(passes_on && pd->q[mode].first)) {
        pass_on_locked(pd, mode, &t);
    }
    int second = drop_ref_locked(pd, fd);
    word_unlock(&pd->word, word);
    if (unlikely(t.first)) {
        waiter_ready_list(t.first);
    }
    return second;
}

/* --- waiting ------------------------------------------------------------------------------------------------- */

/* 0, FD_NOT_POLLABLE or -errno. */
static int register_locked(struct pd *pd, int fd, enum fd_mode mode, bool *fresh)
{
    if (likely(pd->registered && pd->ours)) {
        return 0;
    }
    if (unlikely(netpoll_by_ring)) {
        return ring_ask_locked(pd, fd, mode, fresh);
    }
    pd->seq += !pd->registered;
    int err = netpoll_add(pd, fd);
    *fresh = !err;
    err = err == -EEXIST ? 0 : err; /* the file of before, most likely */
    pd->registered |= !err;
    return err == -EPERM ? FD_NOT_POLLABLE : err;
}

/* 1: it must wait. Else why it need not. */
static int must_wait_locked(struct pd *pd, const struct chan_op *op, int *why)
{
    bool fresh = false;
    *why = 0;
    if (unlikely(pd->closing || pd->cancelled)) {
        *why = pd->closing ? -EBADF : -ECANCELED;
        return false;
    }
    if (!op->fd.watches && at_load(&pd->edges[op->fd.mode], RELAXED) != op->fd.edge) {
        return false; /* [D1] */
    }
    if (op->fd.timed && pd->times != op->fd.edge) {
        *why = FD_TIME;
        return false; /* [D1], too */
    }
    *why = register_locked(pd, op->fd.number, (enum fd_mode)op->fd.mode, &fresh);
    /* One that is registered now is reported if it is ready. One that was may have been, and the event gone
     * to another. */
    return !*why
           && !(op->fd.watches && !fresh && fd_is_ready(op->fd.number, (enum fd_mode)op->fd.mode));
}

bool pd_arm(struct chan_op *op)
{
    int why;
    struct pd *pd = pd_get(op->fd.number);
    if (unlikely(!pd)) {
        op->fd.why = (int16_t)pd_none(op->fd.number);
        return false;
    }
    uint64_t word = word_lock(&pd->word);
    bool waits = must_wait_locked(pd, op, &why);
    op->fd.why = (int16_t)why;
    if (op->fd.watches) {
        op->fd.counted = true; /* the others are counted already */
        op->fd.edge = pd->life;
        pd->refs++;
    }
    if (waits) {
        put_locked(pd, op);
    }
    word_unlock(&pd->word, word);
    if (unlikely(waits && !getm())) {
        netpoll_wake(); /* [P2] */
    }
    return waits;
}

bool pd_disarm(struct chan_op *op)
{
    struct pd *pd = op->fd.number < 0 ? NULL : pd_get(op->fd.number);
    if (!pd) {
        return true;
    }
    int second = -1;
    uint64_t word = word_lock(&pd->word);
    if (op->queued) {
        remove_locked(pd, op);
    }
    /* A foreign thread may come back after the end of the runtime, which has forgotten it. */
    if (op->fd.counted && op->fd.edge == pd->life) {
        second = drop_ref_locked(pd, op->fd.number);
    }
    word_unlock(&pd->word, word);
    op->fd.edge = (uint32_t)second;
    return second == -1;
}

/* --- news ------------------------------------------------------------------------------------------------------ */

/* Of events that are still to be told: of the far one what is known of it, of the near one who waits, on whose
 * stack that stands. Others may be at it meanwhile: only a hint where to look. */
__attribute__((no_sanitize("thread"))) void pd_prefetch(uint64_t far, uint64_t near)
{
    const char *pd = (const char *)pd_get((int)(uint32_t)far);
    __builtin_prefetch(pd);
    __builtin_prefetch(pd + CACHE_LINE);
    __builtin_prefetch(pd_get((int)(uint32_t)near)->q[FD_READ].first);
}

struct waiter *pd_event(uint64_t tag, uint32_t ready)
{
    struct taken t = {NULL, &t.first};
    int fd = (int)(uint32_t)tag;
    struct pd *pd = pd_get(fd);
    uint64_t word = word_lock(&pd->word);
    if (likely(pd->registered && pd->seq == (uint32_t)(tag >> 32))) {
        event_locked(pd, fd, ready, &t);
    }
    word_unlock(&pd->word, word);
    return t.first;
}

/* Who only watches is not told that it is ready, which it is not; or nothing, if its deadline is its own. */
static void tell_deadline_locked(struct pd *pd, enum fd_mode mode, struct taken *t)
{
    news_locked(pd, mode);
    for (struct chan_op *op = pd->q[mode].first, *next; op; op = next) {
        next = op->next;
        if (!op->fd.watches || op->fd.timed) {
            wake_locked(pd, op, op->fd.watches ? FD_TIME : 0, t);
        }
    }
}

int pd_deadline(int fd, int64_t read, int64_t write)
{
    struct taken t = {NULL, &t.first};
    struct pd *pd = pd_get(fd);
    if (!pd) {
        return pd_none(fd);
    }
    uint64_t word = word_lock(&pd->word);
    int err = pd->closing ? -EBADF : 0;
    int64_t when[2] = {read, write};
    for (int mode = FD_READ; !err && mode <= FD_WRITE; mode++) {
        if (pd->deadline[mode] != when[mode]) {
            pd->deadline[mode] = when[mode];
            pd->times++;
            tell_deadline_locked(pd, (enum fd_mode)mode, &t);
        }
    }
    word_unlock(&pd->word, word);
    if (t.first) {
        waiter_ready_list(t.first);
    }
    return err;
}

int pd_cancel(int fd)
{
    struct taken t = {NULL, &t.first};
    struct pd *pd = pd_get(fd);
    if (!pd) {
        return pd_none(fd);
    }
    uint64_t word = word_lock(&pd->word);
    int err = pd->closing ? -EBADF : 0;
    if (!err) {
        pd->cancelled = true;
        wake_all_locked(pd, -ECANCELED, &t);
    }
    word_unlock(&pd->word, word);
    if (t.first) {
        waiter_ready_list(t.first);
    }
    return err;
}

int pd_close(int fd, int *err)
{
    struct taken t = {NULL, &t.first};
    struct pd *pd = pd_get(fd);
    if (!pd) {
        return sys_close_number(fd, err);
    }
    int second = -1;
    uint64_t word = word_lock(&pd->word);
    *err = pd->closing ? -EBADF : 0;
    if (!*err) {
        /* Calls may be on a number that nobody has any more: whose it is next must not find it closing. */
        *err = pd->refs && sys_flags(fd) == -EBADF ? -EBADF : 0;
        pd->closing = !*err;
        wake_all_locked(pd, -EBADF, &t);
        if (pd->refs == 0) {
            second = pd_close_locked(pd, fd, err);
        }
    }
    word_unlock(&pd->word, word);
    if (t.first) {
        waiter_ready_list(t.first);
    }
    return second;
}

/* A new file. Who waits for an earlier one of that number, which was closed behind pirn's back, is not left
 * behind; nor is that one's deadline, or that it was cancelled. */
static void renew_locked(struct pd *pd, int fd, struct taken *t)
{
    pd->file++; /* for who was woken by something else, and is about to try again */
    wake_all_locked(pd, -EBADF, t);
    clear_locked(pd);
    if (unlikely(pd->ring)) {
        ring_let_go_locked(pd, fd);
    }
}

void pd_renew(int fd)
{
    struct taken t = {NULL, &t.first};
    struct pd *chunk = fd / CHUNK < CHUNKS ? at_load(&table[fd / CHUNK], ACQUIRE) : NULL; /* [D2] */
    if (!chunk) {
        return;
    }
    struct pd *pd = &chunk[fd % CHUNK];
    uint64_t word = word_lock(&pd->word);
    renew_locked(pd, fd, &t);
    word_unlock(&pd->word, word);
    if (unlikely(t.first)) {
        waiter_ready_list(t.first);
    }
}

int pd_made(int fd, enum fd_kind kind, bool streams, bool held)
{
    struct taken t = {NULL, &t.first};
    struct pd *pd = pd_get(fd);
    if (!pd) {
        return -ENOMEM;
    }
    uint64_t word = word_lock(&pd->word);
    renew_locked(pd, fd, &t);
    pd->kind = (uint8_t)kind;
    pd->ours = true;
    pd->held = held;
    pd->streams = streams;
    word_unlock(&pd->word, word);
    if (t.first) {
        waiter_ready_list(t.first);
    }
    return 0;
}

void pd_give(int fd)
{
    struct pd *pd = pd_get(fd);
    if (pd) {
        uint64_t word = word_lock(&pd->word);
        pd->held = false;
        word_unlock(&pd->word, word);
    }
}

/* One that may be in use already; or is adopted again, since it is not a plain stream any more. */
int pd_adopt(int fd, enum fd_kind kind, bool streams)
{
    struct taken t = {NULL, &t.first};
    struct pd *pd = pd_get(fd);
    if (!pd) {
        return -ENOMEM;
    }
    uint64_t word = word_lock(&pd->word);
    int err = pd->closing ? -EBADF : 0;
    if (!err) {
        pd->kind = (uint8_t)kind;
        pd->ours = true;
        if (pd->streams) { /* who waits may do so because of a hint that was wrong */
            news_locked(pd, FD_READ);
            pass_on_locked(pd, FD_READ, &t);
        }
        pd->streams = streams;
        pd->empty = false;
    }
    word_unlock(&pd->word, word);
    if (unlikely(t.first)) {
        waiter_ready_list(t.first);
    }
    return err;
}

/* --- the end of the runtime ------------------------------------------------------------------------------------ */

/* Threads that wait, and can go on without a runtime. */
static void wake_outliving_locked(struct pd *pd, struct taken *t)
{
    for (int mode = FD_READ; mode <= FD_WRITE; mode++) {
        for (struct chan_op *op = pd->q[mode].first, *next; op; op = next) {
            next = op->next;
            if (op->fd.outlives) {
                wake_locked(pd, op, op->fd.watches ? FD_ENDED : 0, t);
            }
        }
    }
}

static void forget(struct pd *pd, int fd)
{
    if (!pd->refs && !pd->seq && !pd->ours && !pd->closing && !pd->cancelled && !pd->deadline[0]
        && !pd->deadline[1]) {
        return; /* its page may never have been touched */
    }
    struct taken t = {NULL, &t.first};
    uint64_t word = word_lock(&pd->word);
    wake_outliving_locked(pd, &t);
    bool closes = pd->closing || pd->held; /* who was to close or to return it has been dropped */
    pd->refs = 0;
    pd->life++;
    pd->ring = 0;
    pd_forget_leavers_locked(pd);
    clear_locked(pd);
    word_unlock(&pd->word, word);
    for (struct waiter *w = t.first, *next; w; w = next) {
        next = w->next;
        foreign_ready(w);
    }
    if (closes) {
        sys_close(fd);
    }
}

void pd_forget_all(bool unmap)
{
    for (int i = 0; i < CHUNKS && at_load(&nchunks, RELAXED); i++) {
        struct pd *chunk = at_load(&table[i], RELAXED);
        for (int k = 0; chunk && k < CHUNK; k++) {
            forget(&chunk[k], i * CHUNK + k);
        }
        if (chunk && unmap) {
            at_store(&table[i], NULL, RELAXED);
            mem_unmap(chunk, CHUNK * sizeof *chunk);
            at_add(&nchunks, (uint32_t)-1, RELAXED);
        }
    }
}
