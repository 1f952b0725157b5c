/* SPDX-License-Identifier: MIT */
/* The one-shot note, on a futex word. */
#include "os/os.h"

void note_clear(struct note *n)
{
    at_store(&n->posted, 0, RELAXED);
}

void note_post(struct note *n)
{
    at_store(&n->posted, 1, RELEASE); /* pairs with the ACQUIRE in note_wait_until */
    futex_wake(&n->posted, 1);
}

bool note_wait_until(struct note *n, int64_t deadline)
{
    while (!at_load(&n->posted, ACQUIRE)) {
        if (!futex_wait(&n->posted, 0, deadline)) {
            return at_load(&n->posted, ACQUIRE);
        }
    }
    return true;
}

void note_wait(struct note *n)
{
    note_wait_until(n, INT64_MAX);
}
