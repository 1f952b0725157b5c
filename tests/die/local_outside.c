/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_local_set outside a goroutine
 */
#include <pirn.h>

int main(void)
{
    pirn_local_key key;
    if (pirn_local_new(&key, NULL)) {
        return 1;
    }
    pirn_local_set(key, &key);
    return 0;
}
