/* SPDX-License-Identifier: MIT */
/*
 * The life of the runtime: one at a time, counted. pirn_run is a start, goroutine 1, and a stop.
 *
 * The thread that calls pirn_run runs no goroutine; it waits like any foreign thread. The end, in
 * order: no foreign call may begin; the factory ends, so that there are no new threads; every M
 * leaves at its next entry into the runtime; then memory goes back. A thread that does not come
 * within the grace time keeps everything that it may still touch.
 *
 * Lock: life_lock (RANK_LIFE) around start and stop, the wait for the end of the Ms included.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/cpu.h"
#include "sched/sched.h"

struct sched sched = {.lock = LOCK_INIT(RANK_SCHED)};
static struct lock life_lock = LOCK_INIT(RANK_LIFE);
static uint32_t nstarts; /* under life_lock */

void life_hold(void)
{
    lock(&life_lock);
}

void life_let_go(void)
{
    unlock(&life_lock);
}

const char *g_status_name(uint32_t status)
{
    switch (status) {
    case G_IDLE: return "idle";
    case G_RUNNABLE: return "runnable";
    case G_RUNNING: return "running";
    case G_WAITING: return "waiting";
    default: return "in an unknown state";
    }
}

/* --- start ------------------------------------------------------------------------------------- */

static int check_config(pirn_config *c)
{
    if (c->procs < 0 || c->procs > PROCS_MAX || c->max_threads < 0 || c->time_slice < 0
        || c->stop_grace < 0
        || (c->flags
            & ~(uint64_t)(PIRN_F_DEADLOCK | PIRN_F_SIGQUIT | PIRN_F_NO_PREEMPT | PIRN_F_FAULTS))
        || c->preempt_signal < 0 || c->preempt_signal > 64 || c->io < PIRN_IO_AUTO
        || c->io > PIRN_IO_URING) {
        return -EINVAL;
    }
    c->flags |= c->panic_on_fault ? PIRN_F_FAULTS : 0;
    c->max_threads = c->max_threads ? c->max_threads : 10000;
    c->stack_size = c->stack_size ? c->stack_size : (size_t)256 << 10;
    c->time_slice = c->time_slice ? c->time_slice : 10 * PIRN_MS;
    c->stop_grace = c->stop_grace ? c->stop_grace : PIRN_SEC;
    int class = stack_class(c->stack_size);
    /* The first goroutine runs ordinary code: a dense stack can't be the default. */
    return class < STACK_DENSE ? -EINVAL : 0;
}

static void call_on_fatal(const char *message)
{
    struct m *mp = getm();
    if (mp && !mp->curg) {
        m_become_foreign();
    } else if (mp) {
        at_store(&mp->where, M_USER, RELAXED); /* it may call what it likes */
    }
    sched.config.on_fatal(message);
    mp = getm();
    if (mp && mp->curg) {
        at_store(&mp->where, M_RUNTIME, RELAXED); /* it is not to be stopped before the end */
    }
}

static void reset(const pirn_config *config, const struct debug_env *env)
{
    sched.config = *config;
    sched.config.io = config->io ? config->io : env->io;
    sched.io_says = env->io_says;
    sched.era++;
    sched.class = stack_class(config->stack_size);
    sched.no_dense = TOOL_BIG_FRAMES || program_binds_late();
    sched.move = env->move;
    sched.thread_idle_most = env->thread_idle_most ? env->thread_idle_most : 10 * PIRN_SEC;
    sched.preempt = !TOOL_TSAN && !env->no_preempt && !(config->flags & PIRN_F_NO_PREEMPT);
    sched.locks_held_by = env->locks_held_by;
    sched.leaks = env->leaks;
    sched.cycles = env->cycles;
    symbols_set_path();
    roots_start();
    sched.globq = (struct globq){0};
    sched.pidle = NULL;
    sched.midle = NULL;
    sched.want_m = NULL;
    sched.nwant_m = sched.nmidle = sched.nmlocked = sched.nm = sched.want_spare = 0;
    sched.nborn = 0;
    sched.next_m_id = 0;
    sched.mdead = NULL;
    sched.stopped = false;
    sched.procs_later = 0;
    at_store(&sched.retaken, 0, RELAXED);
    at_store(&sched.starved, 0, RELAXED);
    sched.deadlock_pending = false;
    sched.no_threads_until = 0;
    at_store(&sched.npidle, 0, RELAXED);
    at_store(&sched.nspinning, 0, RELAXED);
    at_store(&sched.nprocs, 0, RELAXED);
    at_store(&sched.nm_gone, 0, RELAXED);
    at_store(&sched.futile, 0, RELAXED);
    at_store(&sched.keeper_until, PIRN_NEVER, RELAXED);
    at_store(&sched.poll_m, NULL, RELAXED);
    at_store(&sched.main_exited, 0, RELAXED);
    at_store(&sched.next_id, 2, RELAXED); /* 1 is that of pirn_run */
    at_store(&sched.counts.spawned, 0, RELAXED);
    pthread_sigmask(SIG_SETMASK, NULL, &sched.sigmask);
    fatal_dump = dump_all;
    fatal_callback = config->on_fatal ? call_on_fatal : NULL;
}

static void handlers_start(void)
{
    quit_start();
    fault_start();
}

static void handlers_stop(void)
{
    preempt_stop();
    fault_stop();
    quit_stop(); /* after the signals that contexts and channels had taken */
}

static int start_threads(int procs)
{
    p_resize(procs, NULL, false);
    if (at_load(&sched.nprocs, RELAXED) == 0) {
        return -ENOMEM;
    }
    int err = preempt_start();
    if (err) {
        return err;
    }
    io_start();
    sigstack_start();
    handlers_start();
    err = sysmon_start();
    if (err) {
        handlers_stop();
        return err;
    }
    err = factory_start();
    if (err) {
        sysmon_stop();
        handlers_stop();
        return err;
    }
    lock(&sched.lock);
    struct p *pp = pidle_get_locked();
    unlock(&sched.lock);
    err = m_start(pp, false); /* one thread at least; the others come when there is work */
    if (err) {
        factory_stop();
        sysmon_stop();
        handlers_stop();
    }
    return err;
}

static int start_locked(const pirn_config *given)
{
    struct debug_env env;
    pirn_config config = *given;
    int err = check_config(&config);
    if (err) {
        return err;
    }
    debug_env_read(&env);
    panic_start();
    reset(&config, &env);
    int procs = config.procs ? config.procs : env.procs;
    at_store(&sched.life, LIFE_STARTING, RELAXED);
    stack_init(env.guard);
    err = start_threads(procs ? procs : cpu_count());
    if (err) {
        io_stop(PIRN_NEVER, false);
        p_fini(false);
        g_fini(false);
        stack_fini(false);
        fatal_dump = NULL;
        fatal_callback = NULL;
        at_store(&sched.life, LIFE_NONE, RELAXED);
        return err;
    }
    at_store(&sched.follow_cpus, procs == 0, RELAXED);
    signals_start();
    at_store(&sched.life, LIFE_RUNNING, RELEASE);
    return 0;
}

/* --- stop -------------------------------------------------------------------------------------- */

/*
 * One that is dropped. It may be inside a wait: in the queue of an object, or off it already but not yet
 * back in its call. Or it was not begun; or it is inside something that others know of.
 */
static void forget(struct g *gp, void *arg)
{
    (void)arg;
    uint32_t status = at_load(&gp->status, RELAXED);
    bool stopped = status == G_RUNNING && gp->flags & G_DROPPED;
    if (status != G_WAITING && status != G_RUNNABLE && !stopped) {
        return; /* its thread was left behind, or it has ended */
    }
    if (!gp->stack_hi) {
        timer_forget_start(&gp->start);
    }
    g_extra_dropped(gp);
    panic_forget(gp);
    dump_forget(gp);
    leaks_forget(gp);
    if (gp->reason != WAIT_NONE && !stopped) {
        sync_forget(&gp->run.waiter, (enum wait_reason)gp->reason, status == G_WAITING);
    }
}

static void stop_locked(void)
{
    bool left_behind;
    report_wait();
    at_store(&sched.life, LIFE_STOPPING, RELAXED);
    m_tell_all_to_stop();
    factory_stop();
    sysmon_stop(); /* it looks at Ms */
    m_fini(sched.config.stop_grace, &left_behind);
    left_behind = io_stop(sched.config.stop_grace, left_behind); /* kernel and helpers let go */
    report_wait(); /* one that was left behind in the midst of it */
    world_end();
    signals_stop(); /* it knows of preempt.c's handler */
    handlers_stop();
    if (sched.leaks) {
        dump_left();
    }
    foreign_late_begin();
    g_for_each(forget, NULL); /* objects of the program live on; those on our stacks don't */
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        timers_fini(&at_load(&sched.allp[i], RELAXED)->timers);
    }
    netpoll_stop();
    foreign_late_end();
    p_fini(left_behind);
    g_fini(left_behind);
    stack_fini(left_behind);
    fatal_dump = NULL;
    fatal_callback = NULL;
    at_store(&sched.life, LIFE_NONE, RELAXED);
}

static void drop_start(void)
{
    lock(&life_lock);
    if (--nstarts == 0) {
        foreign_drain();
        stop_locked();
    }
    unlock(&life_lock);
}

/* Counts one more start; *first tells whether the runtime came to life by it. */
static int take_start(const pirn_config *config, bool *first)
{
    int err = 0;
    lock(&life_lock);
    *first = nstarts == 0;
    if (*first) {
        err = start_locked(config);
    }
    nstarts += !err;
    unlock(&life_lock);
    return err;
}

EXPORT int pirn_start_n(const pirn_config *config, size_t size)
{
    not_forked();
    pirn_config known = {0};
    bool first;
    int err = config ? versioned_copy(&known, sizeof known, config, size) : 0;
    if (getm()) {
        return -EBUSY;
    }
    return err ? err : take_start(&known, &first);
}

EXPORT int pirn_stop(void)
{
    not_forked();
    if (getm()) {
        return -EDEADLK;
    }
    lock(&life_lock);
    int err = nstarts == 0 ? -EINVAL : 0;
    if (nstarts == 1) {
        foreign_drain();
        /* A mutant without ACQUIRE survives: see sleep_until in foreign.c. */
        if (at_load(&sched.nforeign_parked, RELAXED) || at_load(&sched.nforeign_timed, ACQUIRE)) {
            at_store(&sched.life, LIFE_RUNNING, RELEASE);
            err = -EBUSY;
        } else {
            stop_locked();
        }
    }
    nstarts -= !err;
    unlock(&life_lock);
    return err;
}

/* --- run --------------------------------------------------------------------------------------- */

struct main_call {
    int (*fn)(void *);
    void *arg;
    int result;
};

static void main_goroutine(void *arg)
{
    struct main_call *call = arg;
    call->result = call->fn(call->arg);
}

/*
 * Standard descriptors that are closed are opened, as in Go: else the next that the program or the runtime opens
 * is taken for one of them, and what is printed goes there. A guest (pirn_start) leaves that to the program.
 */
static int open_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0) {
            return -errno;
        }
    }
    return 0;
}

EXPORT int pirn_run_config_n(const pirn_config *config, size_t size, int (*fn)(void *), void *arg)
{
    not_forked();
    pirn_config known = {0};
    bool first;
    int err = config ? versioned_copy(&known, sizeof known, config, size) : 0;
    if (err || !fn) {
        return err ? err : -EINVAL;
    }
    if (getm()) {
        return -EBUSY;
    }
    known.flags |= PIRN_F_DEADLOCK | PIRN_F_SIGQUIT | PIRN_F_FAULTS;
    err = open_standard_fds();
    err = err ? err : take_start(&known, &first);
    if (err) {
        return err;
    }
    pirn_wg wg = {0};
    struct main_call call = {.fn = fn, .arg = arg};
    struct gstart start = {.fn = (void (*)(void))main_goroutine, .slot = {(uintptr_t)&call}};
    pirn_wg_add(&wg, 1);
    err = spawn(NULL, &start, first ? G_SIMPLE | G_MAIN : G_SIMPLE, "main\0pirn_run", &wg);
    if (!err) {
        if (first) {
            visits_allow();
        }
        pirn_wg_wait(&wg);
        if (first) { /* else the place is another's */
            visits_end();
        }
    }
    drop_start();
    return err ? err : call.result;
}

EXPORT int pirn_run(int (*fn)(void *), void *arg)
{
    return pirn_run_config_n(NULL, 0, fn, arg);
}

/* --- small calls ------------------------------------------------------------------------------- */

EXPORT const char *pirn_version(void)
{
    return PIRN_VERSION;
}

EXPORT pirn_ns pirn_now(void)
{
    not_forked();
    return now_ns();
}

EXPORT pirn_ns pirn_deadline(pirn_ns ns)
{
    not_forked();
    pirn_ns when;
    return __builtin_add_overflow(now_ns(), ns, &when) ? (ns < 0 ? 0 : PIRN_NEVER) : when;
}

EXPORT uint64_t pirn_id(void)
{
    struct m *mp = stop_point();
    return mp ? mp->curg->id : 0;
}

EXPORT int pirn_num_goroutines(void)
{
    struct m *mp = stop_point();
    if (!mp && !foreign_enter()) {
        return 0;
    }
    int n = (int)g_count();
    if (!mp) {
        foreign_leave();
    }
    return n;
}

EXPORT void pirn_set_name(const char *format, ...)
{
    struct m *mp = stop_point();
    struct gextra *x = mp ? g_extra(mp->curg) : NULL;
    if (x) { /* outside a goroutine, or without memory, there is no name: it is for people only */
        va_list ap;
        va_start(ap, format);
        if (mp->curg->class < STACK_DENSE) {
            fmt_v(x->name, sizeof x->name, format, ap); /* printf does not fit on a dense stack */
        } else {
            char name[sizeof x->name];
            vsnprintf(name, sizeof name, format, ap);
            memcpy(x->name, name, sizeof name); /* not by a function that TSan knows */
        }
        va_end(ap);
    }
}

#undef errno
EXPORT int *pirn_errno_location(void)
{
    return __errno_location();
}
