/* SPDX-License-Identifier: MIT */
/*
 * The C library's threads, which every program has. WORKERS is the number of CPUs
 * that they may run on.
 *
 * Where every operation goes through the kernel they do a tenth as many as the
 * others, or a round would take minutes; the results are by operation. They have no
 * channels: struct chan is one made of a mutex and two conditions. Left out are
 * select, the sieve, which would take minutes too, and what needs more threads at
 * once than Linux lets a program have (some 32,000 as it comes).
 */
#include "peer.h"

#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>

static pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    peer_check(pthread_create(&t, NULL, fn, arg) == 0, "no more threads");
    return t;
}

static void join(pthread_t *all, int n)
{
    for (int i = 0; i < n; i++) {
        pthread_join(all[i], NULL);
    }
}

static void *yielder(void *n)
{
    for (int i = 0; i < *(int *)n; i++) {
        sched_yield();
    }
    return NULL;
}

static void yield(void)
{
    int n = bench_int("N", 500000);
    pthread_t all[2];
    int64_t t0 = peer_now();
    for (int g = 0; g < 2; g++) {
        all[g] = start(yielder, &n);
    }
    join(all, 2);
    peer_report("yield", 2 * n, t0);
}

static void *nothing(void *arg)
{
    return arg;
}

static void spawn_seq(void)
{
    int n = bench_int("N", 100000);
    int64_t t0 = peer_now();
    for (int i = 0; i < n; i++) {
        pthread_join(start(nothing, NULL), NULL);
    }
    peer_report("spawn_seq", n, t0);
}

/*
 * There is room for the capacity and one more for each receiver that waits: so an
 * unbuffered channel hands a message over only to who is there for it, and who
 * finds a receiver need not wait, as in Go.
 */
#define RECEIVERS_MAX 4

struct chan {
    pthread_mutex_t mutex;
    pthread_cond_t filled, room;
    int capacity, receivers, first, count;
    bool closed;
    int64_t ring[128 + RECEIVERS_MAX];
};

#define RING ((int)(sizeof((struct chan *)0)->ring / sizeof(int64_t)))

static void chan_init(struct chan *c, int capacity)
{
    *c = (struct chan){.mutex = PTHREAD_MUTEX_INITIALIZER,
                       .filled = PTHREAD_COND_INITIALIZER,
                       .room = PTHREAD_COND_INITIALIZER,
                       .capacity = capacity};
}

static void chan_send(struct chan *c, int64_t v)
{
    pthread_mutex_lock(&c->mutex);
    while (c->count >= c->capacity + c->receivers) {
        pthread_cond_wait(&c->room, &c->mutex);
    }
    c->ring[(c->first + c->count++) % RING] = v;
    pthread_cond_signal(&c->filled);
    pthread_mutex_unlock(&c->mutex);
}

/* False: the channel is closed and empty. */
static bool chan_recv(struct chan *c, int64_t *v)
{
    pthread_mutex_lock(&c->mutex);
    if (c->count == 0 && !c->closed) {
        c->receivers++;
        pthread_cond_signal(&c->room);
        while (c->count == 0 && !c->closed) {
            pthread_cond_wait(&c->filled, &c->mutex);
        }
        c->receivers--;
    }
    bool some = c->count > 0;
    if (some) {
        *v = c->ring[c->first];
        c->first = (c->first + 1) % RING;
        c->count--;
        pthread_cond_signal(&c->room);
    }
    pthread_mutex_unlock(&c->mutex);
    return some;
}

static void chan_close(struct chan *c)
{
    pthread_mutex_lock(&c->mutex);
    c->closed = true;
    pthread_cond_broadcast(&c->filled);
    pthread_mutex_unlock(&c->mutex);
}

static struct chan a, b;

static void *echo(void *arg)
{
    int64_t v;
    while (chan_recv(&a, &v)) {
        chan_send(&b, v);
    }
    chan_close(&b);
    return arg;
}

static void pingpong(void)
{
    int n = bench_int("N", 100000);
    chan_init(&a, 0);
    chan_init(&b, 0);
    pthread_t t = start(echo, NULL);
    int64_t t0 = peer_now();
    for (int i = 0; i < n; i++) {
        int64_t v;
        chan_send(&a, i);
        chan_recv(&b, &v);
    }
    peer_report("pingpong", n, t0);
    chan_close(&a);
    join(&t, 1);
}

static void *produce(void *n)
{
    for (int i = 0; i < *(int *)n; i++) {
        chan_send(&a, i);
    }
    return NULL;
}

static void *consume(void *arg)
{
    int64_t v;
    while (chan_recv(&a, &v)) {
    }
    return arg;
}

static void pass(const char *name, int p, int n)
{
    pthread_t producers[RECEIVERS_MAX], consumers[RECEIVERS_MAX];
    int each = n / p;
    chan_init(&a, 128);
    int64_t t0 = peer_now();
    for (int g = 0; g < p; g++) {
        producers[g] = start(produce, &each);
        consumers[g] = start(consume, NULL);
    }
    join(producers, p);
    chan_close(&a);
    join(consumers, p);
    peer_report(name, n, t0);
}

static void chan_buf(void)
{
    int n = bench_int("N", 4000000);
    pass("chan_buf_1p1c", 1, n);
    pass("chan_buf_4p4c", 4, n);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t x;
static bool yields;

static void *add(void *n)
{
    for (int i = 0; i < *(int *)n; i++) {
        pthread_mutex_lock(&mutex);
        x++;
        if (yields) {
            sched_yield();
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void contend(const char *name, int n, bool yield_inside)
{
    pthread_t all[8];
    int each = n / 8;
    x = 0;
    yields = yield_inside;
    int64_t t0 = peer_now();
    for (int g = 0; g < 8; g++) {
        all[g] = start(add, &each);
    }
    join(all, 8);
    peer_report(name, n, t0);
    peer_check(x == each * 8, "lost update");
}

static void mutex8(void)
{
    int n = bench_int("N", 8000000);
    contend("mutex8", n, false);
    contend("mutex8_yield", n / 80, true);
}

static void sleep_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PEER_MS}, NULL);
}

static void sleep_latency(void)
{
    peer_sleep_latency(sleep_ms);
}

/* Keeps the threads to the first n of the CPUs that they may run on. */
static void keep_to(int n)
{
    cpu_set_t all, some;
    CPU_ZERO(&some);
    sched_getaffinity(0, sizeof all, &all);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&some) < n; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
        }
    }
    peer_check(sched_setaffinity(0, sizeof some, &some) == 0, "the CPUs can't be chosen");
}

int main(int argc, char **argv)
{
    static const struct peer_run runs[] = {
        {"yield", yield},       {"spawn_seq", spawn_seq}, {"pingpong", pingpong},
        {"chan_buf", chan_buf}, {"mutex8", mutex8},       {"sleep_latency", sleep_latency},
    };
    char what[64];
    snprintf(what, sizeof what, "pthreads of glibc %s", gnu_get_libc_version());
    const struct peer_run *run = peer_choose(argc, argv, what, runs, sizeof runs / sizeof *runs);
    if (run) {
        keep_to(bench_workers());
        run->fn();
    }
    return 0;
}
