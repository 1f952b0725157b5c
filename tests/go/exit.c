/* SPDX-License-Identifier: MIT */
/*
 * The process ends while goroutines run: by exit() from anywhere, or by the return of main. Nothing is
 * stopped for that, and what exit() calls may use pirn as before.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define CHILDREN (TEST_TSAN || TEST_ASAN ? 3 : 40)
#define STATUS 7

/* --- what goes on meanwhile ------------------------------------------------------------------------ */

static pirn_mutex mutex;
static pirn_chan(int) chan, full;
static atomic_int turns;

static void compute(void)
{
    for (;;) {
        for (int i = 0; i < 10000; i++)
            atomic_fetch_add(&turns, 1);
        pirn_yield();
    }
}

static void yield(void)
{
    for (;;)
        pirn_yield();
}

static void rest(void)
{
    for (;;)
        pirn_sleep(20 * PIRN_US);
}

static void lock(void)
{
    for (;;) {
        pirn_mutex_lock(&mutex);
        atomic_fetch_add(&turns, 1);
        pirn_mutex_unlock(&mutex);
        pirn_yield();
    }
}

static void send(void)
{
    for (;;) {
        pirn_chan_send(chan, 1);
        pirn_yield(); /* two that wake each other share a time slice: the others wait for 10 ms */
    }
}

static void receive(void)
{
    for (;;)
        pirn_chan_get(chan);
}

static void spawn(void)
{
    pirn_wg wg = {0};
    for (;;) {
        pirn_wg_go(&wg, pirn_yield);
        pirn_wg_wait(&wg);
        pirn_yield();
    }
}

static void spawn_all(void)
{
    chan = pirn_chan_make(int, 1);
    full = pirn_chan_make(int, 1);
    pirn_chan_try_send(full, 1);
    for (int i = 0; i < 3; i++) {
        pirn_go(yield);
        pirn_go(rest);
        pirn_go(lock);
        pirn_go(send);
        pirn_go(receive);
        pirn_go(spawn);
    }
    pirn_go(compute);
}

/* --- what exit() calls --------------------------------------------------------------------------------- */

static atomic_int *calls; /* shared with the children */
static bool is_child;

static void use_all(void)
{
    pirn_wg wg = {0};
    int v;
    pirn_yield();
    if (!pirn_chan_try_send(chan, 2))
        pirn_chan_try_recv(chan, &v);
    CHECK_EQ(pirn_chan_try_send(full, 2), 0);
    pirn_mutex_lock(&mutex);
    pirn_mutex_unlock(&mutex);
    pirn_chan_send(chan, 3);
    pirn_wg_go(&wg, pirn_yield);
    pirn_wg_wait(&wg);
    pirn_sleep(10 * PIRN_US);
    CHECK_GT(pirn_num_goroutines(), 0);
    atomic_fetch_add(calls, 1);
}

__attribute__((destructor)) static void at_unload(void)
{
    if (is_child)
        use_all();
}

/* --- children --------------------------------------------------------------------------------------------- */

static void begin(void)
{
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(calls != MAP_FAILED);
}

/* Many busy threads on few CPUs take their time: then there are fewer children. */
static bool more(int i)
{
    static pirn_ns until;
    until = until ? until : pirn_now() + PIRN_SEC;
    return i < 3 || (i < CHILDREN && pirn_now() < until);
}

/* True in the child. In the parent, it has ended as it should. */
static bool in_child(int want)
{
    int status;
    atomic_store(calls, 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        is_child = true;
        alarm(60);
        CHECK_EQ(atexit(use_all), 0);
        CHECK_EQ(atexit(use_all), 0);
        return true;
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), want);
    CHECK_EQ(atomic_load(calls), 3);
    return false;
}

/* Before the exit: not at all, or until others have begun to run. */
static void linger(int i)
{
    for (int k = 0; k < i % 8 * 5; k++) {
        pirn_yield();
        sched_yield();
    }
}

static void exit_after(int i)
{
    linger(i);
    exit(STATUS);
}

static int run_and_exit(void *i)
{
    spawn_all();
    exit_after(*(int *)i);
    return 0;
}

TEST_ATTR(by_the_first, PROCS)
{
    begin();
    for (int i = 0; more(i); i++)
        if (in_child(STATUS)) {
            pirn_run(run_and_exit, &i);
            FAIL("exit has returned");
        }
}

static int run_and_wait(void *i)
{
    pirn_wg wg = {0};
    spawn_all();
    pirn_wg_go(&wg, exit_after, *(int *)i);
    pirn_wg_wait(&wg);
    return 0;
}

TEST_ATTR(by_another, PROCS)
{
    begin();
    for (int i = 0; more(i); i++)
        if (in_child(STATUS)) {
            pirn_run(run_and_wait, &i);
            FAIL("exit has returned");
        }
}

/* While the main thread waits for it. */
TEST_ATTR(by_a_goroutine_of_start, PROCS)
{
    begin();
    for (int i = 0; more(i); i++)
        if (in_child(STATUS)) {
            pirn_wg wg = {0};
            CHECK_EQ(pirn_start(NULL), 0);
            spawn_all();
            pirn_wg_go(&wg, exit_after, i);
            pirn_wg_wait(&wg);
            FAIL("exit has returned");
        }
}

static void *thread_exits(void *i)
{
    exit_after(*(int *)i);
    return NULL;
}

static int run_beside(void *i)
{
    pthread_t t;
    spawn_all();
    CHECK_EQ(pthread_create(&t, NULL, thread_exits, i), 0);
    for (;;)
        pirn_yield();
}

TEST_ATTR(by_a_thread, PROCS)
{
    begin();
    for (int i = 0; more(i); i++)
        if (in_child(STATUS)) {
            pirn_run(run_beside, &i);
            FAIL("exit has returned");
        }
}

TEST_ATTR(by_main, PROCS)
{
    begin();
    for (int i = 0; more(i); i++)
        if (in_child(STATUS)) {
            CHECK_EQ(pirn_start(NULL), 0);
            spawn_all();
            exit_after(i);
        }
}

/* The harness's, which returns 0. */
TEST_ATTR(main_returns, PROCS, .once = true)
{
    begin();
    for (int i = 0; more(i); i++)
        if (in_child(0)) {
            CHECK_EQ(pirn_start(NULL), 0);
            spawn_all();
            linger(i);
            return;
        }
}
