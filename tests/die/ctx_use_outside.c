/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_ctx_use outside a goroutine
 */
#include <pirn.h>

int main(void)
{
    if (pirn_start(NULL)) {
        return 1;
    }
    pirn_ctx_use(pirn_ctx_background());
    return 0;
}
