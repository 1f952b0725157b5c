/* SPDX-License-Identifier: MIT */
/*
 * Servers and the clients that load them, which are a process of their own, the same for pirn and Go: the
 * benchmark's program with the arguments "load", port and number of connections. It gets ready, says so by a
 * byte, waits for one, loads for half a second (LOAD_MS), and says how much was done.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

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

static inline int64_t load_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Ready; and go. */
static void load_begin(void)
{
    char go;
    bench_check(write(1, "r", 1) == 1 && read(0, &go, 1) == 1, "begin");
}

static struct sockaddr_in load_addr(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* --- the server's side ----------------------------------------------------------------------------------- */

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
    char *argv[] = {self, how, ports, connss, NULL};
    posix_spawn_file_actions_t actions;
    bench_check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    bench_check(posix_spawn(&pid, self, &actions, NULL, argv, environ) == 0, "spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
    return pid;
}

/* CPU of the server, in ns, for each that was done; *done: how many, in LOAD_MS. */
static inline double load_run(void (*accept_all)(int), int conns, double *done)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int to, from;
    char text[32] = "";
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
    *done = (double)atol(text);
    return used / *done;
}

/* The time that each took, of all LOAD_MS. */
static inline double load_ns_each(double done)
{
    return bench_int("LOAD_MS", 500) * 1e6 / done;
}

static int load_main(int argc, char **argv, int (*load)(int port, int conns, int64_t ns),
                     int (*run)(void *))
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

#endif
