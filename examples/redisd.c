/* SPDX-License-Identifier: MIT */
/*
 * A server that speaks Redis's protocol, RESP2, well enough for redis-cli and redis-benchmark: strings,
 * lists, expiry, blocking pops, publish and subscribe. Nothing is kept on disk.
 *
 *     redisd -addr 127.0.0.1:6379
 *
 * A goroutine for each client reads commands, executes them and writes the replies: those to all that one
 * read brought go out in one write. The parts and their locks are described in redisd.h.
 *
 * SIGINT, SIGTERM or SHUTDOWN: no new clients; each ends when it has been sent the replies to what it
 * has asked, and after 5 s in any case.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "listen.h"
#include "redisd.h"

enum { IN_SIZE = 4096, IN_KEEP = 64 << 10, OUT_MOST = 64 << 10 };
static const pirn_ns GRACE = 5 * PIRN_SEC, LINGER = PIRN_SEC;

static struct {
    pirn_mutex lock; /* of the list */
    struct client *clients;
    int n_clients;
    bool stopping;
    pirn_wg running;
    pirn_ctx *ctx;
    atomic_llong commands, connections;
    pirn_ns since;
    int port;
} server;

/* -- Commands of the connection itself -------------------------------------------------------- */

static void cmd_ping(struct client *c, int argc, const struct bytes *argv)
{
    if (argc > 2) {
        reply_error(&c->out, "ERR wrong number of arguments for 'ping' command");
    } else if (subscriber_active(c)) {
        reply_array(&c->out, 2);
        reply_bulk_text(&c->out, "pong");
        reply_bulk(&c->out, argc == 2 ? argv[1] : (struct bytes){"", 0});
    } else if (argc == 2) {
        reply_bulk(&c->out, argv[1]);
    } else {
        reply_text(&c->out, "+PONG\r\n");
    }
}

static void cmd_echo(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    reply_bulk(&c->out, argv[1]);
}

static void cmd_select(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc;
    int64_t n;
    if (!bytes_int(argv[1], &n)) {
        reply_error(&c->out, NOT_AN_INTEGER);
    } else if (n != (int32_t)n) {
        reply_error(&c->out,
                    "ERR value is out of range, value must between -2147483648 and 2147483647");
    } else if (n < 0 || n >= DATABASES) {
        reply_error(&c->out, "ERR DB index is out of range");
    } else {
        c->db = (int)n;
        reply_text(&c->out, "+OK\r\n");
    }
}

static void cmd_quit(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc, (void)argv;
    reply_text(&c->out, "+OK\r\n");
    c->closing = true;
}

static void cmd_shutdown(struct client *c, int argc, const struct bytes *argv)
{
    if (argc > 2 || (argc == 2 && !bytes_is(argv[1], "nosave") && !bytes_is(argv[1], "save"))) {
        reply_error(&c->out, "ERR syntax error");
        return;
    }
    c->closing = true; /* without a reply, as Redis does it */
    server_stop();
}

const struct command commands[] = {
    {"append", cmd_append, 3, STORE},
    {"blpop", cmd_blpop, -3, 0},
    {"brpop", cmd_brpop, -3, 0},
    {"client", cmd_client, -2, 0},
    {"command", cmd_command, -1, 0},
    {"config", cmd_config, -2, 0},
    {"dbsize", cmd_dbsize, 1, STORE},
    {"decr", cmd_decr, 2, STORE},
    {"decrby", cmd_decrby, 3, STORE},
    {"del", cmd_del, -2, STORE},
    {"echo", cmd_echo, 2, 0},
    {"exists", cmd_exists, -2, STORE},
    {"expire", cmd_expire, 3, STORE},
    {"flushall", cmd_flushall, -1, STORE},
    {"flushdb", cmd_flushdb, -1, STORE},
    {"get", cmd_get, 2, STORE},
    {"getdel", cmd_getdel, 2, STORE},
    {"getset", cmd_getset, 3, STORE},
    {"hello", cmd_hello, -1, 0},
    {"incr", cmd_incr, 2, STORE},
    {"incrby", cmd_incrby, 3, STORE},
    {"info", cmd_info, -1, 0},
    {"keys", cmd_keys, 2, STORE},
    {"lindex", cmd_lindex, 3, STORE},
    {"llen", cmd_llen, 2, STORE},
    {"lpop", cmd_lpop, -2, STORE},
    {"lpush", cmd_lpush, -3, STORE},
    {"lrange", cmd_lrange, 4, STORE},
    {"mget", cmd_mget, -2, STORE},
    {"mset", cmd_mset, -3, STORE},
    {"persist", cmd_persist, 2, STORE},
    {"pexpire", cmd_pexpire, 3, STORE},
    {"ping", cmd_ping, -1, PUBSUB},
    {"psetex", cmd_psetex, 4, STORE},
    {"psubscribe", cmd_psubscribe, -2, PUBSUB},
    {"pttl", cmd_pttl, 2, STORE},
    {"publish", cmd_publish, 3, 0},
    {"pubsub", cmd_pubsub, -2, 0},
    {"punsubscribe", cmd_punsubscribe, -1, PUBSUB},
    {"quit", cmd_quit, -1, PUBSUB},
    {"rpop", cmd_rpop, -2, STORE},
    {"rpush", cmd_rpush, -3, STORE},
    {"select", cmd_select, 2, 0},
    {"set", cmd_set, -3, STORE},
    {"setex", cmd_setex, 4, STORE},
    {"setnx", cmd_setnx, 3, STORE},
    {"shutdown", cmd_shutdown, -1, 0},
    {"strlen", cmd_strlen, 2, STORE},
    {"subscribe", cmd_subscribe, -2, PUBSUB},
    {"time", cmd_time, 1, 0},
    {"ttl", cmd_ttl, 2, STORE},
    {"type", cmd_type, 2, STORE},
    {"unlink", cmd_del, -2, STORE},
    {"unsubscribe", cmd_unsubscribe, -1, PUBSUB},
};
const int n_commands = sizeof commands / sizeof *commands;

/* -- Finding and executing -------------------------------------------------------------------- */

enum { SLOTS = 256 };
static uint8_t
    slots[SLOTS]; /* number of a command + 1, at the place of its name or the next free */

static uint32_t slot_of(struct bytes name)
{
    uint32_t h = 0;
    for (size_t i = 0; i < name.n; i++) {
        h = (h ^ (uint8_t)(name.p[i] | 0x20)) * 16777619u;
    }
    return h >> 24;
}

static void fill_slots(void)
{
    for (int i = 0; i < n_commands; i++) {
        uint32_t h = slot_of((struct bytes){commands[i].name, strlen(commands[i].name)});
        while (slots[h % SLOTS]) {
            h++;
        }
        slots[h % SLOTS] = (uint8_t)(i + 1);
    }
}

static const struct command *find_command(struct bytes name)
{
    for (uint32_t h = slot_of(name); slots[h % SLOTS]; h++) {
        const struct command *cmd = &commands[slots[h % SLOTS] - 1];
        if (bytes_is(name, cmd->name)) {
            return cmd;
        }
    }
    return NULL;
}

static void reply_unknown(struct client *c, int argc, const struct bytes *argv)
{
    enum { MOST = 128 };
    char args[MOST + 8] = "";
    for (int i = 1; i < argc && strlen(args) < MOST; i++) {
        size_t n = strlen(args), more = MOST - n < argv[i].n ? MOST - n : argv[i].n;
        snprintf(args + n, sizeof args - n, "'%.*s' ", (int)more, argv[i].p);
    }
    reply_error(&c->out, "ERR unknown command '%.*s', with args beginning with: %s",
                argv[0].n < MOST ? (int)argv[0].n : MOST, argv[0].p, args);
}

static void execute(struct client *c, int argc, const struct bytes *argv)
{
    const struct command *cmd = find_command(argv[0]);
    if (!cmd && (bytes_is(argv[0], "post") || bytes_is(argv[0], "host:"))) {
        c->closing = true; /* a browser that was led here: its body may hold commands */
    } else if (!cmd) {
        reply_unknown(c, argc, argv);
    } else if (cmd->arity > 0 ? argc != cmd->arity : argc < -cmd->arity) {
        reply_error(&c->out, "ERR wrong number of arguments for '%s' command", cmd->name);
    } else if (subscriber_active(c) && !(cmd->flags & PUBSUB)) {
        reply_error(
            &c->out,
            "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
            "RESET are allowed in this context",
            cmd->name);
    } else if (cmd->flags & STORE) {
        size_t before = c->out.n;
        pirn_mutex_lock(&store_lock);
        cmd->fn(c, argc, argv);
        pirn_mutex_unlock(&store_lock);
        if (c->out.failed) {
            reply_retract(&c->out, before);
            reply_too_big(c);
        }
    } else {
        cmd->fn(c, argc, argv);
    }
}

/* -- A client --------------------------------------------------------------------------------- */

/* Room for what is known to come, or for some more; one that was big is given back when empty. */
static bool make_room(struct client *c)
{
    size_t room = c->room, want = resp_wanted(&c->cmd);
    if (c->end == 0 && room > IN_KEEP && want < IN_KEEP) {
        room = IN_SIZE;
    } else if (want > room) {
        room = want + IN_SIZE;
    } else if (c->end == room) {
        room *= 2;
    }
    if (room != c->room) {
        char *in = realloc(c->in, room);
        if (!in) {
            return false;
        }
        c->in = in;
        c->room = room;
    }
    return true;
}

ssize_t client_fill(struct client *c)
{
    if (c->start > 0) {
        memmove(c->in, c->in + c->start, c->end - c->start);
        c->end -= c->start;
        c->start = 0;
    }
    if (!make_room(c)) {
        return -ENOMEM;
    }
    ssize_t n = pirn_read(c->fd, c->in + c->end, c->room - c->end);
    if (n > 0) {
        c->end += (size_t)n;
    }
    return n;
}

int client_flush(struct client *c)
{
    if (c->out.failed) {
        return -ENOMEM;
    }
    if (c->sub) {
        return subscriber_send(c);
    }
    ssize_t n = c->out.n > 0 ? pirn_write_all(c->fd, c->out.p, c->out.n) : 0;
    c->out.n = 0;
    if (c->out.room > 2 * OUT_MOST) {
        reply_free(&c->out);
    }
    return n < 0 ? (int)n : 0;
}

/* Executes all commands that have been read. How many; < 0: the connection can't go on. */
static int execute_all(struct client *c)
{
    int done = 0;
    ssize_t n = 0;
    while (!c->closing && (n = resp_parse(&c->cmd, c->in + c->start, c->end - c->start)) > 0) {
        c->start += (size_t)n; /* first: a command that waits may read more */
        if (c->cmd.argc > 0) {
            execute(c, c->cmd.argc, c->cmd.argv);
            done++;
        }
        resp_next(&c->cmd);
        if (c->out.n > OUT_MOST && client_flush(c) != 0) {
            return -1;
        }
    }
    if (n < 0) {
        reply_error(&c->out, "ERR Protocol error: %s", c->cmd.error);
        c->closing = true;
    }
    return done;
}

static void serve_commands(struct client *c)
{
    do {
        int n = execute_all(c);
        if (n < 0 || client_flush(c) != 0) {
            return;
        }
        atomic_fetch_add_explicit(&server.commands, n, memory_order_relaxed);
    } while (!c->closing && client_fill(c) > 0);
}

/* Lets the client read the last reply: closing at once would drop it if the client is still sending. */
static void linger(struct client *c)
{
    char drop[4096];
    if (pirn_ctx_err(server.ctx) != 0) {
        return; /* all clients end */
    }
    pirn_fd_deadline(c->fd, pirn_now() + LINGER, 0);
    pirn_shutdown(c->fd, SHUT_WR);
    while (pirn_read(c->fd, drop, sizeof drop) > 0) {
    }
}

static void end_client(struct client *c)
{
    pirn_mutex_lock(&server.lock);
    *c->link = c->next;
    if (c->next) {
        c->next->link = c->link;
    }
    server.n_clients--;
    pirn_mutex_unlock(&server.lock);
    pirn_close(c->fd);
    resp_free(&c->cmd);
    reply_free(&c->out);
    free(c->in);
    free(c);
    pirn_wg_done(&server.running);
}

static void serve(void *arg)
{
    struct client *c = arg;
    serve_commands(c);
    subscriber_end(c);
    if (c->closing) {
        linger(c);
    }
    end_client(c);
}

/* Reads of a client end at once, what is written in time; with force both. */
static void end_reads(struct client *c, bool force)
{
    if (force) {
        pirn_fd_cancel(c->fd);
    } else {
        pirn_ns now = pirn_now();
        pirn_fd_deadline(c->fd, now, now + GRACE);
    }
}

static void start_client(int fd)
{
    struct client *c = calloc(1, sizeof *c);
    char *in = malloc(IN_SIZE);
    if (!c || !in) {
        free(c);
        free(in);
        pirn_close(fd);
        return;
    }
    c->fd = fd;
    c->in = in;
    c->room = IN_SIZE;
    c->id = (uint64_t)atomic_fetch_add(&server.connections, 1) + 1;
    resp_init(&c->cmd);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    pirn_wg_add(&server.running, 1);
    pirn_mutex_lock(&server.lock);
    c->next = server.clients;
    c->link = &server.clients;
    if (c->next) {
        c->next->link = &c->next;
    }
    server.clients = c;
    server.n_clients++;
    if (server.stopping) {
        end_reads(c, false);
    }
    pirn_mutex_unlock(&server.lock);
    /* Not under the server's context: replies are sent after its end. */
    pirn_attr attr = {.name = "client", .ctx = pirn_ctx_background()};
    if (pirn_spawn(&attr, serve, c) != 0) {
        end_client(c);
    }
}

/* -- The server ------------------------------------------------------------------------------- */

struct server_stats server_stats(void)
{
    pirn_mutex_lock(&server.lock);
    int clients = server.n_clients;
    pirn_mutex_unlock(&server.lock);
    return (struct server_stats){atomic_load(&server.commands), atomic_load(&server.connections),
                                 clients, server.since, server.port};
}

void server_stop(void)
{
    pirn_ctx_cancel(server.ctx, 0);
}

pirn_ctx *server_ctx(void)
{
    return server.ctx;
}

static void end_all_reads(bool force)
{
    pirn_mutex_lock(&server.lock);
    server.stopping = true;
    for (struct client *c = server.clients; c; c = c->next) {
        end_reads(c, force);
    }
    pirn_mutex_unlock(&server.lock);
}

static void grace_is_over(void *arg)
{
    (void)arg;
    end_all_reads(true);
}

static int run(void *arg)
{
    server.ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGINT, SIGTERM}, 2);
    int listener = listen_and_say("redisd", arg);
    if (listener < 0) {
        return 1;
    }
    struct sockaddr_in6 name;
    socklen_t len = sizeof name;
    if (getsockname(listener, (struct sockaddr *)&name, &len) == 0) {
        server.port = ntohs(name.sin6_port); /* at the same place for IPv4 */
    }
    table_seed();
    fill_slots();
    server.since = pirn_now();
    pirn_ctx *before = pirn_ctx_use(server.ctx);
    int fd;
    while ((fd = pirn_accept(listener, NULL, NULL)) >= 0) {
        start_client(fd);
    }
    pirn_ctx_use(before);
    if (fd != -ECANCELED) {
        fprintf(stderr, "redisd: accept: %s\n", strerror(-fd));
        server_stop();
    }
    pirn_close(listener);
    end_all_reads(false);
    pirn_timer *t = pirn_after_func(GRACE, grace_is_over, NULL);
    pirn_wg_wait(&server.running);
    pirn_timer_free(t);
    store_clear();
    pirn_ctx_release(server.ctx);
    return fd == -ECANCELED ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"addr", 1, NULL, 'a'}, {NULL, 0, NULL, 0}};
    char *addr = "127.0.0.1:6379";
    for (int o; (o = getopt_long_only(argc, argv, "", options, NULL)) != -1;) {
        if (o != 'a') {
            fprintf(stderr, "usage: redisd [-addr HOST:PORT]\n");
            return 2;
        }
        addr = optarg;
    }
    return pirn_run(run, addr);
}
