/* SPDX-License-Identifier: MIT */
/* pirn_set_label: what reports show, what goroutines inherit, what has no room. */
#include <errno.h>
#include <pirn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define PLAIN .env = "PIRN_SYMBOLS=off" /* quicker */
#define PROCS .procs = "1,2,4,16", PLAIN

static char text[1 << 18];

static void dump(void)
{
    FILE *f = tmpfile();
    CHECK(f != NULL);
    CHECK_EQ(pirn_dump(fileno(f)), 0);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
}

/* The heading of this goroutine ends so. */
static void shows(const char *end)
{
    char heading[200];
    dump();
    snprintf(heading, sizeof heading, "] main%s:\n", end);
    printf("%s in%s", heading, text);
    CHECK(strstr(text, heading) != NULL);
}

TEST_RUN_ATTR(shown, PLAIN)
{
    shows("");
    CHECK_EQ(pirn_set_label("tenant", "acme"), 0);
    shows(" {tenant=acme}");
    CHECK_EQ(pirn_set_label("request", "%d of %d", 17, 20), 0);
    shows(" {tenant=acme, request=17 of 20}");
    CHECK_EQ(pirn_set_label("tenant", "%s", "none, or = this"), 0); /* it stays in its place */
    shows(" {tenant=none, or = this, request=17 of 20}");
    pirn_set_name("named");
    shows(" \"named\" {tenant=none, or = this, request=17 of 20}");
    CHECK_EQ(pirn_set_label("tenant", NULL), 0);
    shows(" \"named\" {request=17 of 20}");
    CHECK_EQ(pirn_set_label("tenant", NULL), 0);
    CHECK_EQ(pirn_set_label("empty", "%s", ""), 0);
    CHECK_EQ(pirn_set_label("last", "1"), 0);
    shows(" \"named\" {request=17 of 20, empty=, last=1}");
    CHECK_EQ(pirn_set_label("request", NULL), 0);
    CHECK_EQ(pirn_set_label("empty", NULL), 0);
    CHECK_EQ(pirn_set_label("last", NULL), 0);
    shows(" \"named\"");
}

TEST_RUN_ATTR(room, PLAIN)
{
    char long_one[200];
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    CHECK_EQ(pirn_set_label("a", "%s", long_one), 0);
    shows(" {a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}"); /* 39 */
    CHECK_EQ(pirn_set_label(long_one, "1"), -ENOSPC);
    CHECK_EQ(pirn_set_label("b", "%s", long_one), 0);
    CHECK_EQ(pirn_set_label("c", "%s", "1234567"), -ENOSPC);
    shows(
        " {a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, b=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}");
    CHECK_EQ(pirn_set_label("c", "%s", "123456"), 0); /* the last byte */
    CHECK_EQ(pirn_set_label("c", "%s", "1234567"), -ENOSPC);
    shows(" {a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, b=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "
          "c=123456}");
    CHECK_EQ(pirn_set_label("", "1"), -EINVAL);
    CHECK_EQ(pirn_set_label(NULL, "1"), -EINVAL);
}

TEST(outside)
{
    CHECK_EQ(pirn_set_label("tenant", "acme"), -EPERM);
    CHECK_EQ(pirn_start(NULL), 0);
    CHECK_EQ(pirn_set_label("tenant", "acme"), -EPERM);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- inherited --------------------------------------------------------------------------------------- */

static atomic_int waiting;
static pirn_chan(int) never;

static void waits(void *arg)
{
    (void)arg;
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(never, NULL);
}

static void with_arguments(int a, int b)
{
    waits(NULL);
    (void)(a + b);
}

static int in_group(int a)
{
    waits(NULL);
    return a;
}

static void child(void)
{
    pirn_go(waits, NULL); /* of a child */
    waits(NULL);
}

static void on_timer(void *arg)
{
    waits(arg);
}

static int count(const char *what)
{
    int n = 0;
    for (char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void until_waiting(int n)
{
    while (atomic_load(&waiting) < n)
        pirn_yield();
}

TEST_RUN_ATTR(inherited, PROCS)
{
    static pirn_group group;
    pirn_wg wg = {0};
    never = pirn_chan_make(int, 0);
    pirn_go(with_arguments, 1, 2); /* before */
    CHECK_EQ(pirn_set_label("tenant", "acme"), 0);
    pirn_group_init(&group, NULL);
    pirn_go(child);
    pirn_wg_go(&wg, with_arguments, 1, 2);
    pirn_group_go(&group, in_group, 1);
    CHECK_EQ(pirn_spawn(&(pirn_attr){.name = "named"}, waits, NULL), 0);
    pirn_timer *t = pirn_after_func(PIRN_US, on_timer, NULL); /* nobody starts it */
    CHECK_EQ(pirn_set_label("tenant", "other"), 0);           /* theirs stay */
    until_waiting(7);
    dump();
    printf("%s", text);
    CHECK_EQ(count("] child {tenant=acme}:\n"), 1);
    CHECK_EQ(count("] waits {tenant=acme}:\n"), 1);
    CHECK_EQ(count("] with_arguments {tenant=acme}:\n"), 1);
    CHECK_EQ(count("] with_arguments:\n"), 1);
    CHECK_EQ(count("] in_group {tenant=acme}:\n"), 1);
    CHECK_EQ(count(" \"named\" {tenant=acme}:\n"), 1);
    CHECK_EQ(count("] main {tenant=other}:\n"), 1);
    CHECK_EQ(count(" {"), 6);
    pirn_chan_close(never);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_group_wait(&group), 1);
    pirn_timer_free(t);
}

static void labelled(int i)
{
    CHECK_EQ(pirn_set_label("i", "%d", i), 0);
}

/* A goroutine that takes the place of one that had labels has none. */
TEST_RUN_ATTR(gone_with_it, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 300; i++)
        pirn_wg_go(&wg, labelled, i);
    pirn_wg_wait(&wg);
    never = pirn_chan_make(int, 0);
    for (int i = 0; i < 300; i++)
        pirn_go(waits, NULL);
    until_waiting(300);
    dump();
    CHECK_EQ(count("{"), 0);
}

static void dense(void *arg)
{
    CHECK_EQ(pirn_set_label("dense", "%s %d", "stack", 4), 0);
    waits(arg);
}

TEST_RUN_ATTR(dense_stacks, PROCS)
{
    never = pirn_chan_make(int, 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_4K}, dense, NULL), 0);
    until_waiting(10);
    dump();
    CHECK(strstr(text, " {dense=stack 4}:\n") != NULL);
}

/* --- while they change ------------------------------------------------------------------------------- */

static atomic_bool over;

static void changes(int i)
{
    for (int n = 0; !atomic_load(&over); n++) {
        CHECK_EQ(pirn_set_label("n", "%.*s", n % 40, "0123456789012345678901234567890123456789"),
                 0);
        CHECK_EQ(pirn_set_label("i", n % 3 ? "%d" : NULL, i), 0);
        if (n % 16 == 0)
            pirn_yield();
    }
}

TEST_RUN_ATTR(while_they_change, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, changes, i);
    for (int i = 0; i < 5; i++) {
        dump();
        CHECK_EQ(count("\ngoroutine ") >= 1, true);
    }
    atomic_store(&over, true);
    pirn_wg_wait(&wg);
}
