/* SPDX-License-Identifier: MIT */
/*
 * A rate limiter: a ticker lets one request go every 2 ms. The bucket, a channel
 * with room for three, keeps what was not used: requests that come together after
 * a quiet time go at once, as many as there are permits, and the rest in step.
 *
 * Prints:
 *
 *     request 0: at once
 *     request 1: at once
 *     request 2: at once
 *     request 3: not before 2 ms
 *     request 4: not before 4 ms
 *     request 5: not before 6 ms
 */
#include <pirn.h>
#include <stdio.h>

#define BURST 3
#define REQUESTS 6
#define PAUSE (2 * PIRN_MS)

enum { TICK, QUIT };

/* A permit at every tick; one that does not fit is dropped. */
static void fill(pirn_chan(int) bucket, pirn_chan(int) quit)
{
    pirn_ticker *ticker = pirn_ticker_new(PAUSE);
    while (pirn_select([TICK] = PIRN_RECV(pirn_ticker_chan(ticker), NULL), [QUIT] = PIRN_RECV(quit,
                                                                                              NULL))
           == TICK) {
        pirn_chan_try_send(bucket, 1);
    }
    pirn_ticker_free(ticker);
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) bucket = pirn_chan_make(int, BURST);
    pirn_chan(int) quit = pirn_chan_make(int, 0); /* nothing is sent: it is closed */
    for (int i = 0; i < BURST; i++) {
        pirn_chan_send(bucket, 1);
    }
    pirn_wg wg = {0};
    pirn_ns began = pirn_now();
    pirn_wg_go(&wg, fill, bucket, quit);

    int early = 0;
    for (int i = 0; i < REQUESTS; i++) {
        pirn_chan_get(bucket); /* waits for a permit */
        if (i < BURST) {
            printf("request %d: at once\n", i);
        } else {
            pirn_ns least = (i - BURST + 1) * PAUSE;
            printf("request %d: not before %d ms\n", i, (int)(least / PIRN_MS));
            early += pirn_now() - began < least;
        }
    }
    pirn_chan_close(quit);
    pirn_wg_wait(&wg);
    pirn_chan_release(quit);
    pirn_chan_release(bucket);
    return early;
}

int main(void)
{
    return pirn_run(start, NULL);
}
