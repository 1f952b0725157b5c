/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_local_get outside a goroutine
 */
#include <pirn.h>

int main(void)
{
    pirn_local_key key;
    if (pirn_local_new(&key, NULL) || pirn_start(NULL)) {
        return 1;
    }
    return pirn_local_get(key) != NULL; /* a runtime alone is no goroutine */
}
