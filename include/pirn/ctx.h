/* SPDX-License-Identifier: MIT */
/*
 * Contexts: a tree of things that can be cancelled, with deadlines and values; and groups of
 * goroutines that end together.
 *
 *     pirn_group g;
 *     pirn_group_init(&g, NULL);
 *     for (int i = 0; i < n; i++)
 *         pirn_group_go(&g, fetch, urls[i]);       int fetch(const char *url)
 *     int err = pirn_group_wait(&g);               the first error, which cancelled the others
 *
 * Each goroutine has a current context, that of its spawner if nothing else is said. When it is
 * cancelled, every blocking call that returns an error code returns -ECANCELED, or -ETIMEDOUT.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_CTX_H
#define PIRN_CTX_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pirn_ctx pirn_ctx;

PIRN_API_ pirn_ctx *pirn_ctx_background(void); /* never cancelled; needs no release */

/*
 * Each gives one reference. The goroutine that made the context cancels it by its first release, also
 * if it has retained it before: a reference is retained for somebody else, who releases it. Such others
 * (and what is spawned) keep the context, but do not cancel it unless they are the last. The parent must
 * not be NULL.
 */
PIRN_API_ pirn_ctx *pirn_ctx_with_cancel(pirn_ctx *parent);
PIRN_API_ pirn_ctx *pirn_ctx_with_deadline(pirn_ctx *parent, pirn_ns deadline);
PIRN_API_ pirn_ctx *pirn_ctx_with_timeout(pirn_ctx *parent, pirn_ns ns);
PIRN_API_ pirn_ctx *pirn_ctx_with_value(pirn_ctx *parent, const void *key, void *value);
PIRN_API_ pirn_ctx *pirn_ctx_without_cancel(pirn_ctx *parent); /* its values only */
/* Cancelled by any of them, cause -EINTR. With the end of the last context that watches it, or of the
 * runtime, a signal has the handler again that it had before. */
PIRN_API_ pirn_ctx *pirn_ctx_with_signals(pirn_ctx *parent, const int *sigs, int n);
PIRN_API_ pirn_ctx *pirn_ctx_retain(pirn_ctx *ctx);
PIRN_API_ void pirn_ctx_release(pirn_ctx *ctx);

/* cause: a negative errno; 0 means -ECANCELED. The first one counts. */
PIRN_API_ void pirn_ctx_cancel(pirn_ctx *ctx, int cause);
PIRN_API_ int pirn_ctx_err(pirn_ctx *ctx); /* 0, -ECANCELED or -ETIMEDOUT */
PIRN_API_ int pirn_ctx_cause(pirn_ctx *ctx);
PIRN_API_ pirn_ns pirn_ctx_deadline(pirn_ctx *ctx); /* PIRN_NEVER: none */
PIRN_API_ void *pirn_ctx_value(pirn_ctx *ctx, const void *key);
/* Closes when ctx is cancelled; borrowed; NULL if that can't be. ctx NULL: the current one. */
PIRN_API_ pirn_chanv *pirn_ctx_donev(pirn_ctx *ctx);
/* fn(arg) runs in a goroutine of its own when ctx is cancelled; stopped and freed as a timer. */
PIRN_API_ pirn_timer *pirn_ctx_after_func(pirn_ctx *ctx, void (*fn)(void *), void *arg);

PIRN_API_ pirn_ctx *pirn_ctx_current(void);      /* borrowed; never NULL */
PIRN_API_ pirn_ctx *pirn_ctx_use(pirn_ctx *ctx); /* retains it; returns the one before, borrowed */

typedef struct pirn_group {
    uint64_t word_;
    void *waiters_; /* of pirn_group_wait */
    void *queue_;   /* of pirn_group_go, for room */
    pirn_ctx *ctx_;
    int64_t running_, limit_;
    int err_;
    uint32_t flags_;
    uint64_t reserved_[2];
} pirn_group;

PIRN_API_ void pirn_group_init(pirn_group *g, pirn_ctx *parent); /* NULL: the current context */
/* Waits for all; the first error, or 0. Cancelling the waiter cancels them. Once; may park. */
PIRN_API_ int pirn_group_wait(pirn_group *g);
PIRN_API_ void pirn_group_cancel(pirn_group *g);
PIRN_API_ pirn_ctx *pirn_group_ctx(pirn_group *g);         /* borrowed; current in every child */
PIRN_API_ void pirn_group_set_limit(pirn_group *g, int n); /* running at a time; < 0: no limit */
/* pirn_group_go(g, fn, args...) starts int fn(args...) in the group; waits for room (may park).
 * pirn_group_try_go does not wait: false if there is none. In <pirn/go.h>. */

#ifdef __cplusplus
}
#else
static inline pirn_chan(int) pirn_ctx_done(pirn_ctx *ctx)
{
    return (pirn_chan(int))pirn_ctx_donev(ctx);
}
#endif

#endif
