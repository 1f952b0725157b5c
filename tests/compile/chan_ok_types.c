// expect-ok
// also: -Wconversion -Wshadow
// also: -std=gnu17 -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* One type wherever it is written: parameters, fields, typedefs, arrays; channels of channels; NULL. */
#include <pirn.h>

typedef int number;
typedef pirn_chan(int) ints;
typedef pirn_chan(ints) replies;
struct worker {
    pirn_chan(int) in, out;
    pirn_chan(pirn_chan(int)) replies;
    pirn_chan(struct worker *) done;
};

void take(pirn_chan(int) c);
void take(ints c)
{
    pirn_chan(number) same = c;
    pirn_chan_send(same, 1);
}

ints give(void);
pirn_chan(int) give(void)
{
    return pirn_chan_make(number, 1);
}

void fields(struct worker *w, pirn_chan(int) many[2], int i);
void fields(struct worker *w, ints many[2], int i)
{
    pirn_chan(int) local[] = {w->in, many[0], NULL, give()};
    const ints fixed = w->in;
    ints *to = &w->out;
    void (*f)(pirn_chan(int)) = take;
    *to = fixed;
    f(w->in);
    pirn_go(take, w->out);
    pirn_chan_send(w->in, 1);
    pirn_chan_send(many[i], 1);
    pirn_chan_send(local[i], 1);
    pirn_chan_send(*to, 1);
    pirn_chan_send(i ? w->in : w->out, 1);
    pirn_chan_send(i ? w->in : NULL, 1);
    pirn_chan_send(fixed, 1);
    pirn_chan_send(give(), 1);
    pirn_chan_send(w->done, w);
    pirn_chan_close(pirn_chan_get(w->done)->in);
    pirn_chan_release(pirn_chan_retain(fixed));
    i += (int)pirn_chan_len(w->in) + (int)pirn_chan_cap(give()) + pirn_chan_fd(*to);
}

void channels_of_channels(struct worker *w, replies r, ints c);
void channels_of_channels(struct worker *w, replies r, ints c)
{
    replies same = w->replies;
    pirn_chan(replies) deep = pirn_chan_make(replies, 1);
    pirn_chan_send(r, c);
    pirn_chan_send(r, NULL);
    pirn_chan_send(same, pirn_chan_make(int, 1));
    pirn_chan_send(deep, same);
    pirn_chan_send(pirn_chan_get(pirn_chan_get(deep)), 3);
    (void)pirn_chan_recv(r, &c);
    (void)pirn_select(PIRN_SEND(r, c), PIRN_RECV(same, &c), PIRN_RECV(deep, &r));
}

void none(void);
void none(void)
{
    pirn_chan(int) c = NULL;
    pirn_chan(struct worker *) d = NULL;
    pirn_chan_release(c);
    if (c == NULL && !d && pirn_chan_try_send(c, 1) == 0) {
        (void)pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(d, NULL));
    }
}
