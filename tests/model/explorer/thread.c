/* SPDX-License-Identifier: MIT */
/*
 * Model threads: coroutines of the one kernel thread, switched by pirn's own arch_switch. Goroutines
 * that the modelled source switches to are just more stacks of the same kernel thread.
 *
 * Each execution builds the first frame of every stack anew, so a thread that was left in the middle
 * of the last one needs no unwinding.
 */
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "explorer/explorer.h"

static void *main_sp;
static struct thread outside; /* setup and finish */
static struct {
    void *addr;
    size_t size;
} tls[4];
static int ntls;

void model_thread_local(void *addr, size_t size)
{
    tls[ntls].addr = addr;
    tls[ntls++].size = size;
}

bool is_thread_local(const volatile void *addr)
{
    for (int i = 0; i < ntls; i++) {
        if (tls[i].addr == addr) {
            return true;
        }
    }
    return false;
}

int model_self(void)
{
    return ex.cur;
}

static void tls_save(struct thread *t)
{
    for (int i = 0; i < ntls; i++) {
        memcpy(&t->tls[i], tls[i].addr, tls[i].size);
    }
}

static void tls_load(const struct thread *t)
{
    for (int i = 0; i < ntls; i++) {
        memcpy(tls[i].addr, &t->tls[i], tls[i].size);
    }
}

void switch_thread(int to)
{
    if (to == ex.cur) {
        return;
    }
    struct thread *from = &ex.threads[ex.cur];
    tls_save(from);
    ex.cur = to;
    tls_load(&ex.threads[to]);
    arch_switch(&from->sp, ex.threads[to].sp);
}

_Noreturn void leave_execution(enum end end)
{
    void *nowhere;
    ex.end = end;
    arch_switch(&nowhere, main_sp);
    abort();
}

/* What arch_start calls, where a model has no goroutines. */
void *g_main(void);
__attribute__((weak)) void *g_main(void)
{
    abort();
}

/* The first frame of every stack. */
static void thread_main(void)
{
    ex.model->threads[ex.cur]();
    ex.threads[ex.cur].done = true;
    point();
    abort();
}

/* A stack as arch_switch leaves it, which it will resume at thread_main. */
static void *first_frame(char *stack)
{
    void **frame = (void **)(void *)(stack + STACK_SIZE - 256);
    memset(frame, 0, 256);
    frame[ARCH_FRAME_PC] = (void *)thread_main;
    return frame;
}

void threads_start(void)
{
    ex.nthreads = 0;
    tls_save(&outside);
    for (int i = 0; i < NT && ex.model->threads[i]; i++) {
        struct thread *t = &ex.threads[i];
        char *stack = t->stack ? t->stack : aligned_alloc(64, STACK_SIZE);
        memset(t, 0, sizeof *t);
        t->stack = stack;
        t->sp = first_frame(stack);
        t->op.kind = OP_START;
        t->op.loc = -1;
        t->cur.clk[i] = 1;
        tls_save(t);
        ex.nthreads++;
    }
}

void threads_run(int first)
{
    ex.cur = first;
    tls_load(&ex.threads[first]);
    arch_switch(&main_sp, ex.threads[first].sp);
    tls_load(&outside);
}

/* What the modelled sources call for arch_switch, which stores the sp where no hook can see it. */
void model_arch_switch(void **save, void *to);
void __tsan_write8(void *addr);
void model_arch_switch(void **save, void *to)
{
    __tsan_write8(save);
    arch_switch(save, to);
}

/* --- who can go on ----------------------------------------------------------------------------- */

static uint32_t writes_of_others(const struct thread *t)
{
    return ex.writes - t->own_writes;
}

/* What it does next concerns nobody, so there is nothing to choose: it begins, was woken, or may
 * leave its pause. */
bool silent(const struct thread *t)
{
    if (t->done) {
        return false;
    }
    switch (t->op.kind) {
    case OP_START: return t != &ex.threads[ex.cur];
    case OP_ASLEEP: return t->woken;
    case OP_PAUSE:
        return t->resume || t->stale || t->pauses < SPINS_BLIND
               || t->writes_at_pause != writes_of_others(t);
    default: return false;
    }
}

bool enabled(const struct thread *t)
{
    if (t->done) {
        return false;
    }
    switch (t->op.kind) {
    case OP_LOCK: return ex.locs[t->op.loc].holder < 0;
    case OP_ASLEEP:
        return t->woken || t->spurious < ex.model->spurious
               || (t->has_limit && t->timeouts < ex.model->timeouts);
    case OP_PAUSE: return silent(t);
    default: return true;
    }
}

/* Spins: there is no use in going on before somebody has written something. But a loop may give up
 * after a while, so that first it is let go on. */
void model_pause(void)
{
    if (ex.cur < 0) {
        return;
    }
    struct thread *t = &ex.threads[ex.cur];
    t->op = (struct op){.kind = OP_PAUSE, .loc = -1};
    t->spins++;
    t->pauses++;
    if (t->writes_at_pause != writes_of_others(t)) {
        t->looked_again = 0;
        t->pauses = 1;
    }
    t->resume = false;
    point();
    t->resume = t->stale = false;
    t->writes_at_pause = writes_of_others(t);
}
