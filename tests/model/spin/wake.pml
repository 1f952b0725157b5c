/* SPDX-License-Identifier: MIT */
/*
 * The idle and wake-up protocol of src/sched/idle.c, with those who use it: runq_submit
 * (schedule.c), find_work and steal (findwork.c), ready() from a foreign thread (park.c), sysmon.c
 * and factory.c. Names and labels ([W1], [W2], ...) are those of the source.
 *
 * What happens. Goroutine `root` runs on M 0 and submits NROOT goroutines, each into runnext, from
 * where it pushes the one before into the ring. A foreign thread puts NFOREIGN on the global
 * queue. The other Ms look for work, sleep and are woken. One goroutine, the hog, may compute until
 * all others have run: its P is of no use to them, and only a wake-up helps.
 *
 * What must hold, under weak fairness (a thread that can go on will):
 *   live    every goroutine runs;
 *   prompt  without sysmon: every goroutine runs, but those left in the runnext of a P;
 *   and the assertions: at most one M spins; a P has one M; a goroutine runs once; the detector of
 *   deadlocks does not speak while there is work.
 *
 * Memory. Spin's is sequentially consistent. So where the source has a fence the store before it
 * goes to a buffer, one entry for each thread, which the process `bus` empties at any time and
 * which fence() empties at once. A second such store, a read-modify-write with RELEASE and a lock
 * empty one's own buffer; a lock also shows what others wrote under it. This is weaker than x86,
 * where the xchg of runnext and the unlock are fences.
 *
 * Simplified
 *   - Queues are sets. A thief takes two, if there are two, as from a longer ring it takes several.
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
 *   FUTILE   sched.futile and leave_out() are in force; else runnext always counts as work
 *   SYSMON   sysmon looks, and sleeps when no P runs
 *   FACTORY  the last M is not born yet; with SYSMON making it may fail once
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
#define ALL (BIT(NROOT + NFOREIGN) - 1) /* goroutines are bits */
#define ROOT 128
#define ALL_P (BIT(NP) - 1)
#define ALL_M (BIT(NM) - 1)
#define NO_M NM

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

/* --- P ----------------------------------------------------------------------------------------- */

byte ring[NP], runnext[NP]; /* runnext: one goroutine or 0 */
bit switches[NP];        /* counts.switches */
bit running[NP];         /* status is P_RUNNING */
bit woke[NP];            /* woke_at == coarse_now() */

/* --- M ----------------------------------------------------------------------------------------- */

byte mp_p[NM], nextp[NM];
bit spinning[NM], park_posted[NM];

/* --- sysmon and factory ------------------------------------------------------------------------- */

bit asleep, kicked, seen_switches[NP];
byte want_m;
bit handoff_spinning[NP], unborn, no_threads, failed;

/* --- what must hold ----------------------------------------------------------------------------- */

byte put, ran; /* submitted; started */
byte hog;
bit held[NP];

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

/* In atomic or d_step. */
inline store(t, what, value)
{
    flush(t);
    buf[t] = what;
    arg[t] = value;
#ifndef BUFFERS
    flush(t)
#endif
}

/* A missing fence is an argument of 0. */
inline fence(t, there)
{
#ifdef BUFFERS
    if
    :: there -> d_step { flush(t) }
    :: !there
    fi
#else
    skip
#endif
}

proctype bus()
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

/* First in an atomic, which is the section. */
inline lock(t)
{
    !sched_lock;
    flush(t);
    publish(0);
    publish(1);
    publish(NM - 1);
    publish(FOREIGN)
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

/* With sysmon_kick(). */
inline pidle_get_locked(t, pp)
{
    pick(pidle, pp);
    pidle = pidle & ~BIT(pp);
    npidle--;
    assert(!held[pp]);
    held[pp] = 1;
#ifdef BUG_NO_S2 /* the kicker reads `asleep` before its stores are seen */
    buf[t] = KICKED;
    arg[t] = pp;
#else
    running[pp] = 1;
    kicked = 1;
#endif
    if
    :: asleep -> asleep = 0; time_passes()
    :: else
    fi
}

inline time_passes()
{
    woke[0] = 0;
    woke[1] = 0;
    woke[NP - 1] = 0
}

/* --- idle.c: waking ------------------------------------------------------------------------------ */

/* give_locked(). Who wakes has locals wp, wm (NO_M: nobody) and yes. */
inline give_locked(spins)
{
    if
    :: midle ->
        pick(midle, wm);
        midle = midle & ~BIT(wm);
        nextp[wm] = wp;
        spinning[wm] = spins;
        assert(ONE_SPINNER)
    :: else -> /* factory_want_locked() */
        want_m = want_m | BIT(wp);
        handoff_spinning[wp] = spins
    fi;
    wp = 0
}

inline note_post()
{
    atomic {
        if
        :: wm != NO_M -> assert(!park_posted[wm]); park_posted[wm] = 1; wm = NO_M
        :: else
        fi
    }
}

inline wake_one(t)
{
    d_step { flush(t); yes = !nspinning; nspinning = 1 } /* the CAS */
    if
    :: yes ->
        yes = 0;
        atomic {
            lock(t);
            if
            :: pidle && (midle || !no_threads) ->
                pidle_get_locked(t, wp);
                give_locked(1)
            :: else ->
#ifdef BUG_WAKE_UNLOCKED /* nspinning = 0 after the unlock */
                yes = 1
#else
                nspinning = 0
#endif
            fi
        };
#ifdef BUG_WAKE_UNLOCKED
        d_step {
            if
            :: yes -> yes = 0; nspinning = 0
            :: else
            fi
        };
#endif
        note_post()
    :: else
    fi
}

/* leave_out() and wake_if_idle(), after [W1]. */
inline wake_if_idle(t, pp, only_runnext)
{
    if
    :: npidle ->
        if
        :: nspinning
        :: else ->
#ifdef FUTILE
            d_step {
                yes = only_runnext && futile && woke[pp];
                woke[pp] = woke[pp] || only_runnext
            }
#endif
            if
            :: yes -> yes = 0
            :: else -> wake_one(t)
            fi
        fi
    :: else
    fi
}

/* --- findwork.c --------------------------------------------------------------------------------- */

#ifdef FUTILE
#define EMPTY(i) (!ring[i] && (futile || !runnext[i]))
#else
#define EMPTY(i) (!ring[i] && !runnext[i])
#endif

inline work_visible()
{
    if
    :: gsize -> yes = 1
    :: else
    fi;
    if
    :: yes || !EMPTY(0) -> yes = 1
    :: else
    fi;
    if
    :: yes || !EMPTY(1) -> yes = 1
    :: else
    fi;
#if NP > 2
    if
    :: yes || !EMPTY(2) -> yes = 1
    :: else
    fi
#else
    skip
#endif
}

/* One of a set that is not empty. */
#define FIRST(set) ((set) & 1 -> 1 : ((set) & 2 -> 2 : ((set) & 4 -> 4 : 8)))

inline take(set, g)
{
    g = FIRST(set);
    set = set & ~g
}

/* choose() of switch.h: runnext, the ring, the global queue. */
inline next_local()
{
    atomic {
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
                :: globq && NP == 2 -> /* a batch: the ring first, then the size [B1] */
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

/* runq_steal() and steal_runnext(). */
inline steal(victim)
{
    if
    :: !gp ->
        v = (mp_p[m] + victim) % NP;
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
        :: moved -> store(m, TAIL, moved); moved = 0
        :: else
        fi;
        if
        :: !gp && runnext[v] && running[v] ->
            d_step { moved = runnext[v]; yes = switches[v] };
            d_step { /* the CAS of next */
                if
                :: runnext[v] == moved && switches[v] == yes ->
                    gp = moved;
                    runnext[v] = 0;
                    futile = 0
                :: else
                fi;
                moved = 0;
                yes = 0
            }
        :: else
        fi;
        v = 0
    :: else
    fi
}

/* --- schedule.c --------------------------------------------------------------------------------- */

/* runq_submit(pp, g, true). Whom it pushes aside queues. */
inline runq_submit(g)
{
    atomic {
        flush(m);
        put = put | g;
        gp = runnext[mp_p[m]]; /* the xchg */
        if
        :: gp -> runnext[mp_p[m]] = g
        :: else -> buf[m] = NEXT; arg[m] = g
        fi
    };
    if
    :: gp ->
        store(m, TAIL, gp);
        gp = 0;
        fence(m, W1);
        wake_if_idle(m, mp_p[m], 0)
    :: else ->
        fence(m, W1);
        wake_if_idle(m, mp_p[m], !ring[mp_p[m]])
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
#ifndef BUG_NO_MORE /* who has found work looks for no more */
    fence(m, W3);
    if
    :: npidle ->
        if
        :: nspinning
        :: else ->
            work_visible();
            if
            :: yes -> yes = 0; wake_one(m)
            :: else
            fi
        fi
    :: else
    fi
#else
    fence(m, 1)
#endif
}

/* --- idle.c: sleeping --------------------------------------------------------------------------- */

/* m_idle(), up to the sleep. slept: it must sleep now. */
inline m_idle()
{
    atomic {
        lock(m);
        if
        :: globq
        :: else ->
            held[mp_p[m]] = 0;
            running[mp_p[m]] = 0;
            pidle = pidle | BIT(mp_p[m]);
            buf[m] = NPIDLE;
            mp_p[m] = 0;
            midle = midle | BIT(m);
#ifndef BUG_LATE_FLAG /* m.spinning is read and cleared after the unlock */
            spins = spinning[m];
            spinning[m] = 0;
#endif
            slept = 1
        fi
    };
    if
    :: slept ->
#ifdef BUG_LATE_FLAG
        d_step { spins = spinning[m]; spinning[m] = 0 };
#endif
        if
        :: spins ->
            spins = 0;
            store(m, NSPINNING, 0);
            futile = 1
        :: else
        fi;
        fence(m, W2);
#ifndef BUG_NO_RECHECK /* it sleeps without another look */
        work_visible();
        if
        :: yes -> /* come_back() */
            yes = 0;
            atomic {
                lock(m);
                if
                :: (midle & BIT(m)) && pidle ->
                    midle = midle & ~BIT(m);
                    pidle_get_locked(m, wp);
                    mp_p[m] = wp;
                    wp = 0;
                    slept = 0
                :: else
                fi
            };
            if
            :: !slept -> spin_begin()
            :: else
            fi
        :: else
        fi;
#endif
        if
        :: slept && npidle == NP -> deadlock_check_locked()
        :: else
        fi
    :: else
    fi
}

/* Nothing may be on its way when it would speak. */
inline deadlock_check_locked()
{
    atomic {
        lock(m);
        if
        :: midle == (ALL_M & ~(unborn << (NM - 1))) && !want_m && !globq &&
            pidle == ALL_P && !nforeign ->
            assert(put == ran)
        :: else
        fi
    }
}

/* --- the threads -------------------------------------------------------------------------------- */

proctype M(byte m)
{
    byte gp, moved, v, wp, wm = NO_M;
    bit yes, global, spins, slept;

    if
    :: m == 0 -> goto root
    :: m && held[m % NP] && m < NP -> goto find_work
    :: else -> goto asleep_m
    fi;

root:
    runq_submit(1);
#if NROOT > 1
    runq_submit(2);
#endif
#if NROOT > 2
    runq_submit(4);
#endif
    (hog != ROOT || ran == ALL);

next_runnable: /* of a goroutine that ends: straight to the next */
    next_local();
    if
    :: gp && global -> global = 0; wake_for_more(); goto run_g
    :: gp && !global -> goto run_g
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
            spinning[m] = 0;
            store(m, NSPINNING, 0)
        :: else
        fi;
        wake_for_more();
        goto run_g
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
    :: !slept -> goto find_work
    :: else
    fi;

asleep_m: /* sleep_until_given() */
end:
    atomic {
        park_posted[m] ->
        park_posted[m] = 0;
        mp_p[m] = nextp[m];
        nextp[m] = 0;
        slept = 0
    };
    goto find_work;

run_g:
    atomic {
        assert(!(ran & gp));
        ran = ran | gp;
        switches[mp_p[m]] = 1 - switches[mp_p[m]]
    };
    (hog != gp || ran == ALL);
    gp = 0;
    goto next_runnable
}

proctype foreign()
{
    byte wp, wm = NO_M, g = BIT(NROOT);
    bit yes;
    do
    :: g < BIT(NROOT + NFOREIGN) ->
        d_step { nforeign = 1; put = put | g };
        atomic { lock(FOREIGN); globq = globq | g; buf[FOREIGN] = SIZE };
        fence(FOREIGN, W1);
        wake_if_idle(FOREIGN, 0, 0);
        d_step { nforeign = 0; g = g << 1 }
    :: else -> break
    od
}

#define ALL_IDLE (!running[0] && !running[1] && !running[NP - 1])

inline look_at(i)
{
    if
    :: running[i] ->
        if
        :: seen_switches[i] == switches[i] && runnext[i] -> futile = 0; yes = 1 /* it computes */
        :: ring[i] -> yes = 1
        :: else
        fi;
        seen_switches[i] = switches[i]
    :: else
    fi
}

proctype sysmon()
{
    byte wp, wm = NO_M;
    bit yes;
    do
    :: kicked = 0;
        d_step { /* look_at_all(): what it sees wrong it sees right the next time */
            time_passes();
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
            store(SYSMON_T, ASLEEP, 0);
            fence(SYSMON_T, S1);
            if
            :: ALL_IDLE ->
                if
                :: kicked
                :: else -> fence(SYSMON_T); end: !asleep /* futex_wait */
                fi
            :: else
            fi;
            d_step { flush(SYSMON_T); asleep = 0 }
        :: else
        fi
    od
}

/* Makes the M that is not born, or gives up. */
proctype factory()
{
    byte wp, wm = NO_M, pp;
    bit yes;
end:
    do
    :: atomic { want_m -> pick(want_m, pp) };
        if
        :: unborn -> /* m_start() */
            d_step {
                unborn = 0;
                nextp[NM - 1] = pp;
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
                :: midle -> wp = pp; give_locked(handoff_spinning[pp])
                :: else ->
                    held[pp] = 0;
                    running[pp] = 0;
                    pidle = pidle | BIT(pp);
                    npidle++;
                    if
                    :: handoff_spinning[pp] -> nspinning = 0
                    :: else
                    fi
                fi
            };
            note_post()
#endif
        fi;
        atomic { !sched_lock; want_m = want_m & ~BIT(pp); pp = 0 }
    od
}

init
{
    byte i;
    atomic {
        if
        :: hog = 0
        :: hog = ROOT
        :: hog = 1
        :: hog = BIT(NROOT)
        fi;
#ifdef FACTORY
        unborn = 1;
#endif
        do
        :: i < NP && i < NM - unborn -> mp_p[i] = i; held[i] = 1; running[i] = 1; i++
        :: i < NP && i >= NM - unborn -> pidle = pidle | BIT(i); npidle++; i++
        :: i >= NP && i < NM -> midle = midle | BIT(i); i++
        :: i >= NP && i >= NM -> break
        od;
        i = 0;
        do
        :: i < NP -> woke[i] = 1; i++ /* at the worst moment */
        :: else -> break
        od;
        i = 0;
        do
        :: i < NM -> run M(i); i++
        :: else -> break
        od;
        i = 0;
        run foreign();
        run bus();
#ifdef SYSMON
        run sysmon();
#endif
#ifdef FACTORY
        run factory();
#endif
    }
}
