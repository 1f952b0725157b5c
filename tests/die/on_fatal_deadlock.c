/* SPDX-License-Identifier: MIT */
/*
 * The objects that the deadlock is about can be looked at.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_chan(int) c;
static pirn_mutex m;
static pirn_sem s;

static void locks(void)
{
    pirn_mutex_lock(&m);
}

static void acquires(void)
{
    pirn_sem_acquire(&s, 2);
}

static void last_word(const char *message)
{
    (void)message;
    say_last(pirn_chan_len(c) == 1 && pirn_chan_try_send(c, 3) == 0 && !pirn_mutex_try_lock(&m)
             && !pirn_sem_try_acquire(&s, 1));
}

static int start(void *arg)
{
    (void)arg;
    c = pirn_chan_make(int, 1);
    pirn_mutex_lock(&m);
    pirn_go(locks);
    pirn_go(acquires);
    pirn_chan_send(c, 1);
    pirn_chan_send(c, 2);
    return 0;
}

int main(void)
{
    return with_last_word(last_word, start);
}
