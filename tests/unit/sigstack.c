/* SPDX-License-Identifier: MIT */
/* Signal stacks: handlers that were installed without SA_ONSTACK, and what a thread has at its end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include <pirn.h>

#include "harness.h"

static void on_usr1(int sig)
{
    (void)sig;
}

static void install(int flags)
{
    CHECK_EQ(
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1, .sa_flags = flags}, NULL), 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

static int spawn_dense(void)
{
    return pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_8K}, nothing, NULL);
}

/* It would run on the 8 KB, and overwrite what lies below. */
TEST_RUN_ATTR(dense_is_refused, .procs = "1,4")
{
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        SKIP("a sanitizer's frames don't fit on small stacks: there are none");
    install(SA_RESTART);
    CHECK_EQ(spawn_dense(), -ENOMEM);
    CHECK_EQ(spawn_dense(), -ENOMEM);
    install(SA_RESTART | SA_ONSTACK);
    CHECK_EQ(spawn_dense(), 0);
    signal(SIGUSR1, SIG_DFL);
}

static pthread_key_t key;
static atomic_int at_end;

/* Of the program, when the thread ends: the stack that pirn gave it is gone, and not in use any more. */
static void look(void *pirns)
{
    stack_t st;
    CHECK_EQ(sigaltstack(NULL, &st), 0);
    CHECK(st.ss_flags & SS_DISABLE || st.ss_sp != pirns);
    atomic_fetch_add(&at_end, 1);
}

static int mark_thread(void *arg)
{
    stack_t st;
    CHECK_EQ(sigaltstack(NULL, &st), 0);
    CHECK(!(st.ss_flags & SS_DISABLE));
    CHECK_EQ(pthread_setspecific(key, st.ss_sp), 0);
    return arg != NULL;
}

TEST(old_one_at_the_end)
{
    if (TEST_ASAN || TEST_TSAN)
        SKIP("the signal stack of a thread is the sanitizer's, until its end");
    CHECK_EQ(pthread_key_create(&key, look), 0);
    CHECK_EQ(pirn_run(mark_thread, NULL), 0);
    CHECK_EQ(atomic_load(&at_end), 1);
    CHECK_EQ(pthread_key_delete(key), 0);
}
