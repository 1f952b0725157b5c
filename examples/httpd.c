/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1.1 server: a goroutine for each connection, which reads and writes as if it were alone.
 *
 *     httpd -addr 127.0.0.1:8080 -root /srv/www
 *
 *     GET /plaintext      "Hello, World!", for benchmarks
 *     POST, PUT /echo     the body of the request, which may be chunked
 *     GET, HEAD ...       files below the root, by sendfile; If-Modified-Since and Range are understood
 *
 * Connections are kept alive, and requests may be pipelined: the answers to what came together go
 * out together. http_parse.c reads requests, http_file.c finds files; neither knows of connections.
 *
 * Clients that are slow or mean: a head must be complete within -head seconds of its first byte, a body
 * within -body seconds, an answer must be taken within -idle seconds (a file: each MB of it), and a
 * connection without a request is closed after -idle seconds. Heads are at most 16 KB, bodies -limit
 * bytes. Deadlines cost little: that of a busy connection is moved at most once in a second.
 *
 * SIGINT or SIGTERM: no new connections; those without a request are closed; requests under way are
 * finished, for at most -grace seconds. A second signal kills, as usual.
 *
 * Who owns what: a struct conn belongs to its goroutine, but for `idle` and its place in the server's
 * list. At the end one side writes `stopping` and then reads `idle`, the other writes `idle` and then
 * reads `stopping`: one of the two sees the other, so no idle connection is forgotten.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pirn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http_file.h"
#include "listen.h"

enum { IN_SIZE = 4096, OUT_SIZE = 4096, SEND_PIECE = 1 << 20 };
static const pirn_ns LINGER = PIRN_SEC;

struct conn;
static struct {
    const char *addr, *root;
    pirn_ns head_time, body_time, idle_time, grace;
    uint64_t body_limit;
} opt = {"127.0.0.1:8080", ".",           10 * PIRN_SEC, 60 * PIRN_SEC,
         60 * PIRN_SEC,    10 * PIRN_SEC, 8 << 20};

static struct {
    int listener, root;
    atomic_bool stopping;
    pirn_mutex lock; /* of the list */
    struct conn *conns;
    pirn_wg running;
} server;

struct conn {
    int fd;
    atomic_bool idle; /* waits for the first byte of a request */
    struct conn *next, **link;

    char *in; /* bytes from start to end have been read and not used */
    size_t start, end, room;
    struct http_request req; /* its slices are valid until the next fill() */
    bool head;               /* HEAD; the method itself is gone when a body has been read */
    bool last;               /* the connection ends after this answer */
    int broken;              /* -errno: bytes are missing in what was sent, and none may follow */

    pirn_ns read_by, write_by; /* the deadlines that are set */
    time_t date_of;
    char date[HTTP_DATE_SIZE];
    size_t n; /* bytes in out */
    char out[OUT_SIZE];
};

/* -- Deadlines -------------------------------------------------------------------------------- */

static void set_deadlines(struct conn *c, pirn_ns read, pirn_ns write)
{
    c->read_by = read;
    c->write_by = write;
    pirn_fd_deadline(c->fd, read, write);
}

/* About idle_time away: that of writing, and with read both. Without, a request may be under way. */
static void usual_deadlines(struct conn *c, bool read)
{
    pirn_ns by = pirn_now() + opt.idle_time, slack = opt.idle_time / 8;
    if (by - c->write_by > (slack < PIRN_SEC ? slack : PIRN_SEC)
        || (read && c->read_by != c->write_by)) {
        set_deadlines(c, read ? by : c->read_by, by);
    }
}

/* -- Bytes in, bytes out ---------------------------------------------------------------------- */

/* Reads more behind those that are there. > 0; 0: the end; -errno, -ENOBUFS if there is no room. */
static ssize_t fill(struct conn *c)
{
    if (c->start > 0) {
        memmove(c->in, c->in + c->start, c->end - c->start);
        c->end -= c->start;
        c->start = 0;
    }
    if (c->end == c->room) {
        size_t room = c->room * 2;
        char *in = room <= HTTP_MAX_HEAD ? realloc(c->in, room) : NULL;
        if (!in) {
            return -ENOBUFS;
        }
        c->in = in;
        c->room = room;
    }
    ssize_t n = pirn_read(c->fd, c->in + c->end, c->room - c->end);
    if (n > 0) {
        c->end += (size_t)n;
    }
    return n;
}

/* What was put out, and then p. 0 or -errno. */
static int flush_with(struct conn *c, const void *p, size_t n)
{
    struct iovec iov[2] = {{c->out, c->n}, {(void *)p, n}};
    ssize_t total = (ssize_t)(c->n + n), sent = 0;
    if (c->broken) {
        return c->broken;
    }
    if (total > 0) {
        usual_deadlines(c, false);
        sent = n > 0 ? pirn_writev(c->fd, iov, 2) : pirn_write(c->fd, c->out, c->n);
    }
    c->n = 0;
    c->broken = sent == total ? 0 : sent < 0 ? (int)sent : -EIO;
    return c->broken;
}

static int flush(struct conn *c)
{
    return flush_with(c, NULL, 0);
}

/* 0 or -errno, also of any before: of several in a row the last one's result will do. */
static int put(struct conn *c, const void *p, size_t n)
{
    if (c->broken || n > OUT_SIZE - c->n) {
        return flush_with(c, p, n);
    }
    if (n > 0) { /* p may be NULL then */
        memcpy(c->out + c->n, p, n);
        c->n += n;
    }
    return 0;
}

static int put_text(struct conn *c, const char *text)
{
    return put(c, text, strlen(text));
}

static int put_number(struct conn *c, uint64_t v)
{
    char text[20], *p = text + sizeof text;
    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return put(c, p, (size_t)(text + sizeof text - p));
}

/* -- Answers ---------------------------------------------------------------------------------- */

/* The first lines; fields of the answer's own may follow, then end_head. */
static int begin_head(struct conn *c, int status)
{
    time_t now = time(NULL);
    if (now != c->date_of) {
        c->date_of = now;
        http_date(now, c->date);
    }
    c->last = c->last || atomic_load_explicit(&server.stopping, memory_order_relaxed);
    if (OUT_SIZE - c->n < 512) {
        int err = flush(c);
        if (err) {
            return err;
        }
    }
    put_text(c, "HTTP/1.1 ");
    put_text(c, http_reason(status));
    put_text(c, "\r\nServer: pirn-httpd\r\nDate: ");
    put(c, c->date, sizeof c->date - 1);
    const char *more = c->req.minor == 0 ? "\r\nConnection: keep-alive\r\n" : "\r\n";
    return put_text(c, c->last ? "\r\nConnection: close\r\n" : more);
}

static int end_head(struct conn *c, const char *type, uint64_t length)
{
    if (type) {
        put_text(c, "Content-Type: ");
        put_text(c, type);
        put_text(c, "\r\n");
    }
    put_text(c, "Content-Length: ");
    put_number(c, length);
    return put_text(c, "\r\n\r\n");
}

/* A status without more to say; extra is a line for its head, or "". */
static int answer_status(struct conn *c, int status, const char *extra)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s\n", http_reason(status));
    int err = begin_head(c, status);
    if (err || (err = put_text(c, extra)) || (err = end_head(c, "text/plain", (uint64_t)n))) {
        return err;
    }
    return c->head ? 0 : put(c, text, (size_t)n);
}

/* -- Bodies of requests ----------------------------------------------------------------------- */

/*
 * Reads the body, into *keep if keep is not NULL (the caller's to free). 0, a status < 0 such as -413, or
 * -errno if the connection is gone. The slices of the request are not valid any more.
 */
static int read_body(struct conn *c, char **keep, size_t *len)
{
    struct http_body b;
    struct slice data;
    size_t room = 0;
    int err = http_body_init(&b, &c->req, opt.body_limit);
    if (err) {
        return err;
    }
    if (!b.done && c->req.expects_continue && c->start == c->end) {
        put_text(c, "HTTP/1.1 100 Continue\r\n\r\n");
        err = flush(c);
    }
    for (bool waited = false; !err && !b.done;) {
        if (c->start == c->end) {
            if (!waited) {
                err = flush(c); /* answers to the requests before must not wait for this one */
                if (err) {
                    return err;
                }
                set_deadlines(c, pirn_now() + opt.body_time, c->write_by);
                waited = true;
            }
            ssize_t n = fill(c);
            if (n <= 0) {
                return n == -ETIMEDOUT ? -408 : n == 0 ? -EPIPE : (int)n;
            }
        }
        ssize_t used = http_body_feed(&b, c->in + c->start, c->end - c->start, &data);
        if (used < 0) {
            return (int)used;
        }
        c->start += (size_t)used;
        if (!keep || data.n == 0) {
            continue;
        }
        if (*len + data.n > room) {
            room = *len + data.n > room * 2 ? *len + data.n : room * 2;
            char *p = realloc(*keep, room);
            if (!p) {
                return -503;
            }
            *keep = p;
        }
        memcpy(*keep + *len, data.p, data.n);
        *len += data.n;
    }
    return err;
}

static int answer_echo(struct conn *c)
{
    char *body = NULL;
    size_t n = 0;
    int err = read_body(c, &body, &n);
    err = err ? err : begin_head(c, 200);
    err = err ? err : end_head(c, "application/octet-stream", n);
    err = err ? err : put(c, body, n);
    free(body);
    return err;
}

/* -- Files ------------------------------------------------------------------------------------ */

static int send_file(struct conn *c, int fd, uint64_t from, uint64_t len)
{
    off_t at = (off_t)from;
    int err = flush(c);
    while (!err && len > 0) {
        pirn_ns by = pirn_now() + opt.idle_time;
        set_deadlines(c, by, by);
        ssize_t n = pirn_sendfile(c->fd, fd, &at, len < SEND_PIECE ? (size_t)len : SEND_PIECE);
        err = n < 0 ? (int)n : n == 0 ? -EIO : 0; /* 0: the file has become shorter */
        len -= n > 0 ? (uint64_t)n : 0;
    }
    return err;
}

static int answer_open_file(struct conn *c, const struct http_file *f)
{
    uint64_t from, len;
    char line[96], date[HTTP_DATE_SIZE];
    int status = http_file_status(f, &c->req, &from, &len);
    if (status == 416) {
        snprintf(line, sizeof line, "Content-Range: bytes */%llu\r\n", (unsigned long long)f->size);
        return answer_status(c, 416, line);
    }
    int err = begin_head(c, status);
    if (err) {
        return err;
    }
    http_date(f->modified < c->date_of ? f->modified : c->date_of, date); /* not in the future */
    put_text(c, "Accept-Ranges: bytes\r\nLast-Modified: ");
    put_text(c, date);
    put_text(c, "\r\n");
    if (status == 304) {
        return put_text(c, "\r\n");
    }
    if (status == 206) {
        snprintf(line, sizeof line, "Content-Range: bytes %llu-%llu/%llu\r\n",
                 (unsigned long long)from, (unsigned long long)(from + len - 1),
                 (unsigned long long)f->size);
        put_text(c, line);
    }
    err = end_head(c, f->type, len);
    return err || c->head ? err : send_file(c, f->fd, from, len);
}

/* To the directory: path and query as they came, for they are encoded. */
static int answer_moved(struct conn *c)
{
    struct slice path = c->req.path, query = c->req.query;
    int err = begin_head(c, 301);
    if (err) {
        return err;
    }
    put_text(c, "Location: ");
    put(c, path.p, path.n);
    put_text(c, query.p ? "/?" : "/");
    put(c, query.p, query.n);
    put_text(c, "\r\n");
    return end_head(c, NULL, 0);
}

static int answer_file(struct conn *c)
{
    struct http_file f;
    char path[1024];
    if (http_decode_path(c->req.path, path, sizeof path) < 0) {
        return answer_status(c, 404, "");
    }
    int status = http_file_open(server.root, path, &f);
    if (status != 200) {
        return status == 301 ? answer_moved(c) : answer_status(c, status, "");
    }
    int err = answer_open_file(c, &f);
    close(f.fd);
    return err;
}

/* -- A connection ----------------------------------------------------------------------------- */

static int answer_plaintext(struct conn *c)
{
    static const char text[] = "Hello, World!";
    int err = begin_head(c, 200);
    err = err ? err : end_head(c, "text/plain", sizeof text - 1);
    return err || c->head ? err : put(c, text, sizeof text - 1);
}

/* Finds the answer. 0, -status for one that ends the connection, or -errno. */
static int answer(struct conn *c)
{
    struct slice method = c->req.method, path = c->req.path;
    bool get = c->head || slice_is(method, "GET"), plain = get && slice_is(path, "/plaintext");
    bool has_body = c->req.chunked || c->req.length > 0;
    if (get && !(plain && has_body)) {
        c->last = c->last || has_body; /* of a file: read before, it would overwrite the path */
        return plain ? answer_plaintext(c) : answer_file(c);
    }
    bool echo = slice_is(path, "/echo"), options = slice_is(method, "OPTIONS");
    bool upload = slice_is(method, "POST") || slice_is(method, "PUT");
    bool known = upload || slice_is(method, "DELETE");
    if (echo && upload) {
        return answer_echo(c);
    }
    int err = has_body ? read_body(c, NULL, NULL) : 0; /* nobody wants it */
    if (err || get) {
        return err ? err : answer_plaintext(c);
    }
    const char *allow =
        echo ? "Allow: GET, HEAD, OPTIONS, POST, PUT\r\n" : "Allow: GET, HEAD, OPTIONS\r\n";
    if (!options) {
        return answer_status(c, known ? 405 : 501, known ? allow : "");
    }
    err = begin_head(c, 200);
    put_text(c, allow);
    return err ? err : end_head(c, NULL, 0);
}

/* Waits for the head of a request. > 0, -status, or 0 and -errno if there is none and won't be. */
static ssize_t next_head(struct conn *c)
{
    struct http_head h = {0};
    bool timed = false; /* a part of it is here, and its time runs */
    for (;;) {
        if (c->end > c->start) {
            ssize_t got = http_parse_head(&h, c->in + c->start, c->end - c->start, &c->req);
            if (got != 0) {
                return got;
            }
        }
        int err = flush(c); /* before a wait: all answers so far */
        if (err) {
            return err;
        }
        if (c->end == c->start) {
            usual_deadlines(c, true);
            atomic_store(&c->idle, true);
            if (atomic_load(&server.stopping)) {
                return 0;
            }
        } else if (!timed) {
            timed = true;
            set_deadlines(c, pirn_now() + opt.head_time, c->write_by);
        }
        ssize_t n = fill(c);
        atomic_store_explicit(&c->idle, false, memory_order_relaxed);
        if (n <= 0) {
            return n == -ETIMEDOUT && timed ? -408 : n;
        }
    }
}

/* Lets the client read the last answer: closing at once would drop it if the client is still sending. */
static void linger(struct conn *c)
{
    char drop[4096];
    set_deadlines(c, pirn_now() + LINGER, c->write_by);
    pirn_shutdown(c->fd, SHUT_WR);
    while (pirn_read(c->fd, drop, sizeof drop) > 0) {
    }
}

static void serve_requests(struct conn *c)
{
    int err = 0;
    while (!err && !c->last) {
        ssize_t head = next_head(c);
        if (head == 0 || (head < 0 && head > -400)) {
            return; /* gone, or idle for too long */
        }
        err = head < 0 ? (int)head : 0;
        if (!err) {
            c->start += (size_t)head;
            c->last = !c->req.keep_alive;
            c->head = slice_is(c->req.method, "HEAD");
            err = answer(c);
        }
    }
    if (err <= -400) { /* what follows in the stream can't be told apart any more */
        c->last = true;
        c->head = false;
        err = answer_status(c, -err, "");
    }
    if (!err && flush(c) == 0) {
        linger(c);
    }
}

static void end_conn(struct conn *c)
{
    pirn_mutex_lock(&server.lock);
    *c->link = c->next;
    if (c->next) {
        c->next->link = c->link;
    }
    pirn_mutex_unlock(&server.lock);
    pirn_close(c->fd);
    free(c->in);
    free(c);
}

static void serve(void *arg)
{
    struct conn *c = arg;
    serve_requests(c);
    end_conn(c);
    pirn_wg_done(&server.running);
}

static void start_conn(int fd)
{
    struct conn *c = malloc(sizeof *c);
    char *in = malloc(IN_SIZE);
    if (!c || !in) {
        free(c);
        free(in);
        pirn_close(fd);
        return;
    }
    memset(c, 0, offsetof(struct conn, out));
    c->fd = fd;
    c->in = in;
    c->room = IN_SIZE;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    pirn_mutex_lock(&server.lock);
    c->next = server.conns;
    c->link = &server.conns;
    server.conns = c;
    if (c->next) {
        c->next->link = &c->next;
    }
    pirn_mutex_unlock(&server.lock);
    pirn_wg_add(&server.running, 1);
    /* The context of the accepting loop is the signals': it must not end requests under way. */
    pirn_attr attr = {.name = "connection", .ctx = pirn_ctx_background()};
    if (pirn_spawn(&attr, serve, c) != 0) {
        end_conn(c);
        pirn_wg_done(&server.running);
    }
}

/* -- The server ------------------------------------------------------------------------------- */

/* Closes the connections that wait for a request; unless force is NULL, all. */
static void stop_conns(void *force)
{
    pirn_ns now = pirn_now();
    pirn_mutex_lock(&server.lock);
    for (struct conn *c = server.conns; c; c = c->next) {
        if (force) {
            pirn_fd_cancel(c->fd);
        } else if (atomic_load(&c->idle)) {
            pirn_fd_deadline(c->fd, now, now + opt.grace);
        }
    }
    pirn_mutex_unlock(&server.lock);
}

static int run(void *arg)
{
    (void)arg;
    server.root = open(opt.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (server.root < 0) {
        perror(opt.root);
        return 1;
    }
    pirn_ctx *signals = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGINT, SIGTERM}, 2);
    server.listener = listen_and_say("httpd", opt.addr);
    if (server.listener < 0) {
        return 1;
    }
    pirn_ctx *before = pirn_ctx_use(signals);
    int fd;
    while ((fd = pirn_accept(server.listener, NULL, NULL)) >= 0) {
        start_conn(fd);
    }
    pirn_ctx_use(before);
    if (fd != -ECANCELED) {
        fprintf(stderr, "httpd: accept: %s\n", strerror(-fd));
    }
    pirn_ctx_release(signals); /* from here on a signal kills */
    atomic_store(&server.stopping, true);
    pirn_close(server.listener);
    stop_conns(NULL);
    pirn_timer *t = pirn_after_func(opt.grace, stop_conns, &server);
    pirn_wg_wait(&server.running);
    pirn_timer_free(t);
    close(server.root);
    return fd == -ECANCELED ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"addr", 1, NULL, 'a'},  {"root", 1, NULL, 'r'},
                                            {"limit", 1, NULL, 'l'}, {"head", 1, NULL, 'h'},
                                            {"body", 1, NULL, 'b'},  {"idle", 1, NULL, 'i'},
                                            {"grace", 1, NULL, 'g'}, {NULL, 0, NULL, 0}};
    for (int o; (o = getopt_long_only(argc, argv, "", options, NULL)) != -1;) {
        pirn_ns time = optarg ? (pirn_ns)(strtod(optarg, NULL) * (double)PIRN_SEC) : 0;
        switch (o) {
        case 'a': opt.addr = optarg; break;
        case 'r': opt.root = optarg; break;
        case 'l': opt.body_limit = strtoull(optarg, NULL, 10); break;
        case 'h': opt.head_time = time; break;
        case 'b': opt.body_time = time; break;
        case 'i': opt.idle_time = time; break;
        case 'g': opt.grace = time; break;
        default:
            fprintf(stderr,
                    "usage: httpd [-addr HOST:PORT] [-root FOLDER] [-limit BYTES]\n"
                    "    [-head SECONDS] [-body SECONDS] [-idle SECONDS] [-grace SECONDS]\n");
            return 2;
        }
    }
    return pirn_run(run, NULL);
}
