/* SPDX-License-Identifier: MIT */
/*
 * Wait groups: a wait returns when the count is zero and not before, with everything seen that was
 * done before the dones; every waiter is woken; and the group may be freed as soon as all waits on
 * it have returned, while the done that ended them is still under way. Goroutines appear as wait
 * records: they are made ready exactly once.
 *
 * The waiters are threads that pirn did not make. So that three of them can be explored, what
 * surrounds their calls is left out here, and who finds the word lock held spins; with all that, but
 * fewer threads: waitgroup_foreign.c.
 */
#include "waitgroup.h"

uint64_t word_lock_slow(at_u64 *word)
{
    for (;;) {
        uint64_t w = at_load(word, RELAXED);
        if (!(w & WORD_LOCKED) && at_cas(word, &w, w | WORD_LOCKED, ACQUIRE, RELAXED)) {
            return w;
        }
        at_pause();
    }
}

void word_wake(at_u64 *word)
{
    model_fail("nobody sleeps on %p", (void *)word);
}

bool foreign_enter(void)
{
    return true;
}

void foreign_leave(void)
{
}

void foreign_hold(void)
{
}

void foreign_release(void)
{
}

void foreign_park(struct note *note, commit_fn *commit, void *arg)
{
    CHECK(commit(NULL, arg));
    note_wait(note);
}

void foreign_ready(struct note *note)
{
    note_post(note);
}

MODEL(done_wait, .setup = one_done, .finish = at_rest, .threads = {done, wait}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_done, .setup = two_dones, .finish = at_rest, .threads = {done, done, wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_wait, .setup = one_done_two_waits, .finish = at_rest, .threads = {done, wait, wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_two, .setup = two_dones_two_waits, .finish = at_rest, .threads = {done, done, wait, wait},
      .preemptions = 3)

MODEL(add_wait, .setup = one_done, .finish = at_rest, .threads = {add_and_done_twice, wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(add_done_wait, .setup = two_dones, .finish = at_rest,
      .threads = {add_and_done_twice, done, wait}, .preemptions = 3)

MODEL(reuse, .setup = again, .finish = at_rest, .threads = {done, done_in_round_two, wait_add_wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_done_g, .setup = two_dones_one_g, .finish = all_runnable_and_free,
      .threads = {done, done}, .preemptions = MODEL_UNBOUNDED)

MODEL(done_wait_and_gs, .setup = one_done_two_gs, .finish = all_runnable, .threads = {done, wait},
      .preemptions = MODEL_UNBOUNDED)
