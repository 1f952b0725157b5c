/* SPDX-License-Identifier: MIT */
/*
 * Goroutine-local values: what a thread-local variable is to a thread. Handy for
 * a thing that deep functions need and nobody wants to pass through ten others,
 * such as the request that a log line belongs to.
 *
 * Don't use _Thread_local for that: a goroutine that waits may go on running on
 * another thread.
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUESTS 100

struct request {
    int number;
    int lines; /* logged so far */
};

static pirn_local_key current;
static atomic_int lines, freed;

/* Called when a goroutine ends whose value is not NULL. */
static void free_request(void *request)
{
    free(request);
    atomic_fetch_add(&freed, 1);
}

static void log_line(const char *text)
{
    struct request *r = pirn_local_get(current); /* NULL if never set */
    r->lines++;
    atomic_fetch_add(&lines, 1);
    if (r->number % 25 == 0) {
        printf("[request %2d, line %d] %s\n", r->number, r->lines, text);
    }
}

static void handle(int number)
{
    struct request *r = calloc(1, sizeof *r);
    if (!r) {
        return;
    }
    r->number = number;
    pirn_local_set(current, r);
    log_line("begins");
    pirn_yield(); /* others run; this goroutine may come back on another thread */
    log_line("ends");
}

static int start(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    for (int i = 0; i < REQUESTS; i++) {
        pirn_wg_go(&wg, handle, i);
    }
    pirn_wg_wait(&wg);
    printf("%d lines of %d requests; %d values freed\n", lines, REQUESTS, freed);
    return lines == 2 * REQUESTS && freed == REQUESTS ? 0 : 1;
}

int main(void)
{
    if (pirn_local_new(&current, free_request) < 0) { /* one key for all goroutines */
        return 1;
    }
    return pirn_run(start, NULL);
}
