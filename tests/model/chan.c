/* SPDX-License-Identifier: MIT */
/*
 * Channels: each value that was sent is received once, in order; a close lets everybody go on; a try
 * fails only if it had to; and a channel may be freed by a partner as soon as the operation lets it
 * go on.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include "chan_threads.h"

/* --- sends and receives ------------------------------------------------------------------------------- */

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

static void tries(void)
{
    int v = 7, r = pirn_chanv_try_recv(a, &v);
    CHECK(r != 0 || v == 7);
    took(v, r == 1);
}

static void one_came_or_is_there(void)
{
    int v;
    CHECK(sum() + (int)pirn_chanv_len(a) == 1);
    CHECK(sum() || pirn_chanv_recv(a, &v));
    empty_and_free();
}

CHAN(close_after_send, unbuffered, one_came, sends_and_closes, receives_until_closed)
CHAN(close_after_send_buffered, buffered, one_came, sends_and_closes, receives_until_closed)
CHAN(close_wakes_both, unbuffered, none_came, closes, receives, receives)
CHAN(try_against_send, buffered, one_came_or_is_there, sends_1, tries)

/* --- on one and then on the other: [K1] ------------------------------------------------------------------ */

static int done[2];

static void setup_cross(void)
{
    make(1, 1);
    done[0] = done[1] = 0;
}

static void setup_cross_full(void)
{
    int v = 1;
    setup_cross();
    pirn_chanv_send(a, &v);
    pirn_chanv_send(b, &v);
}

static void sends_and_tries_to_receive(pirn_chanv *mine, pirn_chanv *other, int i)
{
    int v = 1;
    pirn_chanv_send(mine, &v);
    done[i] = pirn_chanv_try_recv(other, &v);
}

static void receives_and_tries_to_send(pirn_chanv *mine, pirn_chanv *other, int i)
{
    int v = 1;
    pirn_chanv_recv(mine, &v);
    done[i] = pirn_chanv_try_send(other, &v);
}

static void sends_a_tries_b(void)
{
    sends_and_tries_to_receive(a, b, 0);
}
static void sends_b_tries_a(void)
{
    sends_and_tries_to_receive(b, a, 1);
}
static void receives_a_tries_b(void)
{
    receives_and_tries_to_send(a, b, 0);
}
static void receives_b_tries_a(void)
{
    receives_and_tries_to_send(b, a, 1);
}

static void one_saw_the_other(void)
{
    CHECK(done[0] || done[1]);
    pirn_chanv_release(a);
    pirn_chanv_release(b);
}

CHAN(send_and_try_recv, setup_cross, one_saw_the_other, sends_a_tries_b, sends_b_tries_a)
CHAN(recv_and_try_send, setup_cross_full, one_saw_the_other, receives_a_tries_b, receives_b_tries_a)

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

/* Two references: the last frees it, after what the other has done, be it only a look. */
static void setup_two_references(void)
{
    unbuffered();
    pirn_chanv_retain(a);
}

static void tries_and_releases(void)
{
    int v;
    CHECK(pirn_chanv_try_recv(a, &v) == 0);
    pirn_chanv_release(a);
}

static void releases(void)
{
    pirn_chanv_release(a);
}

static void releases_b(void)
{
    pirn_chanv_release(b);
}

CHAN(two_releases, setup_two_references, releases_b, tries_and_releases, releases)
