/* SPDX-License-Identifier: MIT */
/*
 * A fault is the end, also if there is something at its address by the time that it has been reported.
 *
 * expect-signal: SIGSEGV
 * expect-stderr-regex: ^fatal error: SIGSEGV at address 0x[0-9a-f]+: nothing there$
 * expect-no-stderr: it goes on
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * procs: 1,4
 */
#include <pirn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile char *page;

static void map_it(const char *message)
{
    (void)message;
    if (mmap((void *)page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0)
        != page)
        abort();
}

static int start(void *arg)
{
    (void)arg;
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap((void *)page, 4096);
    *page = 1;
    static const char text[] = "it goes on\n";
    return write(2, text, sizeof text - 1) < 0;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.on_fatal = map_it}, start, NULL);
}
