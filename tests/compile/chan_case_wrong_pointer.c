/* SPDX-License-Identifier: MIT */
// A case of a select that is built at run time.
// expect-error: incompatible pointer type
#include <pirn.h>

void test(pirn_chan(int *) c, pirn_case *k, long *p);
void test(pirn_chan(int *) c, pirn_case *k, long *p)
{
    *k = (pirn_case)PIRN_SEND(c, p); // line-of-error
}
