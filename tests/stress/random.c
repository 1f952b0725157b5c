/* SPDX-License-Identifier: MIT */
/*
 * Random trees of goroutines: they spawn and wait, yield, wait at gates that a sibling opens, end
 * themselves, use local values and their stacks, on stacks of every size. No graph can deadlock: a
 * goroutine waits only for its children, or for a gate whose keeper waits for nothing before it
 * opens it. At the end everything is counted anew.
 */
#include "stress/recount.h"

#define TREES (TEST_TSAN ? 8 : 48) /* at a time; a sanitizer has some 8,000 fibers only */
#define FAN 6u                     /* children of one, at most */
#define DEPTH 5

struct tree {
    at_u64 spawned, begun, ended;
    at_u64 locals_set, locals_gone;
    struct rand rand;
    pirn_wg wg; /* the root */
};

/* What a goroutine is told; lives on the stack of its parent, who waits for it. */
struct job {
    struct tree *tree;
    pirn_wg *done; /* told by the job itself: its goroutine is not pirn_wg_go's */
    pirn_wg *gate;
    uint64_t seed;
    uint64_t size; /* of its stack */
    at_u32 ran;
    uint8_t depth;
    bool keeper; /* opens the gate */
    bool exits;  /* ends by pirn_exit */
};

static pirn_local_key key;

static void local_gone(void *value)
{
    struct tree *t = value;
    at_add(&t->locals_gone, 1, RELAXED);
}

static bool is_dense(const struct job *job)
{
    return job->size && job->size < 65536;
}

/* A frame with a pattern that must survive being away. */
static __attribute__((noinline)) void use_stack(uint64_t seed, uint32_t bytes)
{
    uint64_t words[bytes / 8 + 1];
    uint32_t n = bytes / 8 + 1;
    for (uint32_t i = 0; i < n; i++) {
        words[i] = seed * (i + 1);
    }
    __asm__ volatile("" ::"r"(words) : "memory");
    pirn_yield();
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(words[i], seed * (i + 1));
    }
}

static void use_local(struct job *job)
{
    CHECK(pirn_local_get(key) == NULL);
    CHECK_EQ(pirn_local_set(key, job->tree), 0);
    at_add(&job->tree->locals_set, 1, RELAXED);
    pirn_yield();
    CHECK(pirn_local_get(key) == job->tree);
}

static void run_job(void *arg);

static uint64_t random_size(struct rand *r)
{
    static const uint64_t sizes[] = {0,
                                     0,
                                     0,
                                     65536,
                                     131072,
                                     1 << 20,
                                     8 << 20,
                                     64 << 20,
                                     PIRN_STACK_DENSE_8K,
                                     PIRN_STACK_DENSE_4K,
                                     PIRN_STACK_DENSE_2K};
    /* Sanitizers make frames bigger. */
    uint32_t n = TEST_ASAN || TEST_TSAN ? ARRAY_LEN(sizes) - 2 : ARRAY_LEN(sizes);
    return sizes[rand_below(r, n)];
}

static void start_job(struct job *job, pirn_wg *wg)
{
    at_add(&job->tree->spawned, 1, RELAXED);
    if (job->size == 0) {
        pirn_wg_go(wg, run_job, (void *)job);
        return;
    }
    job->done = wg;
    pirn_wg_add(wg, 1);
    CHECK_EQ(pirn_spawn(&(pirn_attr){.stack_size = job->size}, run_job, job), 0);
}

static __attribute__((noinline)) void have_children(struct job *job, struct rand *r)
{
    struct job jobs[FAN];
    pirn_wg children = {0}, gate = {0};
    uint32_t n = 1 + rand_below(r, FAN);
    bool gated = n > 1 && rand_below(r, 2);
    pirn_wg_add(&gate, gated);
    for (uint32_t i = 0; i < n; i++) {
        jobs[i] = (struct job){
            .tree = job->tree,
            .seed = (uint64_t)rand_u32(r) << 32 | rand_u32(r),
            .size = random_size(r),
            .depth = (uint8_t)(job->depth - 1),
            .exits = rand_below(r, 4) == 0,
            .gate = gated ? &gate : NULL,
        };
    }
    if (gated) {
        jobs[rand_below(r, n)].keeper = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        start_job(&jobs[i], &children);
    }
    pirn_wg_wait(&children);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(at_load(&jobs[i].ran, RELAXED), 1);
    }
}

static void begin_job(struct job *job)
{
    CHECK_EQ(at_add(&job->ran, 1, RELAXED), 0);
    at_add(&job->tree->begun, 1, RELAXED);
}

static void run_job(void *arg)
{
    struct job *job = arg;
    struct rand r;
    begin_job(job);
    rand_seed(&r, job->seed);
    for (uint32_t i = rand_below(&r, 4); i; i--) {
        pirn_yield();
    }
    if (job->gate && job->keeper) {
        pirn_wg_done(job->gate);
    } else if (job->gate) {
        pirn_wg_wait(job->gate);
    }
    if (!is_dense(job)) {
        if (rand_below(&r, 3) == 0) {
            use_local(job);
        }
        use_stack(job->seed, rand_below(&r, 8192));
        if (job->depth) {
            have_children(job, &r);
        }
    } else {
        use_stack(job->seed, 64);
    }
    at_add(&job->tree->ended, 1, RELAXED);
    bool exits = job->exits;
    if (job->done) {
        pirn_wg_done(job->done); /* from here on *job may be gone */
    }
    if (exits) {
        pirn_exit();
    }
}

static void check_tree(struct tree *t)
{
    uint64_t n = at_load(&t->spawned, RELAXED);
    CHECK_EQ(at_load(&t->begun, RELAXED), n);
    CHECK_EQ(at_load(&t->ended, RELAXED), n);
}

static void random_trees(int seconds)
{
    static struct tree trees[TREES];
    static struct job roots[TREES];
    struct rand r;
    uint64_t n = 0, spawned = 0, set = 0, gone = 0, looks = 0;
    int64_t looked = now_ns();
    rand_seed(&r, stress_seed());
    CHECK_EQ(pirn_local_new(&key, local_gone), 0);
    CHECK_EQ(pirn_start(NULL), 0);
    for (int64_t until = now_ns() + stress_ns(seconds); now_ns() < until || n < TREES; n++) {
        struct tree *t = &trees[n % TREES];
        pirn_wg_wait(&t->wg); /* of this place's tree before */
        check_tree(t);
        CHECK_EQ(at_load(&roots[n % TREES].ran, RELAXED), n >= TREES);
        at_store(&roots[n % TREES].ran, 0, RELAXED);
        roots[n % TREES] = (struct job){
            .tree = t, .depth = DEPTH, .seed = (uint64_t)rand_u32(&r) << 32 | rand_u32(&r)};
        start_job(&roots[n % TREES], &t->wg);
        if (now_ns() - looked > 100 * PIRN_MS) {
            recount_stopped();
            looks++;
            looked = now_ns();
        }
    }
    for (uint32_t i = 0; i < TREES; i++) {
        pirn_wg_wait(&trees[i].wg);
        check_tree(&trees[i]);
        spawned += at_load(&trees[i].spawned, RELAXED);
    }
    recount(0);
    for (uint32_t i = 0; i < TREES;
         i++) { /* destructors ran before the goroutine was counted out */
        set += at_load(&trees[i].locals_set, RELAXED);
        gone += at_load(&trees[i].locals_gone, RELAXED);
    }
    CHECK_EQ(set, gone);
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_EQ(m.spawned, spawned);
    printf("%llu trees, %llu goroutines, %llu stolen, counted %llu times\n", (unsigned long long)n,
           (unsigned long long)spawned, (unsigned long long)m.stolen, (unsigned long long)looks);
    CHECK_EQ(pirn_stop(), 0);
}

TEST_ATTR(random, .procs = "1,2,4,16", .timeout = 90)
{
    random_trees(5);
}

TEST_ATTR(random_move, .procs = "1,2,4,16", .timeout = 90, .env = "PIRN_DEBUG=move=1")
{
    random_trees(3);
}

TEST_ATTR(random_mprotect, .procs = "1,4,16", .timeout = 90, .env = "PIRN_DEBUG=guard=mprotect")
{
    random_trees(2);
}

TEST_ATTR(random_unguarded, .procs = "1,4,16", .timeout = 90, .env = "PIRN_DEBUG=guard=none")
{
    random_trees(2);
}
