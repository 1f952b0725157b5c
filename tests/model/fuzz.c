/* SPDX-License-Identifier: MIT */
/*
 * Small programs as models, for fuzz.py, which makes them up at random and knows by other means what
 * C11 allows them to do. PIRN_FUZZ names a file with one program on each line:
 *
 *     spurious 1 : store x 1 rel ; load y acq ; ?0 add x 1 rlx | xchg y 2 sc ; fence sc
 *
 * Before the colon: options. Then threads, apart by |, of operations, apart by a semicolon. ?V does
 * the operation only if the last value that the thread has got was V. The outcome of an execution is
 * every value that a thread has got, and what is in the variables in the end.
 *
 *     load LOC ORDER            store LOC V ORDER        fence ORDER
 *     xchg LOC V ORDER          add LOC V ORDER
 *     cas|weak LOC OLD V ORDER FAIL_ORDER
 *     lock LOC                  unlock LOC
 *     await LOC                 post LOC                 each once at most
 *     wait|waitl LOC V          wake LOC N               waitl: with a deadline
 *     read LOC                  write LOC V              plainly
 *     spin LOC V ORDER          until it loads V
 *     twice LOC V ORDER         the same, but gives up after two loads
 *     pause                     pick N
 *
 * x, y, z, u are atomic; a, b are not; l, m are locks; n, o are notes. PIRN_FUZZ_FAIL is an outcome that
 * is to be a failure, so that its replay can be looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorer/explorer.h"

#define OPS 20
#define NAMES "xyzuablmno"
#define NLOC 10
#define NATOMIC 4

enum kind {
    K_LOAD,
    K_STORE,
    K_XCHG,
    K_ADD,
    K_CAS,
    K_WEAK,
    K_FENCE,
    K_LOCK,
    K_UNLOCK,
    K_AWAIT,
    K_POST,
    K_WAIT,
    K_WAITL,
    K_WAKE,
    K_READ,
    K_WRITE,
    K_SPIN,
    K_TWICE,
    K_PAUSE,
    K_PICK,
};

/* The operands that follow each name: a location, numbers, orders. */
static const struct {
    const char *name, *operands;
    enum model_kind site;
} kinds[] = {
    [K_LOAD] = {"load", "lo", MODEL_LOAD},
    [K_STORE] = {"store", "lno", MODEL_STORE},
    [K_XCHG] = {"xchg", "lno", MODEL_XCHG},
    [K_ADD] = {"add", "lno", MODEL_ADD},
    [K_CAS] = {"cas", "lnnoo", MODEL_CAS},
    [K_WEAK] = {"weak", "lnnoo", MODEL_CAS_WEAK},
    [K_FENCE] = {"fence", "o", MODEL_FENCE},
    [K_LOCK] = {"lock", "l", 0},
    [K_UNLOCK] = {"unlock", "l", 0},
    [K_AWAIT] = {"await", "l", 0},
    [K_POST] = {"post", "l", 0},
    [K_WAIT] = {"wait", "ln", 0},
    [K_WAITL] = {"waitl", "ln", 0},
    [K_WAKE] = {"wake", "ln", 0},
    [K_READ] = {"read", "l", 0},
    [K_WRITE] = {"write", "ln", 0},
    [K_SPIN] = {"spin", "lno", MODEL_LOAD},
    [K_TWICE] = {"twice", "lno", MODEL_LOAD},
    [K_PAUSE] = {"pause", "", 0},
    [K_PICK] = {"pick", "n", 0},
};
#define KINDS (int)(sizeof kinds / sizeof kinds[0])

struct op_rec {
    enum kind kind;
    int only_if; /* or -1 */
    int loc, number[2];
    struct model_site site;
};

struct program {
    struct model model; /* first: ex.model is the program too */
    struct op_rec ops[MODEL_THREADS][OPS];
    int nops[MODEL_THREADS];
};

/* --- the text ----------------------------------------------------------------------------------- */

static _Noreturn void bad(const char *token)
{
    fprintf(stderr, "fuzz: %s?\n", token ? token : "unexpected end");
    exit(2);
}

static int order_of(const char *s)
{
    static const char *const names[] = {"rlx", "acq", "rel", "ar", "sc"};
    static const int orders[] = {RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST};
    for (int i = 0; s && i < 5; i++) {
        if (!strcmp(s, names[i])) {
            return orders[i];
        }
    }
    bad(s);
}

static int number_of(const char *s)
{
    if (!s) {
        bad(s);
    }
    return atoi(s);
}

static int loc_named(const char *s)
{
    const char *at = s ? strchr(NAMES, *s) : NULL;
    if (!at) {
        bad(s);
    }
    return (int)(at - NAMES);
}

static void parse_op(struct op_rec *op, const char *token)
{
    int k = 0, numbers = 0, orders = 0;
    op->only_if = -1;
    if (*token == '?') {
        op->only_if = number_of(token + 1);
        token = strtok(NULL, " ");
    }
    while (k < KINDS && token && strcmp(kinds[k].name, token)) {
        k++;
    }
    if (k == KINDS) {
        bad(token);
    }
    op->kind = (enum kind)k;
    op->site = (struct model_site){.file = "program", .text = kinds[k].name, .kind = kinds[k].site};
    for (const char *o = kinds[k].operands; *o; o++) {
        token = strtok(NULL, " ");
        if (*o == 'l') {
            op->loc = loc_named(token);
        } else if (*o == 'n') {
            op->number[numbers++] = number_of(token);
        } else {
            *(orders++ ? &op->site.fail_order : &op->site.order) = order_of(token);
        }
    }
}

static void parse(struct program *p, char *line)
{
    int t = 0;
    char *token = strtok(line, " ");
    for (; token && *token != ':'; token = strtok(NULL, " ")) {
        int *option = !strcmp(token, "spurious")   ? &p->model.spurious
                      : !strcmp(token, "timeouts") ? &p->model.timeouts
                      : !strcmp(token, "sleepers") ? (int *)&p->model.sleepers
                                                   : NULL;
        if (!option) {
            bad(token);
        }
        *option = number_of(strtok(NULL, " "));
    }
    for (token = strtok(NULL, " "); token; token = strtok(NULL, " ")) {
        if (*token == '|') {
            t++;
        } else if (*token != ';') {
            if (t == MODEL_THREADS || p->nops[t] == OPS) {
                bad("too much");
            }
            struct op_rec *op = &p->ops[t][p->nops[t]++];
            parse_op(op, token);
            op->site.line = t * 100 + p->nops[t];
        }
    }
    for (int i = 0; i <= t; i++) {
        extern void fuzz_thread(void);
        p->model.threads[i] = fuzz_thread;
    }
}

/* --- running ------------------------------------------------------------------------------------ */

/* Of several sizes. */
static at_u32 x, u;
static at_u64 y;
static AT(uint8_t) z;
static uint8_t locks[2], notes[2];
static int plain[2];
static volatile void *const where[NLOC] = {&x,        &y,        &z,        &u,        &plain[0],
                                           &plain[1], &locks[0], &locks[1], &notes[0], &notes[1]};
static const unsigned sizes[NLOC] = {4, 8, 1, 4, 4, 4, 1, 1, 1, 1};

static struct {
    char text[2 * OPS];
    int n;
    bool ended;
} got[MODEL_THREADS];

static void setup(void)
{
    at_store(&x, 0, RELAXED);
    at_store(&y, 0, RELAXED);
    at_store(&z, 0, RELAXED);
    at_store(&u, 0, RELAXED);
    memset(plain, 0, sizeof plain);
    memset(got, 0, sizeof got);
    model_note_clear(&notes[0]);
    model_note_clear(&notes[1]);
}

/* The interpreter's own accesses are no part of the program. */
#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

static __attribute__((noinline)) uint64_t read_plainly(int loc)
{
    switch (sizes[loc]) {
    case 1: return *(volatile uint8_t *)where[loc];
    case 4: return *(volatile uint32_t *)where[loc];
    default: return *(volatile uint64_t *)where[loc];
    }
}

static __attribute__((noinline)) void write_plainly(int loc, uint64_t v)
{
    switch (sizes[loc]) {
    case 1: *(volatile uint8_t *)where[loc] = (uint8_t)v; break;
    case 4: *(volatile uint32_t *)where[loc] = (uint32_t)v; break;
    default: *(volatile uint64_t *)where[loc] = v; break;
    }
}

static UNSEEN void note(int self, int c)
{
    got[self].text[got[self].n++] = (char)c;
}

static UNSEEN int digit(int v)
{
    return v < 10 ? '0' + v : 'a' + v - 10;
}

static UNSEEN int get(int self, uint64_t v)
{
    note(self, digit((int)v));
    return (int)v;
}

/* last: the value that the thread got last; returns the new one. */
static UNSEEN int step(const struct op_rec *op, int self, int last)
{
    volatile void *at = where[op->loc];
    unsigned size = sizes[op->loc];
    uint64_t n = (uint64_t)op->number[0];
    bool ok = false;
    switch (op->kind) {
    case K_STORE: model_op(&op->site, at, size, n, 0, NULL); break;
    case K_LOAD:
    case K_XCHG:
    case K_ADD: return get(self, model_op(&op->site, at, size, n, 0, NULL));
    case K_CAS:
    case K_WEAK:
        last = get(self, model_op(&op->site, at, size, (uint64_t)op->number[1], n, &ok));
        note(self, ok ? '+' : '-');
        break;
    case K_FENCE: model_fence(&op->site); break;
    case K_LOCK: model_lock((void *)(uintptr_t)at); break;
    case K_UNLOCK: model_unlock((void *)(uintptr_t)at); break;
    case K_AWAIT: model_note_wait((void *)(uintptr_t)at); break;
    case K_POST: model_note_post((void *)(uintptr_t)at); break;
    case K_WAIT:
    case K_WAITL:
        note(self, model_futex_wait(at, (uint32_t)n, op->kind == K_WAITL) ? 'w' : 't');
        break;
    case K_WAKE: model_futex_wake(at, (int)n); break;
    case K_READ: return get(self, read_plainly(op->loc));
    case K_WRITE: write_plainly(op->loc, n); break;
    case K_SPIN:
        while (model_op(&op->site, at, size, 0, 0, NULL) != n) {
            model_pause();
        }
        break;
    case K_TWICE:
        last = get(self, model_op(&op->site, at, size, 0, 0, NULL));
        if (last != (int)n) {
            model_pause();
            last = get(self, model_op(&op->site, at, size, 0, 0, NULL));
        }
        break;
    case K_PAUSE: model_pause(); break;
    case K_PICK: return get(self, (uint64_t)model_pick((int)n));
    }
    return last;
}

void fuzz_thread(void);
UNSEEN void fuzz_thread(void)
{
    int self = model_self(), last = -1;
    const struct program *p = (const struct program *)ex.model;
    for (int i = 0; i < p->nops[self]; i++) {
        const struct op_rec *op = &p->ops[self][i];
        if (op->only_if < 0 || op->only_if == last) {
            last = step(op, self, last);
        }
    }
    got[self].ended = true;
}

/* 01/2!=120000: T1 sleeps still. */
static void finish(void)
{
    const char *fail = getenv("PIRN_FUZZ_FAIL");
    char text[MODEL_THREADS * sizeof got[0].text + 16], *out = text;
    for (int i = 0; i < ex.nthreads; i++) {
        out += sprintf(out, "%s%s%s", i ? "/" : "", got[i].text, got[i].ended ? "" : "!");
    }
    *out++ = '=';
    for (int i = 0; i < NATOMIC + 2; i++) {
        *out++ = (char)digit((int)read_plainly(i));
    }
    *out = '\0';
    model_outcome("%s", text);
    if (fail && !strcmp(fail, text)) {
        model_fail("outcome %s", text);
    }
}

__attribute__((constructor)) static void read_programs(void)
{
    static struct program programs[1000];
    static char names[1000][8];
    const char *name = getenv("PIRN_FUZZ");
    FILE *f = name ? fopen(name, "r") : NULL;
    char line[1000];
    for (int n = 0; f && n < 1000 && fgets(line, sizeof line, f); n++) {
        struct program *p = &programs[n];
        sprintf(names[n], "p%d", n);
        p->model = (struct model){.name = names[n],
                                  .setup = setup,
                                  .finish = finish,
                                  .preemptions = MODEL_UNBOUNDED,
                                  .finds = ""}; /* so that a failure is not replayed */
        line[strcspn(line, "\n")] = '\0';
        parse(p, line);
        model_register(&p->model);
    }
    if (f) {
        fclose(f);
    }
}
