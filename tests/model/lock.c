/* SPDX-License-Identifier: MIT */
/*
 * The runtime's mutex and the word lock, the real ones on top of futexes: one holder at a time, who
 * sees what the holders before it wrote; nobody sleeps on while the lock is free. Of the word lock
 * also: the caller's bits are kept, an update without the lock fits in between, and the last holder
 * may free the word while the one before is still on its way into the kernel.
 */
#include "explorer/model.h"

#include <stdlib.h>

#include "os/os.h"

static int data;                   /* under the lock */
static int entered[MODEL_THREADS]; /* each thread's own */

/* --- lock ---------------------------------------------------------------------------------------- */

static struct lock mutex = LOCK_INIT(RANK_SCHED);

static void setup(void)
{
    at_store(&mutex.state, 0, RELAXED);
    data = 0;
    memset(entered, 0, sizeof entered);
}

static int total(void)
{
    int n = 0;
    for (int i = 0; i < MODEL_THREADS; i++) {
        n += entered[i];
    }
    return n;
}

static void finish(void)
{
    CHECK(at_load(&mutex.state, RELAXED) == 0);
    CHECK(data == total());
}

static void once(void)
{
    lock(&mutex);
    data++; /* a race if two are inside */
    unlock(&mutex);
    entered[model_self()]++;
}

static void twice(void)
{
    once();
    once();
}

#define LOCK_MODEL(mname, ...) MODEL(mname, .setup = setup, .finish = finish, __VA_ARGS__)

LOCK_MODEL(lock_two, .threads = {twice, twice}, .spurious = 2, .preemptions = MODEL_UNBOUNDED)
LOCK_MODEL(lock_three, .threads = {once, once, once}, .preemptions = MODEL_UNBOUNDED)
LOCK_MODEL(lock_three_spurious, .threads = {once, once, once}, .spurious = 1, .preemptions = 5,
           .quick = 4)
LOCK_MODEL(lock_three_twice, .threads = {twice, once, once}, .preemptions = 5, .quick = 3)
LOCK_MODEL(lock_four, .threads = {once, once, once, once}, .preemptions = 3, .quick = 2)

/* --- the word lock ------------------------------------------------------------------------------- */

#define COUNT ((uint64_t)1 << 32) /* in the high half */
#define FLAG ((uint64_t)4)        /* in the low half, where sleepers compare: flips each time */

static at_u64 *word;

static void setup_word(void)
{
    word = malloc(sizeof *word);
    at_store(word_bed(word), 0, RELAXED); /* an execution may have been given up */
    at_store(word, 0, RELAXED);
    data = 0;
    memset(entered, 0, sizeof entered);
}

static void finish_word(void)
{
    uint64_t n = (uint64_t)total();
    CHECK(at_load(word, RELAXED) == (n * COUNT | ((uint64_t)data & 1) * FLAG));
    free(word);
}

static void word_once(void)
{
    uint64_t w = word_lock(word);
    CHECK(!(w & WORD_LOCKED));
    CHECK(!(w & FLAG) == !(data & 1));
    data++;
    word_unlock(word, (w ^ FLAG) + COUNT);
    entered[model_self()]++;
}

static void word_twice(void)
{
    word_once();
    word_once();
}

/* Counts without the lock while nobody has it, as wait groups do. */
static void word_add(void)
{
    uint64_t w = at_load(word, RELAXED);
    for (;;) {
        if (w & WORD_LOCKED) {
            w = word_lock(word);
            word_unlock(word, w + COUNT);
            break;
        }
        if (at_cas(word, &w, w + COUNT, RELEASE, RELAXED)) {
            break;
        }
    }
    entered[model_self()]++;
}

#define WORD_MODEL(mname, ...) MODEL(mname, .setup = setup_word, .finish = finish_word, __VA_ARGS__)

WORD_MODEL(word_two, .threads = {word_twice, word_twice}, .preemptions = MODEL_UNBOUNDED,
           .quick = 4)
WORD_MODEL(word_two_spurious, .threads = {word_twice, word_once}, .spurious = 2,
           .preemptions = MODEL_UNBOUNDED, .quick = 4)
WORD_MODEL(word_three, .threads = {word_once, word_once, word_once}, .preemptions = 4, .quick = 2)

/* Two want what the third gives back, so both may sleep before it does. */
static void setup_held(void)
{
    setup_word();
    at_store(word, WORD_LOCKED, RELAXED);
}

static void word_give_back(void)
{
    data++;
    word_unlock(word, FLAG + COUNT);
    entered[model_self()]++;
}

MODEL(word_two_sleepers, .setup = setup_held, .finish = finish_word,
      .threads = {word_give_back, word_once, word_once}, .preemptions = MODEL_UNBOUNDED)

WORD_MODEL(word_with_add, .threads = {word_once, word_once, word_add}, .preemptions = 3, .quick = 2)

/* --- the last one frees the word ------------------------------------------------------------------- */

static void setup_two_users(void)
{
    setup_word();
    at_store(word, 2 * COUNT, RELAXED);
}

static void setup_three_users(void)
{
    setup_word();
    at_store(word, 3 * COUNT, RELAXED);
}

static void word_leave(void)
{
    uint64_t w = word_lock(word) - COUNT;
    data++;
    word_unlock(word, w); /* unless this was the last, the word may be gone now */
    if (w == 0) {
        free(word);
    }
}

MODEL(word_freed, .setup = setup_two_users, .threads = {word_leave, word_leave}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)
MODEL(word_freed_three, .setup = setup_three_users, .threads = {word_leave, word_leave, word_leave},
      .preemptions = 4, .quick = 2)
