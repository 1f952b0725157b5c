#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs everything that must hold, in groups, cheap failures first, and ends
with one line of totals. `check.py --list` names the groups; `check.py tsan`
runs one. A step that is not made of tests (a build, a tool) counts as one.
"""
import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
import run  # noqa: E402  (tests/run.py)

ROOT = run.ROOT
ALL = ('unit', 'go', 'stress', 'fault', 'die', 'planted', 'cxx', 'example')
CONCURRENT = ('unit', 'go', 'stress')
QEMU = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu']
# Those of tests/go that tell most about the machine, in the time that an emulator takes.
QEMU_GO = r'^go/(blocking|chan|chan_misuse|chan_phrases|chan_programs|defer|identity|lockthread|once|panic|recover|sched|sync) '
# Those that do more when they are asked to: long_form() of tests/go/busy.h.
LONG_GO = r'^go/(forks (fork_|spawn )|unwrapped_time no_eintr)'

# What is built of a flavour, by kinds of tests; (): all of it.
BUILDS = {'native': (), 'model': (), 'clang': (), 'small': CONCURRENT, 'chaos': CONCURRENT, 'asan': (),
          'tsan': CONCURRENT, 'aarch64': ('unit', 'go')}

# Defaults; what the caller has set wins.
SANITIZER_ENV = {
    'UBSAN_OPTIONS': 'print_stacktrace=1',
    # 1 works (tests/planted), but gives each goroutine a second stack of some megabytes: too slow for tens of
    # thousands of them.
    'ASAN_OPTIONS': 'detect_stack_use_after_return=0',
    'MSAN_OPTIONS': 'exit_code=1',
    'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=0',
}


MAKE = ['make', '--no-print-directory', 'WERROR=true']


def build_command(flavour, targets):
    return [*MAKE, f'build-{flavour}', f'TARGETS={" ".join(targets)}']


class Ahead(threading.Thread):
    """Builds the flavours of later groups while tests run, most of which wait: with what they leave of the CPUs.
    Whether it succeeds is seen by who needs a build, and makes it again: then there is nothing left to do, or
    the same error."""

    def __init__(self, flavours):
        super().__init__(daemon=True)
        self.done = {flavour: threading.Event() for flavour in flavours}
        self.process = None
        self.start()

    def make(self, cmd):
        self.process = subprocess.Popen(['nice', '-n', '19', *cmd], cwd=ROOT, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        **run.OWN_GROUP)
        return self.process.wait() == 0

    def run(self):
        for flavour, done in self.done.items():
            if self.make([*MAKE, f'configure-{flavour}']):
                targets = run.programs_of(ROOT / 'build' / flavour, BUILDS[flavour]) if BUILDS[flavour] else []
                self.make(build_command(flavour, targets))
            done.set()

    def wait_for(self, flavour):
        if flavour in self.done:
            self.done[flavour].wait()

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


class Check:
    def __init__(self, args):
        self.args = args
        self.result = run.Result()
        self.seen = set()  # (flavour, test) that an earlier group has run
        self.built = {}    # (flavour, kinds): did its build succeed
        self.ahead = None

    # -- the two kinds of things to do ------------------------------------

    def step(self, name, cmd, env=None, cwd=ROOT):
        """A command that must succeed; shown only if it does not."""
        start = time.monotonic()
        p = subprocess.run([str(c) for c in cmd], cwd=cwd, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors='replace', env={**os.environ, **(env or {})})
        if p.returncode == 0:
            self.result.passed += 1
            if self.args.verbose:
                print(f'ok   {name} ({time.monotonic() - start:.1f} s)')
        else:
            self.result.failed.append(name)
            print(f'FAIL {name}: {run.end_of(p.returncode)}')
            print(f'     {shlex.join(str(c) for c in cmd)}')
            print(run.indent(tail(p.stdout)), flush=True)
        return p.returncode == 0

    def skip(self, name, why):
        self.result.skipped.append((name, why))
        print(f'skip {name}: {why}', flush=True)

    def build(self, flavour, kinds=None):
        """The programs of some kinds of tests; by default those that the flavour is used for."""
        kinds = BUILDS.get(flavour, ()) if kinds is None else kinds
        if (flavour, kinds) not in self.built:
            if self.ahead:
                self.ahead.wait_for(flavour)
            targets = []
            if kinds and self.step(f'{flavour}: configure', [*MAKE, f'configure-{flavour}']):
                targets = run.programs_of(ROOT / 'build' / flavour, kinds)
            self.built[flavour, kinds] = self.step(f'{flavour}: build', build_command(flavour, targets))
            if not self.ahead and not self.args.groups:
                self.ahead = Ahead([f for f in BUILDS if f != flavour])
        return self.built[flavour, kinds]

    def tests(self, flavour, kinds, quick=False, scale=1.0, wrapper=(), label=None, some=None,
              spared=(), only='', env=None):
        """some: the numbers of Ps to try when all groups run; spared: those not to try then, where a
        test has others. A group that is named runs with all, and with the stress tests at their
        usual length. only: a pattern of names. env: for tests that do not set it themselves."""
        manifest = ROOT / 'build' / flavour / 'tests' / 'manifest.txt'
        label = label or flavour
        tests = run.manifest_tests(manifest, kinds, label, wrapper)
        tests = [t for t in tests
                 if not (quick and t.slow) and (label, t.name) not in self.seen
                 and re.search(only, t.name)]
        for t in tests:
            t.env = {**(env or {}), **t.env}
        if not self.args.groups:
            tests = [t for t in tests if not some or t.env.get('PIRN_PROCS', some[0]) in some]
            has_others = {t.title for t in tests if t.env.get('PIRN_PROCS') not in spared}
            tests = [t for t in tests
                     if t.env.get('PIRN_PROCS') not in spared or t.title not in has_others]
            for t in tests:
                t.env['PIRN_STRESS_SECONDS'] = '1'
        self.seen.update((label, t.name) for t in tests)
        runner = run.Runner(self.args.jobs, scale * self.args.timeout_scale, label,
                            self.args.verbose, lines=False, result=self.result)
        runner.run(tests, self.args.repeat)

    # -- the groups ---------------------------------------------------------

    def quick(self):
        """gcc -Werror, and the unit tests that take no time"""
        if self.build('native'):
            self.tests('native', ('unit',), quick=True)

    def static(self):
        """layers, symbols, atomics, headers, compile tests, the runner itself"""
        self.step('tools/check-layers', ['tools/check-layers'])
        self.step('tools/check-atomics', ['tools/check-atomics'])
        if self.build('native'):
            lib = ROOT / 'build/native/src'
            self.step('tools/check-symbols', ['tools/check-symbols', lib / 'libpirn.so',
                                              lib / 'libpirn.a'])
            self.step('tools/check-switch', ['tools/check-switch', lib / 'libpirn.so'])
        self.headers()
        runner = run.Runner(self.args.jobs, 1, '', self.args.verbose, lines=False,
                            result=self.result)
        runner.run(run.compile_tests(ROOT / 'tests/compile'))
        self.step('tests/selftest.py', [sys.executable, 'tests/selftest.py'])

    def headers(self):
        names = ['pirn.h'] + sorted(f'pirn/{p.name}' for p in (ROOT / 'include/pirn').glob('*.h'))
        for driver, std, files in (('gcc', 'c11', names), ('clang', 'c11', names),
                                   ('g++', 'c++17', names[:1]), ('clang++', 'c++17', names[:1])):
            if not shutil.which(driver):
                self.skip(f'headers ({driver})', f'{driver} is not installed')
                continue
            lang = 'c++' if '++' in driver else 'c'
            for name in files:
                with tempfile.NamedTemporaryFile('w', suffix='.' + lang) as f:
                    f.write(f'#include <{name}>\nint main(void) {{ return 0; }}\n')
                    f.flush()
                    self.step(f'<{name}> alone ({driver} -std={std})',
                              [driver, f'-std={std}', '-x', lang, *run.COMPILE_FLAGS,
                               '-fsyntax-only', f.name])

    def native(self):
        """all tests, as users get the library; and those of pirn-race"""
        if self.build('native'):
            self.tests('native', (*ALL, 'race'), spared=('2', '4'))  # chaos; small and tsan try them
            self.step('tests/locks/run', ['tests/locks/run', ROOT / 'build/native'])
            self.step('tests/levels', ['tests/levels', ROOT / 'build/native'])
            self.counted('watched', ['tests/watched/run', ROOT / 'build/native'])
            self.counted('gdb', ['tests/gdb/run', ROOT / 'build/native'])
            if shutil.which('perf'):
                self.counted('perf', ['tests/perf/run', ROOT / 'build/native'])
            else:
                self.skip('perf stacks', 'perf is not installed')

    def uring(self):
        """the tests of descriptors with io_uring in place of epoll"""
        if self.build('native'):
            self.tests('native', ('go',), label='uring', some=('1', '4'), env={'PIRN_DEBUG': 'io=uring'},
                       only=r'^go/(net(_close|_deadline|_more|_sched)?|fds|fd_kinds|fd_blocking|fd_close_race|files_send|waitpid) ')

    def net(self):
        """the servers of examples/ against curl, nc, wrk, redis-cli, redis-benchmark, and mean clients"""
        if self.build('native'):
            for name in ('httpd', 'redisd', 'proxy'):
                self.counted(f'net: {name}', [ROOT / f'tests/net/{name}.py', ROOT / 'build/native'])

    def clang(self):
        """built by clang; unit tests"""
        if not shutil.which('clang'):
            return self.skip('clang', 'clang is not installed')
        if self.build('clang'):
            self.tests('clang', ('unit',), quick=True)
            self.step('tools/check-switch (clang)',
                      ['tools/check-switch', ROOT / 'build/clang/src/libpirn.so'])

    def small(self):
        """shrunk constants, debug checks"""
        if self.build('small'):
            self.tests('small', CONCURRENT, quick=not self.args.groups, some=('4',))

    def chaos(self):
        """seeded delays in the atomics"""
        if self.build('chaos'):
            self.tests('chaos', CONCURRENT, quick=not self.args.groups, scale=3,
                       some=('2',))

    def asan(self):
        """address and undefined sanitizers"""
        if self.build('asan'):
            self.tests('asan', ALL, quick=not self.args.groups, scale=3, some=('16',))
            for corpus in sorted((ROOT / 'tests/fuzz/corpus').iterdir()):
                self.step(f'fuzz corpus: {corpus.name}',
                          [ROOT / f'build/asan/tests/fuzz-{corpus.name}', corpus])
            # Left out: what measures time or memory, of which the sanitizer takes its own share.
            for name in ('httpd', 'redisd', 'proxy'):
                self.counted(f'net: {name} (asan)', [
                    ROOT / f'tests/net/{name}.py', ROOT / 'build/asan', '-ten_thousand', '-load_by_wrk',
                    '-load_by_redis_benchmark', '-idle_costs_nothing', '-many_channels', '-descriptors_run_out',
                    '-descriptors_run_out_under_load'])

    def ubsan(self):
        """undefined sanitizer alone"""
        if self.build('ubsan'):
            self.tests('ubsan', ALL, scale=2)

    def msan(self):
        """memory sanitizer, by clang (not part of check)"""
        if not shutil.which('clang'):
            return self.skip('msan', 'clang is not installed')
        if self.build('msan'):
            self.tests('msan', ('unit', 'go', 'planted'), quick=True, scale=3)

    def tsan(self):
        """thread sanitizer"""
        if self.build('tsan'):
            self.tests('tsan', CONCURRENT, quick=not self.args.groups, scale=5,
                       wrapper=run.tsan_wrapper(), some=('4',))

    def model(self):
        """the model checker: its own tests, the models in short, planted bugs, Promela"""
        if not self.build('model'):
            return
        here = ROOT / 'tests/model'
        self.counted('models', [here / 'run.py', '--quick', '--jobs', self.args.jobs])
        self.counted('planted bugs', [here / 'mutate.py', '--planted', '--seconds', '10'])
        self.step('fuzz', [here / 'fuzz.py', '--seconds', '5', '--seed', '1', '--program',
                           ROOT / 'build/model/tests/model/model-fuzz'])
        if shutil.which('spin'):
            self.counted('Promela', [here / 'spin/run'])
        else:
            self.skip('Promela', 'spin is not installed')

    def counted(self, name, cmd):
        """A command that ends with `N passed, N failed`."""
        p = subprocess.run([str(c) for c in cmd], cwd=ROOT, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        counts = re.search(r'(\d+) passed, (\d+) failed\s*$', p.stdout)
        for what, why in re.findall(r'^skip (\w+): (.*)$', p.stdout, re.M):
            self.skip(f'{name} {what}', why)
        if counts and p.returncode == 0:
            self.result.passed += int(counts[1])
            return
        self.result.passed += int(counts[1]) if counts else 0
        self.result.failed += [name] * (int(counts[2]) or 1 if counts else 1)
        print(f'FAIL {name}: {run.end_of(p.returncode)}\n{run.indent(tail(p.stdout))}', flush=True)

    def aarch64(self):
        """aarch64 under qemu; unit tests, and some of go"""
        for tool in ('aarch64-linux-gnu-gcc', 'qemu-aarch64-static'):
            if not shutil.which(tool):
                return self.skip('aarch64', f'{tool} is not installed')
        if self.build('aarch64'):
            self.tests('aarch64', ('unit',), scale=5, wrapper=QEMU)
            self.tests('aarch64', ('go',), scale=5, wrapper=QEMU, some=('4',), only=QEMU_GO)

    def install(self):
        """make install, then an example against what it installed"""
        with tempfile.TemporaryDirectory() as tmp:
            self.install_into(Path(tmp))

    def install_into(self, tmp):
        dest = tmp / 'dest'
        if not self.step('install', ['make', '--no-print-directory', 'install',
                                     f'DESTDIR={dest}', 'PREFIX=/usr']):
            return
        libdir = next(dest.rglob('pirn.pc')).parent.parent
        pkg = {'PKG_CONFIG_PATH': str(libdir / 'pkgconfig'),
               'PKG_CONFIG_SYSROOT_DIR': str(dest)}
        flags = self.flags_of('pirn', pkg)
        if flags is None:
            return
        source = ROOT / 'examples/01_hello.c'
        if not source.exists():
            source = ROOT / 'examples/demo.c'
        static = [str(libdir / 'libpirn.a') if f == '-lpirn' else f
                  for f in self.flags_of('pirn', pkg, '--static') or []]
        shared = {'LD_LIBRARY_PATH': str(libdir)}
        ways = [('shared', flags, shared, []), ('static', static, {}, [])]
        if (libdir / 'pkgconfig/pirn-race.pc').exists():
            race = self.flags_of('pirn-race', pkg)
            ways += [('race', race, {**shared, **run.RACE_ENV}, run.tsan_wrapper())] if race else []
        for how, with_flags, env, wrapper in ways:
            program = tmp / how
            if self.step(f'install: compile {source.name}, {how}',
                         ['cc', '-O2', '-o', program, source, *with_flags]):
                self.step(f'install: run {source.name}, {how}',
                          [*wrapper, 'timeout', '60', program], env)

    def flags_of(self, package, env, *options):
        """What pkg-config says, or None."""
        p = subprocess.run(['pkg-config', '--cflags', '--libs', *options, package], text=True,
                           capture_output=True, env={**os.environ, **env})
        if p.returncode == 0:
            return shlex.split(p.stdout)
        self.result.failed.append(f'install: pkg-config {package}')
        print(f'FAIL install: pkg-config {package}\n{run.indent(p.stderr)}')
        return None

    def stress(self):
        """stress tests in three flavours, as long as PIRN_STRESS_* say; long forms of go tests (not part of check)"""
        for flavour, wrapper in (('native', ()), ('asan', ()), ('tsan', run.tsan_wrapper())):
            if self.build(flavour, ('stress',)):
                self.tests(flavour, ('stress',), wrapper=wrapper)
        if self.build('native', ('go',)):
            self.tests('native', ('go',), scale=10, label='long', only=LONG_GO, env={'PIRN_STRESS': '1'})

    def valgrind(self):
        """unit and go tests under valgrind, with two Ps (not part of check)"""
        if not shutil.which('valgrind'):
            return self.skip('valgrind', 'valgrind is not installed')
        if self.build('native'):
            self.step('tests/valgrind/run', ['tests/valgrind/run', ROOT / 'build/native'])
            self.tests('native', ('unit', 'go'), quick=True, scale=10, label='valgrind',
                       only=r'(procs=2|^[^=]*$)', wrapper=['valgrind', '-q', '--error-exitcode=99'])


GROUPS = ('quick', 'static', 'model', 'native', 'uring', 'net', 'clang', 'small', 'chaos', 'asan', 'tsan',
          'aarch64', 'install')
EXTRA = ('ubsan', 'msan', 'valgrind', 'stress')


def cpu_used():
    t = os.times()
    return t.children_user + t.children_system


def tail(text, lines=80):
    rows = re.sub(r'\033\[[0-9;]*[mK]', '', text).splitlines()
    return '\n'.join(rows if len(rows) <= lines else ['[...]'] + rows[-lines:])


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('groups', nargs='*', metavar='GROUP', help='all, unless named')
    ap.add_argument('--list', action='store_true')
    ap.add_argument('--repeat', type=int, default=1)
    ap.add_argument('--jobs', type=int, default=os.cpu_count() + 4)  # most tests wait, too
    ap.add_argument('--timeout-scale', type=float, default=1.0)
    ap.add_argument('-v', '--verbose', action='store_true')
    args = ap.parse_args()
    if args.list:
        for name in GROUPS + EXTRA:
            print(f'{name:9} {getattr(Check, name).__doc__}')
        return 0
    unknown = set(args.groups) - set(GROUPS + EXTRA)
    if unknown:
        ap.error(f'no such group: {", ".join(sorted(unknown))}')

    run.no_cores()
    run.usual_signals()
    for name in ('MAKEFLAGS', 'MAKELEVEL', 'MFLAGS'):
        os.environ.pop(name, None)
    for name, value in SANITIZER_ENV.items():
        os.environ.setdefault(name, value)
    check = Check(args)
    for name in args.groups or GROUPS:
        r = check.result
        before = r.passed, len(r.failed), len(r.skipped)
        start, cpu = time.monotonic(), cpu_used()
        print(f'== {name}: {getattr(Check, name).__doc__}', flush=True)
        try:
            getattr(check, name)()
        except KeyboardInterrupt:
            run.kill_live()
            if check.ahead:
                check.ahead.kill()
            os._exit(130)
        good, bad, skipped = (n - b for n, b in
                              zip((r.passed, len(r.failed), len(r.skipped)), before))
        state = 'ok' if not bad else 'FAILED'
        print(f'   {state}: {good} good, {bad} bad, {skipped} left out, '
              f'{time.monotonic() - start:.1f} s, {cpu_used() - cpu:.1f} s of CPU', flush=True)
    return check.result.close()


if __name__ == '__main__':
    sys.exit(main())
