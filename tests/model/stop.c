/* SPDX-License-Identifier: MIT */
/*
 * The end of the runtime: every M is told to stop, wherever it is, and ends; the last to leave wakes
 * the thread that waits; an M is freed only after its thread has let go of it.
 */
#define MACHINE_OWN_MS
#define MACHINE_STACKS
#include "machine.h"

/* Threads are the model's: joining one waits for nothing more than its last step. */
static at_u32 thread_ended[PS];
static int joined;

static void join_next(void)
{
    while (!at_load(&thread_ended[joined], ACQUIRE)) {
        futex_wait(&thread_ended[joined], 0, INT64_MAX);
    }
    joined++;
}

#define pthread_sigmask(how, set, old) ((void)(set))
#define pthread_detach(thread) model_fail("a thread is left behind")
#define pthread_tryjoin_np(thread, result) (join_next(), 0)
#include "../../src/sched/m.c"

int thread_create(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                  bool block_signals)
{
    (void)out, (void)name, (void)fn, (void)arg, (void)block_signals;
    return 0;
}

void thread_stack_bounds(void **lo, size_t *size)
{
    *lo = NULL;
    *size = 0;
}

size_t fmt(char *buf, size_t size, const char *format, ...)
{
    (void)size, (void)format;
    *buf = 0;
    return 0;
}

static struct m *made[PS];

/* A goroutine may meet the end in a call, from which it does not return. */
static void yields(struct m *mp)
{
    (void)mp;
    pirn_yield();
}

void foreign_late_end(void)
{
    model_fail("nobody waits");
}

void foreign_ready(struct waiter *w)
{
    (void)w;
    model_fail("nobody waits");
}

/* The list has the last one first; so does m_fini. */
static void setup(uint32_t n)
{
    machine_setup(n);
    memset(thread_ended, 0, sizeof thread_ended);
    joined = 0;
    sched.allm = NULL;
    for (int i = (int)n - 1; i >= 0; i--) {
        made[i] = malloc(sizeof(struct m));
        memset(made[i], 0, sizeof(struct m));
        made[i]->p = &ps[i];
        made[i]->all = sched.allm;
        sched.allm = made[i];
    }
}

static void setup_running(void)
{
    setup(1);
    body[0] = yields;
    runq_put_owner(&ps[0].runq, new_goroutine(0));
}

/* Two Ps, but one M: it spins before it sleeps. */
static void setup_spinning(void)
{
    setup(1);
    at_store(&sched.nprocs, 2, RELAXED);
    at_store(&sched.nallp, 2, RELAXED);
    at_store(&sched.allp[1], &ps[1], RELAXED);
    pidle_put_locked(&ps[1]);
}

/* They know already. */
static void setup_two(void)
{
    setup(2);
    at_store(&made[0]->attention, M_STOP, RELAXED);
    at_store(&made[1]->attention, M_STOP, RELAXED);
}

/* The first is about to sleep. */
static void setup_sleeper(void)
{
    setup_two();
    at_store(&made[0]->attention, 0, RELAXED);
    pidle_put_locked(made[0]->p);
    made[0]->p = NULL;
}

static void run_thread(int i)
{
    m_thread(made[i]);
    at_store(&thread_ended[i], 1, RELEASE);
    futex_wake(&thread_ended[i], 1);
}

static void t0(void)
{
    run_thread(0);
}

static void t1(void)
{
    run_thread(1);
}

static void stopper(void)
{
    bool left_behind;
    m_fini(INT64_MAX, &left_behind);
    CHECK(!left_behind);
}

static void ended(void)
{
    CHECK(at_load(&sched.nm_gone, RELAXED) == sched.nm);
    CHECK(joined == (int)sched.nm);
}

#define STOP(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = ended, .threads = {stopper, __VA_ARGS__},              \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

STOP(stop_while_it_runs, setup_running, t0)
STOP(stop_while_it_spins, setup_spinning, t0)
STOP(stop_two, setup_two, t0, t1)
STOP(stop_while_one_goes_to_sleep, setup_sleeper, t0, t1)
