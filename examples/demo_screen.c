/* SPDX-License-Identifier: MIT */
/*
 * The screen of the demo: drawn ten times a second by an ordinary thread, which reads
 * pirn_metrics() and a few counters. It also waits for Ctrl-C, blocked in all other threads, so
 * that it can leave the terminal in order. Where stdout is no terminal: plain lines.
 */
#include "demo.h"

#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *note;
static pthread_t thread;
static bool tty, colours, utf8;
static atomic_bool finished;

static const char *hue(const char *code)
{
    return colours ? code : "";
}

/* 1234567 as 1,234,567; eight of them can be in use. */
static const char *grouped(number n)
{
    static char rooms[8][32];
    static int turn;
    char *p = rooms[turn++ % 8] + 31;
    for (int digits = 0; digits == 0 || n; digits++, n /= 10) {
        if (digits && digits % 3 == 0) {
            *--p = ',';
        }
        *--p = (char)('0' + n % 10);
    }
    return p;
}

static void bar(double part, int width, const char *colour)
{
    int full = (int)(part * width + 0.5);
    printf("%s", hue(colour));
    for (int i = 0; i < width; i++) {
        bool on = i < full;
        printf("%s%s", i == full ? hue("\033[0;2m") : "", utf8 ? on ? "█" : "░" : on ? "#" : ".");
    }
    printf("%s", hue("\033[0m"));
}

static double progress(const struct stage *s, int state, const pirn_metrics_v1 *now)
{
    if (state != RUNNING) {
        return state == DONE;
    }
    double done = s == &stages[CREATE] ? (double)arrived
                  : s == &stages[WAKE] ? (double)s->n - (double)now->goroutines
                                       : (double)(now->spawned - s->before.spawned);
    double part = done / (double)s->n;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

/* Draws the block over the one before; returns how many lines it has. */
static int draw(int lines, const pirn_metrics_v1 *m)
{
    number total = 0, rss = memory("/proc/self/status", finished ? "VmHWM:" : "VmRSS:");
    int n = nshares < 8 ? nshares : 8;
    if (lines) {
        printf("\033[%dA", lines);
    }
    printf("\033[K\n  %spirn %s%s: %s\033[K\n\033[K\n", hue("\033[1m"), pirn_version(),
           hue("\033[0m"), note ? note : "the scheduler at work");
    for (struct stage *s = stages; s < stages + STAGES; s++) {
        int state = s->state; /* what else is read of the stage was written before it */
        pirn_ns took = state == DONE ? s->took : state == RUNNING ? pirn_now() - s->began : 0;
        printf("  %s%-7s%s%10s %-26s", hue(state == RUNNING ? "\033[1m" : "\033[0m"), s->name,
               hue("\033[0m"), state ? grouped(s->n) : "", s->what);
        bar(progress(s, state, m), 20, state == DONE ? "\033[32m" : "\033[36m");
        printf(state ? " %7.2f s\033[K\n" : "\033[K\n", (double)took / PIRN_SEC);
    }
    for (int i = 0; i < n; i++) {
        total += shares[i].work;
    }
    for (int i = 0; i < n; i++) {
        double part = (double)shares[i].work / (double)(total + !total);
        printf("%19sby thread %-17d", "", i + 1);
        bar(part, 20, "\033[33m");
        printf(" %7.1f %%\033[K\n", 100 * part);
    }
    printf("\033[K\n  %s%s%s alive, %s Ms, %s Ps, %s switches, %s steals, %s MB%s\033[K\n",
           hue("\033[1m"), grouped(m->goroutines), hue("\033[0m"), grouped(m->threads),
           grouped(m->procs), grouped(m->switches), grouped(m->steals), grouped(rss >> 20),
           finished ? " at most" : "");
    return 3 + STAGES + n + 2;
}

/* For a file or a pipe: one line for each stage, when it is done. */
static void print_stage(const struct stage *s)
{
    printf("%-7s %s %s: %.2f s\n", s->name, grouped(s->n), s->what, (double)s->took / PIRN_SEC);
}

static void *paint(void *signals)
{
    const struct timespec tenth = {.tv_nsec = 100000000};
    pirn_metrics_v1 m = {0};
    int lines = 0, printed = 0;
    for (bool last = false; !last;) {
        last = finished;
        if (pirn_metrics(&m) < 0) { /* no runtime runs any more, or none yet */
            m = stages[FORK].after;
        }
        if (tty) {
            lines = draw(lines, &m);
        }
        for (; !tty && printed < STAGES && stages[printed].state == DONE; printed++) {
            print_stage(&stages[printed]);
        }
        fflush(stdout);
        if (!last && sigtimedwait(signals, NULL, &tenth) > 0) {
            printf("%s", tty ? "\033[?25h\n  interrupted\n" : "interrupted\n");
            fflush(stdout);
            _exit(130); /* whatever the goroutines are doing */
        }
    }
    return NULL;
}

void screen_start(const char *text)
{
    static sigset_t signals;
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    setlocale(LC_CTYPE, "");
    utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    tty = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
    colours = tty && !(no_color && *no_color);
    note = text;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* here, and so in every thread made from now on */
    if (tty) {
        printf("\033[?25l"); /* no cursor */
    }
    if (pthread_create(&thread, NULL, paint, &signals)) {
        abort();
    }
}

void screen_stop(void)
{
    finished = true;
    pthread_join(thread, NULL);
    printf("%s\n  %-7s %10s %4s %4s %11s %7s %9s %10s %8s\n", tty ? "\033[?25h" : "", "",
           "goroutines", "Ms", "Ps", "switches", "steals", "time", "bytes each", "ns each");
    for (struct stage *s = stages; s < stages + STAGES; s++) {
        printf("  %-7s %10s %4s %4s %11s %7s %7.2f s %10s %8s\n", s->name, grouped(s->n),
               grouped(s->after.threads), grouped(s->after.procs),
               grouped(s->after.switches - s->before.switches),
               grouped(s->after.steals - s->before.steals), (double)s->took / PIRN_SEC,
               s->bytes_each > 0 ? grouped((number)s->bytes_each) : "",
               grouped((number)s->took / (s->n + !s->n)));
    }
}
