/* SPDX-License-Identifier: MIT */
/* What the calls on files share; file.c has the design. */
#ifndef PIRN_IO_FILES_H
#define PIRN_IO_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct addrinfo;

/* Whether the ring is to be used for everything that it can do: PIRN_IO_URING. */
bool io_ring_first(void);
/* pirn_resolve that ends with -ETIMEDOUT then; on a thread that is not pirn's it can't. */
int resolve_until(const char *host, const char *service, const struct addrinfo *hints,
                  int64_t deadline, struct addrinfo **res);
void resolve_stop(bool left_behind); /* resolve.c */

#endif
