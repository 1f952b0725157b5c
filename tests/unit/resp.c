/* SPDX-License-Identifier: MIT */
/* The RESP parser of examples/redisd.c, and its replies. */
#include <harness.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/resp.h"

static struct resp_command c;
static char said[1024]; /* the arguments, each in brackets */

/* Text in pieces of step, each in memory of exactly its size and elsewhere than the one before. */
static ssize_t parse_n(const char *text, size_t n, size_t step)
{
    resp_free(&c);
    resp_init(&c);
    for (size_t have = step;; have += step) {
        have = have < n ? have : n;
        char *copy = malloc(have ? have : 1);
        memcpy(copy, text, have);
        ssize_t r = resp_parse(&c, copy, have);
        said[0] = 0;
        for (int i = 0; r > 0 && i < c.argc; i++) {
            CHECK(c.argv[i].p >= copy && c.argv[i].p + c.argv[i].n <= copy + have);
            snprintf(said + strlen(said), sizeof said - strlen(said), "[%.*s]", (int)c.argv[i].n,
                     c.argv[i].p);
        }
        free(copy);
        if (r != 0 || have == n) {
            return r;
        }
    }
}

static ssize_t parse(const char *text)
{
    return parse_n(text, strlen(text), strlen(text));
}

TEST(arrays)
{
    static const char text[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n*1\r\n";
    for (size_t step = 1; step < sizeof text; step++) {
        CHECK_EQ(parse_n(text, sizeof text - 1, step), (ssize_t)sizeof text - 5);
        CHECK_STR(said, "[SET][k][a\r\nb]");
    }
    CHECK_EQ(parse("*1\r\n$0\r\n\r\n"), 10);
    CHECK_STR(said, "[]");
    CHECK_EQ(parse("*0\r\n"), 4);
    CHECK_EQ(c.argc, 0);
    CHECK_EQ(parse("*-1\r\n"), 5);
    CHECK_EQ(parse("*1\r\n$4\r\nPIN"), 0);
    CHECK_EQ(resp_wanted(&c), 14);
}

TEST(arrays_many)
{
    static char text[16384];
    char *p = text + sprintf(text, "*1000\r\n");
    for (int i = 0; i < 1000; i++) {
        p += sprintf(p, "$3\r\n%03d\r\n", i);
    }
    for (size_t step = 1; step < 9000; step += 1003) {
        CHECK_EQ(parse_n(text, (size_t)(p - text), step), p - text);
        CHECK_EQ(c.argc, 1000);
    }
    resp_next(&c);
    CHECK_EQ(c.argc, 0);
}

TEST(arrays_wrong)
{
    static const struct {
        const char *text, *error;
    } wrong[] = {
        {"*x\r\n", "invalid multibulk length"},
        {"*\r\n", "invalid multibulk length"},
        {"*1\n", "invalid multibulk length"},
        {"*01\r\n", "invalid multibulk length"},
        {"*1048577\r\n", "invalid multibulk length"},
        {"*99999999999999999999999999999", "invalid multibulk length"},
        {"*1\r\nPING\r\n", "expected '$'"},
        {"*1\r\n$-1\r\n", "invalid bulk length"},
        {"*1\r\n$x\r\n", "invalid bulk length"},
        {"*1\r\n$+1\r\n", "invalid bulk length"},
        {"*1\r\n$67108865\r\n", "invalid bulk length"},
        {"*1\r\n$1\r\nab\r", "invalid bulk length"},
        {"*1\r\n$67108864\r\n", "too big command"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (size_t step = 1; step < 40; step += 19) {
            CHECK_EQ(parse_n(wrong[i].text, strlen(wrong[i].text), step), -1);
            CHECK_STR(c.error, wrong[i].error);
        }
    }
}

TEST(lines)
{
    CHECK_EQ(parse("PING\r\n"), 6);
    CHECK_STR(said, "[PING]");
    CHECK_EQ(parse("  SET  k\tv \nnext"), 12);
    CHECK_STR(said, "[SET][k][v]");
    CHECK_EQ(parse("\r\n"), 2);
    CHECK_EQ(c.argc, 0);
    CHECK_EQ(parse("SET \"a b\" 'c\"d' \"\\x41\\n\\\"\" ''\n"), 30);
    CHECK_STR(said, "[SET][a b][c\"d][A\n\"][]");
    CHECK_EQ(parse("a'b'\n"), 5);
    CHECK_STR(said, "[ab]");
    CHECK_EQ(parse("SET 'it\\'s' \\n\n"), 15);
    CHECK_STR(said, "[SET][it's][\\n]");
    CHECK_EQ(parse("SET \"a\n"), -1);
    CHECK_STR(c.error, "unbalanced quotes in request");
    CHECK_EQ(parse("SET 'a'b\n"), -1);
    CHECK_EQ(parse("SET \"a\\\n"), -1);
    static char text[RESP_MAX_LINE + 2];
    memset(text, 'a', sizeof text - 1);
    CHECK_EQ(parse_n(text, RESP_MAX_LINE - 1, 4096), 0);
    CHECK_EQ(parse_n(text, sizeof text - 1, 4096), -1);
    CHECK_STR(c.error, "too big inline request");
}

static bool as_int(const char *text, int64_t *v)
{
    return bytes_int((struct bytes){text, strlen(text)}, v);
}

TEST(numbers)
{
    int64_t v;
    CHECK(as_int("0", &v) && v == 0);
    CHECK(as_int("-1", &v) && v == -1);
    CHECK(as_int("9223372036854775807", &v) && v == INT64_MAX);
    CHECK(as_int("-9223372036854775808", &v) && v == INT64_MIN);
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        "01",
                                        "-0",
                                        "1a",
                                        " 1",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "18446744073709551617"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!as_int(wrong[i], &v));
    }
}

TEST(replies)
{
    struct reply r = {0};
    reply_text(&r, "+OK\r\n");
    reply_int(&r, INT64_MIN);
    reply_array(&r, 2);
    reply_bulk_text(&r, "ab");
    reply_null(&r);
    reply_error(&r, "ERR %s", "a\r\nb");
    reply_raw(&r, "", 1);
    CHECK(!r.failed);
    CHECK_STR(r.p, "+OK\r\n:-9223372036854775808\r\n*2\r\n$2\r\nab\r\n$-1\r\n-ERR a  b\r\n");
    char big[5000] = {0};
    reply_raw(&r, big, sizeof big);
    CHECK(!r.failed && r.room >= r.n);
    reply_free(&r);
}
