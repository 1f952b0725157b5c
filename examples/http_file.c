/* SPDX-License-Identifier: MIT */
/*
 * See http_file.h. A path is kept inside the root twice: no segment of it may begin with a dot, and
 * openat2 with RESOLVE_BENEATH lets no symbolic link lead out. Calls that may wait for the disk stand
 * between pirn_blocking_begin and _end, so that other goroutines go on meanwhile.
 */
#include "http_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pirn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *suffix, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/plain; charset=utf-8"},
    {".json", "application/json"},
    {".xml", "application/xml"},
    {".pdf", "application/pdf"},
    {".wasm", "application/wasm"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".mp4", "video/mp4"},
    {".woff2", "font/woff2"},
};

static const char *type_of(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t m = strlen(types[i].suffix);
        if (n > m && strcasecmp(path + n - m, types[i].suffix) == 0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

static bool is_clean(const char *path)
{
    return path[0] == '/' && !strstr(path, "/.") && !strstr(path, "//");
}

/* A descriptor or -errno. O_NONBLOCK: to open a named pipe must not wait for its other end. */
static int open_beneath(int root, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    pirn_blocking_begin();
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    int err = errno;
    if (fd < 0 && err == ENOSYS) { /* before Linux 5.6: no links in the last place at least */
        fd = openat(root, path, (int)how.flags | O_NOFOLLOW);
        err = errno;
    }
    pirn_blocking_end();
    return fd < 0 ? -err : fd;
}

static int status_of(int err)
{
    switch (err) {
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG: return 404;
    case -EACCES:
    case -EPERM:
    case -ELOOP:
    case -EXDEV: /* it led out of the root */
    case -ENXIO: return 403;
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM: return 503;
    default: return 500;
    }
}

/* 200, or the status; a directory gives 301, and is closed. */
static int open_regular(int root, const char *path, struct http_file *f)
{
    struct stat st;
    f->fd = open_beneath(root, path);
    if (f->fd < 0) {
        return status_of(f->fd);
    }
    int status = 403;
    if (fstat(f->fd, &st) == 0) {
        status = S_ISREG(st.st_mode) ? 200 : S_ISDIR(st.st_mode) ? 301 : 403;
    }
    if (status != 200) {
        close(f->fd);
        f->fd = -1;
        return status;
    }
    f->size = (uint64_t)st.st_size;
    f->modified = st.st_mtime;
    f->type = type_of(path);
    return 200;
}

int http_file_open(int root, const char *path, struct http_file *f)
{
    char index[2048];
    size_t n = strlen(path);
    f->fd = -1;
    if (!is_clean(path) || n + sizeof "index.html" > sizeof index) {
        return 404;
    }
    if (path[n - 1] != '/') {
        return open_regular(root, path + 1, f);
    }
    memcpy(index, path + 1, n - 1);
    strcpy(index + n - 1, "index.html");
    int status = open_regular(root, index, f);
    return status == 301 ? 404 : status; /* a directory of that name */
}

/* -- Dates ------------------------------------------------------------------------------------ */

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static void put2(char *p, int v)
{
    p[0] = (char)('0' + v / 10 % 10);
    p[1] = (char)('0' + v % 10);
}

void http_date(time_t t, char out[HTTP_DATE_SIZE])
{
    struct tm tm;
    if (!gmtime_r(&t, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
        gmtime_r(&(time_t){0}, &tm); /* a file's time may be anything, and has no such form */
    }
    memcpy(out, "Xxx, 00 Xxx 0000 00:00:00 GMT", HTTP_DATE_SIZE);
    memcpy(out, days + 3 * tm.tm_wday, 3);
    put2(out + 5, tm.tm_mday);
    memcpy(out + 8, months + 3 * tm.tm_mon, 3);
    put2(out + 12, (tm.tm_year + 1900) / 100);
    put2(out + 14, (tm.tm_year + 1900) % 100);
    put2(out + 17, tm.tm_hour);
    put2(out + 20, tm.tm_min);
    put2(out + 23, tm.tm_sec);
}

/* The one form that http_date writes; clients send back what they were sent. */
bool http_parse_date(struct slice s, time_t *t)
{
    char text[HTTP_DATE_SIZE], again[HTTP_DATE_SIZE];
    struct tm tm = {0};
    if (s.n != HTTP_DATE_SIZE - 1) {
        return false;
    }
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    if (!end || *end) {
        return false;
    }
    *t = timegm(&tm);
    http_date(*t, again);
    return memcmp(text, again, sizeof again) == 0;
}

/* -- Ranges ----------------------------------------------------------------------------------- */

/* Digits at *p, at most 18 of them; false if there are none. */
static bool take_number(const char **p, const char *end, uint64_t *v)
{
    const char *start = *p;
    *v = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && *p - start < 18; ++*p) {
        *v = *v * 10 + (uint64_t)(**p - '0');
    }
    return *p > start;
}

int http_range(struct slice value, uint64_t size, uint64_t *from, uint64_t *len)
{
    const char *p = value.p, *end = value.p + value.n;
    uint64_t first, last;
    if (value.n < 6 || strncasecmp(p, "bytes=", 6) != 0) {
        return 200;
    }
    p += 6;
    bool has_first = take_number(&p, end, &first);
    if (p == end || *p++ != '-') {
        return 200;
    }
    bool has_last = take_number(&p, end, &last);
    if (p != end || !(has_first || has_last) || (has_first && has_last && last < first)) {
        return 200;
    }
    if (!has_first) { /* "-500": the last 500 */
        *len = last < size ? last : size;
        *from = size - *len;
        return *len > 0 ? 206 : 416;
    }
    if (first >= size) {
        return 416;
    }
    *from = first;
    *len = has_last && last < size - 1 ? last - first + 1 : size - first;
    return 206;
}

static bool not_modified(const struct http_file *f, const struct http_request *req)
{
    time_t t;
    struct slice since = http_field(req, "If-Modified-Since");
    return since.p && !http_field(req, "If-None-Match").p && http_parse_date(since, &t)
           && f->modified <= t;
}

int http_file_status(const struct http_file *f, const struct http_request *req, uint64_t *from,
                     uint64_t *len)
{
    time_t t;
    struct slice range = http_field(req, "Range"), unless = http_field(req, "If-Range");
    *from = 0;
    *len = f->size;
    if (not_modified(f, req)) {
        return 304;
    }
    if (!range.p || !slice_is(req->method, "GET")
        || (unless.p && !(http_parse_date(unless, &t) && t == f->modified))) {
        return 200;
    }
    return http_range(range, f->size, from, len);
}
