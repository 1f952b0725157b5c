/* SPDX-License-Identifier: MIT */
/* The runtime's own locks and notes, between plain threads. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "os/os.h"

#define THREADS 8
#define TIMES (TEST_TSAN ? 5000 : 50000)

static void in_threads(void *(*fn)(void *), void *arg)
{
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, fn, arg), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

/* --- lock ---------------------------------------------------------------------------------------- */

static struct lock mutex = LOCK_INIT(RANK_NONE);
static struct lock ranked = LOCK_INIT(RANK_SCHED);
static uint64_t counter; /* plain: the lock protects it */

static void *count(void *arg)
{
    struct lock *l = arg;
    for (int i = 0; i < TIMES; i++) {
        lock(l);
        if (l->rank != RANK_NONE)
            lock_must_hold(l);
        counter++;
        if (i % 5000 == 0)
            sched_yield(); /* sometimes it is held for long: the others sleep */
        unlock(l);
    }
    return NULL;
}

TEST(lock_counts)
{
    in_threads(count, &mutex);
    CHECK_EQ(counter, (uint64_t)THREADS * TIMES);
    CHECK_EQ(at_load(&mutex.state, RELAXED), 0);
}

TEST(ranked_lock_counts)
{
    in_threads(count, &ranked);
    CHECK_EQ(counter, (uint64_t)THREADS * TIMES);
    CHECK_EQ(at_load(&ranked.state, RELAXED), 0);
}

/* --- word lock ------------------------------------------------------------------------------------ */

static at_u64 word;

static void *count_in_word(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        uint64_t w = word_lock(&word);
        CHECK_EQ(w & WORD_LOCKED, 0);
        counter++;
        CHECK(at_load(&word, RELAXED) & WORD_LOCKED);
        CHECK_EQ(at_load(&word, RELAXED) & ~(uint64_t)WORD_LOCKED, w);
        if (i % 5000 == 0)
            sched_yield();
        CHECK_EQ(at_load(&word, RELAXED) & ~(uint64_t)WORD_LOCKED, w);
        word_unlock(&word, w + 4); /* the caller's bits count too */
    }
    return NULL;
}

TEST(word_lock_counts)
{
    const uint64_t start = UINT64_C(0xfffffff000000000) + 4096 - 8; /* low half near its wrap */
    at_store(&word, start, RELAXED);
    in_threads(count_in_word, NULL);
    CHECK_EQ(counter, (uint64_t)THREADS * TIMES);
    CHECK_EQ(at_load(&word, RELAXED), start + 4 * (uint64_t)THREADS * TIMES);
}

/* The high half changes only: sleepers compare the low one, which looks the same all the time. */
static void *count_high(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++)
        word_unlock(&word, word_lock(&word) + (UINT64_C(1) << 32));
    return NULL;
}

TEST(word_lock_high_half)
{
    at_store(&word, 0x7ffffff8, RELAXED);
    in_threads(count_high, NULL);
    CHECK_EQ(at_load(&word, RELAXED), 0x7ffffff8 + ((uint64_t)THREADS * TIMES << 32));
}

/* --- notes ---------------------------------------------------------------------------------------- */

TEST(post_before_wait)
{
    struct note n;
    note_clear(&n);
    note_post(&n);
    note_wait(&n);
    CHECK(note_wait_until(&n, now_ns() - 1)); /* posted, though the time is over */
    note_clear(&n);
    CHECK(!note_wait_until(&n, now_ns() - 1));
}

TEST(futexes_leave_errno_alone)
{
    at_u32 one = {1};
    errno = EXDEV;
    CHECK(futex_wait(&one, 0, INT64_MAX)); /* EAGAIN */
    CHECK_EQ(errno, EXDEV);
    CHECK(!futex_wait(&one, 1, 0)); /* ETIMEDOUT */
    CHECK_EQ(errno, EXDEV);
}

TEST(wait_times_out)
{
    struct note n;
    note_clear(&n);
    int64_t until = now_ns() + 20 * 1000 * 1000;
    CHECK(!note_wait_until(&n, until));
    CHECK_GE(now_ns(), until);
    CHECK(!note_wait_until(&n, 0));
    CHECK(!note_wait_until(&n, -1));
    note_post(&n);
    CHECK(note_wait_until(&n, INT64_MAX));
}

#define ROUNDS (TEST_TSAN ? 5000 : 20000)
static struct note ping, pong;

static void *answer(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        note_wait(&ping);
        note_clear(&ping);
        note_post(&pong);
    }
    return NULL;
}

/* No post is lost, whichever side is first. */
TEST(ping_pong)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, answer, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        note_post(&ping);
        CHECK(note_wait_until(&pong, now_ns() + 20 * INT64_C(1000000000)));
        note_clear(&pong);
    }
    pthread_join(t, NULL);
}

/* --- lock order, in debug builds ------------------------------------------------------------------ */

#if PIRN_DEBUG_CHECKS

static struct lock low = LOCK_INIT(RANK_LIFE), high = LOCK_INIT(RANK_STACK),
                   high2 = LOCK_INIT(RANK_STACK);

static void wrong_order(void *arg)
{
    (void)arg;
    lock(&high);
    lock(&low);
}

static void same_rank(void *arg)
{
    (void)arg;
    lock(&high);
    lock(&high2);
}

static void not_held(void *arg)
{
    (void)arg;
    unlock(&low);
}

static void must_hold(void *arg)
{
    (void)arg;
    lock(&low);
    lock_must_hold(&high);
}

static void right_order(void *arg)
{
    (void)arg;
    lock(&low);
    lock(&mutex); /* without a rank: anywhere */
    lock(&high);
    lock_must_hold(&low);
    lock_must_hold(&high);
    unlock(&low); /* released in any order */
    unlock(&high);
    unlock(&mutex);
    lock(&low);
    unlock(&low);
}

static void check_dies(void (*fn)(void *), const char *format, int rank, unsigned held)
{
    char why[128];
    snprintf(why, sizeof why, format, rank, held);
    int status = test_in_child(fn, NULL);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
    CHECK(!strncmp(test_said, "fatal error: ", 13));
    CHECK(strstr(test_said, why));
}

TEST(lock_order)
{
    CHECK_EQ(test_in_child(right_order, NULL), 0);
    CHECK_STR(test_said, "");
    check_dies(wrong_order,
               "fatal error: lock order: rank %d taken while ranks %x (bits) are held\n", RANK_LIFE,
               1u << RANK_STACK);
    check_dies(same_rank, "fatal error: lock order: rank %d taken while ranks %x (bits) are held\n",
               RANK_STACK, 1u << RANK_STACK);
    check_dies(not_held, "fatal error: lock order: rank %d released but not held\n", RANK_LIFE, 0);
    check_dies(must_hold, "fatal error: lock: of rank %d is not held\n", RANK_STACK, 0);
}

#else

TEST(lock_order)
{
    SKIP("lock order is checked in builds with debug_checks only");
}

#endif
