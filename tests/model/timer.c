/* SPDX-License-Identifier: MIT */
/*
 * Timers of the program's against their firing. Those with a channel: after stop or reset has returned
 * nothing old is received; what stop says is true; a value that is due is received once, whoever gets to
 * it first; and the last reference may go at any time. Those with a function: stop_wait returns when the
 * call has ended, or was never begun, and the timer may be freed then.
 *
 * The threads are foreign ones, without what surrounds their calls; one of them fires, as an M on g0
 * would.
 */
#include "time/timer.h"
#include "foreign_lean.h"
#include "foreign_only.h"

#define SOON (1 * PIRN_MS)
#define LATER (1000 * PIRN_MS)

void wake_one(struct p *pp)
{
    model_fail("nobody sleeps, but %p wakes", (void *)pp);
}
void ctx_unref(struct pirn_ctx *ctx)
{
    model_fail("context %p", (void *)ctx);
}
bool ctx_unwatch(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
pirn_ns pirn_deadline(pirn_ns ns)
{
    return now_ns() + ns;
}

static struct p a_p;
static pirn_timer *t;
static pirn_chanv *c;
static int got[MODEL_THREADS];
static int was;

static void setup_p(void)
{
    memset(&a_p, 0, sizeof a_p);
    memset(got, 0, sizeof got);
    was = -1;
    timers_init(&a_p.timers);
    at_store(&sched.allp[0], &a_p, RELAXED);
    at_store(&sched.nallp, 1, RELAXED);
    at_store(&sched.npidle, 0, RELAXED);
    at_store(&sched.keeper_until, PIRN_NEVER, RELAXED);
}

static void setup_timer(void)
{
    setup_p();
    t = pirn_timer_new(SOON);
    c = pirn_timer_chanv(t);
}

static void setup_ticker(void)
{
    setup_p();
    t = (pirn_timer *)(void *)pirn_ticker_new(SOON);
    c = pirn_timer_chanv(t);
}

/* An M on g0, when the time has come. */
static void fires(void)
{
    timers_run(&a_p.timers, SOON);
}

static void fires_twice(void)
{
    timers_run(&a_p.timers, SOON);
    timers_run(&a_p.timers, 2 * SOON);
}

static int try_recv(void)
{
    pirn_ns when;
    int r = pirn_chanv_try_recv(c, &when);
    CHECK(r >= 0);
    got[model_self() < 0 ? 0 : model_self()] += r;
    return r;
}

static int sum(void)
{
    return got[0] + got[1] + got[2];
}

static void end(void)
{
    pirn_timer_free(t);
    timers_fini(&a_p.timers);
}

/* --- channels: stop --------------------------------------------------------------------------------------- */

static void stops(void)
{
    was = pirn_timer_stop(t);
    CHECK(!try_recv()); /* nothing old */
}

static void tries(void)
{
    try_recv();
}

static void waits(void)
{
    pirn_ns when;
    CHECK(pirn_chanv_recv(c, &when));
    got[model_self()]++;
}

/* Either it was stopped in time, or the value was received. */
static void stopped_or_received(void)
{
    CHECK(was + sum() == 1);
    CHECK(a_p.timers.n == 0 && !try_recv());
    end();
}

static void stopped(void)
{
    CHECK(was == 1);
    CHECK(a_p.timers.n == 0 && !try_recv());
    end();
}

#define TIMER(mname, setup_, finish_, ...)                                                         \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

TIMER(stop_against_fire, setup_timer, stopped, fires, stops)
TIMER(stop_against_fire_and_receive, setup_timer, stopped_or_received, fires, stops, tries)

/* The first has stopped it, though the firing is still on its way. */
static void stops_twice(void)
{
    stops();
    CHECK(!pirn_timer_stop(t));
}

TIMER(second_stop_against_fire, setup_timer, stopped, fires, stops_twice)

/* Two firings of a ticker. */
static void stops_ticker(void)
{
    pirn_ticker_stop((pirn_ticker *)(void *)t);
    CHECK(!try_recv());
}

static void two_at_most(void)
{
    CHECK(sum() <= 2 && a_p.timers.n == 0 && !try_recv());
    end();
}

TIMER(stop_ticker_against_fire, setup_ticker, two_at_most, fires_twice, stops_ticker)
TIMER(stop_ticker_against_fire_and_receive, setup_ticker, two_at_most, fires, stops_ticker, tries)

/* --- channels: reset ---------------------------------------------------------------------------------------- */

static void resets(void)
{
    was = pirn_timer_reset(t, LATER);
    CHECK(!try_recv());
}

static void resets_ticker(void)
{
    pirn_ticker_reset((pirn_ticker *)(void *)t, LATER);
    CHECK(!try_recv());
}

static void is_set_anew(void)
{
    CHECK(a_p.timers.n == 1 && a_p.timers.slot[0].when > 2 * SOON && !try_recv());
    end();
}

static void reset_or_received(void)
{
    CHECK(was + sum() == 1);
    is_set_anew();
}

static void resets_too(void)
{
    pirn_timer_reset(t, LATER);
    CHECK(!try_recv());
}

TIMER(reset_against_fire, setup_timer, reset_or_received, fires, resets)
TIMER(reset_against_fire_and_receive, setup_timer, reset_or_received, fires, resets, tries)
TIMER(reset_ticker_against_fire, setup_ticker, is_set_anew, fires_twice, resets_ticker)
TIMER(two_resets_against_fire, setup_timer, is_set_anew, fires, resets, resets_too)

/* --- channels: receive -------------------------------------------------------------------------------------- */

/* It is due, and nobody has got to it: who receives fires it himself. */
static void setup_due(void)
{
    setup_p();
    t = pirn_timer_new(0);
    c = pirn_timer_chanv(t);
}

static void received_once(void)
{
    CHECK(sum() == 1 && a_p.timers.n == 0 && !try_recv());
    end();
}

/* Who comes second may find it on its way, and nothing yet. */
static void received_or_there(void)
{
    CHECK(sum() + try_recv() >= 1);
    received_once();
}

TIMER(receive_against_fire, setup_timer, received_once, fires, waits)
TIMER(receive_due_against_fire, setup_due, received_once, fires, waits)
TIMER(two_receive_due, setup_due, received_or_there, tries, tries)
TIMER(two_receive_due_against_fire, setup_due, received_or_there, fires, tries, tries)

/* --- channels: free ------------------------------------------------------------------------------------------- */

static void frees(void)
{
    pirn_timer_free(t);
}

static void gone(void)
{
    CHECK(a_p.timers.n == 0);
    timers_fini(&a_p.timers);
}

/* pirn_after: nobody stops it. */
static void releases(void)
{
    pirn_chanv_release(c);
}

static void receives_and_releases(void)
{
    waits();
    pirn_chanv_release(c);
}

TIMER(free_against_fire, setup_timer, gone, fires, frees)
TIMER(free_ticker_against_fire, setup_ticker, gone, fires_twice, frees)
TIMER(release_against_fire, setup_timer, gone, fires, releases)
TIMER(receive_and_release_against_fire, setup_timer, gone, fires, receives_and_releases)
TIMER(receive_due_and_release_against_fire, setup_due, gone, fires, receives_and_releases)

/* --- functions --------------------------------------------------------------------------------------------------- */

static struct gstart call;
static at_u32 spawned;
static int began, ended;

uint64_t pirn_id(void)
{
    return 0;
}
void g_at_end(struct at_end *e)
{
    (void)e;
}
void g_at_end_run(struct at_end *e)
{
    e->fn(e, false);
}
int spawn_by_runtime(const struct gstart *start, const char *site, bool entered)
{
    (void)site, (void)entered;
    call = *start;
    at_store(&spawned, 1, RELEASE);
    return 0;
}

static void happens(void *arg)
{
    CHECK(arg == &call);
    began++;
    ended++;
}

static void setup_func(void)
{
    setup_p();
    began = ended = 0;
    at_store(&spawned, 0, RELAXED);
    t = pirn_after_func(SOON, happens, &call);
}

/* The goroutine that is spawned is this thread's. */
static void fires_and_calls(void)
{
    fires();
    if (at_load(&spawned, ACQUIRE)) {
        ((void (*)(void *))call.fn)((void *)(uintptr_t)call.slot[0]);
    }
}

/* Nothing of it runs any more: else the look is a race. */
static void stops_and_waits(void)
{
    was = pirn_timer_stop_wait(t);
    CHECK(began == ended && began == !was);
    pirn_timer_free(t);
}

static void frees_func(void)
{
    pirn_timer_free(t);
    CHECK(began == ended);
}

TIMER(stop_wait_against_call, setup_func, gone, fires_and_calls, stops_and_waits)
TIMER(free_against_call, setup_func, gone, fires_and_calls, frees_func)
