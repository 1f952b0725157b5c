/* SPDX-License-Identifier: MIT */
/*
 * The idle and wake-up protocol of src/sched/idle.c, with those who use it: runq_submit
 * (schedule.c), find_work and steal (findwork.c), ready() on a foreign thread (park.c), sysmon.c and
 * factory.c. Names and labels ([W1], [W2], ...) are those of the source; an inline without a word
 * about it is the function of that name.
 *
 * What happens. Goroutine `root` runs on M 0 and submits NROOT goroutines, each into runnext, from
 * where it pushes the one before into the ring. The other Ms look for work, sleep and are woken. (If
 * NROOT is 0 there is no root, and all sleep.) A foreign thread puts NFOREIGN on the global queue. One goroutine, the hog, may compute until all
 * others have run: its P is of no use to them meanwhile, and only a wake-up helps.
 *
 * What must hold, under weak fairness (a thread that can go on will):
 *   live    every goroutine runs;
 *   prompt  without sysmon every goroutine runs but those left in the runnext of a P;
 *   and the assertions: at most one M spins; a P has one M; a goroutine runs once; a note is posted
 *   once; the detector of deadlocks does not speak while there is work.
 *
 * Memory. Spin's is sequentially consistent. With BUFFERS the stores that come before a fence in
 * the source go to a buffer of one entry for each thread, which its process `bus` empties some time.
 * A fence waits for that, as do the next such store, a read-modify-write with RELEASE and a lock;
 * a lock also shows what others wrote under it. This is weaker than x86, where the xchg of
 * runnext and the unlock are fences. With all fences in place BUFFERS change nothing, since no
 * thread reads between such a store and its fence.
 *
 * Simplified
 *   - Queues are sets. A thief takes two if there are two, as it takes several from a longer ring.
 *   - A section under sched.lock is one step, unless others can see two changes of it. The idle
 *     lists are sets: any of their Ms and Ps may be taken.
 *   - No clock: 3 us, 10 us and 10 ms may pass between any two steps, or not. counts.switches
 *     stands still for sure only where the hog computes.
 *   - The four rounds of steal() are one; its walk begins at the next P. Who ends a goroutine and
 *     has no other looks at its own queues once, not once more in find_work().
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

/* --- struct sched ------------------------------------------------------------------------------ */

byte pidle, midle, globq; /* under sched.lock */
bit sched_lock;           /* held over more than one step */
bit gsize;                /* globq.size != 0 */
byte npidle;
bit nspinning, futile, nforeign;
bit woke; /* woke_at == coarse_now(), for all Ps */

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
byte hog_p = NP; /* the P on which it computes */
byte held[NP];   /* by M held - 1; by the factory if NM + 1 */

#define NEXTS (runnext[0] | runnext[1] | runnext[NP - 1])
#define ONE_SPINNER (spinning[0] + spinning[1] + (NM > 2 -> spinning[NM - 1] : 0) <= 1)

ltl live { <> (ran == ALL) }
ltl prompt { <> [] ((ran | NEXTS) == ALL) }

/* --- store buffers ------------------------------------------------------------------------------ */

#if defined(BUG_NO_W1) || defined(BUG_NO_W2) || defined(BUG_NO_W3)
#define BUFFERS
#endif
#if defined(BUG_NO_S1) || defined(BUG_NO_S2)
#define BUFFERS
#define BUFFERED(what) (what >= ASLEEP)
#endif
#ifndef BUFFERED
#define BUFFERED(what) true
#endif

#define TAIL 1      /* of runq: arg is in the ring of the thread's P */
#define NEXT 2      /* runq.next = arg */
#define SIZE 3      /* globq.size */
#define NPIDLE 4    /* npidle++ */
#define NSPINNING 5 /* nspinning = 0 */
#define ASLEEP 6    /* sysmon.asleep = 1 */
#define KICKED 7    /* status of P arg = P_RUNNING; sysmon.kicked = 1 */

#ifdef BUFFERS

byte buf[NM + 2], arg[NM + 2];

/* After drained(t). at_once is what the entry comes to. */
#define STORE(t, what, value, at_once) \
    if \
    :: BUFFERED(what) -> buf[t] = what; arg[t] = value \
    :: else -> at_once \
    fi
#define drained(t) (!buf[t])
#define fence(t) drained(t)

inline publish(t)
{
    npidle = npidle + (buf[t] == NPIDLE);
    gsize = (buf[t] == SIZE -> 1 : gsize);
    buf[t] = (buf[t] == NPIDLE || buf[t] == SIZE -> 0 : buf[t])
}

/* First in an atomic, which is the section. */
inline lock(t)
{
    !sched_lock && drained(t);
    publish(0);
    publish(1);
    publish(NM - 1);
    publish(FOREIGN)
}

proctype bus(byte t)
{
end:
    do
    :: atomic {
        buf[t] ->
        if
        :: buf[t] == TAIL -> ring[mp_p[t]] = ring[mp_p[t]] | arg[t]
        :: buf[t] == NEXT -> runnext[mp_p[t]] = arg[t]
        :: buf[t] == SIZE -> gsize = 1
        :: buf[t] == NPIDLE -> npidle++
        :: buf[t] == NSPINNING -> nspinning = 0
        :: buf[t] == ASLEEP -> asleep = 1
        :: buf[t] == KICKED -> running[arg[t]] = 1; kicked = 1
        fi;
        buf[t] = 0;
        arg[t] = 0
    }
    od
}

#else

#define STORE(t, what, value, at_once) at_once
#define drained(t) true
#define fence(t) true
#define lock(t) !sched_lock

#endif

#ifdef BUG_NO_W1
#define fence_W1(t) true
#else
#define fence_W1(t) fence(t)
#endif
#ifdef BUG_NO_W2
#define fence_W2(t) true
#else
#define fence_W2(t) fence(t)
#endif
#ifdef BUG_NO_W3
#define fence_W3(t) true
#else
#define fence_W3(t) fence(t)
#endif
#ifdef BUG_NO_S1
#define fence_S1(t) true
#else
#define fence_S1(t) fence(t)
#endif

/* --- idle.c: the lists, under sched.lock --------------------------------------------------------- */

inline pick(set, x)
{
    if
    :: (set) & 1 -> x = 0
    :: (set) & 2 -> x = 1
    :: (set) & 4 -> x = 2
    fi
}

/* With sysmon_kick(). */
inline pidle_get_locked(t, pp)
{
    pick(pidle, pp);
    pidle = pidle & ~BIT(pp);
    npidle--;
    assert(!held[pp]);
#ifdef BUG_NO_S2 /* it reads `asleep` before its stores are seen */
    STORE(t, KICKED, pp, skip);
#else
    running[pp] = 1;
#ifdef SYSMON
    kicked = 1;
#endif
#endif
#ifdef SYSMON
    if
    :: asleep -> asleep = 0; woke = 0 /* tell_time() */
    :: else
    fi
#endif
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
    if
    :: atomic { wm != NO_M -> assert(!park_posted[wm]); park_posted[wm] = 1; wm = NO_M }
    :: else
    fi
}

/* Who calls it has the locals wp and wm. */
inline wake_one(t)
{
    if
    :: atomic { !nspinning && drained(t) -> nspinning = 1 } /* the CAS */
        atomic {
            lock(t);
            if
            :: pidle && (midle || !no_threads) ->
                pidle_get_locked(t, wp);
                give_locked(wp, 1);
                wp = 0
            :: else ->
#ifdef BUG_WAKE_UNLOCKED /* nspinning = 0 after the unlock */
                wp = NP
#else
                nspinning = 0
#endif
            fi
        };
#ifdef BUG_WAKE_UNLOCKED
        if
        :: wp == NP -> nspinning = 0; wp = 0
        :: else
        fi;
#endif
        note_post()
    :: nspinning
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
        :: d_step { !nspinning && !(only_runnext && futile && woke) -> woke = woke || only_runnext }
#else
        :: else ->
#endif
            wake_one(t)
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

/* choose() of switch.h. global: from the global queue. */
inline next_local()
{
    atomic {
        drained(m); /* its own stores it sees */
        assert(held[mp_p[m]] == m + 1);
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
        :: atomic { yes -> yes = 0; gsize = (globq != 0); sched_lock = 0 }
        :: else
        fi
    :: else
    fi
}

/* runq_steal() and steal_runnext(), from the n-th P after its own. */
inline steal(n)
{
    if
    :: gp
    :: else ->
        atomic {
            v = (mp_p[m] + n) % NP;
            if
            :: ring[v] -> /* the CAS of head */
                take(ring[v], gp);
                if
                :: ring[v] -> take(ring[v], moved)
                :: else
                fi
            :: else
            fi
        };
        if
        :: atomic { moved -> STORE(m, TAIL, moved, ring[mp_p[m]] = moved); moved = 0 }
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
    fi
}

/* --- schedule.c --------------------------------------------------------------------------------- */

/* runq_submit(pp, g, true). Whom it pushes aside queues. */
inline runq_submit(g)
{
    atomic {
        drained(m);
        put = put | g;
        gp = runnext[mp_p[m]]; /* the xchg */
        if
        :: gp -> runnext[mp_p[m]] = g
        :: else -> STORE(m, NEXT, g, runnext[mp_p[m]] = g)
        fi
    };
    if
    :: atomic { gp -> STORE(m, TAIL, gp, ring[mp_p[m]] = ring[mp_p[m]] | gp) }
    :: else
    fi;
    fence_W1(m);
    only_runnext = !gp && !ring[mp_p[m]];
    gp = 0;
    wake_if_idle(m, only_runnext)
}

/* --- idle.c: spinning --------------------------------------------------------------------------- */

inline spin_begin()
{
    if
    :: atomic {
        !spinning[m] && !nspinning ->
        nspinning = 1;
        spinning[m] = 1;
        assert(ONE_SPINNER)
    }
    :: else
    fi
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
        assert(!(midle == (ALL_M & ~(unborn << (NM - 1))) && !nwant_m && !globq && !nforeign &&
            pidle == ALL_P && put != ran))
    }
}

/* Up to the sleep; sleeps says that it must. */
inline m_idle()
{
    atomic {
        lock(m);
        if
        :: globq
        :: else ->
            assert(held[mp_p[m]] == m + 1);
            held[mp_p[m]] = 0; /* pidle_put_locked() */
            running[mp_p[m]] = 0;
            pidle = pidle | BIT(mp_p[m]);
            STORE(m, NPIDLE, 0, npidle++);
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
        :: atomic { spins && drained(m) -> STORE(m, NSPINNING, 0, nspinning = 0); spins = 0 }
#ifdef FUTILE
            futile = 1
#endif
        :: !spins
        fi;
        fence_W2(m);
#ifndef BUG_NO_RECHECK
        work_visible();
#endif
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
        :: !yes && npidle == NP -> deadlock_check_locked()
        :: else
        fi
    :: else
    fi
}

/* --- the threads -------------------------------------------------------------------------------- */

/* A goroutine: submits those in todo, then computes, if it is the hog. */
inline goroutine(g)
{
    do
    :: atomic { todo -> take(todo, v) } runq_submit(v); v = 0
    :: else -> break
    od;
    if
    :: hog == g -> hog_p = mp_p[m]; ran == ALL
    :: else
    fi
}

proctype M(byte m; bit sleeps)
{
    byte gp, moved, v, wp, wm = NO_M, curg, todo;
    bit yes, global, spins, ended, only_runnext;

    if
    :: atomic { m == 0 && !sleeps -> curg = ROOT; todo = BIT(NROOT) - 1 }
        goto run_curg
    :: m && !sleeps -> goto find_work
    :: sleeps -> goto sleep_until_given
    fi;

find_work:
    next_local();
    if
    :: atomic { gp && ended && !global -> ended = 0 } /* switch_to() without g0 */
        goto switch_to
    :: gp && (!ended || global) -> goto found
    :: else -> ended = 0
    fi;
    steal(1);
#if NP > 2
    steal(2);
#endif
    if
    :: gp -> goto found
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

found:
    if
    :: atomic {
        spinning[m] && drained(m) -> /* spin_end() */
        spinning[m] = 0;
        STORE(m, NSPINNING, 0, nspinning = 0)
    }
#ifdef BUG_NO_MORE /* a spinner that has found work does not look for more */
        goto switch_to
#endif
    :: !spinning[m]
#ifdef BUG_NO_MOVED /* who has moved work does not look for more */
        -> goto switch_to
#endif
    fi;
    wake_for_more();

switch_to:
    atomic {
        assert(!(ran & gp));
        ran = ran | gp;
        curg = gp;
        gp = 0;
        ended = 0;
        global = 0;
#ifdef CHILD
        todo = (curg == 1 -> THE_CHILD : 0)
#endif
    };

run_curg:
    goroutine(curg);
    atomic { true -> curg = 0; ended = 1 };
    goto find_work
}

/* In yes. Who is not the hog may have switched since the last look, or not. */
inline look_at(i)
{
    if
    :: running[i] && runnext[i] -> futile = 0; yes = 1 /* it computes */
    :: running[i] && !(hog_p == i && runnext[i]) -> yes = yes || ring[i]
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
            atomic { drained(SYSMON_T); STORE(SYSMON_T, ASLEEP, 0, asleep = 1) };
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
            atomic { drained(SYSMON_T); asleep = 0 }
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
        :: atomic { unborn -> /* m_start() */
            unborn = 0;
            nextp[NM - 1] = pp;
            held[pp] = NM;
            spinning[NM - 1] = handoff_spinning[pp];
            assert(ONE_SPINNER);
            park_posted[NM - 1] = 1
        }
#ifdef SYSMON
        :: atomic { !failed && !sched_lock -> /* give_up() */
            failed = 1;
            no_threads = 1;
            if
            :: midle -> give_locked(pp, handoff_spinning[pp])
            :: else ->
                held[pp] = 0;
                running[pp] = 0;
                pidle = pidle | BIT(pp);
                npidle++;
                nspinning = nspinning && !handoff_spinning[pp]
            fi
        }
            note_post()
#endif
        fi;
        atomic { !sched_lock; nwant_m--; pp = 0 }
    od
}

inline begin()
{
    if
#ifdef HOG
    :: hog = HOG
#else
    :: hog = 0
    :: hog = ROOT
    :: hog = 1
#if NROOT
    :: hog = FIRST_FOREIGN
#endif
#endif
    fi;
#ifdef FACTORY
    unborn = 1;
#endif
#ifdef FUTILE
    woke = 1; /* the worst: no wake for runnext alone before time passes */
#endif
    do /* Ms that have a P */
    :: NROOT && i < NP && i < NM - unborn ->
        mp_p[i] = i; held[i] = i + 1; running[i] = 1; run M(i, 0); i++
    :: else -> n = i; break
    od;
    do /* Ms that sleep, or are not born */
    :: i < NM - unborn -> midle = midle | BIT(i); run M(i, 1); i++
    :: i == NM - 1 && unborn -> run M(i, 1); i++
    :: else -> break
    od;
    for (i : n .. NP - 1) { pidle = pidle | BIT(i); npidle++ }
    i = 0;
    n = 0;
#ifdef BUFFERS
    do
    :: i < NM + (NFOREIGN > 0) -> run bus(i); i++
    :: else -> i = 0; break
    od;
#endif
#ifdef SYSMON
#ifdef BUFFERS
    run bus(SYSMON_T);
#endif
    run sysmon();
#endif
#ifdef FACTORY
    run factory()
#endif
}

/* The beginning, then the foreign thread: spawn_foreign(), or ready() without a P. */
init
{
    byte i, n, wp, wm = NO_M, g = FIRST_FOREIGN;
    atomic { begin() };
    do
    :: g < THE_CHILD ->
        atomic { nforeign = 1; put = put | g };
        atomic { lock(FOREIGN); globq = globq | g; STORE(FOREIGN, SIZE, 0, gsize = 1) };
        fence_W1(FOREIGN);
        wake_if_idle(FOREIGN, 0);
        atomic { nforeign = 0; g = g << 1 }
    :: else -> break
    od
}
