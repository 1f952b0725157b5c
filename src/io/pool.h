/* SPDX-License-Identifier: MIT */
/* Helper threads, for calls that block and can't be waited for otherwise; pool.c has the design. */
#ifndef PIRN_IO_POOL_H
#define PIRN_IO_POOL_H

#include "sched/park.h"

enum pool_queue { POOL_LOOKUPS, POOL_OPENS, POOL_QUEUES };

struct pool_job;
struct pool_kind {
    enum pool_queue queue;
    void (*run)(struct pool_job *); /* by a helper, with no lock; the job may be gone after it */
    void (*refused)(
        struct pool_job *); /* by the factory: there is no thread for it, do it yourself */
    void (*dropped)(struct pool_job *); /* the runtime ends, and it has not begun */
};

/* What a helper is to do: part of something larger, which stays until one of these was called. */
struct pool_job {
    const struct pool_kind *kind;
    struct pool_job *next, *prev; /* under the pool's lock */
    bool queued;                  /* the same */
};

void pool_put(struct pool_job *job);       /* in the runtime */
bool pool_take_back(struct pool_job *job); /* true: nobody will call any of its functions */
void pool_make(void);                      /* by the factory */
bool pool_stop(int64_t grace);             /* true: some helper is still busy, and left behind */
int pool_idle(void);                       /* threads that wait for work; -1: they have some */

#endif
