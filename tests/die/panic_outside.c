/* SPDX-License-Identifier: MIT */
/*
 * A panic without a runtime.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: no runtime\n\nthread \d+, outside goroutines:\n\t(main at .*panic_outside\.c:\d+|\S*panic_outside\+0x\w+)\n
 */
#include <pirn.h>

int main(void)
{
    pirn_panic("no %s", "runtime");
}
