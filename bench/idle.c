/* SPDX-License-Identifier: MIT */
/*
 * $N connections that have said something, and now nothing (10,000): memory of the server for each, page
 * tables included, beside what it had before; and its CPU time while they are idle, in ns a second.
 *
 * The clients (load.h) send a byte on each connection, and are idle for a second.
 */
#include "load.h"

#include <stdatomic.h>

/* --- the clients -------------------------------------------------------------------------------------- */

static int load(int port, int conns, int64_t ns)
{
    (void)ns;
    struct sockaddr_in to = load_addr(port);
    for (int i = 0; i < conns; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bench_check(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0
                        && send(fd, "x", 1, 0) == 1,
                    "connect");
    }
    load_begin();
    sleep(1);
    puts("1");
    return 0;
}

/* --- the server ------------------------------------------------------------------------------------------ */

static atomic_int heard;

static void serve(int fd)
{
    char buf[64];
    while (pirn_read(fd, buf, sizeof buf) > 0) {
        atomic_fetch_add(&heard, 1);
    }
    pirn_close(fd);
}

static void accept_all(int listener)
{
    for (int fd; (fd = pirn_accept(listener, NULL, NULL)) >= 0;) {
        pirn_go(serve, fd);
    }
}

static long memory(void)
{
    return bench_memory("VmRSS") + bench_memory("VmPTE");
}

static int run(void *arg)
{
    (void)arg;
    int conns = bench_int("N", 10000), to, from;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    char text[32];
    int listener = pirn_listen("tcp4", "127.0.0.1:0");
    bench_check(listener >= 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0,
                "listen");
    long before = memory();
    pirn_go(accept_all, listener);
    pid_t pid = start_load(ntohs(at.sin_port), conns, &to, &from);
    bench_check(pirn_read(from, text, 1) == 1, "load");
    while (atomic_load(&heard) < conns) {
        pirn_sleep(10 * PIRN_MS);
    }
    bench_value("idle_bytes", (double)(memory() - before) / conns);
    pirn_sleep(100 * PIRN_MS);
    double cpu = cpu_ns();
    pirn_write(to, "g", 1);
    bench_check(pirn_read(from, text, sizeof text) > 0, "load");
    bench_value("idle_cpu", cpu_ns() - cpu);
    waitpid(pid, NULL, 0);
    return 0;
}

int main(int argc, char **argv)
{
    return load_main(argc, argv, load, run);
}
