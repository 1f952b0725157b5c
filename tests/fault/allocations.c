/* SPDX-License-Identifier: MIT */
/*
 * The C library has no memory for a channel, a wide select, a context, a timer: these calls have no way
 * to report that, so it is fatal, as in Go, and says what there was no memory for. Where a call can
 * report it, it does, and everything goes on.
 *
 * malloc and its like are the test's own (not with the sanitizers, who have theirs).
 */
#include <signal.h>

#include "stress/recount.h"
#include "sync/chan.h"
#include "sync/select.h"

static __thread int fail_after; /* of this thread: the N-th from now and all later ones fail */
static at_u32 fail_all;         /* of every thread */

#if !TEST_ASAN && !TEST_TSAN
static bool refuse(void)
{
    if (fail_after > 1) {
        fail_after--;
        return false;
    }
    return fail_after || at_load(&fail_all, RELAXED);
}

void *malloc(size_t size)
{
    extern void *__libc_malloc(size_t);
    return refuse() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    extern void *__libc_calloc(size_t, size_t);
    return refuse() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    extern void *__libc_realloc(void *, size_t);
    return refuse() ? NULL : __libc_realloc(p, size);
}
#endif

/* --- what can't be reported ------------------------------------------------------------------------ */

#define CASES 9
_Static_assert(CASES > SELECT_FEW, "a wide select");

static pirn_chanv *chans[CASES];

static void nothing(void *arg)
{
    (void)arg;
}

static void make_chan(void)
{
    (void)pirn_chan_make(char, 1000);
}

static void select_wide(void)
{
    pirn_case cases[CASES];
    for (int i = 0; i < CASES; i++) {
        cases[i] = (pirn_case){.kind_ = PIRN_CASE_RECV_, .chan_ = chans[i]};
    }
    (void)pirn_selectv(cases, CASES);
}

static void make_ctx(void)
{
    pirn_ctx_with_cancel(pirn_ctx_background());
}

static void make_ctx_deadline(void)
{
    pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_SEC);
}

static void make_ctx_value(void)
{
    pirn_ctx_with_value(pirn_ctx_background(), chans, chans);
}

static void make_ctx_signals(void)
{
    pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1}, 1);
}

static void init_group(void)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
}

static void use_ctx(void)
{
    pirn_ctx_use(pirn_ctx_background());
}

static void make_timer(void)
{
    pirn_timer_new(PIRN_SEC);
}

static void make_ticker(void)
{
    pirn_ticker_new(PIRN_SEC);
}

static void make_after(void)
{
    pirn_afterv(PIRN_SEC);
}

static void make_after_func(void)
{
    pirn_after_func(PIRN_SEC, nothing, NULL);
}

static void make_ctx_after_func(void)
{
    pirn_ctx_after_func(pirn_ctx_background(), nothing, NULL);
}

static const struct mortal {
    void (*fn)(void);
    int fail_after;
    const char *says; /* %zu: the size of a channel, without its buffer, and `more` bytes */
    size_t more;
    bool anywhere; /* a thread of the program's own may call it too */
} mortals[] = {
    {make_chan, 1, "a channel of %zu bytes", 1000, true},
    {select_wide, 1, "a select of 9 cases", 0, true},
    {make_ctx, 1, "cannot make a context", 0, true},
    {make_ctx, 2, "a channel of %zu bytes", 0, true}, /* that it closes when it is cancelled */
    {make_ctx_deadline, 1, "cannot make a context", 0, true},
    {make_ctx_value, 1, "cannot make a context", 0, true},
    {make_ctx_signals, 1, "cannot watch signals", 0, true},
    {init_group, 1, "cannot make a context", 0, true},
    {use_ctx, 1, "cannot keep a context", 0, false},
    {make_timer, 1, "cannot make a timer", 0, true},
    {make_timer, 2, "a channel of %zu bytes", sizeof(pirn_ns), true},
    {make_ticker, 1, "cannot make a timer", 0, true},
    {make_after, 1, "cannot make a timer", 0, true},
    {make_after_func, 1, "cannot make a timer", 0, true},
    {make_ctx_after_func, 1, "cannot make a timer", 0, true},
};

/* What it was at is not locked any more: here the program may still use it. */
static void last_word(const char *message)
{
    (void)message;
    for (int i = 0; i < CASES; i++) {
        pirn_chanv_close(chans[i]); /* this needs the lock */
    }
    say("the last word\n");
}

static int call_without_memory(void *arg)
{
    const struct mortal *m = arg;
    fail_after = m->fail_after;
    m->fn();
    fail_after = 0;
    return 0;
}

static const pirn_config config = {.on_fatal = last_word};

static void run_it(void *arg)
{
    pirn_run_config(&config, call_without_memory, arg);
}

static void call_it_outside(void *arg)
{
    pirn_start(&config);
    call_without_memory(arg);
}

static void check_dies(const struct mortal *m, void (*how)(void *))
{
    char want[128];
    size_t n = (size_t)snprintf(want, sizeof want, "fatal error: out of memory: ");
    n += fmt(want + n, sizeof want - n, m->says, sizeof(pirn_chanv) + m->more);
    fmt(want + n, sizeof want - n, "\nthe last word\n");
    int status = test_in_child(how, (void *)(uintptr_t)m);
    test_said[strlen(want)] = '\0'; /* the goroutines follow */
    CHECK_STR(test_said, want);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
}

static void need_own_malloc(void)
{
    if (TEST_ASAN || TEST_TSAN) {
        SKIP("malloc is the sanitizer's");
    }
}

TEST_ATTR(fatal_without_memory, .procs = "1,4")
{
    need_own_malloc();
    for (int i = 0; i < CASES; i++) {
        chans[i] = pirn_chanv_make(1, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(mortals); i++) {
        check_dies(&mortals[i], run_it);
        if (mortals[i].anywhere) {
            check_dies(&mortals[i], call_it_outside);
        }
    }
    for (int i = 0; i < CASES; i++) {
        pirn_chanv_release(chans[i]);
    }
}

/* --- what needs none, or reports it -------------------------------------------------------------------- */

static void send_one(pirn_chanv *c)
{
    pirn_chanv_send(c, "x");
}

static void write_one(int fd)
{
    CHECK_EQ(pirn_write(fd, "x", 1), 1);
}

/* Waiting for descriptors. */
TEST_RUN_ATTR(descriptors_without_memory, .procs = "1,4")
{
    int fds[SELECT_FEW][2];
    pirn_case cases[SELECT_FEW];
    char byte;
    need_own_malloc();
    for (int i = 0; i < SELECT_FEW; i++) {
        CHECK_EQ(pipe(fds[i]), 0);
        cases[i] = (pirn_case)PIRN_READABLE(fds[i][0]);
    }
    at_store(&fail_all, 1, RELAXED);
    pirn_go(write_one, fds[3][1]); /* with one P it runs when this one waits */
    CHECK_EQ(pirn_selectv(cases, SELECT_FEW), 3);
    CHECK_EQ(pirn_read(fds[3][0], &byte, 1), 1);
    pirn_go(write_one, fds[5][1]);
    CHECK_EQ(pirn_read(fds[5][0], &byte, 1), 1);
    at_store(&fail_all, 0, RELAXED);
    for (int i = 0; i < SELECT_FEW; i++) {
        CHECK_EQ(pirn_close(fds[i][0]), 0);
        CHECK_EQ(pirn_close(fds[i][1]), 0);
    }
}

/* A wide select that need not wait, and one that waits with few cases. */
TEST_RUN_ATTR(selects_without_memory, .procs = "1,4")
{
    pirn_case few[SELECT_FEW];
    need_own_malloc();
    for (int i = 0; i < CASES; i++) {
        chans[i] = pirn_chanv_make(1, 1);
    }
    for (int i = 0; i < SELECT_FEW; i++) {
        few[i] = (pirn_case){.kind_ = PIRN_CASE_RECV_, .chan_ = chans[i]};
    }
    at_store(&fail_all, 1, RELAXED);
    send_one(chans[CASES - 1]);
    select_wide();
    pirn_go(send_one, chans[3]); /* with one P it runs when this one waits */
    CHECK_EQ(pirn_selectv(few, SELECT_FEW), 3);
    at_store(&fail_all, 0, RELAXED);
    for (int i = 0; i < CASES; i++) {
        CHECK_EQ(pirn_chanv_len(chans[i]), 0);
        pirn_chanv_release(chans[i]);
    }
}

/* Goroutine-local values, and names, which are for people only. */
TEST_RUN_ATTR(locals_report_it, .procs = "1,4")
{
    pirn_local_key keys[20];
    need_own_malloc();
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        CHECK_EQ(pirn_local_new(&keys[i], NULL), 0);
    }
    fail_after = 1;
    pirn_set_name("nobody");
    int label = pirn_set_label("no", "memory");
    int first = pirn_local_set(keys[0], keys);
    fail_after = 2;
    int second =
        pirn_local_set(keys[0], keys); /* there is room for the goroutine's, not for values */
    fail_after = 0;
    CHECK_EQ(label, -ENOMEM);
    CHECK_EQ(first, -ENOMEM);
    CHECK_EQ(second, -ENOMEM);
    CHECK_EQ(pirn_local_get(keys[0]), NULL);
    CHECK_EQ(pirn_local_set(keys[0], keys), 0);
    fail_after = 1;
    int more = pirn_local_set(keys[19], keys);
    fail_after = 0;
    CHECK_EQ(more, -ENOMEM);
    CHECK_EQ(pirn_local_get(keys[0]), keys); /* what was there stays */
    CHECK_EQ(pirn_local_get(keys[19]), NULL);
    CHECK_EQ(pirn_local_set(keys[19], keys), 0);
    CHECK_EQ(pirn_local_get(keys[19]), keys);
    CHECK_EQ(pirn_local_get(keys[0]), keys);
}

TEST_RUN_ATTR(notify_reports_it, .procs = "1,4")
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    struct sigaction sa;
    need_own_malloc();
    fail_after = 1;
    int first = pirn_signal_notify(c, SIGUSR1);
    fail_after = 0;
    CHECK_EQ(first, -ENOMEM);
    CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
    CHECK(sa.sa_handler == SIG_DFL);
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    pirn_signal_stop(c);
    pirn_chan_release(c);
}
