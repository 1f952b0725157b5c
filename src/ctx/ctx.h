/* SPDX-License-Identifier: MIT */
/* What the calls that a context can end need of it; ctx.c has the design. */
#ifndef PIRN_CTX_CTX_H
#define PIRN_CTX_CTX_H

#include "sched/park.h"

/* The current context of this M's goroutine; NULL: the background, which is never cancelled. */
static inline struct pirn_ctx *ctx_of(struct m *mp)
{
    struct gextra *x = mp && mp->curg ? mp->curg->extra : NULL;
    return x ? x->ctx : NULL;
}

pirn_chanv *ctx_done(const struct pirn_ctx *ctx); /* never NULL */
int ctx_err(const struct pirn_ctx *ctx);          /* 0: not cancelled */
/* In a visit, or on g0 with its M. */
void ctx_cancel(struct visit v, struct pirn_ctx *ctx, int err, int cause);

#endif
