/* SPDX-License-Identifier: MIT */
/*
 * RESP2, the protocol of Redis: a parser of commands, and a buffer that replies are written to. They
 * know nothing of sockets.
 *
 * A command is an array of bulk strings, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", or a line of words, as one
 * types it into nc: "GET k\r\n" (there a bare LF will do, and words may be quoted as in a shell).
 */
#ifndef EXAMPLES_RESP_H
#define EXAMPLES_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    RESP_MAX_ARGS = 1 << 20,
    RESP_MAX_BULK = 64 << 20,    /* bytes of one argument */
    RESP_MAX_COMMAND = 64 << 20, /* bytes of a command, all in all */
    RESP_MAX_LINE = 64 << 10,    /* of an inline command */
    RESP_MAX_REPLY = 129 << 20,  /* of replies; a pattern and a message fit into it */
    RESP_ROOM = 8,               /* arguments that need no memory of their own */
};

struct bytes {
    const char *p;
    size_t n;
};

/* A command under way: what is known of it is kept, so that no byte is looked at twice. */
struct resp_command {
    struct bytes *argv; /* into the buffer; valid when resp_parse has returned > 0 */
    int argc;
    int want;          /* arguments of the array; 0: its first line has not come */
    size_t pos;        /* what has been parsed */
    size_t bulk;       /* the length of the argument that comes */
    bool in_bulk;      /* it is known */
    int room;          /* of argv */
    const char *error; /* why resp_parse returned < 0: for "-ERR Protocol error: " */
    struct bytes own[RESP_ROOM];
};

void resp_init(struct resp_command *c);
void resp_free(struct resp_command *c);
void resp_next(struct resp_command *c); /* before the next command */

/*
 * buf holds n bytes from the start of the command; it may have moved since the call before. Returns
 * the length of the command, with c->argc arguments (0: an empty line); 0 if more bytes are needed; -1
 * for a protocol error, after which the connection can't be used. An inline command's words are
 * unquoted in place.
 */
ssize_t resp_parse(struct resp_command *c, char *buf, size_t n);

/* At least how long the command is, as far as is known: what to make room for. */
size_t resp_wanted(const struct resp_command *c);

bool bytes_is(struct bytes b, const char *text); /* in any case of ASCII letters */
bool bytes_int(struct bytes b, int64_t *out);    /* a decimal number and nothing else */

/* Replies. When memory runs out, or what is written is more than RESP_MAX_REPLY bytes, failed is set and
 * stays so until reply_retract; what is written then is dropped. */
struct reply {
    char *p;
    size_t n, room;
    bool failed;
};

void reply_raw(struct reply *r, const void *p, size_t n);
void reply_text(struct reply *r, const char *text); /* as it is: "+OK\r\n" */
void reply_error(struct reply *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void reply_int(struct reply *r, int64_t v);
void reply_bulk(struct reply *r, struct bytes b);
void reply_bulk_text(struct reply *r, const char *text);
void reply_null(struct reply *r);
void reply_array(struct reply *r, int64_t n);  /* n elements follow; -1: the null array */
void reply_retract(struct reply *r, size_t n); /* to the first n bytes */
void reply_free(struct reply *r);

#endif
