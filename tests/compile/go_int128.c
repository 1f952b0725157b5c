/* SPDX-License-Identifier: MIT */
// expect-error: argument 1 of worker is no scalar of at most 8 bytes
#include <pirn.h>

__extension__ typedef __int128 int128;
void worker(int128 n);

void test(int128 n);
void test(int128 n)
{
    pirn_go(worker, n); // line-of-error
}
