/* SPDX-License-Identifier: MIT */
/*
 * Everybody waits for something else: the report says what each waits for.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine \d+ \[chan send(, \d+ .*)?\] sends:$
 * expect-stderr-regex: ^goroutine \d+ \[chan receive(, \d+ .*)?\] receives:$
 * expect-stderr-regex: ^goroutine \d+ \[chan send \(NULL channel\)(, \d+ .*)?\] sends_nil:$
 * expect-stderr-regex: ^goroutine \d+ \[chan receive \(NULL channel\)(, \d+ .*)?\] receives_nil:$
 * expect-stderr-regex: ^goroutine \d+ \[select(, \d+ .*)?\] selects:$
 * expect-stderr-regex: ^goroutine \d+ \[select \(no cases\)(, \d+ .*)?\] selects_none:$
 * expect-stderr-regex: ^goroutine \d+ \[mutex lock(, \d+ .*)?\] locks:$
 * expect-stderr-regex: ^goroutine \d+ \[rwmutex lock(, \d+ .*)?\] writes:$
 * expect-stderr-regex: ^goroutine \d+ \[rwmutex rlock(, \d+ .*)?\] reads:$
 * expect-stderr-regex: ^goroutine \d+ \[cond wait(, \d+ .*)?\] waits_cond:$
 * expect-stderr-regex: ^goroutine \d+ \[semaphore acquire(, \d+ .*)?\] acquires:$
 * expect-stderr-regex: ^goroutine \d+ \[barrier wait(, \d+ .*)?\] waits_barrier:$
 * expect-stderr-regex: ^goroutine \d+ \[wait group wait(, \d+ .*)?\] waits_group:$
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>

static pirn_chan(int) c;
static pirn_mutex held, mutex;
static pirn_rwmutex written, rwmutex;
static pirn_cond cond;
static pirn_sem sem;
static pirn_barrier barrier;
static pirn_wg group;

static void sends(void)
{
    pirn_chan(int) full = pirn_chan_make(int, 0);
    pirn_chan_send(full, 1);
}

static void receives(void)
{
    (void)pirn_chan_get(c);
}

static void sends_nil(void)
{
    pirn_chan(int) none = NULL;
    pirn_chan_send(none, 1);
}

static void receives_nil(void)
{
    pirn_chan(int) none = NULL;
    (void)pirn_chan_get(none);
}

static void selects(void)
{
    pirn_chan(int) other = pirn_chan_make(int, 0);
    (void)pirn_select(PIRN_RECV(other, NULL), PIRN_RECV(c, NULL));
}

static void selects_none(void)
{
    (void)pirn_selectv(NULL, 0);
}

static void locks(void)
{
    pirn_mutex_lock(&held);
}

static void writes(void)
{
    pirn_rwmutex_rlock(&rwmutex);
    pirn_rwmutex_lock(&rwmutex);
}

static void reads(void)
{
    pirn_rwmutex_lock(&written);
    pirn_rwmutex_rlock(&written);
}

static void waits_cond(void)
{
    pirn_mutex_lock(&mutex);
    pirn_cond_wait(&cond, &mutex);
}

static void acquires(void)
{
    pirn_sem_acquire(&sem, 1);
}

static void waits_barrier(void)
{
    (void)pirn_barrier_wait(&barrier);
}

static void waits_group(void)
{
    pirn_wg_wait(&group);
}

static int start(void *arg)
{
    (void)arg;
    c = pirn_chan_make(int, 0);
    pirn_barrier_init(&barrier, 2);
    pirn_wg_add(&group, 1);
    pirn_mutex_lock(&held);
    pirn_go(sends);
    pirn_go(receives);
    pirn_go(sends_nil);
    pirn_go(receives_nil);
    pirn_go(selects);
    pirn_go(selects_none);
    pirn_go(locks);
    pirn_go(writes);
    pirn_go(reads);
    pirn_go(waits_cond);
    pirn_go(acquires);
    pirn_go(waits_barrier);
    pirn_go(waits_group);
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
