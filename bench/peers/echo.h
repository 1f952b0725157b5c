/* SPDX-License-Identifier: MIT */
/*
 * What bare loops that echo share: one thread, no state and no goroutines; what the calls of an echo, and learning
 * of them, cost without any runtime. The least that a server can reach which makes these calls; also with
 * more WORKERS they have one thread.
 */
#ifndef PEER_ECHO_H
#define PEER_ECHO_H

#include "peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A new connection, or the end of a pipe. */
static void watch(int fd, bool connection);
/* Until there is something to read from `until`, which is watched. */
static void serve(int until);

static int listen_at(struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    peer_check(bind(fd, (struct sockaddr *)at, len) == 0 && listen(fd, 4096) == 0
                   && getsockname(fd, (struct sockaddr *)at, &len) == 0,
               "listen");
    return fd;
}

static pid_t start_load(int port, char *conns, int *to, int *from)
{
    extern char **environ;
    char how[] = "load", text[16], *program = getenv("ECHO_LOAD");
    int in[2], out[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    snprintf(text, sizeof text, "%d", port);
    char *argv[] = {program, how, text, conns, NULL};
    peer_check(program && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    peer_check(posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0, "spawn");
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
    return pid;
}

static void echo(void)
{
    struct sockaddr_in at;
    char name[32], conns[16], text[32] = "";
    int n = bench_int("N", 100), to, from, listener = listen_at(&at);
    snprintf(conns, sizeof conns, "%d", n);
    pid_t pid = start_load(ntohs(at.sin_port), conns, &to, &from);
    for (int i = 0; i < n; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        peer_check(fd >= 0, "accept");
        watch(fd, true);
    }
    watch(from, false);
    serve(from);
    peer_check(read(from, text, 1) == 1, "load");
    int64_t before = peer_cpu();
    peer_check(write(to, "g", 1) == 1, "load");
    serve(from);
    peer_check(read(from, text, sizeof text - 1) > 0, "load");
    snprintf(name, sizeof name, "echo_%d", n);
    bench_value(name, (double)(peer_cpu() - before) / (double)atol(text));
    snprintf(name, sizeof name, "echo_rate_%d", n);
    bench_value(name, bench_int("LOAD_MS", 500) * 1e6 / (double)atol(text));
    waitpid(pid, NULL, 0);
}

/* The program; ready(): before the first is watched. */
static int echo_main(int argc, char **argv, const char *what, void (*ready)(void))
{
    static const struct peer_run runs[] = {{"echo_100", echo}, {"echo_1000", echo}};
    struct rlimit files = {0};
    const struct peer_run *run = peer_choose(argc, argv, what, runs, 2);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (run) {
        ready();
        run->fn();
    }
    return 0;
}

#endif
