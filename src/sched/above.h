/* SPDX-License-Identifier: MIT */
/*
 * What the scheduler calls of the layers above it: all calls upward, by the file that has them.
 */
#ifndef PIRN_SCHED_ABOVE_H
#define PIRN_SCHED_ABOVE_H

#include "sched/gmp.h"

/* debug/dump.c */
void dump_locks(const struct g *gp);
void dump_all(int fd);
void dump_left(void);
void dump_forget(const struct g *gp);

/* debug/: leaks.c, roots.c, symbols.c, cycles.c, quit.c */
void leaks_forget(const struct g *gp);
void roots_start(void);
void symbols_set_path(void);
int64_t cycles_look(int64_t now); /* when to look again */
void quit_start(void);
void quit_stop(void);
void quit_if_asked(void);

/* time/timer.c */
void timer_forget_start(const struct gstart *start);

/* io/netpoll.c */
bool netpoll_awaited(void);    /* somebody waits for a descriptor */
bool netpoll_wanted(void);     /* and Ms are to look for it */
bool netpoll_unattended(void); /* and nobody sleeps in the poller */
bool netpoll_look(struct m *mp);
void netpoll_look_at_all(void);
bool netpoll_sleep(struct m *mp, int64_t until);
void netpoll_break(void);
void netpoll_stop(void);

/* io/watch.c */
bool signals_pending(void);
void signals_deliver_g0(void);
bool signals_watched(void);
void signals_start(void);
void signals_stop(void);

/* io/file.c */
void io_start(void);
void io_make_threads(void);
bool io_stop(int64_t grace, bool left_behind);
int io_threads_idle(void);

/* sync/: waitgroup.c, forget.c */
struct waiter *wg_done_at_end(struct pirn_wg *wg);
void sync_forget(struct waiter *w, enum wait_reason reason, bool waiting);

/* ctx/: ctx.c, group.c */
void ctx_ref(struct pirn_ctx *ctx);
void ctx_unref(struct pirn_ctx *ctx);
struct waiter *group_done_at_end(struct pirn_group *g, int result);
void group_none(struct pirn_group *g); /* one that was let in does not come */

/* panic/: defer.c, panic.c, unwind.c, fault.c */
void defer_link(struct pirn_defer_ *d, const struct gstart *start, uint16_t flags,
                const char *site);
void panic_start(void);
void panic_forget(struct g *gp);
struct cxx_globals *cxx_globals(void);
void fault_start(void);
void fault_stop(void);

#endif
