/* SPDX-License-Identifier: MIT */
/*
 * The one-shot note: whoever waits is woken by the post, whenever that comes, sees what the poster
 * wrote before it, and may take the note's memory back as soon as its wait has returned, also while
 * the poster is still on its way into the kernel. A wait whose deadline passes leaves the note as it
 * is. Futex waits end for no reason, too.
 */
#include "explorer/model.h"

#include <stdlib.h>

#include "os/os.h"

#define SOON ((int64_t)1000000)

static struct note *note;
static int data[2]; /* written by posters, read by who was woken */
static at_u32 turn;

static void setup(void)
{
    note = malloc(sizeof *note);
    note_clear(note);
    data[0] = data[1] = 0;
    at_store(&turn, 0, RELAXED);
}

/* --- post before, during and after the wait ---------------------------------------------------------- */

static void post(void)
{
    data[0] = 1;
    note_post(note);
}

static void wait_and_free(void)
{
    note_wait(note);
    CHECK(data[0] == 1);
    free(note);
}

MODEL(post_and_wait, .setup = setup, .threads = {post, wait_and_free}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)

/* As above, with the note in the waiter's frame, which its next call overwrites. */
static AT(struct note *) on_stack;

static void setup_on_stack(void)
{
    data[0] = 0;
    at_store(&on_stack, NULL, RELAXED);
}

static __attribute__((noinline)) void wait_on_stack(void)
{
    struct note n;
    note_clear(&n);
    at_store(&on_stack, &n, RELEASE);
    note_wait(&n);
    CHECK(data[0] == 1);
}

static __attribute__((noinline)) void overwrite_stack(void)
{
    volatile char frame[256];
    for (unsigned i = 0; i < sizeof frame; i++) {
        frame[i] = 0x55;
    }
}

static void wait_twice_on_stack(void)
{
    wait_on_stack();
    overwrite_stack();
}

static void post_to_stack(void)
{
    struct note *n;
    while (!(n = at_load(&on_stack, ACQUIRE))) {
        at_pause();
    }
    data[0] = 1;
    note_post(n);
}

MODEL(post_to_stack, .setup = setup_on_stack, .threads = {wait_twice_on_stack, post_to_stack},
      .spurious = 2, .preemptions = MODEL_UNBOUNDED)

/* --- the same note again, as an M's -------------------------------------------------------------------- */

static void wait_clear_wait(void)
{
    note_wait(note);
    note_clear(note);
    CHECK(data[0] == 1);
    at_store(&turn, 1, RELEASE);
    note_wait(note);
    CHECK(data[1] == 1);
    free(note);
}

static void post_again(void)
{
    while (!at_load(&turn, ACQUIRE)) {
        at_pause();
    }
    data[1] = 1;
    note_post(note);
}

static void post_twice(void)
{
    post();
    post_again();
}

MODEL(clear_and_reuse, .setup = setup, .threads = {wait_clear_wait, post_twice}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)
/* The wake of the first poster may come during the second wait. */
MODEL(late_wake, .setup = setup, .threads = {wait_clear_wait, post, post_again}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)

/* --- deadlines ------------------------------------------------------------------------------------------- */

/* Who changes turn first decides: the poster posts, or the waiter goes away. */
static void post_if_wanted(void)
{
    data[0] = 1;
    if (at_xchg(&turn, 1, ACQ_REL) == 0) {
        note_post(note);
    }
}

static void wait_until_and_free(void)
{
    bool posted = note_wait_until(note, SOON);
    if (!posted && at_xchg(&turn, 1, ACQ_REL) != 0) {
        note_wait(note); /* the post is on its way: it must come before the memory goes */
        posted = true;
    }
    CHECK(!posted || data[0] == 1);
    free(note);
}

MODEL(deadline, .setup = setup, .threads = {post_if_wanted, wait_until_and_free}, .spurious = 2,
      .timeouts = 1, .preemptions = MODEL_UNBOUNDED)

/* The deadline passes while nobody posts. */
static void wait_in_vain(void)
{
    CHECK(!note_wait_until(note, SOON));
    CHECK(now_ns() >= SOON);
    free(note);
}

MODEL(nobody_posts, .setup = setup, .threads = {wait_in_vain}, .spurious = 2, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED)

/* A post that happens before the wait is never missed, whatever the deadline. */
static void post_and_tell(void)
{
    post();
    at_store(&turn, 1, RELEASE);
}

static void wait_when_told(void)
{
    if (at_load(&turn, ACQUIRE)) {
        CHECK(note_wait_until(note, 0));
        CHECK(data[0] == 1);
    }
}

static void free_note(void)
{
    free(note);
}

MODEL(post_before_wait, .setup = setup, .finish = free_note,
      .threads = {post_and_tell, wait_when_told}, .spurious = 2, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED)

/* Three waits with deadlines in a row, one post: from the post on they return true. */
static bool got[3];

static void wait_three_times(void)
{
    for (int i = 0; i < 3; i++) {
        got[i] = note_wait_until(note, SOON);
        CHECK(!got[i] || data[0] == 1);
    }
}

static void check_three(void)
{
    CHECK(got[0] <= got[1] && got[1] <= got[2]);
    free(note);
}

MODEL(three_deadlines, .setup = setup, .finish = check_three, .threads = {post, wait_three_times},
      .spurious = 1, .timeouts = 3, .preemptions = MODEL_UNBOUNDED)
