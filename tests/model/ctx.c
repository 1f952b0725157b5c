/* SPDX-License-Identifier: MIT */
/*
 * Contexts: cancelled once, whoever comes first, with all that is below them, also what is hung there
 * at that moment; each is freed once, and not under somebody's feet; a function that waits for one is
 * called unless it was stopped.
 *
 * The threads are foreign ones, without what surrounds their calls. They are one kernel thread, so each
 * of them is the maker of every context.
 */
#include "ctx/ctx.h"

#include "foreign_lean.h"
#include "foreign_only.h"
#include "time/timer.h"

#define SOON (1 * PIRN_MS)

static struct p a_p;
static pirn_ctx *parent, *child;
static struct gstart call;
static at_u32 spawned;
static int began;

void wake_one(struct p *pp)
{
    model_fail("nobody sleeps, but %p wakes", (void *)pp);
}
pirn_ns pirn_deadline(pirn_ns ns)
{
    return now_ns() + ns;
}
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
struct gextra *g_extra(struct g *gp)
{
    model_fail("G %lu", gp->id);
}
int spawn_by_runtime(const struct gstart *start, const char *site, bool entered)
{
    (void)site, (void)entered;
    call = *start;
    at_store(&spawned, 1, RELEASE);
    return 0;
}

static void setup_p(void)
{
    memset(&a_p, 0, sizeof a_p);
    at_store(&spawned, 0, RELAXED);
    began = 0;
    timers_init(&a_p.timers);
    at_store(&sched.allp[0], &a_p, RELAXED);
    at_store(&sched.nallp, 1, RELAXED);
    at_store(&sched.npidle, 0, RELAXED);
    at_store(&sched.keeper_until, PIRN_NEVER, RELAXED);
    parent = child = NULL;
}

static void setup_parent(void)
{
    setup_p();
    parent = pirn_ctx_with_cancel(pirn_ctx_background());
}

static void setup_child(void)
{
    setup_parent();
    child = pirn_ctx_with_cancel(parent);
}

static bool is_cancelled(pirn_ctx *ctx)
{
    return pirn_ctx_err(ctx) && pirn_ctx_cause(ctx)
           && pirn_chanv_try_recv(pirn_ctx_donev(ctx), NULL) == -1;
}

static void cancelled(void)
{
    CHECK(is_cancelled(parent));
    CHECK(!child || is_cancelled(child));
    pirn_ctx_release(child);
    pirn_ctx_release(parent);
    CHECK(a_p.timers.n == 0);
    timers_fini(&a_p.timers);
}

static void cancelled_child_is_gone(void)
{
    child = NULL;
    cancelled();
}

static void both_gone(void)
{
    CHECK(a_p.timers.n == 0);
    timers_fini(&a_p.timers);
}

static void cancels(void)
{
    pirn_ctx_cancel(parent, 0);
    CHECK(pirn_ctx_err(parent) == -ECANCELED);
}

static void cancels_for_another_cause(void)
{
    pirn_ctx_cancel(parent, -EIO);
    int cause = pirn_ctx_cause(parent);
    CHECK(cause == -EIO || cause == -ECANCELED);
}

static void cancels_child(void)
{
    pirn_ctx_cancel(child, 0);
}

static void releases_parent(void)
{
    pirn_ctx_release(parent);
}

static void releases_child(void)
{
    pirn_ctx_release(child);
}

/* Hung below the parent before it is cancelled, or after. */
static void makes_child_and_waits(void)
{
    pirn_ctx *mine = pirn_ctx_with_cancel(parent);
    CHECK(!pirn_chanv_recv(pirn_ctx_donev(mine), NULL));
    CHECK(pirn_ctx_err(mine) == -ECANCELED);
    pirn_ctx_release(mine);
}

static void makes_child(void)
{
    pirn_ctx_release(pirn_ctx_with_cancel(parent));
}

static void waits(void)
{
    CHECK(!pirn_chanv_recv(pirn_ctx_donev(parent), NULL));
    CHECK(pirn_ctx_err(parent) == -ECANCELED);
}

#define CTX(mname, setup_, finish_, ...)                                                           \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

CTX(two_cancels, setup_parent, cancelled, cancels, cancels_for_another_cause)
CTX(cancel_and_wait, setup_parent, cancelled, cancels, waits)
CTX(cancel_both, setup_child, cancelled, cancels, cancels_child)
CTX(cancel_while_a_child_is_made, setup_parent, cancelled, cancels, makes_child_and_waits)
CTX(cancel_while_a_child_goes, setup_child, cancelled_child_is_gone, cancels, releases_child)
CTX(cancel_while_another_child_comes_and_goes, setup_child, cancelled, cancels, makes_child)
CTX(release_both, setup_child, both_gone, releases_parent, releases_child)

/* Two handles: who gives his back may have used the context before, and the last frees it. */
static void setup_two_handles(void)
{
    setup_parent();
    pirn_ctx_retain(parent);
}

CTX(two_releases, setup_two_handles, both_gone, releases_parent, releases_parent)

/* Who sees that it is cancelled sees what was done before. */
static int data;

static void setup_data(void)
{
    setup_parent();
    data = 0;
}

static void cancels_after_data(void)
{
    data = 1;
    cancels();
}

static void looks(void)
{
    if (pirn_ctx_err(parent)) {
        CHECK(data == 1);
    }
}

CTX(cancel_and_look, setup_data, cancelled, cancels_after_data, looks)

/* --- deadlines -------------------------------------------------------------------------------------------- */

static void setup_deadline(void)
{
    setup_p();
    parent = pirn_ctx_with_deadline(pirn_ctx_background(), SOON);
}

static void setup_child_deadline(void)
{
    setup_parent();
    child = pirn_ctx_with_deadline(parent, SOON);
}

static void fires(void)
{
    timers_run(&a_p.timers, SOON);
}

static void cancels_in_time(void)
{
    pirn_ctx_cancel(parent, 0);
    int err = pirn_ctx_err(parent);
    CHECK(err == -ECANCELED || err == -ETIMEDOUT);
}

static void waits_for_either(void)
{
    CHECK(!pirn_chanv_recv(pirn_ctx_donev(parent), NULL));
    CHECK(pirn_ctx_err(parent));
}

CTX(deadline_against_cancel, setup_deadline, cancelled, fires, cancels_in_time)
CTX(deadline_against_release, setup_deadline, both_gone, fires, releases_parent)
CTX(deadline_and_wait, setup_deadline, cancelled, fires, waits_for_either)
CTX(deadline_against_cancel_of_parent, setup_child_deadline, cancelled, fires, cancels)
CTX(deadline_against_release_of_both, setup_child_deadline, both_gone, fires, releases_parent,
    releases_child)

/* Made while the parent is cancelled: its timer does not stay behind. */
static void makes_child_with_deadline(void)
{
    child = pirn_ctx_with_deadline(parent, SOON);
}

CTX(cancel_while_one_with_deadline_is_made, setup_parent, cancelled, cancels,
    makes_child_with_deadline)

/* --- functions ---------------------------------------------------------------------------------------------- */

static pirn_timer *watch;
static int was;

static void happens(void *arg)
{
    CHECK(arg == &call && pirn_ctx_err(parent) == -ECANCELED);
    began++;
}

static void setup_watch(void)
{
    setup_parent();
    watch = pirn_ctx_after_func(parent, happens, &call);
}

/* The goroutine that is spawned is this thread's. */
static void runs_the_call(void)
{
    if (at_load(&spawned, ACQUIRE)) {
        at_store(&spawned, 0, RELAXED);
        ((void (*)(void *))call.fn)((void *)(uintptr_t)call.slot[0]);
    }
}

static void cancels_and_calls(void)
{
    cancels();
    runs_the_call();
}

static void stops_and_waits(void)
{
    was = pirn_timer_stop_wait(watch);
    CHECK(began == !was);
    pirn_timer_free(watch);
}

static void watches(void)
{
    watch = pirn_ctx_after_func(parent, happens, &call);
}

static void called(void)
{
    runs_the_call();
    CHECK(began == 1);
    pirn_timer_free(watch);
    cancelled();
}

CTX(stop_watch_against_cancel, setup_watch, cancelled, cancels_and_calls, stops_and_waits)
CTX(watch_against_cancel, setup_parent, called, cancels, watches)
