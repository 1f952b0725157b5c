/* SPDX-License-Identifier: MIT */
/*
 * Selects: one of the cases is carried out, whoever comes from the other side; what is left in the
 * queues of the others is taken off, and a channel may be freed meanwhile; the default is taken only if
 * at one time none of the cases could be. And operations with a deadline: a value is passed on by both
 * sides or by neither.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include "chan_threads.h"

/* --- select --------------------------------------------------------------------------------------------------- */

static void closes(void)
{
    pirn_chanv_close(a);
}

static void closes_b(void)
{
    pirn_chanv_close(b);
}

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

static void sends_1(void)
{
    send_to(a, 1);
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

CHAN(select_against_two_closes, unbuffered, none_came, closes, closes_b, selects_recv)
CHAN(two_selects_against_close, unbuffered, none_came, closes, selects_recv, selects_recv)

/* --- the same two channels in opposite order ----------------------------------------------------------- */

static void swaps(pirn_chanv *to, pirn_chanv *from)
{
    int one = 1, v = 0;
    bool ok = false;
    pirn_case cases[] = {{.kind_ = PIRN_CASE_SEND_, .chan_ = to, .elem_ = &one},
                         {.kind_ = PIRN_CASE_RECV_, .chan_ = from, .elem_ = &v, .ok_ = &ok}};
    int i = pirn_selectv(cases, 2);
    CHECK(i == 0 ? v == 0 : ok && v == 1);
    got[model_self()] = v;
}

static void swaps_a_b(void)
{
    swaps(a, b);
}
static void swaps_b_a(void)
{
    swaps(b, a);
}

CHAN(select_opposite, unbuffered, one_came, swaps_a_b, swaps_b_a)

static void selects_recv_b_first(void)
{
    int x = 0, y = 0;
    bool ok = false;
    pirn_case cases[] = {{.kind_ = PIRN_CASE_RECV_, .chan_ = b, .elem_ = &y, .ok_ = &ok},
                         {.kind_ = PIRN_CASE_RECV_, .chan_ = a, .elem_ = &x, .ok_ = &ok}};
    int i = pirn_selectv(cases, 2);
    took(i == 0 ? y : x, ok);
    CHECK((i == 0 ? x : y) == 0);
}

static void setup_one_in_each(void)
{
    buffered();
    send_to(a, 1);
    send_to(b, 2);
}

CHAN(two_selects_opposite, setup_one_in_each, all_came, selects_recv, selects_recv_b_first)
CHAN(two_selects_opposite_against_close, unbuffered, none_came, closes, selects_recv,
     selects_recv_b_first)

/* The operation of a select that was won elsewhere is met, and removed, before the select is back; one
 * that waits behind it is not removed with it. */
static void sends_to_both(void)
{
    send_to(a, 1);
    send_to(b, 2);
}

static void receives_from_b(void)
{
    recv_from(b);
}

CHAN(lost_operation_is_met, unbuffered, all_came, sends_to_both, selects_recv, receives_from_b)

/* --- default ---------------------------------------------------------------------------------------------- */

/* -1: the default. */
static int selects_or_default(void)
{
    int x = 0, y = 0;
    bool ok = false;
    pirn_case cases[] = {{.kind_ = PIRN_CASE_RECV_, .chan_ = a, .elem_ = &x, .ok_ = &ok},
                         {.kind_ = PIRN_CASE_RECV_, .chan_ = b, .elem_ = &y, .ok_ = &ok},
                         {.kind_ = PIRN_CASE_DEFAULT_}};
    int i = pirn_selectv(cases, 3);
    if (i < 2) {
        took(i == 0 ? x : y, ok);
    }
    return i < 2 ? i : -1;
}

static void takes_or_not(void)
{
    selects_or_default();
}

static void takes_later(void)
{
    if (selects_or_default() < 0) {
        recv_from(a);
    }
}

static void one_came_or_is_in_a(void)
{
    int v;
    CHECK(sum() + pirn_chanv_try_recv(a, &v) == 1);
    empty_and_free();
}

CHAN(default_against_send, buffered, one_came_or_is_in_a, sends_1, takes_or_not)
CHAN(default_against_waiting_send, unbuffered, one_came, sends_1, takes_later)

/* Always one of the two can be received from: the default is not for them. */
static void setup_one_in_a(void)
{
    buffered();
    send_to(a, 1);
}

static void moves(void)
{
    int v;
    send_to(b, 2);
    if (pirn_chanv_try_recv(a, &v)) {
        got[model_self()] = v;
    }
}

static void must_take(void)
{
    CHECK(selects_or_default() >= 0);
}

static void two_left_at_most(void)
{
    int v;
    while (pirn_chanv_try_recv(a, &v) || pirn_chanv_try_recv(b, &v)) {
        got[0] += v;
    }
    all_came();
}

CHAN(default_sees_one_time, setup_one_in_a, two_left_at_most, moves, must_take)

/* --- freed by the partner, while the select is still in the other's queue --------------------------------- */

static void frees_both(void)
{
    pirn_chanv_release(a);
    pirn_chanv_release(b);
}

static void sends_and_frees(void)
{
    send_to(a, 1);
    frees_both();
}

static void closes_and_frees(void)
{
    closes();
    frees_both();
}

static void freed(void)
{
    CHECK(sum() == 1);
}

static void freed_none_came(void)
{
    CHECK(sum() == 0);
}

static void sends_and_frees_a(void)
{
    send_to(a, 1);
    pirn_chanv_release(a);
}

static void selects_and_frees_b(void)
{
    selects_recv();
    pirn_chanv_release(b);
}

CHAN(freed_under_a_select, unbuffered, freed, sends_and_frees, selects_recv)
/* Each has references of its own: who comes last frees. */
static void setup_references(void)
{
    unbuffered();
    pirn_chanv_retain(a);
    pirn_chanv_retain(b);
}

static void selects_and_frees(void)
{
    selects_recv();
    frees_both();
}

CHAN(freed_by_the_last, setup_references, freed_none_came, closes_and_frees, selects_and_frees)
CHAN(freed_by_both, unbuffered, freed, sends_and_frees_a, selects_and_frees_b)

/* --- one operation with a deadline ------------------------------------------------------------------------- */

#define LATER 1000000
static int sent[MODEL_THREADS];

static void setup_until(void)
{
    unbuffered();
    memset(sent, 0, sizeof sent);
}

static void sends_until(void)
{
    int v = 1;
    data[1] = 1;
    int r = pirn_chanv_send_until(a, &v, LATER);
    CHECK(r == 0 || r == -ETIMEDOUT);
    sent[model_self()] = r == 0;
}

static void receives_until(void)
{
    int v = 7, r = pirn_chanv_recv_until(a, &v, LATER);
    CHECK(r == 0 ? v == 1 : r == -ETIMEDOUT && v == 7);
    took(v, r == 0);
}

static void as_many_came(void)
{
    int n = 0;
    for (int i = 0; i < MODEL_THREADS; i++) {
        n += sent[i];
    }
    CHECK(sum() == n);
    empty_and_free();
}

/* It must come, since the other waits for it. */
static void receives_after_all(void)
{
    recv_from(a);
}

static void sends_until_it_is_taken(void)
{
    sends_until();
    if (!sent[model_self()]) {
        send_to(a, 1);
        sent[model_self()] = 1;
    }
}

/* The partner frees the channel: who has timed out must have left it by then. */
static void receives_until_and_tells(void)
{
    int v = 7, r = pirn_chanv_recv_until(a, &v, LATER);
    took(v, r == 0);
    if (r) {
        recv_from(a);
    }
}

static void tries(void)
{
    int v = 7, r = pirn_chanv_try_recv(a, &v);
    took(v, r == 1);
}

#define UNTIL(mname, finish_, ...)                                                                 \
    MODEL(mname, .setup = setup_until, .finish = finish_, .threads = {__VA_ARGS__}, .timeouts = 1, \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

UNTIL(send_until_recv_until, as_many_came, sends_until, receives_until)
UNTIL(send_until_two_receivers, as_many_came, sends_until, receives_until, tries)
UNTIL(send_until_it_is_taken, as_many_came, sends_until_it_is_taken, receives_after_all)
UNTIL(recv_until_freed, freed, sends_and_frees, receives_until_and_tells)

/* A buffered one is full: the deadline of a sender against a receiver that makes room. */
static void setup_until_full(void)
{
    buffered();
    memset(sent, 0, sizeof sent);
    send_to(a, 2);
}

static void receives_two(void)
{
    int v = 7;
    CHECK(pirn_chanv_recv(a, &v) && v == 2);
    if (pirn_chanv_try_recv(a, &v)) {
        took(v, true);
    }
}

static void as_many_came_or_are_there(void)
{
    int v = 0;
    CHECK(sum() + pirn_chanv_try_recv(a, &v) == sent[0]);
    empty_and_free();
}

MODEL(send_until_room, .setup = setup_until_full, .finish = as_many_came_or_are_there,
      .threads = {sends_until, receives_two}, .timeouts = 1, .preemptions = MODEL_UNBOUNDED)
