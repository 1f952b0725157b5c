/* SPDX-License-Identifier: MIT */
/* The thread that waits for descriptors and signals; poller.c has the design. */
#ifndef PIRN_IO_POLLER_H
#define PIRN_IO_POLLER_H

#include "sync/chan.h"

int poller_start(void); /* before the first use; 0 or -errno */
void poller_stop(void);
bool poller_idle(void); /* it exists, and nobody waits for it */

/* Operations of a select on descriptors: all at once, and each off again. */
void poller_add(struct chan_op *ops, const pirn_case *cases, int n);
void poller_remove(struct chan_op *op);
short poller_events(const pirn_case *k);
/* Marks the cases whose descriptor is ready. */
void poller_look(pirn_case *cases, int n);

/* From a handler, too: a signal has come. */
void poller_break(void);

#endif
