/* SPDX-License-Identifier: MIT */
/*
 * A strict parser of HTTP/1.1 requests (RFC 9110, RFC 9112), which knows nothing of sockets: bytes
 * go in, slices of those bytes come out, nothing is copied or allocated.
 *
 * Strict, because what two programs on the way read differently is how requests are smuggled:
 *   - a line ends with CR LF; a bare LF or CR is 400, wherever it stands;
 *   - no folded fields, no space before the colon, no control characters;
 *   - one Content-Length of digits only; Transfer-Encoding is "chunked" and nothing else, not in
 *     HTTP/1.0, and never together with Content-Length;
 *   - exactly one Host in HTTP/1.1, at most one in HTTP/1.0.
 *
 * Results: > 0 bytes used; 0 more bytes are needed; < 0 the negative status of the answer, after
 * which the connection can't be used any more.
 */
#ifndef EXAMPLES_HTTP_PARSE_H
#define EXAMPLES_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    HTTP_MAX_HEAD = 16384, /* request line and fields; more is 431 */
    HTTP_MAX_LINE = 8192,  /* the request line alone; more is 414 */
    HTTP_MAX_FIELDS = 64,
    HTTP_MAX_TRAILER = 4096, /* all trailer fields of a chunked body */
    HTTP_MAX_CHUNK_LINE = 256,
};

struct slice {
    const char *p;
    size_t n;
};

struct http_field {
    struct slice name, value;
};

struct http_request {
    struct slice method;
    struct slice path, query; /* still percent-encoded; query without its '?' */
    int minor;                /* HTTP/1.minor: 0 or 1, which 1.2 counts as */
    bool keep_alive;
    bool expects_continue;
    bool chunked;
    bool has_length;
    uint64_t length; /* of the body, if has_length */
    int n_fields;
    struct http_field fields[HTTP_MAX_FIELDS];
};

/* Zeroed before the first byte of each request. */
struct http_head {
    size_t seen;   /* bytes that were searched for the end, so that none is searched twice */
    bool has_line; /* the request line is among them */
};

/* buf holds n bytes from the start of the request. The slices of req point into buf. */
ssize_t http_parse_head(struct http_head *h, const char *buf, size_t n, struct http_request *req);

/* The first field of that name, in any case of letters; .p is NULL if there is none. */
struct slice http_field(const struct http_request *req, const char *name);

/* The body of a request, of either kind. */
struct http_body {
    uint64_t left;  /* of the body, or of this chunk */
    uint64_t total; /* data so far */
    uint64_t limit; /* more is 413; below 2^59 */
    uint32_t line;  /* bytes of the line, or of the trailer, under way */
    uint8_t state;
    bool digits; /* the chunk's size has begun */
    bool done;
};

/* 0, or -413 if the length is already known to be over the limit. */
int http_body_init(struct http_body *b, const struct http_request *req, uint64_t limit);

/*
 * Takes bytes of the body. Returns how many were used, of which the last data->n are data (there may
 * be none). To be called until done, also with the rest of the bytes: it stops after each chunk.
 */
ssize_t http_body_feed(struct http_body *b, const char *buf, size_t n, struct slice *data);

const char *http_reason(int status); /* "200 OK" */

bool slice_is(struct slice s, const char *text);      /* exactly */
bool slice_is_case(struct slice s, const char *text); /* in any case of ASCII letters */

/* Percent-decodes path into out, of size bytes, with a final NUL. The length; -1 if it is malformed,
 * has a NUL in it or is too long. */
ssize_t http_decode_path(struct slice path, char *out, size_t size);

#endif
