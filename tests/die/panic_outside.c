/* SPDX-License-Identifier: MIT */
/*
 * A panic without a runtime.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: no runtime\n\nthread \d+, outside goroutines:\n
 */
#include <pirn.h>

int main(void)
{
    pirn_panic("no %s", "runtime");
}
