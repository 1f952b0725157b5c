/* SPDX-License-Identifier: MIT */
/*
 * Number 82: a panic in the last word ends it.
 * expect-signal: SIGABRT
 * expect-stderr-regex: \Apanic: first\n\nfatal error: failed again while reporting a failure\n
 */
#include <pirn.h>

static void last_word(const char *message)
{
    pirn_panic("%s, again", message);
}

static int start(void *arg)
{
    (void)arg;
    pirn_panic("first");
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.on_fatal = last_word}, start, NULL);
}
