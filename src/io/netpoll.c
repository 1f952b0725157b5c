/* SPDX-License-Identifier: MIT */
/*
 * The pollers, and who looks at them.
 *
 * There is one for each P that has waited for a descriptor; what a goroutine waits for is registered with
 * that of its P, so that a connection stays where it is. They belong to the runtime: one of a P that has
 * retired is still looked at. A parent holds them all, level-triggered, and an eventfd. They are made when
 * they are first needed.
 *
 * Who looks, always on g0 but for sysmon:
 * - the owner of the P, each time that it has nothing else to run;
 * - when Ps are idle, one sleeping M (sched.poll_m), which sleeps in the parent in place of its futex,
 *   until the time that it keeps (idle.c). It is woken by what is ready, or by the eventfd;
 * - sysmon, every 10 ms while Ps run and no M sleeps there.
 *
 * Who sleeps there is posted as any other M; [P1] it says that it polls, and then looks at its note; who
 * posts sets the note, and then looks whether it polls, and if so writes to the eventfd.
 *
 * A wait by a foreign thread begins without an M that goes to sleep afterwards, so it wakes one. [P2]
 * waiting is counted, then a fence, then it looks for idle Ps; who goes to sleep puts its P on the idle
 * list, [W2], and then looks whether anybody waits.
 *
 * No spinning: descriptors are edge-triggered, so one that has hung up is reported once. An M that is
 * woken by the parent, and finds no idle P, sleeps on its futex: all Ps run, and look themselves.
 *
 * With PIRN_IO_URING, where that can be used, there are no pollers: the ring's thread tells who waits
 * (uring_poll.c), and Ms have nothing to look at.
 *
 * Lock: netpoll.lock (RANK_POLLER), for making pollers.
 */
#include <errno.h>
#include <poll.h>

#include "io/fd.h"
#include "os/poll.h"
#include "os/sysio.h"

#define TAG_BREAK UINT64_MAX

typedef AT(int) fd1_t; /* a descriptor + 1; 0: none */

static struct {
    struct lock lock;
    fd1_t parent1, event1;
    fd1_t poller1[PROCS_MAX];   /* by the number of the P */
    at_u32 foreign;             /* netpoll_foreign */
    at_u32 waits CACHE_ALIGNED; /* operations on queues */
} netpoll = {.lock = LOCK_INIT(RANK_POLLER)};

bool netpoll_by_ring;

static COLD _Noreturn void gone(int err)
{
    fatal("cannot wait for descriptors, somebody has closed those of the poller: %s",
          strerrordesc_np(-err));
}

void netpoll_waits(int change)
{
    at_add(&netpoll.waits, (uint32_t)change, RELEASE); /* [P3] */
}

void netpoll_foreign(int change)
{
    at_add(&netpoll.foreign, (uint32_t)change, RELEASE);
}

bool netpoll_wanted(void)
{
    /* [P3]: then there are pollers; but not for a foreign thread that has waited since an earlier runtime, and
     * not with io_uring */
    return at_load(&netpoll.waits, ACQUIRE) && likely(at_load(&netpoll.poller1[0], RELAXED));
}

bool netpoll_awaited(void)
{
    return netpoll_wanted() || (netpoll_by_ring && at_load(&netpoll.waits, ACQUIRE));
}

bool netpoll_unattended(void)
{
    return netpoll_wanted() && !at_load(&sched.poll_m, RELAXED);
}

/* --- making them ----------------------------------------------------------------------------------------- */

/* One more, for P i. */
static int make_poller_locked(uint32_t i)
{
    int fd = poll_open();
    int err = fd < 0 ? fd : poll_add_level(at_load(&netpoll.parent1, RELAXED) - 1, fd, i);
    if (!err) {
        at_store(&netpoll.poller1[i], fd + 1, RELEASE);
    } else if (fd >= 0) {
        sys_close(fd);
    }
    return err;
}

static int open_locked(void)
{
    int event = -1, parent = poll_open();
    int err = parent < 0 ? parent : 0;
    if (!err) {
        event = poll_break_open();
        err = event < 0 ? event : poll_add_level(parent, event, TAG_BREAK);
    }
    if (!err) {
        at_store(&netpoll.parent1, parent + 1, RELAXED);
        err = make_poller_locked(0);
    }
    if (err) {
        at_store(&netpoll.parent1, 0, RELAXED);
        if (event >= 0) {
            sys_close(event);
        }
        if (parent >= 0) {
            sys_close(parent);
        }
        return err;
    }
    at_store(&netpoll.event1, event + 1, RELAXED);
    return 0;
}

/* In the runtime. */
int netpoll_open(void)
{
    int err = 0;
    if (likely(at_load(&netpoll.poller1[0], ACQUIRE)) || netpoll_by_ring) {
        return 0;
    }
    lock(&netpoll.lock);
    if (!at_load(&netpoll.poller1[0], RELAXED)) {
        err = open_locked();
    }
    unlock(&netpoll.lock);
    return err;
}

int netpoll_open_visiting(void)
{
    int err = -ESRCH;
    struct m *mp = enter();
    if (mp || foreign_enter()) {
        err = netpoll_open();
        mp ? leave() : foreign_leave();
    }
    return err;
}

/* The number of the poller to use: that of this P, if there is, or can be, one. */
static uint32_t mine(void)
{
    struct m *mp = getm();
    uint32_t i = mp && mp->p ? (uint32_t)mp->p->id : 0;
    if (unlikely(!at_load(&netpoll.poller1[i], ACQUIRE))) {
        lock(&netpoll.lock);
        if (!at_load(&netpoll.poller1[i], RELAXED) && make_poller_locked(i)) {
            i = 0; /* no descriptor for one more */
        }
        unlock(&netpoll.lock);
    }
    return i;
}

/* --- registering ------------------------------------------------------------------------------------------- */

int netpoll_add(struct pd *pd, int fd)
{
    int err = netpoll_open();
    if (err) {
        return err;
    }
    uint64_t tag = (uint64_t)pd->seq << 32 | (uint32_t)fd;
    if (pd->registered) {
        return poll_add_new(at_load(&netpoll.poller1[pd->poller], RELAXED) - 1, fd, tag);
    }
    pd->poller = (uint16_t)mine();
    return poll_add(at_load(&netpoll.poller1[pd->poller], RELAXED) - 1, fd, tag);
}

void netpoll_remove(struct pd *pd, int fd)
{
    poll_remove(at_load(&netpoll.poller1[pd->poller], RELAXED) - 1, fd);
}

/* --- looking ------------------------------------------------------------------------------------------------- */

/* Makes ready who waits for what has come. True: somebody did. */
static bool look_at_poller(uint32_t i)
{
    struct poll_event events[POLL_BATCH];
    struct waiter *first = NULL, **last = &first;
    int fd1 = at_load(&netpoll.poller1[i], ACQUIRE);
    int n = fd1 ? poll_wait(fd1 - 1, events, POLL_BATCH, 0) : 0;
    if (unlikely(n < 0)) {
        gone(n);
    }
    for (int k = 0; k < n; k++) {
        if (k + 8 < n) {
            pd_prefetch(events[k + 8].tag, events[k + 4].tag);
        }
        *last = pd_event(events[k].tag, events[k].ready);
        while (*last) {
            last = &(*last)->next;
        }
    }
    if (first) {
        waiter_ready_list(first);
    }
    return first;
}

/* mp has a P, and nothing to run. */
bool netpoll_look(struct m *mp)
{
    bool any = false;
    while (mp->npolled) {
        any |= look_at_poller(mp->polled[--mp->npolled]);
    }
    return any || (netpoll_wanted() && look_at_poller((uint32_t)mp->p->id));
}

/* Sysmon's: what nobody has looked at. */
void netpoll_look_at_all(void)
{
    struct poll_event events[POLL_BATCH];
    int fd1 = at_load(&netpoll.poller1[0], ACQUIRE) ? at_load(&netpoll.parent1, RELAXED) : 0;
    netpoll_waits(1); /* no deadlock is to be seen before who is woken can be seen in a queue */
    int n = fd1 ? poll_wait(fd1 - 1, events, POLL_BATCH, 0) : 0;
    if (unlikely(n < 0)) {
        gone(n);
    }
    for (int i = 0; i < n; i++) {
        if (events[i].tag != TAG_BREAK) {
            look_at_poller((uint32_t)events[i].tag);
        }
    }
    netpoll_waits(-1);
}

/* --- sleeping ------------------------------------------------------------------------------------------------ */

/* Sleeps in the parent: until the note is posted (true), or something is ready, or it is time. */
bool netpoll_sleep(struct m *mp, int64_t until)
{
    struct poll_event events[ARRAY_LEN(mp->polled) + 1];
    int n = 0;
    at_store(&mp->polls, 1, RELAXED);
    at_fence(SEQ_CST); /* [P1] */
    if (!at_load(&mp->park.posted, ACQUIRE)) {
        n = poll_wait(at_load(&netpoll.parent1, RELAXED) - 1, events, (int)ARRAY_LEN(events),
                      until);
        if (unlikely(n < 0)) {
            gone(n);
        }
    }
    at_store(&mp->polls, 0, RELAXED);
    mp->npolled = 0;
    for (int i = 0; i < n; i++) {
        if (events[i].tag == TAG_BREAK) {
            poll_break_clear(at_load(&netpoll.event1, RELAXED) - 1);
        } else if (mp->npolled < ARRAY_LEN(mp->polled)) {
            mp->polled[mp->npolled++] = (uint16_t)events[i].tag;
        }
    }
    return at_load(&mp->park.posted, ACQUIRE);
}

void netpoll_break(void)
{
    int fd1 = at_load(&netpoll.event1, RELAXED);
    if (fd1) {
        poll_break_tell(fd1 - 1);
    }
}

void netpoll_wake(void)
{
    at_fence(SEQ_CST); /* [P2] */
    if (at_load(&sched.npidle, RELAXED) && !at_load(&sched.nspinning, RELAXED)
        && netpoll_unattended()) {
        wake_one(NULL);
    }
}

/* --- cases of a select ---------------------------------------------------------------------------------------- */

bool fd_is_ready(int fd, enum fd_mode mode)
{
    short events = mode == FD_READ ? POLLIN | POLLPRI | POLLRDHUP : POLLOUT;
    return fd < 0 || sys_poll(fd, events, 0) != 0; /* no descriptor: as one that is closed */
}

void fd_cases_look(pirn_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        int kind = cases[i].kind_;
        if (kind == PIRN_CASE_READABLE_ || kind == PIRN_CASE_WRITABLE_) {
            bool ready =
                fd_is_ready(cases[i].fd_, kind == PIRN_CASE_READABLE_ ? FD_READ : FD_WRITE);
            cases[i].elem_ = ready ? &cases[i] : NULL;
        }
    }
}

/* --- the end of the runtime ------------------------------------------------------------------------------------ */

static void close_one(fd1_t *at)
{
    int fd1 = at_xchg(at, 0, RELAXED);
    if (fd1) {
        sys_close(fd1 - 1);
    }
}

/* No goroutine is left, and no thread looks. */
void netpoll_stop(void)
{
    pd_forget_all(at_load(&netpoll.foreign, ACQUIRE) == 0);
    for (uint32_t i = 0; i < PROCS_MAX; i++) {
        close_one(&netpoll.poller1[i]);
    }
    close_one(&netpoll.parent1);
    close_one(&netpoll.event1);
    netpoll_by_ring = false;
}
