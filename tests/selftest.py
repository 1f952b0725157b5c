#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The test runner must see what goes wrong: toy programs that fail, crash,
hang, skip, die the wrong way or leave children behind, and what run.py says.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import run  # noqa: E402  (tests/run.py)

HERE = Path(__file__).resolve().parent
CC = os.environ.get('CC', 'cc')

TOY = r'''
#include "harness.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
TEST(good) { CHECK(1); }
TEST(bad) { printf("seen before\n"); CHECK_EQ(1 + 1, 3); }
TEST(bad_string) { CHECK_STR("x", NULL); }
TEST(crash) { raise(SIGSEGV); }
TEST(skipped) { SKIP("no such machine"); }
TEST_ATTR(hang, .timeout = 1) { for (;;) pause(); }
TEST_ATTR(deaf, .timeout = 1) { signal(SIGQUIT, SIG_IGN); for (;;) pause(); }
TEST_ATTR(each, .procs = "1,4") { CHECK_STR(getenv("PIRN_PROCS"), "4"); }
TEST(flood) { for (int i = 0; i < 100000; i++) printf("line %d\n", i); FAIL("full"); }
TEST(orphan) { if (fork() == 0) { sleep(60); } }
TEST_ATTR(late, .slow = true) { }
'''

DIE = r'''
/*
 * expect-exit: %s
 * expect-first-line: panic: toy
 * expect-stderr: %s
 * env: TOY=yes
 */
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    fprintf(stderr, "panic: toy\ngoroutine 1 TOY=%%s\n", getenv("TOY"));
    return 2;
}
'''

SIGNAL = '// expect-signal: SIGABRT\n#include <stdlib.h>\nint main(void) { abort(); }\n'
SILENT = 'int main(void) { return 0; }\n'

REPORT = """WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 4 at 0x1 by thread T6:
    #0 add a.c:3 (a+0x1)
    #1 go_call_args

  Previous read of size 4 at 0x1 by main thread:
    #0 main a.c:9 (a+0x2)

  Thread T6 'goroutine 2: racer, a.c:8' (tid=0, running) created by thread T3 at:
"""

COMPILE = {
    'ok_also.c': '// expect-ok\n// also: -DBAD\n#ifdef BAD\n#error\n#endif\nint x;\n',
    'ok.c': '// expect-ok\nint f(void);\nint f(void) { return 0; }\n',
    'ok_bad.c': '// expect-ok\nint f(void);\nint f(void) { return x; }\n',
    'err.c': '// expect-error: undeclared\nint f(void);\n'
             'int f(void) { return x; } // line-of-error\n',
    'err_line.c': '// expect-error: undeclared\nint f(void); // line-of-error\n'
                  'int f(void) { return x; }\n',
    'err_text.c': '// expect-error: no such words\nint f(void);\n'
                  'int f(void) { return x; } // line-of-error\n',
    'err_none.c': '// expect-error: undeclared\nint f(void); // line-of-error\n',
    'none.c': 'int f(void);\n',
}

trouble = []


def expect(what, cond, output):
    if not cond:
        trouble.append(f'{what}\n{output}')


def runner(*args):
    start = time.monotonic()
    p = subprocess.run([sys.executable, str(HERE / 'run.py'), *map(str, args)], text=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=120)
    return p.returncode, p.stdout, time.monotonic() - start


def build(folder, name, text, *more):
    source = folder / (name + '.c')
    source.write_text(text)
    subprocess.run([CC, '-std=gnu11', f'-I{HERE}', '-o', folder / name, source, *more], check=True)
    return f'{folder / name}={source}'


def harness(tmp):
    build(tmp, 'toy', TOY, str(HERE / 'harness.c'))
    code, out, seconds = runner(tmp / 'toy')
    last = out.splitlines()[-1]
    expect('totals', last == '4 passed, 7 failed, 1 skipped' and code == 1, out)
    expect('took too long', seconds < 60, out)
    for line in (r'^ok   toy good ', r'^FAIL toy bad: exit 1$', r'\| seen before$',
                 r'toy.c:\d+: failed: 1 \+ 1 == 3 \(2 and 3\)$', r'left:  x$', r'right: \(null\)$',
                 r'^FAIL toy crash: died of SIGSEGV$', r'^FAIL toy hang: timed out after 1 s',
                 r'^FAIL toy deaf: timed out after 1 s', r'^FAIL toy each procs=1: exit 1$',
                 r'^     PIRN_PROCS=1 .*toy each$', r'^ok   toy each procs=4 ', r'line 0$',
                 r'\[\.\.\. \d+ bytes \.\.\.\]', r'line 99999$', r'^ok   toy orphan ',
                 r'^skipped: toy skipped: no such machine$', r'^FAILED: toy crash$'):
        expect(f'no line {line!r}', re.search(line, out, re.M), out)
    code, out, _ = runner('--filter', 'good|late', '--quick', '--repeat', 3, '--label', 'L',
                          tmp / 'toy')
    expect('filter, repeat', out.splitlines()[-1] == '3 passed, 0 failed' and code == 0, out)
    expect('label', re.search(r'^ok   L: toy good ', out, re.M), out)
    code, out, _ = runner('--filter', 'nothing', tmp / 'toy')
    expect('nothing to run is an error', code != 0, out)
    code, out, _ = runner('/bin/false')
    expect('a program without --list fails',
           code == 1 and out.splitlines()[-1] == '0 passed, 1 failed', out)


def die(tmp):
    args = []
    for name, text in (('right', DIE % ('2', 'TOY=yes')), ('wrong_exit', DIE % ('3', 'TOY')),
                       ('wrong_text', DIE % ('2', 'elsewhere')), ('by_signal', SIGNAL),
                       ('silent', SILENT), ('misspelt', SIGNAL + '// expect-sterr: x\n'),
                       ('alive', '// expect-signal: SIGABRT\n' + SILENT)):
        args += ['--die', build(tmp, name, text)]
    code, out, _ = runner(*args)
    expect('totals', out.splitlines()[-1] == '2 passed, 5 failed' and code == 1, out)
    for line in (r'^FAIL die/wrong_exit: expected exit 3, got: exit 2$',
                 r"^FAIL die/wrong_text: not in stderr: 'elsewhere'$",
                 r'^FAIL die/silent: .* no expect-exit, -signal or -race',
                 r"^FAIL die/misspelt: .* unknown expectation 'expect-sterr'",
                 r'^FAIL die/alive: expected SIGABRT, got: exit 0$'):
        expect(f'no line {line!r}', re.search(line, out, re.M), out)


def races(tmp):
    """tmp is not needed: what a report must say."""
    for want, good in (('add by racer, main by main thread', True),
                       ('main by main thread, add by racer', True),
                       ('add by racer, add by racer', False), ('add by racer', False),
                       ('add by main thread, main by racer', False)):
        expect(f'race {want!r}', (run.race_trouble(REPORT, want) == []) == good, REPORT)
    judge = run.die_judge({'expect-race': ['add by racer, main by main thread'],
                           'expect-no-stderr': ['deep']})
    expect('race: exit 0', 'expected exit 66' in (judge(run.Outcome(0, '', REPORT, '', 0)) or ''), '')
    expect('race: exit 66', judge(run.Outcome(66, '', REPORT, '', 0)) is None, '')
    expect('race: deep', judge(run.Outcome(66, '', REPORT + 'deep', '', 0)), '')
    expect('race: none', judge(run.Outcome(66, '', '', '', 0)), '')


EXAMPLE = r'''/* SPDX-License-Identifier: MIT */
/*
 * A toy.
 *
 * Prints:
 *
 *     one
 *       two
 */
#include <stdio.h>
int main(void) { printf("one\n  %s\n"); return %d; }
'''


def examples(tmp):
    manifest = tmp / 'manifest.txt'
    rows = []
    for name, text in (('says', EXAMPLE % ('two', 0)), ('errs', EXAMPLE % ('three', 0)),
                       ('fails', EXAMPLE % ('two', 1)), ('free', SILENT)):
        program, _, source = build(tmp, name, text).partition('=')
        rows.append(f'example\t{name}\t{program}\t{source}\n')
    manifest.write_text(''.join(rows))
    code, out, _ = runner('--manifest', manifest)
    expect('totals', out.splitlines()[-1] == '2 passed, 2 failed' and code == 1, out)
    for line in (r'^FAIL example/errs: it does not print what its head says:$',
                 r'^FAIL example/fails: exit 1$'):
        expect(f'no line {line!r}', re.search(line, out, re.M), out)


def compiles(tmp):
    folder = tmp / 'compile'
    folder.mkdir()
    for name, text in COMPILE.items():
        (folder / name).write_text(text)
    code, out, _ = runner('--filter', r'gcc|none\.c$', '--compile', folder)
    expect('totals', re.fullmatch(r'3 passed, 6 failed|0 passed, 1 failed, 7 skipped',
                                  out.splitlines()[-1]) and code == 1, out)
    if 'skipped' not in out:
        for line in (r'ok_bad.c \(gcc\): does not compile$',
                     r'ok_also.c \(gcc -DBAD\): does not compile$',
                     r'err_line.c .* does not name line 2', r'err_text.c .* no match',
                     r'err_none.c .* compiles, but must not$', r'none.c: .* neither'):
            expect(f'no line {line!r}', re.search(line, out, re.M), out)


def listed(_):
    """A program that no meson.build names would never run."""
    for folder, where in (('unit', '.'), ('go', '.'), ('stress', '.'), ('fault', '.'), ('die', '.'),
                          ('race', '.'), ('model', 'model'), ('../examples', '../examples'),
                          ('../bench', '../bench')):
        text = (HERE / where / 'meson.build').read_text()
        for source in sorted((HERE / folder).glob('*.c')):
            expect(f'{folder}/{source.name} is not in {where}/meson.build',
                   re.search(rf"'{source.stem}(\.c)?'", text), '')


with tempfile.TemporaryDirectory() as d:
    for part in (harness, die, races, examples, compiles, listed):
        folder = Path(d) / part.__name__
        folder.mkdir()
        part(folder)
if trouble:
    print('\n'.join(trouble))
sys.exit(1 if trouble else 0)
