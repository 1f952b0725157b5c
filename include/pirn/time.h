/* SPDX-License-Identifier: MIT */
/*
 * Sleep, timers and tickers, as of Go 1.23: once a stop or reset has returned, nothing of what was
 * set before is received. Nothing is early. Durations of zero and less are over at once; one that is
 * too long to tell is never over.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_TIME_H
#define PIRN_TIME_H

#ifdef __cplusplus
extern "C" {
#endif

/* May park. 0, or what the current context says: -ECANCELED, -ETIMEDOUT. */
PIRN_API_ int pirn_sleep(pirn_ns ns);
PIRN_API_ int pirn_sleep_until(pirn_ns when);

typedef struct pirn_timer pirn_timer;

/* After ns, fn(arg) runs in a goroutine of its own. Needs a runtime. */
PIRN_API_ pirn_timer *pirn_after_func(pirn_ns ns, void (*fn)(void *), void *arg);
/* After ns, the time is sent to its channel, which looks unbuffered. */
PIRN_API_ pirn_timer *pirn_timer_new(pirn_ns ns);
PIRN_API_ pirn_chanv *pirn_timer_chanv(pirn_timer *t); /* borrowed; NULL: it calls a function */
/* Whether it was still to come. fn may run; stop_wait waits for its end too (may park). */
PIRN_API_ bool pirn_timer_stop(pirn_timer *t);
PIRN_API_ bool pirn_timer_stop_wait(pirn_timer *t);
PIRN_API_ bool pirn_timer_reset(pirn_timer *t, pirn_ns ns); /* the same; and it is set again */
/* Stops it, and waits for a running fn, unless called by it. NULL is allowed. May park. */
PIRN_API_ void pirn_timer_free(pirn_timer *t);

/* Sends the time every ns; what is not received in time is dropped. Panics if ns is not positive. */
typedef struct pirn_ticker pirn_ticker;
PIRN_API_ pirn_ticker *pirn_ticker_new(pirn_ns ns);
PIRN_API_ pirn_chanv *pirn_ticker_chanv(pirn_ticker *t); /* borrowed */
PIRN_API_ void pirn_ticker_reset(pirn_ticker *t, pirn_ns ns);
PIRN_API_ void pirn_ticker_stop(pirn_ticker *t);
PIRN_API_ void pirn_ticker_free(pirn_ticker *t); /* NULL is allowed */

/* A channel that gets the time after ns: the caller's to release, which stops it. */
PIRN_API_ pirn_chanv *pirn_afterv(pirn_ns ns);

#ifdef __cplusplus
}
#else
static inline pirn_chan(pirn_ns) pirn_after(pirn_ns ns)
{
    return (pirn_chan(pirn_ns))pirn_afterv(ns);
}

static inline pirn_chan(pirn_ns) pirn_timer_chan(pirn_timer *t)
{
    return (pirn_chan(pirn_ns))pirn_timer_chanv(t);
}

static inline pirn_chan(pirn_ns) pirn_ticker_chan(pirn_ticker *t)
{
    return (pirn_chan(pirn_ns))pirn_ticker_chanv(t);
}
#endif

#endif
