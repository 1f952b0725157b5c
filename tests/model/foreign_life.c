/* SPDX-License-Identifier: MIT */
/*
 * pirn_start and pirn_stop, as they are, against threads that pirn did not make: a call from such a
 * thread meets a whole runtime or none; it is not refused while a stop may still be taken back; a stop
 * is refused while such a thread waits; and a done after the end finds none of the goroutines that
 * waited. foreign.c has the protocol alone.
 */
#include "explorer/model.h"

#include <stdlib.h>

#include "sched/switch.h"
#include "word_spin.h"

#define pthread_sigmask(how, set, old) ((void)(old))
#include "../../src/sched/init.c"

/* --- the rest of the runtime: what a call may touch is one G ------------------------------------------ */

ptrdiff_t m_tls_offset; /* 0: no thread is an M */
void (*fatal_dump)(int fd);
void (*fatal_callback)(const char *message);

static struct g *slab;
static struct p a_p;

int stack_class(size_t size)
{
    return size ? STACK_DENSE : -EINVAL;
}

int stack_init(enum guard_kind kind)
{
    (void)kind;
    slab = calloc(1, sizeof *slab);
    return 0;
}

void g_fini(bool keep)
{
    CHECK(!keep && at_load(&sched.nforeign_parked, RELAXED) == 0);
    free(slab);
    slab = NULL;
}

uint32_t g_count(void)
{
    return slab->id == 0 ? 1 : 0;
}

void g_for_each(void (*fn)(struct g *, void *), void *arg)
{
    fn(slab, arg);
}

int p_resize(int n, struct p *mine, bool follow)
{
    (void)n, (void)mine, (void)follow;
    at_store(&sched.nprocs, 1, RELAXED);
    return 0;
}

struct p *pidle_get_locked(void)
{
    return &a_p;
}

void m_fini(int64_t grace, bool *left_behind)
{
    (void)grace;
    *left_behind = false;
}

void debug_env_read(struct debug_env *out)
{
    *out = (struct debug_env){0};
}

#define NOTHING(name, ...)                                                                         \
    void name(__VA_ARGS__)                                                                         \
    {                                                                                              \
    }
#define ZERO(type, name, ...)                                                                      \
    type name(__VA_ARGS__)                                                                         \
    {                                                                                              \
        return 0;                                                                                  \
    }
#define NEVER(type, name, ...)                                                                     \
    type name(__VA_ARGS__)                                                                         \
    {                                                                                              \
        model_fail("%s", #name);                                                                   \
    }
#define UNUSED __attribute__((unused))

NOTHING(stack_fini, bool keep UNUSED)
NOTHING(p_fini, bool keep UNUSED)
NOTHING(timers_fini, struct timers *h UNUSED)
NOTHING(sysmon_stop, void)
NOTHING(factory_stop, void)
NOTHING(m_tell_all_to_stop, void)
NOTHING(world_end, void)
NOTHING(dump_forget, const struct g *gp UNUSED)
NOTHING(leaks_forget, const struct g *gp UNUSED)
NOTHING(symbols_set_path, void)
NOTHING(roots_start, void)

NOTHING(deadlock_check_locked, uint32_t mine UNUSED)
NOTHING(wake_slow, struct p *pp UNUSED, bool only_runnext UNUSED)
ZERO(int, sysmon_start, void)
ZERO(int, factory_start, void)
ZERO(int, m_start, struct p *pp UNUSED, bool born UNUSED)
ZERO(int, cpu_count, void)
ZERO(int64_t, coarse_now, void)
ZERO(bool, program_binds_late, void)
ZERO(bool, stack_contains, const void *addr UNUSED)

/* Of goroutines and Ms that run, and there are none. */
NEVER(void, m_leave_for_good, struct m *mp UNUSED)
NEVER(void, m_become_foreign, void)
NEVER(void, dump_all, int fd UNUSED)
NEVER(void, dump_left, void)
NEVER(void, runq_submit, struct p *pp UNUSED, struct g *gp UNUSED, bool next UNUSED)
NEVER(struct g *, global_turn, struct p *pp UNUSED)
NEVER(struct g *, next_global, struct p *pp UNUSED, uint32_t max UNUSED)
NEVER(bool, prepare_slow, struct m *mp UNUSED, struct g *gp UNUSED)
NEVER(void, switch_rare, struct m *mp UNUSED, struct g *from UNUSED, struct g *to UNUSED)
NEVER(struct gextra *, g_extra, struct g *gp UNUSED)
NEVER(size_t, fmt_v, char *buf UNUSED, size_t size UNUSED, const char *format UNUSED,
      va_list ap UNUSED)
NEVER(int, spawn, const pirn_attr *attr UNUSED, const struct gstart *start UNUSED,
      uint16_t flags UNUSED, const char *site UNUSED, struct pirn_wg *wg UNUSED)

/* forget.c has the others too. */
void wg_forget_goroutines(struct pirn_wg *wg);
void sync_forget(struct waiter *w, enum wait_reason reason, bool waiting)
{
    CHECK(reason == WAIT_WG);
    if (waiting) {
        wg_forget_goroutines(w->object);
    }
}

/* --- calls against the stop ---------------------------------------------------------------------------- */

static pirn_wg wg;
static struct waiter waiter;
static int said, stopped;

static void setup(void)
{
    memset(&sched, 0, sizeof sched);
    memset(&wg, 0, sizeof wg);
    memset(&waiter, 0, sizeof waiter);
    nstarts = 0;
    said = 0;
    stopped = 1;
    CHECK(pirn_start(NULL) == 0);
}

static void call(void)
{
    CHECK(pirn_num_goroutines() <= 1);
}

static void stop(void)
{
    stopped = pirn_stop();
    CHECK(stopped == 0);
}

static void stop_and_start(void)
{
    stop();
    CHECK(pirn_start(NULL) == 0);
}

static void at_rest(void)
{
    CHECK(at_load(&sched.nforeign, RELAXED) == 0);
    CHECK(at_load(&sched.nforeign_parked, RELAXED) == 0);
    CHECK(at_load(&sched.nforeign_timed, RELAXED) == 0);
    if (nstarts) {
        stop();
    }
}

MODEL(call_stop, .setup = setup, .finish = at_rest, .threads = {call, stop},
      .preemptions = MODEL_UNBOUNDED)
MODEL(two_calls_stop, .setup = setup, .finish = at_rest, .threads = {call, call, stop},
      .preemptions = MODEL_UNBOUNDED)
MODEL(call_restart, .setup = setup, .finish = at_rest, .threads = {call, stop_and_start},
      .preemptions = MODEL_UNBOUNDED)
MODEL(two_calls_restart, .setup = setup, .finish = at_rest, .threads = {call, call, stop_and_start},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- calls against the start ----------------------------------------------------------------------------- */

static void setup_no_runtime(void)
{
    setup();
    stop();
}

static void start(void)
{
    CHECK(pirn_start(NULL) == 0);
}

static void start_and_stop(void)
{
    start();
    stop();
}

/* The stop is refused, and what the start made is still seen by who sees the runtime run again. */
static void start_and_fail_to_stop(void)
{
    start();
    at_store(&sched.nforeign_parked, 1, RELAXED);
    CHECK(pirn_stop() == -EBUSY);
    at_store(&sched.nforeign_parked, 0, RELAXED);
}

MODEL(call_start, .setup = setup_no_runtime, .finish = at_rest, .threads = {call, start},
      .preemptions = MODEL_UNBOUNDED)
MODEL(call_start_refused_stop, .setup = setup_no_runtime, .finish = at_rest,
      .threads = {call, start_and_fail_to_stop}, .preemptions = MODEL_UNBOUNDED)
MODEL(two_starts_and_stops, .setup = setup_no_runtime, .finish = at_rest,
      .threads = {start_and_stop, start_and_stop, call}, .preemptions = MODEL_UNBOUNDED)

/* Started twice: the first stop changes nothing, and no call is refused. */
static void setup_twice(void)
{
    setup();
    CHECK(pirn_start(NULL) == 0);
}

static void call_must_pass(void)
{
    CHECK(pirn_num_goroutines() == 1);
}

MODEL(counted, .setup = setup_twice, .finish = at_rest, .threads = {call_must_pass, stop},
      .preemptions = MODEL_UNBOUNDED)

/* Of goroutines that are dropped: these ones are in nothing else. */
void g_extra_dropped(struct g *gp)
{
    (void)gp;
}
void timer_forget_start(const struct gstart *start)
{
    (void)start;
}

/* --- a stop that is refused -------------------------------------------------------------------------------- */

static void setup_parked(void)
{
    setup();
    at_store(&sched.nforeign_parked, 1, RELAXED);
}

static void stop_is_refused(void)
{
    CHECK(pirn_stop() == -EBUSY);
}

static void wake_the_parked(void)
{
    foreign_ready(&waiter);
    at_rest();
}

MODEL(refused, .setup = setup_parked, .finish = wake_the_parked,
      .threads = {call_must_pass, stop_is_refused}, .preemptions = MODEL_UNBOUNDED)

/* The stop may come before, while or after a thread waits; it succeeds only if none does. */
static at_u32 waiting;

static void setup_waits(void)
{
    setup();
    at_store(&waiting, 0, RELAXED);
}

static bool tell(struct g *gp, void *arg)
{
    (void)gp, (void)arg;
    at_store(&waiting, 1, RELEASE);
    return true;
}

static void waits(void)
{
    if (foreign_enter()) {
        foreign_park(&waiter, true, tell, NULL, PIRN_NEVER);
        CHECK(said == 1);
    } else {
        at_store(&waiting, 2, RELEASE);
    }
}

static void wakes(void)
{
    uint32_t w;
    while (!(w = at_load(&waiting, ACQUIRE))) {
        at_pause();
    }
    if (w == 1) {
        said = 1;
        foreign_ready(&waiter);
    }
}

static void stop_if_nobody_waits(void)
{
    int r = pirn_stop();
    CHECK(r == 0 || r == -EBUSY);
}

MODEL(wait_and_stop, .setup = setup_waits, .finish = at_rest,
      .threads = {waits, wakes, stop_if_nobody_waits}, .preemptions = MODEL_UNBOUNDED)

/* One that wakes by itself: the stop is refused while it sleeps, and need not wait for what it does
 * afterwards. A waker that comes too late finds that it is not wanted. */
static at_u32 claimed;

static void setup_waits_until(void)
{
    setup_waits();
    at_store(&claimed, 0, RELAXED);
}

static bool claim(void)
{
    uint32_t none = 0;
    return at_cas(&claimed, &none, 1, RELAXED, RELAXED);
}

static void waits_until(void)
{
    if (!foreign_enter()) {
        at_store(&waiting, 2, RELEASE);
        return;
    }
    if (!foreign_park(&waiter, true, tell, NULL, PIRN_MS) && !claim()) {
        foreign_wait_for_ready(&waiter);
    }
    CHECK(at_load(&sched.nforeign_timed, RELAXED) == 0);
}

static void wakes_in_time(void)
{
    uint32_t w;
    while (!(w = at_load(&waiting, ACQUIRE))) {
        at_pause();
    }
    if (w == 1 && claim()) {
        foreign_ready(&waiter);
    }
}

static void stop_is_refused_while_it_sleeps(void)
{
    int r = pirn_stop();
    CHECK(r == 0 || r == -EBUSY);
    CHECK(r == 0 || nstarts == 1);
}

MODEL(timed_wait_and_stop, .setup = setup_waits_until, .finish = at_rest, .timeouts = 1,
      .threads = {waits_until, stop_is_refused_while_it_sleeps}, .preemptions = MODEL_UNBOUNDED)
MODEL(timed_wait_and_waker_and_stop, .setup = setup_waits_until, .finish = at_rest, .timeouts = 1,
      .threads = {waits_until, wakes_in_time, stop_is_refused_while_it_sleeps},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- goroutines that wait when the runtime ends -------------------------------------------------------------- */

static void setup_goroutine_waits(void)
{
    setup();
    pirn_wg_add(&wg, 1);
    struct waiter *w = &slab->run.waiter;
    w->g = slab;
    w->object = &wg;
    w->next = w;
    wg.waiters_ = w;
    wg.state_ |= 4; /* WAITERS */
    slab->reason = WAIT_WG;
    at_store(&slab->status, G_WAITING, RELAXED);
}

static void done(void)
{
    pirn_wg_done(&wg);
}

MODEL(done_and_stop, .setup = setup_goroutine_waits, .finish = at_rest, .threads = {done, stop},
      .preemptions = MODEL_UNBOUNDED)
