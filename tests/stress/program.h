/* SPDX-License-Identifier: MIT */
/* Random programs for programs.c, which has the design: what they are, how they are made and shown. */
#ifndef TESTS_STRESS_PROGRAM_H
#define TESTS_STRESS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/rand.h"
#include "base/util.h"

#define MOST_GS 4
#define MOST_CHANS 3
#define MOST_OPS 9
#define MOST_CASES 3
#define MOST_CAP 2
#define MOST_ELEM 24

enum kind {
    SEND,
    RECV,
    TRY_SEND,
    TRY_RECV,
    LEN,
    CLOSE,
    SELECT,
    LOCK,
    TRY_LOCK,
    UNLOCK, /* if it is held */
    DONE,
    WAIT
};

#define NO_CHAN MOST_CHANS

struct half { /* one case, or the whole of a plain operation */
    bool sends;
    uint8_t chan; /* NO_CHAN: NULL */
    uint8_t value;
};

struct op {
    enum kind kind;
    uint8_t n;  /* cases */
    bool other; /* has a default */
    uint8_t pause;
    struct half half[MOST_CASES];
};

struct program {
    uint8_t gs, chans, dones;
    uint8_t early; /* goroutines; the others start when these have ended or are stuck */
    uint8_t cap[MOST_CHANS], elem[MOST_CHANS];
    uint8_t ops[MOST_GS];
    struct op op[MOST_GS][MOST_OPS];
};

/* What an operation returned: a value, 1 to 250, or one of these. */
enum { NOTHING = 0, CLOSED = 251, WOULD_BLOCK = 252 };
#define CHOSE(i, what) (256 * ((i) + 1) + (what))

struct outcome {
    uint8_t ended[MOST_GS]; /* operations that returned */
    int result[MOST_GS][MOST_OPS];
    uint8_t left[MOST_CHANS][MOST_CAP]; /* in the buffers */
    uint8_t nleft[MOST_CHANS];
};

/* --- making them ---------------------------------------------------------------------------------- */

struct maker {
    struct rand *r;
    struct program *p;
    int g;
    uint32_t patience; /* how often it waits */
    bool dones, said,
        holds; /* a wait group is used; this one has said done; it may hold the mutex */
    bool closed[MOST_CHANS];
    enum { OPEN, OWNED, GUARDED } mode[MOST_CHANS];
    int owner[MOST_CHANS];
    bool waited;
};

static bool chance(struct maker *m, uint32_t percent)
{
    return rand_below(m->r, 100) < percent;
}

static bool may_send(const struct maker *m, int c)
{
    if (m->mode[c] == OPEN) {
        return true;
    }
    if (m->owner[c] == m->g) {
        return !m->closed[c];
    }
    return m->mode[c] == GUARDED && !m->said;
}

static struct half make_half(struct maker *m, bool sends, int i)
{
    struct half h = {.sends = sends, .chan = (uint8_t)rand_below(m->r, m->p->chans)};
    if (sends && !may_send(m, h.chan)) {
        h.sends = false;
    }
    h.value = (uint8_t)(1 + (m->g * MOST_OPS + m->p->ops[m->g]) * MOST_CASES + i);
    return h;
}

static struct op make_select(struct maker *m)
{
    struct op op = {.kind = SELECT, .other = !chance(m, m->patience)};
    op.n = (uint8_t)(1 + rand_below(m->r, MOST_CASES));
    for (int i = 0; i < op.n; i++) {
        op.half[i] = make_half(m, chance(m, 50), i);
        if (chance(m, 5)) {
            op.half[i].chan = NO_CHAN;
        }
    }
    return op;
}

static struct op make_close(struct maker *m)
{
    for (int c = 0; c < m->p->chans; c++) {
        if (m->mode[c] != OPEN && m->owner[c] == m->g && !m->closed[c]
            && (m->mode[c] == OWNED || m->waited)) {
            m->closed[c] = true;
            return (struct op){.kind = CLOSE, .half = {{.chan = (uint8_t)c}}};
        }
    }
    return make_select(m);
}

static struct op make_plain(struct maker *m)
{
    struct op op = {.half = {make_half(m, chance(m, 50), 0)}};
    bool tries = !chance(m, m->patience);
    if (op.half[0].sends) {
        op.kind = tries ? TRY_SEND : SEND;
    } else {
        op.kind = tries ? TRY_RECV : RECV;
    }
    return op;
}

static struct op make_lock(struct maker *m)
{
    if (m->holds) {
        m->holds = false;
        return (struct op){.kind = UNLOCK};
    }
    m->holds = true;
    return (struct op){.kind = chance(m, 70) ? LOCK : TRY_LOCK};
}

static struct op make_group(struct maker *m)
{
    if (chance(m, 50) && !m->said) {
        m->said = true;
        m->p->dones++;
        return (struct op){.kind = DONE};
    }
    m->waited = true;
    return (struct op){.kind = WAIT};
}

static struct op make_op(struct maker *m)
{
    uint32_t x = rand_below(m->r, 100);
    if (x < 40) {
        return make_plain(m);
    }
    if (x < 65) {
        return make_select(m);
    }
    if (x < 75) {
        return make_close(m);
    }
    if (x < 80) {
        return (struct op){.kind = LEN, .half = {make_half(m, false, 0)}};
    }
    if (x < 92 || !m->dones) {
        return make_lock(m);
    }
    return make_group(m);
}

static void append(struct maker *m, struct op op)
{
    op.pause = (uint8_t)rand_below(m->r, 6);
    m->p->op[m->g][m->p->ops[m->g]++] = op;
}

static void make_goroutine(struct maker *m, int g)
{
    m->g = g;
    m->said = m->holds = m->waited = false;
    for (uint32_t n = 3 + rand_below(m->r, 5); n; n--) {
        append(m, make_op(m));
    }
    if (m->holds && chance(m, 95)) {
        append(m, make_lock(m));
    }
    if (m->dones && !m->said) { /* so that a guard guards */
        m->p->dones++;
        append(m, (struct op){.kind = DONE});
    }
}

static void make_program(struct program *p, struct rand *r)
{
    static const uint8_t sizes[] = {1, 4, 8, MOST_ELEM};
    struct maker m = {.r = r, .p = p};
    *p = (struct program){0};
    p->gs = (uint8_t)(2 + rand_below(r, MOST_GS - 1));
    p->chans = (uint8_t)(1 + rand_below(r, MOST_CHANS));
    p->early = chance(&m, 50) ? p->gs : (uint8_t)(1 + rand_below(r, p->gs - 1u));
    m.dones = chance(&m, 40);
    m.patience = 10 + rand_below(r, 80);
    for (int c = 0; c < p->chans; c++) {
        p->cap[c] = (uint8_t)rand_below(r, MOST_CAP + 1);
        p->elem[c] = sizes[rand_below(r, ARRAY_LEN(sizes))];
        m.mode[c] = chance(&m, 40) ? OPEN : m.dones && chance(&m, 50) ? GUARDED : OWNED;
        m.owner[c] = (int)rand_below(r, p->gs);
    }
    for (int g = 0; g < p->gs; g++) {
        make_goroutine(&m, g);
    }
}

/* --- showing them --------------------------------------------------------------------------------- */

static void show_half(const char *what, const struct half *h)
{
    printf("%s", what);
    if (h->chan == NO_CHAN) {
        printf("%s NULL", h->sends ? "send" : "recv");
    } else if (h->sends) {
        printf("send c%d %d", h->chan, h->value);
    } else {
        printf("recv c%d", h->chan);
    }
}

static void show_op(const struct op *op)
{
    switch (op->kind) {
    case SEND:
    case RECV: show_half("", &op->half[0]); break;
    case TRY_SEND:
    case TRY_RECV: show_half("try ", &op->half[0]); break;
    case LEN: printf("len c%d", op->half[0].chan); break;
    case CLOSE: printf("close c%d", op->half[0].chan); break;
    case SELECT:
        printf("select");
        for (int i = 0; i < op->n; i++) {
            show_half(i ? ", " : " ", &op->half[i]);
        }
        printf(op->other ? ", default" : "");
        break;
    case LOCK: printf("lock"); break;
    case TRY_LOCK: printf("try lock"); break;
    case UNLOCK: printf("unlock"); break;
    case DONE: printf("done"); break;
    case WAIT: printf("wait"); break;
    }
}

static void show_result(int result)
{
    if (result >= 256) {
        printf("case %d, ", result / 256 - 1);
    }
    switch (result % 256) {
    case CLOSED: printf("closed"); break;
    case WOULD_BLOCK: printf("would block"); break;
    default: printf("%d", result % 256);
    }
}

static void show(const struct program *p, const struct outcome *o)
{
    for (int c = 0; c < p->chans; c++) {
        printf("c%d: capacity %d, elements of %d; left:", c, p->cap[c], p->elem[c]);
        for (int i = 0; i < o->nleft[c]; i++) {
            printf(" %d", o->left[c][i]);
        }
        printf("\n");
    }
    for (int g = 0; g < p->gs; g++) {
        printf("goroutine %d%s\n", g, g < p->early ? "" : ", late");
        for (int i = 0; i < p->ops[g]; i++) {
            printf("    ");
            show_op(&p->op[g][i]);
            printf(" -> ");
            if (i < o->ended[g]) {
                show_result(o->result[g][i]);
            } else {
                printf(i == o->ended[g] ? "stuck" : "-");
            }
            printf("\n");
        }
    }
}

#endif
