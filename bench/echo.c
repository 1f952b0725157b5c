/* SPDX-License-Identifier: MIT */
/*
 * A TCP echo server, one goroutine a connection; op = one request of 64 bytes, in CPU time of the server
 * (all its threads, user and system). N connections, each with one request under way.
 *
 * The clients are a process of their own, the same for pirn and Go: this program with the argument "load",
 * an epoll loop on one thread. It connects, has each connection echo once, says so, waits for a byte,
 * asks for half a second, and says how many requests were answered.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64 };

/* --- the clients -------------------------------------------------------------------------------------- */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static int connect_one(int port)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bench_check(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void ask(int fd)
{
    static const char request[SIZE];
    bench_check(send(fd, request, SIZE, MSG_NOSIGNAL) == SIZE, "send");
}

/* Until so many answers have come, or it is time. *got: bytes of the answer, for each descriptor. */
static long collect(int epoll, int *got, long most, int64_t until, bool again)
{
    long n = 0;
    struct epoll_event events[256];
    char buf[SIZE];
    while (n < most && now() < until) {
        int k = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < k; i++) {
            int fd = events[i].data.fd;
            ssize_t r = recv(fd, buf, (size_t)(SIZE - got[fd]), 0);
            bench_check(r > 0, "recv");
            got[fd] += (int)r;
            if (got[fd] == SIZE) {
                got[fd] = 0;
                n++;
                if (again) {
                    ask(fd);
                }
            }
        }
    }
    return n;
}

static int load(int port, int conns, int64_t ns)
{
    char go;
    int epoll = epoll_create1(EPOLL_CLOEXEC), *fds = calloc((size_t)conns, sizeof *fds);
    int *got = calloc((size_t)conns + 100, 2 * sizeof *got);
    for (int i = 0; i < conns; i++) {
        fds[i] = connect_one(port);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[i]};
        bench_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e) == 0, "epoll_ctl");
        ask(fds[i]);
    }
    bench_check(collect(epoll, got, conns, INT64_MAX, false) == conns, "warm up");
    bench_check(write(1, "r", 1) == 1 && read(0, &go, 1) == 1, "begin");
    for (int i = 0; i < conns; i++) {
        ask(fds[i]);
    }
    printf("%ld\n", collect(epoll, got, INT64_MAX, now() + ns, true));
    return 0;
}

/* --- the server ------------------------------------------------------------------------------------------ */

static void serve(int fd)
{
    char buf[4096];
    ssize_t n;
    while ((n = pirn_read(fd, buf, sizeof buf)) > 0 && pirn_write(fd, buf, (size_t)n) == n) {
    }
    pirn_close(fd);
}

static void accept_all(int listener)
{
    for (int fd; (fd = pirn_accept(listener, NULL, NULL)) >= 0;) {
        pirn_go(serve, fd);
    }
}

static double cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9
           + ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
}

/* The clients, with a pipe to and one from them. */
static pid_t start_load(int port, int conns, int *to, int *from)
{
    char ports[16], connss[16], self[] = "/proc/self/exe", how[] = "load";
    int in[2], out[2];
    pid_t pid;
    snprintf(ports, sizeof ports, "%d", port);
    snprintf(connss, sizeof connss, "%d", conns);
    char *argv[] = {self, how, ports, connss, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    bench_check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    bench_check(posix_spawn(&pid, self, &actions, NULL, argv, env) == 0, "spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
    return pid;
}

static int run(void *arg)
{
    (void)arg;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int conns = bench_int("N", 100), to, from;
    char text[32] = "", name[32];
    int listener = pirn_listen("tcp4", "127.0.0.1:0");
    bench_check(listener >= 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0,
                "listen");
    pirn_go(accept_all, listener);
    pid_t pid = start_load(ntohs(at.sin_port), conns, &to, &from);
    bench_check(pirn_read(from, text, 1) == 1, "load");
    double before = cpu_ns();
    pirn_write(to, "g", 1);
    bench_check(pirn_read(from, text, sizeof text - 1) > 0, "load");
    double used = cpu_ns() - before;
    waitpid(pid, NULL, 0);
    snprintf(name, sizeof name, "echo_%d", conns);
    bench_value(name, used / (double)atol(text));
    return 0;
}

int main(int argc, char **argv)
{
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (argc == 4) {
        return load(atoi(argv[2]), atoi(argv[3]), bench_int("LOAD_MS", 500) * PIRN_MS);
    }
    return bench_main(run);
}
