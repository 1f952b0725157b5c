/* SPDX-License-Identifier: MIT */
/*
 * Boost.Fiber, with the stacks (128 KB, by malloc) and the schedulers that it comes
 * with: WORKERS=1 is round robin; more are as many threads that steal from each
 * other and spin when idle, as they do unless told otherwise.
 *
 * A benchmark runs as a fiber, as it is a goroutine elsewhere: the main fiber would
 * never leave its thread. A buffered channel of 128 holds 127. There is no wait
 * group: fibers are joined, or counted under a mutex. They are posted, that is
 * queued, as goroutines are; only spawn_batch dispatches them, which runs each at
 * once, since a fiber takes almost 10 KB of memory, and a queue of a million 10 GB.
 * For want of memory a million parked and both skynets (4 to 10 GB) are left out;
 * there is no select.
 */
#include "peer.h"

#include <atomic>
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <malloc.h>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;
using fibers::channel_op_status;
using fibers::fiber;
using fibers::launch;
using unbuffered = fibers::unbuffered_channel<int64_t>;
using buffered = fibers::buffered_channel<int64_t>;

/* Counts down to 0, and lets those go on that wait for it. */
class latch
{
    fibers::mutex mutex;
    fibers::condition_variable zero;
    int count;

  public:
    explicit latch(int n) : count(n)
    {
    }

    void done()
    {
        std::unique_lock<fibers::mutex> lock(mutex);
        if (--count == 0) {
            zero.notify_all();
        }
    }

    void wait()
    {
        std::unique_lock<fibers::mutex> lock(mutex);
        zero.wait(lock, [this] { return count == 0; });
    }
};

static void join(std::vector<fiber> &all)
{
    for (fiber &f : all) {
        f.join();
    }
    all.clear();
}

static void yield()
{
    int n = bench_int("N", 5000000);
    std::vector<fiber> all;
    int64_t t0 = peer_now();
    for (int g = 0; g < 2; g++) {
        all.emplace_back([n] {
            for (int i = 0; i < n; i++) {
                boost::this_fiber::yield();
            }
        });
    }
    join(all);
    peer_report("yield", 2 * n, t0);
}

static void spawn_seq()
{
    int n = bench_int("N", 1000000);
    int64_t t0 = peer_now();
    for (int i = 0; i < n; i++) {
        fiber([] {}).join();
    }
    peer_report("spawn_seq", n, t0);
}

static void spawn_batch()
{
    int n = bench_int("N", 1000000);
    latch all(n);
    int64_t t0 = peer_now();
    for (int i = 0; i < n; i++) {
        fiber(launch::dispatch, [&all] { all.done(); }).detach();
    }
    all.wait();
    peer_report("spawn_batch", n, t0);
}

static void parked()
{
    int n = bench_int("N", 100000);
    latch gate(1), all(n);
    std::atomic<int> started{0};
    char name[64];
    auto named = [&](const char *what) {
        snprintf(name, sizeof name, "parked_%s_%d", what, n);
        return name;
    };
    long rss = bench_memory("VmRSS"), tables = bench_memory("VmPTE");

    int64_t t0 = peer_now();
    for (int i = 0; i < n; i++) {
        fiber([&] {
            started++;
            gate.wait();
            all.done();
        }).detach();
    }
    while (started < n) {
        boost::this_fiber::yield();
    }
    peer_report(named("create"), n, t0);

    rss = bench_memory("VmRSS") - rss;
    tables = bench_memory("VmPTE") - tables;
    bench_value(named("bytes"), (double)rss / n);
    bench_value(named("bytes_pt"), (double)(rss + tables) / n);

    t0 = peer_now();
    gate.done();
    all.wait();
    peer_report(named("wake"), n, t0);
}

static void pingpong()
{
    int n = bench_int("N", 1000000);
    unbuffered a, b;
    fiber echo([&] {
        int64_t v;
        while (a.pop(v) == channel_op_status::success) {
            b.push(v);
        }
        b.close();
    });
    int64_t t0 = peer_now();
    for (int i = 0; i < n; i++) {
        int64_t v;
        a.push(i);
        b.pop(v);
    }
    peer_report("pingpong", n, t0);
    a.close();
    echo.join();
}

static void pass(const char *name, int p, int n)
{
    buffered c(128);
    std::vector<fiber> producers, consumers;
    int64_t t0 = peer_now();
    for (int g = 0; g < p; g++) {
        producers.emplace_back([&c, n, p] {
            for (int i = 0; i < n / p; i++) {
                c.push(i);
            }
        });
        consumers.emplace_back([&c] {
            int64_t v;
            while (c.pop(v) == channel_op_status::success) {
            }
        });
    }
    join(producers);
    c.close();
    join(consumers);
    peer_report(name, n, t0);
}

static void chan_buf()
{
    int n = bench_int("N", 4000000);
    pass("chan_buf_1p1c", 1, n);
    pass("chan_buf_4p4c", 4, n);
}

static void contend(const char *name, int n, bool yields)
{
    fibers::mutex mutex;
    std::vector<fiber> all;
    int64_t x = 0;
    int64_t t0 = peer_now();
    for (int g = 0; g < 8; g++) {
        all.emplace_back([&, n, yields] {
            for (int i = 0; i < n / 8; i++) {
                mutex.lock();
                x++;
                if (yields) {
                    boost::this_fiber::yield();
                }
                mutex.unlock();
            }
        });
    }
    join(all);
    peer_report(name, n, t0);
    peer_check(x == n / 8 * 8, "lost update");
}

static void mutex8()
{
    int n = bench_int("N", 8000000);
    contend("mutex8", n, false);
    contend("mutex8_yield", n / 8, true);
}

static int64_t get(unbuffered *c)
{
    int64_t v = 0;
    c->pop(v);
    return v;
}

/* The channels are still in use when the program ends. */
static void sieve()
{
    int n = bench_int("N", 2000);
    int64_t t0 = peer_now();
    unbuffered *c = new unbuffered;
    fiber([c] {
        for (int64_t i = 2;; i++) {
            c->push(i);
        }
    }).detach();
    int64_t p = 0;
    for (int i = 0; i < n; i++) {
        p = get(c);
        unbuffered *d = new unbuffered;
        fiber([c, d, p] {
            for (;;) {
                int64_t v = get(c);
                if (v % p != 0) {
                    d->push(v);
                }
            }
        }).detach();
        c = d;
    }
    peer_report("sieve", 1, t0);
    peer_check(n != 2000 || p == 17389, "wrong prime");
}

static void timers()
{
    int n = bench_int("N", 100000);
    std::vector<fiber> all;
    int64_t cpu = peer_cpu(), t0 = peer_now();
    for (int g = 0; g < n; g++) {
        all.emplace_back([g] {
            uint32_t x = (uint32_t)g * 2654435761u + 1;
            for (int i = 0; i < 10; i++) {
                x = x * 1664525u + 1013904223u;
                boost::this_fiber::sleep_for(std::chrono::milliseconds(1 + (x >> 16) % 100));
            }
        });
    }
    join(all);
    peer_report("timers_wall", 1, t0);
    bench_value("timers_cpu", (double)(peer_cpu() - cpu));
}

static void sleep_latency()
{
    peer_sleep_latency([] { boost::this_fiber::sleep_for(std::chrono::milliseconds(1)); });
}

/*
 * More workers than this thread: each must be known to the scheduler before any
 * looks for work, since they steal without asking who is there.
 */
static void start_workers(int n)
{
    static pthread_barrier_t ready;
    pthread_barrier_init(&ready, NULL, (unsigned)n);
    auto enter = [n] {
        fibers::use_scheduling_algorithm<fibers::algo::work_stealing>((uint32_t)n);
        pthread_barrier_wait(&ready);
    };
    for (int i = 1; i < n; i++) {
        std::thread([enter] {
            enter();
            static latch forever(1);
            forever.wait();
        }).detach();
    }
    enter();
}

int main(int argc, char **argv)
{
    static const peer_run runs[] = {
        {"yield", yield},
        {"spawn_seq", spawn_seq},
        {"spawn_batch", spawn_batch},
        {"parked_100k", parked},
        {"pingpong", pingpong},
        {"chan_buf", chan_buf},
        {"mutex8", mutex8},
        {"sieve", sieve},
        {"timers", timers},
        {"sleep_latency", sleep_latency},
    };
    char what[64];
    snprintf(what, sizeof what, "Boost.Fiber %d.%d", BOOST_VERSION / 100000,
             BOOST_VERSION / 100 % 1000);
    const peer_run *run = peer_choose(argc, argv, what, runs, sizeof runs / sizeof *runs);
    if (run) {
        /* The stacks that are freed stay with malloc, as pirn and Go keep theirs. */
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, -1);
        if (bench_workers() > 1) {
            start_workers(bench_workers());
        }
        fiber(run->fn).join();
    }
    /* Not by return, which would wait for fibers that never end. */
    fflush(stdout);
    _Exit(0);
}
