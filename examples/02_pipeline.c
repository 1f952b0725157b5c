/* SPDX-License-Identifier: MIT */
/*
 * A pipeline: goroutines in a row, with a channel between each two. Every stage
 * reads until its input is closed, then closes its output, so the end travels
 * down the line by itself.
 *
 *     numbers -> square -> keep those that end in 6 -> the sum
 *
 * The channels have no buffer: a stage goes on when the next has taken its value,
 * and no number waits anywhere.
 *
 * Prints:
 *
 *     16 36 196 256 576 676 1156 1296 1936 2116
 *     sum 8260
 */
#include <pirn.h>
#include <stdio.h>

static void numbers(int n, pirn_chan(int) out)
{
    for (int i = 1; i <= n; i++) {
        pirn_chan_send(out, i); /* Go: out <- i */
    }
    pirn_chan_close(out);
}

static void square(pirn_chan(int) in, pirn_chan(int) out)
{
    int v;
    while (pirn_chan_recv(in, &v)) { /* Go: for v := range in */
        pirn_chan_send(out, v * v);
    }
    pirn_chan_close(out);
}

static void ends_in_6(pirn_chan(int) in, pirn_chan(int) out)
{
    int v;
    while (pirn_chan_recv(in, &v)) {
        if (v % 10 == 6) {
            pirn_chan_send(out, v);
        }
    }
    pirn_chan_close(out);
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) a = pirn_chan_make(int, 0);
    pirn_chan(int) b = pirn_chan_make(int, 0);
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(numbers, 50, a);
    pirn_go(square, a, b);
    pirn_go(ends_in_6, b, c);

    int v, sum = 0;
    while (pirn_chan_recv(c, &v)) {
        printf("%s%d", sum ? " " : "", v);
        sum += v;
    }
    printf("\nsum %d\n", sum);

    pirn_chan_release(a); /* all stages have ended: each closed its output last */
    pirn_chan_release(b);
    pirn_chan_release(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
