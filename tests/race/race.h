/* SPDX-License-Identifier: MIT */
/*
 * For programs with a planted race. Two accesses at the very same moment may escape TSan, so one is put
 * behind the other by reached() and until(), of which TSan does not know. later() lets others get to
 * where they wait; the race is to be seen also if they don't.
 */
#ifndef TESTS_RACE_H
#define TESTS_RACE_H

#include <pirn.h>

#define UNSEEN __attribute__((noinline, unused, no_sanitize("thread")))

extern int n; /* what is raced for; a static one that is never read would be no variable */
extern volatile int race_step;

UNSEEN static void reached(int step)
{
    race_step = step;
}

UNSEEN static void until(int step)
{
    while (race_step < step) {
        pirn_sleep(PIRN_MS);
    }
}

static inline void later(void)
{
    pirn_sleep(5 * PIRN_MS);
}

static inline int race_call(void *fn)
{
    (*(void (**)(void))fn)();
    return 0;
}

/* A program that runs body(). */
#define RACE_MAIN(body)                                                                            \
    int n;                                                                                         \
    volatile int race_step;                                                                        \
    int main(void)                                                                                 \
    {                                                                                              \
        void (*fn)(void) = (body);                                                                 \
        return pirn_run(race_call, &fn);                                                           \
    }

#endif
