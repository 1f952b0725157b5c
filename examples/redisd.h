/* SPDX-License-Identifier: MIT */
/*
 * redisd's parts: redisd.c (connections, the list of commands, start and stop), redis_keys.c (the store),
 * redis_strings.c, redis_lists.c (lists, and waiting for them), redis_pubsub.c, redis_info.c (what clients
 * ask about the server), redis_table.c, resp.c.
 *
 * Locks: the store's is held while a command that is marked so is executed, hence each is atomic, as in
 * Redis. The lock of publish and subscribe is never held together with it, and is taken before that
 * of a subscriber's outbox.
 */
#ifndef EXAMPLES_REDISD_H
#define EXAMPLES_REDISD_H

#include <pirn.h>

#include "redis_table.h"
#include "resp.h"

enum { DATABASES = 16, NAME_SIZE = 64 };

struct subscriber; /* redis_pubsub.c */

struct client {
    int fd;
    uint64_t id;
    struct client *next, **link; /* of all clients; under server.lock */

    /* Its goroutine's alone. */
    char *in; /* bytes from start to end have been read and not used */
    size_t start, end, room;
    struct resp_command cmd;
    struct reply out; /* what goes out before the next read */
    int db;
    bool closing;
    char name[NAME_SIZE];
    struct subscriber *sub; /* NULL: subscribed to nothing */
};

/* A command's arguments, the first of which is its name. */
typedef void command_fn(struct client *c, int argc, const struct bytes *argv);

struct command {
    const char *name;
    command_fn *fn;
    int arity; /* arguments, its name with them; -n: n or more */
    int flags;
};
enum { STORE = 1, PUBSUB = 2 }; /* under the store's lock; allowed to subscribers */

/* redisd.c */
extern const struct command commands[];
extern const int n_commands;
struct server_stats {
    int64_t commands, connections;
    int clients;
    pirn_ns since;
    int port;
};
struct server_stats server_stats(void);
void server_stop(void);
pirn_ctx *server_ctx(void);            /* ends when the server is to stop */
ssize_t client_fill(struct client *c); /* reads more; moves what the arguments point to */
int client_flush(struct client *c);

/* redis_keys.c. All of it needs the store's lock. */
enum { STRING = 1, LIST };
struct db {
    struct table keys;
    struct table waiting; /* key: the clients that wait for a list of that name, redis_lists.c */
    size_t expiring;      /* keys with a time to live */
};
extern pirn_mutex store_lock;
extern struct db dbs[DATABASES];
#define NOT_AN_INTEGER "ERR value is not an integer or out of range"
#define WRONG_TYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
/* The entry of a key that has not expired, or NULL; find_locked: also if it is of another type, which is
 * *wrong and has been replied. */
struct entry *find_any(struct client *c, struct bytes key);
struct entry *find_locked(struct client *c, struct bytes key, int type, bool *wrong);
void remove_locked(struct db *d, struct bytes key);
void free_value(struct entry *e);
/* amount * unit ms from now, as a deadline; false if there is no such time. */
enum { MS = 1, SECONDS = 1000 };
bool deadline_of(int64_t amount, int64_t unit, int64_t *at);
void set_expiry(struct db *d, struct entry *e, int64_t at); /* 0: never */

/* Bytes in memory of their own: values and elements. NULL: out of memory. */
struct blob {
    size_t n, room;
    char p[];
};
struct blob *blob_new(struct bytes b);
struct blob *blob_with_room(struct bytes b, size_t room);
struct bytes blob_bytes(const struct blob *b);
void reply_no_memory(struct client *c);
void reply_too_big(struct client *c);
void store_clear(void); /* at the end; takes the lock itself */

command_fn cmd_dbsize, cmd_del, cmd_exists, cmd_expire, cmd_flushall, cmd_flushdb, cmd_keys,
    cmd_persist, cmd_pexpire, cmd_pttl, cmd_ttl, cmd_type;

/* redis_strings.c */
command_fn cmd_append, cmd_decr, cmd_decrby, cmd_get, cmd_getdel, cmd_getset, cmd_incr, cmd_incrby,
    cmd_mget, cmd_mset, cmd_psetex, cmd_set, cmd_setex, cmd_setnx, cmd_strlen;

/* redis_lists.c */
void free_list(void *list);
command_fn cmd_blpop, cmd_brpop, cmd_lindex, cmd_llen, cmd_lpop, cmd_lpush, cmd_lrange, cmd_rpop,
    cmd_rpush;

/* redis_pubsub.c */
int subscriber_send(struct client *c); /* c->out goes the way of the messages, in order with them */
void subscriber_end(struct client *c);
bool subscriber_active(const struct client *c);
command_fn cmd_psubscribe, cmd_publish, cmd_pubsub, cmd_punsubscribe, cmd_subscribe,
    cmd_unsubscribe;

/* redis_info.c */
bool glob_match(struct bytes pattern, struct bytes text);
/* For `command argv[1]`, which is not understood: with other arguments, if it is among known. */
void reply_subcommand(struct client *c, const char *command, struct bytes sub,
                      const char *const *known);
command_fn cmd_client, cmd_command, cmd_config, cmd_hello, cmd_info, cmd_time;

#endif
