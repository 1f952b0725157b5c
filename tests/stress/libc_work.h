/* SPDX-License-Identifier: MIT */
/*
 * For preempt.c: goroutines in libc's own locks and lists, stopped as often as the kernel allows: malloc,
 * stdio, pthread mutexes, errno, vector registers; beside them some that sleep and talk. Nothing may be
 * corrupted, and every kind of work must go on.
 */
#ifndef TESTS_STRESS_LIBC_WORK_H
#define TESTS_STRESS_LIBC_WORK_H

#include <errno.h>
#include <pthread.h>

#include "stress/recount.h"

#define STALL                                                                                      \
    (20 * PIRN_SEC)  /* of CPU time of the process: no kind of work stands still for so long */
#define PREEMPTED 10 /* at least so many times */
#define MOST 16      /* goroutines of a kind */

enum kind { MALLOC, STDIO, MUTEX, RECURSIVE, ERRNO, VECTOR, SLEEP, TALK, KINDS };

static at_u64 rounds[KINDS];
static at_u32 over;
static uint64_t seed;

static void skip_if_never(void)
{
    if (TEST_TSAN) {
        SKIP("ThreadSanitizer puts signals off until a call that it knows: no preemption");
    }
}

static bool go_on(enum kind kind)
{
    at_add(&rounds[kind], 1, RELAXED);
    return !at_load(&over, RELAXED);
}

/* --- the work --------------------------------------------------------------------------------- */

static void use_malloc(int id)
{
    unsigned char *block[32] = {NULL};
    uint32_t size[32] = {0};
    struct rand r;
    rand_seed(&r, seed + (uint64_t)id);
    while (go_on(MALLOC)) {
        uint32_t i = rand_below(&r, 32);
        for (uint32_t k = 0; k < size[i]; k += 61) {
            CHECK_EQ(block[i][k], (unsigned char)(id + (int)i));
        }
        size[i] = 1 + rand_below(&r, rand_below(&r, 8) ? 2000 : 200000);
        block[i] = realloc(block[i], size[i]);
        CHECK(block[i] != NULL);
        memset(block[i], id + (int)i, size[i]);
    }
    for (int i = 0; i < 32; i++) {
        free(block[i]);
    }
}

/* Lines go to a thread of the test's own, which looks at each. */
static FILE *lines;
static int line_fds[2];

static uint32_t hash(uint32_t id, uint32_t n)
{
    return (id * 2654435761u ^ n) * 2246822519u;
}

static void use_stdio(int id)
{
    for (uint32_t n = 1; go_on(STDIO); n++) {
        CHECK_GT(fprintf(lines, "%d %u %u\n", id, n, hash((uint32_t)id, n)), 0);
        if (n % 64 == 0) {
            CHECK_EQ(fflush(lines), 0);
        }
    }
}

static void *read_lines(void *arg)
{
    static uint32_t last[MOST];
    char line[128];
    FILE *in = fdopen(line_fds[0], "r");
    while (fgets(line, sizeof line, in)) {
        uint32_t id, n, h;
        CHECK_EQ(sscanf(line, "%u %u %u\n", &id, &n, &h), 3);
        CHECK_LT(id, MOST);
        CHECK_EQ(h, hash(id, n));
        CHECK_EQ(n, last[id] + 1);
        last[id] = n;
    }
    fclose(in);
    return arg;
}

static pthread_mutex_t plain, recursive;
static uint64_t first, second;

static void compute(int n)
{
    for (int i = 0; i < n; i++) {
        __asm__ volatile("");
    }
}

static void use_mutex(int id)
{
    while (go_on(MUTEX)) {
        CHECK_EQ(pthread_mutex_lock(&plain), 0);
        CHECK_EQ(first, second);
        first++;
        compute(1000 * id);
        second++;
        CHECK_EQ(pthread_mutex_unlock(&plain), 0);
        compute(5000);
    }
}

static void use_recursive(int id)
{
    static uint64_t holder;
    while (go_on(RECURSIVE)) {
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        holder = (uint64_t)id;
        compute(2000);
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        compute(2000);
        CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
        CHECK_EQ(holder, id);
        CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
        compute(5000);
    }
}

static void use_errno(int id)
{
    while (go_on(ERRNO)) {
        errno = 1000 + id;
        compute(100000);
        CHECK_EQ(errno, 1000 + id);
        CHECK_EQ(close(-1), -1);
        CHECK_EQ(errno, EBADF);
    }
}

/* Eight accumulators, in vector registers all along. */
#define CHECKSUM(from)                                                                             \
    vec sum[8];                                                                                    \
    memcpy(sum, from, sizeof sum);                                                                 \
    for (uint32_t i = 0; i < 5000; i++) {                                                          \
        for (int k = 0; k < 8; k++) {                                                              \
            sum[k] = sum[k] * 2654435761u + sum[(k + 1) % 8];                                      \
        }                                                                                          \
    }                                                                                              \
    uint32_t total = 0;                                                                            \
    for (int k = 0; k < 64; k++) {                                                                 \
        total = total * 31 + sum[k / 8][k % 8];                                                    \
    }                                                                                              \
    return total

typedef uint32_t vec __attribute__((vector_size(32)));

static __attribute__((noinline)) uint32_t checksum(const uint32_t *from)
{
    CHECKSUM(from);
}

#if defined(__x86_64__)
static __attribute__((noinline, target("avx2"))) uint32_t checksum_avx2(const uint32_t *from)
{
    CHECKSUM(from);
}
#endif

static void use_vectors(int id)
{
    uint32_t (*sum)(const uint32_t *) = checksum, from[64];
#if defined(__x86_64__)
    __builtin_cpu_init();
    sum = __builtin_cpu_supports("avx2") ? checksum_avx2 : checksum;
#endif
    for (uint32_t i = 0; i < 64; i++) {
        from[i] = hash((uint32_t)id, i);
    }
    for (uint32_t want = checksum(from); go_on(VECTOR);) {
        CHECK_EQ(sum(from), want);
    }
}

static void just_sleep(int id)
{
    while (go_on(SLEEP)) {
        int64_t ns = (id + 1) * 100 * PIRN_US, due = now_ns() + ns;
        CHECK_EQ(pirn_sleep(ns), 0);
        CHECK_GE(now_ns(), due);
    }
}

static void talk(int id)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    (void)id;
    while (go_on(TALK)) {
        int v = 0;
        pirn_wg wg = {0};
        pirn_wg_go(&wg, pirn_chanv_close, (pirn_chanv *)c);
        CHECK(!pirn_chan_recv(c, &v));
        pirn_wg_wait(&wg);
        pirn_chan_release(c);
        c = pirn_chan_make(int, 0);
    }
    pirn_chan_release(c);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void (*const work[KINDS])(int) = {
    [MALLOC] = use_malloc,       [STDIO] = use_stdio, [MUTEX] = use_mutex,
    [RECURSIVE] = use_recursive, [ERRNO] = use_errno, [VECTOR] = use_vectors,
    [SLEEP] = just_sleep,        [TALK] = talk,
};

static uint64_t count_preempted(void)
{
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_metrics(&m), 0);
    return m.preempted;
}

static bool (*seen_enough)(void); /* what a test wants to see beside preemptions; NULL: nothing */

/* In a second, many threads on one CPU have few whole slices, and those who disturb them few turns. */
static bool is_over(int64_t until)
{
    return now_ns() >= until && count_preempted() >= PREEMPTED && (!seen_enough || seen_enough());
}

/* Until the time is over, and what was to happen has. All kinds must go on all the time. */
static void watch(int64_t ns)
{
    uint64_t seen[KINDS] = {0};
    int64_t since[KINDS], start = now_ns(), cpu = process_cpu_ns();
    for (int k = 0; k < KINDS; k++) {
        since[k] = cpu;
    }
    for (bool all = false; !all || !is_over(start + ns);) {
        pirn_sleep(10 * PIRN_MS);
        all = true;
        for (int k = 0; k < KINDS; k++) {
            uint64_t n = at_load(&rounds[k], RELAXED);
            all = all && n > 1;
            cpu = process_cpu_ns();
            since[k] = n != seen[k] ? cpu : since[k];
            seen[k] = n;
            if (cpu > since[k] + STALL) {
                dprintf(STDERR_FILENO, "work %d stands still\n", k);
                FAIL("no progress");
            }
        }
    }
}

static int run_all(void *arg)
{
    pirn_wg wg = {0};
    pirn_metrics_v1 m;
    int n = 2 + pirn_procs(0) / 2;
    CHECK_LE(n, MOST);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < KINDS; k++) {
            pirn_wg_go(&wg, work[k], i);
        }
    }
    watch(*(int64_t *)arg);
    at_store(&over, 1, RELAXED);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_metrics(&m), 0);
    for (int k = 0; k < KINDS; k++) {
        printf("%llu ", (unsigned long long)at_load(&rounds[k], RELAXED));
    }
    printf("rounds, %llu preempted, %llu retaken, %llu threads, %llu starved\n",
           (unsigned long long)m.preempted, (unsigned long long)m.retaken,
           (unsigned long long)m.threads, (unsigned long long)m.starved);
    CHECK_GE(m.preempted, PREEMPTED);
    return 0;
}

static void start_mutex(pthread_mutex_t *m, int type)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    CHECK_EQ(pthread_mutexattr_settype(&attr, type), 0);
    CHECK_EQ(pthread_mutex_init(m, &attr), 0);
    pthread_mutexattr_destroy(&attr);
}

static void corrupt_nothing(int procs)
{
    pthread_t reader;
    int64_t ns = stress_ns(2);
    pirn_config config = {.procs = procs,
                          .time_slice = PIRN_MS}; /* at least as long as it can be */
    skip_if_never();
    seed = stress_seed();
    start_mutex(&plain, PTHREAD_MUTEX_ERRORCHECK);
    start_mutex(&recursive, PTHREAD_MUTEX_RECURSIVE);
    CHECK_EQ(pipe(line_fds), 0);
    lines = fdopen(line_fds[1], "w");
    CHECK(lines != NULL);
    CHECK_EQ(pthread_create(&reader, NULL, read_lines, NULL), 0);
    CHECK_EQ(pirn_run_config(&config, run_all, &ns), 0);
    CHECK_EQ(fclose(lines), 0);
    CHECK_EQ(pthread_join(reader, NULL), 0);
}

#endif
