/* SPDX-License-Identifier: MIT */
/*
 * Descriptors as cases of a select, and signals: one thread, made when the first is used, that waits in
 * poll() for all of them. It runs no goroutine: who waits is made ready as by any foreign thread.
 *
 * A list of operations, under the lock. The thread copies what it needs from it, polls without the lock,
 * and then looks at the list again: an operation that was in this poll, is still there and whose
 * descriptor is ready is taken off and claims its select. So an operation is touched under the lock only,
 * and once it has been removed it may be gone. Readiness is level-triggered, any number may wait for one
 * descriptor, which is polled once for all of them, and descriptors are not remembered from one wait to
 * the next: the number may mean another file then.
 *
 * [P3] Who sees that it is up, or that one more try has been made, sees what came of it.
 *
 * An eventfd ends the poll when the list grows. [P1] It is written after the list has changed, and read
 * before the list is copied. [P2] A handler says that it is about to write, and then looks which it is;
 * the stop takes it away, and then waits for handlers, before it closes it.
 */
#include "io/poller.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/signal.h"

#define PARTS_EVERY 5 /* ms */

static struct {
    struct lock lock;
    /* under the lock */
    struct chan_op *first;
    uint32_t n;
    bool runs;
    bool delivers; /* has taken some off the list, and not yet made them ready */
    /* the thread's */
    struct pollfd *fds; /* the eventfd, and behind it one for each descriptor, sorted */
    uint32_t room;
    uint32_t round; /* which poll this is */
    pthread_t thread;
    at_u32 stop;
    at_u32 up;       /* runs */
    at_u32 tries;    /* to start it; futex */
    at_u32 err;      /* of the last */
    at_u32 breaking; /* how many are inside poller_break */
    AT(int) event;   /* eventfd; -1: none */
} poller = {.lock = LOCK_INIT(RANK_POLLER), .event = {-1}};

static bool is_fd_case(const pirn_case *k)
{
    return k->kind_ == PIRN_CASE_READABLE_ || k->kind_ == PIRN_CASE_WRITABLE_;
}

short poller_events(const pirn_case *k)
{
    return k->kind_ == PIRN_CASE_READABLE_ ? POLLIN | POLLPRI | POLLRDHUP : POLLOUT;
}

/* Also from a signal handler. */
void poller_break(void)
{
    uint64_t one = 1;
    int saved = errno;
    at_add(&poller.breaking, 1, RELAXED);
    at_fence(SEQ_CST); /* [P2] */
    int event = at_load(&poller.event, RELAXED);
    if (event >= 0 && write(event, &one, sizeof one) < 0) {
        /* full: then it is readable */
    }
    at_add(&poller.breaking, (uint32_t)-1, RELEASE); /* the write is over */
    errno = saved;
}

/* --- the list ------------------------------------------------------------------------------------- */

static void unlink_locked(struct chan_op *op)
{
    op->queued = false;
    *(op->prev ? &op->prev->next : &poller.first) = op->next;
    if (op->next) {
        op->next->prev = op->prev;
    }
    poller.n--;
}

/* The select can't go on to its end before all are there: it needs the lock for that. */
void poller_add(struct chan_op *ops, const pirn_case *cases, int n)
{
    lock(&poller.lock);
    for (int i = 0; i < n; i++) {
        struct chan_op *op = &ops[i];
        if (is_fd_case(&cases[i])) {
            op->queued = true;
            op->prev = NULL;
            op->next = poller.first;
            if (op->next) {
                op->next->prev = op;
            }
            poller.first = op;
            poller.n++;
        }
    }
    unlock(&poller.lock);
    poller_break(); /* [P1] */
}

void poller_remove(struct chan_op *op)
{
    lock(&poller.lock);
    if (op->queued) {
        unlink_locked(op);
    }
    unlock(&poller.lock);
}

bool poller_idle(void)
{
    lock(&poller.lock);
    bool idle = poller.runs && poller.n == 0 && !poller.delivers && !signals_watched();
    unlock(&poller.lock);
    return idle;
}

void poller_look(pirn_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        if (is_fd_case(&cases[i])) {
            struct pollfd fd = {.fd = cases[i].fd_, .events = poller_events(&cases[i])};
            bool ready =
                fd.fd < 0 || poll(&fd, 1, 0) > 0; /* no descriptor: as one that is closed */
            cases[i].elem_ = ready ? &cases[i] : NULL;
        }
    }
}

/* --- the thread ------------------------------------------------------------------------------------ */

static int by_fd(const void *a, const void *b)
{
    const struct pollfd *x = a, *y = b;
    return (x->fd > y->fd) - (x->fd < y->fd);
}

/* One of each: poll() refuses more than may be open. The new number. */
static uint32_t merge(struct pollfd *fds, uint32_t n)
{
    uint32_t kept = 0;
    qsort(fds, n, sizeof fds[0], by_fd);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && fds[kept - 1].fd == fds[i].fd) {
            fds[kept - 1].events |= fds[i].events;
        } else {
            fds[kept++] = fds[i];
        }
    }
    return kept;
}

/* How many to poll; the eventfd is the first. */
static uint32_t copy_list(void)
{
    lock(&poller.lock);
    while (poller.room < poller.n + 1) {
        uint32_t room = 2 * (poller.n + 1);
        unlock(&poller.lock); /* who has malloc's lock may be waiting for who waits for this one */
        struct pollfd *fds = realloc(poller.fds, room * sizeof *fds);
        if (!fds) {
            fatal("out of memory: cannot wait for %u descriptors", room / 2);
        }
        poller.fds = fds;
        poller.room = room;
        lock(&poller.lock);
    }
    uint32_t n = 0;
    poller.round++;
    poller.fds[n++] = (struct pollfd){.fd = at_load(&poller.event, RELAXED), .events = POLLIN};
    for (struct chan_op *op = poller.first; op; op = op->next) {
        op->fd.round = poller.round;
        poller.fds[n++] = (struct pollfd){.fd = op->fd.number, .events = op->fd.events};
    }
    unlock(&poller.lock);
    return 1 + merge(poller.fds + 1, n - 1);
}

/*
 * The limit of open descriptors has sunk below the number of those that are open, and poll() takes no
 * more at a time: some by some, every few milliseconds.
 */
static int poll_in_parts(uint32_t n)
{
    int ready = 0;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    uint32_t most = (uint32_t)min_u64(max_u64(limit.rlim_cur, 1), n);
    for (uint32_t i = 0; i < n; i += most) {
        int k = poll(poller.fds + i, min_u64(most, n - i), 0);
        ready += k > 0 ? k : 0;
    }
    if (!ready) {
        poll(NULL, 0, PARTS_EVERY);
    }
    return ready;
}

static int poll_all(uint32_t n)
{
    int ready = poll(poller.fds, n, -1);
    if (ready < 0 && errno == EINVAL) {
        return poll_in_parts(n);
    }
    if (ready < 0 && errno != EINTR && errno != EAGAIN) {
        fatal("cannot wait for descriptors: %s", strerrordesc_np(errno));
    }
    return ready;
}

/* What the descriptor is ready for. */
static short ready_for(const struct chan_op *op, uint32_t n)
{
    struct pollfd key = {.fd = op->fd.number};
    struct pollfd *fd = bsearch(&key, poller.fds + 1, n - 1, sizeof key, by_fd);
    return fd ? fd->revents & (op->fd.events | POLLERR | POLLHUP | POLLNVAL) : 0;
}

static struct waiter *take_ready(uint32_t n)
{
    struct waiter *first = NULL, **last = &first;
    lock(&poller.lock);
    for (struct chan_op *op = poller.first, *next; op; op = next) {
        void *none = NULL;
        next = op->next;
        if (op->fd.round == poller.round && ready_for(op, n)) {
            unlink_locked(op);
            if (at_cas(op->winner, &none, (void *)op, RELAXED, RELAXED)) {
                op->ok = true;
                *last = op->waiter;
                last = &op->waiter->next;
            }
        }
    }
    *last = NULL;
    poller.delivers = first;
    unlock(&poller.lock);
    return first;
}

static void deliver(struct waiter *first)
{
    struct visit v = visit_again();
    if (first) {
        waiter_ready_list(first);
    }
    signals_deliver(v);
    visit_end(v);
    lock(&poller.lock);
    poller.delivers = false;
    unlock(&poller.lock);
}

static void *poller_main(void *arg)
{
    (void)arg;
    uint64_t count;
    while (!at_load(&poller.stop, RELAXED)) {
        uint32_t n = copy_list();
        if (poll_all(n) <= 0) {
            continue;
        }
        if (poller.fds[0].revents && read(poller.fds[0].fd, &count, sizeof count) < 0) {
            throw("poller: its eventfd is gone: %s", strerrordesc_np(errno));
        } /* [P1] */
        struct waiter *first = take_ready(n);
        if (first || signals_pending()) {
            deliver(first);
        }
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------------- */

/* By the factory, or a thread that is none of pirn's. */
int poller_start_here(void)
{
    int err = 0;
    lock(&poller.lock);
    bool starts = !poller.runs;
    if (starts) {
        int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        err = event < 0 ? -errno : 0;
        if (!err) {
            at_store(&poller.event, event, RELAXED);
            at_store(&poller.stop, 0, RELAXED);
            err = thread_create(&poller.thread, "pirn-poller", poller_main, NULL, true);
            poller.runs = !err;
        }
        if (err && event >= 0) {
            at_store(&poller.event, -1, RELAXED);
            close(event);
        }
    }
    at_store(&poller.err, (uint32_t)-err, RELAXED);
    at_store(&poller.up, poller.runs, RELEASE); /* [P3] */
    at_add(&poller.tries, 1, RELEASE);          /* [P3] */
    futex_wake(&poller.tries, INT_MAX);
    unlock(&poller.lock);
    if (starts && !err) {
        signals_resume();
    }
    return err;
}

/* A thread is made with the help of malloc, which a goroutine may use only outside the runtime, where it
 * may take no lock of pirn's: so the factory does it. Not from inside the runtime. */
int poller_start(void)
{
    int err = 0;
    if (at_load(&poller.up, ACQUIRE)) { /* [P3] */
        return 0;
    }
    if (!getm()) {
        if (!foreign_enter()) {
            return -ESRCH;
        }
        err = poller_start_here();
        foreign_leave();
        return err;
    }
    uint32_t tries = at_load(&poller.tries, ACQUIRE); /* [P3] */
    factory_want_poller();
    while (at_load(&poller.tries, ACQUIRE) == tries) {
        stop_point();
        futex_wait(&poller.tries, tries, now_ns() + 10 * PIRN_MS);
    }
    return at_load(&poller.up, RELAXED) ? 0 : -(int)at_load(&poller.err, RELAXED);
}

/* The runtime starts: some may watch signals since an earlier one. */
int poller_restart(void)
{
    return signals_watched() ? poller_start_here() : 0;
}

/* The runtime ends: no goroutine waits for it any more. */
void poller_stop(void)
{
    if (!poller.runs) {
        return;
    }
    at_store(&poller.stop, 1, RELAXED);
    poller_break();
    pthread_join(poller.thread, NULL);
    signals_suspend();
    int event = at_xchg(&poller.event, -1, RELAXED);
    at_fence(SEQ_CST); /* [P2] */
    while (at_load(&poller.breaking, ACQUIRE)) {
        thread_yield();
    }
    close(event);
    free(poller.fds);
    poller.fds = NULL;
    poller.room = 0;
    poller.runs = false;
    at_store(&poller.up, 0, RELAXED);
}
