/* SPDX-License-Identifier: MIT */
/*
 * Contexts: "I don't want it any more", said once and heard by all. Three mirrors
 * are asked the same; when one has answered, the others are told to stop.
 *
 * Each goroutine has a current context, its spawner's. When that is cancelled,
 * every blocking call that returns an error code returns -ECANCELED at once; when
 * its deadline has passed, -ETIMEDOUT. So fetch() has no code for it but the if.
 *
 * Prints:
 *
 *     Oslo: Operation canceled
 *     Lima: Success
 *     Nara: Operation canceled
 *     Oslo: Connection timed out
 *     Lima: Connection timed out
 *     Nara: Connection timed out
 */
#include <pirn.h>
#include <stdio.h>
#include <string.h>

#define MIRRORS 3
#define HOUR (3600 * PIRN_SEC)

static const char *const names[MIRRORS] = {"Oslo", "Lima", "Nara"};

static void fetch(pirn_ns takes, int *result, pirn_chan(int) answered)
{
    *result = pirn_sleep(takes); /* where others read from a socket */
    if (*result == 0) {
        pirn_chan_try_send(answered, 1); /* there is room for the first */
    }
}

/* With ctx as the context of this goroutine, and so of those that it starts. */
static void ask_all(pirn_ctx *ctx, const pirn_ns takes[MIRRORS])
{
    pirn_ctx *before = pirn_ctx_use(ctx);
    int result[MIRRORS];
    pirn_wg wg = {0};
    pirn_chan(int) answered = pirn_chan_make(int, 1);
    for (int i = 0; i < MIRRORS; i++) {
        pirn_wg_go(&wg, fetch, takes[i], &result[i], answered);
    }
    pirn_select(PIRN_RECV(answered, NULL), PIRN_DONE(ctx));
    pirn_ctx_cancel(ctx, 0); /* no matter if it is already */
    pirn_wg_wait(&wg);
    for (int i = 0; i < MIRRORS; i++) {
        printf("%s: %s\n", names[i], strerror(-result[i]));
    }
    pirn_chan_release(answered);
    pirn_ctx_use(before);
    pirn_ctx_release(ctx);
}

static int start(void *arg)
{
    (void)arg;
    pirn_ctx *background = pirn_ctx_background(); /* never cancelled: where it begins */
    ask_all(pirn_ctx_with_cancel(background), (pirn_ns[]){HOUR, PIRN_MS, HOUR});
    ask_all(pirn_ctx_with_timeout(background, 5 * PIRN_MS), (pirn_ns[]){HOUR, HOUR, HOUR});
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
