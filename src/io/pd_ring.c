/* SPDX-License-Identifier: MIT */
/*
 * Poll descriptors with io_uring: what it tells, and waiting until it has let go of a file: pd.c,
 * invariant 5.
 */
#include "io/pd.h"
#include "os/sysio.h"

struct leaver {
    struct leaver *next;
    struct waiter *waiter;
    int fd, second, err;
    bool over; /* nothing is left to be done */
};

/* True: not yet. Else what is left to be done is done, if another has not been faster. */
static bool has_it_still(struct leaver *l, bool waits)
{
    struct pd *pd = pd_get(l->fd);
    uint64_t word = word_lock(&pd->word);
    l->over = !(pd->ring & RING_STOPS_ANY);
    if (l->over && pd->closing && pd->refs == 0) {
        l->second = pd_close_locked(pd, l->fd, &l->err);
        l->over = l->second != PD_LETS_GO;
    }
    bool still = !l->over;
    if (still && waits) {
        l->next = pd->leavers;
        pd->leavers = l;
        netpoll_waits(1);
    }
    word_unlock(&pd->word, word);
    return still; /* then l may be gone */
}

static bool commit_leave(struct g *gp, void *arg)
{
    (void)gp;
    return has_it_still(arg, true);
}

int pd_wait_gone(struct visit *v, int fd, int *err)
{
    struct waiter foreign;
    struct leaver l = {.fd = fd, .second = -1};
    /* Twice: when the ring has let go, it closes the number. */
    while (!l.over && (v->mp || v->entered)) {
        l.waiter = waiter_of(v->mp, &foreign, NULL);
        visit_park(*v, l.waiter, commit_leave, &l, WAIT_CLOSE);
        v->mp = v->mp ? getm() : NULL;
        v->entered =
            v->entered && foreign_enter(); /* or the runtime has ended, and has closed it */
    }
    *err = l.err;
    return l.second;
}

void pd_settle(struct visit v, struct chan_op *op)
{
    struct leaver l = {.fd = op->fd.number, .second = (int)op->fd.edge};
    if (l.second == PD_LETS_GO) {
        if (v.mp) {
            v.mp = getm();
            l.second = pd_wait_gone(&v, l.fd, &l.err);
        } else {
            l.second = -1;
            while (has_it_still(&l, false)) {
                thread_yield();
            }
        }
    }
    if (unlikely(l.second >= 0)) {
        fd_close_late(v.mp, l.second);
    }
}

static void wake_leavers_locked(struct pd *pd, struct taken *t)
{
    struct leaver *l = pd->leavers;
    pd->leavers = NULL;
    for (struct leaver *next; l; l = next) {
        next = l->next;
        netpoll_waits(-1);
        l->waiter->next = NULL;
        *t->last = l->waiter;
        t->last = &l->waiter->next;
    }
}

struct waiter *pd_ring_event(uint64_t tag, enum fd_mode mode, uint32_t ready, bool over)
{
    struct taken t = {NULL, &t.first};
    bool fresh;
    int fd = (int)(uint32_t)tag;
    struct pd *pd = pd_get(fd);
    uint64_t word = word_lock(&pd->word);
    if (likely(pd->seq == (uint32_t)(tag >> 32) && !(pd->ring & RING_STOPS(mode)))) {
        event_locked(pd, fd, ready, &t);
        pd->told |= (uint8_t)(1u << mode);
    }
    if (over) {
        pd->ring &= (uint8_t) ~(RING_ASKED(mode) | RING_STOPS(mode));
        if (!(pd->ring & RING_STOPS_ANY)) {
            wake_leavers_locked(pd, &t);
        }
        /* One was woken, and may have better things to do; or they came after it was told to stop. */
        if (pd->q[mode].first) {
            ring_ask_locked(pd, fd, mode, &fresh); /* or the runtime ends */
        }
    }
    word_unlock(&pd->word, word);
    return t.first;
}

/* The runtime ends: they are in frames of goroutines that are dropped. */
void pd_forget_leavers_locked(struct pd *pd)
{
    for (; pd->leavers; pd->leavers = pd->leavers->next) {
        netpoll_waits(-1);
    }
}
