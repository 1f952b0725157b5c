// expect-ok
// also: -Wconversion -Wshadow -Wold-style-cast
/* SPDX-License-Identifier: MIT */
/* The layer without types. */
#include <pirn.h>

int test(pirn_chanv *given);
int test(pirn_chanv *given)
{
    pirn_chanv *c = pirn_chanv_make(sizeof(int), 1);
    int v = 1, n = 0;
    pirn_chanv_send(c, &v);
    n += pirn_chanv_recv(c, &v) ? 1 : 0;
    n += pirn_chanv_try_send(c, &v) + pirn_chanv_try_recv(c, nullptr);
    n += pirn_chanv_send_until(c, &v, PIRN_NEVER) + pirn_chanv_recv_until(c, &v, pirn_now());
    n += static_cast<int>(pirn_chanv_len(c) + pirn_chanv_cap(c)) + pirn_chanv_fd(c);
    pirn_case cases[2] = {};
    cases[0].kind_ = PIRN_CASE_RECV_;
    cases[0].chan_ = given;
    cases[0].elem_ = &v;
    cases[1].kind_ = PIRN_CASE_DEFAULT_;
    n += pirn_selectv(cases, 2);
    pirn_chanv_close(c);
    pirn_chanv_release(pirn_chanv_retain(c));
    return n;
}
