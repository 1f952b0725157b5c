/* SPDX-License-Identifier: MIT */
/* Foreign threads beside a runtime that never ends: foreign.c without its counters. */
#ifndef TESTS_MODEL_FOREIGN_LEAN_H
#define TESTS_MODEL_FOREIGN_LEAN_H

#include "explorer/model.h"

#include "sched/park.h"

/* 1: notes are one step, but for waits with a deadline. note.c is the model of the real ones. */
#ifndef NOTES_IN_ONE
#define NOTES_IN_ONE 0
#endif

bool foreign_enter(void)
{
    return true;
}

void foreign_leave(void)
{
}

void foreign_late_begin(void)
{
}

void foreign_late_end(void)
{
}

bool foreign_park(struct waiter *w, bool entered, commit_fn *commit, void *arg, int64_t deadline)
{
    CHECK(entered);
    bool in_one = NOTES_IN_ONE && deadline == PIRN_NEVER;
    w->timed = !in_one;
    if (in_one) {
        model_note_clear(&w->note);
    }
    if (!commit(NULL, arg)) {
        foreign_ready(w);
    }
    if (in_one) {
        model_note_wait(&w->note);
        return true;
    }
    return note_wait_until(&w->note, deadline);
}

void foreign_wait_for_ready(struct waiter *w)
{
    note_wait(&w->note);
}

void foreign_ready(struct waiter *w)
{
    if (!NOTES_IN_ONE || w->timed) {
        note_post(&w->note);
    } else {
        model_note_post(&w->note);
    }
}

#endif
