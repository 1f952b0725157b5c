/* SPDX-License-Identifier: MIT */
/*
 * Ms: kernel threads that run goroutines. Made by the factory, reused from the idle list, ended
 * with the runtime.
 */
#include <stdlib.h>

#include "sched/switch.h"

static __thread struct m *tls_m __attribute__((tls_model("initial-exec")));
ptrdiff_t m_tls_offset;

/* The distance from the thread pointer is the same in every thread: initial-exec. */
__attribute__((constructor(101))) static void m_tls_init(void)
{
    m_tls_offset = (char *)&tls_m - arch_thread_pointer();
}

/* For the last words of a thread that fails on g0: what it calls sees a thread without a
 * goroutine. */
void m_become_foreign(void)
{
    tls_m = NULL;
}

/* The thread was told to stop. From a goroutine that will never go on. */
void m_leave_for_good(struct m *mp)
{
    mp->commit = NULL;
    mp->nextg = NULL;
    mp->left = mp->curg;
    switch_to(mp, mp->curg, &mp->g0);
    throw("m: a goroutine of a stopped runtime was resumed");
}

static void *m_thread(void *arg)
{
    struct m *mp = arg;
    void *lo;
    size_t size;
    tls_m = mp;
    pthread_sigmask(SIG_SETMASK, &sched.sigmask, NULL);
    thread_stack_bounds(&lo, &size);
    tool_thread_begin(&mp->g0.tool, lo, size);
    void *altstack = thread_altstack_begin();
    m_run(mp);
    thread_altstack_end(altstack);
    tls_m = NULL;
    lock(&sched.lock);
    mp->ended = true;
    if (!mp->abandoned) {
        at_count(&sched.nm_gone, 1);
        futex_wake(&sched.nm_gone, 1);
    }
    unlock(&sched.lock);
    return NULL;
}

/* Makes an M that runs pp, and gp first. By the factory, or before any M runs. */
int m_start(struct p *pp, struct g *gp, bool spinning)
{
    char name[16];
    struct m *mp =
        aligned_alloc(CACHE_LINE, (sizeof *mp + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!mp) {
        return -ENOMEM;
    }
    *mp = (struct m){.p = pp, .nextg = gp, .spinning = spinning};
    at_store(&mp->g0.status, G_RUNNING, RELAXED);
    lock(&sched.lock);
    if ((int)sched.nm >= sched.config.max_threads) {
        unlock(&sched.lock);
        say("pirn: program exceeds %d-thread limit\n", sched.config.max_threads);
        fatal("thread exhaustion");
    }
    mp->id = (int)sched.nm++;
    mp->all = sched.allm;
    sched.allm = mp;
    unlock(&sched.lock);
    rand_seed(&mp->rand, (uint64_t)now_ns() + (uint64_t)mp->id);
    fmt(name, sizeof name, "pirn-m%d", mp->id);
    /* All Ms are made by one thread at a time, so this one is still the head of the list. */
    int err = thread_create(&mp->thread, name, m_thread, mp, true);
    if (err) {
        lock(&sched.lock);
        sched.allm = mp->all;
        sched.nm--;
        unlock(&sched.lock);
        free(mp);
    }
    return err;
}

static void tell_all_to_stop(void)
{
    lock(&sched.lock);
    for (struct m *mp = sched.allm; mp; mp = mp->all) {
        at_store(&mp->stop, 1, RELAXED);
    }
    for (struct m *mp; (mp = midle_get_locked());) {
        mp->nextp = NULL;
        note_post(&mp->park);
    }
    unlock(&sched.lock);
}

/* An M on its own stack is in the runtime and will come: only goroutines are left behind. */
__attribute__((no_sanitize("thread"))) static NOINLINE bool some_on_g0(void)
{
    for (struct m *mp = sched.allm; mp; mp = mp->all) {
        if (!mp->ended && !mp->curg) {
            return true;
        }
    }
    return false;
}

static void wait_for_end(int64_t grace)
{
    int64_t now = now_ns(), deadline = grace > INT64_MAX - now ? INT64_MAX : now + grace;
    for (;;) {
        uint32_t gone = at_load(&sched.nm_gone, RELAXED); /* the join orders */
        if (gone == sched.nm) {
            return;
        }
        if (!futex_wait(&sched.nm_gone, gone, deadline)) {
            if (!some_on_g0()) {
                return;
            }
            deadline = now_ns() + PIRN_MS;
        }
    }
}

/* The thread runs on meanwhile, and what is read here may be out of date: it is for people. */
__attribute__((no_sanitize("thread"))) static NOINLINE void report_left_behind(struct m *mp)
{
    struct g *gp =
        *(struct g *volatile *)&mp->curg; /* here, and not in the caller: gcc's ipa-sra */
    const char *name = gp && gp->extra ? gp->extra->name : "";
    if (gp) {
        say("pirn: goroutine %lu (%s) still runs after the runtime has ended; its thread is left "
            "behind\n",
            gp->id, *name ? name : "no name");
    } else {
        say("pirn: a thread is still busy after the runtime has ended, and left behind\n");
    }
}

/* Ends all Ms. The factory has ended before. A thread that does not come in time is left alone,
 * with its M and everything that it may still touch. */
void m_fini(int64_t grace, bool *left_behind)
{
    *left_behind = false;
    tell_all_to_stop();
    wait_for_end(grace);
    for (struct m *mp = sched.allm, *next; mp; mp = next) {
        next = mp->all;
        lock(&sched.lock);
        mp->abandoned = !mp->ended;
        unlock(&sched.lock);
        if (mp->abandoned) {
            *left_behind = true;
            report_left_behind(mp);
            pthread_detach(mp->thread);
        } else {
            pthread_join(mp->thread, NULL);
            if (mp->left) {
                mp->left->flags |= G_DROPPED;
            }
            free(mp);
        }
    }
    sched.allm = NULL;
}
