/* SPDX-License-Identifier: MIT */
/*
 * The same operation said in every way: plain, trying, in selects of one and more cases, with and
 * without a default, for elements of several sizes (conformance 10, 14, 16, 17, 19, 20, 26, 29 to 31,
 * 35). What must panic is in chan_misuse.c.
 *
 * Order of evaluation: C leaves the order of initialisers open, so only "each once" is asked for.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        pirn_yield();
}

/* --- ways to send and to receive ------------------------------------------------------------------------ */

static pirn_chan(int) none; /* NULL */

enum {
    SEND,
    SEND_TRY,
    SEND_SELECT,
    SEND_SELECT_DEFAULT,
    SEND_SELECT_NULL,
    SEND_SELECT_OTHER,
    SEND_SELECT_TWICE,
    SEND_SELECTV,
    SENDS
};

static void send_as(int way, pirn_chan(int) c, pirn_chan(int) never, int v)
{
    int i = 0, want = 0;
    switch (way) {
    case SEND: pirn_chan_send(c, v); break;
    case SEND_TRY:
        while (!pirn_chan_try_send(c, v))
            pirn_yield();
        break;
    case SEND_SELECT: i = pirn_select(PIRN_SEND(c, v)); break;
    case SEND_SELECT_DEFAULT:
        while ((i = pirn_select(PIRN_SEND(c, v), PIRN_DEFAULT)) == 1)
            pirn_yield();
        break;
    case SEND_SELECT_NULL: want = 1, i = pirn_select(PIRN_SEND(none, -1), PIRN_SEND(c, v)); break;
    case SEND_SELECT_OTHER:
        want = 1;
        i = pirn_select(PIRN_RECV(never, NULL), PIRN_SEND(c, v), PIRN_RECV(never, NULL));
        break;
    case SEND_SELECT_TWICE: i = pirn_select(PIRN_SEND(c, v), PIRN_SEND(c, v)) * 0; break;
    case SEND_SELECTV: {
        pirn_case *k = calloc(5, sizeof *k);
        want = 3;
        k[3] = (pirn_case)PIRN_SEND(c, v);
        i = pirn_selectv(k, 5);
        free(k);
        break;
    }
    }
    CHECK_EQ(i, want);
}

enum {
    RECV,
    RECV_GET,
    RECV_NULL,
    RECV_TRY,
    RECV_TRY_NULL,
    RECV_SELECT,
    RECV_SELECT_OK,
    RECV_SELECT_NULL,
    RECV_SELECT_DEFAULT,
    RECV_SELECT_OTHER,
    RECV_SELECT_OTHER_NULL,
    RECV_SELECT_DEFAULT_OTHER,
    RECV_SELECT_TWICE,
    RECV_SELECTV,
    RECVS
};

static bool keeps_value(int way)
{
    return way != RECV_NULL && way != RECV_TRY_NULL && way != RECV_SELECT_NULL
           && way != RECV_SELECT_OTHER_NULL;
}

static bool keeps_ok(int way)
{
    return way != RECV_GET && way != RECV_SELECT_NULL && way != RECV_SELECT;
}

/* What is not kept is as it was. */
static void recv_as(int way, pirn_chan(int) c, pirn_chan(int) never, int *v, bool *ok)
{
    int i = 0, want = 0, got;
    switch (way) {
    case RECV: *ok = pirn_chan_recv(c, v); break;
    case RECV_GET: *v = pirn_chan_get(c); break;
    case RECV_NULL: *ok = pirn_chan_recv(c, NULL); break;
    case RECV_TRY:
    case RECV_TRY_NULL:
        while (!(got = way == RECV_TRY ? pirn_chan_try_recv(c, v) : pirn_chan_try_recv(c, NULL)))
            pirn_yield();
        *ok = got > 0;
        break;
    case RECV_SELECT: i = pirn_select(PIRN_RECV(c, v)); break;
    case RECV_SELECT_OK: i = pirn_select(PIRN_RECV_OK(c, v, ok)); break;
    case RECV_SELECT_NULL: i = pirn_select(PIRN_RECV(c, NULL)); break;
    case RECV_SELECT_DEFAULT:
        while ((i = pirn_select(PIRN_RECV_OK(c, v, ok), PIRN_DEFAULT)) == 1)
            pirn_yield();
        break;
    case RECV_SELECT_OTHER:
        want = 2;
        i = pirn_select(PIRN_RECV(never, NULL), PIRN_SEND(none, 3), PIRN_RECV_OK(c, v, ok));
        break;
    case RECV_SELECT_OTHER_NULL:
        i = pirn_select(PIRN_RECV_OK(c, NULL, ok), PIRN_RECV(never, NULL));
        break;
    case RECV_SELECT_DEFAULT_OTHER:
        want = 1;
        while ((i = pirn_select(PIRN_DEFAULT, PIRN_RECV_OK(c, v, ok), PIRN_RECV(never, v))) == 0)
            pirn_yield();
        break;
    case RECV_SELECT_TWICE:
        pirn_select(PIRN_RECV_OK(c, v, ok), PIRN_RECV_OK(c, v, ok), PIRN_RECV_OK(c, v, ok));
        break;
    case RECV_SELECTV: {
        pirn_case *k = calloc(5, sizeof *k);
        want = 3;
        k[3] = (pirn_case)PIRN_RECV_OK(c, v, ok);
        i = pirn_selectv(k, 5);
        free(k);
        break;
    }
    }
    CHECK_EQ(i, want);
}

static void send_some(int way, pirn_chan(int) c, pirn_chan(int) never, int n)
{
    for (int i = 1; i <= n; i++)
        send_as(way, c, never, i);
}

static void pass_values(int to, int from, int cap)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, cap), never = pirn_chan_make(int, 0);
    pirn_wg_go(&wg, send_some, to, c, never, 5);
    for (int i = 1; i <= 5; i++) {
        int v = -1;
        bool ok = false;
        recv_as(from, c, never, &v, &ok);
        CHECK_EQ(v, keeps_value(from) ? i : -1);
        CHECK_EQ(ok, keeps_ok(from));
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_chan_len(c), 0);
    pirn_chan_release(c);
    pirn_chan_release(never);
}

static bool only_tries(int to, int from)
{
    return (to == SEND_TRY || to == SEND_SELECT_DEFAULT)
           && (from == RECV_TRY || from == RECV_TRY_NULL || from == RECV_SELECT_DEFAULT
               || from == RECV_SELECT_DEFAULT_OTHER);
}

/* Two that only try never meet without a buffer. */
TEST_RUN_ATTR(every_way, PROCS)
{
    for (int to = 0; to < SENDS; to++)
        for (int from = 0; from < RECVS; from++)
            for (int cap = only_tries(to, from); cap < 3; cap++)
                pass_values(to, from, cap);
}

/* --- closed ---------------------------------------------------------------------------------------------- */

static void recv_closed(int way, pirn_chan(int) c, pirn_chan(int) never)
{
    int v = 7;
    bool ok = true;
    recv_as(way, c, never, &v, &ok);
    CHECK_EQ(v, keeps_value(way) ? 0 : 7);
    CHECK_EQ(ok, !keeps_ok(way));
}

/* What is buffered comes first; then zeros, for ever. */
TEST_RUN_ATTR(closed, PROCS)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    for (int way = 0; way < RECVS; way++) {
        for (int cap = 0; cap < 3; cap++) {
            pirn_chan(int) c = pirn_chan_make(int, cap);
            for (int i = 0; i < cap; i++)
                pirn_chan_send(c, 10 + i);
            pirn_chan_close(c);
            CHECK_EQ(pirn_chan_len(c), cap);
            for (int i = 0; i < cap; i++) {
                int v = -1;
                bool ok = false;
                recv_as(way, c, never, &v, &ok);
                CHECK_EQ(v, keeps_value(way) ? 10 + i : -1);
                CHECK_EQ(ok, keeps_ok(way));
            }
            for (int i = 0; i < 3; i++)
                recv_closed(way, c, never);
            CHECK_EQ(pirn_chan_cap(c), cap);
            pirn_chan_release(c);
        }
    }
    pirn_chan_release(never);
}

/* The same for those that wait when it is closed. */
TEST_RUN_ATTR(closed_meanwhile, PROCS)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    for (int cap = 0; cap < 2; cap++) {
        pirn_wg wg = {0};
        pirn_chan(int) c = pirn_chan_make(int, cap);
        for (int way = 0; way < RECVS; way++) {
            pirn_wg_go(&wg, recv_closed, way, c, never);
            pirn_wg_go(&wg, recv_closed, way, c, never);
        }
        settle();
        pirn_chan_close(c);
        pirn_wg_wait(&wg);
        pirn_chan_release(c);
    }
    pirn_chan_release(never);
}

/* --- not blocking, for elements of several sizes ------------------------------------------------------------ */

typedef const char *string;
struct six {
    short a;
    char b[4];
};
struct large {
    long a[40];
};

#define NONBLOCK(name, T, ...)                                                                     \
    static const T name##_value = __VA_ARGS__;                                                     \
                                                                                                   \
    static bool name##_is(const T *v)                                                              \
    {                                                                                              \
        return !memcmp(v, &name##_value, sizeof *v);                                               \
    }                                                                                              \
                                                                                                   \
    static void name##_sends(pirn_chan(T) c)                                                       \
    {                                                                                              \
        pirn_chan_send(c, name##_value);                                                           \
    }                                                                                              \
                                                                                                   \
    static void name##_receives(pirn_chan(T) c)                                                    \
    {                                                                                              \
        T v;                                                                                       \
        CHECK(pirn_chan_recv(c, &v) && name##_is(&v));                                             \
    }                                                                                              \
                                                                                                   \
    /* Nobody waits; then a sender, then a receiver. */                                            \
    static void name##_unbuffered(void)                                                            \
    {                                                                                              \
        T v, was;                                                                                  \
        pirn_wg wg = {0};                                                                          \
        pirn_chan(T) c = pirn_chan_make(T, 0);                                                     \
        memset(&v, 0x5a, sizeof v);                                                                \
        memset(&was, 0x5a, sizeof was);                                                            \
        CHECK_EQ(pirn_chan_try_recv(c, &v), 0);                                                    \
        CHECK_EQ(pirn_select(PIRN_RECV(c, &v), PIRN_DEFAULT), 1);                                  \
        CHECK_EQ(pirn_chan_try_send(c, name##_value), 0);                                          \
        CHECK_EQ(pirn_select(PIRN_SEND(c, name##_value), PIRN_DEFAULT), 1);                        \
        CHECK(!memcmp(&v, &was, sizeof v));                                                        \
        pirn_wg_go(&wg, name##_sends, c);                                                          \
        while (!pirn_chan_try_recv(c, &v))                                                         \
            pirn_yield();                                                                          \
        CHECK(name##_is(&v));                                                                      \
        pirn_wg_wait(&wg);                                                                         \
        CHECK_EQ(pirn_chan_try_recv(c, &v), 0);                                                    \
        pirn_wg_go(&wg, name##_receives, c);                                                       \
        while (!pirn_chan_try_send(c, name##_value))                                               \
            pirn_yield();                                                                          \
        pirn_wg_wait(&wg);                                                                         \
        CHECK_EQ(pirn_chan_try_send(c, name##_value), 0);                                          \
        pirn_chan_release(c);                                                                      \
    }                                                                                              \
                                                                                                   \
    static void name##_buffered(int cap)                                                           \
    {                                                                                              \
        T v;                                                                                       \
        pirn_wg wg = {0};                                                                          \
        pirn_chan(T) c = pirn_chan_make(T, cap);                                                   \
        CHECK_EQ(pirn_chan_try_recv(c, &v), 0);                                                    \
        for (int i = 0; i < cap; i++)                                                              \
            CHECK_EQ(pirn_chan_try_send(c, name##_value), 1);                                      \
        CHECK_EQ(pirn_chan_try_send(c, name##_value), 0);                                          \
        pirn_wg_go(&wg, name##_sends, c); /* may have to wait */                                   \
        for (int i = 0; i <= cap; i++) {                                                           \
            memset(&v, 0x5a, sizeof v);                                                            \
            while (!pirn_chan_try_recv(c, &v))                                                     \
                pirn_yield();                                                                      \
            CHECK(name##_is(&v));                                                                  \
        }                                                                                          \
        pirn_wg_wait(&wg);                                                                         \
        CHECK_EQ(pirn_chan_try_recv(c, &v), 0);                                                    \
        pirn_wg_go(&wg, name##_receives, c);                                                       \
        CHECK_EQ(pirn_chan_try_send(c, name##_value), 1);                                          \
        pirn_wg_wait(&wg);                                                                         \
        pirn_chan_release(c);                                                                      \
    }                                                                                              \
                                                                                                   \
    TEST_RUN_ATTR(nonblock_##name, PROCS)                                                          \
    {                                                                                              \
        for (int i = 0; i < 20; i++) {                                                             \
            name##_unbuffered();                                                                   \
            name##_buffered(1 + i % 4);                                                            \
        }                                                                                          \
    }

NONBLOCK(int32, int32_t, 0x12345678)
NONBLOCK(int64, int64_t, 0x123456789abcdef)
NONBLOCK(bool, bool, true)
NONBLOCK(string, string, "hello")
NONBLOCK(six, struct six, {5, "abc"})
NONBLOCK(large, struct large, {{1, 2, 3, [39] = 40}})

/* --- details ------------------------------------------------------------------------------------------------- */

static void takes_it(pirn_chan(int) c, atomic_int *taken)
{
    settle();
    atomic_store(taken, 1);
    pirn_chan_get(c);
}

/* A send does not return before the value is taken. */
TEST_RUN_ATTR(send_waits_for_the_receiver, PROCS)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    for (int i = 0; i < 50; i++) {
        pirn_wg wg = {0};
        atomic_int taken = 0;
        pirn_wg_go(&wg, takes_it, c, &taken);
        send_as(i % SENDS, c, none, 1);
        CHECK_EQ(atomic_load(&taken), 1);
        pirn_wg_wait(&wg);
    }
    pirn_chan_release(c);
}

TEST_RUN_ATTR(capacity_of_one, PROCS)
{
    int v = 3;
    pirn_chan(int) c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_chan_try_recv(c, &v), 0);
    CHECK_EQ(v, 3);
    pirn_chan_send(c, 42);
    CHECK_EQ(pirn_chan_try_send(c, 43), 0);
    CHECK(pirn_chan_recv(c, &v) && v == 42);
    CHECK_EQ(pirn_chan_try_recv(c, &v), 0);
    pirn_chan_send(c, 44);
    pirn_chan_close(c);
    CHECK(pirn_chan_recv(c, &v) && v == 44);
    CHECK(!pirn_chan_recv(c, &v) && v == 0);
    pirn_chan_release(c);
}

struct linked {
    struct linked *next;
    char *text;
    int n;
};

static void send_linked(pirn_chan(struct linked) c, int n)
{
    struct linked *last = NULL;
    for (int i = 0; i < n; i++) {
        struct linked *l = malloc(sizeof *l);
        *l = (struct linked){.next = last, .text = malloc(8), .n = i};
        l->text[0] = (char)('a' + i);
        pirn_chan_send(c, *l);
        last = l;
    }
    pirn_chan_close(c);
    for (struct linked *next; last; last = next) {
        next = last->next;
        free(last);
    }
}

/* Structs with pointers, read until the channel is closed; only these copies own the texts. */
TEST_RUN_ATTR(structs_with_pointers, PROCS)
{
    for (int cap = 0; cap < 12; cap++) {
        pirn_chan(struct linked) c = pirn_chan_make(struct linked, cap);
        struct linked l;
        int n = 0;
        pirn_go(send_linked, c, 10);
        for (; pirn_chan_recv(c, &l); n++) {
            CHECK_EQ(l.n, n);
            CHECK_EQ(l.text[0], 'a' + n);
            CHECK_EQ(l.next != NULL, n > 0);
            free(l.text);
        }
        CHECK_EQ(n, 10);
        CHECK(!l.next && !l.text && !l.n);
        pirn_chan_release(c);
    }
}

/* The value is in the variable of its case, ten times in a row. */
TEST_RUN_ATTR(value_of_its_case, PROCS)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0), d = pirn_chan_make(int, 0);
    pirn_wg_go(&wg, send_some, SEND, c, none, 10);
    for (int i = 1; i <= 10; i++) {
        int x = 0, y = 0, z = 0;
        CHECK_EQ(pirn_select(PIRN_RECV(d, &y), PIRN_RECV(c, &x), PIRN_RECV(none, &z)), 1);
        CHECK(x == i && y == 0 && z == 0);
    }
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
    pirn_chan_release(d);
}

static int evaluated[4];

static pirn_chan(int) chan_of(pirn_chan(int) c, int i)
{
    evaluated[i]++;
    return c;
}

static int value_of(int v, int i)
{
    evaluated[i]++;
    return v;
}

/* Each expression is evaluated once, also of cases that are not chosen, and when it has to wait. */
TEST_RUN_ATTR(cases_are_evaluated_once, PROCS)
{
    for (int i = 0; i < 20; i++) {
        int v = 0;
        pirn_wg wg = {0};
        pirn_chan(int) c = pirn_chan_make(int, i % 2), d = pirn_chan_make(int, 0);
        memset(evaluated, 0, sizeof evaluated);
        pirn_wg_go(&wg, send_some, SEND, c, none, 1);
        if (i % 4 > 1)
            settle();
        CHECK_EQ(pirn_select(PIRN_SEND(chan_of(d, 0), value_of(8, 1)),
                             PIRN_RECV(chan_of(c, 2), (value_of(0, 3), &v))),
                 1);
        CHECK_EQ(v, 1);
        for (int k = 0; k < 4; k++)
            CHECK_EQ(evaluated[k], 1);
        pirn_wg_wait(&wg);
        pirn_chan_release(c);
        pirn_chan_release(d);
    }
}

/* Leaving the body of a case early. */
static int leaves_early(int how, pirn_chan(int) a, pirn_chan(int) b)
{
    int turns = 0, v;
    for (;; turns++) {
        switch (how % 4 == 0   ? pirn_select(PIRN_DEFAULT)
                : how % 4 == 1 ? pirn_select(PIRN_RECV(a, &v))
                : how % 4 == 2 ? pirn_select(PIRN_RECV(a, &v), PIRN_RECV(b, &v))
                               : pirn_select(PIRN_RECV(a, &v), PIRN_RECV(b, &v), PIRN_DEFAULT)) {
        case 0:
            if (turns < 3)
                continue;
            if (how < 4)
                return turns;
            goto out;
        default:
            if (turns < 3)
                break;
            return turns;
        }
    }
out:
    return turns;
}

TEST_RUN_ATTR(bodies_left_early, PROCS)
{
    pirn_chan(int) a = pirn_chan_make(int, 0), b = pirn_chan_make(int, 0);
    pirn_chan_close(a);
    pirn_chan_close(b);
    for (int how = 0; how < 8; how++)
        CHECK_EQ(leaves_early(how, a, b), 3);
    pirn_chan_release(a);
    pirn_chan_release(b);
}
