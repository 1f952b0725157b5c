/* SPDX-License-Identifier: MIT */
/*
 * An echo by one loop over a ring: receiving and sending are operations of it, so that one system call does for
 * many requests (echo.h). Each connection has a buffer in the kernel's hands all the time.
 */
#include "echo.h"

#include <liburing.h>
#include <poll.h>

enum { ENTRIES = 4096, SIZE = 4096 };

static struct io_uring ring;
static char *buffers; /* SIZE for each descriptor */

static struct io_uring_sqe *next_entry(void)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&ring);
    peer_check(e, "the ring is full");
    return e;
}

static char *buffer_of(int fd)
{
    return buffers + (size_t)fd * SIZE;
}

static void receive(int fd)
{
    struct io_uring_sqe *e = next_entry();
    io_uring_prep_recv(e, fd, buffer_of(fd), SIZE, 0);
    e->user_data = (uint64_t)fd * 2;
}

static void send_back(int fd, size_t n)
{
    struct io_uring_sqe *e = next_entry();
    io_uring_prep_send(e, fd, buffer_of(fd), n, MSG_NOSIGNAL);
    e->user_data = (uint64_t)fd * 2 + 1;
}

static void watch(int fd, bool connection)
{
    if (connection) {
        receive(fd);
    }
}

static void serve(int until)
{
    struct io_uring_cqe *cqe;
    struct io_uring_sqe *e = next_entry();
    io_uring_prep_poll_add(e, until, POLLIN);
    e->user_data = UINT64_MAX;
    for (bool over = false; !over;) {
        unsigned head, n = 0;
        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            int fd = (int)(cqe->user_data / 2);
            n++;
            if (cqe->user_data == UINT64_MAX) {
                over = true;
            } else if (cqe->user_data & 1) {
                receive(fd);
            } else if (cqe->res > 0) {
                send_back(fd, (size_t)cqe->res);
            }
        }
        io_uring_cq_advance(&ring, n);
    }
}

static void ready(void)
{
    struct io_uring_params p = {.flags = IORING_SETUP_COOP_TASKRUN};
    buffers = calloc(ENTRIES, SIZE);
    peer_check(buffers && io_uring_queue_init_params(ENTRIES, &ring, &p) == 0, "no ring");
}

int main(int argc, char **argv)
{
    return echo_main(argc, argv, "a bare io_uring loop", ready);
}
