/* SPDX-License-Identifier: MIT */
/* The options of a model program, and the loop over its models. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explorer/explorer.h"

struct explorer ex = {.cur = -1, .rand = 88172645463325252u};
extern int pct_depth;
extern struct model_site __start_model_sites[], __stop_model_sites[];

static struct model *models;
static struct {
    const char *model, *bound, *replay;
    bool quick, list, sites, outcomes;
    enum strategy strategy;
    double seconds;      /* the most for one model; 0: as long as it takes */
    uint64_t executions; /* the same by number */
} opt;
static double began, last_shown;
static bool cut;

void model_register(struct model *m)
{
    struct model **at = &models;
    while (*at) {
        at = &(*at)->next;
    }
    *at = m;
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- outcomes of litmus tests ------------------------------------------------------------------- */

#define OUTCOMES 8192
#define OUTCOME_SIZE 96
static char seen[OUTCOMES][OUTCOME_SIZE]; /* sorted */
static int nseen;

void outcomes_forget(void)
{
    nseen = 0;
}

void model_outcome(const char *format, ...)
{
    char text[OUTCOME_SIZE];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    int at = 0, end = nseen;
    while (at < end) {
        int middle = (at + end) / 2, order = strcmp(seen[middle], text);
        if (order == 0) {
            return;
        }
        *(order < 0 ? &at : &end) = order < 0 ? middle + 1 : middle;
    }
    if (nseen == OUTCOMES) {
        model_fail("more than %d outcomes", OUTCOMES);
    }
    memmove(seen[at + 1], seen[at], sizeof seen[0] * (size_t)(nseen - at));
    memcpy(seen[at], text, sizeof text);
    nseen++;
}

static void print_outcomes(const struct model *m)
{
    printf("%s: outcomes%s:", m->name, cut ? ", not all" : "");
    for (int i = 0; i < nseen; i++) {
        printf(" %s", seen[i]);
    }
    putchar('\n');
}

static bool outcomes_right(const struct model *m)
{
    static char all[OUTCOMES * OUTCOME_SIZE];
    char *end = all;
    for (int i = 0; i < nseen; i++) {
        end += sprintf(end, i ? " %s" : "%s", seen[i]);
    }
    if (strcmp(all, m->outcomes)) {
        printf("%s: other outcomes than expected\n  expected: %s\n  seen:     %s\n", m->name,
               m->outcomes, all);
        return false;
    }
    return true;
}

/* --- running ------------------------------------------------------------------------------------ */

static const char *grouped(uint64_t n, char *buf)
{
    char digits[32];
    int len = sprintf(digits, "%lu", (unsigned long)n);
    char *out = buf;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) {
            *out++ = ',';
        }
        *out++ = digits[i];
    }
    *out = '\0';
    return buf;
}

bool progress(double fraction)
{
    double now = seconds_now();
    if (now - last_shown >= 1 && isatty(STDERR_FILENO)) {
        char n[40];
        last_shown = now;
        fprintf(stderr, "\r%s: %s executions, %.0f k/s", ex.model->name, grouped(ex.executions, n),
                (double)ex.executions / (now - began) / 1000);
        if (fraction > 0) {
            fprintf(stderr, ", %.1f %%, about %.0f s to go ", fraction * 100,
                    (now - began) / fraction * (1 - fraction));
        }
        fprintf(stderr, "\033[K");
    }
    cut = (opt.seconds > 0 && now - began > opt.seconds)
          || (opt.executions && ex.executions >= opt.executions);
    return !cut;
}

static void explain(const struct model *m)
{
    char n[40], p[40], how[40];
    if (ex.strategy != DFS) {
        snprintf(how, sizeof how, ex.strategy == PCT ? "PCT, depth %d" : "random", pct_depth);
    } else if (ex.bound == MODEL_UNBOUNDED) {
        snprintf(how, sizeof how, "all");
    } else {
        snprintf(how, sizeof how, "%d preemptions", ex.bound);
    }
    double time = seconds_now() - began;
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K");
    }
    double all = (double)(ex.executions + ex.pruned);
    printf(
        "%-32s %d threads  %-14s %12s executions %12s cut short %4.0f steps %5.0f k/s %6.1f s%s\n",
        m->name, ex.nthreads, how, grouped(ex.executions, n), grouped(ex.pruned, p),
        (double)ex.operations / all, all / (time + 1e-9) / 1000, time,
        cut && ex.strategy == DFS ? "  (not all)" : "");
    fflush(stdout);
}

static bool run_here(struct model *m)
{
    ex.model = m;
    ex.strategy = opt.replay ? REPLAY : opt.strategy;
    ex.trace = ex.strategy == REPLAY;
    ex.bound = opt.quick && m->quick ? m->quick : m->preemptions;
    if (opt.bound) {
        ex.bound = atoi(opt.bound); /* "all" is no number */
        ex.bound = ex.bound || *opt.bound == '0' ? ex.bound : MODEL_UNBOUNDED;
    }
    began = last_shown = seconds_now();
    explore();
    if (ex.strategy == REPLAY) {
        trace_show();
        printf("%s: no failure in this execution\n", m->name);
        return true;
    }
    explain(m);
    if (opt.outcomes) {
        print_outcomes(m);
    }
    return !m->outcomes || ex.strategy != DFS || outcomes_right(m);
}

/* In a child: so that what one model leaves behind in the sources' variables meets no other, and a
 * planted bug may end the process. */
static bool run(struct model *m)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(run_here(m) ? (fflush(stdout), 0) : (fflush(stdout), 1));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("model");
        exit(2);
    }
    bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status)) {
        printf("%s: ended by signal %d\n", m->name, WTERMSIG(status));
        return false;
    }
    if (m->finds) {
        bool found = WEXITSTATUS(status) == 1;
        printf("%s: %s\n", m->name,
               found    ? "found, as it must be"
               : passed ? "the planted bug was NOT found"
                        : "not the bug that was planted");
        return found;
    }
    return passed;
}

/* --- sites --------------------------------------------------------------------------------------- */

static int order_of(const char *name)
{
    static const int orders[] = {RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST};
    for (int i = 0; i < 5; i++) {
        if (!strcmp(name, order_name(orders[i]))) {
            return orders[i];
        }
    }
    fprintf(stderr, "no such order: %s\n", name);
    exit(2);
}

/* FILE:LINE:N=ORDER or FILE:LINE:N=ORDER/FAIL_ORDER: the N-th operation of the line. A header's site
 * is there once in each file that includes it: all are changed. */
static void weaken(char *arg)
{
    char *equals = strchr(arg, '='), *slash = equals ? strchr(equals, '/') : NULL;
    int found = 0;
    if (!equals) {
        fprintf(stderr, "--weaken FILE:LINE=ORDER\n");
        exit(2);
    }
    *equals = '\0';
    if (slash) {
        *slash = '\0';
    }
    for (struct model_site *s = __start_model_sites; s < __stop_model_sites; s++) {
        char name[300];
        snprintf(name, sizeof name, "%s:%d:%s", s->file, s->line, s->text);
        if (!strcmp(name, arg)) {
            s->order = order_of(equals + 1);
            if (slash) {
                s->fail_order = order_of(slash + 1);
            }
            found++;
        }
    }
    if (!found) {
        fprintf(stderr, "no such site: %s\n", arg);
        exit(2);
    }
}

static void list_sites(void)
{
    for (struct model_site *s = __start_model_sites; s < __stop_model_sites; s++) {
        bool cas = s->kind == MODEL_CAS || s->kind == MODEL_CAS_WEAK;
        printf("%s:%d:%s\t%d\t%s\t%s\n", s->file, s->line, s->text, s->kind, order_name(s->order),
               cas ? order_name(s->fail_order) : "-");
    }
}

static void usage(void)
{
    printf("--list             the models\n"
           "--model NAME       this one only\n"
           "--quick            with the smaller bounds\n"
           "--bound N|all      at most N preemptions\n"
           "--seconds S        stop each model after so long\n"
           "--executions N     ... or so many\n"
           "--random SEED      random executions, for --seconds\n"
           "--pct SEED         random priorities with a few changes, for --seconds\n"
           "--replay STRING    one execution, with a trace; needs --model\n"
           "--outcomes         all that model_outcome() was told\n"
           "--no-trace         a failure gives its replay string only\n"
           "--sites            the atomic operations in the sources\n"
           "--weaken SITE=ORDER[/FAIL]\n");
}

int main(int argc, char **argv)
{
    bool ok = true, any = false;
    report_argv = argv;
    opt.strategy = DFS;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--list")) {
            opt.list = true;
        } else if (!strcmp(argv[i], "--quick")) {
            opt.quick = true;
        } else if (!strcmp(argv[i], "--no-trace")) {
            report_no_trace = true;
        } else if (!strcmp(argv[i], "--sites")) {
            opt.sites = true;
        } else if (!strcmp(argv[i], "--outcomes")) {
            opt.outcomes = true;
        } else if (!strcmp(argv[i], "--model")) {
            opt.model = next, i++;
        } else if (!strcmp(argv[i], "--bound")) {
            opt.bound = next, i++;
        } else if (!strcmp(argv[i], "--replay")) {
            opt.replay = next, i++;
        } else if (!strcmp(argv[i], "--seconds")) {
            opt.seconds = atof(next), i++;
        } else if (!strcmp(argv[i], "--executions")) {
            opt.executions = strtoull(next, NULL, 10), i++;
        } else if (!strcmp(argv[i], "--random") || !strcmp(argv[i], "--pct")) {
            opt.strategy = argv[i][2] == 'p' ? PCT : RANDOM;
            ex.rand ^= strtoull(next, NULL, 10) * 0x9e3779b97f4a7c15u, i++;
        } else if (!strcmp(argv[i], "--weaken")) {
            weaken(strdup(next)), i++;
        } else {
            usage();
            return 2;
        }
    }
    if (opt.sites) {
        list_sites();
        return 0;
    }
    if (opt.replay) {
        replay_parse(opt.replay);
    }
    for (struct model *m = models; m; m = m->next) {
        if (opt.list) {
            printf("%s\n", m->name);
        } else if (!opt.model || !strcmp(opt.model, m->name)) {
            any = true;
            ok &= opt.replay ? run_here(m) : run(m);
        }
    }
    if (!any && !opt.list) {
        fprintf(stderr, "no such model: %s\n", opt.model);
        return 2;
    }
    return ok ? 0 : 1;
}
