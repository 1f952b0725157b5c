// expect-ok
// also: -DPIRN_NO_ERRNO
// SPDX-License-Identifier: MIT
#include <pirn.h>

int main(void)
{
    return 0;
}
