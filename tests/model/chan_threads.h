/* SPDX-License-Identifier: MIT */
/*
 * For models of channels: two of them, and what was received. The threads are foreign ones, without
 * what surrounds their calls.
 */
#ifndef TESTS_MODEL_CHAN_THREADS_H
#define TESTS_MODEL_CHAN_THREADS_H

#include <stdlib.h>

#include "foreign_lean.h"
#include "foreign_only.h"
#include "sync/chan.h"

#define MAYBE __attribute__((unused))

static pirn_chanv *a, *b;
static int got[MODEL_THREADS]; /* values received, by thread; -1: closed */
static int data[3];            /* written before value i is sent */

MAYBE static void make(size_t cap_a, size_t cap_b)
{
    memset(got, 0, sizeof got);
    memset(data, 0, sizeof data);
    a = pirn_chanv_make(sizeof(int), cap_a);
    b = pirn_chanv_make(sizeof(int), cap_b);
}

MAYBE static void send_to(pirn_chanv *c, int v)
{
    data[v] = v;
    pirn_chanv_send(c, &v);
}

MAYBE static void took(int v, bool ok)
{
    if (ok) {
        CHECK(data[v] == v); /* a race, unless the channel orders */
    }
    got[model_self()] += ok ? v : 0;
}

MAYBE static void recv_from(pirn_chanv *c)
{
    int v = 7;
    bool ok = pirn_chanv_recv(c, &v);
    CHECK(ok || v == 0);
    took(v, ok);
}

MAYBE static int sum(void)
{
    return got[0] + got[1] + got[2] + got[3];
}

MAYBE static void empty_and_free(void)
{
    CHECK(pirn_chanv_len(a) == 0 && pirn_chanv_len(b) == 0);
    CHECK(!a->receivers.first && !a->senders.first && !a->selects);
    CHECK(!b->receivers.first && !b->senders.first && !b->selects);
    pirn_chanv_release(a);
    pirn_chanv_release(b);
}

MAYBE static void all_came(void)
{
    CHECK(sum() == 3);
    empty_and_free();
}

MAYBE static void unbuffered(void)
{
    make(0, 0);
}
MAYBE static void buffered(void)
{
    make(1, 1);
}

MAYBE static void one_came(void)
{
    CHECK(sum() == 1);
    empty_and_free();
}

MAYBE static void none_came(void)
{
    CHECK(sum() == 0);
    empty_and_free();
}

#define CHAN(mname, setup_, finish_, ...)                                                          \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

#endif
