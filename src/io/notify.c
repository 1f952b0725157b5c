/* SPDX-License-Identifier: MIT */
/* The program's calls on signals; watch.c has the design. */
#include <errno.h>
#include <stdlib.h>

#include "ctx/ctx.h"
#include "io/signal.h"

/* Not inside a visit: the last reference to a channel may be among them. */
static void free_watches(struct watch *w)
{
    for (struct watch *next; w; w = next) {
        next = w->next;
        if (w->chan) {
            pirn_chanv_release(w->chan);
        }
        free(w);
    }
}

/* --- contexts --------------------------------------------------------------------------------------- */

static uint64_t set_of(const int *sigs, int n)
{
    uint64_t set = 0;
    for (int i = 0; i < n; i++) {
        if (!signal_can_be_caught(sigs[i])) {
            misuse("context: signal %d can't be caught", sigs[i]);
        }
        set |= signal_bit(sigs[i]);
    }
    return set;
}

void signal_end_of(struct pirn_ctx *ctx)
{
    struct watch *w = signal_unwatch(ctx);
    if (w) {
        heap_free(w);
    }
}

EXPORT pirn_ctx *pirn_ctx_with_signals(pirn_ctx *parent, const int *sigs, int n)
{
    not_forked();
    uint64_t set = set_of(sigs, n);
    struct watch *w = malloc(sizeof *w);
    if (!w) {
        fatal("out of memory: cannot watch signals");
    }
    pirn_ctx *ctx = pirn_ctx_with_cancel(parent);
    *w = (struct watch){.ctx = ctx, .signals = set};
    bring(w);
    struct visit v = visit_begin();
    bring(NULL);
    if (!visit_can_wait(v)) {
        visit_end(v);
        pirn_ctx_release(ctx);
        free(w);
        misuse("pirn_ctx_with_signals, and no runtime runs");
    }
    int err = signal_watch(&w);
    if (err) {
        fatal("cannot watch signals: %s", strerrordesc_np(-err));
    }
    ctx_watches_signals(ctx);
    visit_end(v);
    return ctx;
}

/* --- channels --------------------------------------------------------------------------------------- */

EXPORT int pirn_signal_notifyv(pirn_chanv *c, int sig)
{
    not_forked();
    if (!c) {
        misuse("signal notify using nil channel");
    }
    if (at_load(&c->refs, RELAXED) == 0) {
        misuse("signal notify using a channel after its last release");
    }
    if (!signal_can_be_caught(sig) || c->elem != sizeof(int)) {
        return -EINVAL;
    }
    struct watch *w = malloc(sizeof *w);
    if (!w) {
        return -ENOMEM;
    }
    *w = (struct watch){.chan = c, .signals = signal_bit(sig)};
    bring(w);
    struct visit v = visit_begin();
    bring(NULL);
    /* Not before: if the goroutine ends at the entry, only w is given back. */
    at_add(&c->refs, 1, RELAXED);
    int err = visit_can_wait(v) ? signal_watch(&w) : -EAGAIN;
    visit_end(v);
    free_watches(w);
    return err;
}

EXPORT void pirn_signal_stopv(pirn_chanv *c)
{
    not_forked();
    if (!c) {
        return;
    }
    struct visit v = visit_begin();
    struct watch *w = signal_unwatch(c);
    visit_end(v);
    if (w) {
        w->next = NULL;
        free_watches(w);
    }
}

static int let_be(int sig, enum signal_action to)
{
    not_forked();
    struct watch *gone = NULL;
    if (!signal_can_be_caught(sig)) {
        return -EINVAL;
    }
    struct visit v = visit_begin();
    int err = signal_let_be(sig, to, &gone);
    visit_end(v);
    free_watches(gone);
    return err;
}

EXPORT int pirn_signal_ignore(int sig)
{
    return let_be(sig, SIGNAL_IGNORED);
}

EXPORT int pirn_signal_reset(int sig)
{
    return let_be(sig, SIGNAL_PROGRAMS);
}

EXPORT bool pirn_signal_ignored(int sig)
{
    struct sigaction sa;
    enter();
    bool ignored = preempt_sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN;
    leave();
    return ignored;
}
