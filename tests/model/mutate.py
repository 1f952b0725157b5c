#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are the models good enough? Spoils the modelled sources in one place at a time and looks whether a
model fails.

Orders are weakened by one step in the running program (--weaken), without a new build. Fences are
removed. Wakes and re-checks are taken out of the source, which is built anew in a copy. A mutant that
no model kills is either explained in a comment beside the operation, with the word `mutant`, or the
order is too strong and must be weakened.

mutate.py [--filter REGEX] [--seconds S] [--report FILE]     all mutants
mutate.py --planted                                         the planted bugs, which must be found
"""
import argparse
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KINDS = ['load', 'store', 'xchg', 'add', 'and', 'or', 'cas', 'cas_weak', 'fence']

# The five bugs that every version of the checker must find: the program that finds it; file, text,
# what takes its place.
PLANTED = {
    'thief reads tail relaxed': ['runq',
        ('src/sched/runq.c', 'uint32_t t = at_load(&src->tail, ACQUIRE); /* [Q1] */',
         'uint32_t t = at_load(&src->tail, RELAXED);')],
    'ring store before slot store': ['runq',
        ('src/sched/runq.h', '''    at_store(&q->slot[t % RING], gp, RELAXED);
    at_store(&q->tail, t + 1, RELEASE); /* [Q1] */
''', '''    at_store(&q->tail, t + 1, RELEASE);
    at_store(&q->slot[t % RING], gp, RELAXED);
''')],
    'no fence on the side of who submits': ['wake',
        ('src/sched/sched.h', 'at_fence(SEQ_CST); /* [W1] */', ''),
        ('src/sched/schedule.c', 'at_fence(SEQ_CST);', '')],
    'no fence on the side of who spins and sleeps': ['wake',
        ('src/sched/idle.c', 'at_fence(SEQ_CST); /* [W2] */', '')],
    'ready before the commit action': ['park',
        ('src/sched/park.h', '''    mp->park_arg = arg;
    switch_away(mp, gp, next_runnable(mp), commit_park);
''', '''    mp->park_arg = arg;
    commit_park(mp, gp);
    switch_away(mp, gp, next_runnable(mp), NULL);
''')],
}

# Statements that wake somebody: each is taken out.
WAKES = re.compile(r'^\s*(wake_for|wake_one|wake_for_more|wake_if_idle|wake_slow|wake_all|p_let_go_end|note_post|futex_wake|'
                   r'word_wake|sysmon_kick|kick|foreign_ready|waiter_ready|waiter_ready_list)\(.*\);'
                   r'(\s*/\*.*)?$')
# Re-checks: file, text, what takes its place.
RECHECKS = [
    ('src/sched/idle.c', 'if (work_visible() && come_back(mp)) {', 'if (0) {'),
    ('src/sched/idle.c', '&& (work_visible() || timers_unattended());',
     '&& (0 || timers_unattended());'),
    ('src/sched/idle.c', '(work_visible() || timers_unattended())', '(work_visible() || 0)'),
    ('src/sched/idle.c', 'sched.nmidle--;\n    keep_until_locked(mp, PIRN_NEVER);', 'sched.nmidle--;'),
    ('src/sched/idle.c', 'keep_until_locked(mp, PIRN_NEVER); /* all', '; /* all'),
    ('src/sched/idle.c', 'if (mp->idle && sched.pidle && !sched.stopped\n        && when <',
     'if (sched.pidle && !sched.stopped\n        && when <'),
    ('src/sched/findwork.c', 'timers_look(mp->p);', ';'),
    ('src/sched/findwork.c', 'if (timers_steal(victim, &now) &&', 'if (0 &&'),
    ('src/sched/idle.c', 'if (mp->idle && sched.pidle && !sched.stopped) {',
     'if (sched.pidle && !sched.stopped) {'),
    ('src/sched/idle.c', '(pp && (at_load(&sched.globq.size, RELAXED) || at_load(&pp->retire, RELAXED)))',
     'false'),
    ('src/sched/idle.c', 'if (mp->idle && sched.pidle && !sched.stopped) {',
     'if (mp->idle && sched.pidle) {'),
    ('src/sched/idle.c', 'if (sched.stopped) {\n        return NULL;', 'if (0) {\n        return NULL;'),
    ('src/sched/idle.c', 'lacks || sched.stopped ? NULL', 'lacks || 0 ? NULL'),
    ('src/sched/idle.c', '    if (!mp->nextp) {\n        mp->locked_waits', '    if (1) {\n        mp->locked_waits'),
    ('src/sched/idle.c', '    struct p *pp = mp->p;\n    mp->p = NULL;\n    at_store(&pp->m, NULL, RELAXED);',
     '    struct p *pp = mp->p;\n    mp->p = NULL;'),
    ('src/sched/entry.c', 'if (at_cas(&mp->attention, &a, a & ~(uint32_t)(M_ASKED | M_LOST), ACQUIRE, RELAXED)) {',
     'if (at_and(&mp->attention, ~(uint32_t)(M_ASKED | M_LOST), ACQUIRE)) {'),
    ('src/sched/entry.c', '    m_queue_bound_locked(mp);\n    }\n    return heir;', '    }\n    return heir;'),
    ('src/sched/retake.c', 'return at_cas(&mp->where, &where, M_TAKEN, ACQ_REL, RELAXED);',
     'return at_load(&mp->where, ACQUIRE) == where && (at_store(&mp->where, M_TAKEN, RELEASE), true);'),
    ('src/sched/retake.c', 'bool same = at_load(&mp->where, ACQUIRE) == M_USER &&', 'bool same ='),
    ('src/sched/retake.c', 'if (at_cas(&mp->attention, &a, to, ACQ_REL, RELAXED)) {',
     'at_store(&mp->attention, to, RELEASE);\n        if (1) {'),
    ('src/sched/retake.c', 'if (at_load(&pp->m, RELAXED) == mp && !m_told_to_stop(mp)', 'if (!m_told_to_stop(mp)'),
    ('src/sched/retake.c', 'if (at_load(&pp->retire, RELAXED) & P_RETIRE_WORLD) {', 'if (0) {'),
    ('src/sched/syscall.c', 'if (unlikely(!at_cas(&mp->where, &where, M_RUNTIME, ACQUIRE, ACQUIRE))) {',
     'if (at_load(&mp->where, ACQUIRE) == where ? (at_store(&mp->where, M_RUNTIME, RELAXED), false)\n'
     '        : (where = at_load(&mp->where, ACQUIRE), true)) {'),
    ('src/sched/lockthread.c', 'bool visited = host.visitor;', 'bool visited = false;'),
    ('src/sched/lockthread.c', 'host.asleep_on = gp ? NULL : n;', 'host.asleep_on = n;'),
    ('src/sched/world.c', 'at_or(&mp->attention, M_PREEMPT, RELAXED);', ';'),
    ('src/sched/world.c', '    sched.stopped = true;', '    ;'),
    ('src/sched/runq.c', 'if (t == at_load(&q->tail, RELAXED)) {', 'if (1) {'),
    ('src/sched/runq.c', '        if (n > RING / 2) {', '        if (0) {'),
    ('src/sched/runq.c', 'if (at_load(&q->tail, RELAXED) - h < RING\n        || !at_cas',
     'if (!at_cas'),
    ('src/sched/schedule.c', 'if (runq_put_owner(&pp->runq, gp)) {\n            return;',
     'if (0) {\n            return;'),
    ('src/sched/sysmon.c', 'if (!at_load(&sysmon.kicked, RELAXED) && ', 'if ('),
    ('src/sched/sysmon.c', ' && !at_load(&sysmon.stop, RELAXED)) {', ') {'),
    ('src/sched/foreign.c', 'if (likely(life == LIFE_RUNNING)) {\n                return', 'if (1) {\n                return'),
    ('src/sched/park.c', 'if (unlikely(at_load(&gp->status, ACQUIRE) != G_WAITING)) {', 'if (0) {'),
    ('src/os/note.c', 'while (!at_load(&n->posted, ACQUIRE)) {', 'if (!at_load(&n->posted, ACQUIRE)) {'),
    ('src/os/lock.c', 'while (at_xchg(&l->state, SLEEPERS, ACQUIRE) != FREE) {',
     'if (at_xchg(&l->state, SLEEPERS, ACQUIRE) != FREE) {'),
    ('src/os/lock.c', 'at_add(bed, 1, RELAXED);', ';'),
    ('src/sync/waitgroup.c', 'if (count_of(s) == 0) {\n        word_unlock(state, s);',
     'if (0) {\n        word_unlock(state, s);'),
    ('src/sched/timers.c', 'if (at_load(&t->heap, RELAXED) == h) {', 'if (1) {'),
    ('src/sched/timers.c', 'if (at_cas(&t->heap, &none, h, ACQUIRE, RELAXED)) {',
     'at_store(&t->heap, h, RELAXED);\n        if (!none) {'),
    ('src/sched/timers.c', '&& !has_keeper(when)\n        && !(mp', '&& 0\n        && !(mp'),
    ('src/sched/timers.c', 'return !has_keeper(when) && !is_far(when);', 'return false;'),
    ('src/sched/timers.c', 'at_add(&t->generation, 1, RELAXED);\n            return false;',
     'return false;'),
    ('src/sched/timers.c', 'bool due = t->when <= now;', 'bool due = true;'),
    ('src/sync/chan.c', 'if (at_cas(op->winner, &none, (void *)op, RELAXED, RELAXED)) {', 'if (!none) {'),
    ('src/sync/chan.c', 'op->chan->selects--; /*', '; /*'),
    ('src/sync/chan.c', 'timer_chan_end_locked(c->timer)) && c->selects == 0;', 'timer_chan_end_locked(c->timer));'),
    ('src/sync/chan.c', 'c->dead && (!c->timer || timer_chan_end_locked(c->timer)) &&', 'c->dead &&'),
    ('src/sync/chan.c', '    if (op->queued) {', '    if (1) {'),
    ('src/sync/select.c', 'return select_claim(s, t) ? s->waiter : NULL;', 'return s->waiter;'),
    ('src/sync/select.c', '&& !select_claim(s, &s->timer)) {', '&& 0) {'),
    ('src/sync/select.c', '    leave_all(s, winner);\n', ''),
    ('src/sync/select.c', '    lock_all(s);\n    while ((i = pick(r, s->cases, s->n, true)) >= 0) {',
     '    lock_all(s);\n    while (0) {'),
    ('src/sync/select.c', '        timer_stop(&s->timer);', '        ;'),
    ('src/sync/cond.c', '    waitq_remove(&c->waiters_, w);\n', ''),
    ('src/sync/cond.c', 'if (select_claim_also(op->select)) {', 'if (1) {'),
    ('src/sync/cond.c', 'RELAXED) & (WAITERS | WORD_LOCKED))', 'RELAXED) & WAITERS)'),
    ('src/sync/mutex.c', 's &= ~WOKEN;\n        }\n        if (!(s & (HELD', ';\n        }\n        if (!(s & (HELD'),
    ('src/sync/mutex.c', 'if (!(s & (HELD | STARVING))) {\n            word_unlock',
     'if (0) {\n            word_unlock'),
    ('src/sync/mutex.c', 'op->handed = true;', ';'),
    ('src/sync/mutex.c', 'if (!m->waiters_ || now_ns() - op->since < STARVES_AFTER) {',
     'if (now_ns() - op->since < STARVES_AFTER) {'),
    ('src/sync/rwmutex.c', 'if (can_enter(s, writes)) {\n        word_unlock', 'if (0) {\n        word_unlock'),
    ('src/sync/rwmutex.c', 'if (writes && *s >= READER) {', 'if (0) {'),
    ('src/sync/rwmutex.c', '(WRITER | WAITERS)) : !(s & (WRITER | WAITERS));',
     '(WRITER | WAITERS)) : !(s & WAITERS);'),
    ('src/sync/sem.c', 'if (s->waiters_ || s->n_ < n) {', 'if (s->n_ < n) {'),
    ('src/sync/once.c', 'if (at_load(done_of(o), RELAXED)) {', 'if (0) {'),
    ('src/time/timer.c', 'RELAXED) == generation;', 'RELAXED) | 1;'),
    ('src/time/timer.c', 'chan_unlock_empty(c, word);', 'chan_unlock(c);'),
    ('src/time/timer.c', '!current || c->dead ||', '!current ||'),
    ('src/time/timer.c', 'return at_load(&t->sending, RELAXED) == 0;', 'return true;'),
    ('src/time/timer.c', 'if (current) {', 'if (0) {'),
    ('src/time/timer.c', 'if (!others_run_locked(t, me)) {', 'if (1) {'),
]


# Where to look first.
HOME = {'idle': 'wake', 'findwork': 'wake', 'schedule': 'wake', 'globq': 'wake', 'sched': 'wake',
        'os': 'lock', 'p': 'resize', 'm': 'stop', 'g': 'gfree', 'sysmon': 'wake_next', 'switch': 'park',
        'stack': 'stackpool', 'stackmem': 'stackpool', 'factory': 'kick', 'foreign': 'foreign_life',
        'entry': 'retake', 'syscall': 'retake', 'preempt': 'handoff',
        'waitq': 'mutex', 'rwmutex': 'mutex', 'sem': 'mutex', 'once': 'mutex'}


class Mutant:
    def __init__(self, name, file, line, weaken=None, edits=None):
        self.name, self.file, self.line = name, file, line
        self.weaken, self.edits = weaken, edits
        self.killer = None


def model_programs(build):
    return sorted(p for p in (build / 'tests/model').glob('model-*') if p.is_file()
                  and os.access(p, os.X_OK) and p.name not in ('model-fuzz', 'model-litmus'))


def models_of(program):
    out = subprocess.run([program, '--list'], stdout=subprocess.PIPE, text=True, check=True)
    return out.stdout.split()


def programs_with(build):
    """Of each file in src/ the names of the programs that it is compiled into, from ninja's log."""
    out = subprocess.run(['ninja', '-C', build, '-t', 'deps'], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    found, name = {}, None
    for line in out.splitlines():
        if m := re.match(r'tests/model/model-(\w+)\.p/', line):
            name = m[1]
        elif m := re.match(r'\s+.*?(src/\S+)$', line):
            found.setdefault(m[1], set()).add(name)
        elif not line.startswith(' '):
            name = None
    for names in found.values():
        names -= {None, 'fuzz', 'litmus'}
    return found


def weaker(kind, order):
    """One step down; for a fence: none at all."""
    if kind == 'fence':
        return ['RELAXED']
    if order == 'SEQ_CST':
        return {'load': ['ACQUIRE'], 'store': ['RELEASE']}.get(kind, ['ACQ_REL'])
    if order == 'ACQ_REL':
        return ['ACQUIRE', 'RELEASE']
    return ['RELAXED'] if order in ('ACQUIRE', 'RELEASE') else []


def sites_of(program):
    """Of each operation in src/ its place, and its name and what else the program says of it: a file that
    a model includes has another name there."""
    out = subprocess.run([program, '--sites'], stdout=subprocess.PIPE, text=True, check=True)
    for row in out.stdout.splitlines():
        site, *rest = row.split('\t')
        if '/src/' in site:
            yield 'src/' + site.split('/src/', 1)[1], site, rest


def order_mutants(build):
    found = {}
    for program in model_programs(build):
        for place, _, (kind, order, fail) in sites_of(program):
            file, line, text = place.split(':', 2)
            kind = KINDS[int(kind)]
            for new in weaker(kind, order):
                tail = f'/{fail}' if fail != '-' else ''
                found[place, new, fail] = Mutant(f'{kind}({text}) {order} -> {new}', file, int(line),
                                                 weaken=(place, f'{new}{tail}'))
            for new in weaker('load', fail) if fail != '-' else []:
                found[place, order, new] = Mutant(f'{kind}({text}) on failure {fail} -> {new}', file,
                                                  int(line), weaken=(place, f'{order}/{new}'))
    return list(found.values())


def source_mutants(files):
    found = []
    for file in sorted(files):
        text = (ROOT / file).read_text()
        lines = text.splitlines(keepends=True)
        for i, line in enumerate(lines):
            if WAKES.match(line):
                found.append(Mutant(f'without {line.strip().split(";")[0]}', file, i + 1,
                                    edits=[(file, i + 1, ';\n')]))
        for at, old, new in RECHECKS:
            if at == file:
                if old not in text:
                    sys.exit(f'mutate.py: {file} has no {old!r} any more')
                to = ' '.join(new.split())[:20] or 'nothing'
                found.append(Mutant(f'{" ".join(old.split())[:60]} -> {to}', file,
                                    text[:text.index(old)].count('\n') + 1, edits=[(file, old, new)]))
    return found


def kill(mutant, build, seconds, only):
    """The model that fails, or None. First the programs where it is likely, and a short look at each
    model before a long one."""
    stem = Path(mutant.file).stem
    names = sorted(only, key=lambda name: (name != HOME.get(stem, stem), name))
    todo = []
    for name in names:
        program = build / f'tests/model/model-{name}'
        weaken = []
        if mutant.weaken:
            here = {site for place, site, _ in sites_of(program) if place == mutant.weaken[0]}
            if not here:
                continue
            for site in here:
                weaken += ['--weaken', f'{site}={mutant.weaken[1]}']
        todo += [(program, model, weaken) for model in models_of(program)]
    for limit in (seconds / 16, seconds):
        unfinished = []
        for program, model, weaken in todo:
            cmd = [program, '--model', model, '--seconds', str(limit), '--no-trace', *weaken]
            p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if p.returncode not in (0, 1):
                sys.exit(f'mutate.py: {cmd} says {p.stdout}')
            if p.returncode:
                return f'{program.name[6:]}/{model}'
            if '(not all)' in p.stdout:
                unfinished.append((program, model, weaken))
        todo = unfinished
    return None


class Tree:
    """A copy of the sources that can be spoiled and built."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix='pirn-mutate-'))
        for name in ('src', 'include', 'tests', 'meson.build', 'meson_options.txt'):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, self.dir / name)
        self.build = self.dir / 'build'
        subprocess.run(['meson', 'setup', self.build, '-Dflavour=model'], cwd=self.dir, check=True,
                       stdout=subprocess.DEVNULL)

    def make(self, only):
        targets = [f'tests/model/model-{name}' for name in only]
        return subprocess.run(['ninja', '--quiet', '-j1', '-C', self.build, *targets],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def kill(self, edits, seconds, only):
        kept = {}
        for file, old, new in edits:
            path = self.dir / file
            text = kept.setdefault(path, path.read_text()) if path not in kept else path.read_text()
            if isinstance(old, int):
                lines = text.splitlines(keepends=True)
                lines[old - 1] = new
                path.write_text(''.join(lines))
            elif old in text:
                path.write_text(text.replace(old, new, 1))
            else:
                sys.exit(f'mutate.py: {file} has no {old!r} any more')
        try:
            if not self.make(only):
                return 'the compiler'
            return kill(Mutant('', edits[0][0], 0), self.build, seconds, only)
        finally:
            for path, text in kept.items():
                path.write_text(text)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def explained(mutant):
    """Does a comment near the operation speak of the mutant?"""
    lines = (ROOT / mutant.file).read_text().splitlines()
    return any('mutant' in text for text in lines[max(0, mutant.line - 6):mutant.line + 1])


def planted(seconds):
    tree, failed = Tree(), 0
    try:
        for name, (program, *edits) in PLANTED.items():
            killer = tree.kill(edits, seconds, [program])
            print(f'{"found by " + killer if killer else "NOT FOUND":40} {name}', flush=True)
            failed += killer is None or killer == 'the compiler'
    finally:
        tree.remove()
    print(f'{len(PLANTED) - failed} passed, {failed} failed')
    return 1 if failed else 0


def report(mutants, file):
    with open(file, 'w') as out:
        killed = [m for m in mutants if m.killer]
        print('# Mutants\n\nWhat `make mutants` found. Each row is one change to the sources: a weaker '
              'order, or a fence, a\nwake or a re-check that is missing; and the first model that '
              'fails with it. See\n[model-checking.md](model-checking.md).\n', file=out)
        print(f'{len(killed)} of {len(mutants)} mutants are killed '
              f'({100 * len(killed) / len(mutants):.1f} %).\n', file=out)
        print('| place | mutant | killed by |\n|---|---|---|', file=out)
        for m in mutants:
            by = m.killer or ('**survives**, explained in the source' if explained(m)
                              else '**survives**')
            name = m.name.replace('|', '\\|')
            print(f'| {m.file[4:]}:{m.line} | `{name}` | {by} |', file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--build', type=Path, default=ROOT / 'build/model')
    parser.add_argument('--filter', default='')
    parser.add_argument('--seconds', type=float, default=4, help='the most for one model')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--report', help='a file for the table')
    parser.add_argument('--orders', action='store_true', help='orders and fences only: no new build')
    parser.add_argument('--planted', action='store_true')
    args = parser.parse_args()
    if args.planted:
        return planted(args.seconds)
    start = time.monotonic()
    where = programs_with(args.build)
    mutants = order_mutants(args.build)
    if not args.orders:
        mutants += source_mutants(file for file in where if where[file])
    mutants = [m for m in mutants if re.search(args.filter, f'{m.file}:{m.line} {m.name}')]
    mutants.sort(key=lambda m: (m.file, m.line))
    trees = queue.SimpleQueue()
    made = [Tree() for _ in range(args.jobs)] if any(m.edits for m in mutants) else []
    for tree in made:
        trees.put(tree)

    def judge(m):
        if m.weaken:
            m.killer = kill(m, args.build, args.seconds, where[m.file])
        else:
            tree = trees.get()
            m.killer = tree.kill(m.edits, args.seconds, where[m.file])
            trees.put(tree)
        print(f'{m.killer or "SURVIVES":40} {m.file}:{m.line} {m.name}', flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(judge, mutants))
    for tree in made:
        tree.remove()
    killed = sum(m.killer is not None for m in mutants)
    silent = [m for m in mutants if not m.killer and not explained(m)]
    print(f'{killed} of {len(mutants)} mutants killed, {len(silent)} survivors not explained, '
          f'{time.monotonic() - start:.0f} s')
    if args.report:
        report(mutants, args.report)
    return 1 if silent else 0


if __name__ == '__main__':
    sys.exit(main())
