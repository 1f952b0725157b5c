/* SPDX-License-Identifier: MIT */
/*
 * The goroutines, for people: who they are, what they wait for, where they come from.
 *
 * Runs while others may still run, so every G is read as it is at that moment; the memory of a G
 * stays, so the worst is a line that is out of date.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "sched/sched.h"

#define MOST 100u /* goroutines that are shown one by one */
#define KINDS 32u /* of those that are counted only */

/* Reads Gs while they run: see above. */
#define LOOKS __attribute__((no_sanitize("thread")))

static void say_duration(int fd, int64_t ns)
{
    int64_t ms = ns / 1000000, s = ms / 1000;
    if (s >= 120) {
        say_fd(fd, ", %ld minutes", s / 60);
    } else if (ms >= 10000) {
        say_fd(fd, ", %ld s", s);
    } else if (ms >= 10) {
        say_fd(fd, ", %ld ms", ms);
    }
}

static void say_pc(int fd, const void *pc)
{
    Dl_info info = {0};
    if (sched.stopped) { /* one of those who are may be inside the loader, and have its lock */
        say_fd(fd, "%p", pc);
    } else if (dladdr(pc, &info) && info.dli_sname) {
        say_fd(fd, "%s+0x%lx", info.dli_sname,
               (unsigned long)((const char *)pc - (char *)info.dli_saddr));
    } else if (info.dli_fname) {
        say_fd(fd, "%s+0x%lx", info.dli_fname,
               (unsigned long)((const char *)pc - (char *)info.dli_fbase));
    } else {
        say_fd(fd, "%p", pc);
    }
}

LOOKS static void say_creation(int fd, const struct g *gp)
{
    if (gp->flags & G_MAIN) {
        say_fd(fd, "\tstarted by pirn_run\n");
        return;
    }
    say_fd(fd, gp->creator ? "\tcreated by goroutine %lu" : "\tcreated by a thread outside pirn",
           gp->creator);
    if (gp->flags & G_SITE_PC) {
        say_fd(fd, " at ");
        say_pc(fd, gp->site);
    } else if (gp->site) {
        say_fd(fd, " at %s", gp->site + strlen(gp->site) + 1);
    }
    say_fd(fd, "\n");
}

LOOKS static const char *state_of(const struct g *gp)
{
    uint32_t status = at_load(&gp->status, RELAXED);
    if (status == G_RUNNABLE && gp->flags & G_BOUND && !(gp->extra && gp->extra->locked)) {
        return "preempted";
    }
    return status == G_WAITING ? wait_reason_names[gp->reason % WAIT_REASONS]
                               : g_status_name(status);
}

/* Its function, where that is known. */
LOOKS static void say_function(int fd, const struct g *gp)
{
    if (gp->site && !(gp->flags & G_SITE_PC)) {
        say_fd(fd, " %s", gp->site);
    }
}

LOOKS static void say_goroutine(int fd, const struct g *gp, int64_t now, bool me)
{
    say_fd(fd, "\ngoroutine %lu [%s", gp->id, state_of(gp));
    if (at_load(&gp->status, RELAXED) == G_WAITING) {
        say_duration(fd, now - gp->run.wait_since);
    }
    if (gp->extra && gp->extra->locked) {
        say_fd(fd, ", locked to its thread");
    }
    say_fd(fd, "]");
    say_function(fd, gp);
    if (gp->extra && gp->extra->name[0]) {
        say_fd(fd, " \"%s\"", gp->extra->name);
    }
    say_fd(fd, ":\n");
    if (me) {
        dump_trace(fd);
    }
    say_creation(fd, gp);
}

struct search { /* for the smallest id above `after` */
    uint64_t after;
    struct g *found;
    uint64_t found_id;
};

LOOKS static void visit(struct g *gp, void *arg)
{
    struct search *s = arg;
    uint64_t id = gp->id;
    if (id > s->after && (!s->found || id < s->found_id)) {
        s->found = gp;
        s->found_id = id;
    }
}

/* --- more than can be read one by one: how many do the same ------------------------------------- */

struct kind {
    const struct g *first;
    const char *state, *site;
    uint32_t n;
};

struct census {
    uint64_t after;
    const struct g *but;
    struct kind kinds[KINDS];
    uint32_t nkinds, others, n;
};

LOOKS static void count(struct g *gp, void *arg)
{
    struct census *c = arg;
    struct kind new = {.first = gp, .state = state_of(gp), .site = gp->site, .n = 1};
    if (gp->id <= c->after || gp == c->but) {
        return;
    }
    c->n++;
    for (uint32_t i = 0; i < c->nkinds; i++) {
        if (c->kinds[i].state == new.state && c->kinds[i].site == new.site) {
            c->kinds[i].n++;
            return;
        }
    }
    if (c->nkinds < KINDS) {
        c->kinds[c->nkinds++] = new;
    } else {
        c->others++;
    }
}

static struct kind *most_frequent(struct census *c)
{
    struct kind *most = NULL;
    for (uint32_t i = 0; i < c->nkinds; i++) {
        if (c->kinds[i].n && (!most || c->kinds[i].n > most->n)) {
            most = &c->kinds[i];
        }
    }
    return most;
}

LOOKS static void say_census(int fd, struct census *c)
{
    say_fd(fd, "\n... and %u more goroutines:\n", c->n);
    for (struct kind *k; (k = most_frequent(c)); k->n = 0) {
        say_fd(fd, "%u [%s]", k->n, k->state);
        say_function(fd, k->first);
        say_fd(fd, ", such as goroutine %lu:\n", k->first->id);
        say_creation(fd, k->first);
    }
    if (c->others) {
        say_fd(fd, "%u others\n", c->others);
    }
}

void dump_all(int fd)
{
    static struct census census; /* one dump in the life of a process, and stacks are small */
    struct search s = {0};
    struct m *mp = getm();
    struct g *me = mp ? mp->curg : NULL;
    int64_t now = now_ns();
    if (me) {
        say_goroutine(fd, me, now, true); /* the one that fails comes first */
    }
    for (uint32_t shown = 0;; shown++) {
        s.found = NULL;
        g_for_each(visit, &s);
        if (!s.found) {
            break;
        }
        if (shown == MOST) {
            census = (struct census){.after = s.after, .but = me};
            g_for_each(count, &census);
            say_census(fd, &census);
            break;
        }
        if (s.found != me) {
            say_goroutine(fd, s.found, now, false);
        }
        s.after = s.found_id;
    }
}

/* PIRN_DEBUG=locks: it has waited, and goes on on another thread than that which has the lock. */
LOOKS void dump_locks(const struct g *gp)
{
    const char *kind;
    const void *site;
    while (sched.locks_held_by(gp->id, &kind, &site)) {
        say_fd(STDERR_FILENO, "pirn: goroutine %lu", gp->id);
        say_function(STDERR_FILENO, gp);
        say_fd(STDERR_FILENO, " has left its thread (%s) with a %s, which it locked at ",
               gp->reason == WAIT_NONE ? "yield" : wait_reason_names[gp->reason % WAIT_REASONS],
               kind);
        say_pc(STDERR_FILENO, site);
        say_fd(STDERR_FILENO, "\n");
    }
}
