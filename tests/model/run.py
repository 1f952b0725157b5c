#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the models: all of them, or with --quick the part that fits in 40 s.

A model is explored without a bound, in full. Where that takes longer than --seconds it is stopped
there and says so; then come its quick bound and random priorities. The full run also tries all
executions with 3 preemptions, without any reduction, for a while: so that what the reduction leaves
out is looked at too. Ends with the number of executions and a line `N passed, N failed`.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=Path, default=ROOT / 'build/model')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--seconds', type=float, help='the most for one model')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--filter', default='', help='REGEX of program/model')
    args = parser.parse_args()
    seconds = args.seconds or (1 if args.quick else 45)
    start, total, failed, passed = time.monotonic(), 0, [], 0
    todo = [(p, m) for p in programs(args.build) for m in models(p)
            if re.search(args.filter, f'{p.name[6:]}/{m}')]

    def job(item):
        program, model = item
        limit = ['--seconds', str(seconds)]
        code, out, cmd = run(program, model, limit)
        also = []
        if '(not all)' in out:
            also += [['--quick', *limit], ['--pct', '1', '--seconds', str(seconds / 4)]]
        if not args.quick and 'as it must be' not in out:
            also += [['--bound', '3', '--seconds', str(seconds / 8)]]
        for more in also:
            if code == 0:
                code, text, cmd = run(program, model, more)
                out += text
        return item, code, out, cmd

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (program, model), code, out, cmd in pool.map(job, todo):
            total += executions(out)
            if code == 0:
                passed += 1
                if not args.quick:
                    print(out, end='', flush=True)
            else:
                failed.append(model)
                print(f'FAIL {program.name}/{model}\n     {" ".join(cmd)}\n{out}', flush=True)
    print(f'{total:,} executions in {time.monotonic() - start:.0f} s')
    print(f'{passed} passed, {len(failed)} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
