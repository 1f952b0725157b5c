/* SPDX-License-Identifier: MIT */
/*
 * Labels stand behind the name, of who panics and of those who have them from it.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: no\n\ngoroutine \d+ \[running\] panics "worker" \{tenant=acme, request=17\}:\n(\t.*\n)+\tcreated by goroutine 1 at
 * expect-stderr-regex: ^goroutine \d+ \[.*\] waits \{tenant=acme, request=17\}:$
 * expect-stderr-regex: ^goroutine 1 \[.*\] main:$
 * procs: 1,4
 */
#include <pirn.h>

static pirn_sem waiting;

static void waits(void)
{
    pirn_sem_release(&waiting, 1);
    pirn_selectv(NULL, 0);
}

static void panics(void)
{
    pirn_set_name("worker");
    pirn_set_label("tenant", "acme");
    pirn_set_label("request", "%d", 17);
    pirn_go(waits);
    pirn_sem_acquire(&waiting, 1);
    pirn_panic("no");
}

static int start(void *arg)
{
    pirn_go(panics);
    pirn_sleep(60 * PIRN_SEC);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
