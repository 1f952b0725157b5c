/* SPDX-License-Identifier: MIT */
/* Waiting for a result that another thread brings; pending.h has the design. */
#include "io/pending.h"

#include "ctx/ctx.h"

/* Stops a completion from looking at a select that is over. True: done meanwhile. */
static bool forget_select(struct pending *p)
{
    uint64_t word = word_lock(&p->word);
    p->select = NULL;
    word_unlock(&p->word, word);
    return word & PENDING_DONE;
}

static bool wait_in(struct pending *p, struct pirn_ctx *ctx, int64_t deadline,
                    enum wait_reason reason)
{
    struct visit v = {.mp = getm()};
    pirn_case ends = {.kind_ = PIRN_CASE_RECV_, .chan_ = ctx ? ctx_done(ctx) : NULL};
    struct chan_op op;
    struct select s = SELECT_INIT(&ends, &op, 1, deadline);
    uint64_t word = word_lock(&p->word);
    if (word & PENDING_DONE) {
        word_unlock(&p->word, word);
        return true;
    }
    if (select_try(v, &s) >= 0) {
        word_unlock(&p->word, word);
        return false;
    }
    p->select = &s;
    s.also = (struct unlock_to){&p->word, word};
    return select_wait(v, &s, reason) == select_also_of(&s) || forget_select(p);
}

bool pending_wait(struct pending *p, enum wait_reason reason)
{
    return wait_in(p, ctx_of(getm()), PIRN_NEVER, reason);
}

bool pending_wait_until(struct pending *p, int64_t deadline, enum wait_reason reason)
{
    return wait_in(p, ctx_of(getm()), deadline, reason);
}

void pending_wait_done(struct pending *p)
{
    wait_in(p, NULL, PIRN_NEVER, WAIT_FILE);
}

bool pending_is_done(struct pending *p)
{
    return at_load(&p->word, ACQUIRE) & PENDING_DONE;
}

struct waiter *pending_done(struct pending *p)
{
    uint64_t word = word_lock(&p->word);
    struct waiter *w = p->select && select_claim_also(p->select) ? p->select->waiter : NULL;
    word_unlock(&p->word, word | PENDING_DONE);
    return w;
}

int pending_ctx_err(void)
{
    struct pirn_ctx *ctx = ctx_of(getm());
    return ctx ? ctx_err(ctx) : 0;
}
