/* SPDX-License-Identifier: MIT */
/*
 * What the netpoller needs of the operating system: pollers, which report that descriptors have become
 * ready. A port writes this again. Results are >= 0 or -errno.
 *
 * A descriptor is added for both directions at once, edge-triggered: what is ready when it is added, and
 * each change to ready after that, is reported once, with the tag. A poller in a poller is
 * level-triggered: it is ready while something in it is to be reported.
 */
#ifndef PIRN_OS_POLL_H
#define PIRN_OS_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum poll_ready {
    POLL_READ = 1,
    POLL_WRITE = 2,
    POLL_ODD = 4, /* the end, an error, or urgent data */
};

struct poll_event {
    uint64_t tag;
    uint32_t ready; /* enum poll_ready, bits */
};

#define POLL_BATCH 64

uint32_t poll_ready_of(uint32_t events); /* POLLIN and so on, as epoll and io_uring have them */

int poll_open(void);
int poll_add(int poller, int fd, uint64_t tag);       /* -EPERM: it can't be waited for */
int poll_add_new(int poller, int fd, uint64_t tag);   /* the same; -EEXIST: it is there already */
int poll_add_level(int poller, int fd, uint64_t tag); /* a poller, or what breaks it */
void poll_remove(int poller, int fd);
/* At most POLL_BATCH events. deadline 0: only looks; INT64_MAX: none. -EINTR counts as nothing. */
int poll_wait(int poller, struct poll_event *out, int n, int64_t deadline);

int poll_break_open(void); /* a descriptor that is readable once it has been told */
void poll_break_tell(int fd);
void poll_break_clear(int fd);

#endif
