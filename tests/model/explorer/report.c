/* SPDX-License-Identifier: MIT */
/*
 * What people see: failures, replay strings, traces.
 *
 * A replay string names the thread of every operation in order, T0 as a, T1 as b ..., with a count
 * if it does several in a row, and after a dot each choice of a value: a3.1b2 is three operations of
 * T0, whose last saw the store before the newest, then two of T1. It holds whatever the strategy
 * was that found it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explorer/explorer.h"

char **report_argv;
bool report_no_trace;

/* --- the log of this execution ------------------------------------------------------------------ */

static struct {
    uint8_t what[STEPS_MOST * 2]; /* a thread, or a value | 128 */
    int n, at;
} steps_log;

void log_begin(void)
{
    if (ex.strategy != REPLAY) {
        steps_log.n = 0;
    }
    steps_log.at = 0;
}

static void log_add(int x)
{
    if (ex.strategy != REPLAY && steps_log.n < STEPS_MOST * 2) {
        steps_log.what[steps_log.n++] = (uint8_t)x;
    }
}

void log_thread(int t)
{
    log_add(t);
    if (ex.strategy == REPLAY) {
        steps_log.at++; /* replay_thread() only looks */
    }
}

void log_value(int v)
{
    log_add(v | 128);
}

int replay_value(void)
{
    if (steps_log.at >= steps_log.n || !(steps_log.what[steps_log.at] & 128)) {
        model_fail("the replay string does not fit this model");
    }
    return steps_log.what[steps_log.at++] & 127;
}

int replay_thread(void)
{
    if (steps_log.at >= steps_log.n) {
        return -1;
    }
    if (steps_log.what[steps_log.at] >= ex.nthreads) {
        model_fail("the replay string does not fit this model");
    }
    return steps_log.what[steps_log.at];
}

void replay_parse(const char *s)
{
    steps_log.n = 0;
    while (*s) {
        if (*s == '.') {
            steps_log.what[steps_log.n++] = (uint8_t)(strtol(s + 1, (char **)&s, 10) | 128);
            continue;
        }
        int t = *s++ - 'a';
        long count = *s >= '0' && *s <= '9' ? strtol(s, (char **)&s, 10) : 1;
        if (t < 0 || t >= NT || count < 1 || steps_log.n + count > STEPS_MOST * 2) {
            fprintf(stderr, "not a replay string\n");
            exit(2);
        }
        while (count--) {
            steps_log.what[steps_log.n++] = (uint8_t)t;
        }
    }
}

static void log_print(char *out)
{
    for (int i = 0; i < steps_log.n;) {
        int x = steps_log.what[i], k = 1;
        if (x & 128) {
            out += sprintf(out, ".%d", x & 127);
        } else {
            while (i + k < steps_log.n && steps_log.what[i + k] == x) {
                k++;
            }
            out += k > 1 ? sprintf(out, "%c%d", 'a' + x, k) : sprintf(out, "%c", 'a' + x);
        }
        i += k;
    }
    *out = '\0';
}

/* --- traces ------------------------------------------------------------------------------------- */

const char *order_name(int order)
{
    switch (order) {
    case RELAXED: return "RELAXED";
    case ACQUIRE: return "ACQUIRE";
    case RELEASE: return "RELEASE";
    case ACQ_REL: return "ACQ_REL";
    case SEQ_CST: return "SEQ_CST";
    default: return "?";
    }
}

static const char *kind_name(enum model_kind kind)
{
    static const char *const names[] = {
        [MODEL_LOAD] = "load", [MODEL_STORE] = "store",       [MODEL_XCHG] = "xchg",
        [MODEL_ADD] = "add",   [MODEL_AND] = "and",           [MODEL_OR] = "or",
        [MODEL_CAS] = "cas",   [MODEL_CAS_WEAK] = "cas_weak", [MODEL_FENCE] = "fence",
    };
    return names[kind];
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* file:line of an address of ours, by addr2line; good enough for a trace. */
const char *place_of(void *pc)
{
    extern char __executable_start[];
    static char line[512];
    char cmd[600], exe[400];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n < 0 ? 0 : n] = '\0';
    snprintf(cmd, sizeof cmd, "addr2line -e %s 0x%lx 2>/dev/null", exe,
             (unsigned long)((char *)pc - __executable_start) - 1);
    FILE *f = popen(cmd, "r");
    strcpy(line, "?");
    if (f) {
        if (fgets(line, sizeof line, f)) {
            line[strcspn(line, " \n")] = '\0';
        }
        pclose(f);
    }
    return base_name(line);
}

static void op_text(char *buf, size_t size, const struct op *op)
{
    static const char *const calls[] = {
        [OP_LOCK] = "lock",       [OP_WAIT] = "futex_wait",
        [OP_WAKE] = "futex_wake", [OP_ASLEEP] = "futex_wait (asleep)",
        [OP_PAUSE] = "pause",     [OP_START] = "start",
    };
    char place[64];
    if (op->kind == OP_ATOMIC || op->kind == OP_FENCE) {
        snprintf(place, sizeof place, "%s:%d", base_name(op->site->file), op->site->line);
        snprintf(buf, size, "%-18s %s(%s, %s)", place, kind_name(op->site->kind), op->site->text,
                 order_name(op->site->order));
    } else {
        snprintf(buf, size, "%-18s %s", op->pc ? place_of(op->pc) : "", calls[op->kind]);
    }
}

/* A long trace is shown by its beginning and its end. */
#define LINE 400
#define FIRST_LINES 300
#define LAST_LINES 100
static char trace[FIRST_LINES + LAST_LINES][LINE];
static int ntrace;

static char *trace_line(void)
{
    int i = ntrace++;
    return trace[i < FIRST_LINES ? i : FIRST_LINES + (i - FIRST_LINES) % LAST_LINES];
}

void trace_show(void)
{
    int last = ntrace > FIRST_LINES + LAST_LINES ? ntrace - LAST_LINES : FIRST_LINES;
    for (int i = 0; i < ntrace && i < FIRST_LINES; i++) {
        puts(trace[i]);
    }
    if (last > FIRST_LINES) {
        printf("      ... %d more ...\n", last - FIRST_LINES);
    }
    for (int i = last; i < ntrace; i++) {
        puts(trace[FIRST_LINES + (i - FIRST_LINES) % LAST_LINES]);
    }
    ntrace = 0;
}

void trace_op(const struct op *op, const char *what, uint64_t value, int behind)
{
    char text[256];
    if (!ex.trace) {
        return;
    }
    op_text(text, sizeof text, op);
    char *line = trace_line();
    int n = snprintf(line, LINE, "%4d  T%d  %-64s", ex.steps, ex.cur, text);
    if (op->kind != OP_FENCE && op->kind != OP_LOCK) {
        n += snprintf(line + n, LINE - (size_t)n, " %s%s%lx", what,
                      op->kind == OP_ATOMIC ? "= " : "", (unsigned long)value);
    }
    if (behind) {
        snprintf(line + n, LINE - (size_t)n, "  (%d newer %s not seen)", behind,
                 behind == 1 ? "store" : "stores");
    }
}

/* --- failures ----------------------------------------------------------------------------------- */

static void show_threads(void)
{
    for (int i = 0; i < ex.nthreads; i++) {
        char text[256];
        op_text(text, sizeof text, &ex.threads[i].op);
        printf("      T%d  %s\n", i, ex.threads[i].done ? "has ended" : text);
    }
}

_Noreturn void model_fail(const char *format, ...)
{
    static char replay[STEPS_MOST * 8], message[1000];
    va_list ap;
    va_start(ap, format);
    vsnprintf(message, sizeof message, format, ap);
    va_end(ap);
    trace_show();
    printf("%s: %s\n", ex.model->name, message);
    if (ex.strategy == REPLAY) {
        printf("the threads:\n");
        show_threads();
        fflush(stdout);
        _exit(1);
    }
    log_print(replay);
    printf("%s: after %lu executions; replay: --model %s --replay %.1000s%s\n", ex.model->name,
           (unsigned long)ex.executions, ex.model->name, replay,
           strlen(replay) > 1000 ? "... (too long to show)" : "");
    fflush(stdout);
    if (ex.model->finds || report_no_trace) {
        _exit(ex.model->finds && !strstr(message, ex.model->finds) ? EXIT_OTHER_BUG : 1);
    }
    char *argv[64];
    int n = 0;
    for (; report_argv[n] && n < 56; n++) {
        argv[n] = report_argv[n];
    }
    argv[n++] = (char *)"--model";
    argv[n++] = (char *)(uintptr_t)ex.model->name;
    argv[n++] = (char *)"--replay";
    argv[n++] = replay;
    argv[n] = NULL;
    execv("/proc/self/exe", argv);
    _exit(1);
}
