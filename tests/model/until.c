/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that wait with a deadline: their timer lies in the frame of the call, beside what else they
 * wait for. Whoever comes first, the partner or the time, the other leaves nothing behind and touches
 * nothing of the frame; a value is passed on by both sides or by neither, and a signal that is not
 * taken is still there for the next.
 *
 * The partner is a foreign thread, without what surrounds its calls. select.c and cond.c of the models
 * have foreign threads on both sides.
 */
#define MACHINE_STACKS
#include "ctx/ctx.h"
#include "foreign_lean.h"
#include "machine.h"
#include "sync/select.h"

/* --- what is not looked at ------------------------------------------------------------------------------ */

/* A context is a channel that is closed. */
static pirn_chanv *done;
static struct gextra extra;

pirn_chanv *ctx_done(struct pirn_ctx *ctx)
{
    CHECK(ctx == extra.ctx);
    return done;
}
int ctx_err(const struct pirn_ctx *ctx)
{
    CHECK(ctx == extra.ctx);
    return -ECANCELED;
}
void timer_chan_look(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
bool timer_chan_end_locked(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
void timer_chan_free(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
bool stack_contains(const void *addr)
{
    (void)addr;
    return false;
}

/* An ideal mutex. */
static at_u32 mutex_key;

void mutex_lock_again(struct visit v, pirn_mutex *m)
{
    (void)m;
    model_lock(&mutex_key);
    visit_end(v);
}
bool mutex_unlock_visiting(pirn_mutex *m)
{
    (void)m;
    model_unlock(&mutex_key);
    return true;
}
_Noreturn void mutex_not_locked(void)
{
    model_fail("it is locked");
}

/* --- channels ----------------------------------------------------------------------------------------------- */

#define SOON_ENOUGH (1 * PIRN_MS)

static pirn_chanv *a;
static int sent, received, data;

static void end_of_frames(void)
{
    timers_fini(&ps[0].timers);
    each_ran_once();
}

static void setup(void (*fn)(struct m *))
{
    machine_setup(1);
    a = pirn_chanv_make(sizeof(int), 0);
    sent = received = data = 0;
    body[0] = fn;
    runq_put_owner(&ps[0].runq, new_goroutine(0));
}

/* Writes where the frames of the calls before were: a race, if somebody is still there. */
static __attribute__((noinline)) void uses_the_stack(void)
{
    volatile uint64_t junk[64];
    for (int i = 0; i < 64; i++) {
        junk[i] = 0;
    }
    (void)junk[0];
}

static void receives_until(struct m *mp)
{
    (void)mp;
    int v = 7, r = pirn_chanv_recv_until(a, &v, SOON_ENOUGH);
    CHECK(r == 0 ? v == 1 && data == 1 : r == -ETIMEDOUT && v == 7);
    received = r == 0;
    uses_the_stack();
}

static void sends_until(struct m *mp)
{
    (void)mp;
    int v = 1;
    data = 1;
    int r = pirn_chanv_send_until(a, &v, SOON_ENOUGH);
    CHECK(r == 0 || r == -ETIMEDOUT);
    sent = r == 0;
    uses_the_stack();
}

static void setup_receiver(void)
{
    setup(receives_until);
}

static void setup_sender(void)
{
    setup(sends_until);
}

static void foreign_tries_to_send(void)
{
    int v = 1;
    data = 1;
    sent = pirn_chanv_try_send(a, &v);
}

static void foreign_tries_to_receive(void)
{
    int v = 7;
    received = pirn_chanv_try_recv(a, &v) == 1;
    CHECK(received ? v == 1 && data == 1 : v == 7);
}

static void foreign_sends_until(void)
{
    int v = 1;
    data = 1;
    sent = pirn_chanv_send_until(a, &v, SOON_ENOUGH) == 0;
}

static void both_or_none(void)
{
    CHECK(sent == received);
    CHECK(timers_next() == PIRN_NEVER);
    CHECK(!a->receivers.first && !a->senders.first && !a->selects);
    pirn_chanv_release(a);
    end_of_frames();
}

#define UNTIL(mname, setup_, finish_, ...)                                                         \
    MODEL(mname, .setup = setup_, .finish = finish_, .sleepers = 1, .threads = {__VA_ARGS__},      \
          .timeouts = 1, .preemptions = MODEL_UNBOUNDED, .quick = 2)

UNTIL(receive_until, setup_receiver, both_or_none, m0_until, foreign_tries_to_send)
UNTIL(send_until, setup_sender, both_or_none, m0_until, foreign_tries_to_receive)
UNTIL(both_until, setup_receiver, both_or_none, m0_until, foreign_sends_until)

/* --- conditions ------------------------------------------------------------------------------------------------ */

static pirn_cond *cond;
static int tokens, woken;

static void waits_until(struct m *mp)
{
    (void)mp;
    int r = 0;
    model_lock(&mutex_key);
    if (!tokens) {
        r = pirn_cond_wait_until(cond, NULL, SOON_ENOUGH);
        CHECK(r == -ETIMEDOUT || (r == 0 && tokens == 1));
        woken = r == 0;
    }
    mutex_unlock_visiting(NULL);
    uses_the_stack();
}

static void setup_cond(void)
{
    setup(waits_until);
    memset(&mutex_key, 0, sizeof mutex_key);
    cond = calloc(1, sizeof *cond);
    tokens = woken = 0;
}

static void foreign_signals(void)
{
    model_lock(&mutex_key);
    tokens = 1;
    mutex_unlock_visiting(NULL);
    pirn_cond_signal(cond);
}

static void nobody_waits(void)
{
    CHECK(cond->state_ == 0 && !cond->waiters_);
    CHECK(timers_next() == PIRN_NEVER);
    free(cond);
    both_or_none();
}

UNTIL(signal_or_deadline, setup_cond, nobody_waits, m0_until, foreign_signals)

/* Another waits too, without a deadline, and must be woken if the first was not. */
static void waits_without(struct m *mp)
{
    (void)mp;
    model_lock(&mutex_key);
    while (!tokens) {
        pirn_cond_wait(cond, NULL);
    }
    mutex_unlock_visiting(NULL);
}

static void waits_until_and_passes_on(struct m *mp)
{
    waits_until(mp);
    if (woken) {
        pirn_cond_signal(cond);
    }
}

static void setup_cond_two(void)
{
    setup_cond();
    body[0] = waits_without;
    body[1] = waits_until_and_passes_on;
    struct g *first = runq_get_owner(&ps[0].runq);
    runq_put_owner(&ps[0].runq, new_goroutine(1));
    runq_put_owner(&ps[0].runq, first);
}

UNTIL(signal_is_not_lost, setup_cond_two, nobody_waits, m0, foreign_signals)

/* --- or until a context is cancelled ------------------------------------------------------------------------------ */

static void with_context(struct g *gp)
{
    static char any;
    extra = (struct gextra){.ctx = (struct pirn_ctx *)(void *)&any};
    gp->extra = &extra;
    done = pirn_chanv_make(sizeof(int), 0);
}

static void receives_in_context(struct m *mp)
{
    (void)mp;
    int v = 7, r = pirn_chanv_recv_until(a, &v, PIRN_NEVER);
    CHECK(r == 0 ? v == 1 && data == 1 : r == -ECANCELED && v == 7);
    received = r == 0;
    uses_the_stack();
}

static void waits_in_context(struct m *mp)
{
    (void)mp;
    model_lock(&mutex_key);
    int r = tokens ? -1 : pirn_cond_wait_until(cond, NULL, PIRN_NEVER);
    CHECK(r == -1 || r == -ECANCELED || (r == 0 && tokens == 1));
    mutex_unlock_visiting(NULL);
    uses_the_stack();
}

static void setup_receiver_in_context(void)
{
    setup(receives_in_context);
    with_context(&gs[0]);
}

static void setup_cond_in_context(void)
{
    setup_cond();
    body[0] = waits_in_context;
    with_context(&gs[0]);
}

static void foreign_cancels(void)
{
    pirn_chanv_close(done);
}

static void foreign_cancels_and_signals(void)
{
    foreign_cancels();
    foreign_signals();
}

static void both_or_none_in_context(void)
{
    CHECK(!done->receivers.first && !done->selects);
    pirn_chanv_release(done);
    both_or_none();
}

static void nobody_waits_in_context(void)
{
    CHECK(!done->receivers.first && !done->selects);
    pirn_chanv_release(done);
    nobody_waits();
}

UNTIL(receive_or_cancel, setup_receiver_in_context, both_or_none_in_context, m0_until,
      foreign_tries_to_send, foreign_cancels)
UNTIL(signal_or_cancel, setup_cond_in_context, nobody_waits_in_context, m0_until,
      foreign_cancels_and_signals)
