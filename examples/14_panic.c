/* SPDX-License-Identifier: MIT */
/*
 * What is deferred is called however the block is left. A request that goes wrong panics, wherever it is;
 * the server catches that, answers, and goes on. A mistake that Go panics at is caught the same way.
 *
 * Prints:
 *
 *     begin 10/2
 *     end 10/2
 *     10/2: 5
 *     begin 1/0
 *     end 1/0
 *     1/0: failed: division of 1 by zero
 *     begin late
 *     end late
 *     late: failed: send on closed channel
 */
#include <pirn.h>
#include <stdio.h>

struct request {
    const char *text;
    int a, b, result;
    pirn_chan(int) log; /* closed, if it comes too late */
};

static void say(const char *what, const char *text)
{
    printf("%s %s\n", what, text);
}

static int divide(int a, int b)
{
    if (b == 0)
        pirn_panic("division of %d by zero", a);
    return a / b;
}

static void handle(void *arg)
{
    struct request *r = arg;
    say("begin", r->text);
    pirn_defer(say, "end", r->text);
    r->result = divide(r->a, r->b);
    pirn_chan_send(r->log, r->result);
}

static void serve(struct request *r)
{
    pirn_panic_info *trouble = pirn_try(handle, r);
    if (trouble)
        printf("%s: failed: %s\n", r->text, pirn_panic_message(trouble));
    else
        printf("%s: %d\n", r->text, r->result);
    pirn_panic_free(trouble);
}

static int start(void *arg)
{
    pirn_chan(int) log = pirn_chan_make(int, 8);
    (void)arg;
    serve(&(struct request){"10/2", 10, 2, 0, log});
    serve(&(struct request){"1/0", 1, 0, 0, log});
    pirn_chan_close(log);
    serve(&(struct request){"late", 4, 2, 0, log});
    pirn_chan_release(log);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
