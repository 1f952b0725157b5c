/* SPDX-License-Identifier: MIT */
/*
 * One loop over an epoll descriptor on one thread, with no state and no goroutines: what the two calls of an
 * echo, and learning of them, cost without any runtime. The least that a server can reach which makes
 * these calls; also with more WORKERS it has one thread.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int epoll;

static void watch(int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    peer_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0, "epoll_ctl");
}

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

/* Until there is something to read from `until`. */
static void serve(int until)
{
    struct epoll_event events[128];
    char buf[4096];
    for (;;) {
        int n = epoll_wait(epoll, events, 128, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == until) {
                return;
            }
            ssize_t r = events[i].events & EPOLLIN ? recv(fd, buf, sizeof buf, MSG_DONTWAIT) : 0;
            peer_check(r <= 0 || send(fd, buf, (size_t)r, MSG_DONTWAIT | MSG_NOSIGNAL) == r,
                       "send");
        }
    }
}

static void echo(void)
{
    struct sockaddr_in at;
    char name[32], conns[16], text[32] = "";
    int n = bench_int("N", 100), to, from, listener = listen_at(&at);
    snprintf(name, sizeof name, "echo_%d", n);
    snprintf(conns, sizeof conns, "%d", n);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    pid_t pid = start_load(ntohs(at.sin_port), conns, &to, &from);
    for (int i = 0; i < n; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        peer_check(fd >= 0, "accept");
        watch(fd, EPOLLIN | EPOLLET);
    }
    watch(from, EPOLLIN);
    serve(from);
    peer_check(read(from, text, 1) == 1, "load");
    int64_t before = peer_cpu();
    peer_check(write(to, "g", 1) == 1, "load");
    serve(from);
    peer_check(read(from, text, sizeof text - 1) > 0, "load");
    bench_value(name, (double)(peer_cpu() - before) / (double)atol(text));
    snprintf(name, sizeof name, "echo_rate_%d", n);
    bench_value(name, bench_int("LOAD_MS", 500) * 1e6 / (double)atol(text));
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct peer_run runs[] = {{"echo_100", echo}, {"echo_1000", echo}};
    struct rlimit files = {0};
    const struct peer_run *run = peer_choose(argc, argv, "a bare epoll loop", runs, 2);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (run) {
        run->fn();
    }
    return 0;
}
