/* SPDX-License-Identifier: MIT */
/*
 * Publish and subscribe. The broker, one goroutine, owns the list of subscribers;
 * whoever wants to be on it sends it a channel. No lock, and nothing that could be
 * used without it: "share memory by communicating".
 *
 * Prints:
 *
 *     ann reads: apples pears plums
 *     bob reads: pears plums
 *     cid reads: plums
 */
#include <pirn.h>
#include <stdio.h>

typedef const char *message;
typedef pirn_chan(message) inbox;

enum { SUBSCRIBE, PUBLISH, MOST = 10 };
static const char *const names[] = {"ann", "bob", "cid"};
static const message news[] = {"apples", "pears", "plums"};

static void broker(pirn_chan(inbox) subscribe, pirn_chan(message) publish)
{
    inbox all[MOST];
    int n = 0;
    message m;
    for (bool open = true; open;) {
        switch (pirn_select([SUBSCRIBE] = PIRN_RECV(n < MOST ? subscribe : NULL, &all[n]),
                            [PUBLISH] = PIRN_RECV_OK(publish, &m, &open))) {
        case SUBSCRIBE: n++; break;
        case PUBLISH:
            for (int i = 0; open && i < n; i++) {
                pirn_chan_send(all[i], m);
            }
        }
    }
    while (n > 0) {
        pirn_chan_close(all[--n]); /* the end is news too */
    }
}

static void read_all(const char *name, inbox in)
{
    printf("%s reads:", name);
    for (message m; pirn_chan_recv(in, &m);) {
        printf(" %s", m);
    }
    printf("\n");
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(inbox) subscribe = pirn_chan_make(inbox, 0);
    pirn_chan(message) publish = pirn_chan_make(message, 0);
    inbox in[3];
    pirn_wg wg = {0};
    pirn_wg_go(&wg, broker, subscribe, publish);
    for (int i = 0; i < 3; i++) {
        in[i] = pirn_chan_make(message, 3);
        pirn_chan_send(subscribe, in[i]); /* one more before each message */
        pirn_chan_send(publish, news[i]);
    }
    pirn_chan_close(publish);
    for (int i = 0; i < 3; i++) {
        read_all(names[i], in[i]);
        pirn_chan_release(in[i]);
    }
    pirn_wg_wait(&wg);
    pirn_chan_release(publish);
    pirn_chan_release(subscribe);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
