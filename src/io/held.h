/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that belong to a call under way: closed if its goroutine is dropped with the runtime. open.c
 * has the design. The record is in the frame of the call.
 */
#ifndef PIRN_IO_HELD_H
#define PIRN_IO_HELD_H

#include "sched/sched.h"

#define HELD_NONE (-1)
#define HELD_DROPPED (-2)

struct held {
    struct held *next, *prev;
    AT(int) fd;
};

/* Outside the runtime; nothing to do on a thread that is not pirn's. */
void held_begin(struct held *h);
void held_end(struct held *h);
/* Anywhere. False: the runtime has ended without this one, and the descriptor was closed. */
bool held_set(struct held *h, int fd);
void held_stop(void);

#endif
