/* SPDX-License-Identifier: MIT */
/*
 * Everything at once. In each round a runtime starts, and goroutines and threads of the test's own do one
 * deed after the other, drawn by lot: channels, selects, timers, mutexes, sockets, pipes, deadlines,
 * closes, calls that block with and without a word, loops, locked threads, panics, contexts, reports, other
 * numbers of Ps. Each deed checks its own results. Then all that was begun is joined, what was sent has been
 * received, some are left where they are, and the runtime ends with no thread, descriptor or mapping left.
 */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/socket.h>

#include "io/fd.h"
#include "stress/recount.h"

#define WORKERS 24
#define ROUND ((int64_t)(TEST_ASAN || TEST_TSAN ? 150 : 100) * PIRN_MS)
#define MESSAGE 1500 /* bytes: both ends may write before they read */

static struct {
    pirn_ns until;
    int null_fd, listener, never[2];
    pirn_chan(uint64_t) bus;
    at_u64 sent, sent_sum, received, received_sum;
    pirn_mutex mutex;
    uint64_t guarded; /* under it */
    at_u64 guards;
    pirn_sem sem;
    at_u64 begun, deferred; /* frames with a deferred call */
    at_u64 set, fired, stopped;
    at_u64 deeds;
    pirn_wg consumers, servers, timers;
} mix;

static bool goes_on(void)
{
    return now_ns() < mix.until;
}

static int64_t some_ns(struct rand *r, int64_t most)
{
    return (int64_t)rand_below(r, (uint32_t)most);
}

/* --- channels --------------------------------------------------------------------------------------- */

static void was_sent(uint64_t v)
{
    at_add(&mix.sent, 1, RELAXED);
    at_add(&mix.sent_sum, v, RELAXED);
}

static void was_received(uint64_t v)
{
    at_add(&mix.received, 1, RELAXED);
    at_add(&mix.received_sum, v, RELAXED);
}

static void sends(struct rand *r)
{
    uint64_t v = rand_below(r, UINT32_MAX);
    switch (rand_below(r, 4)) {
    case 0:
        pirn_chan_send(mix.bus, v);
        was_sent(v);
        break;
    case 1:
        if (pirn_chan_try_send(mix.bus, v))
            was_sent(v);
        break;
    case 2:
        if (pirn_chan_send_until(mix.bus, v, pirn_deadline(some_ns(r, 300000))) == 0)
            was_sent(v);
        break;
    default:
        if (pirn_select(PIRN_SEND(mix.bus, v), PIRN_AFTER(some_ns(r, 300000))) == 0)
            was_sent(v);
    }
}

/* It is not closed while there are deeds. */
static void receives(struct rand *r)
{
    uint64_t v;
    bool got;
    switch (rand_below(r, 3)) {
    case 0: got = pirn_chan_try_recv(mix.bus, &v) == 1; break;
    case 1: got = pirn_chan_recv_until(mix.bus, &v, pirn_deadline(some_ns(r, 300000))) == 0; break;
    default: got = pirn_select(PIRN_RECV(mix.bus, &v), PIRN_AFTER(some_ns(r, 300000))) == 0;
    }
    if (got)
        was_received(v);
}

static void consumes(void)
{
    for (uint64_t v; pirn_chan_recv(mix.bus, &v);)
        was_received(v);
}

static void *consumes_outside(void *arg)
{
    consumes();
    return arg;
}

/* --- goroutines, time, locks -------------------------------------------------------------------------- */

static void sleeps(struct rand *r)
{
    CHECK_EQ(pirn_sleep(some_ns(r, 500000)), 0);
}

static void yields(struct rand *r)
{
    for (uint32_t i = rand_below(r, 20); i; i--)
        pirn_yield();
}

static void tree(int depth)
{
    pirn_wg wg = {0};
    for (int i = 0; depth && i < 3; i++)
        pirn_wg_go(&wg, tree, depth - 1);
    pirn_wg_wait(&wg);
}

static void spawns(struct rand *r)
{
    tree((int)rand_below(r, 4));
}

static void locks(struct rand *r)
{
    pirn_mutex_lock(&mix.mutex);
    uint64_t seen = mix.guarded;
    if (rand_below(r, 16) == 0 && pirn_id())
        pirn_yield();
    mix.guarded = seen + 1;
    pirn_mutex_unlock(&mix.mutex);
    at_add(&mix.guards, 1, RELAXED);
}

static void acquires(struct rand *r)
{
    int64_t n = 1 + some_ns(r, 3);
    pirn_sem_acquire(&mix.sem, n);
    sleeps(r);
    pirn_sem_release(&mix.sem, n);
}

static void fires(void *arg)
{
    (void)arg;
    at_add(&mix.fired, 1, RELAXED);
    pirn_wg_done(&mix.timers);
}

static void sets_timer(struct rand *r)
{
    pirn_wg_add(&mix.timers, 1);
    at_add(&mix.set, 1, RELAXED);
    pirn_timer *t = pirn_after_func(some_ns(r, 400000), fires, NULL);
    sleeps(r);
    if (pirn_timer_stop(t)) {
        at_add(&mix.stopped, 1, RELAXED);
        pirn_wg_done(&mix.timers);
    }
    pirn_timer_free(t);
}

static void ticks(struct rand *r)
{
    pirn_ticker *t = pirn_ticker_new(20 * PIRN_US + some_ns(r, 200000));
    pirn_chan(pirn_ns) c = pirn_ticker_chan(t);
    pirn_ns at, before = 0;
    for (uint32_t i = 1 + rand_below(r, 3); i; i--) {
        CHECK(pirn_chan_recv(c, &at));
        CHECK_GE(at, before);
        before = at;
    }
    pirn_ticker_free(t);
}

/* --- threads ------------------------------------------------------------------------------------------- */

static void *blocks(void *arg)
{
    sleep_ns(*(int64_t *)arg);
    return arg;
}

static void blocks_announced(struct rand *r)
{
    int64_t ns = some_ns(r, 1500000);
    if (rand_below(r, 2)) {
        CHECK(pirn_blocking(blocks, &ns) == &ns);
        return;
    }
    pirn_blocking_begin();
    sleep_ns(ns);
    pirn_blocking_end();
}

static void blocks_plainly(struct rand *r)
{
    sleep_ns(some_ns(r, 3000000));
}

static void computes(struct rand *r)
{
    uint32_t most = rand_below(r, 12) ? 100000 : 20000000; /* some for more than a slice */
    for (volatile uint32_t i = rand_below(r, most); i; i--) {
    }
}

static void uses_heap(struct rand *r)
{
    unsigned char *p[8];
    for (int i = 0; i < 8; i++) {
        size_t n = 1 + rand_below(r, 3000);
        CHECK((p[i] = malloc(n)) != NULL);
        memset(p[i], i, n);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(p[i][0], i);
        free(p[i]);
    }
}

static void stays(uint64_t seed)
{
    struct rand r;
    rand_seed(&r, seed);
    pirn_lock_thread();
    pid_t tid = gettid();
    for (uint32_t i = rand_below(&r, 6); i; i--) {
        rand_below(&r, 2) ? sleeps(&r) : rand_below(&r, 2) ? sends(&r) : blocks_announced(&r);
        CHECK_EQ(gettid(), tid);
    }
    if (rand_below(&r, 4))
        pirn_unlock_thread(); /* else its thread ends with it */
}

static void locks_thread(struct rand *r)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, stays, (uint64_t)rand_below(r, UINT32_MAX));
    pirn_wg_wait(&wg);
}

static void changes_procs(struct rand *r)
{
    CHECK_GT(pirn_procs(1 + (int)rand_below(r, 16)), 0);
}

static void ends(pirn_wg *wg)
{
    pirn_wg_done(wg);
}

static void *acts_outside(void *arg)
{
    struct rand r;
    rand_seed(&r, *(uint64_t *)arg);
    for (uint32_t i = rand_below(&r, 6); i; i--) {
        pirn_wg wg = {0};
        switch (rand_below(&r, 6)) {
        case 0: sends(&r); break;
        case 1: receives(&r); break;
        case 2: locks(&r); break;
        case 3: acquires(&r); break;
        case 4: changes_procs(&r); break;
        default:
            pirn_wg_add(&wg, 1);
            pirn_go(ends, &wg);
            pirn_wg_wait(&wg);
        }
    }
    return NULL;
}

static void *joins(void *arg)
{
    CHECK_EQ(pthread_join(*(pthread_t *)arg, NULL), 0);
    return NULL;
}

static void uses_thread(struct rand *r)
{
    pthread_t t;
    uint64_t seed = rand_below(r, UINT32_MAX);
    CHECK_EQ(pthread_create(&t, NULL, acts_outside, &seed), 0);
    if (rand_below(r, 2))
        pirn_blocking(joins, &t);
    else
        joins(&t);
}

/* --- descriptors ----------------------------------------------------------------------------------------- */

struct pair {
    int fd[2];
    uint32_t total;
    uint64_t seed;
    bool plain; /* the reader knows nothing of pirn */
};

static unsigned char byte_of(const struct pair *p, uint32_t i)
{
    return (unsigned char)(i * 7 + p->seed);
}

static void writes_all(struct pair *p)
{
    unsigned char buf[4096];
    struct rand r;
    rand_seed(&r, p->seed);
    for (uint32_t done = 0; done < p->total;) {
        uint32_t n = 1 + rand_below(&r, sizeof buf);
        n = n < p->total - done ? n : p->total - done;
        for (uint32_t i = 0; i < n; i++)
            buf[i] = byte_of(p, done + i);
        bool timed = rand_below(&r, 4) == 0;
        if (timed)
            CHECK_EQ(pirn_fd_deadline(p->fd[1], 0, pirn_deadline(some_ns(&r, 200000))), 0);
        ssize_t put = pirn_write(p->fd[1], buf, n);
        CHECK(put > 0 || (timed && put == -ETIMEDOUT));
        done += put > 0 ? (uint32_t)put : 0;
        if (timed)
            CHECK_EQ(pirn_fd_deadline(p->fd[1], 0, 0), 0);
        if (rand_below(&r, 8) == 0)
            sleeps(&r);
    }
    CHECK_EQ(pirn_close(p->fd[1]), 0);
}

static ssize_t read_some(const struct pair *p, struct rand *r, unsigned char *buf, size_t n)
{
    if (p->plain)
        return read(p->fd[0], buf, n);
    switch (rand_below(r, 4)) {
    case 0: {
        CHECK_EQ(pirn_fd_deadline(p->fd[0], pirn_deadline(some_ns(r, 200000)), 0), 0);
        ssize_t got = pirn_read(p->fd[0], buf, n);
        CHECK_EQ(pirn_fd_deadline(p->fd[0], 0, 0), 0);
        return got;
    }
    case 1:
        if (pirn_select(PIRN_READABLE(p->fd[0]), PIRN_AFTER(some_ns(r, 200000))) != 0)
            return -ETIMEDOUT;
        return pirn_read(p->fd[0], buf, n);
    default: return pirn_read(p->fd[0], buf, n);
    }
}

static void reads_all(struct pair *p)
{
    unsigned char buf[4096];
    struct rand r;
    uint32_t done = 0;
    rand_seed(&r, ~p->seed);
    for (ssize_t got; (got = read_some(p, &r, buf, 1 + rand_below(&r, sizeof buf)));) {
        CHECK(got > 0 || got == -ETIMEDOUT);
        for (ssize_t i = 0; i < got; i++)
            CHECK_EQ(buf[i], byte_of(p, done++));
    }
    CHECK_EQ(done, p->total);
    CHECK_EQ(pirn_close(p->fd[0]), 0);
}

static void pipes(struct rand *r)
{
    pirn_wg wg = {0};
    struct pair p = {.total = rand_below(r, 100000), .seed = rand_below(r, UINT32_MAX)};
    p.plain = rand_below(r, 4) == 0;
    if (rand_below(r, 2))
        CHECK_EQ(pipe2(p.fd, O_CLOEXEC), 0);
    else
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.fd), 0);
    for (int i = 0; i < 2; i++)
        if (rand_below(r, 2))
            CHECK_EQ(pirn_fd_adopt(p.fd[i]), 0);
    pirn_wg_go(&wg, writes_all, &p);
    reads_all(&p);
    pirn_wg_wait(&wg);
}

/* Whoever waits when it is closed, or cancelled. */
struct victim {
    int fd;
    ssize_t result;
};

static void is_disturbed(struct victim *v)
{
    char c;
    v->result = pirn_read(v->fd, &c, 1);
}

/* A call that is under way keeps the number. */
static bool is_used(int fd)
{
    struct pd *pd = pd_get(fd);
    enter();
    uint64_t word = word_lock(&pd->word);
    bool used = pd->refs > 0;
    word_unlock(&pd->word, word);
    leave();
    return used;
}

static void closes(struct rand *r)
{
    int fds[2];
    pirn_wg wg = {0};
    bool cancels = rand_below(r, 2);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct victim v = {.fd = fds[0]};
    if (rand_below(r, 2))
        CHECK_EQ(pirn_fd_adopt(fds[0]), 0);
    pirn_wg_go(&wg, is_disturbed, &v);
    while (!is_used(fds[0]))
        sleeps(r);
    CHECK_EQ(cancels ? pirn_fd_cancel(fds[0]) : pirn_close(fds[0]), 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(v.result, cancels ? -ECANCELED : -EBADF);
    if (cancels)
        CHECK_EQ(pirn_close(fds[0]), 0);
    close(fds[1]);
}

static void address(char *out, size_t size)
{
    fmt(out, size, "@pirn-mix-%d", (int)getpid());
}

static void echoes(int fd)
{
    char buf[MESSAGE];
    for (ssize_t n; (n = pirn_read(fd, buf, sizeof buf)) > 0;)
        if (pirn_write_all(fd, buf, (size_t)n) < 0)
            break;
    CHECK_EQ(pirn_close(fd), 0);
}

static void serves(void)
{
    for (int fd; (fd = pirn_accept(mix.listener, NULL, NULL)) >= 0;)
        pirn_wg_go(&mix.servers, echoes, fd);
}

static void asks(struct rand *r)
{
    char name[64], out[MESSAGE], in[MESSAGE];
    address(name, sizeof name);
    int fd = pirn_dial("unix", name);
    if (fd == -EAGAIN)
        return; /* too many wait to be accepted */
    CHECK_GE(fd, 0);
    for (uint32_t i = rand_below(r, 4); i; i--) {
        size_t n = 1 + rand_below(r, sizeof out);
        memset(out, (int)i, n);
        CHECK_EQ(pirn_write_all(fd, out, n), n);
        if (rand_below(r, 8) == 0)
            break; /* it leaves without the answer */
        CHECK_EQ(pirn_read_full(fd, in, n), n);
        CHECK(memcmp(in, out, n) == 0);
    }
    CHECK_EQ(pirn_close(fd), 0);
}

/* --- panics, contexts, reports ----------------------------------------------------------------------------- */

static void is_left(void)
{
    at_add(&mix.deferred, 1, RELAXED);
}

static void falls(struct rand *r, int depth)
{
    at_add(&mix.begun, 1, RELAXED);
    pirn_defer(is_left);
    if (depth)
        falls(r, depth - 1);
    if (rand_below(r, 2))
        sleeps(r);
    if (rand_below(r, 3) == 0)
        pirn_panic("at depth %d", depth);
}

static void attempts(void *arg)
{
    falls(arg, (int)rand_below(arg, 6));
}

static void panics(struct rand *r)
{
    pirn_panic_info *p = pirn_try(attempts, r);
    if (p) {
        CHECK(strncmp(pirn_panic_message(p), "at depth ", 9) == 0);
        pirn_panic_free(p);
    }
}

static void times_out(struct rand *r)
{
    char c;
    int fds[2];
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_current(), some_ns(r, 300000));
    pirn_ctx *before = pirn_ctx_use(ctx);
    switch (rand_below(r, 3)) {
    case 0: CHECK_EQ(pirn_sleep(100 * PIRN_SEC), -ETIMEDOUT); break;
    case 1:
        CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
        CHECK_EQ(pirn_read(fds[0], &c, 1), -ETIMEDOUT);
        close(fds[1]);
        CHECK_EQ(pirn_close(fds[0]), 0);
        break;
    default: CHECK_EQ(pirn_select(PIRN_DONE(ctx), PIRN_AFTER(100 * PIRN_SEC)), 0);
    }
    pirn_ctx_use(before);
    pirn_ctx_release(ctx);
}

static int waits_or_fails(uint64_t seed)
{
    struct rand r;
    rand_seed(&r, seed);
    if (rand_below(&r, 3) == 0)
        return -EPROTO;
    int err = pirn_sleep(some_ns(&r, 300000));
    CHECK(err == 0 || err == -ECANCELED);
    return 0;
}

static void groups(struct rand *r)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    for (uint32_t i = rand_below(r, 6); i; i--)
        pirn_group_go(&g, waits_or_fails, (uint64_t)rand_below(r, UINT32_MAX));
    int err = pirn_group_wait(&g);
    CHECK(err == 0 || err == -EPROTO);
}

static void reports(struct rand *r)
{
    if (rand_below(r, 4)) {
        CHECK_EQ(pirn_dump(mix.null_fd), 0);
    } else {
        int n = pirn_leak_report(mix.null_fd);
        CHECK(n == 0 || n == -ENOTSUP || n == -EBUSY || n == -EACCES);
    }
}

/* --- a round ------------------------------------------------------------------------------------------------ */

/* clang-format off */
static const struct {
    void (*fn)(struct rand *);
    uint32_t weight;
} deeds[] = {
    {sends, 30},         {receives, 20},      {sleeps, 10},         {yields, 10},
    {spawns, 10},        {locks, 20},         {acquires, 5},        {sets_timer, 10},
    {ticks, 5},          {blocks_announced, 5}, {blocks_plainly, 5},  {computes, 10},
    {uses_heap, 10},     {locks_thread, 3},   {changes_procs, 2},   {uses_thread, 2},
    {pipes, 3},          {closes, 5},         {asks, 10},           {panics, 5},
    {times_out, 5},      {groups, 5},         {reports, 1},
};
/* clang-format on */

static void acts(uint64_t seed)
{
    struct rand r;
    uint32_t all = 0;
    rand_seed(&r, seed);
    for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
        all += deeds[i].weight;
    while (goes_on()) {
        uint32_t lot = rand_below(&r, all);
        size_t i = 0;
        for (; lot >= deeds[i].weight; i++)
            lot -= deeds[i].weight;
        deeds[i].fn(&r);
        at_add(&mix.deeds, 1, RELAXED);
    }
}

/* Those who are there still when the runtime ends. */
static void is_left_behind(int how)
{
    char c;
    int64_t ns = 100 * PIRN_US;
    switch (how) {
    case 0: pirn_chan_recv((pirn_chan(int))NULL, NULL); break;
    case 1: pirn_lock_thread(); break;
    case 2: pirn_sleep(1000 * PIRN_SEC); break;
    case 3: pirn_read(mix.never[0], &c, 1); break;
    default: break;
    }
    for (;; pirn_yield()) {
        switch (how) {
        case 1: pirn_sleep(ns); break;
        case 4: sleep_ns(ns); break;
        case 5: pirn_dump(mix.null_fd); break;
        case 6: pirn_blocking(blocks, &ns); break;
        default: break;
        }
    }
}

/* All that happens has an end. */
static void begin_and_join(struct rand *r)
{
    pirn_wg workers = {0};
    pthread_t consumer;
    CHECK_EQ(pthread_create(&consumer, NULL, consumes_outside, NULL), 0);
    pirn_wg_go(&mix.consumers, consumes);
    pirn_wg_go(&mix.consumers, consumes);
    pirn_wg_go(&mix.servers, serves);
    for (int i = 0; i < WORKERS; i++)
        pirn_wg_go(&workers, acts, (uint64_t)rand_below(r, UINT32_MAX));
    pirn_wg_wait(&workers);
    pirn_wg_wait(&mix.timers);
    pirn_chan_close(mix.bus);
    pirn_wg_wait(&mix.consumers);
    pirn_blocking(joins, &consumer);
    CHECK_EQ(pirn_close(mix.listener), 0);
    pirn_wg_wait(&mix.servers);
}

static int round_main(void *arg)
{
    struct rand *r = arg;
    char name[64];
    pirn_metrics_v1 m;
    address(name, sizeof name);
    CHECK_GE(mix.listener = pirn_listen("unix", name), 0);
    mix.bus = pirn_chan_make(uint64_t, rand_below(r, 8));
    pirn_sem_init(&mix.sem, 5);
    mix.until = now_ns() + ROUND;
    if (rand_below(r, 2))
        pirn_lock_thread(); /* goroutine 1 goes to the thread of pirn_run */
    begin_and_join(r);
    pirn_chan_release(mix.bus);
    while (pirn_num_goroutines() > 1)
        pirn_yield(); /* who has said that it is done has yet to return */
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_EQ(m.starved, 0);
    for (uint32_t i = rand_below(r, 8); i; i--)
        pirn_go(is_left_behind, (int)rand_below(r, 8));
    CHECK_EQ(pirn_sleep(some_ns(r, 300000)), 0);
    return 9;
}

static void *runs(void *arg)
{
    CHECK_EQ(pirn_run(round_main, arg), 9);
    return NULL;
}

static void check_counts(void)
{
    CHECK_EQ(at_load(&mix.sent, RELAXED), at_load(&mix.received, RELAXED));
    CHECK_EQ(at_load(&mix.sent_sum, RELAXED), at_load(&mix.received_sum, RELAXED));
    CHECK_EQ(at_load(&mix.guards, RELAXED), mix.guarded);
    CHECK_EQ(at_load(&mix.begun, RELAXED), at_load(&mix.deferred, RELAXED));
    CHECK_EQ(at_load(&mix.set, RELAXED),
             at_load(&mix.fired, RELAXED) + at_load(&mix.stopped, RELAXED));
}

/* --- what is left ---------------------------------------------------------------------------------------- */

static int count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int count_maps(void)
{
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        n += c == '\n';
    fclose(f);
    return n;
}

static void await_threads(int n)
{
    for (int64_t until = now_ns() + 10 * PIRN_SEC; thread_count() != n;) {
        CHECK_LT(now_ns(), until); /* the kernel takes a moment to forget a joined thread */
        sleep_ns(PIRN_MS);
    }
}

TEST_ATTR(mix, .procs = "1,2,4,16",
          .env = "PIRN_SYMBOLS=off GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0", .timeout = 60)
{
    struct rand r;
    int threads = 0, fds = 0, maps = 0;
    uint64_t rounds = 0;
    mallopt(M_ARENA_MAX, 2); /* so that malloc does not grow with the number of threads */
    rand_seed(&r, stress_seed());
    CHECK_GE(mix.null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC), 0);
    for (int64_t until = now_ns() + stress_ns(1); rounds < 3 || now_ns() < until; rounds++) {
        pthread_t t;
        CHECK_EQ(pipe2(mix.never, O_CLOEXEC), 0);
        CHECK_EQ(pthread_create(&t, NULL, runs, &r), 0);
        joins(&t);
        close(mix.never[0]);
        close(mix.never[1]);
        check_counts();
        if (rounds == 0) { /* a sanitizer begins its own thread with the first */
            threads = thread_count();
            fds = count_fds();
        }
        await_threads(threads);
        CHECK_EQ(count_fds(), fds);
        if (rounds == 2)
            maps = count_maps();
    }
    if (!TEST_ASAN && !TEST_TSAN)
        CHECK_LE(count_maps(), maps + 16);
    close(mix.null_fd);
    printf("%llu rounds, %llu deeds, %llu messages\n", (unsigned long long)rounds,
           (unsigned long long)at_load(&mix.deeds, RELAXED),
           (unsigned long long)at_load(&mix.sent, RELAXED));
}
