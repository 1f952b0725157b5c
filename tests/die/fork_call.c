/* SPDX-License-Identifier: MIT */
/*
 * A child that neither execs nor ends, but calls pirn.
 * expect-exit: 2
 * expect-stderr-regex: ^fatal error: .*fork
 * procs: 1,4
 */
#include <sys/wait.h>
#include <unistd.h>

#include <pirn.h>

static int start(void *arg)
{
    int status;
    (void)arg;
    pid_t pid = fork();
    if (pid == 0) {
        pirn_yield();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return 1;
    }
    return WEXITSTATUS(status);
}

int main(void)
{
    return pirn_run(start, NULL);
}
