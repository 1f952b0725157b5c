/* SPDX-License-Identifier: MIT */
/* What clients ask about the server, and patterns. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "redisd.h"

/* -- Patterns: * ? [abc] [^a-z] \x ------------------------------------------------------------ */

/* The class after '[' at *p, which moves to its ']' or to the end. */
static bool class_has(const char **p, const char *end, char c)
{
    const char *s = *p;
    bool not = s < end && *s == '^', found = false;
    for (s += not ; s < end && *s != ']'; s++) {
        if (*s == '\\' && s + 1 < end) {
            found |= *++s == c;
        } else if (s + 2 < end && s[1] == '-') {
            char lo = s[0] < s[2] ? s[0] : s[2], hi = s[0] < s[2] ? s[2] : s[0];
            found |= c >= lo && c <= hi;
            s += 2;
        } else {
            found |= *s == c;
        }
    }
    *p = s;
    return found != not ;
}

/* On a mismatch it goes back to the last star and lets it take one more: no worse than n * m steps. */
bool glob_match(struct bytes pattern, struct bytes text)
{
    const char *p = pattern.p, *pe = p + pattern.n, *t = text.p, *te = t + text.n;
    const char *star = NULL, *from = NULL;
    while (t < te || p < pe) {
        if (p < pe && *p == '*') {
            star = ++p;
            from = t;
            continue;
        }
        const char *q = p;
        bool same = false;
        if (p < pe && t < te) {
            if (*q == '[') {
                q++;
                same = class_has(&q, pe, *t);
            } else {
                q += *q == '\\' && q + 1 < pe;
                same = *q == *t || (*q == '?' && q == p);
            }
        }
        if (same) {
            p = q < pe ? q + 1 : pe;
            t++;
        } else if (star && from < te) {
            p = star;
            t = ++from;
        } else {
            return false;
        }
    }
    return true;
}

/* -- Commands --------------------------------------------------------------------------------- */

void reply_subcommand(struct client *c, const char *command, struct bytes sub,
                      const char *const *known)
{
    char upper[16] = "";
    while (*known && !bytes_is(sub, *known)) {
        known++;
    }
    if (*known) {
        reply_error(&c->out, "ERR wrong number of arguments for '%s|%s' command", command, *known);
        return;
    }
    for (size_t i = 0; command[i] && i < sizeof upper - 1; i++) {
        upper[i] = (char)(command[i] & ~0x20);
    }
    reply_error(&c->out, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                sub.n < 128 ? (int)sub.n : 128, sub.p, upper);
}

static void info_server(char *p, size_t n)
{
    struct server_stats s = server_stats();
    snprintf(p, n,
             "# Server\r\nredis_version:7.0.0\r\nredis_mode:standalone\r\nserver_name:redisd\r\n"
             "pirn_version:%s\r\nprocess_id:%ld\r\ntcp_port:%d\r\nuptime_in_seconds:%lld\r\n"
             "goroutines:%d\r\nprocs:%d\r\n\r\n",
             pirn_version(), (long)getpid(), s.port, (long long)((pirn_now() - s.since) / PIRN_SEC),
             pirn_num_goroutines(), pirn_procs(0));
}

static void info_clients(char *p, size_t n)
{
    snprintf(p, n, "# Clients\r\nconnected_clients:%d\r\n\r\n", server_stats().clients);
}

static void info_memory(char *p, size_t n)
{
    struct mallinfo2 m = mallinfo2();
    snprintf(p, n, "# Memory\r\nused_memory:%zu\r\nmaxmemory:0\r\n\r\n", m.uordblks + m.hblkhd);
}

static void info_stats(char *p, size_t n)
{
    struct server_stats s = server_stats();
    snprintf(p, n,
             "# Stats\r\ntotal_connections_received:%lld\r\ntotal_commands_processed:%lld\r\n\r\n",
             (long long)s.connections, (long long)s.commands);
}

static void info_keyspace(char *p, size_t n)
{
    size_t used = (size_t)snprintf(p, n, "# Keyspace\r\n");
    pirn_mutex_lock(&store_lock);
    for (int i = 0; i < DATABASES && used < n; i++) {
        if (dbs[i].keys.n > 0) {
            used += (size_t)snprintf(p + used, n - used, "db%d:keys=%zu,expires=%zu\r\n", i,
                                     dbs[i].keys.n, dbs[i].expiring);
        }
    }
    pirn_mutex_unlock(&store_lock);
}

void cmd_info(struct client *c, int argc, const struct bytes *argv)
{
    static const struct {
        const char *name;
        void (*fn)(char *p, size_t n);
    } sections[] = {{"server", info_server},
                    {"clients", info_clients},
                    {"memory", info_memory},
                    {"stats", info_stats},
                    {"keyspace", info_keyspace}};
    char text[2048] = "";
    bool all = argc == 1 || bytes_is(argv[1], "all") || bytes_is(argv[1], "default")
               || bytes_is(argv[1], "everything");
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        for (int k = all ? 0 : 1; k < (all ? 1 : argc); k++) {
            if (all || bytes_is(argv[k], sections[i].name)) {
                size_t n = strlen(text);
                sections[i].fn(text + n, sizeof text - n);
                break;
            }
        }
    }
    reply_bulk_text(&c->out, text);
}

static const struct {
    const char *name, *value;
} settings[] = {
    {"appendonly", "no"},
    {"databases", "16"},
    {"maxmemory", "0"},
    {"save", ""},
    {"maxmemory-policy", "noeviction"},
    {"timeout", "0"},
};

/* In any case of letters. */
static bool matches_setting(struct bytes pattern, struct bytes name)
{
    char low[64];
    for (size_t i = 0; i < pattern.n && i < sizeof low; i++) {
        char x = pattern.p[i];
        low[i] = x >= 'A' && x <= 'Z' ? (char)(x | 0x20) : x;
    }
    return pattern.n <= sizeof low && glob_match((struct bytes){low, pattern.n}, name);
}

void cmd_config(struct client *c, int argc, const struct bytes *argv)
{
    enum { N = sizeof settings / sizeof *settings };
    struct bytes hit[N] = {
        0}; /* the names as they are replied: if there is no pattern, as they came */
    int64_t n = 0;
    if (bytes_is(argv[1], "resetstat") && argc == 2) {
        reply_text(&c->out, "+OK\r\n");
        return;
    }
    if (!bytes_is(argv[1], "get") || argc < 3) {
        reply_subcommand(c, "config", argv[1], (const char *const[]){"get", "resetstat", NULL});
        return;
    }
    for (int i = 0; i < N; i++) {
        struct bytes name = {settings[i].name, strlen(settings[i].name)};
        for (int k = 2; k < argc && !hit[i].p; k++) {
            if (matches_setting(argv[k], name)) {
                hit[i] = bytes_is(argv[k], settings[i].name) ? argv[k] : name;
                n++;
            }
        }
    }
    reply_array(&c->out, 2 * n);
    for (int i = 0; i < N; i++) {
        if (hit[i].p) {
            reply_bulk(&c->out, hit[i]);
            reply_bulk_text(&c->out, settings[i].value);
        }
    }
}

/* redis-cli asks for COMMAND DOCS when it starts; that there are none is a good answer. */
void cmd_command(struct client *c, int argc, const struct bytes *argv)
{
    if (argc == 2 && bytes_is(argv[1], "count")) {
        reply_int(&c->out, n_commands);
        return;
    }
    if (argc > 1) {
        reply_array(&c->out, 0);
        return;
    }
    reply_array(&c->out, n_commands);
    for (int i = 0; i < n_commands; i++) {
        reply_array(&c->out, 2);
        reply_bulk_text(&c->out, commands[i].name);
        reply_int(&c->out, commands[i].arity);
    }
}

static void set_name(struct client *c, struct bytes name)
{
    bool ok = true;
    for (size_t i = 0; i < name.n; i++) {
        ok = ok && name.p[i] > ' ' && name.p[i] <= '~';
    }
    if (!ok) {
        reply_error(&c->out,
                    "ERR Client names cannot contain spaces, newlines or special characters.");
        return;
    }
    if (name.n >= NAME_SIZE) {
        reply_error(&c->out, "ERR Client names are at most %d characters here", NAME_SIZE - 1);
        return;
    }
    memcpy(c->name, name.p, name.n);
    c->name[name.n] = 0;
    reply_text(&c->out, "+OK\r\n");
}

void cmd_client(struct client *c, int argc, const struct bytes *argv)
{
    if (bytes_is(argv[1], "setname") && argc == 3) {
        set_name(c, argv[2]);
    } else if (bytes_is(argv[1], "getname") && argc == 2) {
        if (c->name[0]) {
            reply_bulk_text(&c->out, c->name);
        } else {
            reply_null(&c->out);
        }
    } else if (bytes_is(argv[1], "id") && argc == 2) {
        reply_int(&c->out, (int64_t)c->id);
    } else if (bytes_is(argv[1], "setinfo") && argc == 4) {
        reply_text(&c->out, "+OK\r\n");
    } else if (bytes_is(argv[1], "list") || bytes_is(argv[1], "info")) {
        char line[160];
        snprintf(line, sizeof line, "id=%llu fd=%d name=%s db=%d\n", (unsigned long long)c->id,
                 c->fd, c->name, c->db);
        reply_bulk_text(&c->out, line); /* itself; the others are others' */
    } else {
        reply_subcommand(c, "client", argv[1],
                         (const char *const[]){"setname", "getname", "id", "setinfo", NULL});
    }
}

void cmd_hello(struct client *c, int argc, const struct bytes *argv)
{
    int64_t version = 2;
    if (argc > 1 && !bytes_int(argv[1], &version)) {
        reply_error(&c->out, "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (argc > 2 || version != 2) {
        reply_error(&c->out, "NOPROTO unsupported protocol version");
        return;
    }
    reply_array(&c->out, 14);
    reply_bulk_text(&c->out, "server");
    reply_bulk_text(&c->out, "redis");
    reply_bulk_text(&c->out, "version");
    reply_bulk_text(&c->out, "7.0.0");
    reply_bulk_text(&c->out, "proto");
    reply_int(&c->out, 2);
    reply_bulk_text(&c->out, "id");
    reply_int(&c->out, (int64_t)c->id);
    reply_bulk_text(&c->out, "mode");
    reply_bulk_text(&c->out, "standalone");
    reply_bulk_text(&c->out, "role");
    reply_bulk_text(&c->out, "master");
    reply_bulk_text(&c->out, "modules");
    reply_array(&c->out, 0);
}

void cmd_time(struct client *c, int argc, const struct bytes *argv)
{
    (void)argc, (void)argv;
    struct timespec ts;
    char text[24];
    clock_gettime(CLOCK_REALTIME, &ts);
    reply_array(&c->out, 2);
    snprintf(text, sizeof text, "%lld", (long long)ts.tv_sec);
    reply_bulk_text(&c->out, text);
    snprintf(text, sizeof text, "%ld", ts.tv_nsec / 1000);
    reply_bulk_text(&c->out, text);
}
