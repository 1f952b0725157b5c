/* SPDX-License-Identifier: MIT */
/*
 * A pool of workers: one channel of jobs, one of results. Whoever is idle takes
 * the next job, so a slow job holds up one worker and nobody else. A job is a
 * struct: channels carry any type, by value.
 *
 * Prints:
 *
 *     primes below 10000: 1229
 *     primes below 20000: 2262
 *     primes below 30000: 3245
 *     primes below 40000: 4203
 */
#include <pirn.h>
#include <stdio.h>

enum { WORKERS = 4, STEP = 1000, LIMIT = 40000 };

struct job {
    int first, end;
    int primes; /* the answer */
};

static bool is_prime(int n)
{
    for (int d = 2; d * d <= n; d++) {
        if (n % d == 0) {
            return false;
        }
    }
    return n > 1;
}

static void worker(pirn_chan(struct job) jobs, pirn_chan(struct job) results)
{
    struct job job;
    while (pirn_chan_recv(jobs, &job)) {
        for (int n = job.first; n < job.end; n++) {
            job.primes += is_prime(n);
        }
        pirn_chan_send(results, job);
    }
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(struct job) jobs = pirn_chan_make(struct job, LIMIT / STEP);
    pirn_chan(struct job) results = pirn_chan_make(struct job, 0);
    pirn_wg wg = {0};
    for (int i = 0; i < WORKERS; i++) {
        pirn_wg_go(&wg, worker, jobs, results);
    }
    for (int n = 0; n < LIMIT; n += STEP) {
        struct job job = {n, n + STEP, 0};
        pirn_chan_send(jobs, job);
    }
    pirn_chan_close(jobs); /* no more: a worker that finds nothing left ends */
    int primes[LIMIT / STEP], sum = 0;
    for (int i = 0; i < LIMIT / STEP; i++) { /* they come in any order */
        struct job job = pirn_chan_get(results);
        primes[job.first / STEP] = job.primes;
    }
    for (int i = 0; i < LIMIT / STEP; i++) {
        sum += primes[i];
        if (i % 10 == 9) {
            printf("primes below %d: %d\n", (i + 1) * STEP, sum);
        }
    }
    pirn_wg_wait(&wg); /* nobody uses the channels any more */
    pirn_chan_release(jobs);
    pirn_chan_release(results);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
