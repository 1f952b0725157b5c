/* SPDX-License-Identifier: MIT */
/* Who can recover: numbers 70 and 74 of the conformance list. Also built by tests/levels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pirn.h>

#include "harness.h"

static const char *first, *second;

static __attribute__((noinline)) void directly(void)
{
    first = pirn_recover();
    CHECK(!first || !strcmp(first, "boom"));
    second = pirn_recover();
}

static void boom(void *arg)
{
    (void)arg;
    pirn_panic("boom");
}

/* True: fn was called by the panic, and it was over then. */
static void (*deferred)(void);

static void with_deferred(void *arg)
{
    pirn_defer(deferred);
    if (arg)
        boom(NULL);
}

static bool recovers(void (*fn)(void))
{
    deferred = fn;
    first = second = NULL;
    pirn_panic_info *p = pirn_try(with_deferred, &deferred);
    bool recovered = !p;
    CHECK_EQ(recovered, first != NULL);
    CHECK(!second);
    pirn_panic_free(p);
    return recovered;
}

/* --- helpers ----------------------------------------------------------------------------------------- */

static void by_helper(void)
{
    directly();
    __asm__ volatile(""); /* no tail call: that takes the place of its caller */
}

static __attribute__((noinline)) void far_helper(void)
{
    first = pirn_recover();
}

static void by_far_helper(void)
{
    far_helper();
    __asm__ volatile("");
}

static inline __attribute__((always_inline)) void inlined(void)
{
    first = pirn_recover();
}

static void by_inlined(void)
{
    inlined();
}

static void by_tail_call(void)
{
    directly();
}

static void by_deferred(void)
{
    pirn_defer(directly); /* called at the end of this function, not by the panic */
}

static void in_a_try(void *arg)
{
    (void)arg;
    first = pirn_recover();
}

static void by_try(void)
{
    CHECK(pirn_try(in_a_try, NULL) == NULL);
}

static __attribute__((noinline)) void use(volatile char *p)
{
    p[0] = 1;
}

static void big_frame(void)
{
    volatile char frame[10000];
    use(frame);
    directly();
    CHECK(!first);
    first = pirn_recover();
    use(frame);
}

static void aligned_frame(void)
{
    _Alignas(64) volatile char frame[64];
    use(frame);
    CHECK_EQ((uintptr_t)frame % 64, 0);
    first = pirn_recover();
}

static void varying_frame(void)
{
    volatile char frame[(first ? 1 : 0) + 100];
    use(frame);
    first = pirn_recover();
}

TEST_RUN(only_directly)
{
    CHECK(recovers(directly));
    CHECK(!recovers(by_helper));
    CHECK(!recovers(by_far_helper));
    CHECK(!recovers(by_deferred));
    CHECK(!recovers(by_try));
    CHECK(recovers(big_frame));
    CHECK(recovers(aligned_frame));
    CHECK(recovers(varying_frame));
}

/* By name: what the compiler has put into the function, or in its place, is no part of it. */
static void named(void *arg)
{
    if (arg == &first) {
        pirn_defer(by_inlined);
        boom(NULL);
    } else if (arg) {
        pirn_defer(by_tail_call);
        boom(NULL);
    } else {
        pirn_defer(directly);
        boom(NULL);
    }
}

TEST_RUN(by_name)
{
    pirn_panic_info *p = pirn_try(named, &first);
    CHECK(p != NULL);
    pirn_panic_free(p);
    p = pirn_try(named, &second);
    CHECK(p != NULL);
    pirn_panic_free(p);
    CHECK(pirn_try(named, NULL) == NULL);
}

TEST_RUN(no_panic)
{
    deferred = directly;
    first = "x";
    CHECK(pirn_try(with_deferred, NULL) == NULL);
    CHECK(!first);
    first = pirn_recover();
    CHECK(!first);
    directly();
    CHECK(!first);
}

/* --- arguments --------------------------------------------------------------------------------------- */

static void with_arguments(int a, double b, const char *c)
{
    CHECK_EQ(a, 1);
    CHECK(b > 2.4 && b < 2.6);
    CHECK_STR(c, "three");
    first = pirn_recover();
}

static void defers_arguments(void *arg)
{
    (void)arg;
    pirn_defer(with_arguments, 1, 2.5, "three");
    boom(NULL);
}

static void with_pointer(void *arg)
{
    *(const char **)arg = pirn_recover();
}

static void defers_pointer(void *arg)
{
    pirn_defer(with_pointer, arg);
    boom(NULL);
}

static void itself(void *arg)
{
    (void)arg;
    pirn_defer(pirn_recover);
    boom(NULL);
}

TEST_RUN(arguments)
{
    CHECK(pirn_try(defers_arguments, NULL) == NULL);
    CHECK(first != NULL);
    const char *text = NULL;
    CHECK(pirn_try(defers_pointer, &text) == NULL);
    CHECK(text != NULL);
    pirn_panic_info *p = pirn_try(itself, NULL); /* it was not called by a deferred function */
    CHECK(p != NULL);
    pirn_panic_free(p);
}

/* --- nested ------------------------------------------------------------------------------------------ */

static char seen[64];

static void see(void)
{
    const char *text = pirn_recover();
    strcat(strcat(seen, text ? text : "-"), " ");
}

static void panics(const char *text)
{
    pirn_panic("%s", text);
}

static void one_inside(void)
{
    pirn_defer(see); /* its own panic */
    pirn_panic("inside");
}

static void inside_a_try(void *arg)
{
    (void)arg;
    one_inside();
}

static void tries_first(void)
{
    CHECK(pirn_try(inside_a_try, NULL) == NULL);
    const char *text = pirn_recover();
    strcat(strcat(seen, text ? text : "-"), " ");
}

static void outside(void *arg)
{
    (void)arg;
    pirn_defer(see);
    pirn_defer(tries_first);
    panics("outside");
}

static void replaced(void *arg)
{
    (void)arg;
    pirn_defer(see);
    pirn_defer(see);
    pirn_defer(panics, "newer");
    panics("older");
}

/* Number 71: each panic is recovered by its own. */
TEST_RUN(each_its_own)
{
    CHECK(pirn_try(outside, NULL) == NULL);
    CHECK_STR(seen, "inside outside - ");
    seen[0] = '\0';
    CHECK(pirn_try(replaced, NULL) == NULL);
    CHECK_STR(seen, "newer - ");
}

static void again(void)
{
    const char *text = pirn_recover();
    pirn_panic("%s, again", text);
}

static void repanics(void *arg)
{
    pirn_defer(see);
    pirn_defer(again);
    panics(arg);
}

TEST_RUN(raised_again)
{
    seen[0] = '\0';
    CHECK(pirn_try(repanics, "once") == NULL);
    CHECK_STR(seen, "once, again ");
}

/* By its address, as another language would. */
static const char *(*volatile by_address)(void) = pirn_recover;

static void through_address(void)
{
    first = by_address();
}

TEST_RUN(by_its_address)
{
    CHECK(recovers(through_address));
    first = by_address();
    CHECK(!first);
}
