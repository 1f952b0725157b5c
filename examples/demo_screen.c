/* SPDX-License-Identifier: MIT */
/*
 * The screen of the demo: drawn ten times a second by an ordinary thread, which reads
 * pirn_metrics() and a few counters. It also waits for Ctrl-C, blocked in all other threads, so
 * that it can leave the terminal in order. Where stdout is no terminal, or a tiny one: plain lines.
 *
 * A frame hides the cursor and clips its lines, and undoes both at its end: whatever stops the
 * demo between two frames, the terminal is as it was.
 */
#include "demo.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_BEGIN "\033[?25l\033[?7l"
#define FRAME_END "\033[0m\033[?7h\033[?25h"
#define LINES (STAGES + 5) /* of a frame, without those of the threads */

static const char *note;
static pthread_t thread;
static bool tty, colours, utf8, narrow;
static int columns = 80, rows = 24;
static atomic_bool finished;

/* Asks the terminal for its size; tells whether its width is another one. */
static bool resized(void)
{
    struct winsize w;
    int before = columns;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col && w.ws_row) {
        columns = w.ws_col;
        rows = w.ws_row;
        narrow = columns < 80;
    }
    return columns != before;
}

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

static void draw_stage(const struct stage *s, const pirn_metrics_v1 *m)
{
    int state = s->state; /* what else is read of the stage was written before it */
    pirn_ns took = state == DONE ? s->took : state == RUNNING ? pirn_now() - s->began : 0;
    printf("  %s%-7s%s%10s ", hue(state == RUNNING ? "\033[1m" : "\033[0m"), s->name,
           hue("\033[0m"), state ? grouped(s->n) : "");
    if (!narrow) {
        printf("%-26s", s->what);
    }
    bar(progress(s, state, m), 20, state == DONE ? "\033[32m" : "\033[36m");
    printf(state ? " %7.2f s\033[K\n" : "\033[K\n", (double)took / PIRN_SEC);
}

/* What each thread has done; the last line is for all that have none. Returns how many lines. */
static int draw_shares(void)
{
    int threads = nshares, all = threads < SHARES ? threads : SHARES;
    int most = rows > LINES + 8 ? 8 : rows - LINES - 1, n = all < most ? all : most;
    number total = 0;
    for (int i = 0; i < all; i++) {
        total += shares[i].work;
    }
    for (int i = 0; i < n; i++) {
        char who[32];
        bool others = i == n - 1 && n < threads;
        number work = 0;
        for (int j = i; j < (others ? all : i + 1); j++) {
            work += shares[j].work;
        }
        double part = (double)work / (double)(total + !total);
        snprintf(who, sizeof who, others ? "by %d others" : "by thread %d",
                 others ? threads - i : i + 1);
        printf("%*s%-*s", narrow ? 2 : 19, "", narrow ? 18 : 27, who);
        bar(part, 20, "\033[33m");
        printf(" %7.1f %%\033[K\n", 100 * part);
    }
    return n > 0 ? n : 0;
}

/* Draws a frame over the one before; returns how many lines it has. */
static int draw(int lines, const pirn_metrics_v1 *m)
{
    number rss = memory("/proc/self/status", finished ? "VmHWM:" : "VmRSS:");
    printf(FRAME_BEGIN);
    if (resized()) {
        printf("\033[H"); /* it may have broken the old lines anew: over all of them */
    } else if (lines) {
        printf("\033[%dA", lines);
    }
    printf("\033[K\n  %spirn %s%s: %s\033[K\n\033[K\n", hue("\033[1m"), pirn_version(),
           hue("\033[0m"), note ? note : "the scheduler at work");
    for (struct stage *s = stages; s < stages + STAGES; s++) {
        draw_stage(s, m);
    }
    lines = LINES + draw_shares();
    printf("\033[K\n  %s%s%s alive, ", hue("\033[1m"), grouped(m->goroutines), hue("\033[0m"));
    if (!narrow) {
        printf("%s Ms, %s Ps, ", grouped(m->threads), grouped(m->procs));
    }
    printf("%s switches, %s steals, %s MB%s\033[K\n\033[J" FRAME_END, grouped(m->switches),
           grouped(m->steals), grouped(rss >> 20), finished ? " peak" : "");
    return lines;
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
        int sig;
        do {
            sig = last ? 0 : sigtimedwait(signals, NULL, &tenth);
        } while (sig < 0 && errno == EINTR); /* Ctrl-Z: SIGCONT comes next */
        if (sig == SIGCONT) {
            lines = 0; /* the shell has written below the frame */
        } else if (sig > 0) {
            printf("%s", tty ? FRAME_END "\n  interrupted\n" : "interrupted\n");
            fflush(stdout);
            _exit(130); /* whatever the goroutines are doing */
        }
    }
    return NULL;
}

void screen_start(const char *text)
{
    static sigset_t signals;
    static char frame[16384];
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    setlocale(LC_CTYPE, "");
    utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    tty = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
    resized();
    tty = tty && rows > LINES;
    colours = tty && !(no_color && *no_color);
    note = text;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCONT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* here, and so in every thread made from now on */
    setvbuf(stdout, frame, _IOFBF, sizeof frame); /* a frame is one write, and does not flicker */
    if (pthread_create(&thread, NULL, paint, &signals)) {
        abort();
    }
}

static void print_row(const char *const cells[])
{
    static const int widths[] = {-7, 10, 4, 4, 11, 7, 9, 10, 8};
    printf(" ");
    for (int i = 0; i < 9; i++) {
        if (!narrow || i < 2 || i > 4) {
            printf(" %*s", widths[i], cells[i]);
        }
    }
    printf("\n");
}

void screen_stop(void)
{
    finished = true;
    pthread_join(thread, NULL);
    printf("\n");
    print_row((const char *[]){"", "goroutines", "Ms", "Ps", "switches", "steals", "time",
                               "bytes each", "ns each"});
    for (struct stage *s = stages; s < stages + STAGES; s++) {
        char took[32];
        snprintf(took, sizeof took, "%.2f s", (double)s->took / PIRN_SEC);
        print_row((const char *[]){s->name, grouped(s->n), grouped(s->after.threads),
                                   grouped(s->after.procs),
                                   grouped(s->after.switches - s->before.switches),
                                   grouped(s->after.steals - s->before.steals), took,
                                   s->bytes_each > 0 ? grouped((number)s->bytes_each) : "",
                                   grouped((number)s->took / (s->n + !s->n))});
    }
    fflush(stdout);
}
