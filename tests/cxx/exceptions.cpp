/* SPDX-License-Identifier: MIT */
/*
 * C++ in goroutines (hazard 8): exceptions are caught where they should, in the midst of others, across
 * yields and threads; destructors run when a panic, or pirn_exit, leaves their frames.
 */
#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>

#include <pirn.h>

#define _Noreturn [[noreturn]]
extern "C" {
#include "harness.h"
}

#define PROCS .timeout = 60, .procs = "1,2,4"
#define MOVES .timeout = 60, .procs = "4", .env = "PIRN_DEBUG=move=1"

#define ROUNDS (TEST_TSAN ? 20 : TEST_ASAN ? 50 : 200)

static std::string events; /* of tests with one goroutine */

struct noted {
    const char *name;
    explicit noted(const char *n) : name(n)
    {
    }
    noted(const noted &) = delete;
    ~noted()
    {
        events += '~';
        events += name;
        events += ' ';
    }
};

static void note(const char *name)
{
    events += name;
    events += ' ';
}

/* --- exceptions and yields ------------------------------------------------------------------------- */

struct yields { /* in its destructor, while an exception passes or not */
    int uncaught;
    explicit yields(int n) : uncaught(n)
    {
    }
    ~yields()
    {
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(std::uncaught_exceptions(), uncaught);
            pirn_yield();
        }
        CHECK_EQ(std::uncaught_exceptions(), uncaught);
    }
};

static void thrower(int n)
{
    yields y(1);
    if (n > 0)
        throw std::runtime_error(std::to_string(n));
}

static void nested(int n)
{
    auto outside = std::current_exception();
    try {
        thrower(n);
        FAIL("not thrown");
    } catch (const std::exception &e) {
        pirn_yield();
        CHECK(e.what() == std::to_string(n));
        CHECK_EQ(std::uncaught_exceptions(), 0);
        if (n > 1) {
            try {
                nested(n - 1);
                throw;
            } catch (const std::runtime_error &again) {
                pirn_yield();
                CHECK(again.what() == std::to_string(n));
            }
        }
        pirn_yield();
        CHECK(std::current_exception() != outside);
    }
    CHECK(std::current_exception() == outside);
    CHECK_EQ(std::uncaught_exceptions(), 0);
}

static void rounds(int n)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        nested(n % 5 + 1);
        yields none(0);
    }
}

static void many(void)
{
    pirn_wg wg = {};
    for (int i = 0; i < 30; i++)
        pirn_wg_go(&wg, rounds, i);
    pirn_wg_wait(&wg);
}

TEST_RUN_ATTR(exceptions_across_yields, PROCS)
{
    many();
}

TEST_RUN_ATTR(exceptions_across_threads, MOVES)
{
    many();
}

static void ends_in_catch(void)
{
    try {
        throw 1;
    } catch (int) {
        pirn_yield();
        pirn_exit();
    }
}

static void clean(void)
{
    CHECK(std::current_exception() == nullptr);
    CHECK_EQ(std::uncaught_exceptions(), 0);
}

/* What one has left behind is not another's. */
TEST_RUN_ATTR(exit_in_a_catch, PROCS)
{
    pirn_wg wg = {};
    for (int i = 0; i < ROUNDS; i++) {
        pirn_wg_go(&wg, ends_in_catch);
        pirn_wg_go(&wg, clean);
        pirn_wg_wait(&wg);
    }
}

/* --- panics ------------------------------------------------------------------------------------------ */

static void recover_it(void)
{
    const char *text = pirn_recover();
    note(text ? text : "nothing");
}

static void panics_inside(void *arg)
{
    noted a("a");
    pirn_defer(note, "d1");
    noted b("b");
    pirn_defer(note, "d2");
    {
        noted c("c");
        std::string s(100, 'x'); /* on the heap: a leak, if it is not destroyed */
        if (arg)
            pirn_panic("boom");
    }
}

TEST_RUN(destructors_and_deferred_calls_in_order)
{
    pirn_panic_info *p = pirn_try(panics_inside, &events);
    CHECK_STR(pirn_panic_message(p), "boom");
    pirn_panic_free(p);
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a ");
    events.clear();
    CHECK(pirn_try(panics_inside, nullptr) == nullptr);
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a ");
}

static void recovers(void *arg)
{
    noted o("o");
    pirn_defer(note, "last");
    pirn_defer(recover_it);
    pirn_defer(recover_it);
    panics_inside(arg);
}

TEST_RUN(recovered)
{
    CHECK(pirn_try(recovers, &events) == nullptr);
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a boom nothing last ~o ");
}

static void recovers_alone(void)
{
    noted o("o");
    pirn_defer(recover_it);
    panics_inside(&events);
}

/* Without a pirn_try all that is deferred comes first: it may yet be reported. */
TEST_RUN(recovered_without_try)
{
    pirn_wg wg = {};
    pirn_wg_go(&wg, recovers_alone);
    pirn_wg_wait(&wg);
    CHECK_STR(events.c_str(), "d2 d1 boom ~c ~b ~a ~o ");
}

static void exits(void *arg)
{
    noted e("e");
    pirn_defer(note, "d");
    (void)arg;
    pirn_exit();
}

static void exits_through_try(void)
{
    noted t("t");
    pirn_try(exits, nullptr);
    FAIL("pirn_exit has stopped at pirn_try");
}

TEST_RUN(exit_runs_destructors)
{
    pirn_wg wg = {};
    pirn_wg_go(&wg, exits_through_try);
    pirn_wg_wait(&wg);
    CHECK_STR(events.c_str(), "d ~e ~t ");
}

/* --- small stacks: no room for the unwinder, but for deferred calls --------------------------------- */

static std::atomic<int> counted;

static void counts(void)
{
    counted++;
}

static void leaves(void *how)
{
    pirn_defer(pirn_wg_done, static_cast<pirn_wg *>(how));
    pirn_defer(counts);
    pirn_exit();
}

static void recovers_small(void)
{
    CHECK(pirn_recover() != nullptr);
    counted++;
}

static void panics_small(void *wg)
{
    pirn_defer(pirn_wg_done, static_cast<pirn_wg *>(wg));
    pirn_defer(recovers_small);
    pirn_panic("small");
}

/* Frames are larger where nothing is optimised. */
#if defined(__OPTIMIZE__)
#define LEAST_STACK 2048
#else
#define LEAST_STACK 4096
#endif

TEST_RUN(small_stacks)
{
    int n = 0;
    for (size_t size = LEAST_STACK; size <= 65536; size *= 2) {
        pirn_attr attr = {};
        pirn_wg wg = {};
        attr.stack_size = size;
        pirn_wg_add(&wg, 2);
        CHECK_EQ(pirn_spawn(&attr, leaves, &wg), 0);
        CHECK_EQ(pirn_spawn(&attr, panics_small, &wg), 0);
        pirn_wg_wait(&wg);
        n += 2;
    }
    CHECK_EQ(counted.load(), n);
}

static void panics_again(void)
{
    noted i("i");
    pirn_panic("second");
}

static void panics_twice(void *arg)
{
    noted a("a");
    pirn_defer(recover_it);
    noted b("b");
    pirn_defer(panics_again);
    noted c("c");
    (void)arg;
    pirn_panic("first");
}

/* A panic in a deferred call that is called while its frame is unwound. */
TEST_RUN(panic_in_deferred_call)
{
    CHECK(pirn_try(panics_twice, nullptr) == nullptr);
    CHECK_STR(events.c_str(), "~c ~i ~b second ~a ");
}

static void exits_in_deferred(void)
{
    noted x("x");
    pirn_exit();
}

static void panics_and_exits(void)
{
    noted a("a");
    pirn_defer(exits_in_deferred);
    noted b("b");
    pirn_panic_free(pirn_try(panics_inside, &events));
    pirn_panic("dropped");
}

TEST_RUN(exit_in_deferred_call_of_panic)
{
    pirn_wg wg = {};
    pirn_wg_go(&wg, panics_and_exits);
    pirn_wg_wait(&wg);
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a ~x ~b ~a ");
}

/* --- both ------------------------------------------------------------------------------------------- */

static void throws_past_defer(void *arg)
{
    pirn_defer(note, "deferred");
    noted a("a");
    (void)arg;
    throw std::logic_error("thrown");
}

/* An exception leaves blocks and a pirn_try; that is forgotten then. */
TEST_RUN(exception_through_try)
{
    bool caught = false;
    try {
        pirn_try(throws_past_defer, nullptr);
    } catch (const std::logic_error &e) {
        CHECK_STR(e.what(), "thrown");
        caught = true;
    }
    CHECK(caught);
    CHECK_STR(events.c_str(), "~a deferred ");
    pirn_panic_info *p = pirn_try(panics_inside, &events);
    CHECK_STR(pirn_panic_message(p), "boom");
    pirn_panic_free(p);
}

static void panics_in_catch(void *arg)
{
    (void)arg;
    try {
        throw 1;
    } catch (int) {
        pirn_panic("in a catch");
    }
}

static void rethrows(void *arg)
{
    try {
        panics_inside(arg);
    } catch (const std::exception &) {
        FAIL("a panic is no std::exception");
    } catch (...) {
        note("caught");
        throw;
    }
}

TEST_RUN(catch_blocks)
{
    pirn_panic_info *p = pirn_try(panics_in_catch, nullptr);
    CHECK_STR(pirn_panic_message(p), "in a catch");
    pirn_panic_free(p);
    clean();
    p = pirn_try(rethrows, &events);
    CHECK_STR(pirn_panic_message(p), "boom");
    pirn_panic_free(p);
    clean();
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a caught ");
}

static void lambda_deferred(void *arg)
{
    int *n = static_cast<int *>(arg);
    pirn_defer([](int *k) { ++*k; }, n);
    pirn_defer([](int *k, const char *s) { *k += pirn_recover() != nullptr && *s == 'x' ? 10 : 0; },
               n, "x");
    pirn_panic("to a lambda");
}

TEST_RUN(lambdas)
{
    int n = 0;
    CHECK(pirn_try(lambda_deferred, &n) == nullptr);
    CHECK_EQ(n, 11);
}

static void mixed(int n)
{
    static std::atomic<int> live;
    struct counted {
        counted()
        {
            live++;
        }
        ~counted()
        {
            live--;
        }
    };
    for (int i = 0; i < ROUNDS / 10; i++) {
        auto body = [](void *arg) {
            counted c;
            int k = *static_cast<int *>(arg);
            pirn_defer(pirn_yield);
            yields y(0);
            try {
                counted d;
                nested(k % 3 + 1);
                throw 7;
            } catch (int) {
                pirn_yield();
                counted e;
                if (k % 2)
                    pirn_panic("%d", k);
            }
        };
        pirn_panic_info *p = pirn_try(body, &n);
        CHECK_EQ(p != nullptr, n % 2);
        pirn_panic_free(p);
        clean();
    }
    (void)live;
}

TEST_RUN_ATTR(panics_and_exceptions, MOVES)
{
    pirn_wg wg = {};
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&wg, mixed, i);
    pirn_wg_wait(&wg);
}

/* Without a runtime. */
TEST(on_a_thread)
{
    pirn_panic_info *p = pirn_try(panics_inside, &events);
    CHECK_STR(pirn_panic_message(p), "boom");
    pirn_panic_free(p);
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a ");
    events.clear();
    CHECK(pirn_try(recovers, &events) == nullptr);
    CHECK_STR(events.c_str(), "~c d2 ~b d1 ~a boom nothing last ~o ");
}
