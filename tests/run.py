#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs test programs, each test in a process and session of its own.

  run.py PROGRAM...                       harness programs (harness.h)
  run.py --manifest build/native/tests/manifest.txt [--kinds unit,die]
  run.py --die PROGRAM=SOURCE.c           a program that must die
  run.py --compile tests/compile          files that must, or must not, compile

A program that must die says what is expected in its head comment:
  expect-exit: 2               or  expect-signal: SIGABRT
  expect-first-line: TEXT      first line of stderr, exactly
  expect-stderr: TEXT          stderr contains it (may be repeated)
  expect-stderr-regex: RE      expect-stdout: TEXT
  expect-no-stderr: TEXT
  expect-race: FN by WHO, FN by WHO   ThreadSanitizer reports these two accesses, by functions
                               FN of goroutines that run WHO (or: thread, main thread); exit 66
  env: K=V   timeout: SECONDS   procs: 1,2   skip-in: LABEL REASON (LABEL may be a machine: aarch64)

An example must exit 0; what stands below "Prints:" in its head comment, it must print.

A compile test has // expect-ok, or // expect-error: REGEX (expect-error-gcc:,
expect-error-clang: for one compiler) and // line-of-error on the line that the
compiler must name. It is tried with gcc and clang, and once more with each
// also: FLAGS.
"""
import argparse
import concurrent.futures
import os
import platform
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SKIP = 77
DEFAULT_TIMEOUT = 30
KEEP = 64 * 1024  # bytes of output kept from either end
ROOT = Path(__file__).resolve().parent.parent


class Result:
    """Totals of a run; groups add into one."""

    def __init__(self):
        self.passed = 0
        self.failed = []   # names
        self.skipped = []  # (name, reason)

    def closing_line(self):
        line = f'{self.passed} passed, {len(self.failed)} failed'
        if self.skipped:
            line += f', {len(self.skipped)} skipped'
        return line

    def close(self):
        """The end of the output: failures, skips with their reasons, the totals."""
        for name, why in self.skipped:
            print(f'skipped: {name}: {why}')
        for name in self.failed:
            print(f'FAILED: {name}')
        print(self.closing_line(), flush=True)
        return 1 if self.failed else 0


class Reader(threading.Thread):
    """Drains a pipe; of a flood it keeps the start and the end."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.head, self.tail, self.lost = pipe, b'', b'', 0
        self.start()

    def run(self):
        while data := os.read(self.pipe.fileno(), 65536):
            room = KEEP - len(self.head)
            self.head += data[:room]
            self.tail += data[room:]
            if len(self.tail) > 2 * KEEP:
                self.lost += len(self.tail) - KEEP
                self.tail = self.tail[-KEEP:]

    def text(self):
        self.join(5)  # a child that left the session may keep the pipe open
        middle = f'\n[... {self.lost} bytes ...]\n'.encode() if self.lost else b''
        return (self.head + middle + self.tail).decode(errors='replace')


class Outcome:
    def __init__(self, code, out, err, note, seconds, cpu=0.0):
        self.code, self.out, self.err, self.note = code, out, err, note
        self.seconds, self.cpu = seconds, cpu


def end_of(code):
    if code is None:
        return 'still running'
    if code < 0:
        try:
            return f'died of {signal.Signals(-code).name}'
        except ValueError:
            return f'died of signal {-code}'
    return f'exit {code}'


def backtrace(pid):
    """Where every thread of a hanging test stands, if gdb can tell."""
    if not shutil.which('gdb'):
        return ''
    cmd = ['gdb', '-nx', '-p', str(pid), '-batch', '-ex', 'set pagination off',
           '-ex', 'thread apply all bt 30']
    try:
        p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, timeout=30, text=True, errors='replace')
    except subprocess.TimeoutExpired:
        return ''
    at = p.stdout.find('\nThread ')
    return p.stdout[at + 1:] if at >= 0 else ''


live = set()  # processes under way, for kill_live
live_lock = threading.Lock()


def kill_live():
    """An interrupted run leaves nothing behind."""
    with live_lock:
        for pid in live:
            os.killpg(pid, signal.SIGKILL)


# A process group of its own, so that all of it can be killed. Not a session: Linux gives each of those a share of the
# CPUs of its own (autogroups), however nice it is, and under load some have nothing for seconds.
OWN_GROUP = {'process_group': 0} if sys.version_info >= (3, 11) else {'start_new_session': True}


def run_process(cmd, env, timeout, split=False, trace=True):
    """One process, its own group, stdin empty; the whole group is killed at the end."""
    full_env = dict(os.environ)
    full_env.update(env)
    start = time.monotonic()
    p = subprocess.Popen(cmd, env=full_env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE if split else subprocess.STDOUT, **OWN_GROUP)
    with live_lock:
        live.add(p.pid)
    out = Reader(p.stdout)
    err = Reader(p.stderr) if split else None
    fd = os.pidfd_open(p.pid)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    note = ''
    if not poll.poll(timeout * 1000):
        note = f'timed out after {timeout:g} s'
        if trace and (bt := backtrace(p.pid)):
            note += '\n' + indent(bt)
        # SIGQUIT makes pirn say where its goroutines are.
        os.kill(p.pid, signal.SIGQUIT)
        poll.poll(3000)
    # The process is not reaped yet, so its group's number cannot be another's.
    os.killpg(p.pid, signal.SIGKILL)
    with live_lock:
        live.discard(p.pid)
        _, status, usage = os.wait4(p.pid, 0)
        code = p.returncode = os.waitstatus_to_exitcode(status)
    os.close(fd)
    texts = out.text(), err.text() if err else ''
    p.stdout.close()
    if err:
        p.stderr.close()
    return Outcome(code, *texts, note, time.monotonic() - start, usage.ru_utime + usage.ru_stime)


class Test:
    """One run of one test. judge(outcome) gives None, or why it failed."""

    def __init__(self, name, cmd, env=None, timeout=0, slow=False, alone=False, split=False,
                 judge=None, skip=None):
        self.name, self.cmd, self.env = name, cmd, env or {}
        self.timeout, self.slow, self.alone, self.split = timeout, slow, alone, split
        self.judge, self.skip = judge or judge_exit, skip

    @property
    def title(self):
        """The same for all numbers of Ps."""
        return self.name.partition(' procs=')[0]

    def do_times(self, n):
        """For those of the harness."""
        self.cmd = [*self.cmd, str(n)]
        self.timeout = (self.timeout or DEFAULT_TIMEOUT) * n


def judge_exit(o):
    return None if o.code == 0 else end_of(o.code)


def parse_env(text):
    return dict(pair.split('=', 1) for pair in text.split())


def with_procs(name, procs):
    """(name, env) for each value of a list as '1,2,4'."""
    if not procs:
        return [(name, {})]
    return [(f'{name} procs={n}', {'PIRN_PROCS': n}) for n in procs.replace(' ', '').split(',')]


def broken(name, why):
    """A test that could not be set up: it fails when its turn comes."""
    return Test(name, ['false'], judge=lambda o: why)


def harness_tests(program, label, wrapper=()):
    cmd = [*wrapper, str(program)]
    try:
        p = subprocess.run([*cmd, '--list'], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=60)
        trouble = None if p.returncode == 0 else f'--list: {end_of(p.returncode)}\n{p.stderr}'
    except (OSError, subprocess.TimeoutExpired) as e:
        trouble = str(e)
    if trouble:
        return [broken(label, trouble)]
    tests = []
    for line in p.stdout.splitlines():
        name, *attrs = line.split('\t')
        attr = dict(a.split('=', 1) for a in attrs)
        for full, env in with_procs(f'{label} {name}', attr.get('procs')):
            env.update(parse_env(attr.get('env', '')))
            tests.append(Test(full, [*cmd, name], env, int(attr.get('timeout', 0)),
                              'slow' in attr, 'alone' in attr))
    return tests or [broken(label, 'the program holds no test')]


DIE_KEYS = ('expect-exit', 'expect-signal', 'expect-first-line', 'expect-stderr',
            'expect-stderr-regex', 'expect-no-stderr', 'expect-stdout', 'expect-race', 'env',
            'timeout', 'procs', 'skip-in')
# Programs linked with pirn-race. At its end TSan would wait a second for others that still run.
RACE_ENV = {'TSAN_OPTIONS': 'halt_on_error=1:atexit_sleep_ms=0'}


def read_expectations(source):
    found, bad = {}, []
    for line in Path(source).read_text().splitlines()[:60]:
        m = re.match(r'[\s/*]*(expect-[a-z-]+|env|timeout|procs|skip-in): ?(.*?)\s*(\*/)?$', line)
        if m and m[1] in DIE_KEYS:
            found.setdefault(m[1], []).append(m[2])
        elif m:
            bad.append(m[1])
    return found, bad


def race_trouble(report, want):
    """What is wrong with a report, if it is to be of the two accesses of an expect-race."""
    names = dict(re.findall(r"^  Thread (T\d+) '(?:goroutine \d+: )?([^,']*)", report, re.M))
    found = [f'{fn} by {names.get(thread, "thread") if thread else who}' for who, thread, fn in
             re.findall(r'^  .*(?:read|write) of size \d+ at \S+ by (main thread|thread (T\d+)).*:\n'
                        r'    #0 (\w+)', report, re.M | re.I)]
    wanted = [w.strip() for w in want.split(',')]
    if sorted(found) == sorted(wanted):
        return []
    return [f'expected a race of {" and ".join(wanted)}, got: {" and ".join(found) or "none"}']


def die_judge(want):
    if 'expect-race' in want:
        want.setdefault('expect-exit', ['66'])

    def judge(o):
        wrong = []
        for text in want.get('expect-race', []):
            wrong += race_trouble(o.err, text)
        for text in want.get('expect-no-stderr', []):
            if text in o.err:
                wrong.append(f'in stderr: {text!r}')
        if 'expect-exit' in want and o.code != int(want['expect-exit'][0]):
            wrong.append(f'expected exit {want["expect-exit"][0]}, got: {end_of(o.code)}')
        if 'expect-signal' in want:
            number = signal.Signals[want['expect-signal'][0]]
            # a wrapper may pass a signal on as 128 + number
            if o.code not in (-number, 128 + number):
                wrong.append(f'expected {want["expect-signal"][0]}, got: {end_of(o.code)}')
        for text in want.get('expect-first-line', []):
            line = (o.err.splitlines() or [''])[0]
            if line != text:
                wrong.append(f'expected first line of stderr: {text!r}, got: {line!r}')
        for text in want.get('expect-stderr', []):
            if text not in o.err:
                wrong.append(f'not in stderr: {text!r}')
        for text in want.get('expect-stderr-regex', []):
            if not re.search(text, o.err, re.M):
                wrong.append(f'no match in stderr: {text!r}')
        for text in want.get('expect-stdout', []):
            if text not in o.out:
                wrong.append(f'not in stdout: {text!r}')
        return '\n'.join(wrong) or None
    return judge


def die_tests(program, source, name, run_label='', wrapper=()):
    want, bad = read_expectations(source)
    if bad:
        return [broken(name, f'{source}: unknown expectation {bad[0]!r}')]
    if not want.keys() & {'expect-exit', 'expect-signal', 'expect-race'}:
        return [broken(name, f'{source}: no expect-exit, -signal or -race in its head')]
    skip = None
    for line in want.get('skip-in', []):
        where, _, why = line.partition(' ')
        if where in (*run_label.split(), platform.machine()):
            skip = why or f'not for {where}'
    tests = []
    for full, env in with_procs(name, want.get('procs', [''])[0]):
        env.update(parse_env(' '.join(want.get('env', []))))
        tests.append(Test(full, [*wrapper, str(program)], env,
                          int(want.get('timeout', ['0'])[0]), split=True,
                          judge=die_judge(want), skip=skip))
    return tests


def tsan_wrapper():
    """TSan of gcc 12 and clang 14 does not start where the kernel randomises over 28 bits."""
    try:
        bits = int(Path('/proc/sys/vm/mmap_rnd_bits').read_text())
    except (OSError, ValueError):
        bits = 0
    fix = ['setarch', '-R']
    if bits > 28 and subprocess.run([*fix, 'true'], capture_output=True).returncode == 0:
        return fix
    return []


def race_tests(program, source, name):
    """A race that must be reported; or, if nothing is expected, a harness program without any."""
    planted = any(k.startswith('expect-') for k in read_expectations(source)[0])
    tests = (die_tests(program, source, name, wrapper=tsan_wrapper()) if planted else
             harness_tests(program, name, tsan_wrapper()))
    for t in tests:
        t.env = {**RACE_ENV, **t.env}
    return tests


def compile_judge(source, compiler):
    text = Path(source).read_text()
    lines = text.splitlines()
    kinds = '|'.join(('expect-error', f'expect-error-{compiler}'))
    errors = re.findall(rf'^\s*// (?:{kinds}): (.*?)\s*$', text, re.M)
    marks = [i for i, line in enumerate(lines, 1)
             if re.search(r'// line-of-error\s*$', line)]

    def judge(o):
        if not errors:
            return None if o.code == 0 else 'does not compile'
        if o.code == 0:
            return 'compiles, but must not'
        output = o.out + o.err
        for regex in errors:
            if not re.search(regex, output):
                return f'no match in the output: {regex!r}'
        if not marks:
            return 'no line is marked // line-of-error'
        for n in marks:
            if not re.search(rf'{re.escape(Path(source).name)}:{n}\b', output):
                return f'the output does not name line {n}: {lines[n - 1].strip()!r}'
        return None
    return bool(errors), judge


COMPILERS = {'.c': (('gcc', 'gcc'), ('clang', 'clang')),
             '.cpp': (('gcc', 'g++'), ('clang', 'clang++'))}
COMPILE_FLAGS = ['-Wall', '-Wextra', '-Wpedantic', '-Werror', f'-I{ROOT / "include"}']


def compile_tests(folder):
    tests = []
    files = sorted(p for p in Path(folder).iterdir() if p.suffix in COMPILERS)
    for source in files:
        name = f'compile {source.name}'
        text = source.read_text()
        if not re.search(r'^\s*// expect-(ok$|error)', text, re.M):
            tests.append(broken(name, f'{source}: neither // expect-ok nor // expect-error:'))
            continue
        std = '-std=c11' if source.suffix == '.c' else '-std=c++17'
        for family, driver in COMPILERS[source.suffix]:
            full = f'{name} ({driver})'
            wants_error, judge = compile_judge(source, family)
            if not shutil.which(driver):
                tests.append(Test(full, [driver], skip=f'{driver} is not installed'))
                continue
            what = ['-fsyntax-only'] if wants_error else ['-O2', '-c', '-o', os.devnull]
            for more in ['', *re.findall(r'^\s*// also: (.*?)\s*$', text, re.M)]:
                tests.append(Test(f'{full[:-1]} {more})' if more else full,
                                  [driver, std, *COMPILE_FLAGS, *what, *shlex.split(more),
                                   str(source)], judge=judge))
    return tests


def example_judge(source):
    head = Path(source).read_text().partition('*/\n#')[0]
    _, found, text = head.partition('\n * Prints:\n *\n')
    lines = re.findall(r'^ \*     (.*)$', text, re.M)

    def judge(o):
        if o.code != 0:
            return end_of(o.code)
        if found and o.out.splitlines() != lines:
            return 'it does not print what its head says:\n' + '\n'.join(lines)
        return None
    return judge


def programs_of(build, kinds):
    """Programs of the manifest, by ninja's names."""
    rows = [line.split('\t') for line in (build / 'tests/manifest.txt').read_text().splitlines()]
    return [os.path.relpath(row[2], build) for row in rows if row and row[0] in kinds]


def manifest_tests(path, kinds, run_label='', wrapper=()):
    tests = []
    for line in Path(path).read_text().splitlines():
        if not line.strip():
            continue
        kind, name, program, source = line.split('\t')
        if kinds and (name if kind == 'skip' else kind) not in kinds:
            continue
        name = name if kind == 'skip' else f'{kind}/{name}'
        if kind == 'skip':
            tests.append(Test(name, [], skip=program))
        elif kind == 'race':
            tests += race_tests(program, source, name)
        elif kind in ('die', 'planted'):
            tests += die_tests(program, source, name, run_label, wrapper)
        elif kind == 'example':
            tests.append(Test(name, [*wrapper, program], judge=example_judge(source)))
        else:
            tests += harness_tests(program, name, wrapper)
    symbols = Path(path).resolve().parent.parent / 'src/pirn-symbols'
    for t in tests:  # names in reports, as if it were installed
        if 'PIRN_SYMBOLS' not in os.environ:
            t.env.setdefault('PIRN_SYMBOLS', str(symbols) if symbols.exists() else 'off')
    return tests


class Runner:
    def __init__(self, jobs=None, timeout_scale=1.0, label='', verbose=False, lines=True,
                 result=None):
        self.jobs = jobs or os.cpu_count() or 1
        self.scale, self.label, self.verbose = timeout_scale, label, verbose
        self.tty = sys.stdout.isatty()
        self.lines = verbose or (lines and not self.tty)
        self.result = result or Result()
        self.lock = threading.Lock()
        self.done = self.total = self.shown = 0
        self.traces = 3  # backtraces of hanging tests, at most

    def full_name(self, test):
        return f'{self.label}: {test.name}' if self.label else test.name

    def progress(self, text):
        if self.tty and not self.verbose:
            width = shutil.get_terminal_size().columns - 1
            print('\r\033[K' + text[:width], end='', flush=True)

    def one(self, test):
        if test.skip:
            return self.report(test, None, None)
        with self.lock:
            trace = self.traces > 0
        timeout = min((test.timeout or DEFAULT_TIMEOUT) * self.scale, 86400)  # poll() counts ms in 32 bits
        try:
            o = run_process(test.cmd, test.env, timeout, test.split, trace)
        except OSError as e:
            o = Outcome(None, '', '', str(e), 0)
        why = o.note or (None if o.code == SKIP and test.judge is judge_exit else test.judge(o))
        self.report(test, o, why)

    def report(self, test, o, why):
        name = self.full_name(test)
        with self.lock:
            self.done += 1
            self.progress('')
            if o is None or (o.code == SKIP and not why and test.judge is judge_exit):
                reason = test.skip
                if o is not None:
                    m = re.search(r'^skipped: (.*)$', o.out, re.M)
                    reason = m[1] if m else 'no reason given'
                self.result.skipped.append((name, reason))
                if self.lines:
                    print(f'skip {name}: {reason}', flush=True)
            elif why:
                if o.note:
                    self.traces -= 1
                self.result.failed.append(name)
                self.show_failure(name, test, o, why)
            else:
                self.result.passed += 1
                if self.lines:
                    print(f'ok   {name} ({o.seconds:.2f} s, {o.cpu:.2f} s of CPU)', flush=True)
                    if self.verbose and o.out + o.err:
                        print(indent(o.out + o.err), flush=True)
            self.progress(f'[{self.done}/{self.total}] {name}')

    def show_failure(self, name, test, o, why):
        self.shown += 1
        print(f'FAIL {name}: {why}')
        if self.shown > 20:
            print('     (output of further failures is not shown)', flush=True)
            return
        env = ' '.join(f'{k}={shlex.quote(v)}' for k, v in test.env.items())
        print(f'     {env + " " if env else ""}{shlex.join(test.cmd)}')
        if o.out + o.err:
            print(indent(o.out + o.err))
        sys.stdout.flush()

    def run(self, tests, repeat=1):
        for part in ([t for t in tests if not t.alone], [t for t in tests if t.alone]):
            part = part * repeat
            self.total += len(part)
            jobs = 1 if part and part[0].alone else self.jobs
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                for f in [pool.submit(self.one, t) for t in part]:
                    f.result()
        self.progress('')
        return self.result


def indent(text):
    return '\n'.join('     | ' + line for line in text.rstrip('\n').split('\n'))


def no_cores():
    """Tests die on purpose: no core files (inherited by what we start)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def usual_signals():
    """What this process was told to ignore (by nohup, or a shell's &) it goes on ignoring, by a handler:
    that is not inherited, and the tests begin with the actions that they expect."""
    for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, lambda *_: None)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('programs', nargs='*')
    ap.add_argument('--manifest', action='append', default=[])
    ap.add_argument('--kinds', default='', help='with --manifest: unit,go,stress,fault,die,cxx,example,race')
    ap.add_argument('--die', action='append', default=[], metavar='PROGRAM=SOURCE')
    ap.add_argument('--compile', action='append', default=[], metavar='FOLDER')
    ap.add_argument('--repeat', type=int, default=1)
    ap.add_argument('--times', type=int, default=1,
                    help='each so often in one process: quicker than --repeat, where tests allow it')
    ap.add_argument('--jobs', type=int, default=os.cpu_count())
    ap.add_argument('--filter', default='', metavar='REGEX')
    ap.add_argument('--quick', action='store_true', help='leave out tests marked slow')
    ap.add_argument('--timeout-scale', type=float, default=1.0)
    ap.add_argument('--label', default='')
    ap.add_argument('--wrapper', default='', help='command that starts each program')
    ap.add_argument('-v', '--verbose', action='store_true')
    args = ap.parse_args()

    no_cores()
    usual_signals()
    wrapper = shlex.split(args.wrapper)
    tests = []
    for program in args.programs:
        tests += harness_tests(Path(program).resolve(), Path(program).name, wrapper)
    for path in args.manifest:
        tests += manifest_tests(path, [k for k in args.kinds.split(',') if k], args.label, wrapper)
    for pair in args.die:
        program, _, source = pair.partition('=')
        program = Path(program).resolve()
        tests += die_tests(program, source, f'die/{program.name}', args.label, wrapper)
    for folder in args.compile:
        tests += compile_tests(folder)
    tests = [t for t in tests
             if re.search(args.filter, t.name) and not (args.quick and t.slow)]
    if not tests:
        sys.exit('run.py: no test to run')
    if args.times > 1:
        for t in tests:
            t.do_times(args.times)
    runner = Runner(args.jobs, args.timeout_scale, args.label, args.verbose)
    try:
        result = runner.run(tests, args.repeat)
    except KeyboardInterrupt:
        kill_live()
        os._exit(130)
    return result.close()


if __name__ == '__main__':
    sys.exit(main())
