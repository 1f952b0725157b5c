/* SPDX-License-Identifier: MIT */
/*
 * pirn_start leaves SIGQUIT to the program.
 * expect-signal: SIGQUIT
 * expect-no-stderr: goroutine
 */
#include <signal.h>
#include <unistd.h>

#include <pirn.h>

static void nothing(void)
{
}

int main(void)
{
    if (pirn_start(NULL)) {
        return 1;
    }
    pirn_go(nothing);
    kill(getpid(), SIGQUIT);
    pause();
    return 0;
}
