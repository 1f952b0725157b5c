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
    if (dladdr(pc, &info) && info.dli_sname) {
        say_fd(fd, "%s+0x%lx", info.dli_sname,
               (unsigned long)((const char *)pc - (char *)info.dli_saddr));
    } else if (info.dli_fname) {
        say_fd(fd, "%s+0x%lx", info.dli_fname,
               (unsigned long)((const char *)pc - (char *)info.dli_fbase));
    } else {
        say_fd(fd, "%p", pc);
    }
}

static void say_creation(int fd, const struct g *gp)
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

static void say_goroutine(int fd, const struct g *gp, int64_t now)
{
    uint32_t status = at_load(&gp->status, RELAXED);
    bool waits = status == G_WAITING;
    say_fd(fd, "\ngoroutine %lu [%s", gp->id,
           waits ? wait_reason_names[gp->reason % WAIT_REASONS] : g_status_name(status));
    if (waits) {
        say_duration(fd, now - gp->run.wait_since);
    }
    say_fd(fd, "]");
    if (gp->site && !(gp->flags & G_SITE_PC)) {
        say_fd(fd, " %s", gp->site);
    }
    if (gp->extra && gp->extra->name[0]) {
        say_fd(fd, " \"%s\"", gp->extra->name);
    }
    say_fd(fd, ":\n");
    say_creation(fd, gp);
}

struct search { /* for the smallest id above `after` */
    uint64_t after;
    struct g *found;
    uint64_t found_id;
    uint32_t n;
};

static void visit(struct g *gp, void *arg)
{
    struct search *s = arg;
    uint64_t id = gp->id;
    s->n++;
    if (id > s->after && (!s->found || id < s->found_id)) {
        s->found = gp;
        s->found_id = id;
    }
}

void dump_all(int fd)
{
    struct search s = {0};
    struct m *mp = getm();
    struct g *me = mp ? mp->curg : NULL;
    int64_t now = now_ns();
    if (me) {
        say_goroutine(fd, me, now); /* the one that fails comes first */
    }
    for (uint32_t shown = 0;; shown++) {
        s.n = 0;
        s.found = NULL;
        g_for_each(visit, &s);
        if (!s.found) {
            break;
        }
        if (shown == MOST) {
            say_fd(fd, "\n... and %u more goroutines\n", s.n - MOST);
            break;
        }
        if (s.found != me) {
            say_goroutine(fd, s.found, now);
        }
        s.after = s.found_id;
    }
}
