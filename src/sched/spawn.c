/* SPDX-License-Identifier: MIT */
/*
 * The beginning and the end of a goroutine.
 *
 * A spawned goroutine is a G with a function and its arguments; it has no stack until it first
 * runs (stack.c says why). When one ends and the next to run has not started yet, the next takes
 * over the stack at once, without a switch: a burst of short goroutines runs like a loop.
 */
#include <errno.h>
#include <stdlib.h>

#include "sched/switch.h"

/* Filled by the stub of pirn_go (arch/.../goargs.S); read before anything else can run. */
extern __thread struct goargs go_args_tls;
__attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread struct goargs go_args_tls;

/* --- spawning ---------------------------------------------------------------------------------- */

/* In the place of the wait group there may be a group, or the record of a pirn_defer. */
#define GROUP_TAG ((uintptr_t)1)
#define DEFER_TAG ((uintptr_t)2)

static inline bool is_group(const struct pirn_wg *wg)
{
    return (uintptr_t)wg & GROUP_TAG;
}

static inline pirn_group *group_of(const struct pirn_wg *wg)
{
    return (pirn_group *)((uintptr_t)wg - GROUP_TAG);
}

static inline bool is_defer(const struct pirn_wg *wg)
{
    return (uintptr_t)wg & DEFER_TAG;
}

static inline struct pirn_defer_ *defer_of(const struct pirn_wg *wg)
{
    return (struct pirn_defer_ *)((uintptr_t)wg - DEFER_TAG);
}

/* The context that a new goroutine gets; NULL: the background. */
static inline struct pirn_ctx *ctx_for(const struct g *creator, const pirn_attr *attr,
                                       const struct pirn_wg *wg)
{
    if (attr && attr->ctx) {
        return attr->ctx == pirn_ctx_background() ? NULL : attr->ctx;
    }
    if (is_group(wg)) {
        return group_of(wg)->ctx_;
    }
    return creator && creator->extra ? creator->extra->ctx : NULL;
}

static int set_attr(struct g *gp, const pirn_attr *attr)
{
    if (!attr->name && !(attr->flags & PIRN_ATTR_FP_MODES)) {
        return 0;
    }
    struct gextra *x = g_extra(gp);
    if (!x) {
        return -ENOMEM;
    }
    if (attr->name) {
        fmt(x->name, sizeof x->name, "%s", attr->name);
    }
    if (attr->flags & PIRN_ATTR_FP_MODES) {
        gp->flags |= G_FP_MODES;
        x->fp_modes = arch_fp_modes(); /* inherited from the spawner */
    }
    return 0;
}

/* Instrumented frames are too large for a dense stack; and see program.c. */
static COLD int not_dense(void)
{
    static at_u32 said;
    if (!TOOL_BIG_FRAMES && !at_xchg(&said, 1, RELAXED)) {
        say("pirn: dense stacks need a program that is linked with -Wl,-z,now: they are guarded "
            "ones "
            "here\n");
    }
    return STACK_DENSE;
}

static int class_of(const pirn_attr *attr)
{
    int class = attr && attr->stack_size ? stack_class(attr->stack_size) : sched.class;
    return unlikely(class >= 0 && class < STACK_DENSE && sched.no_dense) ? not_dense() : class;
}

static inline struct p *p_of(struct m *mp)
{
    return mp ? mp->p : NULL;
}

/* Makes the G; what it needs later is promised now. mp is NULL on a foreign thread. */
static int make(struct m *mp, const pirn_attr *attr, const struct gstart *start, uint16_t flags,
                struct pirn_ctx *ctx, struct g **out)
{
    int class = class_of(attr);
    if (class < 0) {
        return class;
    }
    if (unlikely(stack_promise(p_of(mp), class))) {
        return -ENOMEM;
    }
    struct g *gp = g_alloc(p_of(mp));
    if (unlikely(!gp)) {
        stack_unpromise(p_of(mp), class);
        return -ENOMEM;
    }
    gp->class = (uint8_t) class;
    gp->flags = flags;
    gp->id = unlikely(flags & G_MAIN) ? 1 : g_new_id(p_of(mp));
    gp->start.fn = start->fn;
    gp->start.slot[0] = start->slot[0];
    if (unlikely(!(flags & G_SIMPLE))) {
        gp->start = *start;
    }
    if (unlikely((attr && set_attr(gp, attr)) || (ctx && !g_extra(gp)))) {
        stack_unpromise(p_of(mp), class);
        g_free(p_of(mp), gp);
        return -ENOMEM;
    }
    if (ctx) {
        ctx_ref(ctx);
        gp->extra->ctx = ctx;
    }
    *out = gp;
    return 0;
}

static int spawn_entered(const pirn_attr *attr, const struct gstart *start, uint16_t flags,
                         const char *site, struct pirn_wg *wg)
{
    struct g *gp;
    int err = make(NULL, attr, start, flags, ctx_for(NULL, attr, wg), &gp);
    if (!err) {
        gp->site = site;
        gp->creator = 0;
        gp->done_wg = wg;
        tool_ready(&gp->tool);
        lock(&sched.lock);
        at_count(&sched.counts.spawned, 1);
        at_store(&gp->status, G_RUNNABLE, RELAXED);
        globq_put_locked(&sched.globq, gp);
        unlock(&sched.lock);
        wake_for(NULL);
    }
    return err;
}

static int spawn_foreign(const pirn_attr *attr, const struct gstart *start, uint16_t flags,
                         const char *site, struct pirn_wg *wg)
{
    if (!foreign_enter()) {
        return -EAGAIN;
    }
    int err = spawn_entered(attr, start, flags, site, wg);
    foreign_leave();
    return err;
}

static inline void launch(struct m *mp, struct g *gp, const char *site, struct pirn_wg *wg)
{
    gp->site = site;
    gp->creator = likely(mp->curg) ? mp->curg->id : 0;
    gp->done_wg = wg;
    tool_ready(&gp->tool);
    at_count(&mp->p->counts.spawned, 1);
    at_store(&gp->status, G_RUNNABLE, RELAXED);
    runq_submit(mp->p, gp, true);
}

int spawn(const pirn_attr *attr, const struct gstart *start, uint16_t flags, const char *site,
          struct pirn_wg *wg)
{
    struct m *mp = enter();
    if (unlikely(!mp)) {
        return spawn_foreign(attr, start, flags, site, wg);
    }
    struct g *gp;
    int err = make(mp, attr, start, flags, ctx_for(mp->curg, attr, wg), &gp);
    if (!err) {
        labels_inherit(gp, mp->curg);
        launch(mp, gp, site, wg);
    }
    leave();
    return err;
}

int spawn_by_runtime(const struct gstart *start, const char *site, bool entered)
{
    struct m *mp = getm();
    struct g *gp;
    if (!mp) {
        return entered ? spawn_entered(NULL, start, G_SIMPLE, site, NULL) : -EAGAIN;
    }
    int err = make(mp, NULL, start, G_SIMPLE, NULL, &gp);
    if (!err) {
        launch(mp, gp, site, NULL);
    }
    return err;
}

/* The common case, spelled out: one pointer to pass, default stack. */
static inline int spawn_simple(void (*fn)(void *), void *arg, const char *site, struct pirn_wg *wg)
{
    struct m *mp = getm();
    struct g *gp;
    if (unlikely(!mp || mp->curg->extra)) {
        struct gstart start = {.fn = (void (*)(void))fn, .slot = {(uintptr_t)arg}};
        return spawn(NULL, &start, G_SIMPLE, site, wg);
    }
    enter();
    if (unlikely(stack_promise(mp->p, sched.class))) {
        leave();
        return -ENOMEM;
    }
    if (unlikely(!(gp = g_alloc(mp->p)))) {
        stack_unpromise(mp->p, sched.class);
        leave();
        return -ENOMEM;
    }
    gp->class = (uint8_t)sched.class;
    gp->flags = G_SIMPLE;
    gp->id = g_new_id(mp->p);
    gp->start.fn = (void (*)(void))fn;
    gp->start.slot[0] = (uintptr_t)arg;
    launch(mp, gp, site, wg);
    leave();
    return 0;
}

/* wg was told of one more. */
static void tell_none(struct pirn_wg *wg)
{
    if (wg && !is_group(wg)) {
        pirn_wg_done(wg);
    } else if (wg) {
        group_none(group_of(wg));
    }
}

COLD static _Noreturn void cant_go(int err, struct pirn_wg *wg)
{
    switch (err) {
    case -EAGAIN:
        tell_none(wg);
        misuse("pirn_go: no runtime runs (call it below pirn_run, or after pirn_start)");
    case -ENOMEM: fatal("out of memory: cannot make a goroutine (%u exist)", g_count());
    default: fatal("go of nil func value");
    }
}

EXPORT int pirn_spawn_n(const pirn_attr *attr, size_t size, void (*fn)(void *), void *arg)
{
    not_forked();
    pirn_attr known = {0};
    if (!fn) {
        return -EINVAL;
    }
    if (attr) {
        int err = versioned_copy(&known, sizeof known, attr, size);
        if (err || (known.flags & ~(uint64_t)PIRN_ATTR_FP_MODES)) {
            return err ? err : -EINVAL;
        }
    }
    struct gstart start = {.fn = (void (*)(void))fn, .slot = {(uintptr_t)arg}};
    return spawn(attr ? &known : NULL, &start, G_SIMPLE | G_SITE_PC, __builtin_return_address(0),
                 NULL);
}

EXPORT void pirn_go_simple_(void (*fn)(void *), void *arg, const char *site, struct pirn_wg *wg)
{
    not_forked();
    if (wg && is_defer(wg)) {
        struct gstart start = {.fn = (void (*)(void))fn, .slot = {(uintptr_t)arg}};
        defer_link(defer_of(wg), &start, G_SIMPLE, site);
        return;
    }
    if (wg && !is_group(wg)) {
        pirn_wg_add(wg, 1);
    }
    int err = likely(fn) ? spawn_simple(fn, arg, site, wg) : -EINVAL;
    if (unlikely(err)) {
        cant_go(err, wg);
    }
}

EXPORT void pirn_go_captured_(void (*fn)(void), unsigned flags, const char *site,
                              struct pirn_wg *wg)
{
    not_forked();
    struct gstart start = {.fn = fn};
    uint16_t gflags = 0;
    unsigned n = flags >> 8;
    for (unsigned i = 0; i < n && i < GO_ARGS_MAX; i++) {
        start.slot[i] = go_args_tls.i[i];
    }
    if (flags & GO_HAS_FLOAT) {
        /* n arguments, of which f are floating: the first n - f slots are integers. */
        gflags = G_FLOATS;
        for (unsigned i = 0; i < (flags >> 4 & 15); i++) {
            memcpy(&start.slot[GO_ARGS_MAX - 1 - i], &go_args_tls.f[i], sizeof(uint64_t));
        }
    }
    if (wg && is_defer(wg)) {
        defer_link(defer_of(wg), &start, gflags, site);
        return;
    }
    if (wg && !is_group(wg)) {
        pirn_wg_add(wg, 1);
    }
    int err = fn ? spawn(NULL, &start, gflags, site, wg) : -EINVAL;
    if (unlikely(err)) {
        cant_go(err, wg);
    }
}

/* --- running ----------------------------------------------------------------------------------- */

/* *fp: the frame of the caller, for as long as the call lasts. */
NOINLINE uint64_t call_captured(const struct gstart *start, uint16_t flags, void **fp)
{
    struct goargs args;
    for (int i = 0; i < GO_ARGS_MAX; i++) {
        args.i[i] = start->slot[i];
        memcpy(&args.f[i], &start->slot[GO_ARGS_MAX - 1 - i], sizeof(double));
    }
    return go_call_args(&args, start->fn, flags & G_FLOATS ? GO_HAS_FLOAT : 0, fp);
}

static inline void begin_run(struct g *gp)
{
    if (unlikely(sched.move)) {
        gp->run.m = getm();
    }
}

/*
 * The second line of a G changes its meaning here: from what to call to what a running one has,
 * each field of which is set before it is read. (The two words are read one by one as they were
 * written: a wider load would have to wait until the stores have reached the cache.)
 */
static int64_t call(struct g *gp)
{
    if (likely(gp->flags & G_SIMPLE)) {
        void (*fn)(void *) = (void (*)(void *))gp->start.fn;
        void *arg = (void *)(uintptr_t)gp->start.slot[0];
        begin_run(gp);
        fn(arg);
        return 0;
    } else {
        struct gstart start = gp->start;
        void *fp;
        begin_run(gp);
        return (int64_t)call_captured(&start, gp->flags, &fp);
    }
}

/*
 * Tells the wait group of pirn_wg_go. If that wakes one goroutine and nobody sits in runnext, it
 * would go there and be taken out again at once: it is returned to run next.
 */
static struct g *tell_wg(struct p *pp, struct g *ended)
{
    struct pirn_wg *wg = ended->done_wg;
    struct waiter *first = unlikely(is_group(wg))
                               ? group_done_at_end(group_of(wg), (int)ended->run.result)
                               : wg_done_at_end(wg);
    if (!first) {
        return NULL;
    }
    struct g *gp = first->g;
    if (first->next || !gp || at_load(&pp->runq.next, RELAXED) || at_load(&pp->slice_over, RELAXED)
        || at_load(&pp->retire, RELAXED) || sched.move) {
        waiter_ready_list(first);
        return NULL;
    }
    make_runnable(gp);
    return gp;
}

/* On the far side of the switch: the stack has been left. */
static void commit_end(struct m *mp, struct g *gp)
{
    tool_stack_end(&gp->tool);
    stack_give_owner(mp->p, gp);
    stack_unpromise(mp->p, gp->class); /* after the slot: invariant 2 of stack.c */
    g_free(mp->p, gp);
}

/* gp has ended: what runs next on this thread. */
static inline struct g *end(struct m *mp, struct g *gp)
{
    struct p *pp = mp->p;
    /* [C1] in g.c */
    at_store(&pp->counts.ended, at_load(&pp->counts.ended, RELAXED) + 1, RELEASE);
    mp->commit = commit_end;
    mp->commit_g = gp;
    if (unlikely(gp->flags & G_BOUND)) {
        mp->ends = true;
        mp->lockedg = NULL;
    }
    struct g *next = gp->done_wg ? tell_wg(pp, gp) : NULL;
    return next ? next : next_runnable(mp);
}

static inline bool can_take_over(const struct g *next, const struct g *gp)
{
    return TOOL_TAKEOVER && !next->stack_hi && next->class == gp->class
           && !((next->flags | gp->flags) & (G_FP_MODES | G_UNGUARDED | G_BOUND));
}

static inline void take_over(struct m *mp, struct g *next, struct g *gp)
{
    next->stack_hi = gp->stack_hi;
    next->tool = gp->tool;
    gp->stack_hi = NULL;
    mp->commit = NULL;
    stack_unpromise(mp->p, gp->class);
    g_free(mp->p, gp);
    at_store(&next->status, G_RUNNING, RELAXED);
    mp->curg = next;
    at_count(&mp->p->counts.switches, 1);
}

/* One that has no stack yet, and can't have this one, starts from g0; so does one of another thread, and
 * any if this thread ends. */
static inline struct g *or_g0(struct m *mp, struct g *next)
{
    if (next && next->stack_hi && !(next->flags & G_BOUND) && !mp->ends) {
        return next;
    }
    mp->nextg = next;
    return &mp->g0;
}

/*
 * The first frame of a stack: runs goroutines until one ends whose successor has a stack of its
 * own, whose sp it returns. Not instrumented, for it returns on behalf of nobody.
 */
__attribute__((no_sanitize("address", "thread"))) void *g_main(void)
{
    struct m *mp = switch_finish();
    for (struct g *gp = mp->curg;; gp = mp->curg) {
        *g_top(gp) = (struct gtop){0};
        tool_goroutine_begin(&gp->tool, gp->id, gp->flags & G_SITE_PC ? NULL : gp->site);
        leave();
        int64_t result = call(gp);
        if (unlikely(gp->extra)) {
            g_extra_end(gp);
        }
        mp = enter();
        gp->run.result = result;
        struct g *next = end(mp, gp);
        if (next && can_take_over(next, gp)) {
            take_over(mp, next, gp);
            continue;
        }
        next = or_g0(mp, next);
        switch_begin(mp, gp, next, true);
        return next->sp;
    }
}

/* The goroutine ends in the midst of its calls; it has run what it had deferred. exits: by pirn_exit. */
void g_end_here(bool exits)
{
    struct m *mp = getm();
    struct g *gp = mp->curg;
    if (exits && gp->flags & G_MAIN) {
        at_store(&sched.main_exited, 1, RELAXED);
        gp->done_wg = NULL; /* pirn_run goes on waiting */
    }
    tool_unfinished(&gp->tool);
    if (gp->extra) {
        g_extra_end(gp);
    }
    mp = enter();
    gp->run.result = 0;
    struct g *next = or_g0(mp, end(mp, gp));
    switch_begin(mp, gp, next, true);
    arch_switch(&gp->sp, next->sp);
    throw("spawn: goroutine %lu ran on after its end", gp->id);
}
