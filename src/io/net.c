/* SPDX-License-Identifier: MIT */
/*
 * Connections: accept, connect, and the calls that begin with a text, listen and dial.
 *
 * connect is begun, and then it is waited until the socket can be written to, and its error asked. On a
 * blocking socket of the program's it is begun in a blocking section, with a time-out (SO_SNDTIMEO) of one tick
 * for as long as that takes: then it goes on by itself, and is waited for like any other. Its flags are not ours;
 * the option means nothing to a socket before it is connected. If the program has set it, that is the time
 * after which it can be ended.
 *
 * dial with several addresses (rule of RFC 8305): one attempt after the other, each as soon as the one
 * before has failed or 300 ms have passed; the first that is connected wins and the others are closed. It is one
 * goroutine that waits for all of them by a select, or a thread by poll().
 *
 * accept takes an error of one connection for what it is, and goes on with the next. Without descriptors or
 * memory it waits, a few milliseconds at first and then longer, so it neither fails nor spins; the same if
 * such errors don't end, as where a filter of system calls forbids accept.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "io/addr.h"
#include "io/files.h"
#include "io/io.h"
#include "os/sysio.h"

#define BACKLOG 4096
#define NEXT_AFTER (300 * PIRN_MS)
#define IN_VAIN (5 * PIRN_MS)
#define OF_ONE_MOST                                                                                \
    64 /* errors of connections in a row: then it is none of theirs, and there is a pause */

/* Or that is not to be known: then nothing could end it if it did. */
static bool would_block(int fd)
{
    int flags = sys_flags(fd);
    return flags < 0 || !(flags & O_NONBLOCK);
}

/* --- accept ------------------------------------------------------------------------------------------------ */

/* Of the connection that was lost while it waited, or of the network: not of the listener. */
static bool is_of_one(ssize_t r)
{
    return r == -ECONNABORTED || r == -EPROTO || r == -ENETDOWN || r == -ENOPROTOOPT
           || r == -EHOSTDOWN || r == -ENONET || r == -EHOSTUNREACH || r == -ENETUNREACH
           || r == -EPERM;
}

static ssize_t accept_any(struct io *io)
{
    ssize_t r;
    int tries = 0;
    do {
        r = sys_accept(io->fd, io->addr, io->len);
        if (is_of_one(r) && io->look.kind == FD_ANY && !fd_is_ready(io->fd, FD_READ)) {
            return -EAGAIN; /* one that blocks would, now */
        }
    } while (is_of_one(r) && ++tries < OF_ONE_MOST);
    bool pause = is_of_one(r) || r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM;
    return pause ? IO_PAUSE : r;
}

static ssize_t try_accept(struct io *io)
{
    if (io->look.kind == FD_ANY && would_block(io->fd)) {
        int listens = sys_sockopt(io->fd, SOL_SOCKET, SO_ACCEPTCONN);
        return listens > 0 ? IO_BLOCKS : listens ? listens : -EINVAL;
    }
    return accept_any(io);
}

EXPORT int pirn_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
    struct io io = IO_INIT(fd, FD_READ, try_accept, accept_any);
    io.addr = addr;
    io.len = len;
    io.makes = true;
    return fd_give((int)io_run(&io));
}

/* --- connect ------------------------------------------------------------------------------------------------ */

/* 0: connected; -EAGAIN: not yet. */
static int connected(int fd)
{
    int err = sys_sockopt(fd, SOL_SOCKET, SO_ERROR);
    if (err) {
        return err < 0 ? err : -err;
    }
    int r = sys_peername(fd);
    return r == -ENOTCONN ? -EAGAIN : r;
}

/* Interrupted it goes on by itself; but that of a Unix socket has not begun. EAGAIN: the queue of a Unix listener is
 * full, and nothing tells when not. */
static int of_connect(int r, const struct sockaddr *addr)
{
    bool not_begun = r == -EAGAIN || (r == -EINTR && addr->sa_family == AF_UNIX);
    return not_begun ? IO_PAUSE : r == -EINTR ? -EINPROGRESS : r;
}

static int begin_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return of_connect(sys_connect(fd, addr, len), addr);
}

static ssize_t try_connect(struct io *io)
{
    if (io->started) {
        return connected(io->fd);
    }
    if (io->look.kind == FD_ANY && would_block(io->fd)) {
        return IO_BLOCK_NOW;
    }
    int r = begin_connect(io->fd, io->addr, *io->len);
    io->started = r == -EINPROGRESS;
    return io->started ? -EAGAIN : r;
}

static ssize_t block_connect(struct io *io)
{
    int r = of_connect(sys_connect_shortly(io->fd, io->addr, *io->len), io->addr);
    io->started = r == -EINPROGRESS || r == -EALREADY;
    return io->started ? -EAGAIN : r;
}

static int connect_until(int fd, const struct sockaddr *addr, socklen_t len, int64_t deadline)
{
    struct io io = IO_INIT(fd, FD_WRITE, try_connect, block_connect);
    io.addr = (struct sockaddr *)(uintptr_t)addr;
    io.len = &len;
    io.deadline = deadline;
    return (int)io_run(&io);
}

EXPORT int pirn_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return connect_until(fd, addr, len, PIRN_NEVER);
}

/* --- sockets ------------------------------------------------------------------------------------------------- */

/* One that is closed, with the error. */
static int fail(int fd, int err)
{
    pirn_close(fd);
    return err;
}

static int new_socket(int family, int type)
{
    int fd = fd_socket(family, type, family != AF_UNIX && type == SOCK_STREAM);
    if (fd >= 0 && family != AF_UNIX && type == SOCK_STREAM) {
        /* those that are accepted inherit both */
        sys_set_sockopt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        sys_set_sockopt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    }
    return fd;
}

/* 0, with one address at least, or -errno. */
static int look_up(const struct host_port *hp, struct net_kind kind, bool passive, int64_t deadline,
                   struct addr_list *out)
{
    struct addrinfo hints = {.ai_family = kind.family,
                             .ai_socktype = kind.type,
                             .ai_flags = passive ? AI_PASSIVE : 0},
                    *list;
    int err = resolve_until(*hp->host ? hp->host : NULL, *hp->service ? hp->service : "0", &hints,
                            deadline, &list);
    out->n = 0;
    for (struct addrinfo *a = list; a && out->n < ADDRS_MOST; a = a->ai_next) {
        struct net_addr *to = &out->addr[out->n];
        if (a->ai_addrlen <= sizeof to->in6) {
            memset(to, 0, sizeof *to);
            memcpy(&to->any, a->ai_addr, a->ai_addrlen);
            to->len = a->ai_addrlen;
            out->n++;
        }
    }
    pirn_resolve_free(list);
    return err ? err : out->n ? 0 : -ENOENT;
}

static int find_addrs(const char *text, struct net_kind kind, bool any, pirn_ns deadline,
                      struct addr_list *out)
{
    struct host_port hp;
    int r = addr_split(text, &hp);
    r = r ? r : addr_numeric(&hp, kind, any, out);
    if (r == 0) {
        r = look_up(&hp, kind, any, deadline, out);
    }
    return r < 0 ? r : 0;
}

/* --- listen -------------------------------------------------------------------------------------------------- */

static int bind_and_listen(int fd, const struct sockaddr *addr, socklen_t len, int type)
{
    int err = sys_bind(fd, addr, len);
    return err || type == SOCK_DGRAM ? err : sys_listen(fd, BACKLOG);
}

/* The file of a Unix socket that nobody listens to any more. Any other file refuses too: it must be known
 * to be one. */
static bool is_stale(const struct sockaddr_un *un, socklen_t len, int type)
{
    int fd = sys_socket(AF_UNIX, type, 0);
    int err = fd < 0 ? fd : sys_connect(fd, (const struct sockaddr *)un, len);
    if (fd >= 0) {
        sys_close(fd);
    }
    return err == -ECONNREFUSED;
}

static int listen_unix(const char *path, int type)
{
    struct sockaddr_un un;
    socklen_t len;
    int err = addr_unix(path, &un, &len);
    int fd = err ? err : new_socket(AF_UNIX, type);
    if (fd < 0) {
        return fd;
    }
    err = bind_and_listen(fd, (struct sockaddr *)&un, len, type);
    if (err == -EADDRINUSE && un.sun_path[0] && sys_is_socket_file(un.sun_path)
        && is_stale(&un, len, type)) {
        sys_unlink(un.sun_path);
        err = bind_and_listen(fd, (struct sockaddr *)&un, len, type);
    }
    return err ? fail(fd, err) : fd;
}

static int listen_at(const struct net_addr *a, struct net_kind kind, bool both)
{
    int fd = new_socket(a->any.sa_family, kind.type);
    if (fd < 0) {
        return fd;
    }
    if (kind.type == SOCK_STREAM) {
        sys_set_sockopt(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (a->any.sa_family == AF_INET6) {
        sys_set_sockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, !both);
    }
    int err = bind_and_listen(fd, &a->any, a->len, kind.type);
    return err ? fail(fd, err) : fd;
}

EXPORT int pirn_listen(const char *net, const char *addr)
{
    not_forked();
    struct addr_list list = {.n = 0};
    struct net_kind kind;
    int err = net_parse(net, &kind);
    if (err) {
        return err;
    }
    /* The pollers first: those who are accepted may come so fast that no descriptor is left for them. */
    err = netpoll_open_visiting();
    if (err && err != -ESRCH) {
        return err;
    }
    if (kind.family == AF_UNIX) {
        return fd_give(listen_unix(addr, kind.type));
    }
    err = find_addrs(addr, kind, true, PIRN_NEVER, &list);
    int fd = err;
    for (int i = 0; !err && i < list.n; i++) {
        fd = listen_at(&list.addr[i], kind, kind.family == AF_UNSPEC);
        /* Where there is no IPv6 the next is IPv4; a name has one listener only. */
        if (fd >= 0 || (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)) {
            break;
        }
    }
    return fd_give(fd);
}

/* --- dial ---------------------------------------------------------------------------------------------------- */

static int dial_unix(const char *path, int type, int64_t deadline)
{
    struct sockaddr_un un;
    socklen_t len;
    int err = addr_unix(path, &un, &len);
    int fd = err ? err : new_socket(AF_UNIX, type);
    if (fd >= 0) {
        err = connect_until(fd, (struct sockaddr *)&un, len, deadline);
    }
    return fd < 0 ? fd : err ? fail(fd, err) : fd;
}

static int dial_one(const struct net_addr *a, int type, int64_t deadline)
{
    int fd = new_socket(a->any.sa_family, type);
    if (fd < 0) {
        return fd;
    }
    int err = connect_until(fd, &a->any, a->len, deadline);
    if (!err && type == SOCK_STREAM && sys_met_itself(fd)) {
        err = -ECONNREFUSED; /* its port is the one that it calls, and nobody is there */
    }
    return err ? fail(fd, err) : fd;
}

/* Several at a time. */
struct race {
    const struct addr_list *list;
    int next; /* the first address that was not tried yet */
    int n;
    int fd[ADDRS_MOST];
    int err;    /* the first */
    int winner; /* connected, or -1 */
};

static void lost(struct race *r, int err)
{
    r->err = r->err ? r->err : err;
}

static void begin_next(struct race *r, int type)
{
    const struct net_addr *a = &r->list->addr[r->next++];
    int fd = new_socket(a->any.sa_family, type);
    int err = fd < 0 ? fd : begin_connect(fd, &a->any, a->len);
    if (!err) {
        r->winner = fd;
    } else if (err == -EINPROGRESS) {
        r->fd[r->n++] = fd;
    } else {
        err = err == IO_PAUSE ? -EAGAIN : err;
        lost(r, fd < 0 ? fd : fail(fd, err));
    }
}

/* After one of them became writable. */
static void look_at_them(struct race *r)
{
    for (int i = 0; r->winner < 0 && i < r->n;) {
        int err = connected(r->fd[i]);
        err = !err && sys_met_itself(r->fd[i]) ? -ECONNREFUSED : err;
        if (err == -EAGAIN) {
            i++;
            continue;
        }
        int fd = r->fd[i];
        r->fd[i] = r->fd[--r->n];
        if (err) {
            lost(r, fail(fd, err));
        } else {
            r->winner = fd;
        }
    }
}

/* What made it go on: TOLD, 0 (it is time for the next), or -errno: the context, or the deadline. */
#define TOLD 1

static int select_them(const struct race *r, int n, int64_t until)
{
    enum { DONE, TIME, FDS };
    pirn_case cases[FDS + ADDRS_MOST] = {[DONE] = PIRN_DONE(NULL), [TIME] = PIRN_UNTIL(until)};
    for (int i = 0; i < n; i++) {
        cases[FDS + i] = (pirn_case)PIRN_WRITABLE(r->fd[i]);
    }
    int chosen = pirn_selectv(cases, FDS + n);
    return chosen == DONE ? pirn_ctx_err(pirn_ctx_current()) : chosen != TIME ? TOLD : 0;
}

/* A thread, which may be there for longer than the runtime, or without one. Nobody else knows the descriptors. */
static int poll_them(const struct race *r, int n, int64_t until)
{
    struct pollfd p[ADDRS_MOST];
    for (int i = 0; i < n; i++) {
        p[i] = (struct pollfd){.fd = r->fd[i], .events = POLLOUT};
    }
    int ready = sys_poll_several(p, n, until);
    return ready > 0 ? TOLD : ready;
}

static int wait_for_them(const struct race *r, int64_t next_at, int64_t deadline, bool watches)
{
    int64_t until = next_at < deadline ? next_at : deadline;
    int n = watches ? r->n : 0;
    int err = getm() ? select_them(r, n, until) : poll_them(r, n, until);
    return !err && now_ns() >= deadline ? -ETIMEDOUT : err;
}

static int dial_several(const struct addr_list *list, int type, int64_t deadline)
{
    struct race r = {.list = list, .winner = -1};
    int err = pirn_ctx_err(pirn_ctx_current());
    err = !err && deadline <= now_ns() ? -ETIMEDOUT : err; /* else it might be answered at once */
    int64_t next_at = 0;
    bool in_vain = false; /* one that can't be waited for looks ready, and is not */
    while (r.winner < 0 && err >= 0 && (r.n || r.next < list->n)) {
        int n = r.n;
        if (r.next < list->n && (n == 0 || now_ns() >= next_at)) {
            begin_next(&r, type);
            next_at = r.n > n ? pirn_deadline(NEXT_AFTER) : 0;
            continue;
        }
        int64_t until = r.next < list->n ? next_at : PIRN_NEVER;
        int64_t soon = in_vain ? pirn_deadline(IN_VAIN) : PIRN_NEVER;
        err = wait_for_them(&r, until < soon ? until : soon, deadline, !in_vain);
        look_at_them(&r); /* in any case: what is complete wins */
        in_vain = err == TOLD && r.n == n;
        next_at = r.n < n ? 0 : next_at; /* as soon as one has failed */
    }
    for (int i = 0; i < r.n; i++) {
        pirn_close(r.fd[i]);
    }
    return r.winner >= 0 ? r.winner : err < 0 ? err : r.err;
}

static int dial_list(const struct addr_list *list, int type, int64_t deadline)
{
    if (list->n == 1) {
        return dial_one(&list->addr[0], type, deadline);
    }
    int err = getm() ? netpoll_open_visiting() : 0; /* a select without one is fatal */
    return err ? err : dial_several(list, type, deadline);
}

EXPORT int pirn_dial_until(const char *net, const char *addr, pirn_ns deadline)
{
    not_forked();
    struct addr_list list = {.n = 0};
    struct net_kind kind;
    int err = net_parse(net, &kind);
    if (err) {
        return err;
    }
    if (kind.family == AF_UNIX) {
        return fd_give(dial_unix(addr, kind.type, deadline));
    }
    err = find_addrs(addr, kind, false, deadline, &list);
    if (err) {
        return err;
    }
    addr_take_turns(&list);
    return fd_give(dial_list(&list, kind.type, deadline));
}

EXPORT int pirn_dial(const char *net, const char *addr)
{
    return pirn_dial_until(net, addr, PIRN_NEVER);
}
