/* SPDX-License-Identifier: MIT */
/*
 * A timer of the program's: one that calls a function (after a time, or when a context is cancelled), or
 * one that sends the time to its channel, once or again and again. timer.c has the design.
 */
#ifndef PIRN_TIME_TIMER_H
#define PIRN_TIME_TIMER_H

#include "sync/chan.h"

struct pirn_timer {
    struct timer timer; /* first */
    /* of a function */
    void (*fn)(void *);
    void *arg;
    at_u32 refs;          /* the program's, and one for each call that is to come or runs */
    at_u32 calls;         /* the latter alone */
    at_u64 word;          /* word lock of what follows */
    struct call *running; /* calls that have begun */
    void *waiters;        /* for their end */
    /* of a channel, which owns it */
    pirn_chanv *chan;
    at_u32 sending; /* firings that are on their way to the channel */
    at_u32 begun;   /* generation of the last of them, until it is there; of a ticker: any */
    /* of a context, in place of a time: in its list, under its lock */
    struct pirn_ctx *ctx;
    struct pirn_timer *next, *prev;
    bool watching;
};

struct pirn_timer *timer_of_func(void (*fn)(void *), void *arg);
void timer_call(struct pirn_timer *t); /* begins a call; needs a runtime */
bool ctx_unwatch(struct pirn_timer *t); /* ctx/ctx.c: true if it was still to come */

#endif
