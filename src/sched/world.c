/* SPDX-License-Identifier: MIT */
/*
 * Stopping the world: no goroutine runs until it is started again, but the one that asked.
 *
 * Every P that runs is marked (p.retire), and stops where a P that is one too many would retire: at the
 * next switch of its thread, or when that leaves the runtime. A thread that computes is signalled, and
 * its goroutine queues, bound; one that blocks loses its P, without a signal. Ps that are idle stay so:
 * while sched.stopped is set nobody takes one.
 *
 * A thread that lost its P while it blocked may come back and run on to its next entry or tick of its
 * CPU clock, half a slice at most. With preemption off, one that computes is waited for.
 */
#include "sched/sched.h"

#define LOOK_EVERY ((int64_t)500 * 1000)

static at_u32 busy;     /* somebody has stopped it, or is about to */
static at_u32 nrunning; /* Ps that have yet to stop; futex */

void p_stopped_locked(struct p *pp)
{
    at_store(&pp->retire, at_load(&pp->retire, RELAXED) & ~(uint32_t)P_RETIRE_WORLD, RELAXED);
    at_store(&pp->status, P_STOPPED, RELAXED);
    at_add(&nrunning, (uint32_t)-1, RELEASE); /* pairs with the ACQUIRE of who waits */
    futex_wake(&nrunning, 1);
}

/* Any P that a stop still waits for. */
static bool is_awaited(struct p *pp)
{
    return at_load(&pp->retire, RELAXED) & P_RETIRE_WORLD;
}

static void mark_all(struct p *mine)
{
    uint32_t n = 0;
    lock(&sched.lock);
    sched.stopped = true;
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        if (pp != mine && at_load(&pp->status, RELAXED) == P_RUNNING) {
            at_store(&pp->retire, at_load(&pp->retire, RELAXED) | P_RETIRE_WORLD, RELAXED);
            n++;
        }
    }
    at_store(&nrunning, n, RELAXED);
    unlock(&sched.lock);
}

/* No thread holds them, and who makes one may wait for somebody who is stopped. */
static void stop_those_without_thread(void)
{
    lock(&sched.lock);
    for (struct p *pp; (pp = factory_take_back_locked());) {
        p_put_back_locked(pp);
    }
    unlock(&sched.lock);
}

/* In the runtime it is told to look when it leaves; outside it is stopped by a signal. */
static void press(struct p *pp)
{
    if (retake_for_world(pp)) {
        lock(&sched.lock);
        struct m *mp = at_load(&pp->m, RELAXED);
        if (mp && sched.preempt) {
            preempt_send(mp);
        }
        unlock(&sched.lock);
    }
    struct m *mp = at_load(&pp->m, RELAXED);
    if (mp) {
        at_or(&mp->attention, M_PREEMPT, RELAXED);
    }
}

/* The Ps go where there is work, as after a pirn_procs that made them. */
static void start(void)
{
    lock(&sched.lock);
    sched.stopped = false;
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        if (is_awaited(pp)) { /* it did not stop in time */
            at_store(&pp->retire, at_load(&pp->retire, RELAXED) & ~(uint32_t)P_RETIRE_WORLD,
                     RELAXED);
        } else if (at_load(&pp->status, RELAXED) == P_STOPPED) {
            p_put_back_locked(pp);
        }
    }
    at_store(&nrunning, 0, RELAXED);
    p_resize_put_off_locked();
    unlock(&sched.lock);
    at_store(&busy, 0, RELEASE);
    wake_all();
    lock(&sched.lock);
    deadlock_check_locked(0);
    unlock(&sched.lock);
}

/* False: not all have stopped in time, and the world goes on; or another has stopped it for too long. Not from
 * inside the runtime. */
bool world_stop(int64_t deadline)
{
    struct m *mp;
    uint32_t none = 0;
    for (;; none = 0) {
        mp = enter();
        if (at_cas(&busy, &none, 1, ACQUIRE, RELAXED)) {
            break;
        }
        leave();
        if (now_ns() >= deadline) { /* another has stopped it for long */
            return false;
        }
        pirn_yield();
    }
    mark_all(mp ? mp->p : NULL);
    for (uint32_t n; (n = at_load(&nrunning, ACQUIRE));) {
        int64_t now = now_ns();
        /* At the end of the runtime threads end with their Ps. */
        if (now >= deadline || (mp && m_told_to_stop(mp))) {
            start();
            leave();
            return false;
        }
        stop_those_without_thread();
        for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
            struct p *pp = at_load(&sched.allp[i], RELAXED);
            if (is_awaited(pp)) {
                press(pp);
            }
        }
        futex_wait(&nrunning, n, now + LOOK_EVERY);
    }
    leave();
    return true;
}

void world_start(void)
{
    enter();
    start();
    leave();
}

/* The runtime has ended. Who had stopped the world may have been stopped itself, at its next entry. */
void world_end(void)
{
    at_store(&busy, 0, RELAXED);
}
