/* SPDX-License-Identifier: MIT */
/*
 * The idle and wake-up protocol of src/sched/idle.c, with those who use it: runq_submit
 * (schedule.c), find_work and steal (findwork.c), ready() on a foreign thread (park.c), sysmon.c and
 * factory.c. Names and labels ([W1], [W2], ...) are those of the source; an inline without a word
 * about it is the function of that name.
 *
 * What happens. Goroutine `root` runs on M 0 and submits NROOT goroutines, each into runnext, from
 * where it pushes the one before into the ring. A foreign thread puts NFOREIGN on the global queue.
 * The other Ms look for work, sleep and are woken. One goroutine, the hog, may compute until all
 * others have run: its P is of no use to them meanwhile, and only a wake-up helps.
 *
 * What must hold, under weak fairness (a thread that can go on will):
 *   live    every goroutine runs;
 *   prompt  without sysmon every goroutine runs but those left in the runnext of a P;
 *   and the assertions: at most one M spins; a P has one M; a goroutine runs once; a note is posted
 *   once; the detector of deadlocks does not speak while there is work.
 *
 * Memory. Spin's is sequentially consistent. With BUFFERS the stores that come before a fence in
 * the source go to a buffer, one entry for each thread, which the process `bus` empties at any time
 * and fence() at once. A second such store, a read-modify-write with RELEASE and a lock empty one's
 * own buffer; a lock also shows what others wrote under it. This is weaker than x86, where the xchg
 * of runnext and the unlock are fences. If all fences are there BUFFERS change nothing, since no
 * thread reads between such a store and its fence.
 *
 * Simplified
 *   - Queues are sets. A thief takes two if there are two, as it takes several from a longer ring.
 *   - A section under sched.lock is one step, unless others can see two changes of it. The idle
 *     lists are sets: any of their Ms and Ps may be taken.
 *   - No clock: 3 us, 10 us and 10 ms may pass between any two steps, or not. counts.switches is
 *     one bit.
 *   - The four rounds of steal() are one; its walk begins at the next P.
 *   - Notes and futexes block until posted.
 * Left out: slices and the turn of the global queue, for no goroutine here is endless but the hog;
 * retiring Ps; m_hand_off; start and stop; overflow of the ring.
 *
 * -DNP= -DNM= -DNROOT= -DNFOREIGN= set the size, and
 *   CHILD    goroutine 1 submits one more, on the P on which it runs
 *   FUTILE   sched.futile and leave_out() are in force; else runnext always counts as work
 *   SYSMON   sysmon looks, and sleeps when no P runs
 *   FACTORY  the last M is not born yet; with SYSMON, making it may fail once
 *   BUG_...  plants one bug, which must be found; each is explained where it stands.
 */
#ifndef NP
#define NP 2
#endif
#ifndef NM
#define NM 2
#endif
#ifndef NROOT
#define NROOT 2
#endif
#ifndef NFOREIGN
#define NFOREIGN 1
#endif

/* Missing fences. */
#if defined(BUG_NO_W1) || defined(BUG_NO_W2) || defined(BUG_NO_W3) || defined(BUG_NO_S1) || \
    defined(BUG_NO_S2)
#define BUFFERS
#endif

#define BIT(i) (1 << (i))
#define ALL_P (BIT(NP) - 1)
#define ALL_M (BIT(NM) - 1)
#define NO_M NM

/* Goroutines are bits. */
#define FIRST_FOREIGN BIT(NROOT)
#define THE_CHILD BIT(NROOT + NFOREIGN)
#ifdef CHILD
#define ALL (2 * THE_CHILD - 1)
#else
#define ALL (THE_CHILD - 1)
#endif
#define ROOT 128

/* Threads that are no M. */
#define FOREIGN NM
#define SYSMON_T (NM + 1)
#define FACTORY_T (NM + 2)

/* --- struct sched ------------------------------------------------------------------------------ */

byte pidle, midle, globq; /* under sched.lock */
bit sched_lock;           /* held over more than one step */
bit gsize;                /* globq.size != 0 */
byte npidle;
bit nspinning, futile, nforeign;
bit woke;                 /* woke_at == coarse_now(), for all Ps */

/* --- P ----------------------------------------------------------------------------------------- */

byte ring[NP], runnext[NP]; /* runnext: one goroutine or 0 */
bit running[NP];            /* status is P_RUNNING */

/* --- M ----------------------------------------------------------------------------------------- */

byte mp_p[NM], nextp[NM];
bit spinning[NM], park_posted[NM];

/* --- sysmon and factory ------------------------------------------------------------------------- */

bit asleep, kicked;
byte want_m, nwant_m;
bit handoff_spinning[NP], unborn, no_threads, failed;

/* --- what must hold ----------------------------------------------------------------------------- */

byte put, ran; /* submitted; started */
byte hog;
byte hog_p = NP; /* the P on which the hog computes: counts.switches stands still */
byte held[NP]; /* by M held - 1; by the factory if NM + 1 */

#define NEXTS (runnext[0] | runnext[1] | runnext[NP - 1])
#define ONE_SPINNER (spinning[0] + spinning[1] + (NM > 2 -> spinning[NM - 1] : 0) <= 1)

ltl live { <> (ran == ALL) }
ltl prompt { <> [] ((ran | NEXTS) == ALL) }

/* --- store buffers ------------------------------------------------------------------------------ */

#define TAIL 1      /* runq.tail: arg is in the ring of the thread's P */
#define NEXT 2      /* runq.next = arg */
#define SIZE 3      /* globq.size */
#define NPIDLE 4    /* npidle++ */
#define NSPINNING 5 /* nspinning = 0 */
#define ASLEEP 6    /* sysmon.asleep = 1 */
#define KICKED 7    /* status of P arg = P_RUNNING; sysmon.kicked = 1 */

byte buf[NM + 3], arg[NM + 3];

inline flush(t)
{
    if
    :: buf[t] == TAIL -> ring[mp_p[t]] = ring[mp_p[t]] | arg[t]
    :: buf[t] == NEXT -> runnext[mp_p[t]] = arg[t]
    :: buf[t] == SIZE -> gsize = (globq != 0)
    :: buf[t] == NPIDLE -> npidle++
    :: buf[t] == NSPINNING -> nspinning = 0
    :: buf[t] == ASLEEP -> asleep = 1
    :: buf[t] == KICKED -> running[arg[t]] = 1; kicked = 1
    :: else
    fi;
    buf[t] = 0;
    arg[t] = 0
}

/* Inside atomic or d_step. */
inline store(t, what, value)
{
    flush(t);
    buf[t] = what;
    arg[t] = value;
#ifndef BUFFERS
    flush(t)
#endif
}

inline fence(t)
{
#ifdef BUFFERS
    d_step { flush(t) }
#else
    skip
#endif
}

inline no_fence(t)
{
    skip
}

#ifdef BUG_NO_W1
#define fence_W1 no_fence
#else
#define fence_W1 fence
#endif
#ifdef BUG_NO_W2
#define fence_W2 no_fence
#else
#define fence_W2 fence
#endif
#ifdef BUG_NO_W3
#define fence_W3 no_fence
#else
#define fence_W3 fence
#endif
#ifdef BUG_NO_S1
#define fence_S1 no_fence
#else
#define fence_S1 fence
#endif

#ifdef BUFFERS
active proctype bus()
{
end:
    do
    :: d_step { buf[0] -> flush(0) }
    :: d_step { buf[1] -> flush(1) }
#if NM > 2
    :: d_step { buf[2] -> flush(2) }
#endif
    :: d_step { buf[FOREIGN] -> flush(FOREIGN) }
    :: d_step { buf[SYSMON_T] -> flush(SYSMON_T) }
    od
}

inline publish(t)
{
    if
    :: buf[t] == SIZE || buf[t] == NPIDLE -> flush(t)
    :: else
    fi
}
#endif

/* First in an atomic, which is the section. */
inline lock(t)
{
    !sched_lock;
#ifdef BUFFERS
    flush(t);
    publish(0);
    publish(1);
    publish(NM - 1);
    publish(FOREIGN)
#endif
}

/* --- idle.c: the lists, under sched.lock --------------------------------------------------------- */

inline pick(set, x)
{
    if
    :: (set) & 1 -> x = 0
    :: (set) & 2 -> x = 1
    :: (set) & 4 -> x = 2
    fi
}

inline pidle_put_locked(t, pp)
{
    held[pp] = 0;
    running[pp] = 0;
    pidle = pidle | BIT(pp);
    store(t, NPIDLE, 0)
}

/* With sysmon_kick(). */
inline pidle_get_locked(t, pp)
{
    pick(pidle, pp);
    pidle = pidle & ~BIT(pp);
    npidle--;
    assert(!held[pp]);
#ifdef BUG_NO_S2 /* it reads `asleep` before its stores are seen */
    store(t, KICKED, pp);
#else
    running[pp] = 1;
#ifdef SYSMON
    kicked = 1;
#endif
#endif
    if
    :: asleep -> asleep = 0; woke = 0 /* tell_time() */
    :: else
    fi
}

/* Leaves in wm the M whose note is to be posted, if any. */
inline give_locked(pp, spins)
{
    if
    :: midle ->
        pick(midle, wm);
        midle = midle & ~BIT(wm);
        nextp[wm] = pp;
        held[pp] = wm + 1;
        spinning[wm] = spins;
        assert(ONE_SPINNER)
    :: else -> /* factory_want_locked() */
        want_m = want_m | BIT(pp);
        nwant_m++;
        held[pp] = NM + 1;
        handoff_spinning[pp] = spins
    fi
}

/* --- idle.c: waking ------------------------------------------------------------------------------ */

inline note_post()
{
    atomic {
        if
        :: wm != NO_M -> assert(!park_posted[wm]); park_posted[wm] = 1; wm = NO_M
        :: else
        fi
    }
}

/* Who calls it has the locals yes, wp and wm. */
inline wake_one(t)
{
    if
    :: atomic { !nspinning -> flush(t); nspinning = 1 } /* the CAS */
        atomic {
            lock(t);
            if
            :: pidle && (midle || !no_threads) ->
                pidle_get_locked(t, wp);
                give_locked(wp, 1);
                wp = 0
            :: else ->
#ifdef BUG_WAKE_UNLOCKED /* nspinning = 0 after the unlock */
                yes = 1
#else
                nspinning = 0
#endif
            fi
        };
#ifdef BUG_WAKE_UNLOCKED
        if
        :: yes -> nspinning = 0; yes = 0
        :: else
        fi;
#endif
        note_post()
    :: else
    fi
}

/* With wake_slow() and leave_out(). */
inline wake_if_idle(t, only_runnext)
{
    if
    :: !npidle
    :: else ->
        if
        :: nspinning
#ifdef FUTILE
        :: !nspinning && only_runnext && futile && woke
        :: !nspinning && only_runnext && !(futile && woke) -> woke = 1; wake_one(t)
        :: !nspinning && !only_runnext -> wake_one(t)
#else
        :: else -> wake_one(t)
#endif
        fi
    fi
}

/* --- findwork.c --------------------------------------------------------------------------------- */

#ifdef FUTILE
#define WORK(i) (ring[i] || (!futile && runnext[i]))
#else
#define WORK(i) (ring[i] || runnext[i])
#endif

/* The answer is in yes. */
inline work_visible()
{
    if
    :: d_step { gsize -> yes = 1 }
    :: else ->
        if
        :: d_step { WORK(0) -> yes = 1 }
        :: else ->
#if NP == 2
            yes = WORK(1)
#else
            if
            :: d_step { WORK(1) -> yes = 1 }
            :: else -> yes = WORK(2)
            fi
#endif
        fi
    fi
}

inline take(set, g)
{
    g = (set & 1 -> 1 : (set & 2 -> 2 : (set & 4 -> 4 : 8)));
    set = set & ~g
}

/* choose() of switch.h. global: it was in the global queue. */
inline next_local()
{
    atomic {
        assert(held[mp_p[m]] == m + 1);
        flush(m); /* its own stores it sees */
        if
        :: runnext[mp_p[m]] -> gp = runnext[mp_p[m]]; runnext[mp_p[m]] = 0
        :: !runnext[mp_p[m]] && ring[mp_p[m]] -> take(ring[mp_p[m]], gp)
        :: else
        fi
    };
    if
    :: !gp && gsize -> /* next_global() */
        atomic {
            lock(m);
            if
            :: globq ->
                global = 1;
                take(globq, gp);
                if
                :: globq && NP == 2 -> /* a batch: first the ring, then the size: [B1] */
                    sched_lock = 1;
                    yes = 1;
                    take(globq, moved);
                    ring[mp_p[m]] = ring[mp_p[m]] | moved;
                    moved = 0
                :: else -> gsize = (globq != 0)
                fi
            :: else
            fi
        };
        if
        :: yes -> d_step { yes = 0; gsize = (globq != 0); sched_lock = 0 }
        :: else
        fi
    :: else
    fi
}

/* runq_steal() and steal_runnext(), from the n-th P after its own. */
inline steal(n)
{
    if
    :: !gp ->
        v = (mp_p[m] + n) % NP;
        d_step { /* the CAS of head */
            if
            :: ring[v] ->
                take(ring[v], gp);
                if
                :: ring[v] -> take(ring[v], moved)
                :: else
                fi
            :: else
            fi
        };
        if
        :: moved -> d_step { store(m, TAIL, moved); moved = 0 }
        :: else
        fi;
        if
        :: !gp && runnext[v] && running[v] ->
            moved = runnext[v];
            atomic {
                if
                :: runnext[v] == moved -> gp = moved; runnext[v] = 0; futile = 0 /* the CAS */
                :: runnext[v] != moved || hog_p != v /* the owner has switched meanwhile */
                fi;
                moved = 0
            }
        :: else
        fi;
        v = 0
    :: else
    fi
}

/* --- schedule.c --------------------------------------------------------------------------------- */

/* runq_submit(pp, g, true) */
inline runq_submit(g)
{
    atomic {
        flush(m);
        put = put | g;
        gp = runnext[mp_p[m]]; /* the xchg; whom it pushes aside queues */
        if
        :: gp -> runnext[mp_p[m]] = g
        :: else -> store(m, NEXT, g)
        fi
    };
    if
    :: gp ->
        d_step { store(m, TAIL, gp); gp = 0 };
        fence_W1(m);
        wake_if_idle(m, 0)
    :: else ->
        fence_W1(m);
        wake_if_idle(m, !ring[mp_p[m]])
    fi
}

/* --- idle.c: spinning --------------------------------------------------------------------------- */

inline spin_begin()
{
    d_step {
        if
        :: !spinning[m] && !nspinning ->
            flush(m);
            nspinning = 1;
            spinning[m] = 1;
            assert(ONE_SPINNER)
        :: else
        fi
    }
}

inline wake_for_more()
{
    fence_W3(m);
    if
    :: !npidle
    :: else ->
        if
        :: nspinning
        :: else ->
            work_visible();
            if
            :: yes -> yes = 0; wake_one(m)
            :: else
            fi
        fi
    fi
}

/* --- idle.c: sleeping --------------------------------------------------------------------------- */

/* Nothing may be on its way when it would speak. */
inline deadlock_check_locked()
{
    atomic {
        lock(m);
        if
        :: midle == (ALL_M & ~(unborn << (NM - 1))) && !nwant_m && !globq && pidle == ALL_P &&
            !nforeign -> assert(put == ran)
        :: else
        fi
    }
}

/* Up to the sleep: sleeps says that it must. */
inline m_idle()
{
    atomic {
        lock(m);
        if
        :: globq
        :: else ->
            assert(held[mp_p[m]] == m + 1);
            pidle_put_locked(m, mp_p[m]);
            mp_p[m] = 0;
            midle = midle | BIT(m);
#ifndef BUG_LATE_FLAG
            spins = spinning[m];
            spinning[m] = 0;
#endif
            sleeps = 1
        fi
    };
    if
    :: sleeps ->
#ifdef BUG_LATE_FLAG /* after the unlock, when the flag is the waker's */
        spins = spinning[m];
        spinning[m] = 0;
#endif
        if
        :: spins ->
            d_step { spins = 0; store(m, NSPINNING, 0) };
#ifdef FUTILE
            futile = 1
#endif
        :: else
        fi;
        fence_W2(m);
#ifndef BUG_NO_RECHECK
        work_visible();
        if
        :: yes -> /* come_back() */
            yes = 0;
            atomic {
                lock(m);
                if
                :: (midle & BIT(m)) && pidle ->
                    midle = midle & ~BIT(m);
                    pidle_get_locked(m, mp_p[m]);
                    held[mp_p[m]] = m + 1;
                    sleeps = 0
                :: else
                fi
            };
            if
            :: !sleeps -> spin_begin()
            :: else
            fi
        :: else
        fi;
#endif
        if
        :: sleeps && npidle == NP -> deadlock_check_locked()
        :: else
        fi
    :: else
    fi
}

inline compute(g)
{
    if
    :: hog == g -> hog_p = mp_p[m]; ran == ALL
    :: else
    fi
}

/* --- the threads -------------------------------------------------------------------------------- */

proctype M(byte m; bit sleeps)
{
    byte gp, moved, v, wp, wm = NO_M;
    bit yes, global, spins;

    if
    :: m == 0 -> goto root
    :: m && !sleeps -> goto find_work
    :: m && sleeps -> goto sleep_until_given
    fi;

root:
#if NROOT > 0
    runq_submit(1);
#endif
#if NROOT > 1
    runq_submit(2);
#endif
    compute(ROOT);

next_runnable: /* a goroutine has ended: straight to the next */
    next_local();
    if
    :: gp && !global -> goto run_gp
    :: gp && global -> global = 0; wake_for_more(); goto run_gp
    :: else
    fi;

find_work:
    next_local();
    global = 0;
    steal(1);
#if NP > 2
    steal(2);
#endif
    if
    :: gp ->
        if
        :: spinning[m] -> /* spin_end() */
            d_step { spinning[m] = 0; store(m, NSPINNING, 0) };
#ifndef BUG_NO_MORE /* a spinner that has found work does not look for more */
            wake_for_more()
#endif
        :: else ->
#ifndef BUG_NO_MOVED /* who has moved work does not look again */
            wake_for_more()
#endif
        fi;
        goto run_gp
    :: else
    fi;
    spin_begin(); /* spin() */
    if
    :: spinning[m] ->
        work_visible();
        if
        :: yes -> yes = 0; goto find_work
        :: yes = 0 /* time is up */
        fi
    :: else
    fi;
    m_idle();
    if
    :: !sleeps -> goto find_work
    :: else
    fi;

sleep_until_given:
end:
    atomic {
        park_posted[m] ->
        park_posted[m] = 0;
        mp_p[m] = nextp[m];
        nextp[m] = 0;
        sleeps = 0
    };
    goto find_work;

run_gp:
    atomic {
        assert(!(ran & gp));
        ran = ran | gp
    };
#ifdef CHILD
    if
    :: gp == 1 -> gp = 0; runq_submit(THE_CHILD); gp = 1
    :: else
    fi;
#endif
    compute(gp);
    gp = 0;
    goto next_runnable
}

/* In yes. Who is not the hog may have switched since the last look, or not. */
inline look_at(i)
{
    if
    :: running[i] && runnext[i] -> futile = 0; yes = 1 /* it computes */
    :: running[i] && hog_p != i -> yes = yes || ring[i]
    :: running[i] && hog_p == i && !runnext[i] -> yes = yes || ring[i]
    :: !running[i]
    fi
}

#define ALL_IDLE (!running[0] && !running[1] && !running[NP - 1])

proctype sysmon()
{
    byte wp, wm = NO_M;
    bit yes;
    do
    :: atomic { /* look_at_all(): what it sees wrong it sees right the next time */
            kicked = 0;
            woke = 0;
            no_threads = 0;
            yes = gsize;
            look_at(0);
            look_at(1);
#if NP > 2
            look_at(2);
#endif
            yes = yes && npidle
        };
        if
        :: yes -> yes = 0; wake_one(SYSMON_T)
        :: else
        fi;
        if
        :: ALL_IDLE -> /* sleep_deep() */
            d_step { store(SYSMON_T, ASLEEP, 0) };
            fence_S1(SYSMON_T);
            if
            :: ALL_IDLE ->
                if
                :: kicked
                :: else -> /* futex_wait() */
                    fence(SYSMON_T);
end:                !asleep
                fi
            :: else
            fi;
            d_step { flush(SYSMON_T); asleep = 0 }
        :: else
        fi
    od
}

proctype factory()
{
    byte wm = NO_M, pp;
end:
    do
    :: atomic { want_m && !sched_lock -> pick(want_m, pp); want_m = want_m & ~BIT(pp) };
        if
        :: unborn -> /* m_start() */
            d_step {
                unborn = 0;
                nextp[NM - 1] = pp;
                held[pp] = NM;
                spinning[NM - 1] = handoff_spinning[pp];
                assert(ONE_SPINNER);
                park_posted[NM - 1] = 1
            }
#ifdef SYSMON
        :: !failed -> /* give_up() */
            atomic {
                lock(FACTORY_T);
                failed = 1;
                no_threads = 1;
                if
                :: midle -> give_locked(pp, handoff_spinning[pp])
                :: else ->
                    pidle_put_locked(FACTORY_T, pp);
                    nspinning = nspinning && !handoff_spinning[pp]
                fi
            };
            note_post()
#endif
        fi;
        atomic { !sched_lock; nwant_m--; pp = 0 }
    od
}

inline begin()
{
    if
    :: hog = 0
    :: hog = ROOT
    :: hog = 1
#if NROOT
    :: hog = FIRST_FOREIGN
#endif
    fi;
#ifdef FACTORY
    unborn = 1;
#endif
    do
    :: i < NP && i < NM - unborn -> mp_p[i] = i; held[i] = i + 1; running[i] = 1; i++
    :: i < NP && i >= NM - unborn -> pidle = pidle | BIT(i); npidle++; i++
    :: i >= NP && i < NM -> midle = midle | BIT(i); i++
    :: i >= NP && i >= NM -> break
    od;
    i = 0;
    do
    :: i < NM -> run M(i, i >= NP || i >= NM - unborn); i++
    :: else -> i = 0; break
    od;
#ifdef FUTILE
    woke = 1; /* the worst: no wake for runnext alone before time passes */
#endif
#ifdef SYSMON
    run sysmon();
#endif
#ifdef FACTORY
    run factory()
#endif
}

/* The beginning, then the foreign thread: spawn_foreign(), or ready() without a P. */
init
{
    byte i, wp, wm = NO_M, g = FIRST_FOREIGN;
    bit yes;
    atomic { begin() };
    do
    :: g < THE_CHILD ->
        d_step { nforeign = 1; put = put | g };
        atomic { lock(FOREIGN); globq = globq | g; store(FOREIGN, SIZE, 0) };
        fence_W1(FOREIGN);
        wake_if_idle(FOREIGN, 0);
        d_step { nforeign = 0; g = g << 1 }
    :: else -> break
    od
}
