# SPDX-License-Identifier: MIT
"""What C11 allows a small program (fuzz.c has the notation) to do, by the axioms.

C++20's model [intro.races, atomics.order]: an execution is a graph of events with reads-from and a
modification order of each location. It is consistent if
  - coherence: no event happens before one that it comes after in (rf | mo | fr)+;
  - a read-modify-write reads from the store right before it in modification order;
  - release sequences are continued by read-modify-writes only;
  - there is an order S of the SC events for which rules 4.1 to 4.4 of atomics.order hold;
  - sb | rf has no cycle.
The explorer promises the graphs in which sb | rf | mo | S has no cycle, and these are what it is
compared with.

Graphs are built event by event in an order that extends sb and rf, which reaches all of them since
each such prefix of a consistent graph is consistent. Events are bits; happens-before is a mask.
"""
import re

LOCS = 'xyzuablmno'
ATOMIC = 'xyzu'
PLAIN = 'ab'
NOTES = 'no'
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
        s.lock = {l: ('to be posted', 0) for l in NOTES}
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

    def awaits(self, s, t):
        """Nobody can go on, and it waits for a note."""
        return s.pc[t] < len(self.threads[t]) and self.threads[t][s.pc[t]].kind == 'await'

    def may_sleep(self, s):
        return all(self.ended(s, t)
                   or ((s.asleep[t] or self.awaits(s, t)) and self.p.sleepers >> t & 1)
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
        """In which every store becomes known to who wakes."""
        out = []
        for t in range(self.n):
            if s.asleep[t] and s.asleep[t][1]:
                new = self.leave_sleep(s, t, 't')
                everything = 0
                for q in range(self.n):
                    everything |= ((1 << s.count[q]) - 1) << q * STRIDE
                self.after(new, t, everything)
                new.hb = replaced(new.hb, t, new.hb[t] | everything << SHIFT)
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

    do_await, do_post = do_lock, do_unlock

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
