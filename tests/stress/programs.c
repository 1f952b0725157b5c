/* SPDX-License-Identifier: MIT */
/*
 * Random small programs against a reference.
 *
 * A program is a few goroutines with a few operations each, on a few channels, one mutex and one wait
 * group. It runs on the real runtime until all of it has ended or waits for ever; what each operation
 * returned, who got stuck where, and what the buffers hold is its outcome. The reference is a
 * channel, a mutex and a wait group of one thread, whose operations are one step each; it searches
 * for an order of steps that gives this outcome. If there is none, the runtime is wrong.
 *
 * Programs never panic: a channel that is closed has one goroutine that sends on it, which closes it
 * itself; or it is closed after a wait for all others, whose sends come before their done. They may
 * deadlock. In some a few goroutines come late, when nothing else runs any more: so that what waits
 * is known to wait. The goroutines that are stuck in the end are dropped with the runtime, and then
 * the channels must be as if nobody waited.
 *
 * PIRN_STRESS_PROGRAMS=100000 for a long run; PIRN_STRESS_SEED for the same programs again.
 */
#include <sched.h>

#include "stress/recount.h"
#include "stress/reference.h"

#define BATCH 16u /* programs that run at the same time */

/* --- running them --------------------------------------------------------------------------------- */

struct run {
    struct program p;
    struct outcome o;
    pirn_chanv *chan[MOST_CHANS + 1]; /* the last is NULL */
    pirn_mutex mutex;
    pirn_wg group;
    uint8_t counter; /* under the mutex */
};

static void fill(unsigned char *elem, uint8_t value)
{
    memset(elem, value, MOST_ELEM);
}

/* The value of an element of that channel; zeros, if it was closed. Nothing behind it was written. */
static int value_of(const struct run *r, int c, const unsigned char *elem, bool ok)
{
    size_t size = r->p.elem[c];
    for (size_t i = 0; i < MOST_ELEM; i++) {
        CHECK_EQ(elem[i], i < size ? (ok ? elem[0] : 0) : 0xee);
    }
    return ok ? elem[0] : CLOSED;
}

static int run_select(struct run *r, const struct op *op)
{
    unsigned char elem[MOST_CASES][MOST_ELEM];
    bool ok[MOST_CASES] = {false};
    pirn_case cases[MOST_CASES + 1] = {0};
    for (int i = 0; i < op->n; i++) {
        const struct half *h = &op->half[i];
        fill(elem[i], h->sends ? h->value : 0xee);
        cases[i].kind_ = h->sends ? PIRN_CASE_SEND_ : PIRN_CASE_RECV_;
        cases[i].chan_ = r->chan[h->chan];
        cases[i].elem_ = elem[i];
        cases[i].ok_ = h->sends ? NULL : &ok[i];
    }
    if (op->other) {
        cases[op->n].kind_ = PIRN_CASE_DEFAULT_;
    }
    int chosen = pirn_selectv(cases, op->n + op->other);
    for (int i = 0; i < op->n; i++) { /* the others were left alone */
        CHECK(i == chosen || (elem[i][0] == (op->half[i].sends ? op->half[i].value : 0xee)));
        CHECK(i == chosen || !ok[i]);
    }
    if (chosen == op->n) {
        return CHOSE(chosen, NOTHING);
    }
    const struct half *h = &op->half[chosen];
    return CHOSE(chosen, h->sends ? NOTHING : value_of(r, h->chan, elem[chosen], ok[chosen]));
}

static int run_op(struct run *r, const struct op *op, bool *holds)
{
    unsigned char elem[MOST_ELEM];
    const struct half *h = &op->half[0];
    pirn_chanv *c = r->chan[h->chan];
    int got;
    bool ok;
    switch (op->kind) {
    case SEND:
        fill(elem, h->value);
        pirn_chanv_send(c, elem);
        return NOTHING;
    case TRY_SEND:
        fill(elem, h->value);
        return pirn_chanv_try_send(c, elem) ? NOTHING : WOULD_BLOCK;
    case RECV:
        fill(elem, 0xee);
        ok = pirn_chanv_recv(c, elem);
        return value_of(r, h->chan, elem, ok);
    case TRY_RECV:
        fill(elem, 0xee);
        got = pirn_chanv_try_recv(c, elem);
        return got ? value_of(r, h->chan, elem, got > 0) : WOULD_BLOCK;
    case LEN: return (int)pirn_chanv_len(c);
    case CLOSE: pirn_chanv_close(c); return NOTHING;
    case SELECT: return run_select(r, op);
    case TRY_LOCK:
        if (!pirn_mutex_try_lock(&r->mutex)) {
            return WOULD_BLOCK;
        }
        *holds = true;
        return ++r->counter;
    case LOCK:
        pirn_mutex_lock(&r->mutex);
        *holds = true;
        return ++r->counter;
    case UNLOCK:
        if (*holds) {
            pirn_mutex_unlock(&r->mutex);
        }
        *holds = false;
        return NOTHING;
    case DONE: pirn_wg_done(&r->group); return NOTHING;
    case WAIT: pirn_wg_wait(&r->group); return NOTHING;
    }
    FAIL("no such operation");
}

static void pause_for(uint8_t how)
{
    if (how == 0) {
        pirn_yield();
    }
    for (int i = 0; how <= 2 && i < 200 * how; i++) {
        at_pause();
    }
}

static void run_goroutine(struct run *r, int g, pirn_wg *gate)
{
    bool holds = false;
    pirn_wg_wait(gate);
    for (int i = 0; i < r->p.ops[g]; i++) {
        pause_for(r->p.op[g][i].pause);
        r->o.result[g][i] = run_op(r, &r->p.op[g][i], &holds);
        r->o.ended[g]++;
    }
}

/* Until nothing runs. What is stuck then is stuck for ever. */
static void wait_for_rest(void)
{
    bool rests = false;
    for (int i = 0; !rests; i++) {
        if (i < 100) {
            sched_yield();
        } else {
            sleep_ns(50 * PIRN_US);
        }
        lock(&sched.lock);
        rests = at_rest_locked();
        unlock(&sched.lock);
    }
}

static void begin(struct run *r, pirn_wg *gates)
{
    for (int c = 0; c < r->p.chans; c++) {
        r->chan[c] = pirn_chanv_make(r->p.elem[c], r->p.cap[c]);
    }
    pirn_wg_add(&r->group, r->p.dones);
    for (int g = 0; g < r->p.gs; g++) {
        pirn_go(run_goroutine, r, g, &gates[g >= r->p.early]);
    }
}

/* No runtime runs any more. */
static void end(struct run *r)
{
    for (int c = 0; c < r->p.chans; c++) {
        unsigned char elem[MOST_ELEM];
        CHECK_LE(pirn_chanv_len(r->chan[c]), MOST_CAP);
        for (fill(elem, 0xee); pirn_chanv_try_recv(r->chan[c], elem) > 0; fill(elem, 0xee)) {
            CHECK_LT(r->o.nleft[c], r->p.cap[c]);
            r->o.left[c][r->o.nleft[c]++] = (uint8_t)value_of(r, c, elem, true);
        }
        pirn_chanv_release(r->chan[c]);
    }
}

/* --- the test ------------------------------------------------------------------------------------- */

static uint32_t count_of_programs(void)
{
    const char *text = getenv("PIRN_STRESS_PROGRAMS");
    return text ? (uint32_t)strtoul(text, NULL, 0) : TEST_TSAN ? 300 : TEST_ASAN ? 2000 : 10000;
}

static void run_batch(struct run *runs, struct rand *r)
{
    pirn_wg gates[2] = {{0}, {0}};
    for (uint32_t i = 0; i < BATCH; i++) {
        runs[i] = (struct run){0};
        make_program(&runs[i].p, r);
    }
    CHECK_EQ(pirn_start(NULL), 0);
    pirn_wg_add(&gates[0], 1);
    pirn_wg_add(&gates[1], 1);
    for (uint32_t i = 0; i < BATCH; i++) {
        begin(&runs[i], gates);
    }
    pirn_wg_done(&gates[0]);
    wait_for_rest();
    pirn_wg_done(&gates[1]);
    wait_for_rest();
    CHECK_EQ(pirn_stop(), 0);
    for (uint32_t i = 0; i < BATCH; i++) {
        end(&runs[i]);
    }
}

static void random_programs(uint32_t programs)
{
    static struct run runs[BATCH];
    struct rand r;
    uint64_t states = 0, stuck = 0, ran = 0;
    uint32_t most = 0;
    rand_seed(&r, stress_seed());
    for (; ran < programs; ran += BATCH) {
        run_batch(runs, &r);
        for (uint32_t i = 0; i < BATCH; i++) {
            struct search x = {.p = &runs[i].p, .o = &runs[i].o};
            if (!is_allowed(&x)) {
                printf("program %llu:\n", (unsigned long long)(ran + i));
                show(x.p, x.o);
                fflush(stdout);
                FAIL("no order of its steps has this outcome");
            }
            states += x.nseen;
            most = x.nseen > most ? x.nseen : most;
            for (int g = 0; g < x.p->gs; g++) {
                stuck += x.o->ended[g] < x.p->ops[g];
            }
        }
    }
    printf("%llu programs, %llu goroutines stuck, %llu states, %u in one search\n",
           (unsigned long long)ran, (unsigned long long)stuck, (unsigned long long)states, most);
}

TEST_ATTR(programs, .procs = "1,2,4,16", .timeout = 90)
{
    random_programs(count_of_programs());
}

TEST_ATTR(programs_move, .procs = "1,2,4,16", .timeout = 90, .env = "PIRN_DEBUG=move=1")
{
    random_programs(count_of_programs() / 4);
}
