/* SPDX-License-Identifier: MIT */
/*
 * Park and ready: src/sched/park.h, park.c, switch.h. A goroutine that waits leaves its stack, and
 * only then, on the far side of the switch, is the commit action carried out by which others can
 * find it. Names are those of the source.
 *
 * What happens. Goroutines 0 and 1 wait NW times each for a token of one object; goroutine 2 gives
 * NB tokens and yields after each; a foreign thread gives the rest. Two Ms run them. How one waits:
 *   LOCKED  as for a wait group: the record goes on a list, the commit unlocks the object;
 *   SLOT    without a lock: the commit puts the record there, or finds a token and says false;
 *   BARE    no commit action: a thread sees G_WAITING and calls ready().
 *
 * What must hold, under weak fairness:
 *   woken   every wait ends, and every goroutine;
 *   refused a ready() too many is a throw (with TWICE);
 *   no_harm a ready() too early is a throw, or it was not too early (with EARLY);
 *   and the assertions: a stack is entered only when it has been left and its sp is stored; a G is
 *   G_RUNNING only on the M that runs it; it is on the run queue once; its stack is given back
 *   when it has been left.
 *
 * Simplified
 *   - One run queue, a set, for all; an M without work waits for it. wake.pml shows that this is
 *     so.
 *   - A switch is three steps: the new G's status (switch_begin), sp of the old one, the change of
 *     stacks. g0 needs no care, for no other M uses it.
 *   - The check and the store in make_runnable() are two steps, as in the source.
 * Left out: foreign threads that wait (a note is all they need), stacks that are taken over or
 * given out, several waiters woken at once.
 *
 *   EARLY    the foreign thread calls ready() whether the goroutine has parked or not
 *   TWICE    it calls ready() twice for one park()
 *   RACE     two foreign threads call ready() at once for one park(): the check in make_runnable()
 *            does not see it, and the goroutine is queued twice. READY_CAS would.
 *   BUG_...  plants one bug, which must be found; each is explained where it stands.
 */
#ifndef NW
#define NW 1
#endif
#ifndef NB
#define NB 1
#endif

#if defined(EARLY) || defined(TWICE) || defined(RACE)
#define BARE
#define MISUSE 1
#else
#define MISUSE 0
#endif

#ifdef BARE /* one goroutine, which only the foreign threads wake */
#define WAITERS 1
#undef NB
#define NB 0
#else
#define WAITERS 2
#endif

#define BIT(i) (1 << (i))
#define GIVER 2
#define NONE 3 /* no goroutine: g0 */

mtype = { G_IDLE, G_RUNNABLE, G_RUNNING, G_WAITING };
mtype = { NO_COMMIT, COMMIT_PARK, COMMIT_YIELD, COMMIT_END };

mtype status[3] = G_RUNNABLE;
bit sp[3] = 1; /* stored: the stack can be entered */
byte runq;

/* The object. */
bit object_lock;
byte tokens, waiters;

/* What must hold. */
byte user[3]; /* the M on this stack, from 1 */
bit in_park[3];
byte waits[3];
bit waited; /* some goroutine has been G_WAITING */
bit thrown;

#define DONE(g) (waits[g] == NW && status[g] == G_IDLE)

ltl woken { <> (DONE(0) && (WAITERS == 1 || DONE(1)) && (!NB || status[GIVER] == G_IDLE)) }
ltl refused { <> thrown }
ltl no_harm { <> (thrown || DONE(0)) }

inline pick(set, x)
{
    if
    :: (set) & 1 -> x = 0
    :: (set) & 2 -> x = 1
    :: (set) & 4 -> x = 2
    fi;
    set = set & ~BIT(x)
}

/* --- park.c ------------------------------------------------------------------------------------- */

inline throw()
{
    atomic { thrown = 1; assert(MISUSE) };
    false
}

inline make_runnable(g)
{
#ifdef READY_CAS /* not in the source */
    if
    :: atomic { status[g] == G_WAITING -> status[g] = G_RUNNABLE }
    :: else -> throw()
    fi
#else
    if
    :: status[g] == G_WAITING -> status[g] = G_RUNNABLE
    :: else -> throw()
    fi
#endif
}

inline runq_put(g)
{
    atomic { assert(!(runq & BIT(g)) && status[g] == G_RUNNABLE); runq = runq | BIT(g) }
}

inline ready(g)
{
    make_runnable(g);
    runq_put(g)
}

inline store_waiting(g)
{
    atomic { assert(status[g] == G_RUNNING); status[g] = G_WAITING; waited = 1 }
}

inline commit_park(g)
{
#ifndef BUG_STATUS_LATE
    store_waiting(g);
#endif
#ifdef BUG_RELAXED /* G_WAITING is not stored RELEASE, and is seen before sp */
    sp[g] = 1;
#endif
#ifdef SLOT
    atomic {
        if
        :: tokens -> tokens--; ok = 0
        :: else -> waiters = waiters | BIT(g)
        fi
    };
#endif
#ifdef LOCKED
    object_lock = 0;
#endif
#ifdef BUG_STATUS_LATE /* G_WAITING is stored after the commit action */
    store_waiting(g);
#endif
    if
    :: !ok ->
        ok = 1;
#ifndef BUG_FALSE_IGNORED /* the commit says false, and it waits nevertheless */
        ready(g)
#endif
    :: else
    fi
}

/* --- switch.h ----------------------------------------------------------------------------------- */

inline switch_finish()
{
    if
    :: commit == COMMIT_PARK -> commit_park(from)
    :: commit == COMMIT_YIELD ->
        atomic { assert(status[from] == G_RUNNING); status[from] = G_RUNNABLE };
        runq_put(from)
    :: commit == COMMIT_END ->
        atomic { assert(!user[from]); status[from] = G_IDLE }
    :: else
    fi;
    commit = NO_COMMIT
}

/* --- the object ---------------------------------------------------------------------------------- */

inline give()
{
#ifdef LOCKED
    atomic { !object_lock -> object_lock = 1 };
#endif
    atomic {
        if
        :: waiters -> pick(waiters, w)
        :: else -> tokens++
        fi
    };
#ifdef LOCKED
    object_lock = 0;
#endif
    if
    :: w != NONE -> ready(w); w = NONE
    :: else
    fi
}

/* --- the threads --------------------------------------------------------------------------------- */

proctype M(byte m)
{
    byte curg = NONE, next_g = NONE, from = NONE, w = NONE, given;
    mtype commit = NO_COMMIT;
    bit ok = 1; /* what the commit action says */

find_work:
end:
    atomic { runq -> pick(runq, next_g) };
    goto switch_to;

waiter:
    assert(status[curg] == G_RUNNING && user[curg] == m);
    if
    :: atomic { in_park[curg] -> in_park[curg] = 0; waits[curg]++ }
    :: else
    fi;
    if
    :: waits[curg] == NW -> commit = COMMIT_END; goto switch_away
    :: else
    fi;
#ifdef LOCKED
    atomic { !object_lock -> object_lock = 1 };
    if
    :: tokens ->
        atomic { tokens--; waits[curg]++ };
        object_lock = 0;
        goto waiter
    :: else -> waiters = waiters | BIT(curg)
    fi;
#endif
    atomic { in_park[curg] = 1; commit = COMMIT_PARK }; /* park() */
    goto switch_away;

giver:
    assert(status[curg] == G_RUNNING && user[curg] == m);
    if
    :: waits[GIVER] == NB -> commit = COMMIT_END; goto switch_away
    :: else
    fi;
    give();
    waits[GIVER]++; /* its count of tokens given */
    commit = COMMIT_YIELD;

switch_away:
    atomic {
        from = curg;
        if
        :: runq -> pick(runq, next_g) /* choose() */
        :: else
        fi
    };
#ifdef BUG_EARLY_COMMIT /* the commit action comes before the stack is left */
    if
    :: commit != COMMIT_END -> switch_finish()
    :: else
    fi;
#endif
#ifdef BUG_EARLY_END /* a goroutine that ends gives its stack back while it is on it */
    if
    :: commit == COMMIT_END -> switch_finish()
    :: else
    fi;
#endif

switch_to:
    if
    :: atomic {
        next_g != NONE -> /* switch_begin() */
        assert(status[next_g] == G_RUNNABLE);
        status[next_g] = G_RUNNING
    }
    :: else
    fi;
    if
    :: from != NONE ->
#ifdef BUG_RELAXED
        if
        :: commit != COMMIT_PARK -> sp[from] = 1
        :: else
        fi
#else
        sp[from] = 1
#endif
    :: else
    fi;
    atomic { /* arch_switch() */
        if
        :: from != NONE -> assert(user[from] == m); user[from] = 0
        :: else
        fi;
        if
        :: next_g != NONE -> assert(!user[next_g] && sp[next_g]); user[next_g] = m; sp[next_g] = 0
        :: else
        fi;
        curg = next_g;
        next_g = NONE
    };
    switch_finish();
    from = NONE;
    if
    :: curg == NONE -> goto find_work
    :: curg == GIVER -> goto giver
    :: curg < GIVER -> goto waiter
    fi
}

proctype foreign(byte n)
{
    byte w = NONE;
    do
    :: n ->
#ifdef BARE
#ifdef RACE
        waited;
#else
#ifndef EARLY
        status[0] == G_WAITING;
#endif
#endif
        ready(0);
#ifdef TWICE
        ready(0);
#endif
#else
        give();
#endif
        n--
    :: else -> break
    od
}

init
{
    atomic {
        run M(1);
        run M(2);
        runq = BIT(WAITERS) - 1;
        if
        :: NB -> runq = runq | BIT(GIVER)
        :: else
        fi;
#ifdef RACE
        run foreign(1);
        run foreign(1)
#else
        run foreign(WAITERS * NW - NB)
#endif
    }
}
