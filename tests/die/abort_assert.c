/* SPDX-License-Identifier: MIT */
/*
 * An assertion that fails: libc's message, then where.
 * expect-signal: SIGABRT
 * expect-stderr-regex: \A.*: fails: Assertion `arg == NULL' failed\.\nfatal error: SIGABRT: abort\(\) was called\n\tpc=0x\w+ sp=0x\w+\n\ngoroutine \d+ \[running\] fails \"asserts\":\n(\t.*\n)+?\t(fails at .*abort_assert\.c:\d+|\S*abort_assert\+0x\w+)\n
 * skip-in: tsan the sanitizer puts the signal off
 */
#undef NDEBUG
#include <assert.h>
#include <pirn.h>

static int something;
static void *volatile arg = &something;

static void fails(void)
{
    pirn_set_name("asserts");
    assert(arg == NULL);
}

static int start(void *unused)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, fails);
    pirn_wg_wait(&wg);
    return unused != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
