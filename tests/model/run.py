#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the models: all of them, or with --quick what fits in 40 s.

The full run explores each model without a bound. Where that takes longer than --seconds it must be
possible with 3 preemptions: a model that is too big for that has failed. The time that is left up to
--minutes goes to all executions with 3 preemptions without any reduction, and to random priorities,
so that what the reduction leaves out is looked at too.

The quick run gives each model a second without a bound; where that is not enough, a second with its
quick bound, and random priorities.

Ends with the number of executions and a line `N passed, N failed`.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def programs(build):
    found = sorted(p for p in (build / 'tests/model').glob('model-*') if os.access(p, os.X_OK)
                   and p.is_file() and p.name != 'model-fuzz')
    if not found:
        sys.exit(f'run.py: no models in {build}; make build-model')
    return found


def models(program):
    out = subprocess.run([program, '--list'], stdout=subprocess.PIPE, text=True, check=True)
    return out.stdout.split()


def run(program, model, args):
    cmd = [str(program), '--model', model, *args]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.returncode, p.stdout, cmd


def executions(text):
    return sum(int(n.replace(',', '')) for n in re.findall(r'([\d,]+) executions', text))


class Models:
    """What has been run so far."""

    def __init__(self, todo, jobs, quiet):
        self.todo, self.quiet = todo, quiet
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.total, self.passed, self.failed = 0, [], []

    def each(self, job):
        """Calls job(explore) for each model; those that are as they should be are left for more."""
        todo, self.todo = self.todo, []
        for item, out, why in self.pool.map(lambda item: self.one(job, item), todo):
            self.total += executions(out)
            if why:
                self.failed.append(item)
                print(f'FAIL {item[0].name[6:]}/{item[1]}: {why}\n{out}', flush=True)
                continue
            if 'found, as it must be' in out:  # a planted bug
                self.passed.append(item)
            else:
                self.todo.append(item)
            if not self.quiet:
                print(out, end='', flush=True)

    def one(self, job, item):
        said = []

        def explore(*args):
            code, out, cmd = run(*item, args)
            said.append(out)
            if code:
                raise Failed(' '.join(cmd))
            return '(not all)' not in out
        try:
            job(explore)
            return item, ''.join(said), None
        except Failed as failed:
            return item, ''.join(said), str(failed)


class Failed(Exception):
    pass


def limit(seconds):
    return '--seconds', f'{seconds:.2f}'


def quick_job(explore):
    if not explore(*limit(1)):
        explore('--quick', *limit(1))
        explore('--pct', '1', *limit(0.25))


def full_job(seconds):
    def job(explore):
        if not explore(*limit(seconds)) and not explore('--bound', '3', *limit(5 * seconds)):
            raise Failed('too big to be explored with 3 preemptions')
    return job


def more_job(seconds):
    def job(explore):
        began = time.monotonic()
        explore('--bound', '3', *limit(seconds))
        if (left := seconds - (time.monotonic() - began)) > 0.01:
            explore('--pct', '1', *limit(left))
    return job


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=Path, default=ROOT / 'build/model')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--seconds', type=float, default=20, help='for one model without a bound')
    parser.add_argument('--minutes', type=float, default=9.5, help='for everything')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--filter', default='', help='REGEX of program/model')
    args = parser.parse_args()
    start = time.monotonic()
    todo = [(p, m) for p in programs(args.build) for m in models(p)
            if re.search(args.filter, f'{p.name[6:]}/{m}')]
    all_models = Models(todo, args.jobs, args.quick)
    if args.quick:
        all_models.each(quick_job)
    else:
        all_models.each(full_job(args.seconds))
        left = args.minutes * 60 - (time.monotonic() - start)
        print(f'{all_models.total:,} executions in {time.monotonic() - start:.0f} s; '
              f'{max(left, 0):.0f} s are left', flush=True)
        if left > 0:
            all_models.each(more_job(left * args.jobs / len(todo)))
    print(f'{all_models.total:,} executions in {time.monotonic() - start:.0f} s')
    passed = len(all_models.passed) + len(all_models.todo)
    print(f'{passed} passed, {len(all_models.failed)} failed')
    return 1 if all_models.failed else 0


if __name__ == '__main__':
    sys.exit(main())
