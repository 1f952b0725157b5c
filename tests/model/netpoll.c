/* SPDX-License-Identifier: MIT */
/*
 * Sleeping in the poller (netpoll.c, idle.c): an event of a descriptor that somebody waits for wakes an M, and
 * so does work, a P that is passed on, and a foreign thread that begins to wait; none is lost, whoever
 * sleeps there, gives up the place, or is about to take it.
 *
 * The kernel is one word: READY, the descriptor is, and BREAK, the eventfd is written. G 0 waits for the
 * descriptor.
 */
#include "machine.h"

#include "../../src/io/netpoll.c"

#define PARENT 10
#define EVENT 11
#define POLLER 12

enum { READY = 1, BREAK = 2 };
static at_u32 kernel;
static struct waiter waiter;
static at_u32 waiting; /* G 0 is on the queue of the descriptor */

/* --- the kernel ---------------------------------------------------------------------------------------- */

int poll_wait(int poller, struct poll_event *out, int n, int64_t deadline)
{
    int k = 0;
    CHECK(n >= 2);
    if (poller == POLLER) {
        CHECK(deadline == 0);
        out[0] = (struct poll_event){.ready = POLL_READ};
        return at_and(&kernel, ~(uint32_t)READY, ACQ_REL) & READY ? 1 : 0;
    }
    CHECK(poller == PARENT);
    uint32_t now;
    while (!(now = at_load(&kernel, ACQUIRE)) && deadline) {
        futex_wait(&kernel, 0, deadline);
    }
    if (now & READY) {
        out[k++] = (struct poll_event){.tag = 0};
    }
    if (now & BREAK) {
        out[k++] = (struct poll_event){.tag = TAG_BREAK};
    }
    return k;
}

static void set(uint32_t bit)
{
    at_or(&kernel, bit, ACQ_REL);
    futex_wake(&kernel, 1); /* of several that wait, one */
}

void poll_break_tell(int fd)
{
    CHECK(fd == EVENT);
    set(BREAK);
}

void poll_break_clear(int fd)
{
    CHECK(fd == EVENT);
    at_and(&kernel, ~(uint32_t)BREAK, ACQ_REL);
}

void pd_prefetch(uint64_t far, uint64_t near)
{
    (void)far, (void)near;
}

struct waiter *pd_event(uint64_t tag, uint32_t ready)
{
    CHECK(tag == 0 && ready == POLL_READ);
    if (!at_xchg(&waiting, 0, ACQ_REL)) {
        return NULL;
    }
    netpoll_waits(-1);
    waiter.next = NULL;
    return &waiter;
}

/* --- what is not looked at ------------------------------------------------------------------------------- */

int poll_open(void)
{
    model_fail("a poller is made");
}
int poll_break_open(void)
{
    model_fail("an eventfd is made");
}
int poll_add(int poller, int fd, uint64_t tag)
{
    model_fail("%d, %d, %lx", poller, fd, (long)tag);
}
int poll_add_new(int poller, int fd, uint64_t tag)
{
    return poll_add(poller, fd, tag);
}
int poll_add_level(int poller, int fd, uint64_t tag)
{
    model_fail("%d, %d, %lx", poller, fd, (long)tag);
}
void poll_remove(int poller, int fd)
{
    model_fail("%d, %d", poller, fd);
}
int sys_poll(int fd, short events, int64_t deadline)
{
    model_fail("%d, %d, %ld", fd, events, (long)deadline);
}
int sys_close(int fd)
{
    model_fail("%d", fd);
}
void pd_forget_all(bool unmap)
{
    model_fail("%d", unmap);
}
void foreign_ready(struct waiter *w)
{
    model_fail("%p", (void *)w);
}
bool foreign_enter(void)
{
    model_fail("foreign_enter");
}
void foreign_leave(void)
{
}
bool foreign_park(struct waiter *w, bool entered, commit_fn *commit, void *arg, int64_t deadline)
{
    model_fail("%p, %d, %p, %p, %ld", (void *)w, entered, (void *)&commit, arg, (long)deadline);
}
void foreign_late_end(void)
{
}

/* --- the threads ------------------------------------------------------------------------------------------ */

static void begin_to_wait(void)
{
    at_store(&waiting, 1, RELEASE);
    netpoll_waits(1);
}

static void setup_kernel(uint32_t n)
{
    machine_setup(n);
    at_store(&kernel, 0, RELAXED);
    at_store(&waiting, 0, RELAXED);
    at_store(&netpoll.waits, 0, RELAXED);
    at_store(&netpoll.parent1, PARENT + 1, RELAXED);
    at_store(&netpoll.event1, EVENT + 1, RELAXED);
    at_store(&netpoll.poller1[0], POLLER + 1, RELAXED);
    new_g(0);
    at_store(&gs[0].status, G_WAITING, RELAXED);
    waiter = (struct waiter){.g = &gs[0]};
}

static void setup_one(void)
{
    setup_kernel(1);
    begin_to_wait();
}

static void setup_asleep_unwatched(void)
{
    setup_kernel(1);
    machine_idle(0);
}

static void event(void)
{
    set(READY);
}

static void foreign_work(void)
{
    submit_foreign(1);
}

/* A foreign thread begins to wait while all sleep; then the event comes. */
static void foreign_waits(void)
{
    begin_to_wait();
    netpoll_wake();
    set(READY);
}

#define POLL(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = all_ran, .sleepers = 7, .threads = {__VA_ARGS__},      \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

POLL(event_while_one_goes_to_sleep, setup_one, m0, event)
POLL(event_and_work, setup_one, m0, event, foreign_work)

static void work_ran(void)
{
    CHECK(gs[1].creator == 1);
}

MODEL(work_for_the_one_in_the_poller, .setup = setup_one, .finish = work_ran, .sleepers = 1,
      .threads = {m0_sleeps_once, foreign_work}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

POLL(foreign_begins_to_wait, setup_asleep_unwatched, m0_once, foreign_waits)
