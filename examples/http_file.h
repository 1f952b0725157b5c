/* SPDX-License-Identifier: MIT */
/* What httpd.c serves from the disk: paths to files, types, dates, ranges. */
#ifndef EXAMPLES_HTTP_FILE_H
#define EXAMPLES_HTTP_FILE_H

#include <time.h>

#include "http_parse.h"

enum { HTTP_DATE_SIZE = 30 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" and a NUL */

struct http_file {
    int fd;
    uint64_t size;
    time_t modified;
    const char *type;
};

/*
 * Opens the file of a decoded path ("/a/b.txt", "/dir/" is its index.html) below the directory root.
 * 200; 301: a directory, its path lacks the slash at the end; 403; 404; 500, 503. Nothing outside root
 * is opened, whatever ".." and symbolic links say; neither is what begins with a dot.
 */
int http_file_open(int root, const char *path, struct http_file *f);

void http_date(time_t t, char out[HTTP_DATE_SIZE]);
bool http_parse_date(struct slice s, time_t *t);

/*
 * A Range field for a file of size bytes: 206 with the first byte and the length; 416 if it has none of
 * them; 200 if the field is not to be followed (several ranges, other units, malformed).
 */
int http_range(struct slice value, uint64_t size, uint64_t *from, uint64_t *len);

/* What a request for the file is answered with, 200, 206, 304 or 416, and which part of it is sent. */
int http_file_status(const struct http_file *f, const struct http_request *req, uint64_t *from,
                     uint64_t *len);

#endif
