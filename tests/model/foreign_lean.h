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

void foreign_park(struct note *note, commit_fn *commit, void *arg)
{
    CHECK(commit(NULL, arg));
    note_wait(note);
}

void foreign_ready(struct note *note)
{
    note_post(note);
}

#endif
