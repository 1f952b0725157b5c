/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: nil key
 */
#include <pirn.h>

int main(void)
{
    pirn_ctx_release(pirn_ctx_with_value(pirn_ctx_background(), NULL, "value"));
    return 0;
}
