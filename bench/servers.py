# SPDX-License-Identifier: MIT
"""What bench/http and bench/resp share: servers that take turns, and a table of them.

Each server has one CPU (--procs: that many) and the client the rest, if there are two or more. In
each round each server is loaded once; requests/s and p99 are the medians of the rounds, CPU a
request (user and system, of the server) the least. The ratio is pirn's to the other's.
"""
import argparse
import os
import re
import signal
import socket
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
CPUS = sorted(os.sched_getaffinity(0))


def arguments(doc):
    ap = argparse.ArgumentParser(description=doc + '\n' + __doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('build', type=Path, help='build directory, such as build/native')
    ap.add_argument('--rounds', type=int, default=5)
    ap.add_argument('--seconds', type=float, default=2, help='of load, each time')
    ap.add_argument('--procs', type=int, default=1, help='Ps of the servers')
    ap.add_argument('--connections', type=int, default=0)
    ap.add_argument('--record', action='store_true', help='append to bench/RESULTS.md')
    args = ap.parse_args()
    args.build = args.build.resolve()
    return args


def pin(cpus):
    return lambda: os.sched_setaffinity(0, cpus)


def client_cpus(args):
    return set(CPUS[args.procs:] or CPUS)


class Server:
    def __init__(self, args, cmd, port=None):
        env = {**os.environ, 'PIRN_PROCS': str(args.procs), 'WORKERS': str(args.procs)}
        self.p = subprocess.Popen([str(c) for c in cmd], stdout=subprocess.PIPE, text=True, env=env,
                                  preexec_fn=pin(set(CPUS[:args.procs])))
        self.port = port or int(re.search(r':(\d+)$', self.p.stdout.readline())[1])
        while True:
            try:
                socket.create_connection(('127.0.0.1', self.port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)

    def cpu(self):
        f = Path(f'/proc/{self.p.pid}/stat').read_text().rsplit(')', 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        try:
            self.p.wait(10)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


def go_twin(args, name):
    """A function that starts bench/go/NAME; None without Go."""
    if not shutil.which('go'):
        return None
    folder = tempfile.TemporaryDirectory()
    program = f'{folder.name}/{name}'
    subprocess.run(['go', 'build', '-o', program, f'./{name}'], cwd=BENCH / 'go', check=True)

    def start():
        return Server(args, [program])
    start.folder = folder  # it is there for as long as it is needed
    return start


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as s:
        return s.getsockname()[1]


def progress(text):
    if sys.stderr.isatty():
        print(f'\r{text:60}\r', end='', file=sys.stderr, flush=True)


def measure(args, servers, loads):
    """servers: name -> function that starts it. loads: name -> function(server) that loads it and
    returns (requests, requests/s, p99 in ms). Returns {(load, server): [(rps, cpu us, p99), ...]}."""
    runs = {}
    for i in range(args.rounds):
        for who, start in servers.items():
            server = start()
            try:
                for what, load in loads.items():
                    before = server.cpu()
                    n, rate, p99 = load(server)
                    cpu = (server.cpu() - before) * 1e6 / n
                    runs.setdefault((what, who), []).append((rate, cpu, p99))
                    progress(f'round {i + 1}: {what} {who} {rate:,.0f}/s')
            finally:
                server.stop()
    progress('')
    return runs


def table(runs):
    first = next(iter(runs))[1]
    rows = [['', 'server', 'requests/s', 'ratio', 'CPU a request', 'ratio', 'p99']]
    for (what, who), values in sorted(runs.items(), key=lambda r: (list(runs).index((r[0][0], first)),)):
        rate, p99 = (statistics.median(v[i] for v in values) for i in (0, 2))
        cpu = min(v[1] for v in values)
        ours = runs[what, first]
        ratios = ['', '']
        if who != first:
            ratios = [f'{statistics.median(v[0] for v in ours) / rate:.2f}',
                      f'{min(v[1] for v in ours) / cpu:.2f}']
        rows.append([what, who, f'{rate:,.0f}', ratios[0], f'{cpu:.2f} us', ratios[1], f'{p99:.2f} ms'])
    width = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = ['| ' + ' | '.join(c.ljust(w) if i < 2 else c.rjust(w)
                               for i, (c, w) in enumerate(zip(r, width))) + ' |' for r in rows]
    lines.insert(1, '|' + '|'.join('-' * (w + 1) + (':' if i > 1 else '-')
                                   for i, w in enumerate(width)) + '|')
    return '\n'.join(lines)


def finish(args, title, runs):
    text = table(runs)
    print(text)
    if args.record:
        commit = subprocess.run(['git', 'rev-parse', '--short=12', 'HEAD'], cwd=BENCH, text=True,
                                stdout=subprocess.PIPE).stdout.strip()
        with (BENCH / 'RESULTS.md').open('a') as f:
            f.write(f'\n## {time.strftime("%Y-%m-%d")}, {title}, commit {commit}\n\n{len(CPUS)} CPUs, '
                    f'{args.procs} for the server; {args.rounds} rounds.\n\n{text}\n')
