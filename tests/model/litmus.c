/* SPDX-License-Identifier: MIT */
/*
 * The explorer's own tests: the classic litmus tests with the set of outcomes that C11 allows, and
 * one small program for each kind of mistake that it must find.
 *
 * Two of the sets are known to be too small, and named so: the explorer has no outcomes in which
 * stores to one location take effect in another order than they were carried out (2+2W), or in
 * which a load sees a store that comes after it (load buffering). Neither x86-64 nor any protocol
 * of pirn's depends on them.
 */
#include "explorer/model.h"

#include <stdlib.h>

static at_u32 x, y, z;
static int data;
static int r[4];
static int *heap;

static void setup(void)
{
    at_store(&x, 0, RELAXED);
    at_store(&y, 0, RELAXED);
    at_store(&z, 0, RELAXED);
    data = 0;
    heap = NULL;
    for (int i = 0; i < 4; i++) {
        r[i] = 0;
    }
}

static void two(void)
{
    model_outcome("%d%d", r[0], r[1]);
}

static void four(void)
{
    model_outcome("%d%d%d%d", r[0], r[1], r[2], r[3]);
}

/* Defines a thread. */
#define T(name, ...)                                                                               \
    static void name(void)                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define LITMUS(mname, after, expected, ...)                                                        \
    MODEL(mname, .setup = setup, .finish = after, .outcomes = expected,                            \
          .preemptions = MODEL_UNBOUNDED, .threads = {__VA_ARGS__})
#define GET(var, order) (int)at_load(&(var), order)

/* --- store buffering ----------------------------------------------------------------------------- */

T(sb_rel_0, at_store(&x, 1, RELEASE); r[0] = GET(y, ACQUIRE);)
T(sb_rel_1, at_store(&y, 1, RELEASE); r[1] = GET(x, ACQUIRE);)
LITMUS(sb_release_acquire, two, "00 01 10 11", sb_rel_0, sb_rel_1)

T(sb_sc_0, at_store(&x, 1, SEQ_CST); r[0] = GET(y, SEQ_CST);)
T(sb_sc_1, at_store(&y, 1, SEQ_CST); r[1] = GET(x, SEQ_CST);)
LITMUS(sb_sc, two, "01 10 11", sb_sc_0, sb_sc_1)

T(sb_fence_0, at_store(&x, 1, RELAXED); at_fence(SEQ_CST); r[0] = GET(y, RELAXED);)
T(sb_fence_1, at_store(&y, 1, RELAXED); at_fence(SEQ_CST); r[1] = GET(x, RELAXED);)
LITMUS(sb_fences, two, "01 10 11", sb_fence_0, sb_fence_1)
LITMUS(sb_one_fence, two, "00 01 10 11", sb_fence_0, sb_rel_1)
LITMUS(sb_fence_and_sc, two, "01 10 11", sb_fence_0, sb_sc_1)

T(sb_scst_0, at_store(&x, 1, SEQ_CST); r[0] = GET(y, RELAXED);)
T(sb_scst_1, at_store(&y, 1, SEQ_CST); r[1] = GET(x, RELAXED);)
LITMUS(sb_sc_is_no_fence, two, "00 01 10 11", sb_scst_0, sb_scst_1)

T(sb_rmw_0, at_xchg(&x, 1, ACQ_REL); r[0] = GET(y, RELAXED);)
T(sb_rmw_1, at_xchg(&y, 1, ACQ_REL); r[1] = GET(x, RELAXED);)
LITMUS(sb_rmw_is_no_fence, two, "00 01 10 11", sb_rmw_0, sb_rmw_1)

/* --- message passing ------------------------------------------------------------------------------ */

T(mp_rlx_w, at_store(&x, 1, RELAXED); at_store(&y, 1, RELAXED);)
T(mp_rel_w, at_store(&x, 1, RELAXED); at_store(&y, 1, RELEASE);)
T(mp_fence_w, at_store(&x, 1, RELAXED); at_fence(RELEASE); at_store(&y, 1, RELAXED);)
T(mp_rlx_r, r[0] = GET(y, RELAXED); r[1] = GET(x, RELAXED);)
T(mp_acq_r, r[0] = GET(y, ACQUIRE); r[1] = GET(x, RELAXED);)
T(mp_fence_r, r[0] = GET(y, RELAXED); at_fence(ACQUIRE); r[1] = GET(x, RELAXED);)
LITMUS(mp_relaxed, two, "00 01 10 11", mp_rlx_w, mp_rlx_r)
LITMUS(mp_release_relaxed, two, "00 01 10 11", mp_rel_w, mp_rlx_r)
LITMUS(mp_relaxed_acquire, two, "00 01 10 11", mp_rlx_w, mp_acq_r)
LITMUS(mp_release_acquire, two, "00 01 11", mp_rel_w, mp_acq_r)
LITMUS(mp_fences, two, "00 01 11", mp_fence_w, mp_fence_r)
LITMUS(mp_fence_acquire, two, "00 01 11", mp_fence_w, mp_acq_r)

/* Three threads: what the first wrote reaches the third through the second. */
T(
    chain_1, if (GET(y, ACQUIRE)) { at_store(&z, 1, RELEASE); })
T(
    chain_2, if (GET(z, ACQUIRE)) {
        r[0] = 1;
        r[1] = GET(x, RELAXED);
    })
LITMUS(mp_chain, two, "00 11", mp_rel_w, chain_1, chain_2)

/* --- release sequences ---------------------------------------------------------------------------- */

T(seq_rmw, at_add(&y, 1, RELAXED);)
T(seq_store, at_store(&y, 2, RELAXED);)
T(seq_r, r[0] = GET(y, ACQUIRE); r[1] = GET(x, RELAXED);)
/* 2 can only be read from the add after the release: it goes on with its sequence. */
LITMUS(sequence_rmw, two, "00 01 10 11 21", mp_rel_w, seq_rmw, seq_r)
LITMUS(sequence_ends_at_store, two, "00 01 11 20 21", mp_rel_w, seq_store, seq_r)

/* --- independent reads of independent writes --------------------------------------------------------- */

T(iriw_wx, at_store(&x, 1, RELEASE);)
T(iriw_wy, at_store(&y, 1, RELEASE);)
T(iriw_wx_sc, at_store(&x, 1, SEQ_CST);)
T(iriw_wy_sc, at_store(&y, 1, SEQ_CST);)
T(iriw_r0, r[0] = GET(x, ACQUIRE); r[1] = GET(y, ACQUIRE);)
T(iriw_r1, r[2] = GET(y, ACQUIRE); r[3] = GET(x, ACQUIRE);)
T(iriw_r0_sc, r[0] = GET(x, SEQ_CST); r[1] = GET(y, SEQ_CST);)
T(iriw_r1_sc, r[2] = GET(y, SEQ_CST); r[3] = GET(x, SEQ_CST);)
T(iriw_r0_f, r[0] = GET(x, RELAXED); at_fence(SEQ_CST); r[1] = GET(y, RELAXED);)
T(iriw_r1_f, r[2] = GET(y, RELAXED); at_fence(SEQ_CST); r[3] = GET(x, RELAXED);)
#define IRIW_ALL_BUT_1010                                                                          \
    "0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1011 1100 1101 1110 1111"
LITMUS(iriw, four,
       "0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1010 1011 1100 1101 1110 1111", iriw_wx,
       iriw_wy, iriw_r0, iriw_r1)
LITMUS(iriw_sc, four, IRIW_ALL_BUT_1010, iriw_wx_sc, iriw_wy_sc, iriw_r0_sc, iriw_r1_sc)
LITMUS(iriw_sc_loads, four, IRIW_ALL_BUT_1010, iriw_wx, iriw_wy, iriw_r0_sc, iriw_r1_sc)
LITMUS(iriw_fences, four, IRIW_ALL_BUT_1010, iriw_wx, iriw_wy, iriw_r0_f, iriw_r1_f)

/* --- one location ------------------------------------------------------------------------------------ */

T(co_w, at_store(&x, 1, RELAXED); at_store(&x, 2, RELAXED);)
T(co_r, r[0] = GET(x, RELAXED); r[1] = GET(x, RELAXED);)
LITMUS(coherence, two, "00 01 02 11 12 22", co_w, co_r)

T(cas_0, uint32_t e = 0; r[0] = at_cas(&x, &e, 1, RELAXED, RELAXED);)
T(cas_1, uint32_t e = 0; r[1] = at_cas(&x, &e, 2, RELAXED, RELAXED);)
LITMUS(cas_one_wins, two, "01 10", cas_0, cas_1)

T(weak_0, uint32_t e = 0; r[0] = at_cas_weak(&x, &e, 1, RELAXED, RELAXED); r[1] = GET(x, RELAXED);)
T(weak_1, at_load(&x, RELAXED);)
LITMUS(cas_weak_fails, two, "00 11", weak_0, weak_1)

/* A CAS that fails may do so because it sees an old value. */
T(cas_old_0, at_store(&x, 1, RELAXED); at_store(&y, 1, RELEASE);)
T(cas_old_1, r[0] = GET(y, RELAXED); uint32_t e = 1; at_cas(&x, &e, 2, RELAXED, RELAXED);
  r[1] = (int)e;)
LITMUS(cas_fails_on_old, two, "00 01 10 11", cas_old_0, cas_old_1)

T(add_0, at_add(&x, 1, RELAXED);)
static void add_finish(void)
{
    CHECK(at_load(&x, RELAXED) == 3);
}
MODEL(adds, .setup = setup, .finish = add_finish, .preemptions = MODEL_UNBOUNDED,
      .threads = {add_0, add_0, add_0})

/* --- what it can't show ------------------------------------------------------------------------------ */

static void final(void)
{
    model_outcome("%d%d", GET(x, RELAXED), GET(y, RELAXED));
}
T(w22_0, at_store(&x, 1, RELAXED); at_store(&y, 2, RELAXED);)
T(w22_1, at_store(&y, 1, RELAXED); at_store(&x, 2, RELAXED);)
LITMUS(blind_2_plus_2w, final, "12 21 22", w22_0, w22_1) /* C11 has 11 too */

T(lb_0, r[0] = GET(x, RELAXED); at_store(&y, 1, RELAXED);)
T(lb_1, r[1] = GET(y, RELAXED); at_store(&x, 1, RELAXED);)
LITMUS(blind_load_buffering, two, "00 01 10", lb_0, lb_1) /* C11 has 11 too */

/* --- mistakes that it must find ---------------------------------------------------------------------- */

#define BUG(mname, ...)                                                                            \
    MODEL(bug_##mname, .setup = setup, .finds_a_bug = true, .preemptions = MODEL_UNBOUNDED,        \
          .threads = {__VA_ARGS__})

T(race_w, data = 1; at_store(&y, 1, RELAXED);)
T(
    race_r, if (GET(y, ACQUIRE)) { r[0] = data; })
BUG(data_race, race_w, race_r)

T(plain_w, data = 1; at_store(&y, 1, RELEASE);)
MODEL(no_data_race, .setup = setup, .preemptions = MODEL_UNBOUNDED, .threads = {plain_w, race_r})

T(sc_no_hb_w, data = 1; at_fence(SEQ_CST); at_load(&y, RELAXED);)
T(sc_no_hb_r, at_fence(SEQ_CST); at_load(&y, RELAXED); r[0] = data;)
BUG(fences_alone_order_no_data, sc_no_hb_w, sc_no_hb_r)

static void setup_heap(void)
{
    setup();
    heap = malloc(sizeof *heap);
    *heap = 0;
}
T(free_it, at_store(&y, 1, RELAXED); free(heap);)
T(
    use_it, if (!GET(y, RELAXED)) { *heap = 1; })
MODEL(bug_use_after_free, .setup = setup_heap, .finds_a_bug = true, .threads = {free_it, use_it},
      .preemptions = MODEL_UNBOUNDED)
T(
    free_too, if (at_xchg(&y, 1, ACQ_REL) < 2) { free(heap); })
MODEL(bug_double_free, .setup = setup_heap, .finds_a_bug = true, .threads = {free_too, free_too},
      .preemptions = MODEL_UNBOUNDED)
T(
    free_once, if (at_xchg(&y, 1, ACQ_REL) == 1) { free(heap); })
MODEL(free_by_the_last, .setup = setup_heap, .threads = {free_once, free_once},
      .preemptions = MODEL_UNBOUNDED)
MODEL(bug_leak, .setup = setup_heap, .finds_a_bug = true, .threads = {add_0, add_0},
      .preemptions = MODEL_UNBOUNDED)

T(lock_xy, model_lock(&x); at_add(&z, 1, RELAXED); model_lock(&y); model_unlock(&y);
  model_unlock(&x);)
T(lock_yx, model_lock(&y); at_add(&z, 1, RELAXED); model_lock(&x); model_unlock(&x);
  model_unlock(&y);)
BUG(deadlock, lock_xy, lock_yx)
MODEL(lock_order, .setup = setup, .threads = {lock_xy, lock_xy, lock_xy},
      .preemptions = MODEL_UNBOUNDED)

T(locked_add, model_lock(&x); data++; model_unlock(&x);)
static void locked_finish(void)
{
    CHECK(data == 3);
}
MODEL(lock_protects, .setup = setup, .finish = locked_finish, .preemptions = MODEL_UNBOUNDED,
      .threads = {locked_add, locked_add, locked_add})

T(
    spin_until, while (!GET(x, ACQUIRE)) { at_pause(); } CHECK(data == 1);)
T(spin_set, data = 1; at_store(&x, 1, RELEASE);)
MODEL(spin, .setup = setup, .preemptions = MODEL_UNBOUNDED, .threads = {spin_until, spin_set})
T(add_z, at_add(&z, 1, RELAXED);)
BUG(spin_for_ever, spin_until, add_z, add_z)

/* --- sleeping ---------------------------------------------------------------------------------------- */

T(
    sleep_until, while (!GET(x, ACQUIRE)) { model_futex_wait(&x, 0, false); })
T(sleep_end, at_store(&x, 1, RELEASE); model_futex_wake(&x, 1);)
MODEL(futex, .setup = setup, .preemptions = MODEL_UNBOUNDED, .threads = {sleep_until, sleep_end})
MODEL(futex_spurious, .setup = setup, .spurious = 2, .preemptions = MODEL_UNBOUNDED,
      .threads = {sleep_until, sleep_end})
T(
    sleep_once, if (!GET(x, ACQUIRE)) { model_futex_wait(&x, 0, false); } CHECK(GET(x, ACQUIRE));)
MODEL(bug_spurious_wake, .setup = setup, .spurious = 1, .finds_a_bug = true,
      .preemptions = MODEL_UNBOUNDED, .threads = {sleep_once, sleep_end})
T(sleep_end_early, model_futex_wake(&x, 1); at_store(&x, 1, RELEASE);)
BUG(lost_wake, sleep_until, sleep_end_early)
BUG(one_wake_for_two, sleep_until, sleep_until, sleep_end)
T(sleep_limit, r[0] = model_futex_wait(&x, 0, true);)
LITMUS(futex_time_out, two, "00", sleep_limit)
