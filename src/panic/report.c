/* SPDX-License-Identifier: MIT */
/*
 * The last words of a goroutine that has panicked, or of one that has caused a fault.
 *
 * Nothing is allocated, and a full stack is no hindrance (debug/dump.c). The frames of the goroutine are still
 * there: they are shown from the one that has panicked, or that the signal has interrupted. The thread says
 * that it is in the runtime, so it keeps its turn until the process ends.
 */
#include <unistd.h>

#include "debug/dump.h"
#include "panic/panic.h"

void report_keeps_p(void)
{
    struct m *mp = getm();
    if (mp) {
        at_store(&mp->where, M_RUNTIME, RELAXED);
    }
}

/* A thread that is no goroutine comes before them; the program's last word before either. */
static void report_thread(const char *message, const void *context)
{
    if (fatal_callback) {
        fatal_callback(message);
    }
    dump_thread(STDERR_FILENO, context);
    if (fatal_dump) {
        fatal_dump(STDERR_FILENO);
    }
}

/* context: of the code that a signal has interrupted, or NULL. */
void report_goroutines(const char *message, const void *context)
{
    struct m *mp = getm();
    if (!mp || !mp->curg) {
        report_thread(message, context);
        return;
    }
    if (context) {
        at_store(&mp->context, context, RELAXED);
    }
    report_rest(message);
}

/* --- panics ------------------------------------------------------------------------------------------ */

static struct pirn_panic_info *oldest_first(struct pirn_panic_info *p)
{
    struct pirn_panic_info *list = NULL;
    for (struct pirn_panic_info *next; p; p = next) {
        next = p->link;
        p->link = list;
        list = p;
    }
    return list;
}

/* One that was recovered and raised again with the same words is one. */
static bool is_repeated(const struct pirn_panic_info *p)
{
    return p->recovered && p->link && !p->link->exits && strcmp(p->message, p->link->message) == 0;
}

static void say_panics(struct pirn_panic_info *newest)
{
    const char *indent = "";
    for (struct pirn_panic_info *p = oldest_first(newest); p; p = p->link) {
        if (p->exits) {
            continue;
        }
        bool again = is_repeated(p);
        say("%spanic: %s%s\n", indent, p->message,
            again          ? " [recovered, repanicked]"
            : p->recovered ? " [recovered]"
                           : "");
        indent = "\t";
        while (again && p->link) {
            p = p->link;
            again = is_repeated(p);
        }
    }
}

void panic_report(struct pirn_panic_info *p)
{
    report_begin();
    report_keeps_p();
    dump_begin_at(p->sp);
    say_panics(p);
    report_goroutines(p->message, NULL);
    _exit(2);
}

/* The process must not end in the midst of a report. */
__attribute__((destructor)) static void at_exit(void)
{
    report_wait();
}
