/* SPDX-License-Identifier: MIT */
/*
 * Number 81: raised again, but with others in between: it is another.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: outer \[recovered\]\n\tpanic: middle \[recovered\]\n\tpanic: inner \[recovered\]\n\tpanic: outer\n\ngoroutine 1 \[running\] main:\n
 */
#include <pirn.h>

static void panics(const char *text)
{
    pirn_panic("%s", text);
}

static void recovers_and_panics(const char *text)
{
    pirn_recover();
    pirn_panic("%s", text);
}

static void inner(void)
{
    pirn_defer(recovers_and_panics, "middle");
    panics("outer");
}

static void outer(void)
{
    pirn_defer(recovers_and_panics, "inner");
    inner();
}

static int start(void *arg)
{
    pirn_defer(recovers_and_panics, "outer");
    outer();
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
