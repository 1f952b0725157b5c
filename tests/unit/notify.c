/* SPDX-License-Identifier: MIT */
/* A goroutine that ends at the entry of a notify, since the runtime does: it leaves nothing behind. */
#include <signal.h>

#include "go/busy.h"
#include "sched/sched.h"
#include "sync/chan.h"

static pirn_chan(int) c;
static atomic_bool begun, notified;

static void notifies_too_late(void)
{
    atomic_store(&begun, true);
    while (!m_told_to_stop(getm())) {
    }
    CHECK_EQ(pirn_signal_notify(c, SIGUSR1), 0);
    atomic_store(&notified, true);
}

static int leaves_it(void *arg)
{
    pirn_go(notifies_too_late);
    SLEEP_UNTIL(atomic_load(&begun));
    return arg != NULL;
}

TEST_ATTR(ends_at_its_entry, .procs = "2,4,16")
{
    c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_run(leaves_it, NULL), 0);
    CHECK(!atomic_load(&notified));
    CHECK_EQ(at_load(&PIRN_CHANV_(c)->refs, RELAXED), 1);
    pirn_chan_release(c);
}
