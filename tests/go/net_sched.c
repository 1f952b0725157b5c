/* SPDX-License-Identifier: MIT */
/* The poller and the scheduler: who looks, when all sleep, when Ps compute, come and go. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "net.h"

#define PROCS .procs = "1,2,4,16"

static void read_one(int fd)
{
    char c;
    CHECK_EQ(pirn_read(fd, &c, 1), 1);
}

/* --- a wait for a descriptor is no deadlock (93), and no time passes in it --------------------------------- */

static void *write_later(void *arg)
{
    usleep(50000);
    CHECK_EQ(write(*(int *)arg, "x", 1), 1);
    return NULL;
}

TEST_RUN_ATTR(no_deadlock_no_cpu, PROCS)
{
    int fd[2];
    pthread_t thread;
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_later, &fd[1]), 0);
    long before = test_cpu_us();
    read_one(fd[0]);
    if (!test_on_valgrind()) /* whose own time it would be */
        CHECK_LT(test_cpu_us() - before, TEST_TSAN || TEST_ASAN ? 40000 : 15000);
    pthread_join(thread, NULL);
    close(fd[0]);
    close(fd[1]);
}

/* --- NetpollBreak (51): one who sleeps in the poller is woken for other work, and for a timer ---------------- */

static void send_to(pirn_chanv *c)
{
    int v = 1;
    pirn_chanv_send(c, &v);
}

static void *spawn_from_outside(void *arg)
{
    usleep(2000);
    pirn_go(send_to, (pirn_chanv *)arg);
    return NULL;
}

TEST_RUN_ATTR(broken_for_work, PROCS)
{
    int fd[2], v;
    pirn_wg wg = {0};
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 0);
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    pirn_wg_go(&wg, read_one, fd[0]);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        pirn_ns begin = pirn_now();
        CHECK_EQ(pthread_create(&thread, NULL, spawn_from_outside, c), 0);
        CHECK(pirn_chanv_recv(c, &v));
        CHECK_LT(pirn_now() - begin, 5 * PIRN_SEC);
        pthread_join(thread, NULL);
        begin = pirn_now();
        pirn_sleep(PIRN_MS); /* it keeps the time, too */
        CHECK_LT(pirn_now() - begin, 5 * PIRN_SEC);
    }
    CHECK_EQ(pirn_write(fd[1], "x", 1), 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_close(fd[1]), 0);
    pirn_chanv_release(c);
}

/* --- rule R4: the network while Ps compute --------------------------------------------------------------------- */

static atomic_int over;

static void compute(void)
{
    while (!atomic_load(&over)) {
    }
}

/* One loop that never calls pirn on every P: who waits for a socket runs all the same. */
TEST_RUN_ATTR(while_others_compute, .procs = "1,2", .timeout = 60)
{
    if (TEST_TSAN) {
        SKIP("no preemption");
    }
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    atomic_store(&over, 0);
    int loops = pirn_procs(0);
    for (int i = 0; i < loops; i++) {
        pirn_wg_go(&wg, compute);
    }
    char c = 'x';
    for (int i = 0; i < 5; i++) {
        pirn_wg one = {0};
        pirn_wg_go(&one, read_one, p.b);
        pirn_yield();
        CHECK_EQ(pirn_write(p.a, &c, 1), 1);
        pirn_wg_wait(&one);
    }
    atomic_store(&over, 1);
    pirn_wg_wait(&wg);
    close_pair(p);
}

static void *write_now(void *arg)
{
    usleep(3000);
    CHECK_EQ(write(*(int *)arg, "x", 1), 1);
    return NULL;
}

/* The P of the waiter computes, another is idle; and all are blocked in a blocking section. */
static void *block(void *arg)
{
    while (!atomic_load((atomic_int *)arg)) {
        usleep(500);
    }
    return NULL;
}

static void be_blocked(atomic_int *until)
{
    pirn_blocking(block, until);
}

TEST_RUN_ATTR(while_others_block, PROCS)
{
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    for (int i = 0; i < 5; i++) {
        pirn_wg wg = {0};
        pthread_t thread;
        atomic_store(&over, 0);
        for (int k = 0; k < 20; k++) {
            pirn_wg_go(&wg, be_blocked, &over);
        }
        CHECK_EQ(pthread_create(&thread, NULL, write_now, &fd[1]), 0);
        read_one(fd[0]);
        atomic_store(&over, 1);
        pirn_wg_wait(&wg);
        pthread_join(thread, NULL);
    }
    close(fd[0]);
    close(fd[1]);
}

/* A goroutine that is locked to its thread waits for a descriptor, and nobody else is there. */
TEST_RUN_ATTR(locked_to_a_thread, PROCS)
{
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    pirn_lock_thread();
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, write_now, &fd[1]), 0);
        read_one(fd[0]);
        pthread_join(thread, NULL);
    }
    pirn_unlock_thread();
    close(fd[0]);
    close(fd[1]);
}

/* --- rule R5: pollers outlive their Ps --------------------------------------------------------------------------- */

TEST_RUN(procs_come_and_go)
{
    enum { N = 32 };
    struct pair p[N];
    pirn_wg wg = {0};
    CHECK_GT(pirn_procs(8), 0);
    for (int i = 0; i < N; i++) {
        p[i] = tcp_pair();
        pirn_wg_go(&wg, read_one, p[i].b);
    }
    let_wait();
    pirn_procs(1);
    for (int i = 0; i < N / 2; i++) {
        CHECK_EQ(pirn_write(p[i].a, "x", 1), 1);
    }
    let_wait();
    pirn_procs(4);
    for (int i = N / 2; i < N; i++) {
        CHECK_EQ(pirn_write(p[i].a, "x", 1), 1);
    }
    pirn_wg_wait(&wg);
    for (int i = 0; i < N; i++) {
        close_pair(p[i]);
    }
}

static void bounce(int fd, int rounds)
{
    char c = 'x';
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(pirn_write(fd, &c, 1), 1);
        CHECK_EQ(pirn_read(fd, &c, 1), 1);
    }
}

static void bounce_back(int fd, int rounds)
{
    char c;
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(pirn_read(fd, &c, 1), 1);
        CHECK_EQ(pirn_write(fd, &c, 1), 1);
    }
}

TEST_RUN(procs_change_under_load)
{
    enum { N = 8, ROUNDS = 200 };
    struct pair p[N];
    pirn_wg wg = {0};
    for (int i = 0; i < N; i++) {
        p[i] = tcp_pair();
        pirn_wg_go(&wg, bounce, p[i].a, (int)ROUNDS);
        pirn_wg_go(&wg, bounce_back, p[i].b, (int)ROUNDS);
    }
    for (int i = 0; i < 40; i++) {
        pirn_procs(1 + i * 7 % 16);
        pirn_sleep(300 * PIRN_US);
    }
    pirn_wg_wait(&wg);
    for (int i = 0; i < N; i++) {
        close_pair(p[i]);
    }
}

/* --- the runtime again and again, with descriptors that outlive it ------------------------------------------------ */

static int use_pair(void *arg)
{
    struct pair *p = arg;
    pirn_wg wg = {0};
    pirn_wg_go(&wg, bounce_back, p->b, 3);
    bounce(p->a, 3);
    pirn_wg_wait(&wg);
    pirn_go(read_one, p->a); /* dropped */
    pirn_yield();
    return 0;
}

TEST_ATTR(runtimes, PROCS)
{
    int s[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    struct pair p = {s[0], s[1]};
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_run(use_pair, &p), 0);
    }
    close(s[0]);
    close(s[1]);
}
