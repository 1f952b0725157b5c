/* SPDX-License-Identifier: MIT */
/* Who watches signals; signal.c has the design. */
#ifndef PIRN_IO_SIGNAL_H
#define PIRN_IO_SIGNAL_H

#include <signal.h>

#include "sync/chan.h"

/* --- signal.c -------------------------------------------------------------------------------------- */

enum signal_action {
    SIGNAL_PROGRAMS, /* what it was before pirn */
    SIGNAL_OURS,
    SIGNAL_IGNORED
};

static inline uint64_t signal_bit(int sig)
{
    return (uint64_t)1 << (sig - 1);
}

static inline int signal_lowest(uint64_t set)
{
    return __builtin_ctzll(set) + 1;
}

bool signal_can_be_caught(int sig);
/* Under the lock of watch.c; 0 or -errno, the first one. */
int signal_set_action(int sig, enum signal_action to);
int signal_set_actions(uint64_t set, enum signal_action to);
void signals_wait_for_handlers(
    void); /* all that are no more wanted are pending, or will come again */
bool signals_noted(void);
uint64_t signals_take(void); /* those that are pending, which are no more */

/* --- watch.c --------------------------------------------------------------------------------------- */

struct watch {
    struct watch *next;
    struct pirn_ctx *ctx; /* cancelled by any of them; or NULL, and */
    pirn_chanv *chan;     /* of int: each is sent to it; a reference */
    uint64_t signals;     /* a bit for each */
    bool due;             /* one of them has come, and the context is not yet cancelled */
};

/* These by who is inside a visit, or on g0. */
/* 0 or -errno. *w becomes NULL if it is kept: not, if there is one of the same channel, which grows. */
int signal_watch(struct watch **w);
/* The record, which is the caller's again; NULL: it watches nothing. who: the context or channel. */
struct watch *signal_unwatch(const void *who);
/* Nobody watches it any more; records that are left with nothing to watch are put before *gone. */
int signal_let_be(int sig, enum signal_action to, struct watch **gone);

/* above.h of the scheduler has signals_pending() and the others that the scheduler calls. */

/* notify.c: by a context that is cancelled. */
void signal_end_of(struct pirn_ctx *ctx);

#endif
