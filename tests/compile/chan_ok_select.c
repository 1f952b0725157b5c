// expect-ok
// also: -Wconversion -Wshadow
// also: -std=gnu17 -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* Cases by name, with a comma at the end, with side effects, two on a line, one in another. */
#include <pirn.h>

struct point {
    int x, y;
};

enum { JOB, QUIT };

int selects(pirn_chan(int) jobs, pirn_chan(struct point) points, pirn_ctx *ctx, int i);
int selects(pirn_chan(int) jobs, pirn_chan(struct point) points, pirn_ctx *ctx, int i)
{
    int j, k = 0, a[3] = {0};
    bool ok;
    struct point p = {0};
    switch (pirn_select([JOB] = PIRN_RECV(jobs, &j), [QUIT] = PIRN_DONE(ctx))) {
    case JOB: break;
    case QUIT: return 1;
    }
    switch (pirn_select([QUIT] = PIRN_DONE(NULL), [JOB] = PIRN_RECV_OK(jobs, &j, &ok), )) {
    case JOB: return ok;
    case QUIT: break;
    }
    switch (pirn_select(PIRN_RECV(jobs, &j), PIRN_SEND(points, p), PIRN_RECV_OK(points, &p, &ok),
                        PIRN_AFTER(10 * PIRN_MS), PIRN_UNTIL(pirn_now()), PIRN_READABLE(0),
                        PIRN_WRITABLE(1), PIRN_DEFAULT, )) {
    default: break;
    }
    pirn_select(PIRN_SEND(jobs, i++), PIRN_DEFAULT);
    pirn_select(PIRN_SEND(jobs, --i), PIRN_SEND(jobs, k += 2), PIRN_SEND(jobs, j = 3));
    pirn_select(PIRN_SEND(jobs, a[i++]), PIRN_RECV(jobs, &a[k++]));
    pirn_select(PIRN_SEND(points, ((struct point){1, i++})),
                PIRN_SEND(points, (struct point){.x = 1}));
    pirn_select(PIRN_DEFAULT), pirn_select(PIRN_DEFAULT);
    if (pirn_select(PIRN_RECV(jobs, &j), PIRN_DEFAULT) == 0
        || pirn_select(PIRN_RECV(jobs, NULL), PIRN_DEFAULT) == 1)
        i++;
    while (pirn_select(PIRN_RECV(jobs, NULL), PIRN_DEFAULT) == 0)
        i--;
    i += pirn_select(PIRN_SEND(jobs, pirn_select(PIRN_SEND(jobs, i), PIRN_DEFAULT)), PIRN_DEFAULT);
    return pirn_select(PIRN_SEND(jobs, pirn_chan_get(jobs)), PIRN_RECV(points, NULL));
}

int run_time(pirn_chan(int) a, pirn_chan(struct point) points, int n);
int run_time(pirn_chan(int) a, pirn_chan(struct point) points, int n)
{
    int v;
    struct point p = {0};
    pirn_case cases[4] = {PIRN_RECV(a, &v), PIRN_SEND(points, p), {0}, PIRN_DEFAULT};
    pirn_case one = PIRN_SEND(a, n);
    cases[2] = (pirn_case)PIRN_RECV(points, &p);
    cases[3] = one;
    return pirn_selectv(cases, n) + pirn_select((pirn_case)PIRN_RECV(a, &v), one, {0});
}
