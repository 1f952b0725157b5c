/* SPDX-License-Identifier: MIT */
/*
 * A model: a small program of 2 to 5 threads over the sources that ship, which the explorer runs in
 * every way that the C11 memory model allows. docs/design/model-checking.md explains how to write
 * one and how to read a failure.
 *
 *     static at_u32 flag;
 *     static int data;
 *
 *     static void writer(void) { data = 1; at_store(&flag, 1, RELEASE); }
 *     static void reader(void) { if (at_load(&flag, ACQUIRE)) CHECK(data == 1); }
 *     static void setup(void)  { at_store(&flag, 0, RELAXED); data = 0; }
 *
 *     MODEL(message, .setup = setup, .threads = {writer, reader})
 *
 * Plain accesses need no wrapper: models and sources are compiled with the compiler's hooks for
 * loads and stores, behind which the explorer looks for data races and use after free.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

#define MODEL_THREADS 6
#define MODEL_UNBOUNDED (-1)

struct model {
    const char *name;
    void (*setup)(void);                  /* before each execution; resets every variable */
    void (*threads[MODEL_THREADS])(void); /* all at once */
    void (*finish)(void);                 /* after each: what must hold */
    int preemptions;      /* bound of the full run: at least 3, or MODEL_UNBOUNDED */
    int quick;            /* bound of the quick run; 0: the same */
    int spurious;         /* each thread's futex waits may end for no reason so often */
    int timeouts;         /* ... or by their deadline, though others could still run */
    unsigned sleepers;    /* bit i: thread i may be asleep when all others have ended */
    bool leaks;           /* what was allocated may stay */
    const char *finds;    /* a planted bug: the run must fail, and the message must say this */
    const char *outcomes; /* of a litmus test: what model_outcome() must have seen, sorted */
    struct model *next;
};

#define MODEL(mname, ...)                                                                          \
    static struct model model_rec_##mname = {.name = #mname, __VA_ARGS__};                         \
    __attribute__((constructor)) static void model_reg_##mname(void)                               \
    {                                                                                              \
        model_register(&model_rec_##mname);                                                        \
    }

void model_register(struct model *m);

/* Ends the run, with a replay string. */
_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define CHECK(cond) ((cond) ? (void)0 : model_fail("%s:%d: %s", __FILE__, __LINE__, #cond))

int model_self(void);  /* index of this thread; -1 in setup and finish */
int model_pick(int n); /* any of 0 .. n-1: each is tried */
void model_outcome(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A variable that each thread has of its own, a __thread one for instance; 8 bytes at most. */
void model_thread_local(void *addr, size_t size);

/* Blocking objects. */
bool model_futex_wait(const volatile void *addr, uint32_t value, bool limit); /* false: time-out */
void model_futex_wake(const volatile void *addr, int n);
void model_lock(void *lock);
void model_unlock(void *lock);
bool model_holds(void *lock);
/* A note in one step: cleared by who will wait, before others know of it; posted once, by one of them. */
void model_note_clear(void *note);
void model_note_post(void *note);
void model_note_wait(void *note);

/* The heap: never reused within an execution, so every use after free is seen. */
void *model_malloc(size_t size);
void *model_calloc(size_t n, size_t size);
void *model_aligned_alloc(size_t align, size_t size);
void *model_realloc(void *p, size_t size);
void model_free(void *p);
void *model_memset(void *to, int byte, size_t size);
void *model_memcpy(void *to, const void *from, size_t size);

#endif
