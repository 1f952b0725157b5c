/* SPDX-License-Identifier: MIT */
/*
 * Wait groups with all that surrounds a call from a thread that pirn did not make: the properties of
 * waitgroup.c, and the counters of such threads return to zero.
 */
#include "waitgroup.h"

MODEL(done_wait, .setup = one_done, .finish = at_rest, .threads = {done, wait}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_done, .setup = two_dones, .finish = at_rest, .threads = {done, done, wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_wait, .setup = one_done_two_waits, .finish = at_rest, .threads = {done, wait, wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_two, .setup = two_dones_two_waits, .finish = at_rest, .threads = {done, done, wait, wait},
      .preemptions = 3)

MODEL(add_wait, .setup = one_done, .finish = at_rest, .threads = {add_and_done_twice, wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(add_done_wait, .setup = two_dones, .finish = at_rest,
      .threads = {add_and_done_twice, done, wait}, .preemptions = 3)

MODEL(reuse, .setup = again, .finish = at_rest, .threads = {done, done_in_round_two, wait_add_wait},
      .preemptions = MODEL_UNBOUNDED)

MODEL(two_done_g, .setup = two_dones_one_g, .finish = all_runnable_and_free,
      .threads = {done, done}, .preemptions = MODEL_UNBOUNDED)

MODEL(done_wait_and_gs, .setup = one_done_two_gs, .finish = all_runnable, .threads = {done, wait},
      .preemptions = MODEL_UNBOUNDED)
