#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the explorer with another opinion of what C11 allows, on small random programs.

fuzz.py --program build/model/tests/model/model-fuzz --seconds 60 --seed 1

Each program (fuzz.c has the notation) goes three ways: the explorer with its reductions, the
explorer without them (--bound 99), and the oracle below. All must see the same set of outcomes, and
the same kinds of failure. The first program for which that is not so is made as small as can be and
printed; then the exit code is 1. The programs depend on the seed alone; the time decides how many.

The oracle is axiomatic, C++20's model [intro.races, atomics.order]: an execution is a graph of
events with reads-from and a modification order of each location. It is consistent if
  - coherence: no event happens before one that it comes after in (rf | mo | fr)+;
  - a read-modify-write reads from the store right before it in modification order;
  - release sequences are continued by read-modify-writes only;
  - there is an order S of the SC events for which rules 4.1 to 4.4 of atomics.order hold;
  - sb | rf has no cycle.
The explorer promises the graphs in which sb | rf | mo | S has no cycle, and these are what it is
compared with. --full also counts the outcomes of the others, which it does not show.

Graphs are built event by event in an order that extends sb and rf, which reaches all of them since
each such prefix of a consistent graph is consistent. Events are bits; happens-before is a mask.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

LOCS = 'xyzuablm'
ATOMIC = 'xyzu'
PLAIN = 'ab'
ACQUIRES = {'acq', 'ar', 'sc'}
RELEASES = {'rel', 'ar', 'sc'}
DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'
STRIDE = 24   # events of one thread, at most
SHIFT = 128   # see State
STATES_MOST = 6000  # of one program


class TooBig(Exception):
    pass


# -- programs ---------------------------------------------------------------------------------------

class Op:
    """kind, location, numbers, orders, and the value on which it depends, or None."""

    def __init__(self, kind, loc=None, numbers=(), orders=(), only_if=None, unless=None):
        self.kind, self.loc, self.only_if, self.unless = kind, loc, only_if, unless
        self.numbers, self.orders = tuple(numbers), tuple(orders)

    def __str__(self):
        words = [] if self.only_if is None else [f'?{self.only_if}']
        words += [self.kind] + ([self.loc] if self.loc else [])
        return ' '.join(words + [str(n) for n in self.numbers] + list(self.orders))


class Program:
    def __init__(self, threads, spurious=0, timeouts=0, sleepers=0):
        self.threads = threads
        self.spurious, self.timeouts, self.sleepers = spurious, timeouts, sleepers

    def __str__(self):
        options = ''.join(f'{name} {getattr(self, name)} '
                          for name in ('spurious', 'timeouts', 'sleepers') if getattr(self, name))
        return options + ': ' + ' | '.join(' ; '.join(map(str, t)) for t in self.threads)


def parse(text):
    options, body = text.split(':')
    words = options.split()
    threads = []
    for part in body.split('|'):
        threads.append([])
        for text in filter(str.strip, part.split(';')):
            w = text.split()
            only_if = int(w.pop(0)[1:]) if w[0][0] == '?' else None
            kind = w.pop(0)
            loc = w.pop(0) if w and w[0] in LOCS else None
            numbers = [int(a) for a in w if a.isdigit()]
            threads[-1].append(Op(kind, loc, numbers, w[len(numbers):], only_if))
    return Program(threads, **{k: int(v) for k, v in zip(words[::2], words[1::2])})


# -- the oracle -------------------------------------------------------------------------------------

class State:
    """A graph, and where each thread stands. Sets of events are masks, and those in hb, acq, rel,
    mo, access, lock and futex are double: the low half happens before, the high half (from SHIFT)
    is known, which futex calls pass on too. Knowledge counts for coherence, not for data races.

    pc, last, got     of each thread: next operation, last value, all values
    asleep            of each thread: (location, has a deadline) in a futex wait, or None
    budget            of each thread: spurious wakes and time-outs so far
    count             of each thread: its events
    hb, acq, rel      of each thread: what happens before its next event; what an acquire fence
                      would add; what its last release fence has seen, and the fence
    order             of each thread: what must be carried out before its next event
    mo                of each location: (event, value, what an acquire of it adds, is it an RMW)
    access            of each location: (event, position, reads, SC, plain, hb) of each access
    fences            (event, hb) of SC fences
    before            of each event: what must be carried out before it
    lock, futex       of each: (holder, what taking it adds); what its calls knew
    history           of each lock and futex: its events in order
    seen              of each thread: the events that it read from
    """
    __slots__ = ('pc', 'last', 'got', 'asleep', 'budget', 'count', 'hb', 'acq', 'rel', 'order',
                 'mo', 'access', 'fences', 'before', 'lock', 'futex', 'history', 'seen')

    def copy(self):
        new = State()
        (new.pc, new.last, new.got, new.asleep, new.budget, new.count, new.hb, new.acq, new.rel,
         new.order, new.mo, new.access, new.fences, new.before, new.lock, new.futex, new.history,
         new.seen) = (
             self.pc, self.last, self.got, self.asleep, self.budget, self.count, self.hb, self.acq,
             self.rel, self.order, self.mo, self.access, self.fences, self.before, self.lock,
             self.futex, self.history, self.seen)
        return new

    def key(self):
        mo = self.mo
        return (self.pc, self.asleep, self.budget, self.got, self.seen,
                tuple([w[0] for l in ATOMIC for w in mo[l]]), tuple(self.history.values()),
                tuple(self.history))


def replaced(values, i, value):
    return values[:i] + (value,) + values[i + 1:]


def bits(mask):
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


class Oracle:
    """outcomes, and failures: 'race', 'stuck'. full: all consistent graphs; the default is those
    that the explorer promises."""

    def __init__(self, program, full=False):
        self.p, self.full = program, full
        self.threads = [list(self.expand(t)) for t in program.threads]
        self.n = len(self.threads)
        self.outcomes, self.failures = set(), set()
        self.ordered = any('sc' in op.orders for t in program.threads for op in t)
        self.states = 0
        self.run()

    @staticmethod
    def expand(ops):
        for op in ops:
            if op.kind == 'twice':
                yield Op('load', op.loc, (), op.orders)
                yield Op('load', op.loc, (), op.orders, None, op.numbers[0])
            else:
                yield op

    def start(self):
        s, n = State(), self.n
        s.pc, s.count, s.hb, s.acq, s.rel, s.order = [(0,) * n] * 6
        s.last, s.got, s.asleep = (None,) * n, ('',) * n, (None,) * n
        s.budget, s.seen = ((0, 0),) * n, ((),) * n
        s.mo = {l: ((0, 0, 0, False),) for l in ATOMIC + PLAIN}
        s.access = {l: () for l in ATOMIC + PLAIN}
        s.fences = ()
        s.before = {}
        s.lock = {}
        s.futex = {}
        s.history = {}
        return s

    def run(self):
        level = [self.start()]
        while level:
            following = {}
            for s in level:
                for new in self.steps(s):
                    following[new.key()] = new
            self.states += len(following)
            if self.states > STATES_MOST:
                raise TooBig
            level = following.values()

    def steps(self, s):
        """What can happen next."""
        out, rests = [], True
        for t in range(self.n):
            if self.is_local(s, t):
                return self.step(s, t)
        for t in range(self.n):
            if s.asleep[t]:
                mine = self.wake_up(s, t)
            elif s.pc[t] < len(self.threads[t]):
                mine = [new for new in self.step(s, t) if new is not None]
            else:
                continue
            out += mine
            rests = rests and (not mine or self.spins(s, t))
        if rests:
            self.at_rest(s)
            out += self.time_passes(s)
        return out

    def is_local(self, s, t):
        """Commutes with whatever the others do."""
        if s.asleep[t] or s.pc[t] == len(self.threads[t]):
            return False
        op = self.threads[t][s.pc[t]]
        return (op.kind in ('pause', 'pick') or (op.kind == 'fence' and op.orders != ('sc',))
                or not self.is_done(s, t, op))

    @staticmethod
    def is_done(s, t, op):
        """Is it, or is it left out since its condition does not hold?"""
        return op.only_if in (None, s.last[t]) and (op.unless is None or op.unless != s.last[t])

    def spins(self, s, t):
        """It can't know that it must not look at what is newest, which it does not wait for."""
        if s.asleep[t]:
            return False
        op = self.threads[t][s.pc[t]]
        return op.kind == 'spin' and s.mo[op.loc][-1][1] != op.numbers[0]

    def ended(self, s, t):
        return s.pc[t] == len(self.threads[t]) and not s.asleep[t]

    def may_sleep(self, s):
        return all(self.ended(s, t) or (s.asleep[t] and self.p.sleepers >> t & 1)
                   for t in range(self.n))

    def at_rest(self, s):
        """Nobody can go on: the end, or a mistake, if there is no deadline to wait for."""
        if any(a and a[1] for a in s.asleep):
            return
        if not self.may_sleep(s):
            self.failures.add('stuck')
            return
        got = '/'.join(g + ('' if self.ended(s, t) else '!') for t, g in enumerate(s.got))
        self.outcomes.add(got + '=' + ''.join(DIGITS[s.mo[l][-1][1]] for l in ATOMIC + PLAIN))

    def time_passes(self, s):
        out = []
        for t in range(self.n):
            if s.asleep[t] and s.asleep[t][1]:
                new = self.leave_sleep(s, t, 't')
                everything = 0
                for q in range(self.n):
                    everything |= ((1 << s.count[q]) - 1) << q * STRIDE
                self.after(new, t, everything)
                out.append(new)
        return out

    def wake_up(self, s, t):
        spurious, timeouts = s.budget[t]
        out = []
        if spurious < self.p.spurious:
            out.append(self.leave_sleep(s, t, 'w'))
        if s.asleep[t][1] and (spurious < self.p.spurious or timeouts < self.p.timeouts):
            out.append(self.leave_sleep(s, t, 't'))
        return out

    def leave_sleep(self, s, t, how):
        """Without a wake. Takes its place among the calls on the futex."""
        new = s.copy()
        spurious, timeouts = s.budget[t]
        new.budget = replaced(s.budget, t, (spurious + (how == 'w'), timeouts + (how == 't')))
        new.asleep = replaced(s.asleep, t, None)
        new.got = replaced(s.got, t, s.got[t] + how)
        self.event(new, t, 0)
        self.chain(new, t, s.asleep[t][0])
        return new

    # -- events -----------------------------------------------------------------------------------

    def event(self, s, t, adds):
        """A new event of t, before which `adds` happens too. Returns its bit."""
        bit = 1 << (t * STRIDE + s.count[t])
        s.count = replaced(s.count, t, s.count[t] + 1)
        if self.full:
            s.order = replaced(s.order, t, s.hb[t])  # for strongly_before()
        elif self.ordered:
            s.before = {**s.before, bit: s.order[t]}
            s.order = replaced(s.order, t, s.order[t] | bit)
        s.hb = replaced(s.hb, t, s.hb[t] | adds | bit | bit << SHIFT)
        return bit

    def after(self, s, t, mask):
        """The last event of t, which nobody follows yet, is carried out after these."""
        if self.ordered and not self.full:
            bit = 1 << (t * STRIDE + s.count[t] - 1)
            for b in bits(mask & ~bit):
                mask |= s.before[b]
            s.before = {**s.before, bit: s.before[bit] | mask & ~bit}
            s.order = replaced(s.order, t, s.order[t] | mask)

    def chain(self, s, t, loc):
        """The last event of t is the next one of a lock or futex."""
        history = s.history.get(loc, ())
        if history:
            self.after(s, t, history[-1])
        s.history = {**s.history, loc: history + (1 << (t * STRIDE + s.count[t] - 1),)}

    def edge(self, s, a, b):
        """a before b, both there already. False: that is a cycle."""
        if a == b or s.before.get(a, 0) & b:
            return False
        if not s.before.get(b, 0) & a:
            adds = s.before.get(a, 0) | a
            s.before = {e: m | adds if e == b or m & b else m for e, m in s.before.items()}
            s.before.setdefault(b, adds)
            if not self.full:
                s.order = tuple([m | adds if m & b else m for m in s.order])
        return True

    # -- S: the order of SC events ------------------------------------------------------------------

    def sources(self, s, access):
        """What is in S before whatever comes after this access: itself, fences before it."""
        bit, _, _, sc, _, hb = access
        return ([bit] if sc else []) + [f for f, _ in s.fences if f << SHIFT & hb]

    def targets(self, s, access):
        bit, _, _, sc, _, _ = access
        return ([bit] if sc else []) + [f for f, hb in s.fences if bit << SHIFT & hb]

    def access_fits(self, s, t, loc, new):
        """Rules 4.1 to 4.4 for the pairs of this access and others. Of two accesses one is
        coherence-ordered before the other if its rank is less."""
        bit, position, reads, sc, _, _ = new
        mine, rank = self.sources(s, new), 2 * position + reads
        if sc and self.full:
            self.strongly_before(s, t, bit)
        for other in s.access[loc]:
            other_rank = 2 * other[1] + other[2]
            if other_rank > rank:
                for a in mine:
                    for b in self.targets(s, other):
                        if not self.edge(s, a, b):
                            return False
            elif other_rank < rank and sc:
                for a in self.sources(s, other):
                    if not self.edge(s, a, bit):
                        return False
        return True

    def fence_fits(self, s, t, bit):
        hb = s.hb[t]
        if self.full:
            self.strongly_before(s, t, bit)
        for loc in ATOMIC:
            top = max([2 * a[1] + a[2] for a in s.access[loc] if a[0] << SHIFT & hb], default=-1)
            for other in s.access[loc]:
                if 2 * other[1] + other[2] < top:
                    for a in self.sources(s, other):
                        if not self.edge(s, a, bit):
                            return False
        s.fences += ((bit, hb),)
        return True

    def strongly_before(self, s, t, bit):
        """Puts into S what strongly happens before this SC event: sb, and sb; hb; sb. (Of full
        graphs; in the others all of sb and rf is in the order.)"""
        mask = (bit - 1) >> t * STRIDE << t * STRIDE
        for b in bits(s.order[t] & (1 << SHIFT) - 1):
            low = (b.bit_length() - 1) // STRIDE * STRIDE
            mask |= (b - 1) >> low << low
        mask &= ~bit
        for b in s.before:
            if mask & b:
                mask |= s.before[b]
        s.before = {**s.before, bit: s.before.get(bit, 0) | sum(
            b for b in bits(mask) if b in s.before)}

    # -- memory -----------------------------------------------------------------------------------

    def races(self, s, loc, hb, writes, plain):
        for bit, _, reads, _, other_plain, _ in s.access[loc]:
            if (plain or other_plain) and (writes or not reads) and not bit & hb:
                self.failures.add('race')
                return True
        return False

    @staticmethod
    def first_position(s, loc, hb):
        """Coherence: the oldest store that may still be read by who knows of these events."""
        first = 0
        for a in s.access[loc]:
            if a[1] > first and a[0] << SHIFT & hb:
                first = a[1]
        return first

    def read(self, s, t, loc, position, order, plain=False):
        """A new graph where t's next event is this read, or None."""
        event, _, adds, _ = s.mo[loc][position]
        acquired = adds if order in ACQUIRES else 0
        hb = s.hb[t] | acquired
        if self.first_position(s, loc, hb) > position or self.races(s, loc, hb, False, plain):
            return None
        new = s.copy()
        bit = self.event(new, t, acquired)
        self.after(new, t, event)
        new.acq = replaced(s.acq, t, s.acq[t] | adds)
        new.seen = replaced(s.seen, t, s.seen[t] + (event,))
        return self.add_access(new, t, loc, (bit, position, 1, order == 'sc', plain, new.hb[t]))

    def write(self, s, t, loc, position, value, order, plain=False, rmw=False):
        """The same for a write at this place of the modification order; rmw: it reads from the
        store before."""
        mo = s.mo[loc]
        event, _, adds, _ = mo[position - 1]
        adds = adds if rmw else 0
        acquired = adds if order in ACQUIRES else 0
        hb = s.hb[t] | acquired
        if self.first_position(s, loc, hb) >= position or self.races(s, loc, hb, True, plain):
            return None
        if position < len(mo) and mo[position][3]:
            return None  # that one reads from the store before
        new = s.copy()
        bit = self.event(new, t, acquired)
        self.after(new, t, event)
        if rmw:
            new.acq = replaced(s.acq, t, s.acq[t] | adds)
            new.seen = replaced(s.seen, t, s.seen[t] + (event,))
        published = 0 if plain else new.hb[t] if order in RELEASES else s.rel[t]
        new.mo = {**s.mo, loc: mo[:position] + ((bit, value, published | adds, rmw),)
                  + mo[position:]}
        if position < len(mo):
            new.access = {**s.access, loc: tuple(
                [(b, p + (p >= position), r, sc, pl, h) for b, p, r, sc, pl, h in s.access[loc]])}
        return self.add_access(new, t, loc, (bit, position, 0, order == 'sc', plain, new.hb[t]))

    def add_access(self, s, t, loc, access):
        if self.ordered and not self.access_fits(s, t, loc, access):
            return None
        s.access = {**s.access, loc: s.access[loc] + (access,)}
        return s

    def positions(self, s, loc):
        """Where a new write may go: the explorer's are always last."""
        last = len(s.mo[loc])
        return range(1, last + 1) if self.full else (last,)

    # -- operations -------------------------------------------------------------------------------

    def step(self, s, t):
        op = self.threads[t][s.pc[t]]
        s = s.copy()
        s.pc = replaced(s.pc, t, s.pc[t] + 1)
        if not self.is_done(s, t, op):
            return [s]
        return getattr(self, 'do_' + op.kind)(s, t, op)

    @staticmethod
    def value(s, t, v, text=None):
        if s is not None:
            s.last = replaced(s.last, t, v)
            s.got = replaced(s.got, t, s.got[t] + (text or DIGITS[v]))
        return s

    def do_load(self, s, t, op):
        return [self.value(self.read(s, t, op.loc, i, op.orders[0]), t, w[1])
                for i, w in enumerate(s.mo[op.loc])]

    def do_store(self, s, t, op):
        return [self.write(s, t, op.loc, i, op.numbers[0], op.orders[0])
                for i in self.positions(s, op.loc)]

    def rmw(self, s, t, op, update, wants=None, text=''):
        out = []
        for i in self.positions(s, op.loc):
            old = s.mo[op.loc][i - 1][1]
            if wants in (None, old):
                new = self.write(s, t, op.loc, i, update(old), op.orders[0], rmw=True)
                out.append(self.value(new, t, old, DIGITS[old] + text))
        return out

    def do_xchg(self, s, t, op):
        return self.rmw(s, t, op, lambda old: op.numbers[0])

    def do_add(self, s, t, op):
        return self.rmw(s, t, op, lambda old: old + op.numbers[0])

    def do_cas(self, s, t, op):
        wants, value = op.numbers
        out = self.rmw(s, t, op, lambda old: value, wants, '+')
        for i, w in enumerate(s.mo[op.loc]):
            if op.kind == 'weak' or w[1] != wants:
                new = self.read(s, t, op.loc, i, op.orders[1])
                out.append(self.value(new, t, w[1], DIGITS[w[1]] + '-'))
        return out

    do_weak = do_cas

    def do_fence(self, s, t, op):
        order = op.orders[0]
        bit = self.event(s, t, s.acq[t] if order in ACQUIRES else 0)
        if order == 'sc' and not self.fence_fits(s, t, bit):
            return []
        if order in RELEASES:
            s.rel = replaced(s.rel, t, s.hb[t])
        return [s]

    def do_lock(self, s, t, op):
        holder, adds = s.lock.get(op.loc, (None, 0))
        if holder is not None:
            return []
        self.event(s, t, adds)
        self.chain(s, t, op.loc)
        s.lock = {**s.lock, op.loc: (t, adds)}
        return [s]

    def do_unlock(self, s, t, op):
        self.event(s, t, 0)
        self.chain(s, t, op.loc)
        s.lock = {**s.lock, op.loc: (None, s.hb[t])}
        return [s]

    def futex_call(self, s, t, loc):
        """Knows what the calls before it knew."""
        self.event(s, t, s.futex.get(loc, 0))
        self.chain(s, t, loc)
        s.futex = {**s.futex, loc: s.hb[t] >> SHIFT << SHIFT}

    def do_wait(self, s, t, op):
        self.futex_call(s, t, op.loc)
        out = []
        for i, w in enumerate(s.mo[op.loc]):
            new = self.read(s, t, op.loc, i, 'rlx')
            if new is not None and w[1] == op.numbers[0]:
                new.asleep = replaced(new.asleep, t, (op.loc, op.kind == 'waitl'))
            elif new is not None:
                new.got = replaced(new.got, t, new.got[t] + 'w')
            out.append(new)
        return out

    do_waitl = do_wait

    def do_wake(self, s, t, op):
        self.futex_call(s, t, op.loc)
        out, todo = [], [(s, op.numbers[0])]
        while todo:
            s, n = todo.pop()
            sleepers = [q for q in range(self.n) if s.asleep[q] and s.asleep[q][0] == op.loc]
            if n == 0 or not sleepers:
                out.append(s)
                continue
            for q in sleepers:
                new = s.copy()
                new.asleep = replaced(s.asleep, q, None)
                new.got = replaced(s.got, q, s.got[q] + 'w')
                new.order = replaced(s.order, q, s.order[q] | s.order[t])
                todo.append((new, n - 1))
        return out

    def do_read(self, s, t, op):
        last = len(s.mo[op.loc]) - 1
        return [self.value(self.read(s, t, op.loc, last, 'rlx', plain=True), t,
                           s.mo[op.loc][last][1])]

    def do_write(self, s, t, op):
        return [self.write(s, t, op.loc, len(s.mo[op.loc]), op.numbers[0], 'rlx', plain=True)]

    def do_spin(self, s, t, op):
        """Looking in vain adds nothing but happens-before: the look that ends it is enough."""
        return [self.read(s, t, op.loc, i, op.orders[0])
                for i, w in enumerate(s.mo[op.loc]) if w[1] == op.numbers[0]]

    def do_pause(self, s, t, op):
        return [s]

    def do_pick(self, s, t, op):
        return [self.value(s.copy(), t, v) for v in range(op.numbers[0])]


# -- random programs --------------------------------------------------------------------------------

LOADS = ('rlx', 'acq', 'sc')
STORES = ('rlx', 'rel', 'sc')
BOTH = ('rlx', 'acq', 'rel', 'ar', 'sc')
FENCES = ('acq', 'rel', 'ar', 'sc')


class Maker:
    """A program by a taste: how often each kind of operation comes, which orders."""

    def __init__(self, rng):
        self.rng = rng
        pick = rng.random
        self.locs = ATOMIC[:rng.choice((1, 2, 2, 2, 3, 3))]
        self.sc = rng.choice((0, 0.1, 0.5, 0.9))
        self.relaxed = rng.choice((0.1, 0.4, 0.8))
        self.values = rng.choice((1, 2, 2, 3))
        self.weights = {'load': 4, 'store': 4, 'xchg': rng.choice((0, 1)),
                        'add': rng.choice((0, 1)), 'cas': rng.choice((0, 1, 2)),
                        'weak': rng.choice((0, 0, 1)), 'fence': rng.choice((0, 0, 1, 3))}
        self.plain = pick() < 0.25
        self.mixed = self.plain and pick() < 0.3
        self.futex = pick() < 0.2
        self.locks = pick() < 0.2
        self.spin = pick() < 0.1 and not self.mixed
        self.conditions = rng.choice((0, 0, 0.2, 0.4))
        if self.plain:
            self.weights.update(read=2, write=2)
        if self.futex:
            self.weights.update(wait=2, wake=3, waitl=rng.choice((0, 2)))
        if self.spin:
            self.weights.update(spin=1)
        if pick() < 0.05:
            self.weights.update(twice=1, pick=1, pause=rng.choice((0, 1)))

    def order(self, orders):
        r = self.rng
        if r.random() < self.sc:
            return 'sc'
        return 'rlx' if r.random() < self.relaxed and 'rlx' in orders else r.choice(orders)

    def op(self):
        r = self.rng
        kind = r.choices(list(self.weights), self.weights.values())[0]
        loc, v = r.choice(self.locs), r.randint(1, self.values)
        only_if = r.randint(0, self.values) if r.random() < self.conditions else None
        if kind in ('read', 'write') and not (self.mixed and r.random() < 0.5):
            loc = r.choice(PLAIN[:1 + (r.random() < 0.3)])
        if kind in ('wait', 'waitl', 'wake'):
            loc = r.choice(self.locs[:2])
            loc = 'x' if r.random() < 0.7 else loc
        old = r.randint(0, self.values)
        numbers, orders = {
            'load': ((), (LOADS,)), 'store': ((v,), (STORES,)), 'xchg': ((v,), (BOTH,)),
            'add': ((1,), (BOTH,)), 'cas': ((old, v), (BOTH, LOADS)),
            'weak': ((old, v), (BOTH, LOADS)), 'fence': ((), (FENCES,)), 'wait': ((old % 2,), ()),
            'waitl': ((old % 2,), ()), 'wake': ((r.choice((1, 1, 2)),), ()), 'read': ((), ()),
            'write': ((v,), ()), 'spin': ((v,), (LOADS,)), 'twice': ((v,), (LOADS,)),
            'pause': ((), ()), 'pick': ((2,), ())}[kind]
        if kind in ('fence', 'pause', 'pick'):
            loc = None
        if kind == 'twice':
            only_if = None
        return Op(kind, loc, numbers, [self.order(o) for o in orders], only_if)

    def thread(self, n):
        ops = [self.op() for _ in range(n)]
        # After a second pause without a store of its own a thread only sees what is newest.
        pauses = [op for op in ops if op.kind in ('twice', 'pause')]
        ops = [op for op in ops if op not in pauses[1:]]
        if self.locks and self.rng.random() < 0.8:
            r, held = self.rng, []
            for _ in range(r.choice((1, 1, 1, 2))):
                lock = r.choice('l' if r.random() < 0.7 else 'lm')
                first = r.randint(0, len(ops))
                last = r.randint(first, len(ops))
                if lock not in held:
                    ops[last:last] = [Op('unlock', lock)]
                    ops[first:first] = [Op('lock', lock)]
                    held.append(lock)
        return ops

    def program(self):
        r = self.rng
        n = r.choices((2, 3, 4), (5, 4, 1))[0]
        most = {2: 5, 3: 3, 4: 2}[n]
        most += r.choices((0, 1, 4), (45, 4, 1))[0]
        p = Program([self.thread(r.randint(1, most)) for _ in range(n)])
        if self.futex:
            p.spurious = r.choice((0, 0, 0, 1))
            p.timeouts = r.choice((0, 0, 0, 1))
            p.sleepers = 15 if r.random() < 0.6 else 0
        return p


# -- the comparison ---------------------------------------------------------------------------------

KINDS = {'data race': 'race', 'deadlock': 'stuck', 'spins for ever': 'stuck'}


class Explorer:
    def __init__(self, program):
        self.program = program
        self.file = tempfile.NamedTemporaryFile('w', prefix='pirn-fuzz-', suffix='.txt')

    def write(self, programs):
        self.file.seek(0)
        self.file.truncate()
        self.file.write(''.join(f'{p}\n' for p in programs))
        self.file.flush()

    def call(self, *args, fail=None):
        # Nothing to search for addr2line: the place of a race does not matter here.
        env = {'PIRN_FUZZ': self.file.name, 'PATH': '/nowhere'}
        if fail:
            env['PIRN_FUZZ_FAIL'] = fail
        done = subprocess.run([self.program, *args], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode not in (0, 1):
            sys.exit(f'{self.program} ends with {done.returncode}:\n{done.stdout[-500:]}')
        return done.stdout

    def run(self, programs, *args):
        """Of each program (its outcomes or None, failure or None, are these all)."""
        self.write(programs)
        results = {}
        for line in self.call('--outcomes', *args).splitlines():
            m = re.match(r'p(\d+): (.*)', line)
            if not m or int(m[1]) in results:
                continue
            if m[2].startswith('outcomes'):
                words, _, rest = m[2].partition(':')
                results[int(m[1])] = (set(rest.split()), None, words == 'outcomes')
            else:
                kind = [v for k, v in KINDS.items() if k in m[2]]
                results[int(m[1])] = (None, kind[0] if kind else m[2], True)
        return [results.get(i, (None, 'no answer', True)) for i in range(len(programs))]


def replay_fails(explorer, p, outcome, *args):
    """A failure must come again when it is replayed. The failure is the program's own, or this
    outcome. What is wrong, or None."""
    explorer.write([p])
    first = explorer.call(*args, fail=outcome)
    m = re.search(r'^p0: (.*)\np0: after .*--replay (\S*)$', first, re.M)
    if not m:
        return None  # not met on this way
    again = explorer.call('--model', 'p0', '--replay', m[2], fail=outcome)
    what = 'data race' if m[1].startswith('data race') else m[1]
    if f'p0: {what}' not in again:
        return f'{m[1]!r}, but its replay {m[2]} says:\n{again}'
    return None


def verdict(result, oracle):
    """What is wrong with the explorer's result, or None."""
    outcomes, failure, complete = result
    if failure:
        if failure in oracle.failures:
            return None
        return f'reports {failure!r}, though there is none'
    if oracle.failures:
        return complete and f'does not report {" or ".join(oracle.failures)}'
    wrong, missed = outcomes - oracle.outcomes, oracle.outcomes - outcomes
    if wrong:
        return 'shows what cannot be: ' + ' '.join(sorted(wrong))
    if missed and complete:
        return 'misses ' + ' '.join(sorted(missed))
    return None


WAYS = {'reduced': ('--bound', 'all'), 'plain search': ('--bound', '99')}
REPLAYED = {**WAYS, 'bounded': ('--bound', '1'), 'random': ('--random', '1')}
LIMIT = ('--executions', '300000')  # of one program


class Union:
    """What the explorer itself has seen, for programs that are too big for the oracle."""

    def __init__(self, results):
        self.outcomes = set().union(*[r[0] for r in results if r[0]])
        self.failures = {r[1] for r in results if r[1]}


def examine(explorer, programs, replays=1):
    """Of each program: what is wrong, or None. Of one in so many the replay, too."""
    results = {way: explorer.run(programs, *args, *LIMIT) for way, args in WAYS.items()}
    out = []
    for i, p in enumerate(programs):
        try:
            oracle = Oracle(p)
        except TooBig:
            some = explorer.run([p], '--random', '1', '--executions', '20000')[0]
            oracle = Union([some] + [results[way][i] for way in WAYS])
        wrong = [f'{way}: {v}' for way in WAYS if (v := verdict(results[way][i], oracle))]
        if not wrong and i % replays == 0:
            rng = random.Random(str(p))
            outcomes = sorted(oracle.outcomes) if not oracle.failures else []
            outcome = rng.choice(outcomes) if outcomes else None
            for way, args in REPLAYED.items():
                if v := replay_fails(explorer, p, outcome, *args, '--executions', '5000'):
                    wrong.append(f'{way}, replay: {v}')
        out.append('\n'.join(wrong) or None)
    return out


FULL = {'load', 'store', 'xchg', 'add', 'cas', 'weak', 'fence', 'twice', 'pick', 'pause'}


def beyond(p):
    """Outcomes that C11 allows and the explorer does not promise; None if nobody can say."""
    if not all(op.kind in FULL for t in p.threads for op in t):
        return None
    try:
        promised, allowed = Oracle(p).outcomes, Oracle(p, full=True).outcomes
    except TooBig:
        return None
    assert promised <= allowed, f'the oracle does not agree with itself on {p}'
    return allowed - promised


def smaller(p):
    """Programs that are a step simpler."""
    def but(threads, **options):
        old = {'spurious': p.spurious, 'timeouts': p.timeouts, 'sleepers': p.sleepers}
        return Program(threads, **{**old, **options})
    for t in range(len(p.threads)):
        if len(p.threads) > 1:
            yield but(p.threads[:t] + p.threads[t + 1:])
    for name in ('spurious', 'timeouts', 'sleepers'):
        if getattr(p, name):
            yield but(p.threads, **{name: 0})
    for t, ops in enumerate(p.threads):
        def with_ops(new):
            return but(p.threads[:t] + [new] + p.threads[t + 1:])
        for i, op in enumerate(ops):
            rest = ops[:i] + ops[i + 1:]
            if op.kind == 'lock':
                at = next(k for k, o in enumerate(rest) if o.kind == 'unlock' and o.loc == op.loc)
                rest = rest[:at] + rest[at + 1:]
            if op.kind != 'unlock':
                yield with_ops(rest)
            changes = []
            if op.only_if is not None:
                changes.append(dict(only_if=None))
            if op.kind in ('xchg', 'add'):
                changes.append(dict(kind='store', orders=['rlx' if op.orders[0] in ('acq', 'ar')
                                                         else op.orders[0]]))
            for k, o in enumerate(op.orders):
                if o != 'rlx' and op.kind != 'fence':
                    changes.append(dict(orders=op.orders[:k] + ('rlx',) + op.orders[k + 1:]))
            for k, n in enumerate(op.numbers):
                if n > 1:
                    changes.append(dict(numbers=op.numbers[:k] + (1,) + op.numbers[k + 1:]))
            for c in changes:
                fields = dict(kind=op.kind, loc=op.loc, numbers=op.numbers, orders=op.orders,
                              only_if=op.only_if)
                yield with_ops(ops[:i] + [Op(**{**fields, **c})] + ops[i + 1:])


def shrink(explorer, p):
    """The first smaller program that still goes wrong, again and again."""
    while True:
        candidates = [c for c in smaller(p)][:900]
        for c, wrong in zip(candidates, examine(explorer, candidates)):
            if wrong:
                p = c
                break
        else:
            return p


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--program', default='build/model/tests/model/model-fuzz')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--count', type=int, help='stop after so many programs')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--full', action='store_true', help='what does the explorer not show?')
    parser.add_argument('--keep-going', action='store_true', help='after a mismatch')
    parser.add_argument('--check', metavar='TEXT', help='this program only')
    parser.add_argument('--verbose', action='store_true', help='with --check: all outcomes')
    args = parser.parse_args()
    explorer = Explorer(args.program)
    if args.check:
        p = parse(args.check)
        wrong = examine(explorer, [p])[0]
        if args.verbose:
            oracle = Oracle(p)
            for way, a in WAYS.items():
                print(f'{way}:', *explorer.run([p], *a)[0])
            print('oracle:', oracle.outcomes, oracle.failures)
            print("not promised:", beyond(p))
        print(wrong or 'as it must be')
        return 1 if wrong else 0
    start, compared, batch, mismatches = time.monotonic(), 0, 0, 0
    asked = more = 0
    while time.monotonic() - start < args.seconds and not (args.count and compared >= args.count):
        rng = random.Random(f'{args.seed} {batch}')
        programs = [Maker(rng).program() for _ in range(100)]
        batch += 1
        for p, wrong in zip(programs, examine(explorer, programs, replays=10)):
            compared += 1
            if wrong:
                mismatches += 1
                p = shrink(explorer, p)
                print(f'{p}\n{examine(explorer, [p])[0]}', flush=True)
                if not args.keep_going:
                    return 1
        for p in programs if args.full else []:
            outcomes = beyond(p)
            asked += outcomes is not None
            more += bool(outcomes)
    if args.full:
        print(f'fuzz: {more} of {asked} programs have outcomes that the explorer does not promise')
    print(f'fuzz: {compared} programs compared, {mismatches} mismatches, '
          f'seed {args.seed}, {time.monotonic() - start:.0f} s')
    return 1 if mismatches else 0


if __name__ == '__main__':
    sys.exit(main())
