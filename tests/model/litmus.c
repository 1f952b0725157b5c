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

#define BUG(mname, message, ...)                                                                   \
    MODEL(bug_##mname, .setup = setup, .finds = message, .preemptions = MODEL_UNBOUNDED,           \
          .threads = {__VA_ARGS__})

T(race_w, data = 1; at_store(&y, 1, RELAXED);)
T(
    race_r, if (GET(y, ACQUIRE)) { r[0] = data; })
BUG(data_race, "data race", race_w, race_r)

T(plain_w, data = 1; at_store(&y, 1, RELEASE);)
MODEL(no_data_race, .setup = setup, .preemptions = MODEL_UNBOUNDED, .threads = {plain_w, race_r})

T(sc_no_hb_w, data = 1; at_fence(SEQ_CST); at_load(&y, RELAXED);)
T(sc_no_hb_r, at_fence(SEQ_CST); at_load(&y, RELAXED); r[0] = data;)
BUG(fences_alone_order_no_data, "data race", sc_no_hb_w, sc_no_hb_r)

static void setup_heap(void)
{
    setup();
    heap = malloc(sizeof *heap);
    *heap = 0;
}
T(free_it, at_store(&y, 1, RELAXED); free(heap);)
T(
    use_it, if (!GET(y, RELAXED)) { *heap = 1; })
MODEL(bug_use_after_free, .setup = setup_heap, .finds = "which has been freed",
      .threads = {free_it, use_it}, .preemptions = MODEL_UNBOUNDED)
T(
    free_too, if (at_xchg(&y, 1, ACQ_REL) < 2) { free(heap); })
MODEL(bug_double_free, .setup = setup_heap, .finds = "for the second time",
      .threads = {free_too, free_too}, .preemptions = MODEL_UNBOUNDED)
T(
    free_once, if (at_xchg(&y, 1, ACQ_REL) == 1) { free(heap); })
MODEL(free_by_the_last, .setup = setup_heap, .threads = {free_once, free_once},
      .preemptions = MODEL_UNBOUNDED)
MODEL(bug_leak, .setup = setup_heap, .finds = "leak", .threads = {add_0, add_0},
      .preemptions = MODEL_UNBOUNDED)

T(lock_xy, model_lock(&x); at_add(&z, 1, RELAXED); model_lock(&y); model_unlock(&y);
  model_unlock(&x);)
T(lock_yx, model_lock(&y); at_add(&z, 1, RELAXED); model_lock(&x); model_unlock(&x);
  model_unlock(&y);)
BUG(deadlock, "deadlock", lock_xy, lock_yx)
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
BUG(spin_for_ever, "spins for ever", spin_until, add_z, add_z)

/* --- sleeping ---------------------------------------------------------------------------------------- */

T(
    sleep_until, while (!GET(x, ACQUIRE)) { model_futex_wait(&x, 0, false); })
T(sleep_end, at_store(&x, 1, RELEASE); model_futex_wake(&x, 1);)
MODEL(futex, .setup = setup, .preemptions = MODEL_UNBOUNDED, .threads = {sleep_until, sleep_end})
MODEL(futex_spurious, .setup = setup, .spurious = 2, .preemptions = MODEL_UNBOUNDED,
      .threads = {sleep_until, sleep_end})
T(
    sleep_once, if (!GET(x, ACQUIRE)) { model_futex_wait(&x, 0, false); } CHECK(GET(x, ACQUIRE));)
MODEL(bug_spurious_wake, .setup = setup, .spurious = 1,
      .finds = "litmus.c:", .preemptions = MODEL_UNBOUNDED, .threads = {sleep_once, sleep_end})
T(sleep_end_early, model_futex_wake(&x, 1); at_store(&x, 1, RELEASE);)
BUG(lost_wake, "deadlock", sleep_until, sleep_end_early)
BUG(one_wake_for_two, "deadlock", sleep_until, sleep_until, sleep_end)
T(sleep_limit, r[0] = model_futex_wait(&x, 0, true);)
LITMUS(futex_time_out, two, "00", sleep_limit)

/* Notes: what was done before the post is known after the wait, and no more is ordered than that. */
static char note;
static void setup_note(void)
{
    setup();
    model_note_clear(&note);
}
#define NOTE(mname, ...)                                                                           \
    MODEL(mname, .setup = setup_note, .preemptions = MODEL_UNBOUNDED, __VA_ARGS__)
T(note_wait_for_data, model_note_wait(&note); CHECK(data == 1); r[0] = GET(x, RELAXED);
                                                    at_store(&y, 1, RELAXED);)
T(note_post_data, data = 1; model_note_post(&note); at_store(&x, 1, RELAXED);
  r[1] = GET(y, RELAXED);)
T(note_post_early, model_note_post(&note); data = 1;)
T(note_post_only, model_note_post(&note);)
NOTE(note, .finish = two, .outcomes = "00 01 10 11",
     .threads = {note_wait_for_data, note_post_data})
NOTE(note_sleeper, .sleepers = 1, .threads = {note_wait_for_data, add_z})
NOTE(bug_note_never_posted, .finds = "deadlock", .threads = {note_wait_for_data, add_z})
NOTE(bug_note_posted_early, .finds = "data race", .threads = {note_wait_for_data, note_post_early})
NOTE(bug_note_posted_twice, .finds = "nobody waits", .threads = {note_post_only, note_post_only})

/* --- what a reduction could lose ---------------------------------------------------------------------- */

/* Each of these has lost an outcome once. */

/* A load that slept is woken by a store that tells it nothing new, but must still be tried later. */
T(woken_0, at_store(&y, 1, RELAXED); r[0] = GET(y, RELAXED);)
T(woken_1, r[1] = (int)at_xchg(&y, 1, RELAXED);)
T(woken_2, at_store(&y, 3, RELAXED);)
LITMUS(woken_for_nothing, two, "10 11 13 30 31 33", woken_0, woken_1, woken_2)

/* T0's store before T2's add, and T1 before both: to try T0 first would be another order. */
T(begin_0, uint32_t e = 1; r[0] = at_cas(&y, &e, 1, RELAXED, RELAXED); at_store(&x, 1, RELAXED);)
T(begin_1, r[1] = GET(x, RELAXED); at_store(&y, 1, RELAXED);)
T(begin_2, at_store(&x, 1, RELAXED); r[2] = (int)at_add(&x, 1, RELAXED); r[3] = GET(x, RELAXED);)
LITMUS(who_begins, four, "0011 0012 0111 0112 0211 0212 1011 1012 1111 1112 1211 1212", begin_0,
       begin_1, begin_2)

/* The fence before the SC store, and that before the CAS. */
T(between_0, at_store(&y, 1, RELAXED); at_store(&x, 1, SEQ_CST);)
T(between_1, r[0] = (int)at_add(&y, 1, RELAXED); uint32_t e = 1;
  r[1] = at_cas(&x, &e, 1, RELAXED, RELAXED);)
T(between_2, at_fence(SEQ_CST); r[2] = GET(x, RELAXED);)
LITMUS(fence_in_between, four, "0000 0010 0100 0110 1000 1010 1100 1110", between_0, between_1,
       between_2)

/* A CAS that fails commutes with a load; the two locks may still be taken in either order. */
T(section_0, model_lock(&z); r[0] = GET(x, RELAXED); model_unlock(&z);)
T(section_1, uint32_t e = 1; r[1] = at_cas(&x, &e, 1, RELAXED, RELAXED); model_lock(&z);
  at_store(&x, 1, RELAXED); model_unlock(&z);)
LITMUS(sections_either_way, two, "00 10", section_0, section_1)

/* So does an SC load. */
T(sc_section_0, model_lock(&z); r[0] = GET(x, RELAXED); at_store(&x, 1, RELAXED); model_unlock(&z);)
T(sc_section_1, r[1] = GET(x, SEQ_CST); model_lock(&z); model_unlock(&z); r[2] = GET(x, RELAXED);)
LITMUS(sections_and_sc_load, four, "0000 0010 0110", sc_section_0, sc_section_1)

/* Who times out first does the rest first too, since the other goes on when nobody else can. */
T(late_0, model_futex_wait(&x, 0, true); r[0] = (int)at_add(&z, 1, RELAXED);)
T(late_1, model_futex_wait(&y, 0, true); r[1] = (int)at_add(&z, 1, RELAXED);)
LITMUS(either_times_out_first, two, "01 10", late_0, late_1)

/* To be woken is to come after the wake, but to have fallen asleep is not. */
T(woken_then_1, r[0] = model_futex_wait(&x, 0, false); model_lock(&y); model_unlock(&y);)
T(woken_then_2, r[1] = model_futex_wait(&x, 0, false); model_lock(&z); model_unlock(&z);)
T(wakes_both, model_futex_wake(&x, 2);)
MODEL(asleep_before_or_after, .setup = setup, .finish = two, .outcomes = "00 01 10 11",
      .sleepers = 7, .preemptions = MODEL_UNBOUNDED,
      .threads = {wakes_both, woken_then_1, woken_then_2})

/* A wake is not lost on somebody who has timed out and ended. */
T(times_out_and_ends, r[0] = model_futex_wait(&x, 0, true);)
T(times_out_and_wakes, model_futex_wait(&x, 0, true); model_futex_wake(&x, 1);)
T(must_be_woken, r[1] = model_futex_wait(&x, 0, false);)
MODEL(wake_finds_a_sleeper, .setup = setup, .finish = two, .outcomes = "01 10", .sleepers = 7,
      .preemptions = MODEL_UNBOUNDED,
      .threads = {times_out_and_ends, times_out_and_wakes, must_be_woken})

/* A loop with a pause may give up before anybody has written anything. */
T(
    gives_up, if (!GET(x, RELAXED)) { at_pause(); } at_store(&y, 1, RELAXED);)
T(given_up, r[0] = GET(y, RELAXED); at_store(&x, 1, RELAXED);)
LITMUS(pause_gives_up, two, "00 10", gives_up, given_up)

/* Spins for what comes with a deadline. */
T(
    spins_for_late, while (!GET(z, ACQUIRE)) { at_pause(); })
T(late_end, model_futex_wait(&x, 0, true); at_store(&z, 1, RELEASE);)
MODEL(spin_until_deadline, .setup = setup, .preemptions = MODEL_UNBOUNDED,
      .threads = {spins_for_late, late_end})

/* --- what orders plain accesses, and what does not ------------------------------------------------------- */

#define RACE_FREE(mname, ...)                                                                      \
    MODEL(mname, .setup = setup, .preemptions = MODEL_UNBOUNDED, .threads = {__VA_ARGS__})

T(hand_over, data = 1; at_store(&y, 1, RELEASE);)
T(pass_on, at_add(&y, 1, RELAXED);)
T(
    take_over, if (GET(y, ACQUIRE) == 2) { r[0] = data; })
RACE_FREE(sequence_orders_data, hand_over, pass_on, take_over)
T(
    pass_by_store, if (GET(y, RELAXED) == 1) { at_store(&y, 2, RELAXED); })
BUG(sequence_ends_at_relaxed_store, "data race", hand_over, pass_by_store, take_over)

T(hand_over_fence, data = 1; at_fence(RELEASE); at_add(&y, 1, RELAXED);)
T(
    take_over_fence, if (GET(y, RELAXED) == 1) {
        at_fence(ACQUIRE);
        r[0] = data;
    })
RACE_FREE(fences_order_data, hand_over_fence, take_over_fence)

T(
    take_by_lock, model_lock(&x); if (GET(y, RELAXED)) { r[0] = data; } model_unlock(&x);)
T(hand_by_lock, data = 1; model_lock(&x); at_store(&y, 1, RELAXED); model_unlock(&x);)
RACE_FREE(lock_orders_data, hand_by_lock, take_by_lock)

/* Both see the order in S, but nothing synchronizes. */
T(sc_hand_over, data = 1; at_fence(SEQ_CST); at_store(&y, 1, RELAXED);)
T(
    sc_take_over, if (GET(y, RELAXED)) { r[0] = data; })
BUG(fence_on_one_side, "data race", sc_hand_over, sc_take_over)
T(wake_hands_over, data = 1; at_store(&y, 1, RELAXED); model_futex_wake(&y, 1);)
T(
    wait_takes_over, while (!GET(y, RELAXED)) { model_futex_wait(&y, 0, false); } r[0] = data;)
BUG(futex_orders_no_data, "data race", wake_hands_over, wait_takes_over)

/* A CAS that fails is no write: it may meet a plain read. */
T(fails_to_write, uint32_t e = 1; at_cas(&x, &e, 2, RELAXED, RELAXED);)
T(reads_plainly, r[0] = (int)x.v;)
RACE_FREE(failed_cas_is_no_write, fails_to_write, reads_plainly)
T(writes, at_xchg(&x, 2, RELAXED);)
BUG(write_meets_plain_read, "data race", writes, reads_plainly)

T(writes_futex, x.v = 1;)
BUG(futex_wait_reads, "data race", writes_futex, sleep_limit)

/* Of different sizes: what counts is the bytes. */
static uint32_t halves[2];
static struct {
    at_u32 first, second;
} words;
T(clears_both, memset(halves, 0, sizeof halves);)
T(writes_second, halves[1] = 1;)
T(writes_byte, ((volatile char *)halves)[3] = 1;)
BUG(clears_what_is_written, "data race", clears_both, writes_second)
BUG(byte_of_a_word, "data race", clears_both, writes_byte)
RACE_FREE(neighbours, writes_second, writes_byte)
T(clears_atomics, at_store(&words.second, 5, RELAXED); memset(&words, 0, sizeof words);
  CHECK(!at_load(&words.second, RELAXED));)
RACE_FREE(cleared_atomics, clears_atomics)
T(clears_late, memset(&words, 0, sizeof words);)
T(loads_second, at_load(&words.second, RELAXED);)
BUG(clears_what_is_loaded, "data race", clears_late, loads_second)

T(lock_late, model_lock(heap); model_unlock(heap);)
T(free_early, free(heap);)
MODEL(bug_lock_in_freed, .setup = setup_heap, .finds = "frees", .threads = {lock_late, free_early},
      .preemptions = MODEL_UNBOUNDED)
