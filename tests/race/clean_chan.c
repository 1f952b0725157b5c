/* SPDX-License-Identifier: MIT */
/* What channels and select order. */
#include <stdlib.h>
#include <string.h>

#include "clean.h"

#define N 200

/* --- values, and what they point to ------------------------------------------------------------- */

static void send_boxes(pirn_chan(struct box *) c)
{
    for (long i = 0; i < N; i++) {
        struct box *b = malloc(sizeof *b);
        b->v = i;
        pirn_chan_send(c, b);
    }
    pirn_chan_close(c);
}

static void receive_boxes(int cap)
{
    pirn_chan(struct box *) c = pirn_chan_make(struct box *, cap);
    pirn_go(send_boxes, c);
    struct box *b;
    long n = 0;
    while (pirn_chan_recv(c, &b)) {
        CHECK_EQ(b->v, n++);
        free(b);
    }
    CHECK_EQ(n, N);
    pirn_chan_release(c);
}

CLEAN(pointers)
{
    receive_boxes(0);
    receive_boxes(1);
    receive_boxes(3);
}

/* Many of both, so that everybody waits now and then. */
static void produce(pirn_chan(struct box *) c)
{
    for (int i = 0; i < N; i++) {
        struct box *b = malloc(sizeof *b);
        b->v = 1;
        pirn_chan_send(c, b);
    }
}

static void consume(pirn_chan(struct box *) c)
{
    struct box *b;
    while (pirn_chan_recv(c, &b)) {
        b->v++;
        free(b);
    }
}

static void crowd(int cap)
{
    pirn_wg producers = {0}, consumers = {0};
    pirn_chan(struct box *) c = pirn_chan_make(struct box *, cap);
    for (int i = 0; i < 3; i++) {
        pirn_wg_go(&consumers, consume, c);
        pirn_wg_go(&producers, produce, c);
    }
    pirn_wg_wait(&producers);
    pirn_chan_close(c);
    pirn_wg_wait(&consumers);
    pirn_chan_release(c);
}

CLEAN(crowds)
{
    crowd(0);
    crowd(1);
    crowd(3);
}

struct large {
    long v[512];
};

static void send_large(pirn_chan(struct large) c)
{
    struct large x;
    for (long i = 0; i < 50; i++) {
        memset(&x, (int)i, sizeof x);
        pirn_chan_send(c, x);
        memset(&x, 0xff, sizeof x); /* it was copied */
    }
    pirn_chan_close(c);
}

CLEAN(large_values)
{
    for (int cap = 0; cap < 4; cap++) {
        pirn_chan(struct large) c = pirn_chan_make(struct large, cap);
        pirn_go(send_large, c);
        struct large x;
        for (int i = 0; pirn_chan_recv(c, &x); i++) {
            for (int k = 0; k < 512; k++) {
                CHECK_EQ(x.v[k] & 0xff, i & 0xff);
            }
        }
        pirn_chan_release(c);
    }
}

/* --- one cell, and a channel that passes it back and forth ------------------------------------------ */

static void other_side(pirn_chan(int) there, pirn_chan(int) back, struct box *b)
{
    while (pirn_chan_recv(there, NULL)) {
        b->v++;
        pirn_chan_send(back, 1);
    }
}

CLEAN(ping_pong)
{
    for (int cap = 0; cap < 2; cap++) {
        pirn_chan(int) there = pirn_chan_make(int, cap), back = pirn_chan_make(int, cap);
        struct box b = {0};
        pirn_go(other_side, there, back, &b);
        for (int i = 0; i < N; i++) {
            b.v++;
            pirn_chan_send(there, 1);
            CHECK(pirn_chan_recv(back, NULL));
        }
        CHECK_EQ(b.v, 2 * N);
        pirn_chan_close(there);
    }
}

/* Unbuffered: the receive comes before the end of the send. */
static void receive_one(pirn_chan(int) c, struct box *b)
{
    b->v = 1;
    (void)pirn_chan_get(c);
}

CLEAN(receive_before_send_ends)
{
    for (int i = 0; i < 40; i++) {
        pirn_chan(int) c = pirn_chan_make(int, 0);
        struct box b = {0};
        pirn_go(receive_one, c, &b);
        pirn_chan_send(c, 1);
        CHECK_EQ(b.v, 1);
        pirn_chan_release(c);
    }
}

/* The k-th receive comes before the end of the (k + C)-th send: a channel as a semaphore. */
static void with_token(pirn_chan(bool) c, struct box *b)
{
    for (int i = 0; i < N; i++) {
        pirn_chan_send(c, true);
        b->v++;
        (void)pirn_chan_get(c);
    }
}

CLEAN(channel_as_mutex)
{
    pirn_chan(bool) c = pirn_chan_make(bool, 1);
    pirn_wg wg = {0};
    struct box b = {0};
    for (int i = 0; i < 4; i++) {
        pirn_wg_go(&wg, with_token, c, &b);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(b.v, 4 * N);
    pirn_chan_release(c);
}

static void fill_ring(pirn_chan(int) c, struct box *ring)
{
    for (int i = 0; i < N; i++) {
        ring[i % 5].v =
            i; /* send i - 1 has ended: receive i - 4 has come, and i - 5 was looked at */
        pirn_chan_send(c, i);
    }
}

CLEAN(receive_k_before_send_k_and_cap)
{
    pirn_chan(int) c = pirn_chan_make(int, 3);
    struct box ring[5] = {0};
    pirn_wg wg = {0};
    pirn_wg_go(&wg, fill_ring, c, ring);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(pirn_chan_get(c), i);
        CHECK_EQ(ring[i % 5].v, i);
        ring[i % 5].v = -1;
        if (i % 8 == 0) {
            pirn_yield();
        }
    }
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
}

/* --- close ---------------------------------------------------------------------------------------------- */

static void wait_for_close(pirn_chan(int) c, struct box *b, int how)
{
    int v;
    if (how == 0) {
        CHECK(!pirn_chan_recv(c, &v));
    } else if (how == 1) {
        while (pirn_chan_try_recv(c, &v) != -1) {
            pirn_yield();
        }
    } else if (how == 2) {
        CHECK_EQ(pirn_chan_recv_until(c, &v, pirn_deadline(60 * PIRN_SEC)), -EPIPE);
    } else {
        CHECK_EQ(pirn_select(PIRN_RECV(c, &v)), 0);
    }
    CHECK_EQ(b->v, 7);
}

CLEAN(close)
{
    for (int cap = 0; cap < 2; cap++) {
        pirn_chan(int) c = pirn_chan_make(int, cap);
        struct box b = {0};
        pirn_wg wg = {0};
        for (int i = 0; i < 8; i++) {
            pirn_wg_go(&wg, wait_for_close, c, &b, i % 4);
        }
        pirn_yield();
        b.v = 7;
        pirn_chan_close(c);
        pirn_wg_go(&wg, wait_for_close, c, &b, 0);
        pirn_wg_wait(&wg);
        pirn_chan_release(c);
    }
}

/* --- select and try ------------------------------------------------------------------------------------- */

static void select_send(pirn_chan(struct box *) a, pirn_chan(struct box *) b, bool blocks)
{
    for (int i = 0; i < N;) {
        struct box *x = malloc(sizeof *x);
        x->v = 5;
        int k = blocks ? pirn_select(PIRN_SEND(a, x), PIRN_SEND(b, x))
                       : pirn_select(PIRN_SEND(a, x), PIRN_SEND(b, x), PIRN_DEFAULT);
        if (k == 2) {
            free(x);
            pirn_yield();
        } else {
            i++;
        }
    }
}

static void select_recv(pirn_chan(struct box *) a, pirn_chan(struct box *) b, bool blocks)
{
    for (int i = 0; i < N;) {
        struct box *x = NULL, *y = NULL;
        int k = blocks ? pirn_select(PIRN_RECV(a, &x), PIRN_RECV(b, &y), PIRN_AFTER(60 * PIRN_SEC))
                       : pirn_select(PIRN_RECV(a, &x), PIRN_RECV(b, &y), PIRN_DEFAULT);
        if (k == 2) {
            pirn_yield();
        } else {
            x = k ? y : x;
            CHECK_EQ(x->v, 5);
            free(x);
            i++;
        }
    }
}

CLEAN(selects)
{
    for (int cap = 0; cap < 3; cap++) {
        pirn_chan(struct box *) a = pirn_chan_make(struct box *, cap);
        pirn_chan(struct box *) b = pirn_chan_make(struct box *, 2 - cap);
        pirn_wg wg = {0};
        pirn_wg_go(&wg, select_send, a, b, true);
        pirn_wg_go(&wg, select_recv, a, b, true);
        pirn_wg_go(&wg, select_send, a, b, cap == 0);
        pirn_wg_go(&wg, select_recv, a, b, cap != 0);
        pirn_wg_wait(&wg);
        pirn_chan_release(a);
        pirn_chan_release(b);
    }
}

/* More cases than fit in the frame of the call. */
static void send_to_one(pirn_chan(struct box *) c, struct box *b)
{
    b->v = 9;
    pirn_chan_send(c, b);
}

CLEAN(select_of_many)
{
    enum { MANY = 12 };
    pirn_chanv *c[MANY];
    struct box boxes[MANY] = {0}, *got[MANY];
    pirn_case cases[MANY];
    for (int i = 0; i < MANY; i++) {
        c[i] = pirn_chanv_make(sizeof(void *), 0);
        pirn_go(send_to_one, (pirn_chan(struct box *))c[i], &boxes[i]);
    }
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < MANY; k++) {
            cases[k] = (pirn_case){.kind_ = PIRN_CASE_RECV_, .chan_ = c[k], .elem_ = &got[k]};
        }
        int k = pirn_selectv(cases, MANY);
        CHECK_EQ(got[k]->v, 9);
    }
    for (int i = 0; i < MANY; i++) {
        pirn_chanv_release(c[i]);
    }
}

static void try_send(pirn_chan(struct box *) c, pirn_wg *wg)
{
    for (int i = 0, tries = 0; i < N;) {
        struct box *b = malloc(sizeof *b);
        b->v = 3;
        int err = tries++ % 2 ? !pirn_chan_try_send(c, b)
                              : pirn_chan_send_until(c, b, pirn_deadline(100 * PIRN_US));
        if (err) {
            free(b);
            pirn_yield();
        } else {
            i++;
        }
    }
    pirn_wg_done(wg);
}

CLEAN(tries_and_timeouts)
{
    for (int cap = 0; cap < 2; cap++) {
        pirn_chan(struct box *) c = pirn_chan_make(struct box *, cap);
        pirn_wg wg = {0};
        pirn_wg_add(&wg, 2);
        pirn_go(try_send, c, &wg);
        pirn_go(try_send, c, &wg);
        for (int i = 0, tries = 0; i < 2 * N;) {
            struct box *b;
            if (tries++ % 3 ? pirn_chan_try_recv(c, &b) == 1
                            : pirn_chan_recv_until(c, &b, pirn_deadline(100 * PIRN_US)) == 0) {
                CHECK_EQ(b->v, 3);
                free(b);
                i++;
            } else {
                pirn_yield();
            }
        }
        pirn_wg_wait(&wg);
        pirn_chan_release(c);
    }
}
