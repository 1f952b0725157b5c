/* SPDX-License-Identifier: MIT */
/* Mutexes that are waited for in a circle: cycles.c. */
#ifndef PIRN_DEBUG_CYCLES_H
#define PIRN_DEBUG_CYCLES_H

#include "sched/sched.h"

/* Id of the goroutine that has the mutex which gp waits for; 0: none, or not a goroutine. */
uint64_t mutex_holder(const struct g *gp);
/* Lines on each circle; how many there are. */
int cycles_print(int fd);

#endif
