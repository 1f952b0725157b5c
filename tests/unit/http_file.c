/* SPDX-License-Identifier: MIT */
/* Dates and ranges of examples/httpd.c. Its files are tested by tests/net/httpd.py. */
#include <harness.h>
#include <string.h>

#include "../../examples/http_file.h"

static struct slice text(const char *s)
{
    return (struct slice){s, strlen(s)};
}

/* A file's time may be anything. */
TEST(dates_of_any_time)
{
    static const struct {
        time_t at;
        const char *want;
    } rows[] = {
        {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
        {-3786825600, "Tue, 01 Jan 1850 00:00:00 GMT"},
        {-62167219200, "Sat, 01 Jan 0000 00:00:00 GMT"},
        {-62167219201, "Thu, 01 Jan 1970 00:00:00 GMT"}, /* there is no such date */
        {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {253402300800, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {INT64_MIN, "Thu, 01 Jan 1970 00:00:00 GMT"}, /* nor such a year */
        {INT64_MAX, "Thu, 01 Jan 1970 00:00:00 GMT"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[HTTP_DATE_SIZE];
        http_date(rows[i].at, out);
        CHECK_STR(out, rows[i].want);
    }
}

TEST(dates)
{
    char out[HTTP_DATE_SIZE];
    time_t t;
    http_date(784111777, out);
    CHECK_STR(out, "Sun, 06 Nov 1994 08:49:37 GMT");
    for (time_t at = 0; at < (time_t)1 << 33; at += 86399 * 97) {
        http_date(at, out);
        CHECK(http_parse_date(text(out), &t));
        CHECK_EQ(t, at);
    }
    CHECK(!http_parse_date(text("Mon, 06 Nov 1994 08:49:37 GMT"), &t)); /* it was a Sunday */
    CHECK(!http_parse_date(text("Sunday, 06-Nov-94 08:49:37 GMT"), &t));
    CHECK(!http_parse_date(text("Sun, 06 Nov 1994 08:49:37 CET"), &t));
    CHECK(!http_parse_date(text("Sun, 32 Nov 1994 08:49:37 GMT"), &t));
    CHECK(!http_parse_date(text(""), &t));
}

static int range(const char *value, uint64_t size, uint64_t *from, uint64_t *len)
{
    return http_range(text(value), size, from, len);
}

TEST(ranges)
{
    static const struct {
        const char *value;
        uint64_t size, from, len;
    } good[] = {
        {"bytes=0-0", 10, 0, 1},  {"bytes=2-5", 10, 2, 4},  {"bytes=2-", 10, 2, 8},
        {"bytes=2-99", 10, 2, 8}, {"bytes=-3", 10, 7, 3},   {"bytes=-99", 10, 0, 10},
        {"bytes=9-9", 10, 9, 1},  {"bytes=0-9", 10, 0, 10}, {"Bytes=1-1", 10, 1, 1},
    };
    uint64_t from, len;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_EQ(range(good[i].value, good[i].size, &from, &len), 206);
        CHECK_EQ(from, good[i].from);
        CHECK_EQ(len, good[i].len);
    }
    CHECK_EQ(range("bytes=10-", 10, &from, &len), 416);
    CHECK_EQ(range("bytes=-0", 10, &from, &len), 416);
    CHECK_EQ(range("bytes=-5", 0, &from, &len), 416);
    CHECK_EQ(range("bytes=0-0", 0, &from, &len), 416);
    static const char *const none[] = {"",
                                       "bytes",
                                       "bytes=",
                                       "bytes=-",
                                       "bytes=5-2",
                                       "bytes=0-1,3-4",
                                       "lines=1-2",
                                       "bytes=a-b",
                                       "bytes=1-2x",
                                       "bytes= 1-2",
                                       "bytes=9999999999999999999-"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_EQ(range(none[i], 10, &from, &len), 200);
    }
}
