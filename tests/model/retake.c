/* SPDX-License-Identifier: MIT */
/*
 * Taking the P from a thread that blocks, or seems to: whatever the thread does meanwhile, afterwards one
 * of the two has the P; who has it sees what the other did with it; and the goroutine goes on with a P,
 * on the same thread, or on another if it had said that it may.
 *
 * There is one P. M 0 has it and a goroutine that goes in and out of the runtime; M 1 sleeps, and
 * inherits the P. A P is used by writing to it: a race, if two do.
 */
#include <fcntl.h>
#include <unistd.h>

#define MACHINE_STACKS
#include "machine.h"

#define errno (*pirn_errno_location())

/* The kernel says that it is asleep, which may have been true a moment ago. */
#define open(path, ...) ((void)(path), 3)
#define read(fd, buf, n) ((void)(fd), *(buf) = '7', (ssize_t)1)
#define close(fd) ((void)(fd))
#include "../../src/sched/retake.c"
#undef open
#undef read
#undef close

size_t fmt(char *buf, size_t size, const char *format, ...)
{
    (void)size, (void)format;
    *buf = 0;
    return 0;
}

void sysmon_may_block(void)
{
}

static void use(struct m *mp)
{
    CHECK(mp->p == &ps[0] && at_load(&ps[0].m, RELAXED) == mp);
    ps[0].ngfree++;
}

/* The machine is in the middle of a goroutine, G 0, in its own code. */
static void setup(void)
{
    machine_setup_one_p();
    ms[0].curg = new_goroutine(0);
    at_store(&gs[0].status, G_RUNNING, RELAXED);
    at_store(&ms[0].where, M_USER, RELAXED);
}

static void in_and_out(void)
{
    set_current_m(&ms[0]);
    use(enter());
    leave();
    use(enter()); /* and stays */
}

/* The heir: comes to the goroutine, if that has queued, and passes the P on. */
static void heir(void)
{
    struct m *mp = m_begin(1);
    use(mp);
    for (struct g *gp; (gp = find_work(mp));) {
        CHECK(gp == &gs[0] && gp->flags & G_BOUND && gp->run.m == &ms[0]);
        use(mp);
        m_hand_off(mp, gp);
    }
}

static void takes(void)
{
    take(&ps[0], &ms[0], false);
}

static void takes_twice(void)
{
    takes();
    takes();
}

/* Sysmon itself, two looks. */
static void looks(void)
{
    retake_look(&ps[0], PIRN_MS);
    retake_look(&ps[0], 2 * PIRN_MS);
}

static void each_has_its_own(void)
{
    CHECK(ms[0].p == &ps[0] && at_load(&ps[0].m, RELAXED) == &ms[0]);
    CHECK(at_load(&ps[0].status, RELAXED) == P_RUNNING);
    CHECK(at_load(&sched.npidle, RELAXED) == 0 && !sched.pidle);
    CHECK(at_load(&sched.globq.size, RELAXED) == 0);
    CHECK(!(at_load(&ms[0].attention, RELAXED) & (M_ASKED | M_LOST)));
    CHECK(at_load(&gs[0].status, RELAXED) == G_RUNNING && ms[0].curg == &gs[0]);
    CHECK(!ms[1].p && ms[1].idle && sched.nmidle == 1);
    CHECK(!ms[0].nextp && !ms[1].nextp);
}

#define RETAKE(mname, setup_, ...)                                                                 \
    MODEL(mname, .setup = setup_, .finish = each_has_its_own, .sleepers = 2,                       \
          .threads = {__VA_ARGS__}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

RETAKE(take_unannounced, setup, in_and_out, heir, takes)
RETAKE(take_unannounced_twice, setup, in_and_out, heir, takes_twice)

/* By one that owes others something. */
static void in_and_out_owing(void)
{
    set_current_m(&ms[0]);
    use(enter_anyway());
    leave();
    use(enter_anyway());
}

RETAKE(take_from_one_that_owes, setup, in_and_out_owing, heir, takes)

/* Others have work, so that sysmon looks. */
static void setup_wanted(void)
{
    setup();
    globq_put_locked(&sched.globq, new_goroutine(1));
}

static void heir_runs_it(void)
{
    struct m *mp = m_begin(1);
    for (struct g *gp; (gp = find_work(mp));) {
        use(mp);
        if (gp == &gs[1]) {
            note_run(1);
        } else {
            m_hand_off(mp, gp);
        }
    }
}

static void in_and_out_and_on(void)
{
    in_and_out();
    if (!ms[0].p->runq.head.v && at_load(&sched.globq.size, RELAXED)) {
        struct g *gp = next_local(ms[0].p);
        CHECK(gp == &gs[1]);
        note_run(1);
    }
}

RETAKE(sysmon_takes, setup_wanted, in_and_out_and_on, heir_runs_it, looks)

/* --- announced ------------------------------------------------------------------------------------- */

static void blocks(void)
{
    set_current_m(&ms[0]);
    use(enter());
    leave();
    pirn_blocking_begin();
    pirn_blocking_end();
    use(enter());
}

static void takes_announced(void)
{
    take(&ps[0], &ms[0], true);
}

/* Locked to its thread: else it would go on on M 1, see below. */
static struct gextra extra;
static void setup_locked(void)
{
    setup();
    extra = (struct gextra){.locked = 1};
    gs[0].extra = &extra;
    gs[0].flags |= G_BOUND;
    gs[0].run.m = &ms[0];
    ms[0].lockedg = &gs[0];
}

RETAKE(take_announced_locked, setup_locked, blocks, heir, takes_announced)

static void blocks_twice(void)
{
    set_current_m(&ms[0]);
    pirn_blocking_begin();
    pirn_blocking_end();
    pirn_blocking_begin();
    pirn_blocking_end();
    use(enter());
}

RETAKE(take_announced_locked_again, setup_locked, blocks_twice, heir, takes_announced)

/* Either taker may come while it is in the state of the other. */
static void takes_as_seen(void)
{
    retake_for_world(&ps[0]);
}

RETAKE(take_as_seen, setup_locked, blocks, heir, takes_as_seen)

/* It was seen with a P that it has no more when it is decided. */
static void setup_changes(void)
{
    setup_locked();
    pidle_put_locked(&ps[1]);
    at_store(&sched.nprocs, 2, RELAXED);
}

static void changes_its_p(void)
{
    struct m *mp = &ms[0];
    set_current_m(mp);
    enter();
    lock(&sched.lock);
    struct p *other = p_take_locked(&ps[1]);
    pidle_put_locked(p_unbind(mp));
    unlock(&sched.lock);
    p_bind(mp, other);
    leave();
    pirn_blocking_begin();
    pirn_blocking_end();
}

static void has_the_other(void)
{
    CHECK(ms[0].p == &ps[1] && at_load(&ps[1].m, RELAXED) == &ms[0]);
    CHECK(sched.pidle == &ps[0] && !at_load(&ps[0].m, RELAXED));
    CHECK(!ms[0].nextp && !ms[1].nextp && ms[1].idle);
}

MODEL(take_from_one_that_changes, .setup = setup_changes, .finish = has_the_other,
      .threads = {changes_its_p, takes_announced}, .preemptions = MODEL_UNBOUNDED)

/* --- a goroutine that moves ------------------------------------------------------------------------ */

static void body_blocks(struct m *mp)
{
    (void)mp;
    volatile int on_stack = 41;
    on_stack++;
    pirn_blocking_begin();
    pirn_blocking_end();
    CHECK(on_stack == 42);
    use(enter());
    leave();
}

static void *gives_nothing(void *arg)
{
    return arg;
}

static void body_gives(struct m *mp)
{
    (void)mp;
    volatile int on_stack = 41;
    CHECK(pirn_blocking(gives_nothing, (void *)&on_stack) == &on_stack);
    CHECK(on_stack == 41);
    use(enter());
    leave();
}

static void setup_goroutine(void)
{
    machine_setup_one_p();
    body[0] = body_blocks;
    runq_put_owner(&ps[0].runq, new_goroutine(0));
}

static void setup_goroutine_gives(void)
{
    setup_goroutine();
    body[0] = body_gives;
}

static void takes_from_any(void)
{
    take(&ps[0], &ms[0], true);
}

/* G 0 has ended, and all sleep. */
static void moved(void)
{
    each_ran_once();
    CHECK(sched.nmidle == 2 && sched.pidle == &ps[0]);
    CHECK(at_load(&sched.globq.size, RELAXED) == 0);
}

#define MOVES(mname, setup_, ...)                                                                  \
    MODEL(mname, .setup = setup_, .finish = moved, .sleepers = 3, .threads = {__VA_ARGS__},        \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

MOVES(take_announced, setup_goroutine, m0, m1, takes_from_any)
MOVES(gives_the_p_away, setup_goroutine_gives, m0, m1)

static void body_ends(struct m *mp)
{
    (void)mp;
}

/* Another waits for the P: M 1 gets it. */
static void setup_gives_to_other(void)
{
    setup_goroutine_gives();
    body[1] = body_ends;
    runq_put_owner(&ps[0].runq, new_goroutine(1));
}

MOVES(gives_the_p_to_another, setup_gives_to_other, m0, m1)

/* Another comes while it gives the P away: [W2]. */
static void setup_other_comes(void)
{
    setup();
    body[1] = body_ends;
    new_goroutine(1);
}

static void lets_go(void)
{
    set_current_m(&ms[0]);
    struct m *mp = enter();
    lock(&sched.lock);
    struct m *next = p_let_go_locked(mp, NULL);
    unlock(&sched.lock);
    p_let_go_end(next);
    at_store(&mp->where, M_TAKEN, RELEASE);
    wait_for(1);
}

static void foreign(void)
{
    submit_foreign(1);
}

static void other_has_it(void)
{
    CHECK(gs[1].creator == 1);
    CHECK(ms[1].p == &ps[0] && at_load(&ps[0].m, RELAXED) == &ms[1] && !ms[0].p);
}

MODEL(lets_go_while_other_comes, .setup = setup_other_comes, .finish = other_has_it,
      .threads = {lets_go, m1_once, foreign}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
