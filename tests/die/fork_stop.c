/* SPDX-License-Identifier: MIT */
/*
 * pirn_stop in the child of a fork, as by a handler that exit() calls.
 * expect-exit: 2
 * expect-stderr-regex: ^fatal error: .*fork
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pirn.h>

static void stop(void)
{
    pirn_stop();
}

int main(void)
{
    int status;
    if (pirn_start(NULL) || atexit(stop)) {
        return 1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return 1;
    }
    _exit(WEXITSTATUS(status));
}
