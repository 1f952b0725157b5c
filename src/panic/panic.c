/* SPDX-License-Identifier: MIT */
/*
 * Panics, pirn_try, pirn_recover, pirn_exit: panic.h has the design.
 *
 * The panics that are under way are a list, the newest first; it grows when a deferred call panics, and is
 * cut back by the pirn_try inside which they were raised. A pirn_exit is in it too: it is a panic that
 * nobody catches. What happens at the end of the list of marks, or at a pirn_try, is decided by the newest, and
 * by whether there is a pirn_exit among those raised since.
 *
 * A panic that is recovered goes on taking off marks, only that no other call recovers it: C has no way to
 * return from the function that has deferred the call, as Go does.
 *
 * Memory: a panic is malloc'ed, with its text. If there is none, some are kept in reserve.
 *
 * Where frames can be unwound (unwind.c) they are, if it is certain that the goroutine does not go on in
 * them: there is a pirn_try, or a pirn_exit, or the panic was recovered. Else it may yet be reported,
 * and deferred calls are called from below all frames, which stay for the report.
 */
#include <stdio.h>
#include <stdlib.h>

#include "panic/panic.h"

/* --- making them ------------------------------------------------------------------------------------- */

#define SPARES 8
#define SPARE_TEXT 512
#define ROOM_TO_UNWIND 4096 /* what libgcc takes, and a deferred call or two */

static struct spare {
    at_u32 used;
    union {
        struct pirn_panic_info panic;
        char room[sizeof(struct pirn_panic_info) + SPARE_TEXT];
    } CACHE_ALIGNED;
} spares[SPARES];

static struct pirn_panic_info *take_spare(void)
{
    for (int i = 0; i < SPARES; i++) {
        uint32_t unused = 0;
        if (at_cas(&spares[i].used, &unused, 1, ACQUIRE, RELAXED)) { /* pairs with panic_free */
            return &spares[i].panic;
        }
    }
    fatal("out of memory: cannot make a panic");
}

static struct pirn_panic_info *make(size_t *room)
{
    struct pirn_panic_info *p = malloc(sizeof *p + *room);
    bool spare = !p;
    if (spare) {
        p = take_spare();
        *room = min_u64(*room, SPARE_TEXT);
    }
    memset(p, 0, sizeof *p);
    p->spare = spare;
    p->message = p->text;
    return p;
}

static void panic_free(struct pirn_panic_info *p)
{
    if (p->spare) {
        struct spare *s = (struct spare *)(void *)((char *)p - offsetof(struct spare, panic));
        at_store(&s->used, 0, RELEASE);
    } else {
        free(p);
    }
}

/* printf needs more than a dense stack has. */
static bool is_dense(void)
{
    struct m *mp = getm();
    return mp && mp->curg && mp->curg->class < STACK_DENSE;
}

static struct pirn_panic_info *make_text_small(const char *format, va_list ap)
{
    size_t room = SPARE_TEXT;
    struct pirn_panic_info *p = make(&room);
    fmt_v(p->text, room, format, ap);
    return p;
}

static NOINLINE struct pirn_panic_info *make_text(const char *format, va_list ap)
{
    if (is_dense()) {
        return make_text_small(format, ap);
    }
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t room = n < 0 ? 1 : (size_t)n + 1;
    struct pirn_panic_info *p = make(&room);
    p->text[0] = '\0';
    vsnprintf(p->text, room, format, ap);
    return p;
}

/* Those that were raised after `since`, but for `kept`. */
static void free_since(struct gtop *top, struct pirn_panic_info *since,
                       struct pirn_panic_info *kept)
{
    for (struct pirn_panic_info *p = top->panics, *next; p != since; p = next) {
        next = p->link;
        if (p != kept) {
            panic_free(p);
        }
    }
    top->panics = since;
}

/* The goroutine was dropped by the stop of the runtime. */
void panic_forget(struct g *gp)
{
    if (gp->stack_hi) {
        free_since(g_top(gp), NULL, NULL);
    }
}

/* --- running what is deferred ------------------------------------------------------------------------ */

struct attempt {             /* a pirn_try, in its frame */
    struct pirn_defer_ mark; /* first */
    jmp_buf jump;
    struct pirn_panic_info *panics; /* those from before */
    struct running *running;
    struct pirn_defer_ *unwinds;
    struct cxx_globals cxx;
};

static struct pirn_panic_info *exit_since(struct pirn_panic_info *p,
                                          const struct pirn_panic_info *since)
{
    while (p != since && !p->exits) {
        p = p->link;
    }
    return p != since ? p : NULL;
}

static bool has_try(const struct pirn_defer_ *d)
{
    while (d && d->kind_ != MARK_TRY) {
        d = d->outer_;
    }
    return d;
}

/* Calls it, in the name of the newest panic. Returns also if it has panicked in turn. */
NOINLINE void panic_run(struct gtop *top, struct pirn_defer_ *d, bool unwinds)
{
    struct running r = {.before = top->running, .panic = top->panics, .unwinds = unwinds};
    struct pirn_defer_ *next_unwound = top->unwinds;
    r.name = d->kind_ == MARK_DEFER_NAMED ? d->site_ : NULL;
    mark_drop(top, d);
    mark_set(top, &r.mark, MARK_RUNNING, __builtin_frame_address(0), __builtin_frame_address(0));
    top->running = &r;
    top->unwinds = NULL;
    if (_setjmp(r.jump) == 0) {
        defer_call(d, &r.fp);
    }
    mark_drop(top, &r.mark);
    top->running = r.before;
    top->unwinds = next_unwound;
}

/* One mark less. */
void panic_step(struct gtop *top, struct pirn_defer_ *d, bool unwinds)
{
    switch (d->kind_) {
    case MARK_TRY: longjmp(((struct attempt *)(void *)d)->jump, 1);
    case MARK_RUNNING: {
        struct running *r = (struct running *)(void *)d;
        if (r->unwinds || has_try(d)) {
            longjmp(r->jump, 1);
        }
        mark_drop(top, d); /* its frames stay, for the report */
        top->running = r->before;
        break;
    }
    default: panic_run(top, d, unwinds);
    }
}

/* Nothing more is deferred. */
void panic_at_bottom(struct gtop *top)
{
    struct pirn_panic_info *p = top->panics;
    bool exits = exit_since(p, NULL);
    struct m *mp = getm();
    if (!p->exits && !p->recovered) {
        panic_report(p);
    }
    if (!mp || !mp->curg) {
        fatal("a panic was recovered outside goroutines, and there is no pirn_try to return to: %s",
              p->message);
    }
    free_since(top, NULL, NULL);
    g_end_here(exits);
}

static bool must_unwind(const struct gtop *top, bool is_caught)
{
    const struct pirn_panic_info *p = top->panics;
    bool goes = is_caught || p->recovered || exit_since(top->panics, NULL);
    for (; p && goes; p = p->link) {
        goes = !p->fault;
    }
    return goes;
}

/* On small stacks, and at the end of others, there is none. */
static bool has_room_to_unwind(void)
{
    const struct m *mp = getm();
    const struct g *gp = mp ? mp->curg : NULL;
    const char *here = __builtin_frame_address(0), *lo = gp ? stack_lo(gp) : NULL;
    return !gp || here < lo || (size_t)(here - lo) >= ROOM_TO_UNWIND;
}

static _Noreturn void go_on(struct gtop *top)
{
    bool is_caught = has_try(top->defers);
    for (;;) {
        if (unwind_possible && has_room_to_unwind() && must_unwind(top, is_caught)) {
            unwind_frames(top, top->panics);
        }
        struct pirn_defer_ *d = top->defers;
        if (!d) {
            panic_at_bottom(top);
        }
        panic_step(top, d, false);
    }
}

/* sp: no live mark is below. Between pirn_blocking_begin and _end there is no way out. */
static _Noreturn void raise_panic(struct pirn_panic_info *p, const void *sp)
{
    struct gtop *top = top_here();
    struct m *mp = getm();
    marks_drop_below(top, sp);
    p->link = top->panics;
    p->sp = sp;
    top->panics = p;
    if (mp && mp->curg && at_load(&mp->where, RELAXED) != M_USER) {
        panic_report(p);
    }
    go_on(top);
}

/* --- calls -------------------------------------------------------------------------------------------- */

/* Where the arguments lie that are not passed in registers: the sp of the caller. */
#if defined(__x86_64__)
#define CALLERS_SP(ap) ((ap)->overflow_arg_area)
#else
#define CALLERS_SP(ap) ((ap).__stack)
#endif

EXPORT void pirn_panic(const char *format, ...)
{
    va_list ap;
    stop_point();
    va_start(ap, format);
    const void *sp = CALLERS_SP(ap);
    struct pirn_panic_info *p = make_text(format ? format : "panic called with nil argument", ap);
    va_end(ap);
    raise_panic(p, sp);
}

/* In the runtime, and on g0, nobody could go on. */
static void raise_misuse(const char *format, va_list ap)
{
    struct m *mp = getm();
    if (!mp || (mp->curg && at_load(&mp->where, RELAXED) == M_USER)) {
        raise_panic(make_text_small(format, ap), __builtin_frame_address(0));
    }
}

/* sp: of the code that the signal has interrupted. */
void panic_by_fault(const void *sp, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    struct pirn_panic_info *p = make_text_small(format, ap);
    va_end(ap);
    p->fault = true;
    raise_panic(p, sp);
}

static struct cxx_globals *cxx_here(void)
{
    struct m *mp = getm();
    return mp && mp->curg ? mp->cxx : cxx_globals();
}

/* A panic has come to it: what it was, or NULL if it was recovered. One that is on its way out does not
 * return. */
static NOINLINE struct pirn_panic_info *caught(struct gtop *top, struct attempt *t)
{
    struct pirn_panic_info *p = top->panics, *exits = exit_since(p, t->panics);
    struct cxx_globals *cxx = cxx_here();
    mark_drop(top, &t->mark);
    top->running = t->running;
    top->unwinds = t->unwinds;
    if (cxx) {
        *cxx = t->cxx; /* of frames that were not unwound */
    }
    if (exits) {
        free_since(top, t->panics, exits);
        exits->link = t->panics;
        top->panics = exits;
        go_on(top);
    }
    p = p->recovered ? NULL : p;
    free_since(top, t->panics, p);
    return p;
}

EXPORT NOINLINE pirn_panic_info *pirn_try(void (*fn)(void *), void *arg)
{
    not_forked();
    struct gtop *top = top_here();
    struct attempt t = {.panics = top->panics, .running = top->running, .unwinds = top->unwinds};
    struct cxx_globals *cxx = cxx_here();
    if (cxx) {
        t.cxx = *cxx;
    }
    mark_set(top, &t.mark, MARK_TRY, __builtin_frame_address(0), __builtin_frame_address(0));
    top->unwinds = NULL;
    if (_setjmp(t.jump)) {
        return caught(top_here(), &t);
    }
    fn(arg);
    top = top_here();
    mark_drop(top, &t.mark);
    top->unwinds = t.unwinds;
    return NULL;
}

EXPORT const char *pirn_panic_message(const pirn_panic_info *p)
{
    not_forked();
    return p->message;
}

EXPORT void pirn_panic_free(pirn_panic_info *p)
{
    not_forked();
    if (p) {
        panic_free(p);
    }
}

static bool returns_to_caller(void *const *frame)
{
    return (((uintptr_t)frame[1] ^ (uintptr_t)go_call_returns) & PC_BITS) == 0;
}

static const char *recover(struct running *r)
{
    struct pirn_panic_info *p = r->panic;
    if (p->recovered || p->exits || top_here()->panics != p) {
        return NULL;
    }
    p->recovered = true;
    return p->message;
}

/* The frame of a function that the panic has called. */
static bool is_called(const struct running *r, void *const *frame)
{
    tool_looks_at(frame, 2 * sizeof *frame);
    return frame[0] == r->fp && returns_to_caller(frame);
}

/* The frame of who has called it, if that has set up one. */
static void *const *outer_frame(const struct running *r, void *const *frame)
{
    void *const *outer = frame[0];
    return outer > frame && (void *)outer < r->fp ? outer : NULL;
}

/* frame: of the function that asks: it must be the one that was called; one that was inlined there has
 * another name. A lambda of C++ is called by a function that the compiler has made. */
EXPORT const char *pirn_recover_(void *frame, const char *function)
{
    not_forked();
    struct running *r = top_here()->running;
    void *const *f = frame;
    if (!r || (r->name && strcmp(function, r->name) != 0)) {
        return NULL;
    }
    if (!is_called(r, f) && strcmp(function, "operator()") == 0) {
        f = outer_frame(r, f);
    }
    return f && is_called(r, f) ? recover(r) : NULL;
}

#undef pirn_recover
/* By its address, or from another language. Its caller may have no frame pointer of its own. */
EXPORT const char *pirn_recover(void)
{
    not_forked();
    struct running *r = top_here()->running;
    void *const *f = __builtin_frame_address(0);
    tool_looks_at(f, 2 * sizeof *f);
    if (!r || returns_to_caller(f)) {
        return NULL;
    }
    if (f[0] != r->fp && (!(f = outer_frame(r, f)) || !is_called(r, f))) {
        return NULL;
    }
    return recover(r);
}

EXPORT void pirn_exit(void)
{
    struct m *mp = stop_point();
    size_t room = 0;
    if (!mp) {
        misuse("pirn_exit outside a goroutine");
    }
    if (at_load(&mp->where, RELAXED) != M_USER) {
        enter_twice(mp);
    }
    struct gtop *top = top_here();
    marks_drop_below(top, __builtin_frame_address(0));
    if (!top->defers && !top->panics && !unwind_possible) {
        g_end_here(true);
    }
    struct pirn_panic_info *p = make(&room);
    p->exits = true;
    p->message = "pirn_exit";
    raise_panic(p, __builtin_frame_address(0));
}

__attribute__((constructor(104))) static void panic_init(void)
{
    misuse_raise = raise_misuse;
}

/* The runtime starts: what was loaded since may have brought an unwinder. */
void panic_start(void)
{
    unwind_start();
}
