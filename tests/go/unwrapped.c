/* SPDX-License-Identifier: MIT */
/*
 * A goroutine that blocks its thread in a plain call, with nothing around it that says so, does not
 * stop the others: its P is taken away (conformance 65 to 67; HAZARDS 16).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "go/busy.h"

static atomic_int entered, returned;

static void blocks(void (*call)(void))
{
    atomic_fetch_add(&entered, 1);
    call();
    atomic_fetch_add(&returned, 1);
}

/*
 * As many as there are Ps are in the call at once, and main still goes on: one has lost its P. All come
 * back when main, or `release`, lets them.
 */
static void others_go_on(void (*call)(void), void (*release)(int))
{
    int n = pirn_procs(0);
    for (int round = 0; round < 5; round++) {
        pirn_wg wg = {0};
        uint64_t before = retaken();
        atomic_store(&entered, 0);
        atomic_store(&returned, 0);
        for (int i = 0; i < n; i++)
            pirn_wg_go(&wg, blocks, call);
        YIELD_UNTIL(atomic_load(&entered) == n && retaken() > before);
        for (int i = 0; i < 1000; i++)
            pirn_yield();
        CHECK_EQ(atomic_load(&returned), 0);
        release(n);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&returned), n);
    }
}

/* --- kinds of calls --------------------------------------------------------------------------- */

static int fds[2];

static void reads(void)
{
    char byte;
    CHECK_EQ(read(fds[0], &byte, 1), 1);
}

static void write_bytes(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(write(fds[1], "x", 1), 1);
}

TEST_RUN_ATTR(read_of_a_pipe, PROCS)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    others_go_on(reads, write_bytes);
}

static void polls(void)
{
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    CHECK_EQ(poll(&p, 1, -1), 1);
    reads();
}

TEST_RUN_ATTR(poll_of_a_pipe, PROCS)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    others_go_on(polls, write_bytes);
}

static void locks_file(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[0]);
    int mine = open(path, O_RDWR | O_CLOEXEC); /* another open file: locks are between those */
    CHECK_GE(mine, 0);
    CHECK_EQ(flock(mine, LOCK_EX), 0);
    close(mine);
}

static void pass_file(int n)
{
    CHECK_EQ(flock(fds[0], LOCK_UN), 0);
    SLEEP_UNTIL(atomic_load(&returned) == n);
    CHECK_EQ(flock(fds[0], LOCK_EX), 0); /* for the next round */
}

TEST_RUN_ATTR(flock_of_a_file, PROCS)
{
    fds[0] = memfd_create("locked", MFD_CLOEXEC);
    CHECK_GE(fds[0], 0);
    CHECK_EQ(flock(fds[0], LOCK_EX), 0);
    others_go_on(locks_file, pass_file);
}

static sem_t sem;

static void waits_for_sem(void)
{
    CHECK_EQ(sem_wait(&sem), 0);
}

static void post(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(sem_post(&sem), 0);
}

TEST_RUN_ATTR(sem_wait_of_a_thread, PROCS)
{
    CHECK_EQ(sem_init(&sem, 0, 0), 0);
    others_go_on(waits_for_sem, post);
}

/* The mutex is held by a thread of the program's own. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int wanted, holding;

static void *holder(void *arg)
{
    for (;;) {
        while (!atomic_load(&wanted))
            plain_sleep(PIRN_MS / 10);
        if (atomic_load(&wanted) < 0)
            return arg;
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        atomic_store(&holding, 1);
        while (atomic_load(&wanted) > 0)
            plain_sleep(PIRN_MS / 10);
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
        atomic_store(&holding, 0);
    }
}

static void locks_mutex(void)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void pass_mutex(int n)
{
    atomic_store(&wanted, 0);
    SLEEP_UNTIL(atomic_load(&returned) == n && !atomic_load(&holding));
    atomic_store(&wanted, 1);
    SLEEP_UNTIL(atomic_load(&holding));
}

TEST_RUN_ATTR(pthread_mutex, PROCS)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, holder, NULL), 0);
    atomic_store(&wanted, 1);
    SLEEP_UNTIL(atomic_load(&holding));
    others_go_on(locks_mutex, pass_mutex);
    atomic_store(&wanted, 0);
    SLEEP_UNTIL(!atomic_load(&holding));
    atomic_store(&wanted, -1);
    pthread_join(t, NULL);
}

static void sleeps(void)
{
    plain_sleep(PIRN_SEC);
}

/* Nobody can let them go: what happened before any of them came back counts. */
TEST_RUN_ATTR(nanosleep_of_a_second, PROCS, .timeout = 60)
{
    int n = pirn_procs(0), yields = 0;
    uint64_t before = retaken();
    pirn_wg wg = {0};
    for (int try = 0; try < 5 && yields < 1000; try++) {
        atomic_store(&entered, 0);
        atomic_store(&returned, 0);
        yields = 0;
        for (int i = 0; i < n; i++)
            pirn_wg_go(&wg, blocks, sleeps);
        while (atomic_load(&returned) == 0) {
            yields += atomic_load(&entered) == n && retaken() > before;
            pirn_yield();
        }
        pirn_wg_wait(&wg);
    }
    CHECK_GE(yields, 1000);
    CHECK_GT(retaken(), before);
}

/* --- work that comes later -------------------------------------------------------------------- */

static atomic_int woken;

static void wakes(void)
{
    atomic_store(&woken, 1);
}

/* The Ps are with blocked threads, and nothing was to be done. Then somebody outside has work. */
static void *spawns_outside(void *arg)
{
    while (atomic_load(&entered) < *(int *)arg)
        plain_sleep(PIRN_MS);
    plain_sleep(50 * PIRN_MS); /* long enough for all to fall asleep; it holds without, too */
    pirn_go(wakes);
    for (pirn_ns until = plain_now() + LONG; !atomic_load(&woken); plain_sleep(PIRN_MS))
        CHECK_LT(plain_now(), until);
    CHECK_EQ(atomic_load(&returned), 0);
    write_bytes(*(int *)arg);
    return NULL;
}

TEST_RUN_ATTR(work_from_outside, PROCS, .timeout = 60)
{
    int n = pirn_procs(0);
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    for (int round = 0; round < 5; round++) {
        pirn_wg wg = {0};
        pthread_t t;
        uint64_t before = retaken();
        atomic_store(&entered, 0);
        atomic_store(&returned, 0);
        atomic_store(&woken, 0);
        CHECK_EQ(pthread_create(&t, NULL, spawns_outside, &n), 0);
        for (int i = 0; i < n; i++)
            pirn_wg_go(&wg, blocks, reads);
        pirn_wg_wait(&wg);
        pthread_join(t, NULL);
        CHECK_GT(retaken(), before);
    }
}

/* A timer comes due. */
TEST_RUN_ATTR(sleeper_beside_readers, PROCS)
{
    int n = pirn_procs(0);
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    for (int round = 0; round < 5; round++) {
        pirn_wg wg = {0};
        uint64_t before = retaken();
        atomic_store(&entered, 0);
        atomic_store(&returned, 0);
        for (int i = 0; i < n; i++)
            pirn_wg_go(&wg, blocks, reads);
        do {
            pirn_sleep(20 * PIRN_MS);
        } while (atomic_load(&entered) < n || retaken() == before);
        CHECK_EQ(atomic_load(&returned), 0);
        write_bytes(n);
        pirn_wg_wait(&wg);
    }
}

/* --- nobody wants the P ------------------------------------------------------------------------- */

static void wait_for_one(pirn_chanv *c)
{
    int v;
    CHECK(pirn_chanv_recv(c, &v));
}

/* It loses its P after a while all the same. All others wait, and no P is in use: that is no deadlock. */
TEST_RUN_ATTR(blocks_for_long, PROCS)
{
    int v = 1;
    pirn_wg wg = {0};
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 0);
    pirn_wg_go(&wg, wait_for_one, c);
    pirn_yield();
    for (int announced = 0; announced < 2; announced++) {
        uint64_t before = retaken();
        for (pirn_ns until = plain_now() + LONG; retaken() == before;) {
            CHECK_LT(plain_now(), until);
            if (announced)
                pirn_blocking_begin();
            plain_sleep(300 * PIRN_MS);
            if (announced)
                pirn_blocking_end();
        }
    }
    pirn_chanv_send(c, &v);
    pirn_wg_wait(&wg);
    pirn_chanv_release(c);
}
