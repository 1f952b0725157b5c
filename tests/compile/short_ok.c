// expect-ok
// also: -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* The short names, beside those of POSIX. */
#include <pirn/short.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

struct point {
    int x, y;
};

static void square(chan(int) in, chan(int) out)
{
    int n;
    while (chan_recv(in, &n))
        chan_send(out, n * n);
    chan_close(out);
}

static int start(void *arg)
{
    (void)arg;
    FILE *f = fopen("/dev/null", "w");
    defer(fclose, f);
    chan(int) in = chan_make(int, 0), out = chan_make(int, 0);
    chan(struct point) points = chan_make(struct point, 1);
    chan_send(points, ((struct point){1, 2}));
    go(square, chan_retain(in), out);
    chan_send(in, 3);
    int n = chan_get(out);
    chan_close(in);
    chan_release(in);
    ssize_t (*of_posix)(int, const void *, size_t, int) = send;
    return n + (of_posix == NULL) + select(0, NULL, NULL, NULL, &(struct timeval){0, 0});
}

int main(void)
{
    return pirn_run(start, NULL);
}
