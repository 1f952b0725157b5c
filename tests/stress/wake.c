/* SPDX-License-Identifier: MIT */
/*
 * A hunt for lost wake-ups. The runtime is idle, or about to be; somebody submits one goroutine,
 * or makes one ready, at a random moment; it must run. If it has not after 1 s, and all other threads
 * sleep, the wake-up is lost. (That they use no CPU would not do: under load they may have none.)
 */
#include "stress/recount.h"

#define ROUNDS (TEST_ASAN || TEST_TSAN || PIRN_FLAVOUR_CHAOS ? 10000 : 50000)

static int rounds(void)
{
    return stress_long() ? 1000 * 1000 : ROUNDS;
}

static void spin_ns(int64_t ns)
{
    for (int64_t until = now_ns() + ns; now_ns() < until;) {
        at_pause();
    }
}

static void must_come(struct note *note, int round)
{
    int64_t cpu = process_cpu_ns();
    while (!note_wait_until(note, now_ns() + PIRN_SEC)) {
        bool run = others_run();
        bool came = note_wait_until(note, now_ns() + 200 * PIRN_MS);
        bool lost = !came && !run && !others_run();
        if (lost || process_cpu_ns() - cpu > 20 * PIRN_SEC) {
            say("round %d\n", round);
            show_state(STDERR_FILENO);
            FAIL(lost ? "a wake-up is lost" : "it does not run, though others do");
        }
    }
}

static void post(void *arg)
{
    note_post(arg);
}

/* --- a thread of the program's own submits ------------------------------------------------------- */

struct submitter {
    uint64_t seed;
    int n;
};

static void *submit(void *arg)
{
    struct submitter *s = arg;
    struct rand r;
    rand_seed(&r, s->seed);
    for (int i = 0; i < s->n; i++) {
        struct note note;
        note_clear(&note);
        spin_ns(rand_below(&r, 2) ? rand_below(&r, 50000) : rand_below(&r, 2000));
        CHECK_EQ(pirn_spawn(NULL, post, &note), 0);
        must_come(&note, i);
    }
    return NULL;
}

static void submit_by(int threads, int n)
{
    pthread_t t[8];
    struct submitter s[8];
    uint64_t seed = stress_seed();
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < threads; i++) {
        s[i] = (struct submitter){seed + (uint64_t)i, n / threads};
        CHECK_EQ(pthread_create(&t[i], NULL, submit, &s[i]), 0);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
    }
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

TEST_ATTR(wake_by_one_thread, .procs = "2,4", .timeout = 300)
{
    submit_by(1, rounds());
}

TEST_ATTR(wake_by_three_threads, .procs = "2,4", .timeout = 300)
{
    submit_by(3, rounds());
}

TEST_ATTR(wake_move, .procs = "2,4", .timeout = 300, .env = "PIRN_DEBUG=move=1")
{
    submit_by(3, rounds() / 4);
}

/* --- a parked goroutine is made ready by a thread ------------------------------------------------ */

struct pair {
    pirn_wg wg[2];
    struct note note;
    int n;
};

static void answer(void *arg)
{
    struct pair *p = arg;
    for (int i = 0; i < p->n; i++) {
        pirn_wg_wait(&p->wg[i % 2]);
        note_post(&p->note);
    }
}

static void *ask(void *arg)
{
    struct submitter *s = arg;
    struct pair p = {.n = s->n};
    pirn_wg done = {0};
    struct rand r;
    rand_seed(&r, s->seed);
    pirn_wg_add(&p.wg[0], 1);
    pirn_wg_go(&done, answer, (void *)&p);
    for (int i = 0; i < s->n; i++) {
        spin_ns(rand_below(&r, 2) ? rand_below(&r, 50000) : rand_below(&r, 2000));
        pirn_wg_add(&p.wg[(i + 1) % 2], 1);
        pirn_wg_done(&p.wg[i % 2]);
        must_come(&p.note, i);
        note_clear(&p.note);
    }
    pirn_wg_wait(&done);
    return NULL;
}

TEST_ATTR(wake_of_the_parked, .procs = "2,3,4", .timeout = 300)
{
    pthread_t t[3];
    struct submitter s[3];
    uint64_t seed = stress_seed();
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 3; i++) {
        s[i] = (struct submitter){seed + (uint64_t)i, rounds() / 3};
        CHECK_EQ(pthread_create(&t[i], NULL, ask, &s[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- a goroutine submits and computes on --------------------------------------------------------- */

/* It does not enter pirn until what it submitted has run: another P must come for it. */
static void submit_and_compute(void *arg)
{
    struct submitter *s = arg;
    struct rand r;
    rand_seed(&r, s->seed);
    for (int i = 0; i < s->n; i++) {
        struct note note[2];
        bool two = rand_below(&r, 2);
        note_clear(&note[0]);
        note_clear(&note[1]);
        spin_ns(rand_below(&r, 50000));
        CHECK_EQ(pirn_spawn(NULL, post, &note[0]), 0);
        if (two) { /* the first is pushed into the ring */
            CHECK_EQ(pirn_spawn(NULL, post, &note[1]), 0);
            must_come(&note[1], i);
        }
        must_come(&note[0], i);
    }
}

TEST_ATTR(wake_by_a_goroutine, .procs = "2,3,4", .timeout = 300)
{
    struct submitter s = {stress_seed(), rounds() / 100};
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    pirn_wg_go(&wg, submit_and_compute, (void *)&s);
    pirn_wg_wait(&wg);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}
