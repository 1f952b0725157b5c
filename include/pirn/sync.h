/* SPDX-License-Identifier: MIT */
/* Waiting for goroutines. Objects are valid when zeroed and need no destruction. */
#ifndef PIRN_SYNC_H
#define PIRN_SYNC_H

#include <pirn.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A wait group: a counter that can be waited on until it is zero. It may go out
 * of scope as soon as every pirn_wg_wait on it has returned, also while the
 * pirn_wg_done that released them is still executing.
 */
typedef struct pirn_wg {
    uint64_t state_;
    void *waiters_;
} pirn_wg;

PIRN_API_ void pirn_wg_add(pirn_wg *wg, int n); /* panics if the counter falls below zero */
PIRN_API_ void pirn_wg_done(pirn_wg *wg);
PIRN_API_ void pirn_wg_wait(pirn_wg *wg); /* may park */
/* pirn_wg_go(wg, fn, args...), of <pirn/go.h>: pirn_go with an add before and a done after. */

#ifdef __cplusplus
}
#endif

#endif
