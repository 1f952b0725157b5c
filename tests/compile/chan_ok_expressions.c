// expect-ok
// also: -Wconversion -Wshadow
// also: -std=gnu17 -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* Where expressions stand, and one within another; results that nobody wants. */
#include <pirn.h>

int conditions(pirn_chan(int) a, pirn_chan(int) b, int n);
int conditions(pirn_chan(int) a, pirn_chan(int) b, int n)
{
    int v = 0;
    bool ok;
    if (pirn_chan_recv(a, &v))
        v++;
    else
        v--;
    if (pirn_chan_try_send(a, v))
        pirn_chan_send(a, 1);
    else
        pirn_chan_send(b, 2);
    while (pirn_chan_recv(a, &v))
        n += v;
    for (int i = pirn_chan_get(a); pirn_chan_try_recv(b, &v) > 0; i += pirn_chan_get(a))
        pirn_chan_send(a, i);
    do
        pirn_chan_send(a, v);
    while (pirn_chan_try_send(b, v) && v < 3);
    ok = pirn_chan_recv(a, &v) && !pirn_chan_recv(b, &v);
    ok = n ? pirn_chan_recv(a, &v) : pirn_chan_recv(b, &v) || ok;
    switch (pirn_chan_try_recv(a, &v)) {
    case 1: pirn_chan_send(a, v); break;
    case -1: return ok;
    default: break;
    }
    for (pirn_chan_send(a, 1); n > 0; pirn_chan_send(a, n--)) {
    }
    return n > 0 ? pirn_chan_get(a) : pirn_chan_get(b);
}

int nested(pirn_chan(int) a, pirn_chan(int) b, pirn_chan(pirn_chan(int)) c, int i);
int nested(pirn_chan(int) a, pirn_chan(int) b, pirn_chan(pirn_chan(int)) c, int i)
{
    pirn_chan_send(a, pirn_chan_get(b));
    pirn_chan_send(a, pirn_chan_get(a) + pirn_chan_get(b));
    pirn_chan_send(a, pirn_chan_try_send(b, pirn_chan_try_send(a, 1)));
    pirn_chan_send(pirn_chan_get(c), pirn_chan_get(pirn_chan_get(c)));
    pirn_chan_send(a, pirn_select(PIRN_SEND(b, pirn_chan_get(a)), PIRN_DEFAULT));
    pirn_chan_send(a, pirn_chan_send_until(b, pirn_chan_get(a), PIRN_NEVER));
    pirn_chan_send(a, i++), pirn_chan_send(b, i--);
    return pirn_chan_get(a) * pirn_chan_get(b) - pirn_chan_get(a);
}

void unused(pirn_chan(int) a, int v);
void unused(pirn_chan(int) a, int v)
{
    void *to = &v;
    pirn_chan_get(a);
    pirn_chan_recv(a, NULL);
    pirn_chan_recv(a, to);
    pirn_chan_try_recv(a, &v);
    pirn_chan_try_send(a, v);
    pirn_chan_recv_until(a, NULL, PIRN_NEVER);
    pirn_chan_send_until(a, v, pirn_deadline(PIRN_SEC));
    pirn_chan_retain(a);
    pirn_select(PIRN_DEFAULT);
}
