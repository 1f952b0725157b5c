/* SPDX-License-Identifier: MIT */
/*
 * Fan-in: select waits for several channels at once and takes what comes first,
 * here from three newspapers. With PIRN_AFTER it is also a time-out: who has
 * nothing to say for long is not waited for.
 *
 * A channel that is closed is always ready. Set to NULL, it never is: the way to
 * take a case out of a select.
 *
 * Prints:
 *
 *     The Times: 3 lines
 *     The Herald: 5 lines
 *     The Recluse: nothing
 */
#include <pirn.h>
#include <stdio.h>

enum { TIMES, HERALD, RECLUSE, PAPERS, LATE = PAPERS };

static const char *const names[] = {"The Times", "The Herald", "The Recluse"};

static void write_lines(pirn_chan(int) out, int lines)
{
    for (int i = 0; i < lines; i++) {
        pirn_sleep(PIRN_MS);
        pirn_chan_send(out, i);
    }
    pirn_chan_close(out);
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) paper[PAPERS], from[PAPERS];
    int lines[PAPERS] = {0}, line, which;
    for (int i = 0; i < PAPERS; i++) {
        from[i] = paper[i] = pirn_chan_make(int, 0);
    }
    pirn_go(write_lines, paper[TIMES], 3);
    pirn_go(write_lines, paper[HERALD], 5);

    for (int open = PAPERS; open > 0;) {
        bool ok;
        pirn_ns patience = open > 1 ? PIRN_NEVER : 10 * PIRN_MS;
        which = pirn_select([TIMES] = PIRN_RECV_OK(from[TIMES], &line, &ok),
                            [HERALD] = PIRN_RECV_OK(from[HERALD], &line, &ok),
                            [RECLUSE] = PIRN_RECV_OK(from[RECLUSE], &line, &ok),
                            [LATE] = PIRN_AFTER(patience));
        if (which == LATE) {
            break;
        } else if (ok) {
            lines[which]++;
        } else {
            from[which] = NULL;
            open--;
        }
    }
    for (int i = 0; i < PAPERS; i++) {
        printf(lines[i] ? "%s: %d lines\n" : "%s: nothing\n", names[i], lines[i]);
        pirn_chan_release(paper[i]);
    }
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
