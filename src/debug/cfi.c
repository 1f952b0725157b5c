/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: for each instruction of a function, how its caller's registers are found.
 *
 * PT_GNU_EH_FRAME has a table of functions, sorted by address; it names the entry of .eh_frame (an FDE),
 * which has instructions of its own and shares others by its head (a CIE). They build a row of rules: the
 * canonical frame address (CFA), which is the caller's stack pointer, and for each register where it was
 * saved. The tables are part of a mapped file and trusted, but no read goes beyond its module.
 */
#include "debug/cfi.h"

#include <string.h>

#include "base/util.h"

enum rule_kind { SAME, UNDEFINED, AT_OFFSET, IS_OFFSET, IN_REGISTER, AT_EXPRESSION, IS_EXPRESSION };

struct rule {
    uint8_t kind;
    int32_t n; /* offset from the CFA, register, or offset of an expression from the instructions */
};

struct row {
    uint32_t cfa_reg;
    int64_t cfa_offset;
    const unsigned char *cfa_expression; /* NULL: by register */
    struct rule rules[UNWIND_REGS];
};

/* aarch64: that of the pc in a frame which a signal has interrupted, where x30 is a register like others. */
static uint64_t column(uint64_t reg)
{
#if defined(__aarch64__)
    return reg == 96 ? UNWIND_PC : reg;
#else
    return reg;
#endif
}

/* --- reading ---------------------------------------------------------------------------------------- */

struct cursor {
    const unsigned char *at, *end;
    bool bad; /* read behind the end: zeroes */
};

static uint64_t get(struct cursor *c, unsigned size)
{
    uint64_t v = 0;
    if ((size_t)(c->end - c->at) < size) {
        c->bad = true;
        c->at = c->end;
        return 0;
    }
    memcpy(&v, c->at, size); /* little-endian, both */
    c->at += size;
    return v;
}

static uint64_t get_uleb(struct cursor *c)
{
    uint64_t v = 0, byte;
    unsigned shift = 0;
    do {
        byte = get(c, 1);
        v |= shift < 64 ? (byte & 127) << shift : 0;
        shift += 7;
    } while (byte & 128);
    return v;
}

static int64_t get_sleb(struct cursor *c)
{
    uint64_t v = 0, byte;
    unsigned shift = 0;
    do {
        byte = get(c, 1);
        v |= shift < 64 ? (byte & 127) << shift : 0;
        shift += 7;
    } while (byte & 128);
    if (shift < 64 && byte & 64) {
        v |= ~(uint64_t)0 << shift;
    }
    return (int64_t)v;
}

/* An address by its encoding; data: what some are relative to. */
static uint64_t get_encoded(struct cursor *c, uint8_t encoding, uintptr_t data)
{
    uintptr_t here = (uintptr_t)c->at;
    uint64_t v;
    switch (encoding & 15) {
    case 0: v = get(c, 8); break;
    case 1: v = get_uleb(c); break;
    case 2: v = get(c, 2); break;
    case 3: v = get(c, 4); break;
    case 4: v = get(c, 8); break;
    case 9: v = (uint64_t)get_sleb(c); break;
    case 10: v = (uint64_t)(int64_t)(int16_t)get(c, 2); break;
    case 11: v = (uint64_t)(int64_t)(int32_t)get(c, 4); break;
    case 12: v = get(c, 8); break;
    default: c->bad = true; return 0;
    }
    switch (encoding & 0x70) {
    case 0: return v;
    case 0x10: return v + here;
    case 0x30: return v + data;
    default: c->bad = true; return 0;
    }
}

static void skip(struct cursor *c, uint64_t n)
{
    if ((uint64_t)(c->end - c->at) < n) {
        c->bad = true;
        n = (uint64_t)(c->end - c->at);
    }
    c->at += n;
}

/* --- finding ---------------------------------------------------------------------------------------- */

/* The entry of the last function that begins at pc or before. */
static const unsigned char *search_table(const struct module *m, uintptr_t pc)
{
    struct cursor c = {m->eh_frame_hdr, (const unsigned char *)m->end, false};
    uintptr_t hdr = (uintptr_t)m->eh_frame_hdr;
    uint8_t version = (uint8_t)get(&c, 1), frame_enc = (uint8_t)get(&c, 1),
            count_enc = (uint8_t)get(&c, 1), table_enc = (uint8_t)get(&c, 1);
    if (version != 1 || table_enc != 0x3b) { /* what every linker makes */
        return NULL;
    }
    get_encoded(&c, frame_enc, hdr);
    uint64_t n = get_encoded(&c, count_enc, hdr), low = 0;
    if (c.bad || n == 0 || n > (uint64_t)(c.end - c.at) / 8) {
        return NULL;
    }
    int32_t pair[2], offset = (int32_t)(pc - hdr);
    for (uint64_t high = n; high - low > 1;) {
        uint64_t mid = (low + high) / 2;
        memcpy(pair, c.at + mid * 8, sizeof pair);
        if (pair[0] <= offset) {
            low = mid;
        } else {
            high = mid;
        }
    }
    memcpy(pair, c.at + low * 8, sizeof pair);
    uintptr_t fde = hdr + (uintptr_t)(intptr_t)pair[1];
    bool inside = pair[0] <= offset && fde >= m->start && fde < m->end;
    return inside ? (const unsigned char *)fde : NULL;
}

/* The length that it begins with; the cursor then ends with it. */
static bool begin_entry(struct cursor *c)
{
    uint64_t length = get(c, 4);
    if (length == 0xffffffff) {
        length = get(c, 8);
    }
    if (c->bad || length == 0 || length > (uint64_t)(c->end - c->at)) {
        return false;
    }
    c->end = c->at + length;
    return true;
}

static bool read_augmentation(struct cursor *c, const char *text, struct cfi *out)
{
    uint64_t length = get_uleb(c);
    if (length > (uint64_t)(c->end - c->at)) {
        return false;
    }
    const unsigned char *end = c->at + length;
    for (text++; *text; text++) {
        switch (*text) {
        case 'L': get(c, 1); break;
        case 'P': {
            uint8_t encoding = (uint8_t)get(c, 1);
            get_encoded(c, encoding & 0x7f, 0);
            break;
        }
        case 'R': out->encoding = (uint8_t)get(c, 1); break;
        case 'S': out->signal = true; break;
        case 'B': break; /* which key signs return addresses */
        default: return false;
        }
    }
    c->at = end;
    return true;
}

static bool read_cie(const struct module *m, const unsigned char *at, struct cfi *out)
{
    struct cursor c = {at, (const unsigned char *)m->end, false};
    if ((uintptr_t)at < m->start || (uintptr_t)at >= m->end || !begin_entry(&c)
        || get(&c, 4) != 0) {
        return false;
    }
    uint64_t version = get(&c, 1);
    const char *text = (const char *)c.at;
    skip(&c, strnlen(text, (size_t)(c.end - c.at)) + 1);
    out->code_align = get_uleb(&c);
    out->data_align = get_sleb(&c);
    out->ra = (uint32_t)column(version == 1 ? get(&c, 1) : get_uleb(&c));
    out->augmented = *text == 'z';
    if (c.bad || (*text && !out->augmented)
        || (out->augmented && !read_augmentation(&c, text, out))) {
        return false;
    }
    out->initial = c.at;
    out->initial_end = c.end;
    return !c.bad && out->ra < UNWIND_REGS;
}

bool cfi_find(const struct module *m, uintptr_t pc, struct cfi *out)
{
    const unsigned char *fde = m->eh_frame_hdr ? search_table(m, pc) : NULL;
    if (!fde) {
        return false;
    }
    struct cursor c = {fde, (const unsigned char *)m->end, false};
    *out = (struct cfi){0};
    if (!begin_entry(&c)) {
        return false;
    }
    const unsigned char *here = c.at;
    uint64_t back = get(&c, 4);
    if (back == 0 || !read_cie(m, here - back, out)) {
        return false;
    }
    out->begin = (uintptr_t)get_encoded(&c, out->encoding, 0);
    uint64_t size = get_encoded(&c, out->encoding & 15, 0);
    if (out->augmented) {
        skip(&c, get_uleb(&c));
    }
    out->insns = c.at;
    out->insns_end = c.end;
    return !c.bad && pc >= out->begin && pc - out->begin < size;
}

/* --- expressions -------------------------------------------------------------------------------------- */

#define DEPTH 16

struct machine {
    uint64_t stack[DEPTH];
    unsigned n;
    bool bad;
};

static void push(struct machine *x, uint64_t v)
{
    if (x->n == DEPTH) {
        x->bad = true;
        return;
    }
    x->stack[x->n++] = v;
}

static uint64_t pop(struct machine *x)
{
    if (x->n == 0) {
        x->bad = true;
        return 0;
    }
    return x->stack[--x->n];
}

static uint64_t binary(uint8_t op, uint64_t a, uint64_t b)
{
    switch (op) {
    case 0x1a: return a & b;
    case 0x1c: return a - b;
    case 0x1e: return a * b;
    case 0x21: return a | b;
    case 0x22: return a + b;
    case 0x24: return b < 64 ? a << b : 0;
    case 0x25: return b < 64 ? a >> b : 0;
    case 0x27: return a ^ b;
    case 0x29: return a == b;
    case 0x2a: return (int64_t)a >= (int64_t)b;
    case 0x2b: return (int64_t)a > (int64_t)b;
    case 0x2c: return (int64_t)a <= (int64_t)b;
    case 0x2d: return (int64_t)a < (int64_t)b;
    default: return a != b;
    }
}

static bool is_binary(uint8_t op)
{
    return op == 0x1a || op == 0x1c || op == 0x1e || op == 0x21 || op == 0x22 || op == 0x24
           || op == 0x25 || op == 0x27 || (op >= 0x29 && op <= 0x2e);
}

static void push_register(struct machine *x, const struct unwind *u, unsigned reg, int64_t offset)
{
    if (reg >= UNWIND_REGS || !unwind_knows(u, reg)) {
        x->bad = true;
        return;
    }
    push(x, u->r[reg] + (uint64_t)offset);
}

static void do_op(struct machine *x, const struct unwind *u, uint8_t op, struct cursor *c)
{
    if (op >= 0x30 && op <= 0x4f) { /* lit */
        push(x, op - 0x30u);
    } else if (op >= 0x70 && op <= 0x8f) { /* breg */
        push_register(x, u, op - 0x70u, get_sleb(c));
    } else if (is_binary(op)) {
        uint64_t b = pop(x), a = pop(x);
        push(x, binary(op, a, b));
    } else {
        uint64_t v = 0;
        switch (op) {
        case 0x06: /* deref */ x->bad |= !unwind_load(u, pop(x), &v); break;
        case 0x08: v = get(c, 1); break;
        case 0x09: v = (uint64_t)(int64_t)(int8_t)get(c, 1); break;
        case 0x0a: v = get(c, 2); break;
        case 0x0b: v = (uint64_t)(int64_t)(int16_t)get(c, 2); break;
        case 0x0c: v = get(c, 4); break;
        case 0x0d: v = (uint64_t)(int64_t)(int32_t)get(c, 4); break;
        case 0x0e:
        case 0x0f: v = get(c, 8); break;
        case 0x10: v = get_uleb(c); break;
        case 0x11: v = (uint64_t)get_sleb(c); break;
        case 0x12: /* dup */
            v = pop(x);
            push(x, v);
            break;
        case 0x23: /* plus_uconst */ v = pop(x) + get_uleb(c); break;
        default: x->bad = true; break;
        }
        push(x, v);
    }
}

/* at: its length, and then itself. cfa: first on the stack, if it is there already. */
static bool evaluate(const unsigned char *at, const unsigned char *end, const struct unwind *u,
                     const uint64_t *cfa, uint64_t *out)
{
    struct machine x = {.n = 0};
    struct cursor c = {at, end, false};
    uint64_t length = get_uleb(&c);
    if (c.bad || length > (uint64_t)(c.end - c.at)) {
        return false;
    }
    c.end = c.at + length;
    if (cfa) {
        push(&x, *cfa);
    }
    while (c.at < c.end && !x.bad && !c.bad) {
        uint8_t op = (uint8_t)get(&c, 1);
        if (op != 0x96) { /* nop */
            do_op(&x, u, op, &c);
        }
    }
    *out = pop(&x);
    return !x.bad && !c.bad;
}

/* --- rows --------------------------------------------------------------------------------------------- */

struct run {
    const struct cfi *cfi;
    struct cursor c;
    uintptr_t loc, pc;
    struct row row, initial;
    struct row kept[2]; /* remember_state; gcc and clang nest them no deeper */
    unsigned nkept;
    bool bad;
};

static void set_rule(struct run *r, uint64_t reg, enum rule_kind kind, int64_t n)
{
    reg = column(reg);
    if (reg < UNWIND_REGS) {
        r->row.rules[reg] = (struct rule){(uint8_t)kind, (int32_t)n};
    }
}

static void set_expression(struct run *r, uint64_t reg, enum rule_kind kind)
{
    set_rule(r, reg, kind, r->c.at - r->cfi->initial);
    skip(&r->c, get_uleb(&r->c));
}

static void set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
    r->row.cfa_reg = (uint32_t)reg;
    r->row.cfa_offset = offset;
    r->row.cfa_expression = NULL;
}

static void remember(struct run *r)
{
    if (r->nkept == ARRAY_LEN(r->kept)) {
        r->bad = true;
        return;
    }
    r->kept[r->nkept++] = r->row;
}

static void restore(struct run *r)
{
    if (r->nkept == 0) {
        r->bad = true;
        return;
    }
    r->row = r->kept[--r->nkept];
}

static void restore_rule(struct run *r, uint64_t reg)
{
    if (reg < UNWIND_REGS) {
        r->row.rules[reg] = r->initial.rules[reg];
    }
}

static void do_more(struct run *r, uint8_t op)
{
    struct cursor *c = &r->c;
    int64_t align = r->cfi->data_align;
    uint64_t reg;
    switch (op) {
    case 0x0c: /* def_cfa */
        reg = get_uleb(c);
        set_cfa(r, reg, (int64_t)get_uleb(c));
        break;
    case 0x0d: r->row.cfa_reg = (uint32_t)get_uleb(c); break;
    case 0x0e: r->row.cfa_offset = (int64_t)get_uleb(c); break;
    case 0x0f: /* def_cfa_expression */
        r->row.cfa_expression = c->at;
        skip(c, get_uleb(c));
        break;
    case 0x10: set_expression(r, get_uleb(c), AT_EXPRESSION); break;
    case 0x11: /* offset_extended_sf */
        reg = get_uleb(c);
        set_rule(r, reg, AT_OFFSET, get_sleb(c) * align);
        break;
    case 0x12: /* def_cfa_sf */
        reg = get_uleb(c);
        set_cfa(r, reg, get_sleb(c) * align);
        break;
    case 0x13: r->row.cfa_offset = get_sleb(c) * align; break;
    case 0x14: /* val_offset */
        reg = get_uleb(c);
        set_rule(r, reg, IS_OFFSET, (int64_t)get_uleb(c) * align);
        break;
    case 0x15: /* val_offset_sf */
        reg = get_uleb(c);
        set_rule(r, reg, IS_OFFSET, get_sleb(c) * align);
        break;
    case 0x16: set_expression(r, get_uleb(c), IS_EXPRESSION); break;
    case 0x2d: break; /* aarch64: the return address is signed from here, or no more */
    case 0x2e: get_uleb(c); break;
    default: r->bad = true; break;
    }
}

static void do_extended(struct run *r, uint8_t op)
{
    struct cursor *c = &r->c;
    uint64_t reg;
    switch (op) {
    case 0x00: break;
    case 0x01: r->loc = (uintptr_t)get_encoded(c, r->cfi->encoding, 0); break;
    case 0x02: r->loc += get(c, 1) * r->cfi->code_align; break;
    case 0x03: r->loc += get(c, 2) * r->cfi->code_align; break;
    case 0x04: r->loc += get(c, 4) * r->cfi->code_align; break;
    case 0x05: /* offset_extended */
        reg = get_uleb(c);
        set_rule(r, reg, AT_OFFSET, (int64_t)get_uleb(c) * r->cfi->data_align);
        break;
    case 0x06: restore_rule(r, get_uleb(c)); break;
    case 0x07: set_rule(r, get_uleb(c), UNDEFINED, 0); break;
    case 0x08: set_rule(r, get_uleb(c), SAME, 0); break;
    case 0x09: /* register */
        reg = get_uleb(c);
        set_rule(r, reg, IN_REGISTER, (int64_t)get_uleb(c));
        break;
    case 0x0a: remember(r); break;
    case 0x0b: restore(r); break;
    default: do_more(r, op); break;
    }
}

/* Until it comes to an instruction behind pc. */
static bool run_rows(struct run *r, const unsigned char *at, const unsigned char *end)
{
    r->c = (struct cursor){at, end, false};
    while (r->c.at < end && !r->bad && !r->c.bad && r->loc <= r->pc) {
        uint8_t op = (uint8_t)get(&r->c, 1), low = op & 63;
        switch (op >> 6) {
        case 0: do_extended(r, op); break;
        case 1: r->loc += low * r->cfi->code_align; break;
        case 2: set_rule(r, low, AT_OFFSET, (int64_t)get_uleb(&r->c) * r->cfi->data_align); break;
        default: restore_rule(r, low); break;
        }
    }
    return !r->bad && !r->c.bad;
}

/* --- the step ------------------------------------------------------------------------------------------ */

static bool cfa_of(const struct cfi *cfi, const struct row *row, const struct unwind *u,
                   uint64_t *cfa)
{
    if (row->cfa_expression) {
        return evaluate(row->cfa_expression, cfi->insns_end, u, NULL, cfa);
    }
    if (row->cfa_reg >= UNWIND_REGS || !unwind_knows(u, row->cfa_reg)) {
        return false;
    }
    *cfa = u->r[row->cfa_reg] + (uint64_t)row->cfa_offset;
    return true;
}

/* False: it is not known. */
static bool value_of(const struct cfi *cfi, const struct rule *rule, const struct unwind *u,
                     unsigned reg, uint64_t cfa, uint64_t *out)
{
    const unsigned char *expression = cfi->initial + rule->n;
    switch ((enum rule_kind)rule->kind) {
    case SAME: *out = u->r[reg]; return unwind_knows(u, reg);
    case AT_OFFSET: return unwind_load(u, cfa + (uint64_t)(int64_t)rule->n, out);
    case IS_OFFSET: *out = cfa + (uint64_t)(int64_t)rule->n; return true;
    case IN_REGISTER:
        *out = (uint32_t)rule->n < UNWIND_REGS ? u->r[rule->n] : 0;
        return (uint32_t)rule->n < UNWIND_REGS && unwind_knows(u, (unsigned)rule->n);
    case AT_EXPRESSION:
        return evaluate(expression, cfi->insns_end, u, &cfa, out) && unwind_load(u, *out, out);
    case IS_EXPRESSION: return evaluate(expression, cfi->insns_end, u, &cfa, out);
    case UNDEFINED: break;
    }
    return false;
}

bool cfi_step(const struct cfi *cfi, struct unwind *u, uintptr_t pc)
{
    struct run r = {.cfi = cfi, .pc = pc, .loc = 0};
    uint64_t cfa, value;
    if (!run_rows(&r, cfi->initial, cfi->initial_end)) {
        return false;
    }
    r.initial = r.row;
    r.loc = cfi->begin;
    if (!run_rows(&r, cfi->insns, cfi->insns_end) || !cfa_of(cfi, &r.row, u, &cfa)) {
        return false;
    }
    struct unwind caller = {.lo = u->lo, .hi = u->hi, .exact = cfi->signal};
    for (unsigned reg = 0; reg < UNWIND_REGS; reg++) {
        if (value_of(cfi, &r.row.rules[reg], u, reg, cfa, &value)) {
            unwind_set(&caller, reg, value);
        }
    }
    if (!unwind_knows(&caller, cfi->ra)) {
        return false; /* the first frame says so */
    }
    if (r.row.rules[UNWIND_SP].kind == SAME) {
        unwind_set(&caller, UNWIND_SP, cfa);
    }
    unwind_set(&caller, UNWIND_PC, unwind_strip(caller.r[cfi->ra]));
    bool rises = caller.r[UNWIND_SP] > u->r[UNWIND_SP]
                 || (caller.r[UNWIND_SP] == u->r[UNWIND_SP] && u->exact);
    *u = caller;
    return rises || cfi->signal;
}
