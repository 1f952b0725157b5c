/* SPDX-License-Identifier: MIT */
/* Foreign threads beside a runtime that never ends: foreign.c without its counters. */
#ifndef TESTS_MODEL_FOREIGN_LEAN_H
#define TESTS_MODEL_FOREIGN_LEAN_H

#include "explorer/model.h"

#include "sched/park.h"

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
    if (!commit(NULL, arg)) {
        note_post(&w->note);
    }
    return note_wait_until(&w->note, deadline);
}

void foreign_wait_for_ready(struct waiter *w)
{
    note_wait(&w->note);
}

void foreign_ready(struct waiter *w)
{
    note_post(&w->note);
}

#endif
