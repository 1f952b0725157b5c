/* SPDX-License-Identifier: MIT */
/*
 * Every call of the API in the child of a fork: a message, and the end. tools/check-symbols sees to it that each
 * name that the library exports is in the list.
 *
 * In a child of a process in which no runtime runs they are what they are in any process.
 */
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

#define MESSAGE "fatal error: a call into pirn in the child of a fork: it may exec or _exit only\n"

/* --- what they are called with: all of it would be done at once, without waiting --------------------- */

static pirn_chan(int) full, empty;
static pirn_mutex free_mutex, locked_mutex;
static pirn_rwmutex free_rw, locked_rw, read_rw;
static pirn_wg none, one;
static pirn_once done_once;
static pirn_sem permits;
static pirn_barrier barrier;
static pirn_cond cond;
static pirn_timer *timer, *func_timer;
static pirn_ticker *ticker;
static pirn_ctx *ctx;
static pirn_group group;
static pirn_panic_info *info;
static pirn_local_key key;
static pirn_metrics_v1 metrics;
static int fds[2], file;
static char buf[4];
static struct iovec vec = {buf, 1};
static struct msghdr msg = {.msg_iov = &vec, .msg_iovlen = 1};
static struct addrinfo *res;
static void *pcs[4];
static struct pirn_defer_ no_defer;

static void nothing(void *arg)
{
    (void)arg;
}

static void two(int a, int b)
{
    (void)a, (void)b;
}

static int gives_0(void *arg)
{
    (void)arg;
    return 0;
}

static void *gives_null(void *arg)
{
    (void)arg;
    return NULL;
}

static void panics(void *arg)
{
    (void)arg;
    pirn_panic("to be kept");
}

static void set_up(void)
{
    full = pirn_chan_make(int, 1);
    pirn_chan_send(full, 1);
    empty = pirn_chan_make(int, 1);
    pirn_mutex_lock(&locked_mutex);
    pirn_rwmutex_lock(&locked_rw);
    pirn_rwmutex_rlock(&read_rw);
    pirn_wg_add(&one, 1);
    pirn_once_do(&done_once, nothing, NULL);
    pirn_sem_init(&permits, 2);
    pirn_barrier_init(&barrier, 1);
    timer = pirn_timer_new(3600 * PIRN_SEC);
    func_timer = pirn_after_func(3600 * PIRN_SEC, nothing, NULL);
    ticker = pirn_ticker_new(3600 * PIRN_SEC);
    ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_group_init(&group, ctx);
    info = pirn_try(panics, NULL);
    CHECK(info);
    CHECK_EQ(pirn_local_new(&key, NULL), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(write(fds[1], "0123456789", 10), 10);
    FILE *f = tmpfile();
    CHECK(f);
    file = fileno(f);
    CHECK_EQ(pirn_resolve("127.0.0.1", "80", NULL, &res), 0);
}

/* --- the list ------------------------------------------------------------------------------------------ */

/* clang-format off */
#define CALLS                                                                                      \
    /* life */                                                                                     \
    CALL(pirn_run, pirn_run(gives_0, NULL))                                                        \
    CALL(pirn_run_config_n, pirn_run_config(&(pirn_config){.procs = 1}, NULL, NULL))               \
    CALL(pirn_start_n, pirn_start_n(&(pirn_config){.procs = 1}, 0))                                \
    CALL(pirn_stop, pirn_stop())                                                                   \
    CALL(pirn_procs, pirn_procs(0))                                                                \
    /* goroutines */                                                                               \
    CALL(pirn_spawn_n, pirn_spawn(NULL, NULL, NULL))                                               \
    CALL(pirn_go_simple_, pirn_go(nothing, NULL))                                                  \
    CALL(pirn_go_captured_, pirn_go(two, 1, 2))                                                    \
    CALL(pirn_yield, pirn_yield())                                                                 \
    CALL(pirn_exit, pirn_exit())                                                                   \
    CALL(pirn_id, pirn_id())                                                                       \
    CALL(pirn_num_goroutines, pirn_num_goroutines())                                               \
    CALL(pirn_set_name, pirn_set_name("x"))                                                        \
    CALL(pirn_set_label, pirn_set_label(NULL, "x"))                                                \
    CALL(pirn_blocking_begin, pirn_blocking_begin())                                               \
    CALL(pirn_blocking_end, pirn_blocking_end())                                                   \
    CALL(pirn_blocking, pirn_blocking(gives_null, NULL))                                           \
    CALL(pirn_lock_thread, pirn_lock_thread())                                                     \
    CALL(pirn_unlock_thread, pirn_unlock_thread())                                                 \
    CALL(pirn_local_new, pirn_local_new(&key, NULL))                                               \
    CALL(pirn_local_get, pirn_local_get(key))                                                      \
    CALL(pirn_local_set, pirn_local_set(key, NULL))                                                \
    CALL(pirn_metrics_n, pirn_metrics(&metrics))                                                   \
    /* panic */                                                                                    \
    CALL(pirn_panic, pirn_panic("in the child"))                                                   \
    CALL(pirn_try, pirn_panic_info *p = pirn_try(nothing, NULL); (void)p)                          \
    CALL(pirn_panic_message, pirn_panic_message(info))                                             \
    CALL(pirn_panic_free, pirn_panic_free(NULL))                                                   \
    CALL(pirn_recover, (pirn_recover)())                                                           \
    CALL(pirn_recover_, pirn_recover())                                                            \
    CALL(pirn_defer_end_, pirn_defer_end_(&no_defer))                                              \
    CALL(pirn_go_args_, pirn_defer(two, 1, 2))                                                     \
    /* channels */                                                                                 \
    CALL(pirn_chanv_make, pirn_chan(int) c = pirn_chan_make(int, 1); (void)c)                      \
    CALL(pirn_chanv_retain, pirn_chanv_retain(NULL))                                               \
    CALL(pirn_chanv_release, pirn_chanv_release(NULL))                                             \
    CALL(pirn_chanv_send, pirn_chan_send(empty, 1))                                                \
    CALL(pirn_chanv_recv, pirn_chan_recv(full, NULL))                                              \
    CALL(pirn_chanv_try_send, pirn_chan_try_send(full, 1))                                         \
    CALL(pirn_chanv_try_recv, pirn_chan_try_recv(empty, NULL))                                     \
    CALL(pirn_chanv_send_until, pirn_chan_send_until(empty, 1, 0))                                 \
    CALL(pirn_chanv_recv_until, pirn_chan_recv_until(empty, NULL, 0))                              \
    CALL(pirn_chanv_close, pirn_chanv_close(NULL))                                                 \
    CALL(pirn_chanv_len, pirn_chanv_len(NULL))                                                     \
    CALL(pirn_chanv_cap, pirn_chanv_cap(NULL))                                                     \
    CALL(pirn_chanv_fd, pirn_chanv_fd(NULL))                                                       \
    CALL(pirn_selectv, pirn_case c = PIRN_DEFAULT; pirn_selectv(&c, 1))                            \
    /* sync */                                                                                     \
    CALL(pirn_wg_add, pirn_wg_add(&none, 1))                                                       \
    CALL(pirn_wg_done, pirn_wg_done(&one))                                                         \
    CALL(pirn_wg_wait, pirn_wg_wait(&none))                                                        \
    CALL(pirn_mutex_lock, pirn_mutex_lock(&free_mutex))                                            \
    CALL(pirn_mutex_try_lock, pirn_mutex_try_lock(&locked_mutex))                                  \
    CALL(pirn_mutex_unlock, pirn_mutex_unlock(&locked_mutex))                                      \
    CALL(pirn_rwmutex_lock, pirn_rwmutex_lock(&free_rw))                                           \
    CALL(pirn_rwmutex_rlock, pirn_rwmutex_rlock(&free_rw))                                         \
    CALL(pirn_rwmutex_try_lock, pirn_rwmutex_try_lock(&locked_rw))                                 \
    CALL(pirn_rwmutex_try_rlock, pirn_rwmutex_try_rlock(&locked_rw))                               \
    CALL(pirn_rwmutex_unlock, pirn_rwmutex_unlock(&locked_rw))                                     \
    CALL(pirn_rwmutex_runlock, pirn_rwmutex_runlock(&read_rw))                                     \
    CALL(pirn_cond_wait, pirn_cond_wait(&cond, &locked_mutex))                                     \
    CALL(pirn_cond_wait_until, pirn_cond_wait_until(&cond, &locked_mutex, 0))                      \
    CALL(pirn_cond_signal, pirn_cond_signal(&cond))                                                \
    CALL(pirn_cond_broadcast, pirn_cond_broadcast(&cond))                                          \
    CALL(pirn_once_do, pirn_once_do(&done_once, nothing, NULL))                                    \
    CALL(pirn_sem_init, pirn_sem_init(&permits, -1))                                               \
    CALL(pirn_sem_acquire, pirn_sem_acquire(&permits, 1))                                          \
    CALL(pirn_sem_try_acquire, pirn_sem_try_acquire(&permits, -1))                                 \
    CALL(pirn_sem_release, pirn_sem_release(&permits, -1))                                         \
    CALL(pirn_barrier_init, pirn_barrier_init(&barrier, 0))                                        \
    CALL(pirn_barrier_wait, pirn_barrier_wait(&barrier))                                           \
    /* time */                                                                                     \
    CALL(pirn_now, pirn_now())                                                                     \
    CALL(pirn_deadline, pirn_deadline(0))                                                          \
    CALL(pirn_sleep, pirn_sleep(0))                                                                \
    CALL(pirn_sleep_until, pirn_sleep_until(0))                                                    \
    CALL(pirn_after_func, pirn_after_func(0, NULL, NULL))                                          \
    CALL(pirn_timer_new, pirn_timer_new(0))                                                        \
    CALL(pirn_timer_chanv, pirn_timer_chan(timer))                                                 \
    CALL(pirn_timer_stop, pirn_timer_stop(timer))                                                  \
    CALL(pirn_timer_stop_wait, pirn_timer_stop_wait(func_timer))                                   \
    CALL(pirn_timer_reset, pirn_timer_reset(timer, 0))                                             \
    CALL(pirn_timer_free, pirn_timer_free(NULL))                                                   \
    CALL(pirn_ticker_new, pirn_ticker_new(0))                                                      \
    CALL(pirn_ticker_chanv, pirn_ticker_chan(ticker))                                              \
    CALL(pirn_ticker_reset, pirn_ticker_reset(ticker, 0))                                          \
    CALL(pirn_ticker_stop, pirn_ticker_stop(ticker))                                               \
    CALL(pirn_ticker_free, pirn_ticker_free(NULL))                                                 \
    CALL(pirn_afterv, pirn_after(0))                                                               \
    /* contexts and groups */                                                                      \
    CALL(pirn_ctx_background, pirn_ctx_background())                                               \
    CALL(pirn_ctx_with_cancel, pirn_ctx_with_cancel(NULL))                                         \
    CALL(pirn_ctx_with_deadline, pirn_ctx_with_deadline(ctx, 0))                                   \
    CALL(pirn_ctx_with_timeout, pirn_ctx_with_timeout(ctx, 0))                                     \
    CALL(pirn_ctx_with_value, pirn_ctx_with_value(ctx, NULL, NULL))                                \
    CALL(pirn_ctx_without_cancel, pirn_ctx_without_cancel(ctx))                                    \
    CALL(pirn_ctx_with_signals, pirn_ctx_with_signals(ctx, &(int){SIGKILL}, 1))                    \
    CALL(pirn_ctx_retain, pirn_ctx_retain(NULL))                                                   \
    CALL(pirn_ctx_release, pirn_ctx_release(NULL))                                                 \
    CALL(pirn_ctx_cancel, pirn_ctx_cancel(ctx, 0))                                                 \
    CALL(pirn_ctx_err, pirn_ctx_err(ctx))                                                          \
    CALL(pirn_ctx_cause, pirn_ctx_cause(ctx))                                                      \
    CALL(pirn_ctx_deadline, pirn_ctx_deadline(ctx))                                                \
    CALL(pirn_ctx_value, pirn_ctx_value(NULL, NULL))                                               \
    CALL(pirn_ctx_donev, pirn_ctx_done(ctx))                                                       \
    CALL(pirn_ctx_after_func, pirn_ctx_after_func(ctx, NULL, NULL))                                \
    CALL(pirn_ctx_current, pirn_ctx_current())                                                     \
    CALL(pirn_ctx_use, pirn_ctx_use(ctx))                                                          \
    CALL(pirn_group_init, pirn_group g; pirn_group_init(&g, ctx))                                  \
    CALL(pirn_group_wait, pirn_group_wait(&group))                                                 \
    CALL(pirn_group_cancel, pirn_group_cancel(&group))                                             \
    CALL(pirn_group_ctx, pirn_group_ctx(&group))                                                   \
    CALL(pirn_group_set_limit, pirn_group_set_limit(&group, 1))                                    \
    CALL(pirn_group_begin_, pirn_group_go(&group, gives_0, NULL))                                  \
    CALL(pirn_group_try_begin_, (void)pirn_group_try_go(&group, gives_0, NULL))                    \
    /* signals */                                                                                  \
    CALL(pirn_signal_notifyv, pirn_signal_notify(empty, SIGKILL))                                  \
    CALL(pirn_signal_stopv, pirn_signal_stopv(NULL))                                               \
    CALL(pirn_signal_ignore, pirn_signal_ignore(SIGKILL))                                          \
    CALL(pirn_signal_reset, pirn_signal_reset(SIGKILL))                                            \
    CALL(pirn_signal_ignored, pirn_signal_ignored(SIGUSR1))                                        \
    /* descriptors */                                                                              \
    CALL(pirn_read, pirn_read(fds[0], buf, 1))                                                     \
    CALL(pirn_write, pirn_write(fds[0], buf, 1))                                                   \
    CALL(pirn_readv, pirn_readv(fds[0], &vec, -1))                                                 \
    CALL(pirn_writev, pirn_writev(fds[0], &vec, -1))                                               \
    CALL(pirn_read_full, pirn_read_full(fds[0], buf, 0))                                           \
    CALL(pirn_write_all, pirn_write_all(fds[0], buf, 1))                                           \
    CALL(pirn_recvfrom, pirn_recvfrom(fds[0], buf, 1, MSG_DONTWAIT, NULL, NULL))                   \
    CALL(pirn_sendto, pirn_sendto(fds[0], buf, 1, MSG_DONTWAIT, NULL, 0))                          \
    CALL(pirn_recvmsg, pirn_recvmsg(fds[0], &msg, MSG_DONTWAIT))                                   \
    CALL(pirn_sendmsg, pirn_sendmsg(fds[0], &msg, MSG_DONTWAIT))                                   \
    CALL(pirn_accept, pirn_accept(file, NULL, NULL))                                               \
    CALL(pirn_connect, pirn_connect(fds[0], NULL, 0))                                              \
    CALL(pirn_shutdown, pirn_shutdown(-1, 0))                                                      \
    CALL(pirn_close, pirn_close(-1))                                                               \
    CALL(pirn_fd_deadline, pirn_fd_deadline(-1, 0, 0))                                             \
    CALL(pirn_fd_cancel, pirn_fd_cancel(-1))                                                       \
    CALL(pirn_fd_wait, pirn_fd_wait(fds[0], 0, 0))                                                 \
    CALL(pirn_fd_adopt, pirn_fd_adopt(-1))                                                         \
    CALL(pirn_listen, pirn_listen("none", "none"))                                                 \
    CALL(pirn_dial, pirn_dial("none", "none"))                                                     \
    CALL(pirn_dial_until, pirn_dial_until("none", "none", 0))                                      \
    /* files, names, children */                                                                   \
    CALL(pirn_open, pirn_open("/dev/null", 0))                                                     \
    CALL(pirn_openat, pirn_openat(-1, "", 0))                                                      \
    CALL(pirn_pread, pirn_pread(file, buf, 1, -1))                                                 \
    CALL(pirn_pwrite, pirn_pwrite(file, buf, 1, -1))                                               \
    CALL(pirn_fsync, pirn_fsync(-1))                                                               \
    CALL(pirn_fdatasync, pirn_fdatasync(-1))                                                       \
    CALL(pirn_sendfile, pirn_sendfile(fds[0], file, NULL, 0))                                      \
    CALL(pirn_resolve, pirn_resolve("127.0.0.1", "80", NULL, &res))                                \
    CALL(pirn_resolve_free, pirn_resolve_free(NULL))                                               \
    CALL(pirn_wait_pid, pirn_wait_pid(-1, NULL))                                                   \
    /* seeing inside */                                                                            \
    CALL(pirn_dump, pirn_dump(2))                                                                  \
    CALL(pirn_leak_report, pirn_leak_report(-1))                                                   \
    CALL(pirn_backtrace, pirn_backtrace(pcs, 4))                                                   \
    CALL(pirn_backtrace_print, pirn_backtrace_print(2, pcs, 0))                                    \
    /* allowed: who has forked needs errno, when exec has failed */                                \
    MAY_CALL(pirn_errno_location, CHECK_NE(chdir("/none"), 0); CHECK_EQ(errno, ENOENT))            \
    MAY_CALL(pirn_version, CHECK_STR(pirn_version(), PIRN_VERSION))
/* clang-format on */

#define CALL(name, ...)                                                                            \
    static void call_##name(void)                                                                  \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
#define MAY_CALL(name, ...) CALL(name, __VA_ARGS__)
CALLS
#undef CALL
#undef MAY_CALL

static const struct call {
    const char *name;
    void (*fn)(void);
    bool allowed;
} calls[] = {
#define CALL(name, ...) {#name, call_##name, false},
#define MAY_CALL(name, ...) {#name, call_##name, true},
    CALLS
#undef CALL
#undef MAY_CALL
};

/* --- each of them -------------------------------------------------------------------------------------- */

static void in_child(void *arg)
{
    const struct call *c = arg;
    signal(SIGALRM, SIG_DFL);
    alarm(30); /* one that waits is killed by it */
    c->fn();
}

/* All of them, so that one run tells what is missing. */
static void call_each(void)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int status = test_in_child(in_child, (void *)(uintptr_t)&calls[i]);
        bool ok = calls[i].allowed ? status == 0 && !test_said[0]
                                   : WIFEXITED(status) && WEXITSTATUS(status) == 2
                                         && strcmp(test_said, MESSAGE) == 0;
        if (!ok) {
            bad++;
            printf("%s: status 0x%x, said: %s\n", calls[i].name, status, test_said);
        }
    }
    fflush(stdout);
    CHECK_EQ(bad, 0);
}

TEST_RUN_ATTR(in_a_child_of_a_goroutine, .procs = "1,2,4,16", .timeout = 120)
{
    set_up();
    call_each();
}

static void *call_each_in_thread(void *arg)
{
    call_each();
    return arg;
}

/* The thread has never called pirn before. */
TEST_ATTR(in_a_child_of_a_thread, .procs = "1,2,4,16", .timeout = 120)
{
    pthread_t t;
    CHECK_EQ(pirn_start(NULL), 0);
    set_up();
    CHECK_EQ(pthread_create(&t, NULL, call_each_in_thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

static void forks_again(void *arg)
{
    (void)arg;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pirn_chan_len(full);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(1);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST_RUN_ATTR(in_a_child_of_the_child, .procs = "1,4")
{
    full = pirn_chan_make(int, 1);
    CHECK_EQ(WEXITSTATUS(test_in_child(forks_again, NULL)), 2);
    CHECK_STR(test_said, MESSAGE);
}

/* The runtime has gone, this goroutine has not: its child has no more of it. */
static atomic_int stays;

static void forks_late(void)
{
    while (atomic_load(&stays) == 1)
        usleep(100);
    CHECK_EQ(WEXITSTATUS(test_in_child((void (*)(void *))(void (*)(void))pirn_yield, NULL)), 2);
    CHECK_STR(test_said, MESSAGE);
    atomic_store(&stays, 3);
    for (;;)
        pause();
}

static int leaves_one_behind(void *arg)
{
    atomic_store(&stays, 1);
    pirn_go(forks_late);
    pirn_sleep(20 * PIRN_MS);
    return arg != NULL;
}

TEST_ATTR(in_a_child_of_one_left_behind, .procs = "2", .timeout = 60)
{
    pirn_config config = {.stop_grace = PIRN_MS};
    CHECK_EQ(pirn_run_config(&config, leaves_one_behind, NULL), 0);
    atomic_store(&stays, 2);
    while (atomic_load(&stays) != 3)
        usleep(100);
}

/* --- no runtime ------------------------------------------------------------------------------------------ */

static void sends_7(pirn_chan(int) c)
{
    pirn_chan_send(c, 7);
}

static int gets_7(void *arg)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    (void)arg;
    pirn_go(sends_7, c);
    int got = pirn_chan_get(c);
    pirn_chan_release(c);
    return got;
}

/* ThreadSanitizer ends a child that starts threads, if its parent had several. */
static const bool can_start = !TEST_TSAN;

static void as_in_any_process(void *arg)
{
    (void)arg;
    alarm(60);
    pirn_chan(int) c = pirn_chan_make(int, 2);
    CHECK_EQ(pirn_chan_try_send(c, 1), 1);
    CHECK_EQ(pirn_chan_len(c), 1);
    pirn_chan_close(c);
    pirn_chan_release(c);
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    pirn_mutex_unlock(&m);
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    pirn_wg_done(&wg);
    pirn_wg_wait(&wg);
    pirn_local_key k;
    CHECK_EQ(pirn_local_new(&k, NULL), 0);
    CHECK_EQ(pirn_signal_ignore(SIGUSR2), 0);
    CHECK_EQ(pirn_signal_reset(SIGUSR2), 0);
    CHECK_GT(pirn_now(), 0);
    for (int i = 0; i < 2 && can_start; i++)
        CHECK_EQ(pirn_run(gets_7, NULL), 7);
}

TEST(before_the_first_runtime)
{
    CHECK_EQ(test_in_child(as_in_any_process, NULL), 0);
    CHECK_STR(test_said, "");
}

TEST(after_the_last_runtime)
{
    CHECK_EQ(pirn_run(gets_7, NULL), 7);
    CHECK_EQ(test_in_child(as_in_any_process, NULL), 0);
    CHECK_STR(test_said, "");
}

/* Threads that use pirn without a runtime: what they hold when another thread forks, the child must be able to
 * take. They leave the heap alone, which under AddressSanitizer is locked in the child if they don't. */
static atomic_bool enough;
static atomic_int begun;
static pirn_chan(int) theirs[2], childs;

static void *uses_objects(void *arg)
{
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&enough)) {
        pirn_local_key k;
        CHECK_EQ(pirn_chan_try_send(*(pirn_chan(int) *)arg, 1), 1);
        CHECK_EQ(pirn_chan_try_recv(*(pirn_chan(int) *)arg, NULL), 1);
        pirn_local_new(&k, NULL); /* until there are too many */
        CHECK_EQ(pirn_signal_ignore(SIGUSR1), 0);
        CHECK_EQ(pirn_signal_reset(SIGUSR1), 0);
    }
    return NULL;
}

static void uses_them_too(void *arg)
{
    alarm(60);
    pirn_local_key k;
    CHECK_EQ(pirn_chan_try_send(childs, 1), 1);
    pirn_chan_close(childs);
    pirn_local_new(&k, NULL);
    CHECK_EQ(pirn_signal_ignore(SIGUSR2), 0);
    if (can_start)
        CHECK_EQ(pirn_run(gives_0, arg), 0);
}

TEST_ATTR(while_others_use_objects, .timeout = 120)
{
    pthread_t t[2];
    childs = pirn_chan_make(int, 1);
    for (int i = 0; i < 2; i++) {
        theirs[i] = pirn_chan_make(int, 1);
        CHECK_EQ(pthread_create(&t[i], NULL, uses_objects, &theirs[i]), 0);
    }
    while (atomic_load(&begun) < 2)
        usleep(100); /* a thread that begins uses the heap */
    for (int i = 0; i < 60; i++) {
        CHECK_EQ(test_in_child(uses_them_too, NULL), 0);
        CHECK_STR(test_said, "");
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
}
