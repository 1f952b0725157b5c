#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the explorer with another opinion of what C11 allows, on small random programs.

fuzz.py --program build/model/tests/model/model-fuzz --seconds 60 --seed 1

Each program (fuzz.c has the notation) goes three ways: the explorer with its reductions, the
explorer without them (--bound 99), and the oracle (oracle.py). All must see the same set of outcomes,
and the same kinds of failure. The first program for which that is not so is made as small as can be
and printed; then the exit code is 1. The programs depend on the seed alone; the time decides how many.

--full also counts the outcomes that C11 allows and the explorer does not show.
"""
import argparse
import random
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from oracle import ATOMIC, NOTES, PLAIN, TooBig, Op, Program, parse, Oracle  # noqa: E402

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
        self.notes = pick() < 0.2
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
        threads = [self.thread(r.randint(1, most)) for _ in range(n)]
        for note in NOTES[:r.choice((1, 1, 2))] if self.notes else ():
            for kind, ops in zip(('await', 'post'), r.sample(threads, 2)):
                ops.insert(r.randint(0, len(ops)), Op(kind, note))
        p = Program(threads)
        if self.futex:
            p.spurious = r.choice((0, 0, 0, 1))
            p.timeouts = r.choice((0, 0, 0, 1))
        if self.futex or self.notes:
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
