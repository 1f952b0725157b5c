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
STRIDE = 24  # events of one thread, at most
STATES_MOST = 60000


class TooBig(Exception):
    pass


# -- programs ---------------------------------------------------------------------------------------

class Op:
    """kind, location, numbers, orders, and the value on which it depends, or None."""

    def __init__(self, kind, loc=None, numbers=(), orders=(), only_if=None):
        self.kind, self.loc, self.only_if = kind, loc, only_if
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
    """A graph, and where each thread stands.

    pc, last, got     of each thread: next operation, last value, all values
    asleep            of each thread: (location, has a deadline) in a futex wait, or None
    budget            of each thread: spurious wakes and time-outs so far
    count             of each thread: its events
    hb, acq, rel      of each thread, masks: what happens before its next event; what an acquire
                      fence would add; what its last release fence has seen, and the fence
    order             of each thread: what must be carried out before its next event
    mo                of each location: (event, value, what an acquire of it adds, is it an RMW)
    access            of each location: (bit, position, reads, SC, plain, hb) of each access
    fences            (bit, group, hb): SC fences are group '', those of futex calls their location
    before            of each event: what must be carried out before it; None if nobody asks
    lock              of each lock: (holder, what taking it adds, its last event)
    history           of each lock and futex: its events in order
    seen              of each thread: the events that it read from
    """
    __slots__ = ('pc', 'last', 'got', 'asleep', 'budget', 'count', 'hb', 'acq', 'rel', 'order',
                 'mo', 'access', 'fences', 'before', 'lock', 'history', 'seen')

    def copy(self):
        new = State()
        for name in State.__slots__:
            setattr(new, name, getattr(self, name))
        return new

    def key(self):
        mo = tuple([tuple([w[0] for w in self.mo[l]]) for l in ATOMIC])
        return (self.pc, self.asleep, self.budget, self.got, self.seen, mo,
                tuple(sorted(self.history.items())))


def replaced(values, i, value):
    return values[:i] + (value,) + values[i + 1:]


def bits(mask):
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


class Oracle:
    """outcomes, and failures: 'race', 'stuck'."""

    def __init__(self, program, full=False):
        self.p, self.full = program, full
        self.n = len(program.threads)
        self.outcomes, self.failures = set(), set()
        ops = [op for t in program.threads for op in t]
        self.ordered = full or any('sc' in op.orders or op.kind in ('wait', 'waitl', 'wake')
                                   for op in ops)
        self.states = 0
        self.run()

    def start(self):
        s, n = State(), self.n
        s.pc, s.count, s.hb, s.acq, s.rel, s.order = [(0,) * n] * 6
        s.last, s.got, s.asleep = (None,) * n, ('',) * n, (None,) * n
        s.budget, s.seen = ((0, 0),) * n, ((),) * n
        s.mo = {l: ((0, 0, 0, False),) for l in ATOMIC + PLAIN}
        s.access = {l: () for l in ATOMIC + PLAIN}
        s.fences = ()
        s.before = {}
        s.lock = {l: (None, 0, 0) for l in 'lm'}
        s.history = {}
        return s

    def run(self):
        level = {None: self.start()}
        while level:
            following = {}
            for s in level.values():
                for new in self.steps(s):
                    following[new.key()] = new
            self.states += len(following)
            if self.states > STATES_MOST:
                raise TooBig
            level = following

    # What can happen next.
    def steps(self, s):
        out = []
        for t in range(self.n):
            if s.asleep[t]:
                out += self.wake_up(s, t)
            elif s.pc[t] < len(self.p.threads[t]):
                out += self.step(s, t)
        out = [new for new in out if new is not None]
        if not out:
            self.at_rest(s)
            out = self.time_passes(s)
        return out

    def at_rest(self, s):
        """Nobody can go on: the end, or a mistake."""
        def ended(t):
            return s.pc[t] == len(self.p.threads[t]) and not s.asleep[t]
        if any(a and a[1] for a in s.asleep) and not self.may_sleep(s):
            return
        if not all(ended(t) for t in range(self.n)) and not self.may_sleep(s):
            self.failures.add('stuck')
            return
        got = '/'.join(g + ('' if ended(t) else '!') for t, g in enumerate(s.got))
        self.outcomes.add(got + '=' + ''.join(DIGITS[s.mo[l][-1][1]] for l in ATOMIC + PLAIN))

    def may_sleep(self, s):
        return all((s.asleep[t] and self.p.sleepers >> t & 1)
                   or (s.pc[t] == len(self.p.threads[t]) and not s.asleep[t])
                   for t in range(self.n))

    def time_passes(self, s):
        if self.may_sleep(s):
            return []
        out = []
        for t in range(self.n):
            if s.asleep[t] and s.asleep[t][1]:
                new = self.leave_sleep(s, t, 't')
                everything = 0
                for q in range(self.n):
                    everything |= ((1 << s.count[q]) - 1) << q * STRIDE
                new.order = replaced(new.order, t, new.order[t] | everything)
                out.append(new)
        return out

    def wake_up(self, s, t):
        spurious, timeouts = s.budget[t]
        limit = s.asleep[t][1]
        out = []
        if spurious < self.p.spurious:
            out.append(self.leave_sleep(s, t, 'w'))
        if limit and (spurious < self.p.spurious or timeouts < self.p.timeouts):
            out.append(self.leave_sleep(s, t, 't'))
        return out

    def leave_sleep(self, s, t, how):
        """Without a wake. Takes its place among the calls on the futex."""
        new = s.copy()
        loc = s.asleep[t][0]
        spurious, timeouts = s.budget[t]
        new.budget = replaced(s.budget, t,
                              (spurious + (how == 'w'), timeouts + (how == 't')))
        new.asleep = replaced(s.asleep, t, None)
        new.got = replaced(s.got, t, s.got[t] + how)
        self.event(new, t, 0)
        self.chain(new, t, loc)
        return new

    # -- events -----------------------------------------------------------------------------------

    def event(self, s, t, adds):
        """A new event of t, before which `adds` happens too. Returns its bit."""
        bit = 1 << (t * STRIDE + s.count[t])
        s.count = replaced(s.count, t, s.count[t] + 1)
        s.hb = replaced(s.hb, t, s.hb[t] | adds | bit)
        if self.ordered and not self.full:
            self.put_before(s, bit, s.order[t] | adds)
            s.order = replaced(s.order, t, s.before[bit] | bit)
        return bit

    def put_before(self, s, bit, mask):
        """All in the mask are carried out before bit, which nobody follows yet."""
        if self.ordered:
            s.before = dict(s.before)
            all_before = s.before.get(bit, 0) | mask
            for b in bits(mask):
                all_before |= s.before.get(b, 0)
            s.before[bit] = all_before

    def after(self, s, t, bit, mask):
        """The last event of t comes after these."""
        if self.ordered and not self.full:
            self.put_before(s, bit, mask)
            s.order = replaced(s.order, t, s.before[bit] | bit)

    def chain(self, s, t, loc):
        """The last event of t is the next one of a lock or futex."""
        bit = 1 << (t * STRIDE + s.count[t] - 1)
        history = s.history.get(loc, ())
        if history:
            self.after(s, t, bit, history[-1])
        s.history = {**s.history, loc: history + (bit,)}

    def edge(self, s, a, b):
        """a before b, both there already. False: that is a cycle."""
        if a == b or s.before.get(a, 0) & b:
            return False
        if not s.before.get(b, 0) & a:
            adds = s.before.get(a, 0) | a
            s.before = {e: m | adds if e == b or m & b else m for e, m in s.before.items()}
            s.before[b] = s.before.get(b, 0) | adds
            if not self.full:
                for t in range(self.n):
                    if s.order[t] & b:
                        s.order = replaced(s.order, t, s.order[t] | adds)
        return True

    # -- the order of SC events and fences ----------------------------------------------------------

    @staticmethod
    def rank(position, reads):
        """Of accesses to one location: a is coherence-ordered before b iff its rank is less."""
        return 2 * position + reads

    def sources(self, s, access):
        """What must be in S before whatever comes after this access: itself, fences before it."""
        bit, _, _, sc, _, hb = access
        out = [(bit, '')] if sc else []
        return out + [(f, group) for f, group, _ in s.fences if f & hb]

    def targets(self, s, access):
        bit, _, _, sc, _, _ = access
        out = [(bit, '')] if sc else []
        return out + [(f, group) for f, group, hb in s.fences if bit & hb]

    def access_fits(self, s, t, loc, new):
        """Rules 4.1 to 4.4 for the pairs of this access and others."""
        bit, position, reads, sc, _, _ = new
        mine, rank = self.sources(s, new), self.rank(position, reads)
        if sc and self.full:
            self.put_before(s, bit, self.strongly_before(s, t, bit))
        for other in s.access[loc]:
            other_rank = self.rank(other[1], other[2])
            if other_rank > rank:
                for a, group in mine:
                    for b, other_group in self.targets(s, other):
                        if group == other_group and not self.edge(s, a, b):
                            return False
            elif other_rank < rank and sc:
                for a, group in self.sources(s, other):
                    if group == '' and not self.edge(s, a, bit):
                        return False
        return True

    def fence_fits(self, s, t, bit, group):
        hb = s.hb[t]
        if self.full:
            self.put_before(s, bit, self.strongly_before(s, t, bit))
        for loc in ATOMIC:
            known = [self.rank(a[1], a[2]) for a in s.access[loc] if a[0] & hb]
            if not known:
                continue
            top = max(known)
            for other in s.access[loc]:
                if self.rank(other[1], other[2]) < top:
                    for a, other_group in self.sources(s, other):
                        if group == other_group and not self.edge(s, a, bit):
                            return False
        s.fences += ((bit, group, hb),)
        if not self.full:
            s.order = replaced(s.order, t, s.before[bit] | bit)
        return True

    def strongly_before(self, s, t, bit):
        """SC events that strongly happen before this one, of the whole model only: sb, and
        sb; hb; sb. What synchronizes by SC accesses is in the rules already."""
        def all_sc():
            mask = 0
            for loc in ATOMIC:
                for a in s.access[loc]:
                    mask |= a[0] if a[3] else 0
            for f in s.fences:
                mask |= f[0]
            return mask
        mine = (bit - 1) >> t * STRIDE << t * STRIDE
        mask = mine
        for b in bits(s.order[t]):  # hb of the event before
            number = b.bit_length() - 1
            low = number - number % STRIDE
            mask |= (b - 1) >> low << low
        return mask & all_sc() & ~bit

    # -- memory -----------------------------------------------------------------------------------

    def races(self, s, loc, hb, writes, plain):
        for bit, _, reads, _, other_plain, _ in s.access[loc]:
            if (plain or other_plain) and (writes or not reads) and not bit & hb:
                self.failures.add('race')
                return True
        return False

    def first_position(self, s, loc, hb):
        """Coherence: the oldest store that may still be read after these events."""
        return max([a[1] for a in s.access[loc] if a[0] & hb], default=0)

    def read(self, s, t, loc, position, order, plain=False):
        """A new graph where t's next event is this read, or None."""
        event, value, adds, _ = s.mo[loc][position]
        acquired = adds if order in ACQUIRES else 0
        hb = s.hb[t] | acquired
        if self.first_position(s, loc, hb) > position:
            return None
        if self.races(s, loc, hb, False, plain):
            return None
        new = s.copy()
        previous = s.hb[t]
        bit = self.event(new, t, acquired)
        if event:
            self.after(new, t, bit, event)
        new.acq = replaced(s.acq, t, s.acq[t] | adds)
        new.seen = replaced(s.seen, t, s.seen[t] + (event,))
        access = (bit, position, 1, order == 'sc', plain, new.hb[t])
        if self.ordered and not self.access_fits(new, t, loc, access):
            return None
        new.access = {**new.access, loc: new.access[loc] + (access,)}
        if self.full:
            new.order = replaced(new.order, t, new.order[t] | previous)
        return new

    def write(self, s, t, loc, position, value, order, plain=False, rmw=None):
        """The same for a write at this place of the modification order; rmw: reads from the
        store before it, with this value."""
        old = s.mo[loc][position - 1]
        adds = old[2] if rmw is not None else 0
        acquired = adds if order in ACQUIRES else 0
        hb = s.hb[t] | acquired
        if self.first_position(s, loc, hb) >= position:
            return None
        if position < len(s.mo[loc]) and s.mo[loc][position][3]:
            return None  # that one reads from the store before
        if self.races(s, loc, hb, True, plain):
            return None
        new = s.copy()
        previous = s.hb[t]
        bit = self.event(new, t, acquired)
        if rmw is not None:
            new.acq = replaced(s.acq, t, s.acq[t] | adds)
            new.seen = replaced(s.seen, t, s.seen[t] + (old[0],))
        if old[0]:
            self.after(new, t, bit, old[0])
        published = 0 if plain else new.hb[t] if order in RELEASES else s.rel[t]
        entry = (bit, value, published | adds, rmw is not None)
        mo = s.mo[loc]
        new.mo = {**s.mo, loc: mo[:position] + (entry,) + mo[position:]}
        if position < len(mo):
            moved = tuple((b, p + (p >= position), r, sc, pl, h)
                          for b, p, r, sc, pl, h in s.access[loc])
            new.access = {**s.access, loc: moved}
        access = (bit, position, 0, order == 'sc', plain, new.hb[t])
        if self.ordered and not self.access_fits(new, t, loc, access):
            return None
        new.access = {**new.access, loc: new.access[loc] + (access,)}
        if self.full:
            new.order = replaced(new.order, t, new.order[t] | previous)
        return new

    def positions(self, s, t, loc):
        """Where a new write may go: the explorer's are always last."""
        last = len(s.mo[loc])
        return range(1, last + 1) if self.full else (last,)

    # -- operations -------------------------------------------------------------------------------

    def step(self, s, t):
        op = self.p.threads[t][s.pc[t]]
        moved = s.copy()
        moved.pc = replaced(s.pc, t, s.pc[t] + 1)
        if op.only_if is not None and op.only_if != s.last[t]:
            return [moved]
        return getattr(self, 'do_' + op.kind)(moved, t, op)

    def value(self, s, t, v, text=None):
        if s is not None:
            s.last = replaced(s.last, t, v)
            s.got = replaced(s.got, t, s.got[t] + (text or DIGITS[v]))
        return s

    def do_load(self, s, t, op):
        mo = s.mo[op.loc]
        return [self.value(self.read(s, t, op.loc, i, op.orders[0]), t, mo[i][1])
                for i in range(len(mo))]

    def do_store(self, s, t, op):
        return [self.write(s, t, op.loc, i, op.numbers[0], op.orders[0])
                for i in self.positions(s, t, op.loc)]

    def rmw(self, s, t, loc, order, update, wants=None, text=''):
        out = []
        for i in self.positions(s, t, loc):
            old = s.mo[loc][i - 1][1]
            if wants is None or old == wants:
                new = self.write(s, t, loc, i, update(old), order, rmw=old)
                out.append(self.value(new, t, old, DIGITS[old] + text))
        return out

    def do_xchg(self, s, t, op):
        return self.rmw(s, t, op.loc, op.orders[0], lambda old: op.numbers[0])

    def do_add(self, s, t, op):
        return self.rmw(s, t, op.loc, op.orders[0], lambda old: old + op.numbers[0])

    def do_cas(self, s, t, op, weak=False):
        wants, value = op.numbers
        out = self.rmw(s, t, op.loc, op.orders[0], lambda old: value, wants, '+')
        for i, (_, found, _, _) in enumerate(s.mo[op.loc]):
            if weak or found != wants:
                new = self.read(s, t, op.loc, i, op.orders[1])
                out.append(self.value(new, t, found, DIGITS[found] + '-'))
        return out

    def do_weak(self, s, t, op):
        return self.do_cas(s, t, op, weak=True)

    def do_fence(self, s, t, op):
        order = op.orders[0]
        previous = s.hb[t]
        bit = self.event(s, t, s.acq[t] if order in ACQUIRES else 0)
        if order == 'sc' and not self.fence_fits(s, t, bit, ''):
            return []
        if order in RELEASES:
            s.rel = replaced(s.rel, t, s.hb[t])
        if self.full:
            s.order = replaced(s.order, t, s.order[t] | previous)
        return [s]

    def do_lock(self, s, t, op):
        holder, adds, _ = s.lock[op.loc]
        if holder is not None:
            return []
        self.event(s, t, adds)
        self.chain(s, t, op.loc)
        s.lock = {**s.lock, op.loc: (t, adds, 0)}
        return [s]

    def do_unlock(self, s, t, op):
        self.event(s, t, 0)
        self.chain(s, t, op.loc)
        s.lock = {**s.lock, op.loc: (None, s.hb[t], 0)}
        return [s]

    def do_wait(self, s, t, op, limit=False):
        """A fence that orders the calls on this futex only, then a relaxed read."""
        bit = self.event(s, t, 0)
        self.chain(s, t, op.loc)
        if not self.fence_fits(s, t, bit, op.loc):
            return []
        out = []
        for i, (_, found, _, _) in enumerate(s.mo[op.loc]):
            new = self.read(s, t, op.loc, i, 'rlx')
            if new is None:
                continue
            if found == op.numbers[0]:
                new.asleep = replaced(new.asleep, t, (op.loc, limit))
            else:
                new.got = replaced(new.got, t, new.got[t] + 'w')
            out.append(new)
        return out

    def do_waitl(self, s, t, op):
        return self.do_wait(s, t, op, limit=True)

    def do_wake(self, s, t, op):
        bit = self.event(s, t, 0)
        self.chain(s, t, op.loc)
        if not self.fence_fits(s, t, bit, op.loc):
            return []
        done, todo = [], [(s, op.numbers[0])]
        while todo:
            s, n = todo.pop()
            sleepers = [q for q in range(self.n) if s.asleep[q] and s.asleep[q][0] == op.loc]
            if n == 0 or not sleepers:
                done.append(s)
                continue
            for q in sleepers:
                new = s.copy()
                new.asleep = replaced(s.asleep, q, None)
                new.got = replaced(s.got, q, s.got[q] + 'w')
                if not self.full:
                    new.order = replaced(s.order, q, s.order[q] | s.order[t])
                todo.append((new, n - 1))
        return done

    def do_read(self, s, t, op):
        last = len(s.mo[op.loc]) - 1
        value = s.mo[op.loc][last][1]
        return [self.value(self.read(s, t, op.loc, last, 'rlx', plain=True), t, value)]

    def do_write(self, s, t, op):
        return [self.write(s, t, op.loc, len(s.mo[op.loc]), op.numbers[0], 'rlx', plain=True)]

    def do_spin(self, s, t, op):
        """Looking in vain adds nothing but happens-before, so it need not be looked at: just the
        read that ends it."""
        return [self.read(s, t, op.loc, i, op.orders[0])
                for i, w in enumerate(s.mo[op.loc]) if w[1] == op.numbers[0]]

    def do_twice(self, s, t, op):
        out = []
        for i, (_, found, _, _) in enumerate(s.mo[op.loc]):
            new = self.value(self.read(s, t, op.loc, i, op.orders[0]), t, found)
            if new is not None and found != op.numbers[0]:
                new.pc = replaced(new.pc, t, new.pc[t] - 1 + 1)
                out += self.do_load(new, t, op.__class__('load', op.loc, (), op.orders))
            else:
                out.append(new)
        return out

    def do_pause(self, s, t, op):
        return [s]

    def do_pick(self, s, t, op):
        return [self.value(s.copy(), t, v) for v in range(op.numbers[0])]
