/* SPDX-License-Identifier: MIT */
/*
 * A group: goroutines that belong together and end together. The first that fails
 * cancels the others, and pirn_group_wait() returns its error, after all of them
 * have ended. So nothing is left running, and no error is lost.
 *
 * Prints:
 *
 *     mail: Operation canceled
 *     news: Address already in use
 *     web: Operation canceled
 *     could not start: Address already in use
 *     10 files, at most 3 at a time: Success
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct service {
    const char *name;
    int trouble; /* what happens when it starts; 0: nothing, it serves for ever */
    int ended_with;
};

/* What a group runs returns int: 0, or what went wrong. */
static int serve(struct service *s)
{
    return s->ended_with = s->trouble ? s->trouble : pirn_sleep(PIRN_NEVER);
}

static atomic_int at_work, most;

static int copy_file(int number)
{
    int n = atomic_fetch_add(&at_work, 1) + 1;
    if (n > atomic_load(&most)) {
        atomic_store(&most, n);
    }
    int err = pirn_sleep(number * 100 * PIRN_US);
    atomic_fetch_sub(&at_work, 1);
    return err;
}

static int start(void *arg)
{
    (void)arg;
    struct service all[] = {{"mail", 0, 0}, {"news", -EADDRINUSE, 0}, {"web", 0, 0}};
    pirn_group g;
    pirn_group_init(&g, NULL);
    for (int i = 0; i < 3; i++) {
        pirn_group_go(&g, serve, &all[i]);
    }
    int err = pirn_group_wait(&g);
    for (int i = 0; i < 3; i++) {
        printf("%s: %s\n", all[i].name, strerror(-all[i].ended_with));
    }
    printf("could not start: %s\n", strerror(-err));

    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 3); /* the fourth waits until one of them has ended */
    for (int i = 0; i < 10; i++) {
        pirn_group_go(&g, copy_file, i);
    }
    err = pirn_group_wait(&g);
    printf("10 files, at most 3 at a time: %s\n", strerror(-err));
    return atomic_load(&most) <= 3 ? 0 : 1;
}

int main(void)
{
    return pirn_run(start, NULL);
}
