/* SPDX-License-Identifier: MIT */
/*
 * Channels and selects: each value that was sent is received once, in order; a close lets everybody
 * go on; a select carries out one of its cases, and leaves nothing behind in the others' queues; and
 * a channel may be freed by a partner as soon as the operation lets it go on.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include <stdlib.h>

#include "foreign_lean.h"
#include "foreign_only.h"
#include "sync/chan.h"

static pirn_chanv *a, *b;
static int got[MODEL_THREADS]; /* values received, by thread; -1: closed */
static int data[3];            /* written before value i is sent */

static void make(size_t cap_a, size_t cap_b)
{
    memset(got, 0, sizeof got);
    memset(data, 0, sizeof data);
    a = pirn_chanv_make(sizeof(int), cap_a);
    b = pirn_chanv_make(sizeof(int), cap_b);
}

static void send_to(pirn_chanv *c, int v)
{
    data[v] = v;
    pirn_chanv_send(c, &v);
}

static void took(int v, bool ok)
{
    if (ok) {
        CHECK(data[v] == v); /* a race, unless the channel orders */
    }
    got[model_self()] += ok ? v : 0;
}

static void recv_from(pirn_chanv *c)
{
    int v = 7;
    bool ok = pirn_chanv_recv(c, &v);
    CHECK(ok || v == 0);
    took(v, ok);
}

static int sum(void)
{
    return got[0] + got[1] + got[2] + got[3];
}

static void empty_and_free(void)
{
    CHECK(pirn_chanv_len(a) == 0 && pirn_chanv_len(b) == 0);
    CHECK(!a->receivers.first && !a->senders.first && !a->selects);
    CHECK(!b->receivers.first && !b->senders.first && !b->selects);
    pirn_chanv_release(a);
    pirn_chanv_release(b);
}

static void all_came(void)
{
    CHECK(sum() == 3);
    empty_and_free();
}

/* --- sends and receives ------------------------------------------------------------------------------- */

static void unbuffered(void)
{
    make(0, 0);
}
static void buffered(void)
{
    make(1, 1);
}

static void sends_1(void)
{
    send_to(a, 1);
}
static void sends_2(void)
{
    send_to(a, 2);
}
static void sends_1_2(void)
{
    send_to(a, 1);
    send_to(a, 2);
}
static void receives(void)
{
    recv_from(a);
}
static void receives_twice(void)
{
    recv_from(a);
    recv_from(a);
}
static void receives_both(void)
{
    int v;
    CHECK(pirn_chanv_recv(a, &v) && v == 1);
    CHECK(pirn_chanv_recv(a, &v) && v == 2);
    got[model_self()] = 3;
}

#define CHAN(mname, setup_, finish_, ...)                                                          \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

CHAN(in_order, unbuffered, all_came, sends_1_2, receives_both)
CHAN(in_order_buffered, buffered, all_came, sends_1_2, receives_both)
CHAN(two_senders, unbuffered, all_came, sends_1, sends_2, receives_twice)
CHAN(two_receivers, unbuffered, all_came, sends_1_2, receives, receives)
CHAN(two_receivers_buffered, buffered, all_came, sends_1_2, receives, receives)

/* --- close ------------------------------------------------------------------------------------------------ */

static void closes(void)
{
    data[1] = 1;
    pirn_chanv_close(a);
}

static void sends_and_closes(void)
{
    send_to(a, 1);
    pirn_chanv_close(a);
}

static void receives_until_closed(void)
{
    int v, n = 0;
    while (pirn_chanv_recv(a, &v)) {
        took(v, true);
        n++;
    }
    CHECK(n == 1);
}

static void one_came(void)
{
    CHECK(sum() == 1);
    empty_and_free();
}

static void none_came(void)
{
    CHECK(sum() == 0);
    empty_and_free();
}

static void tries(void)
{
    int v = 7, r = pirn_chanv_try_recv(a, &v);
    CHECK(r != 0 || v == 7);
    took(v, r == 1);
}

static void one_came_or_is_there(void)
{
    CHECK(sum() + (int)pirn_chanv_len(a) == 1);
    if (!sum()) {
        recv_from(a);
    }
    empty_and_free();
}

CHAN(close_after_send, unbuffered, one_came, sends_and_closes, receives_until_closed)
CHAN(close_after_send_buffered, buffered, one_came, sends_and_closes, receives_until_closed)
CHAN(close_wakes_both, unbuffered, none_came, closes, receives, receives)
CHAN(try_against_send, buffered, one_came_or_is_there, sends_1, tries)

/* --- select --------------------------------------------------------------------------------------------------- */

static void selects_recv(void)
{
    int x = 0, y = 0;
    bool ok = false;
    pirn_case cases[] = {{.kind_ = PIRN_CASE_RECV_, .chan_ = a, .elem_ = &x, .ok_ = &ok},
                         {.kind_ = PIRN_CASE_RECV_, .chan_ = b, .elem_ = &y, .ok_ = &ok}};
    int i = pirn_selectv(cases, 2);
    took(i == 0 ? x : y, ok);
    CHECK((i == 0 ? y : x) == 0);
}

static void selects_recv_twice(void)
{
    selects_recv();
    selects_recv();
}

static void selects_send(void)
{
    int one = 1;
    data[1] = 1;
    pirn_case cases[] = {{.kind_ = PIRN_CASE_SEND_, .chan_ = a, .elem_ = &one},
                         {.kind_ = PIRN_CASE_SEND_, .chan_ = b, .elem_ = &one}};
    pirn_selectv(cases, 2);
}

static void sends_1_to_b(void)
{
    send_to(b, 1);
}

static void sends_2_to_b(void)
{
    send_to(b, 2);
}

CHAN(select_recv, unbuffered, one_came, sends_1_to_b, selects_recv)
CHAN(select_two_senders, unbuffered, all_came, sends_1, sends_2_to_b, selects_recv_twice)
CHAN(select_against_select, unbuffered, one_came, selects_send, selects_recv)
CHAN(select_against_close, unbuffered, none_came, closes, selects_recv)

/* --- freed by the partner ----------------------------------------------------------------------------------- */

static void sends_and_frees(void)
{
    send_to(a, 1);
    pirn_chanv_release(a);
    pirn_chanv_release(b);
}

static void freed(void)
{
    CHECK(sum() == 1);
}

static void receives_and_frees(void)
{
    recv_from(a);
    pirn_chanv_release(a);
    pirn_chanv_release(b);
}

CHAN(freed_by_the_sender, unbuffered, freed, sends_and_frees, receives)
CHAN(freed_by_the_receiver, buffered, freed, sends_1, receives_and_frees)
CHAN(freed_under_a_select, unbuffered, freed, sends_and_frees, selects_recv)
