/* SPDX-License-Identifier: MIT */
/* What the calls on files share; file.c has the design. */
#ifndef PIRN_IO_FILES_H
#define PIRN_IO_FILES_H

#include <stdbool.h>

/* Whether the ring is to be used for everything that it can do: PIRN_IO_URING. */
bool io_ring_first(void);
void resolve_stop(bool left_behind); /* resolve.c */

#endif
