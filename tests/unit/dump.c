/* SPDX-License-Identifier: MIT */
/*
 * Backtraces and dumps of goroutines in every state, with garbage on their stacks, with and without
 * the program that finds names.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug/backtrace.h"
#include "debug/unwind.h"
#include "harness.h"
#include "sched/sched.h"

#define PROCS .procs = "1,2,4,16"
#define MOST 64

static at_u32 ready_n, go_on;
static char text[1 << 20];

static void until_ready(uint32_t n)
{
    while (at_load(&ready_n, ACQUIRE) < n)
        pirn_yield();
}

/* What a function writes to a descriptor, in text. */
static void dump_to_text(void)
{
    FILE *f = tmpfile();
    CHECK(f != NULL);
    CHECK_EQ(pirn_dump(fileno(f)), 0);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
}

static bool has_names(void)
{
    const char *path = getenv("PIRN_SYMBOLS");
    return path && access(path, X_OK) == 0 && tool_knows_new_calls(); /* not under valgrind */
}

/* The entry of the goroutine that runs fn. */
static char *entry_of(const char *fn)
{
    char heading[100];
    snprintf(heading, sizeof heading, "] %s:\n", fn);
    return strstr(text, heading);
}

/* --- where it is ------------------------------------------------------------------------------------- */

static void *returns[3]; /* what the three below return to */
static pirn_chan(int) chan;
static struct g *parked;

static __attribute__((noinline)) void third(void)
{
    returns[2] = __builtin_return_address(0);
    parked = getm()->curg;
    at_add(&ready_n, 1, RELEASE);
    pirn_chan_recv(chan, NULL);
    __asm__ volatile("");
}

static __attribute__((noinline)) void second(void)
{
    returns[1] = __builtin_return_address(0);
    third();
    __asm__ volatile("");
}

static __attribute__((noinline)) void first(void)
{
    returns[0] = __builtin_return_address(0);
    second();
    __asm__ volatile("");
}

static int place_of(void *const *pcs, int n, const void *pc)
{
    for (int i = 0; i < n; i++)
        if (pcs[i] == pc)
            return i;
    return -1;
}

static void until_parked(void)
{
    until_ready(1);
    while (at_load(&parked->status, ACQUIRE) != G_WAITING)
        pirn_yield();
}

TEST_RUN_ATTR(parked, PROCS)
{
    void *pcs[MOST];
    chan = pirn_chan_make(int, 0);
    pirn_go(first);
    until_parked();
    int n = backtrace_of_g(parked, pcs, MOST);
    int at = place_of(pcs, n, returns[2]);
    CHECK_GT(at, 0);
    CHECK_EQ(pcs[at + 1], returns[1]);
    CHECK_LT(n, MOST);
    /* Shorter arrays have the innermost. */
    void *few[2];
    CHECK_EQ(backtrace_of_g(parked, few, 2), 2);
    CHECK_EQ(few[1], pcs[1]);
    CHECK_EQ(backtrace_of_g(parked, few, 0), 0);
    pirn_chan_send(chan, 1);
}

static __attribute__((noinline)) int here(void **pcs)
{
    returns[0] = __builtin_return_address(0);
    int n = pirn_backtrace(pcs, MOST);
    __asm__ volatile("");
    return n;
}

TEST_RUN_ATTR(running, PROCS)
{
    void *pcs[MOST];
    int n = here(pcs);
    CHECK_GT(n, 2);
    CHECK_EQ(place_of(pcs, n, returns[0]),
             1); /* 0 is here() itself, of which pirn_backtrace is called */
    CHECK_EQ(backtrace_of_g(getm()->curg, pcs, MOST) > 2, true);
}

TEST(outside)
{
    void *pcs[MOST];
    int n = here(pcs);
    CHECK_GT(place_of(pcs, n, returns[0]), -1);
}

static void never(void)
{
}

TEST_RUN(not_begun)
{
    dump_to_text();
    CHECK(!strstr(text, "not begun"));
    pirn_go(never);
    if (pirn_procs(0) == 1) {
        dump_to_text();
        CHECK(strstr(text, "(not begun)\n") != NULL);
    }
}

/* --- garbage -------------------------------------------------------------------------------------------- */

/* Frames are poisoned. */
__attribute__((no_sanitize("address"))) static void copy_words(uint64_t *to, const uint64_t *from,
                                                               size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile uint64_t *)to)[i] = ((const volatile uint64_t *)from)[i];
}

static uint64_t random_word(struct rand *r, const struct g *gp)
{
    uint64_t v = (uint64_t)rand_below(r, UINT32_MAX) << 32 | rand_below(r, UINT32_MAX);
    uintptr_t hi = (uintptr_t)gp->stack_hi;
    switch (rand_below(r, 6)) {
    case 0: return 0;
    case 1: return hi - v % 4096; /* the stack */
    case 2: return (uintptr_t)gp->sp + v % 512 / 8 * 8;
    case 3: return (uintptr_t)first + v % 256;       /* code */
    case 4: return (uintptr_t)arch_switch + v % 512; /* other code */
    default: return v;
    }
}

/* Any words on a stack: a trace, of whatever length, and no fault. */
TEST_RUN_ATTR(garbage, .procs = "1")
{
    static uint64_t saved[8192];
    void *pcs[MOST];
    struct rand r;
    rand_seed(&r, 1);
    chan = pirn_chan_make(int, 0);
    pirn_go(first);
    until_parked();
    uint64_t *sp = parked->sp;
    size_t words = (size_t)((uint64_t *)parked->stack_hi - sp);
    CHECK_LT(words, sizeof saved / sizeof saved[0]);
    copy_words(saved, sp, words);
    int longest = 0;
    for (int i = 0; i < (test_emulated() ? 1000 : 20000); i++) {
        copy_words(sp, saved, words);
        uint32_t n = i % 2 ? (uint32_t)words : 3;
        for (uint32_t k = 0; k < n; k++) {
            uint64_t word = random_word(&r, parked);
            copy_words(&sp[n == 3 ? rand_below(&r, (uint32_t)words) : k], &word, 1);
        }
        int got = backtrace_of_g(parked, pcs, MOST);
        CHECK(got >= 0 && got <= MOST);
        longest = got > longest ? got : longest;
    }
    CHECK_GT(longest, 3);
    copy_words(sp, saved, words);
    /* And a stack pointer that is none. */
    void *real = parked->sp;
    void *wrong[] = {NULL,
                     (void *)8,
                     (char *)real + 1,
                     parked->stack_hi,
                     (char *)parked->stack_hi - 8,
                     (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        parked->sp = wrong[i];
        CHECK_GE(backtrace_of_g(parked, pcs, MOST), 0);
    }
    parked->sp = real;
    pirn_chan_send(chan, 1);
}

/* --- dumps ----------------------------------------------------------------------------------------------- */

static void computes(void)
{
    at_add(&ready_n, 1, RELEASE);
    while (!at_load(&go_on, RELAXED)) {
    }
}

static void blocks(int fd)
{
    char c;
    at_add(&ready_n, 1, RELEASE);
    while (read(fd, &c, 1) != 1) {
    }
}

/* Also those that run or block on other threads. */
TEST_RUN_ATTR(all_states, PROCS)
{
    int fds[2];
    pirn_wg wg = {0};
    CHECK_EQ(pipe(fds), 0);
    chan = pirn_chan_make(int, 0);
    pirn_wg_go(&wg, blocks, fds[0]);
    if (!TEST_TSAN)
        pirn_wg_go(&wg, computes); /* there is no preemption */
    pirn_wg_go(&wg, first);
    until_ready(TEST_TSAN ? 2 : 3);
    for (int i = 0; i < 100; i++) { /* the one that is about to wait may just be on its way */
        dump_to_text();
        if (strstr(text, " [chan receive"))
            break;
        pirn_yield();
    }
    printf("%s", text);
    CHECK(entry_of("main") && entry_of("blocks") && entry_of("first"));
    CHECK(strstr(text, "\ngoroutine 1 [running] main:\n") == text);
    CHECK(strstr(text, " [chan receive") != NULL);
    if (!TEST_TSAN)
        CHECK(entry_of("computes") != NULL);
    if (has_names() && !TEST_ASAN && !TEST_TSAN) {
        CHECK(strstr(text, "\tthird at ") && strstr(text, "\tsecond at ")
              && strstr(text, "\tfirst at "));
        CHECK(strstr(text, "\tcomputes at ") != NULL);
        CHECK(strstr(text, "dump.c:") != NULL);
    }
    at_store(&go_on, 1, RELAXED);
    CHECK_EQ(write(fds[1], "", 1), 1);
    pirn_chan_send(chan, 1);
    pirn_wg_wait(&wg);
}

static pirn_wg never_wg;

static void waits(void)
{
    at_add(&ready_n, 1, RELAXED);
    pirn_wg_wait(&never_wg);
}

static uint32_t all_wait(uint32_t n)
{
    pirn_wg_add(&never_wg, 1);
    for (uint32_t i = 0; i < n; i++)
        pirn_go(waits);
    until_ready(n);
    return n;
}

/* One entry, with the number of those that are like it. (once: else TSan has 1,000 fibers for each time.) */
TEST_RUN_ATTR(many_alike, .procs = "1,4", .once = true)
{
    uint32_t n = all_wait(TEST_TSAN || test_emulated() ? 1000 : 10000);
    char more[64];
    snprintf(more, sizeof more, "\tand %u more: ", n - 1);
    for (int i = 0; i < 1000; i++) {
        dump_to_text();
        if (strstr(text, more))
            break;
        pirn_yield(); /* one was not there yet */
    }
    printf("%s", text);
    CHECK(strstr(text, more) != NULL);
    CHECK_LT(strlen(text), 4096);
}

/* 100,000 in less than 2 s. */
TEST_RUN_ATTR(full_dump_in_time, .procs = "2", .alone = true, .slow = true)
{
    if (TEST_ASAN || TEST_TSAN || test_emulated() || PIRN_SMALL || PIRN_FLAVOUR_CHAOS)
        SKIP("a matter of speed");
    all_wait(100000);
    pirn_ns best = PIRN_NEVER;
    for (int i = 0; i < 5 && best > 2 * PIRN_SEC; i++) {
        pirn_ns begin = pirn_now();
        dump_to_text();
        best = pirn_now() - begin < best ? pirn_now() - begin : best;
    }
    printf("%ld ms\n", (long)(best / PIRN_MS));
    CHECK_LT(best, 2 * PIRN_SEC);
    CHECK(strstr(text, "\tand 9") != NULL);
}

static __attribute__((noinline)) void deep(int n)
{
    if (n) {
        deep(n - 1);
        __asm__ volatile("");
        return;
    }
    at_add(&ready_n, 1, RELAXED);
    pirn_wg_wait(&never_wg);
}

/* More stacks than are shown: the rest is counted. */
TEST_RUN(many_different)
{
    enum { N = 700 };
    pirn_wg_add(&never_wg, 1);
    for (int i = 0; i < N; i++) {
        char name[20];
        snprintf(name, sizeof name, "%d", i);
        CHECK_EQ(pirn_spawn(&(pirn_attr){.name = name}, (void (*)(void *))(uintptr_t)waits, NULL),
                 0);
    }
    until_ready(N);
    dump_to_text();
    unsigned shown = 0, others = 0;
    for (char *at = text; (at = strstr(at, "\ngoroutine ")); at++)
        shown++;
    char *rest = strstr(text, "\n... and ");
    CHECK(rest && sscanf(rest, "\n... and %u more goroutines, with other stacks", &others) == 1);
    CHECK_EQ(shown + others, N + 1);
}

/* Of those deep down the innermost frames are shown. */
TEST_RUN(deep_stack)
{
    pirn_wg_add(&never_wg, 1);
    pirn_go(deep, 600);
    until_ready(1);
    for (int i = 0; i < 1000 && !strstr(text, " [wait group wait"); i++)
        dump_to_text();
    CHECK(strstr(text, "\n\t...\n\tcreated by goroutine 1 at ") != NULL);
}

static void dumps(int fd)
{
    for (int i = 0; i < 5; i++)
        CHECK_EQ(pirn_dump(fd), 0);
}

/* Several at once, while goroutines come and go. */
TEST_RUN_ATTR(at_once, PROCS)
{
    FILE *f = tmpfile();
    CHECK(f != NULL);
    pirn_wg wg = {0};
    for (int i = 0; i < 4; i++)
        pirn_wg_go(&wg, dumps, fileno(f));
    for (int i = 0; i < 1000; i++)
        pirn_wg_go(&wg, never);
    pirn_wg_wait(&wg);
    fclose(f);
}

/* --- names ------------------------------------------------------------------------------------------------ */

static void print_here(void)
{
    void *pcs[MOST];
    int n = here(pcs);
    FILE *f = tmpfile();
    CHECK(f != NULL);
    pirn_backtrace_print(fileno(f), pcs, n);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    printf("%s", text);
}

TEST_RUN(names)
{
    if (!has_names())
        SKIP("no pirn-symbols");
    print_here();
    CHECK(strstr(text, "\there at ") == text);
    CHECK(strstr(text, "\tprint_here at ") != NULL);
    CHECK(!strstr(text, "g_main"));
}

/* Programs that are none, end at once, or say something else. */
static void plain(void)
{
    print_here();
    CHECK(!strstr(text, "print_here"));
    CHECK(strstr(text, "+0x") != NULL);
    CHECK_EQ(text[0], '\t');
}

TEST_RUN_ATTR(names_off, .env = "PIRN_SYMBOLS=off")
{
    plain();
}

TEST_RUN_ATTR(names_missing, .env = "PIRN_SYMBOLS=/nonexistent")
{
    plain();
}

TEST_RUN_ATTR(names_failing, .env = "PIRN_SYMBOLS=/bin/false")
{
    plain();
}

TEST_RUN_ATTR(names_strange, .env = "PIRN_SYMBOLS=/usr/bin/env")
{
    plain();
}
