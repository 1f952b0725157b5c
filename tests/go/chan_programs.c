/* SPDX-License-Identifier: MIT */
/*
 * Whole programs of goroutines and channels, as among Go's tests: primes by merged streams of
 * composites, power series by trees of goroutines (conformance 12, 13; the plain sieve is in chan.c).
 *
 * Each cleans up behind itself: who has read a stream to its end releases it, while the close at the
 * other end may still be under way; and in the end no goroutine is left.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

static void wait_until_alone(void)
{
    while (pirn_num_goroutines() > 1)
        pirn_yield();
}

/* --- primes -------------------------------------------------------------------------------------------- */

typedef pirn_chan(int) stream;

/* The odd multiples of p that follow its square. */
static void multiples(int p, int limit, stream out)
{
    for (int i = p * p + 2 * p; i <= limit; i += 2 * p)
        pirn_chan_send(out, i);
    pirn_chan_close(out);
}

struct head {
    stream from;
    bool more;
    int value;
};

static void advance(struct head *h)
{
    h->more = pirn_chan_recv(h->from, &h->value);
    if (!h->more)
        pirn_chan_release(h->from);
}

static void merge(stream a, stream b, stream out)
{
    struct head x = {.from = a}, y = {.from = b};
    advance(&x);
    advance(&y);
    while (x.more || y.more) {
        int least = !y.more || (x.more && x.value < y.value) ? x.value : y.value;
        pirn_chan_send(out, least);
        if (x.more && x.value == least)
            advance(&x);
        if (y.more && y.value == least)
            advance(&y);
    }
    pirn_chan_close(out);
}

/* Of all primes that come, each once, in order. */
static void composites(stream primes, int limit, int cap, stream out)
{
    int p;
    if (!pirn_chan_recv(primes, &p)) {
        pirn_chan_release(primes);
        pirn_chan_close(out);
        return;
    }
    pirn_chan_send(out, p * p);
    stream own = pirn_chan_make(int, cap), others = pirn_chan_make(int, cap);
    pirn_go(multiples, p, limit, own);
    pirn_go(composites, primes, limit, cap, others);
    merge(own, others, out);
}

static int root_of(int n)
{
    int i = 0;
    while ((i + 1) * (i + 1) <= n)
        i++;
    return i;
}

/* The odd ones. Those up to the root come from a stream of the same kind. */
static void odd_primes(int limit, int cap, stream out)
{
    struct head c = {.more = false};
    if (limit >= 9) {
        stream small = pirn_chan_make(int, cap);
        c.from = pirn_chan_make(int, cap);
        pirn_go(odd_primes, root_of(limit), cap, small);
        pirn_go(composites, small, limit, cap, c.from);
        advance(&c);
    }
    for (int i = 3; i <= limit; i += 2) {
        if (c.more && c.value == i)
            advance(&c);
        else
            pirn_chan_send(out, i);
    }
    while (c.more)
        advance(&c);
    pirn_chan_close(out);
}

static bool is_prime(int n)
{
    for (int i = 2; i * i <= n; i++)
        if (n % i == 0)
            return false;
    return true;
}

TEST_RUN_ATTR(merged_sieve, PROCS)
{
    int limit = TEST_TSAN ? 700 : 10000;
    for (int cap = 0; cap < 9; cap += 4) {
        int next = 3, p;
        stream s = pirn_chan_make(int, cap);
        pirn_go(odd_primes, limit, cap, s);
        for (; pirn_chan_recv(s, &p); next += 2) {
            while (!is_prime(next))
                next += 2;
            CHECK_EQ(p, next);
        }
        for (; next <= limit; next += 2)
            CHECK(!is_prime(next));
        pirn_chan_release(s);
        wait_until_alone();
    }
}

/* --- power series: rationals ------------------------------------------------------------------------------ */

struct rat {
    int64_t num, den;
};

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a < 0 ? -a : a;
}

static struct rat rat(int64_t num, int64_t den)
{
    int64_t g = gcd(num, den);
    g = den < 0 ? -g : g;
    return (struct rat){num / g, den / g};
}

static struct rat times(struct rat a, struct rat b)
{
    int64_t g = gcd(a.num, b.den), h = gcd(b.num, a.den);
    return rat((a.num / g) * (b.num / h), (a.den / h) * (b.den / g));
}

static struct rat plus(struct rat a, struct rat b)
{
    int64_t g = gcd(a.den, b.den);
    return rat(a.num * (b.den / g) + b.num * (a.den / g), a.den / g * b.den);
}

/* --- power series: a coefficient for each request --------------------------------------------------------- */

/*
 * A series is made by a goroutine of its own, which computes a coefficient when it is asked for one.
 * Who has read enough closes the requests; the goroutine then does the same to those that it reads,
 * releases the channels and ends. Products, compositions and the like make new series as they go.
 */
struct series {
    pirn_chan(int) requests;
    pirn_chan(struct rat) coefficients;
    struct series *a, *b; /* what it is made of */
    struct rat k;
    const int *poly;
    int n;
};

static struct series *new_series(void)
{
    struct series *s = calloc(1, sizeof *s);
    s->requests = pirn_chan_make(int, 0);
    s->coefficients = pirn_chan_make(struct rat, 0);
    return s;
}

static struct rat get(struct series *s)
{
    pirn_chan_send(s->requests, 1);
    return pirn_chan_get(s->coefficients);
}

/* The reader's last call: the series may be gone then. */
static void done_with(struct series *s)
{
    pirn_chan_close(s->requests);
}

static bool asked(struct series *s)
{
    return pirn_chan_recv(s->requests, NULL);
}

static void put(struct series *s, struct rat r)
{
    pirn_chan_send(s->coefficients, r);
}

/* The maker's last call. */
static void finish(struct series *s)
{
    pirn_chan_release(s->requests);
    pirn_chan_release(s->coefficients);
    free(s);
}

static struct series *made_of(void (*fn)(struct series *), struct series *a, struct series *b)
{
    struct series *s = new_series();
    s->a = a;
    s->b = b;
    pirn_go(fn, s);
    return s;
}

/* k times the rest of a. */
static void pass_on(struct series *s, struct series *a, struct rat k)
{
    while (asked(s))
        put(s, times(k, get(a)));
    done_with(a);
    finish(s);
}

/* --- power series: one read by two ---------------------------------------------------------------------------- */

/*
 * Either may be ahead of the other, and the second may be part of what makes the first (a series
 * that is defined by itself). So it answers what it has while it waits for more. The first reader
 * says when it is enough for both.
 */
struct split {
    struct series *in, *out[2];
    struct rat *values;
    int n, at[2];
    bool wanted[2], open[2], pending;
};

static void split_answers(struct split *sp)
{
    for (int i = 0; i < 2; i++) {
        if (sp->wanted[i] && sp->at[i] < sp->n) {
            sp->wanted[i] = false;
            put(sp->out[i], sp->values[sp->at[i]++]);
        }
    }
    if ((sp->wanted[0] || sp->wanted[1]) && !sp->pending) {
        CHECK(sp->in != NULL);
        sp->pending = true;
        pirn_chan_send(sp->in->requests, 1);
    }
}

static void split_main(struct split *sp)
{
    enum { FIRST, SECOND, MORE };
    while (sp->open[0] || sp->open[1]) {
        bool ok = true;
        struct rat r;
        pirn_chan(int) q[2] = {NULL, NULL};
        pirn_chan(struct rat) more = sp->pending ? sp->in->coefficients : NULL;
        for (int i = 0; i < 2; i++)
            if (sp->open[i] && !sp->wanted[i])
                q[i] = sp->out[i]->requests;
        int i = pirn_select([FIRST] = PIRN_RECV_OK(q[0], NULL, &ok),
                            [SECOND] = PIRN_RECV_OK(q[1], NULL, &ok), [MORE] = PIRN_RECV(more, &r));
        if (i == MORE) {
            sp->values = realloc(sp->values, (size_t)(sp->n + 1) * sizeof r);
            sp->values[sp->n++] = r;
            sp->pending = false;
        } else if (ok) {
            sp->wanted[i] = true;
        } else {
            sp->open[i] = false;
            finish(sp->out[i]);
        }
        split_answers(sp);
        if (sp->in && !sp->open[0] && !sp->pending) {
            done_with(sp->in);
            sp->in = NULL;
        }
    }
    free(sp->values);
    free(sp);
}

static void split(struct series *in, struct series **first, struct series **second)
{
    struct split *sp = calloc(1, sizeof *sp);
    sp->in = in;
    for (int i = 0; i < 2; i++) {
        sp->out[i] = new_series();
        sp->open[i] = true;
    }
    *first = sp->out[0];
    *second = sp->out[1];
    pirn_go(split_main, sp);
}

/* --- power series: what can be done with them ---------------------------------------------------------------- */

static void poly_main(struct series *s)
{
    for (int i = 0; asked(s); i++)
        put(s, rat(i < s->n ? s->poly[i] : 0, 1));
    finish(s);
}

static struct series *poly(const int *c, int n)
{
    struct series *s = new_series();
    s->poly = c;
    s->n = n;
    pirn_go(poly_main, s);
    return s;
}

static void ones_main(struct series *s)
{
    while (asked(s))
        put(s, rat(1, 1));
    finish(s);
}

static struct series *ones(void)
{
    return made_of(ones_main, NULL, NULL);
}

static void add_main(struct series *s)
{
    while (asked(s))
        put(s, plus(get(s->a), get(s->b)));
    done_with(s->a);
    done_with(s->b);
    finish(s);
}

static struct series *add(struct series *a, struct series *b)
{
    return made_of(add_main, a, b);
}

static void scale_main(struct series *s)
{
    pass_on(s, s->a, s->k);
}

static struct series *scale(struct rat k, struct series *a)
{
    struct series *s = new_series();
    s->a = a;
    s->k = k;
    pirn_go(scale_main, s);
    return s;
}

/* k + x a */
static void shift_main(struct series *s)
{
    if (asked(s))
        put(s, s->k);
    pass_on(s, s->a, rat(1, 1));
}

static struct series *shift(struct rat k, struct series *a)
{
    struct series *s = new_series();
    s->a = a;
    s->k = k;
    pirn_go(shift_main, s);
    return s;
}

static void mul_main(struct series *s);

static struct series *mul(struct series *a, struct series *b)
{
    return made_of(mul_main, a, b);
}

/* (f + x a) (g + x b) = f g + x (f b + g a + x a b) */
static void mul_main(struct series *s)
{
    struct series *a[2], *b[2];
    if (!asked(s)) {
        done_with(s->a);
        done_with(s->b);
        finish(s);
        return;
    }
    struct rat f = get(s->a), g = get(s->b);
    put(s, times(f, g));
    split(s->a, &a[0], &a[1]);
    split(s->b, &b[0], &b[1]);
    struct series *mixed = add(scale(f, b[0]), scale(g, a[0]));
    pass_on(s, add(mixed, shift(rat(0, 1), mul(a[1], b[1]))), rat(1, 1));
}

static void diff_main(struct series *s)
{
    for (int n = 1; asked(s); n++) {
        if (n == 1)
            get(s->a);
        put(s, times(rat(n, 1), get(s->a)));
    }
    done_with(s->a);
    finish(s);
}

static struct series *diff(struct series *a)
{
    return made_of(diff_main, a, NULL);
}

static void integrate_main(struct series *s)
{
    if (asked(s))
        put(s, s->k);
    for (int n = 1; asked(s); n++)
        put(s, times(rat(1, n), get(s->a)));
    done_with(s->a);
    finish(s);
}

/* exp: E = 1 + integral of a' E */
static struct series *exponential(struct series *a)
{
    struct series *e = new_series(), *out, *again;
    e->k = rat(1, 1);
    split(e, &out, &again);
    e->a = mul(diff(a), again);
    pirn_go(integrate_main, e);
    return out;
}

static const int one[] = {1};

/* tan: T = integral of 1 + T T */
static struct series *tangent(void)
{
    struct series *t = new_series(), *out, *again, *left, *right;
    t->k = rat(0, 1);
    split(t, &out, &again);
    split(again, &left, &right);
    t->a = add(poly(one, 1), mul(left, right));
    pirn_go(integrate_main, t);
    return out;
}

static void recip_main(struct series *s)
{
    if (!asked(s)) {
        done_with(s->a);
        done_with(s->b);
        finish(s);
        return;
    }
    struct rat f = get(s->a), r = rat(f.den, f.num);
    put(s, r);
    pass_on(s, mul(s->a, s->b), times(rat(-1, 1), r));
}

/* 1 / (f + x a): R = 1/f - x a R / f */
static struct series *reciprocal(struct series *a)
{
    struct series *r = new_series(), *out, *again;
    split(r, &out, &again);
    r->a = a;
    r->b = again;
    pirn_go(recip_main, r);
    return out;
}

/* a(b), b without a constant: (f + x a)(x b) = f + x b a(x b) */
static void compose_main(struct series *s)
{
    struct series *b[2];
    if (!asked(s)) {
        done_with(s->a);
        done_with(s->b);
        finish(s);
        return;
    }
    put(s, get(s->a));
    split(s->b, &b[0], &b[1]);
    CHECK_EQ(get(b[0]).num, 0);
    pass_on(s, mul(b[0], made_of(compose_main, s->a, b[1])), rat(1, 1));
}

static struct series *compose(struct series *a, struct series *b)
{
    return made_of(compose_main, a, b);
}

/* --- power series: checked --------------------------------------------------------------------------------------- */

#define TERMS 10

static void check_series(struct series *s, const struct rat *want)
{
    for (int i = 0; i < TERMS; i++) {
        struct rat r = get(s);
        CHECK_EQ(r.num, want[i].num);
        CHECK_EQ(r.den, want[i].den);
    }
    done_with(s);
    wait_until_alone();
}

/* num[i] / den[i]; den may be NULL. */
static void check_terms(struct series *s, const int64_t *num, const int64_t *den)
{
    struct rat want[TERMS];
    for (int i = 0; i < TERMS; i++)
        want[i] = (struct rat){num[i], den ? den[i] : 1};
    check_series(s, want);
}

static const int64_t all_ones[TERMS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const int64_t naturals[TERMS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static const int64_t factorials[TERMS] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880};
static const int identity[] = {0, 1};

TEST_RUN_ATTR(power_series, PROCS)
{
    static const int64_t twos[TERMS] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    static const int64_t powers[TERMS] = {1, 1, 2, 4, 8, 16, 32, 64, 128, 256};
    static const int one_minus_x[] = {1, -1};
    check_terms(ones(), all_ones, NULL);
    check_terms(add(ones(), ones()), twos, NULL);
    check_terms(diff(ones()), naturals, NULL);
    check_terms(mul(ones(), ones()), naturals, NULL);
    check_terms(mul(ones(), poly(one_minus_x, 2)), (int64_t[TERMS]){1}, all_ones);
    check_terms(reciprocal(poly(one_minus_x, 2)), all_ones, NULL);
    /* 1/(1-u) with u = x/(1-x) is (1-x)/(1-2x) */
    check_terms(compose(ones(), shift(rat(0, 1), ones())), powers, NULL);
}

TEST_RUN_ATTR(power_series_by_themselves, PROCS)
{
    static const int64_t exp_num[TERMS] = {1, 1, 3, 13, 73, 167, 4051, 37633, 43817, 4596553};
    static const int64_t exp_den[TERMS] = {1, 1, 2, 6, 24, 40, 720, 5040, 4480, 362880};
    static const int64_t tan_num[TERMS] = {0, 1, 0, 1, 0, 2, 0, 17, 0, 62};
    static const int64_t tan_den[TERMS] = {1, 1, 1, 3, 1, 15, 1, 315, 1, 2835};
    static const int64_t signs[TERMS] = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
    check_terms(exponential(poly(identity, 2)), all_ones, factorials);
    check_terms(exponential(ones()), exp_num, exp_den);
    check_terms(tangent(), tan_num, tan_den);
    check_terms(reciprocal(exponential(poly(identity, 2))), signs, factorials);
    check_terms(mul(reciprocal(exponential(ones())), exponential(ones())), (int64_t[TERMS]){1},
                all_ones);
}

TEST_RUN_ATTR(power_series_composed, PROCS, .timeout = 60)
{
    /* exp(tan x) */
    static const int64_t num[TERMS] = {1, 1, 1, 1, 3, 37, 59, 137, 871, 41641};
    static const int64_t den[TERMS] = {1, 1, 2, 2, 8, 120, 240, 720, 5760, 362880};
    check_terms(compose(exponential(poly(identity, 2)), tangent()), num, den);
    check_terms(exponential(tangent()), num, den);
}
