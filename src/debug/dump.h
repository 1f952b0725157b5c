/* SPDX-License-Identifier: MIT */
/* The last report, for who makes one: dump.c. */
#ifndef PIRN_DEBUG_DUMP_H
#define PIRN_DEBUG_DUMP_H

/* The trace of who reports begins at the frame that has this sp: the frames below are of no interest. */
void dump_begin_at(const void *sp);
/* A thread that is no goroutine reports. context: of the handler's, if it does so for a signal. */
void dump_thread(int fd, const void *context);

#endif
