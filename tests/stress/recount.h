/* SPDX-License-Identifier: MIT */
/*
 * The invariants of a runtime at rest, counted anew and compared with its counters; and small
 * things that the stress and fault tests share.
 *
 * recount() is called from a thread of the test's own that holds a start of the runtime. It waits
 * until every M sleeps (that it comes to rest is the first invariant), then looks under sched.lock.
 * recount_stopped() looks at what holds in the midst of work too (hazard 25).
 */
#ifndef TESTS_STRESS_RECOUNT_H
#define TESTS_STRESS_RECOUNT_H

#include <dirent.h>
#include <fcntl.h>
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "sched/sched.h"

/* How long a test goes on: the default is for every day, PIRN_STRESS_SECONDS for the long form. */
static inline int64_t stress_ns(int seconds)
{
    const char *text = getenv("PIRN_STRESS_SECONDS");
    return (text ? atoi(text) : seconds) * PIRN_SEC;
}

static inline bool stress_long(void)
{
    const char *text = getenv("PIRN_STRESS_SECONDS");
    return text && atoi(text) >= 60;
}

/* A failure can be tried again with the seed that it printed. */
static inline uint64_t stress_seed(void)
{
    const char *text = getenv("PIRN_STRESS_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)now_ns() ^ (uint64_t)getpid() << 32;
    printf("PIRN_STRESS_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static inline void sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / PIRN_SEC, .tv_nsec = ns % PIRN_SEC}, NULL);
}

static inline int64_t process_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * PIRN_SEC + t.tv_nsec;
}

/* The threads of the process, except the one that asks. */
static inline int list_threads(pid_t *tids, int most)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *e; n < most && (e = readdir(dir));) {
        pid_t tid = atoi(e->d_name);
        if (tid > 0 && tid != gettid()) {
            tids[n++] = tid;
        }
    }
    closedir(dir);
    return n;
}

/* The beginning of a file about it in /proc; nothing, if it has ended. */
static inline void thread_text(pid_t tid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* One of them does not sleep: it runs, or would if it had a CPU. */
static inline bool others_run(void)
{
    pid_t tids[512];
    int n = list_threads(tids, 512);
    for (int i = 0; i < n; i++) {
        char stat[64];
        thread_text(tids[i], "stat", stat, sizeof stat);
        if (*stat && !strstr(stat, ") S")) {
            return true;
        }
    }
    return false;
}

/* A figure of /proc/self/status, in bytes. */
static inline int64_t proc_status(const char *name)
{
    char line[256];
    long long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':') {
            kb = atoll(line + strlen(name) + 1);
        }
    }
    fclose(f);
    CHECK_GE(kb, 0);
    return kb * 1024;
}

/* Runs fn in a child, whose stderr is shown and searched: how often is text in it? */
static inline int count_in_stderr(void (*fn)(void), const char *text)
{
    static char buf[65536];
    size_t n = 0;
    ssize_t got;
    int pipe_fds[2], status, count = 0;
    CHECK_EQ(pipe(pipe_fds), 0);
    fflush(stdout);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        dup2(pipe_fds[1], STDERR_FILENO);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        fn();
        exit(0);
    }
    close(pipe_fds[1]);
    while (n < sizeof buf - 1 && (got = read(pipe_fds[0], buf + n, sizeof buf - 1 - n)) > 0) {
        n += (size_t)got;
    }
    close(pipe_fds[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    buf[n] = '\0';
    fputs(buf, stderr);
    CHECK_EQ(status, 0);
    for (const char *at = buf; (at = strstr(at, text)); at++) {
        count++;
    }
    return count;
}

/* --- the state, for people ---------------------------------------------------------------------- */

static inline void show_p(int fd, struct p *pp)
{
    say_fd(fd, "  p%d: status %u retire %u ring %u next %d tick %u\n", pp->id,
           at_load(&pp->status, RELAXED), at_load(&pp->retire, RELAXED), runq_len(&pp->runq),
           at_load(&pp->runq.next, RELAXED) != NULL, at_load(&pp->tick, RELAXED));
}

/* What the kernel says of each: its state, and how long it has run and waited for a CPU, in ns. */
static inline void show_threads(int fd)
{
    pid_t tids[512];
    int n = list_threads(tids, 512);
    for (int i = 0; i < n; i++) {
        char stat[64], times[64];
        thread_text(tids[i], "stat", stat, sizeof stat);
        thread_text(tids[i], "schedstat", times, sizeof times);
        stat[strcspn(stat, ")") + (strchr(stat, ')') ? 3 : 0)] = '\0';
        say_fd(fd, "  thread %s, %s", stat, times);
    }
}

static inline void show_state(int fd)
{
    lock(&sched.lock);
    say_fd(fd, "life %u nprocs %u npidle %u nspinning %u nm %u nmidle %u nwant_m %u globq %u\n",
           at_load(&sched.life, RELAXED), at_load(&sched.nprocs, RELAXED),
           at_load(&sched.npidle, RELAXED), at_load(&sched.nspinning, RELAXED), sched.nm,
           sched.nmidle, sched.nwant_m, sched.globq.list.n);
    unlock(&sched.lock);
    say_fd(fd, "futile %u nforeign %u nforeign_parked %u goroutines %u\n",
           at_load(&sched.futile, RELAXED), at_load(&sched.nforeign, RELAXED),
           at_load(&sched.nforeign_parked, RELAXED), g_count());
    for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
        show_p(fd, at_load(&sched.allp[i], RELAXED));
    }
    show_threads(fd);
}

/* --- at rest ------------------------------------------------------------------------------------ */

static inline bool at_rest_locked(void)
{
    return sched.nmidle == sched.nm && sched.nwant_m == 0 && sched.globq.list.n == 0
           && at_load(&sched.npidle, RELAXED) == at_load(&sched.nprocs, RELAXED)
           && at_load(&sched.nspinning, RELAXED) == 0;
}

static inline uint64_t switches(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
        n += at_load(&at_load(&sched.allp[i], RELAXED)->counts.switches, RELAXED);
    }
    return n;
}

/* Returns with sched.lock held. Who still runs may take its time: a million stacks need memory. */
static inline void lock_at_rest(void)
{
    uint64_t seen = switches(), n;
    for (int64_t until = now_ns() + 10 * PIRN_SEC;; seen = n) {
        lock(&sched.lock);
        if (at_rest_locked()) {
            return;
        }
        unlock(&sched.lock);
        n = switches();
        until = n == seen ? until : now_ns() + 10 * PIRN_SEC;
        if (now_ns() > until) {
            show_state(STDERR_FILENO);
            FAIL("the runtime does not come to rest");
        }
        sleep_ns(PIRN_MS);
    }
}

struct recounted {
    uint64_t live, with_stack, cached, idle_ps;
};

static inline void recount_g(struct g *gp, void *arg)
{
    struct recounted *r = arg;
    CHECK_EQ(at_load(&gp->status, RELAXED), G_WAITING);
    r->live++;
    r->with_stack += gp->stack_hi != NULL;
}

static inline void recount_p(struct p *pp, struct recounted *r)
{
    uint32_t free = 0, status = at_load(&pp->status, RELAXED);
    CHECK(runq_valid(&pp->runq));
    CHECK(runq_empty(&pp->runq));
    CHECK_EQ(at_load(&pp->retire, RELAXED), 0);
    CHECK(status == P_IDLE || status == P_RETIRED);
    for (struct g *gp = pp->gfree; gp; gp = gp->link) {
        CHECK_EQ(at_load(&gp->status, RELAXED), G_IDLE);
        CHECK(gp->stack_hi == NULL);
        free++;
    }
    CHECK_EQ(free, pp->ngfree);
    for (int class = 0; class < STACK_CLASSES; class ++) {
        r->cached += pp->stacks[class].n;
        if (status == P_RETIRED) { /* it gave everything back */
            CHECK_EQ(pp->stacks[class].n, 0);
            CHECK_EQ(pp->stacks[class].promises, 0);
        }
    }
    if (status == P_RETIRED) {
        CHECK_EQ(pp->ngfree, 0);
    }
    r->idle_ps += status == P_IDLE;
}

/* live: how many goroutines there are, all of which wait. */
static inline void recount(uint64_t live)
{
    struct recounted r = {0};
    pirn_metrics_v1 metrics = {0};
    uint64_t ms = 0, ps = 0;
    lock_at_rest();
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        recount_p(at_load(&sched.allp[i], RELAXED), &r);
    }
    for (struct m *mp = sched.midle; mp; mp = mp->idle_next) {
        CHECK(mp->idle && !mp->ended);
        ms++;
    }
    for (struct p *pp = sched.pidle; pp; pp = pp->link) {
        ps++;
    }
    CHECK_EQ(ms, sched.nm);
    CHECK_EQ(ps, at_load(&sched.npidle, RELAXED));
    CHECK_EQ(ps, r.idle_ps);
    CHECK_EQ(at_load(&sched.globq.size, RELAXED), 0);
    g_for_each(recount_g, &r);
    CHECK_EQ(r.live, live);
    CHECK_EQ(g_count(), live); /* spawned - ended, over all Ps */
    stack_metrics(&metrics);
    CHECK_EQ(metrics.stacks, r.with_stack + r.cached);
    unlock(&sched.lock);
}

/* --- in the midst of work ------------------------------------------------------------------------ */

struct stopped_count {
    uint64_t live, runnable, with_stack;
};

static inline void count_stopped_g(struct g *gp, void *arg)
{
    struct stopped_count *c = arg;
    c->live++;
    c->runnable += at_load(&gp->status, RELAXED) == G_RUNNABLE;
    c->with_stack += gp->stack_hi != NULL;
}

static inline uint64_t count_list(const struct glist *l)
{
    uint64_t n = 0;
    for (struct g *gp = l->head; gp; gp = gp->link) {
        CHECK_EQ(at_load(&gp->status, RELAXED), G_RUNNABLE);
        n++;
    }
    CHECK_EQ(n, l->n);
    return n;
}

/*
 * The world is stopped for it. By a thread that meanwhile nobody else's calls come from: who is runnable
 * is on just one queue, and the counters say what the lists say.
 */
static inline void recount_stopped(void)
{
    struct stopped_count c = {0};
    pirn_metrics_v1 metrics = {0};
    uint64_t ps = 0, ms = 0, queued = 0, cached = 0;
    CHECK(world_stop(now_ns() + 20 * PIRN_SEC));
    lock(&sched.lock);
    queued += count_list(&sched.globq.list) + count_list(&sched.globq.bound);
    CHECK_EQ(at_load(&sched.globq.size, RELAXED), queued);
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        CHECK_NE(at_load(&pp->status, RELAXED), P_RUNNING);
        CHECK(runq_valid(&pp->runq));
        queued += runq_len(&pp->runq) + (at_load(&pp->runq.next, RELAXED) != NULL);
        for (int class = 0; class < STACK_CLASSES; class ++) {
            cached += pp->stacks[class].n;
        }
    }
    for (struct p *pp = sched.pidle; pp; pp = pp->link) {
        CHECK_EQ(at_load(&pp->status, RELAXED), P_IDLE);
        CHECK(runq_empty(&pp->runq));
        ps++;
    }
    CHECK_EQ(at_load(&sched.npidle, RELAXED), ps);
    for (struct m *mp = sched.midle; mp; mp = mp->idle_next) {
        CHECK(mp->idle && !mp->ended);
        ms++;
    }
    CHECK_EQ(sched.nmidle, ms);
    CHECK_LE(at_load(&sched.nspinning, RELAXED), 1);
    g_for_each(count_stopped_g, &c);
    CHECK_EQ(c.runnable, queued);
    CHECK_EQ(g_count(), c.live);
    stack_metrics(&metrics);
    CHECK_EQ(metrics.stacks, c.with_stack + cached);
    unlock(&sched.lock);
    world_start();
}

#endif
