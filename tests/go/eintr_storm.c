/* SPDX-License-Identifier: MIT */
/*
 * Slow system calls in goroutines, plain ones and announced ones, while signals rain on all threads: the
 * signal that preempts and another, both with SA_RESTART. Their results are right, and no call that the
 * kernel restarts ends with EINTR (conformance 66; HAZARDS 16). The storm leaves no signal blocked in a thread
 * (HAZARDS 12).
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "go/busy.h"
#include "go/storm.h"
#include "temp.h"

#define ROUNDS 60

/* --- calls -------------------------------------------------------------------------------------- */

static bool announced; /* in this run */

#define SLOWLY(result, call)                                                                       \
    do {                                                                                           \
        if (announced)                                                                             \
            pirn_blocking_begin();                                                                 \
        errno = 0;                                                                                 \
        result = (call);                                                                           \
        int errno_ = errno;                                                                        \
        if (announced)                                                                             \
            pirn_blocking_end();                                                                   \
        CHECK(!(result < 0 && errno_ == EINTR));                                                   \
    } while (0)

static int pipe_fds[2];

/* A pipe holds 64 KB: both wait for each other. */
static void writes_a_pipe(void)
{
    unsigned char text[9973];
    for (size_t at = 0, end = ROUNDS * 20000; at < end;) {
        size_t n = end - at < sizeof text ? end - at : sizeof text;
        ssize_t done;
        for (size_t i = 0; i < n; i++)
            text[i] = (unsigned char)((at + i) % 251);
        SLOWLY(done, write(pipe_fds[1], text, n));
        CHECK_GT(done, 0);
        at += (size_t)done;
    }
    CHECK_EQ(close(pipe_fds[1]), 0);
}

static void reads_a_pipe(void)
{
    unsigned char text[7001];
    size_t at = 0;
    for (ssize_t n;; at += (size_t)n) {
        SLOWLY(n, read(pipe_fds[0], text, sizeof text));
        CHECK_GE(n, 0);
        if (n == 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            CHECK_EQ(text[i], (at + (size_t)i) % 251);
    }
    CHECK_EQ(at, ROUNDS * 20000);
    CHECK_EQ(close(pipe_fds[0]), 0);
}

static void waits_for_children(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int status, got;
        pid_t pid = fork();
        CHECK_GE(pid, 0);
        if (pid == 0) {
            plain_sleep(2 * PIRN_MS);
            _exit(i);
        }
        SLOWLY(got, waitpid(pid, &status, 0));
        CHECK_EQ(got, pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
}

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener;

static void connects(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err, got = -1;
        ssize_t n;
        CHECK_GE(s, 0);
        SLOWLY(err, connect(s, (struct sockaddr *)&address, sizeof address));
        CHECK_EQ(err, 0);
        CHECK_EQ(send(s, &i, sizeof i, 0), sizeof i);
        SLOWLY(n, recv(s, &got, sizeof got, MSG_WAITALL));
        CHECK_EQ(n, sizeof got);
        CHECK_EQ(got, -i);
        CHECK_EQ(close(s), 0);
    }
}

static void accepts(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int s, got = -1;
        ssize_t n;
        SLOWLY(s, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
        CHECK_GE(s, 0);
        SLOWLY(n, recv(s, &got, sizeof got, MSG_WAITALL));
        CHECK_EQ(n, sizeof got);
        CHECK_EQ(got, i);
        got = -got;
        plain_sleep(PIRN_MS);
        CHECK_EQ(send(s, &got, sizeof got, 0), sizeof got);
        CHECK_EQ(close(s), 0);
    }
}

static char file_name[TEMP_PATH];
static atomic_int holders;

static void locks_a_file(void)
{
    int fd = open(file_name, O_RDWR | O_CLOEXEC), err;
    CHECK_GE(fd, 0);
    for (int i = 0; i < ROUNDS; i++) {
        SLOWLY(err, flock(fd, LOCK_EX));
        CHECK_EQ(err, 0);
        CHECK_EQ(atomic_fetch_add(&holders, 1), 0);
        plain_sleep(500 * PIRN_US);
        CHECK_EQ(atomic_fetch_sub(&holders, 1), 1);
        CHECK_EQ(flock(fd, LOCK_UN), 0);
    }
    CHECK_EQ(close(fd), 0);
}

static sem_t ping, pong;

static void pings(void)
{
    for (int i = 0, err; i < ROUNDS; i++) {
        CHECK_EQ(sem_post(&ping), 0);
        SLOWLY(err, sem_wait(&pong));
        CHECK_EQ(err, 0);
    }
}

static void pongs(void)
{
    for (int i = 0, err; i < ROUNDS; i++) {
        SLOWLY(err, sem_wait(&ping));
        CHECK_EQ(err, 0);
        plain_sleep(PIRN_MS);
        CHECK_EQ(sem_post(&pong), 0);
    }
}

/* Not restarted by the kernel: it says how much is left. */
static void sleeps(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        pirn_ns due = plain_now() + 2 * PIRN_MS;
        plain_sleep(2 * PIRN_MS);
        CHECK_GE(plain_now(), due);
    }
}

/* --- all at once -------------------------------------------------------------------------------- */

static void open_all(void)
{
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "pirn-eintr-%d", getpid());
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(listener, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(listener, 1), 0);
    temp_path(file_name);
    CHECK_EQ(sem_init(&ping, 0, 0), 0);
    CHECK_EQ(sem_init(&pong, 0, 0), 0);
}

/* --- afterwards --------------------------------------------------------------------------------- */

static unsigned long long blocked_at_start;

/* Of a thread that runs goroutines; else 0. */
static unsigned long long blocked_by(const char *tid)
{
    char path[300], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    FILE *f = fopen(path, "re");
    bool runs = false;
    while (f && fgets(line, sizeof line, f)) {
        runs |= !strncmp(line, "Name:\tpirn-m", 12);
        sscanf(line, "SigBlk: %llx", &mask);
    }
    if (f)
        fclose(f);
    return runs ? mask : 0;
}

/* One that is just being born, or stopped, blocks some for a moment. */
static bool masks_are_clean(void)
{
    bool clean = true;
    DIR *d = opendir("/proc/self/task");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));)
        clean = clean && !(e->d_name[0] != '.' && blocked_by(e->d_name) & ~blocked_at_start);
    closedir(d);
    return clean;
}

static int call_all(void *arg)
{
    static void (*const all[])(void) = {writes_a_pipe, reads_a_pipe, waits_for_children, connects,
                                        accepts,       locks_a_file, locks_a_file,       pings,
                                        pongs,         sleeps};
    pirn_wg wg = {0};
    uint64_t taken = retaken();
    open_all();
    storm_begin();
    start_loops(1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        pirn_wg_go(&wg, all[i]);
    pirn_wg_wait(&wg);
    end_loops();
    storm_end();
    SLEEP_UNTIL(masks_are_clean());
    CHECK_EQ(unlink(file_name), 0);
    CHECK_EQ(close(listener), 0);
    printf("%lu and %lu signals, %d taken\n", atomic_load(&usr1s), atomic_load(&urgs),
           (int)(retaken() - taken));
    CHECK_GT(atomic_load(&usr1s), 100);
    CHECK_GT(atomic_load(&urgs), 100);
    CHECK(retaken() > taken || pirn_procs(0) > 4); /* 16 have a P for each */
    return arg != NULL;
}

static void in_the_storm(bool and_say_so)
{
    if (test_on_valgrind())
        SKIP("a fork takes seconds under valgrind, and hundreds are made here");
    if (TEST_TSAN)
        SKIP("ThreadSanitizer calls handlers later, and not during the calls");
    storm_handlers(SA_RESTART | SA_ONSTACK);
    announced = and_say_so;
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    memcpy(&blocked_at_start, &now, sizeof blocked_at_start);
    CHECK_EQ(pirn_run(call_all, NULL), 0);
}

TEST_ATTR(plain_calls, PROCS, .timeout = 120, .once = true)
{
    in_the_storm(false);
}

TEST_ATTR(announced_calls, PROCS, .timeout = 120, .once = true)
{
    in_the_storm(true);
}
