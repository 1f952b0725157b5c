// expect-ok
// also: -Wconversion -Wshadow
// also: -std=gnu17 -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* Any expression for a channel of int, each evaluated once. */
#include <pirn.h>

typedef pirn_chan(int) ints;
struct server {
    ints signals;
};
ints next(void);

int test(struct server *s, const ints c, const struct server *fixed);
int test(struct server *s, const ints c, const struct server *fixed)
{
    int err = pirn_signal_notify(s->signals, 1) | pirn_signal_notify(c, 2);
    err |= pirn_signal_notify(fixed->signals, 3) | pirn_signal_notify(next(), 4);
    pirn_signal_stop(s->signals);
    pirn_signal_stop((ints)NULL);
    if (pirn_signal_ignored(1))
        err |= pirn_signal_reset(1) | pirn_signal_ignore(2);
    return err;
}
