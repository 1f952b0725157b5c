/* SPDX-License-Identifier: MIT */
/* Goroutines that wait at a gate, as many as there is memory for: what the tests of it share. */
#ifndef TESTS_FAULT_GATE_H
#define TESTS_FAULT_GATE_H

#include "stress/recount.h"

struct outcome {
    int spawned, refused;
    at_u32 ran;
    pirn_wg gate, all;
};

static void wait_at_gate(void *arg)
{
    struct outcome *o = arg;
    pirn_wg_wait(&o->gate);
    at_add(&o->ran, 1, RELAXED);
    pirn_wg_done(&o->all);
}

static void spawn_at_gate(struct outcome *o, const pirn_attr *attr)
{
    pirn_wg_add(&o->all, 1);
    int err = pirn_spawn(attr, wait_at_gate, o);
    CHECK(err == 0 || err == -ENOMEM);
    o->spawned += err == 0;
    o->refused += err != 0;
    if (err) {
        pirn_wg_done(&o->all);
    }
}

static void open_gate(struct outcome *o)
{
    pirn_wg_done(&o->gate);
    pirn_wg_wait(&o->all);
}

#endif
