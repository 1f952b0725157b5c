/* SPDX-License-Identifier: MIT */
/*
 * This one is built without -fsanitize=thread.
 *
 * expect-exit: 2
 * expect-first-line: fatal error: pirn-race: the program is not built with -fsanitize=thread
 */
#include "race.h"

static void body(void)
{
}

RACE_MAIN(body)
