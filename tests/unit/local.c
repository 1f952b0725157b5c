/* SPDX-License-Identifier: MIT */
/* Goroutine-local values. */
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "harness.h"
#include "pirn.h"

#define PROCS .procs = "1,2,4,16"

static pirn_local_key key, key2;
static at_u32 destroyed[2000]; /* by value - 1 */

static void *value(uintptr_t i)
{
    return (void *)(i + 1);
}

static void destroy(void *v)
{
    CHECK(v != NULL);
    CHECK((uintptr_t)v <= 2000);
    at_add(&destroyed[(uintptr_t)v - 1], 1, RELAXED);
}

TEST_RUN(get_and_set)
{
    CHECK_EQ(pirn_local_new(&key, NULL), 0);
    CHECK_EQ(pirn_local_new(&key2, NULL), 0);
    CHECK_NE(key, key2);
    CHECK_EQ(pirn_local_get(key), NULL);
    CHECK_EQ(pirn_local_set(key, &key), 0);
    CHECK_EQ(pirn_local_get(key), &key);
    CHECK_EQ(pirn_local_get(key2), NULL);
    CHECK_EQ(pirn_local_set(key2, &key2), 0);
    CHECK_EQ(pirn_local_get(key), &key);
    CHECK_EQ(pirn_local_set(key, NULL), 0);
    CHECK_EQ(pirn_local_get(key), NULL);
    CHECK_EQ(pirn_local_get(key2), &key2);
}

TEST_RUN(bad_keys)
{
    CHECK_EQ(pirn_local_new(&key, NULL), 0);
    CHECK_EQ(pirn_local_set(key + 1, &key), -EINVAL);
    CHECK_EQ(pirn_local_set(UINT32_MAX, &key), -EINVAL);
    CHECK_EQ(pirn_local_get(key + 1), NULL);
    CHECK_EQ(pirn_local_get(UINT32_MAX), NULL);
}

static void own_value(uintptr_t i)
{
    CHECK_EQ(pirn_local_get(key), NULL); /* also when the G had another life before */
    CHECK_EQ(pirn_local_get(key2), NULL);
    CHECK_EQ(pirn_local_set(key, value(i)), 0);
    for (int k = 0; k < 20; k++) {
        pirn_yield();
        CHECK_EQ(pirn_local_get(key), value(i));
    }
    if (i % 3 == 0)
        CHECK_EQ(pirn_local_set(key2, value(i + 1000)), 0);
    if (i % 7 == 0)
        pirn_exit();
}

/* Each goroutine has its own; each value is destroyed once; what is NULL at the end is not. */
TEST_RUN_ATTR(isolation_and_destructors, PROCS)
{
    enum { N = TEST_TSAN ? 300 : 1000 };
    pirn_wg wg = {0};
    CHECK_EQ(pirn_local_new(&key, destroy), 0);
    CHECK_EQ(pirn_local_new(&key2, destroy), 0);
    for (int round = 1; round <= (TEST_TSAN ? 2 : 3); round++) { /* the second time on used Gs */
        for (uintptr_t i = 0; i < N; i++)
            pirn_wg_go(&wg, own_value, i);
        pirn_wg_wait(&wg); /* destructors run before the done */
        for (uint32_t i = 0; i < N; i++)
            CHECK_EQ(at_load(&destroyed[i], RELAXED), round);
        for (uint32_t i = 0; i < N; i++)
            CHECK_EQ(at_load(&destroyed[i + 1000], RELAXED), i % 3 == 0 ? round : 0);
    }
}

static void no_value_at_the_end(void)
{
    CHECK_EQ(pirn_local_set(key, value(1)), 0);
    CHECK_EQ(pirn_local_set(key, value(2)), 0); /* replaced: the caller's business */
    CHECK_EQ(pirn_local_set(key2, value(3)), 0);
    CHECK_EQ(pirn_local_set(key2, NULL), 0);
}

TEST_RUN(only_the_last_value)
{
    pirn_wg wg = {0};
    CHECK_EQ(pirn_local_new(&key, destroy), 0);
    CHECK_EQ(pirn_local_new(&key2, destroy), 0);
    pirn_wg_go(&wg, no_value_at_the_end);
    pirn_wg_wait(&wg);
    for (uint32_t i = 0; i < 10; i++)
        CHECK_EQ(at_load(&destroyed[i], RELAXED), i == 2);
}

/* --- destructors that set values again --------------------------------------------------------------- */

static at_u32 calls;
static uint64_t owner;
static pirn_local_key late;

static void set_again_twice(void *v)
{
    CHECK_EQ(pirn_id(), owner); /* by the goroutine itself */
    CHECK_EQ(pirn_local_get(key), NULL);
    CHECK_EQ(v, value(at_load(&calls, RELAXED)));
    uint32_t n = at_add(&calls, 1, RELAXED) + 1;
    pirn_yield();
    CHECK_EQ(pirn_id(), owner);
    if (n < 3)
        CHECK_EQ(pirn_local_set(key, value(n)), 0);
    else
        CHECK_EQ(pirn_local_set(late, value(7)), 0); /* the array grows under the loop */
}

static void begin_again(void)
{
    owner = pirn_id();
    CHECK_EQ(pirn_local_set(key, value(0)), 0);
}

TEST_RUN_ATTR(set_in_destructor, PROCS)
{
    pirn_wg wg = {0};
    CHECK_EQ(pirn_local_new(&key, set_again_twice), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(pirn_local_new(&key2, NULL), 0);
    CHECK_EQ(pirn_local_new(&late, destroy), 0);
    pirn_wg_go(&wg, begin_again);
    pirn_wg_wait(&wg);
    CHECK_EQ(at_load(&calls, RELAXED), 3);
    CHECK_EQ(at_load(&destroyed[7], RELAXED), 1);
}

static void set_for_ever(void *v)
{
    at_add(&calls, 1, RELAXED);
    CHECK_EQ(pirn_local_set(key, v), 0);
}

static void begin_for_ever(void)
{
    CHECK_EQ(pirn_local_get(key), NULL);
    CHECK_EQ(pirn_local_set(key, &key), 0);
}

/* One that never ceases does not keep the goroutine alive, nor reach the next. */
TEST_RUN(set_in_destructor_for_ever)
{
    pirn_wg wg = {0};
    CHECK_EQ(pirn_local_new(&key, set_for_ever), 0);
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, begin_for_ever);
        pirn_wg_wait(&wg);
    }
    CHECK_GE(at_load(&calls, RELAXED), 10);
    CHECK_LE(at_load(&calls, RELAXED), 100);
}

/* --- keys --------------------------------------------------------------------------------------------- */

static pirn_local_key keys[1100];

static void set_all(int n)
{
    for (int i = n - 1; i >= 0; i--)
        CHECK_EQ(pirn_local_set(keys[i], value((uintptr_t)i)), 0);
    pirn_yield();
    for (int i = 0; i < n; i++)
        CHECK_EQ(pirn_local_get(keys[i]), value((uintptr_t)i));
}

/* There is an end of keys, and the last one works as the first. */
TEST_RUN(key_limit)
{
    pirn_wg wg = {0};
    int n = 0, err;
    while ((err = pirn_local_new(&keys[n], destroy)) == 0) {
        for (int i = n; n < 3 && i-- > 0;)
            CHECK_NE(keys[i], keys[n]);
        CHECK_LT(++n, 1100);
    }
    CHECK_EQ(err, -EAGAIN);
    CHECK_EQ(pirn_local_new(&key, NULL), -EAGAIN);
    CHECK_GE(n, 128); /* as many as POSIX promises for threads */
    pirn_wg_go(&wg, set_all, n);
    pirn_wg_go(&wg, set_all, n);
    pirn_wg_wait(&wg);
    for (int i = 0; i < n; i++)
        CHECK_EQ(at_load(&destroyed[i], RELAXED), 2);
}

static void *make_keys(void *arg)
{
    pirn_local_key *mine = arg;
    for (int i = 0; i < 100; i++)
        CHECK_EQ(pirn_local_new(&mine[i], NULL), 0);
    return NULL;
}

/* Keys are made by any thread, with or without a runtime, and live on from one to the next. */
TEST(keys_from_threads)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, make_keys, keys + 100 * i), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    static bool seen[1100];
    for (int i = 0; i < 800; i++) {
        CHECK(keys[i] < 1100 && !seen[keys[i]]);
        seen[keys[i]] = true;
    }
}

static int main_value(void *arg)
{
    CHECK_EQ(pirn_local_get(key), NULL);
    CHECK_EQ(pirn_local_set(key, arg), 0);
    return 0;
}

/* Goroutine 1 has values as all have, and a new runtime begins without any. */
TEST(values_of_goroutine_1)
{
    CHECK_EQ(pirn_local_new(&key, destroy), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pirn_run(main_value, value(5)), 0);
        CHECK_EQ(at_load(&destroyed[5], RELAXED), i + 1);
    }
}
