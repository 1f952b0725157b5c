// expect-ok
// SPDX-License-Identifier: MIT
#include <pirn.h>

int main(void)
{
    return 0;
}
