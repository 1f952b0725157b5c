/* SPDX-License-Identifier: MIT */
/*
 * The list of deferred calls: panic.h has the design.
 *
 * A record lies in the block that defers, and is a variable with a cleanup: when the block is left in an
 * ordinary way the compiler calls pirn_defer_end_. That runs records which are still in the list, and no
 * others: a panic may have run it before, and a jump past the declaration leaves a record that was never
 * set (gcc compiles that). The mark of a record in the list is made of its own address, so memory that
 * holds anything else, a copy of an older record too, is none.
 *
 * What a longjmp has left behind is found by its place: a record deeper in the stack than the function
 * that runs now is nobody's any more, and so is one at the very place of a record that is set now. Its memory may have been used since, so it can't say which
 * record comes next; the list is then gone through from its other end. A record left behind in a place
 * where another function's frame is now is not told from that function's own, unless it was overwritten.
 */
#include "panic/panic.h"

#define KEY ((uintptr_t)0x5d0e7f3a9c1b6e42u)
/* A thread's stack is not known to us: further below than this is another. */
#define NEAR ((size_t)1 << 20)

static __thread struct gtop thread_top __attribute__((tls_model("initial-exec")));

/* It stays where it is, whatever thread the goroutine goes on on. */
struct gtop *top_here(void)
{
    struct m *mp = getm();
    return likely(mp && mp->curg) ? g_top(mp->curg) : &thread_top;
}

static uintptr_t mark_of(const struct pirn_defer_ *d)
{
    return (uintptr_t)d ^ KEY;
}

/* --- what is left behind --------------------------------------------------------------------------- */

static bool is_below(const struct gtop *top, const void *addr, const void *sp)
{
    struct m *mp = getm();
    const char *lo = (const char *)sp - NEAR;
    if (mp && mp->curg) {
        lo = stack_lo(mp->curg);
        if (sp > (const void *)top) {
            return false; /* not on its own stack: who knows */
        }
    }
    return addr < sp && addr >= (const void *)lo;
}

/* Its memory may have become anything. */
__attribute__((no_sanitize("address"))) static bool is_set(const struct pirn_defer_ *d)
{
    tool_looks_at(&d->mark_, sizeof d->mark_);
    return d->mark_ == mark_of(d);
}

/* The record, or its function's frame: with ASan a record may lie elsewhere. */
__attribute__((no_sanitize("address"))) static bool
is_left(const struct gtop *top, const struct pirn_defer_ *d, const void *sp)
{
    tool_looks_at(d, sizeof *d);
    return is_below(top, d, sp) || !is_set(d) || is_below(top, d->frame_, sp);
}

/* From the outermost: up to the first that is left behind, or is this one. */
__attribute__((no_sanitize("address"))) static void drop_from(struct gtop *top, const void *sp,
                                                              const struct pirn_defer_ *upto)
{
    struct pirn_defer_ *last = NULL;
    for (struct pirn_defer_ *d = top->outermost; d && d != upto && !is_left(top, d, sp);) {
        last = d;
        d = d == top->defers ? NULL : d->inner_;
    }
    top->defers = last;
    *(last ? &last->inner_ : &top->outermost) = NULL;
}

void marks_drop_below(struct gtop *top, const void *sp)
{
    struct pirn_defer_ *d = top->defers;
    if (d && unlikely(is_left(top, d, sp))) {
        drop_from(top, sp, NULL);
    }
}

/* --- the list ---------------------------------------------------------------------------------------- */

void mark_set(struct gtop *top, struct pirn_defer_ *d, enum mark_kind kind, void *frame,
              const void *sp)
{
    if (unlikely(is_set(d) && top->defers)) {
        drop_from(top, sp, d); /* it lay here when a longjmp left it */
    } else {
        marks_drop_below(top, sp);
    }
    struct pirn_defer_ *outer = top->defers;
    d->kind_ = kind;
    d->frame_ = frame;
    d->mark_ = mark_of(d);
    d->inner_ = NULL;
    d->outer_ = outer;
    *(outer ? &outer->inner_ : &top->outermost) = d;
    top->defers = d;
}

void mark_drop(struct gtop *top, struct pirn_defer_ *d)
{
    struct pirn_defer_ *outer = d->outer_;
    top->defers = outer;
    *(outer ? &outer->inner_ : &top->outermost) = NULL;
    d->mark_ = 0;
}

void defer_link(struct pirn_defer_ *d, const struct gstart *start, uint16_t flags, const char *site)
{
    const void *sp = d->outer_; /* of the caller: see the macro */
    d->site_ = site;
    d->flags_ = flags;
    d->fn_ = start->fn;
    memcpy(d->slot_, start->slot, sizeof d->slot_);
    mark_set(top_here(), d, d->kind_ ? MARK_DEFER_NAMED : MARK_DEFER, d->frame_, sp);
}

/* --- calls ------------------------------------------------------------------------------------------- */

/* fp: for pirn_recover; NULL: nobody asks. */
void defer_call(struct pirn_defer_ *d, void **fp)
{
    struct gstart start = {.fn = d->fn_};
    if (unlikely(!d->fn_)) {
        misuse("runtime error: invalid memory address or nil pointer dereference");
    }
    if (!fp && d->flags_ & G_SIMPLE) {
        ((void (*)(void *))d->fn_)((void *)(uintptr_t)d->slot_[0]);
        return;
    }
    void *nobody;
    memcpy(start.slot, d->slot_, sizeof start.slot);
    call_captured(&start, (uint16_t)d->flags_, fp ? fp : &nobody);
}

/* The block is left: by the program, or by who unwinds its frame for a panic. */
EXPORT void pirn_defer_end_(struct pirn_defer_ *d)
{
    not_forked();
    if (!is_set(d)) {
        return;
    }
    struct gtop *top = top_here();
    if (unlikely(top->unwinds == d)) {
        panic_run(top, d, true);
        top->unwinds = top->defers;
        return;
    }
    mark_drop(top, d);
    defer_call(d, NULL);
}

void defer_begin(struct pirn_defer_ *d, void (*fn)(void *), void *arg, void *frame)
{
    struct gstart start = {.fn = (void (*)(void))fn, .slot = {(uintptr_t)arg}};
    d->kind_ = 0;
    d->frame_ = frame;
    d->outer_ = frame;
    d->mark_ = 0;
    defer_link(d, &start, G_SIMPLE, NULL);
}

void defer_end(struct pirn_defer_ *d)
{
    mark_drop(top_here(), d);
    defer_call(d, NULL);
}

void defer_cancel(struct pirn_defer_ *d)
{
    mark_drop(top_here(), d);
}
