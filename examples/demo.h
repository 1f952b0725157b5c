/* SPDX-License-Identifier: MIT */
/* What the demo (demo.c) and its screen (demo_screen.c) share. */
#ifndef DEMO_H
#define DEMO_H

#include <pirn.h>
#include <stdatomic.h>

typedef unsigned long long number;

enum { CREATE, WAKE, SKYNET, FORK, STAGES };

struct stage {
    const char *name, *what;
    number n; /* goroutines */
    pirn_ns began, took;
    pirn_metrics_v1 before, after;
    double bytes_each; /* 0: does not apply */
    enum { COMING, RUNNING, DONE } _Atomic state;
};
extern struct stage stages[STAGES];

/* Goroutines at the gate. */
extern _Atomic number arrived;

/* How much each thread has done of the fork stage. */
#define SHARES 64
struct share {
    _Alignas(64) _Atomic number work;
};
extern struct share shares[SHARES];
extern atomic_int nshares;

number memory(const char *path, const char *key);

/* Starts the thread that draws; call it before the runtime starts, so that it gets the signals. */
void screen_start(const char *note);
void screen_stop(void); /* ends with the table */

#endif
