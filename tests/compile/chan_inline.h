/* SPDX-License-Identifier: MIT */
#ifndef CHAN_INLINE_H
#define CHAN_INLINE_H

#include <pirn.h>

static inline int relay(pirn_chan(int) from, pirn_chan(int) to)
{
    int v, n = 0;
    while (pirn_chan_recv(from, &v)) {
        pirn_chan_send(to, v + pirn_chan_get(from));
        n++;
    }
    return n;
}

static inline int first_of(pirn_chan(int) a, pirn_chan(int) b)
{
    int v = 0;
    (void)pirn_select(PIRN_RECV(a, &v), PIRN_RECV(b, &v), PIRN_DEFAULT);
    return v;
}

#endif
