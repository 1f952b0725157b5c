/* SPDX-License-Identifier: MIT */
/*
 * Ms: kernel threads that run goroutines. Made by the factory, reused from the idle list, ended
 * with the runtime.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sched/switch.h"

#define JOIN_LEAST PIRN_SEC /* to end takes a moment, when the machine is busy a long one */
#define JOIN_MOST (PIRN_SEC * 3600 * 24 * 365)

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
    at_store(&mp->where, M_RUNTIME, RELAXED);
    mp->commit = NULL;
    mp->nextg = NULL;
    mp->left = mp->curg;
    if (mp->brings) {
        heap_free(mp->brings);
    }
    switch_to(mp, mp->curg, &mp->g0);
    throw("m: a goroutine of a stopped runtime was resumed");
}

/* The last words. Ended before the runtime, it is joined by the factory, and its M is used again. */
static void say_ended(struct m *mp)
{
    lock(&sched.lock);
    mp->ended = true;
    if (mp->abandoned) {
        /* nobody waits for it */
    } else if (m_told_to_stop(mp)) {
        at_count(&sched.nm_gone, 1);
        futex_wake(&sched.nm_gone, 1);
    } else {
        sched.nm--;
        factory_join_locked(mp);
        deadlock_check_locked(0); /* all others may sleep since before this */
    }
    unlock(&sched.lock);
}

/* By pthread_exit, or the cancellation of the thread: it has left the stack of the goroutine. */
static void thread_taken_away(void *arg)
{
    struct m *mp = arg;
    at_store(&mp->where, M_RUNTIME, RELAXED);
    if (mp->curg) {
        fatal("pthread_exit, or a cancelled thread, in goroutine %lu", mp->curg->id);
    }
    fatal("a thread of pirn's was cancelled");
}

/* This thread is an M until it has nothing to do any more. All signals are blocked, before and after. */
void m_be(struct m *mp)
{
    void *lo;
    size_t size;
    tls_m = mp;
    at_store(&mp->tid, gettid(), RELAXED);
    mp->visits ? visits_bounds(&lo, &size) : thread_stack_bounds(&lo, &size);
    tool_thread_begin(&mp->g0.tool, lo, size);
    void *altstack = thread_altstack_begin();
    lock(&sched.lock); /* debug/leakmem.c may be looking */
    mp->stack_lo = lo;
    mp->thread_pointer = arch_thread_pointer();
    mp->altstack = altstack;
    unlock(&sched.lock);
    preempt_thread_begin(mp);
    pthread_sigmask(SIG_SETMASK, &sched.sigmask, NULL);
    if (mp->born) {
        factory_born(mp);
    }
    mp->cxx = cxx_globals();
    pthread_cleanup_push(thread_taken_away, mp);
    m_run(mp);
    pthread_cleanup_pop(0);
    preempt_thread_end(mp);
    thread_altstack_end(altstack);
    free_garbage(mp);
    tls_m = NULL;
}

static void *m_thread(void *arg)
{
    char name[16];
    fmt(name, sizeof name, "pirn-m%d", ((struct m *)arg)->id);
    pthread_setname_np(pthread_self(), name); /* by itself: a goroutine may give it another */
    m_be(arg);
    say_ended(arg);
    return NULL;
}

/* One whose thread has ended, or a new one. */
static struct m *m_alloc(void)
{
    struct m *mp;
    lock(&sched.lock);
    for (mp = sched.allm; mp && !mp->joined; mp = mp->all) {
    }
    if (mp) {
        mp->joined = false;
    }
    unlock(&sched.lock);
    if (!mp) {
        mp = aligned_alloc(CACHE_LINE, (sizeof *mp + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
        if (mp) {
            memset(mp, 0, sizeof *mp);
        }
    }
    return mp;
}

/* What is left of the thread before is its place in the list. The words before this sysmon may still look at,
 * and who woke it for the last time (m_post). */
#define M_LOOKED_AT offsetof(struct m, curg)

void m_init(struct m *mp)
{
    struct m *all = mp->all;
    bool listed = mp->listed;
    memset((char *)mp + M_LOOKED_AT, 0, sizeof *mp - M_LOOKED_AT);
    mp->g0 = (struct g){0};
    mp->all = all;
    mp->listed = listed;
    at_store(&mp->g0.status, G_RUNNING, RELAXED);
    at_store(&mp->where, M_RUNTIME, RELAXED);
    at_store(&mp->attention, 0, RELAXED);
    at_store(&mp->polls, 0, RELAXED);
    note_clear(&mp->park);
}

/* Makes an M that runs pp, or sleeps. By the factory, or before any M runs. */
int m_start(struct p *pp, bool born)
{
    struct m *mp = m_alloc();
    if (!mp) {
        return -ENOMEM;
    }
    lock(&sched.lock);
    if ((int)sched.nm >= sched.config.max_threads) {
        unlock(&sched.lock);
        say_fd(STDERR_FILENO, "pirn: program exceeds %d-thread limit\n", sched.config.max_threads);
        fatal("thread exhaustion");
    }
    m_init(mp);
    if (at_load(&sched.life, RELAXED) == LIFE_STOPPING) {
        at_store(&mp->attention, M_STOP, RELAXED); /* the others were told before it was there */
    }
    mp->born = born;
    mp->id = sched.next_m_id++;
    sched.nm++;
    if (!mp->listed) {
        mp->listed = true;
        mp->all = sched.allm;
        sched.allm = mp;
    }
    unlock(&sched.lock);
    if (pp) {
        p_bind(mp, pp);
    }
    rand_seed(&mp->rand, (uint64_t)now_ns() + (uint64_t)mp->id);
    int err = thread_create(&mp->thread, NULL, m_thread, mp, true);
    if (err) {
        if (pp) {
            p_unbind(mp);
        }
        lock(&sched.lock);
        sched.nm--;
        mp->ended = mp->joined = true; /* for the next */
        unlock(&sched.lock);
    }
    return err;
}

/* Those that are made later are told by m_start. */
void m_tell_all_to_stop(void)
{
    lock(&sched.lock);
    for (struct m *mp = sched.allm; mp; mp = mp->all) {
        at_or(&mp->attention, M_STOP, RELAXED);
    }
    while (midle_get_locked()) {
    }
    /* Whoever sleeps, for whatever: without a P it goes on to its next entry, or ends. */
    for (struct m *mp = sched.allm; mp; mp = mp->all) {
        m_post(mp);
    }
    unlock(&sched.lock);
}

/* An M on its own stack is in the runtime and will come: only goroutines are left behind. */
__attribute__((no_sanitize("thread"))) static NOINLINE bool some_on_g0(void)
{
    for (struct m *mp = sched.allm; mp; mp = mp->all) {
        if (!mp->ended && (!mp->curg || at_load(&mp->where, RELAXED) == M_RUNTIME)) {
            return true;
        }
    }
    return false;
}

static void wait_for_end(int64_t deadline)
{
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

/* It has left pirn, but destructors of the program's may still run there. False: for too long. */
static bool join_until(pthread_t thread, int64_t until)
{
    struct timespec t;
    int64_t left = until - now_ns();
    if (pthread_tryjoin_np(thread, NULL) == 0) {
        return true;
    }
    clock_gettime(CLOCK_REALTIME, &t);
    left = left < JOIN_LEAST ? JOIN_LEAST : left > JOIN_MOST ? JOIN_MOST : left;
    left += t.tv_nsec;
    t.tv_sec += left / PIRN_SEC;
    t.tv_nsec = left % PIRN_SEC;
    return pthread_timedjoin_np(thread, NULL, &t) == 0;
}

/* A thread that was left behind may be about to wake any of the others: then they stay. */
static void free_ms(struct m *first, bool left_behind)
{
    static struct m *kept; /* so that they are no leak */
    for (struct m *mp = first, *next; mp; mp = next) {
        next = mp->all;
        if (left_behind) {
            mp->all = kept;
            kept = mp;
        } else {
            free(mp);
        }
    }
}

/* Ends all Ms. The factory has ended before. A thread that does not come in time is left alone,
 * with its M and everything that it may still touch. */
void m_fini(int64_t grace, bool *left_behind)
{
    struct m *ended = NULL;
    int64_t now = now_ns(), until = grace > INT64_MAX - now ? INT64_MAX : now + grace;
    *left_behind = false;
    m_tell_all_to_stop();
    wait_for_end(until);
    for (struct m *mp = sched.allm, *next; mp; mp = next) {
        next = mp->all;
        lock(&sched.lock); /* so also after who woke it for the last time: say_ended */
        if (mp->joined) {
            unlock(&sched.lock);
            mp->all = ended;
            ended = mp;
            continue;
        }
        mp->abandoned = !mp->ended;
        if (mp->abandoned) {
            preempt_timer_end_locked(mp); /* else it would signal for ever */
            at_or(&mp->attention, M_LOST, RELAXED);
        }
        unlock(&sched.lock);
        if (mp->abandoned) {
            *left_behind = true;
            report_left_behind(mp);
            pthread_detach(mp->thread);
            continue;
        }
        if (!join_until(mp->thread, until)) {
            report_left_behind(mp);
            pthread_detach(mp->thread);
        }
        if (mp->left) {
            mp->left->flags |= G_DROPPED;
        }
        mp->all = ended; /* also with destructors under way: their thread has no M any more */
        ended = mp;
    }
    free_ms(ended, *left_behind);
    sched.allm = NULL;
}
