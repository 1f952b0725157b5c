/* SPDX-License-Identifier: MIT */
/*
 * Is the outcome of a program allowed? A search over all orders of its steps, depth first, that gives
 * up where an operation would return something else than it did.
 *
 * A step is one operation, or its beginning, if it must wait: then it is queued, and the step of its
 * partner ends it too. A select leaves all its queues at once. A mutex is taken by anybody who finds
 * it free: it promises no order. The late goroutines start when all others have ended or are stuck.
 */
#ifndef TESTS_STRESS_REFERENCE_H
#define TESTS_STRESS_REFERENCE_H

#include <string.h>

#include "harness.h"
#include "stress/program.h"

struct queue {
    uint8_t n, who[MOST_GS * MOST_CASES]; /* goroutine and case */
};

struct ref_chan {
    uint8_t closed, n, buf[MOST_CAP];
    struct queue receivers, senders;
};

struct state {           /* bytes only, and zeros where nothing is, so that two can be compared */
    uint8_t at[MOST_GS]; /* its next operation */
    uint8_t waits[MOST_GS]; /* in queues */
    uint8_t holder;         /* of the mutex, plus one */
    uint8_t counter, dones;
    uint8_t late; /* the late ones run */
    struct ref_chan chan[MOST_CHANS];
};

#define MOST_STATES (1u << 16)

struct search {
    const struct program *p;
    const struct outcome *o;
    uint32_t nseen; /* states that led to nothing */
};

static struct state seen[MOST_STATES];
static uint32_t table[2 * MOST_STATES]; /* of them, plus one */

static bool seen_before(struct search *x, const struct state *s)
{
    const unsigned char *bytes = (const unsigned char *)s;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof *s; i++) {
        h = (h ^ bytes[i]) * 1099511628211u;
    }
    for (uint32_t i = (uint32_t)(h >> 32);; i++) {
        uint32_t *slot = &table[i % ARRAY_LEN(table)];
        if (!*slot) {
            CHECK_LT(x->nseen, MOST_STATES); /* else programs are too big for this test */
            seen[x->nseen] = *s;
            *slot = ++x->nseen;
            return false;
        }
        if (!memcmp(&seen[*slot - 1], s, sizeof *s)) {
            return true;
        }
    }
}

static void leave_queue(struct queue *q, int g)
{
    uint8_t n = 0;
    for (int i = 0; i < q->n; i++) {
        if (q->who[i] / MOST_CASES != g) {
            q->who[n++] = q->who[i];
        }
    }
    memset(q->who + n, 0, sizeof q->who - n);
    q->n = n;
}

static const struct op *op_of(const struct search *x, const struct state *s, int g)
{
    return s->at[g] < x->p->ops[g] ? &x->p->op[g][s->at[g]] : NULL;
}

/* The operation of g has this result. Is that what happened? */
static bool ends(struct search *x, struct state *s, int g, int result)
{
    int i = s->at[g];
    if (i >= x->o->ended[g] || x->o->result[g][i] != result) {
        return false;
    }
    if (s->waits[g]) {
        for (int c = 0; c < x->p->chans; c++) {
            leave_queue(&s->chan[c].receivers, g);
            leave_queue(&s->chan[c].senders, g);
        }
    }
    s->waits[g] = 0;
    s->at[g]++;
    return true;
}

static int result_of(const struct op *op, int i, int what)
{
    return op->kind == SELECT ? CHOSE(i, what) : what;
}

/* One that waits is served. */
static bool serve(struct search *x, struct state *s, uint8_t who, int what)
{
    int g = who / MOST_CASES;
    return ends(x, s, g, result_of(op_of(x, s, g), who % MOST_CASES, what));
}

static bool is_ready(const struct search *x, const struct state *s, const struct half *h)
{
    if (h->chan == NO_CHAN) {
        return false;
    }
    const struct ref_chan *c = &s->chan[h->chan];
    if (h->sends) {
        return c->closed || c->receivers.n || c->n < x->p->cap[h->chan];
    }
    return c->closed || c->senders.n || c->n;
}

static uint8_t value_of_waiter(const struct search *x, const struct state *s, uint8_t who)
{
    return op_of(x, s, who / MOST_CASES)->half[who % MOST_CASES].value;
}

/* Case i of g's operation, which is ready, is carried out. */
static bool carry_out(struct search *x, struct state *s, int g, int i)
{
    const struct op *op = op_of(x, s, g);
    const struct half *h = &op->half[i];
    struct ref_chan *c = &s->chan[h->chan];
    int got = NOTHING;
    if (h->sends) {
        CHECK(!c->closed);
        if (c->receivers.n) {
            if (!serve(x, s, c->receivers.who[0], h->value)) {
                return false;
            }
        } else {
            c->buf[c->n++] = h->value;
        }
    } else if (c->n) {
        got = c->buf[0];
        memmove(c->buf, c->buf + 1, MOST_CAP - 1);
        c->buf[--c->n] = 0;
        if (c->senders.n) {
            c->buf[c->n++] = value_of_waiter(x, s, c->senders.who[0]);
            if (!serve(x, s, c->senders.who[0], NOTHING)) {
                return false;
            }
        }
    } else if (c->senders.n) {
        got = value_of_waiter(x, s, c->senders.who[0]);
        if (!serve(x, s, c->senders.who[0], NOTHING)) {
            return false;
        }
    } else {
        got = CLOSED;
    }
    return ends(x, s, g, result_of(op, i, got));
}

static bool close_chan(struct search *x, struct state *s, int g, int c)
{
    struct ref_chan *ch = &s->chan[c];
    CHECK(!ch->closed && !ch->senders.n);
    ch->closed = 1;
    while (ch->receivers.n) {
        if (!serve(x, s, ch->receivers.who[0], CLOSED)) {
            return false;
        }
    }
    return ends(x, s, g, NOTHING);
}

static bool enqueue(struct state *s, const struct op *op, int g)
{
    s->waits[g] = 1;
    for (int i = 0; i < op->n; i++) {
        const struct half *h = &op->half[i];
        if (h->chan != NO_CHAN) {
            struct ref_chan *c = &s->chan[h->chan];
            struct queue *q = h->sends ? &c->senders : &c->receivers;
            q->who[q->n++] = (uint8_t)(g * MOST_CASES + i);
        }
    }
    return true;
}

static bool search(struct search *x, const struct state *s);

/* Channel operations: any case that is ready, or the default, or it waits. */
static bool step_on_channels(struct search *x, const struct state *s, int g, struct op op)
{
    bool ready = false;
    for (int i = 0; i < op.n; i++) {
        struct state next = *s;
        if (is_ready(x, s, &op.half[i])) {
            ready = true;
            if (carry_out(x, &next, g, i) && search(x, &next)) {
                return true;
            }
        }
    }
    if (ready) {
        return false;
    }
    struct state next = *s;
    if (op.other) {
        int result = op.kind == SELECT ? CHOSE(op.n, NOTHING) : WOULD_BLOCK;
        return ends(x, &next, g, result) && search(x, &next);
    }
    return enqueue(&next, &op, g) && search(x, &next);
}

static bool step(struct search *x, const struct state *s, int g)
{
    struct state next = *s;
    struct op op = *op_of(x, s, g);
    bool could = true;
    switch (op.kind) {
    case TRY_SEND:
    case TRY_RECV: op.other = true; __attribute__((fallthrough));
    case SEND:
    case RECV: op.n = 1; __attribute__((fallthrough));
    case SELECT: return step_on_channels(x, s, g, op);
    case LEN: could = ends(x, &next, g, s->chan[op.half[0].chan].n); break;
    case CLOSE: could = close_chan(x, &next, g, op.half[0].chan); break;
    case LOCK:
    case TRY_LOCK:
        if (s->holder) {
            could = op.kind == TRY_LOCK && ends(x, &next, g, WOULD_BLOCK);
            break;
        }
        next.holder = (uint8_t)(g + 1);
        could = ends(x, &next, g, ++next.counter);
        break;
    case UNLOCK:
        next.holder = s->holder == g + 1 ? 0 : s->holder;
        could = ends(x, &next, g, NOTHING);
        break;
    case DONE:
        next.dones--;
        could = ends(x, &next, g, NOTHING);
        break;
    case WAIT: could = s->dones == 0 && ends(x, &next, g, NOTHING); break;
    }
    return could && search(x, &next);
}

static bool is_stuck(const struct search *x, const struct state *s, int g)
{
    const struct op *op = op_of(x, s, g);
    return !op || s->waits[g] || (op->kind == LOCK && s->holder) || (op->kind == WAIT && s->dones);
}

/* Is this the end that was seen? */
static bool is_outcome(const struct search *x, const struct state *s)
{
    for (int g = 0; g < x->p->gs; g++) {
        if (s->at[g] != x->o->ended[g] || !is_stuck(x, s, g)) {
            return false;
        }
    }
    for (int c = 0; c < x->p->chans; c++) {
        if (s->chan[c].n != x->o->nleft[c] || memcmp(s->chan[c].buf, x->o->left[c], MOST_CAP)) {
            return false;
        }
    }
    return true;
}

static bool search(struct search *x, const struct state *s)
{
    if (is_outcome(x, s)) {
        return true;
    }
    if (seen_before(x, s)) {
        return false;
    }
    int stuck = 0;
    for (int g = 0; g < (s->late ? x->p->gs : x->p->early); g++) {
        if (op_of(x, s, g) && !s->waits[g] && step(x, s, g)) {
            return true;
        }
        stuck += is_stuck(x, s, g);
    }
    if (s->late || stuck < x->p->early) {
        return false;
    }
    struct state next = *s;
    next.late = 1;
    return search(x, &next);
}

static bool is_allowed(struct search *x)
{
    struct state s = {.dones = x->p->dones};
    memset(table, 0, sizeof table);
    return search(x, &s);
}

#endif
