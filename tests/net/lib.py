# SPDX-License-Identifier: MIT
"""What the tests of the servers share: to start one, to talk to it, to count.

A test is a function that is marked @test; it fails by an exception. @test(needs='curl') is left out
where there is no curl. Each has LIMIT seconds.
"""
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 60
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
TESTS = []
BUILD = None


def test(fn=None, needs=()):
    def mark(f):
        TESTS.append((f, [needs] if isinstance(needs, str) else list(needs)))
        return f
    return mark(fn) if fn else mark


class Server:
    """A server of examples/ on a free port. `with Server('httpd', '-root', x) as s`: it must then end
    by SIGTERM with status 0, with no descriptor more than at the start."""

    def __init__(self, name, *args, files=None, env=None):
        def limit():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            else:
                resource.setrlimit(resource.RLIMIT_NOFILE, (HARD, HARD))
        self.name = name
        self.p = subprocess.Popen([str(BUILD / 'examples' / name), '-addr', '127.0.0.1:0',
                                   *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, preexec_fn=limit, env={**os.environ, **(env or {})})
        line = self.p.stdout.readline()
        m = re.match(r'\w+: listening on 127\.0\.0\.1:(\d+)$', line)
        assert m, f'{name} says {line!r}: {self.p.stderr.read() if not line else ""}'
        self.port = int(m[1])
        self.addr = ('127.0.0.1', self.port)
        self.url = f'http://127.0.0.1:{self.port}'
        self.fds_at_start = self.fds()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        if kind:
            self.p.kill()
            print(f'{self.name}: status {self.p.poll()}; stderr: {self.p.communicate()[1][-4000:]}')
            return
        if self.p.poll() is None:
            eventually(lambda: self.fds() <= self.fds_at_start,
                       lambda: f'{self.fds()} descriptors, {self.fds_at_start} at the start')
            self.p.send_signal(signal.SIGTERM)
        self.ends()

    def ends(self, seconds=20):
        try:
            _, err = self.p.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.p.send_signal(signal.SIGQUIT)
            _, err = self.p.communicate()
            raise AssertionError(f'{self.name} does not end:\n{err[-4000:]}') from None
        assert self.p.returncode == 0 and not err, (self.p.returncode, err[-4000:])

    def fds(self):
        """Its sockets and files; not what the runtime has, which makes pollers when it needs them, looks
        at its threads in /proc and at its limits in /sys."""
        n = 0
        for fd in os.listdir(f'/proc/{self.p.pid}/fd'):
            try:
                what = os.readlink(f'/proc/{self.p.pid}/fd/{fd}')
            except OSError:  # closed meanwhile
                continue
            n += what.startswith('socket:') or (what[0] == '/'
                                                and not what.startswith(('/dev/', '/proc/', '/sys/')))
        return n

    def cpu(self):
        """Seconds that it has computed."""
        f = Path(f'/proc/{self.p.pid}/stat').read_text().rsplit(')', 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')

    def rss(self):
        """Bytes of memory that it has."""
        return int(re.search(r'VmRSS:\s+(\d+)', Path(f'/proc/{self.p.pid}/status').read_text())[1]) * 1024

    def connect(self, timeout=20):
        return Conn(self.addr, timeout)


class Conn:
    """A connection, to send bytes as they are."""

    def __init__(self, addr, timeout=20):
        self.s = socket.create_connection(addr, timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, data):
        self.s.sendall(data.encode('latin-1') if isinstance(data, str) else data)

    def more(self):
        data = self.s.recv(1 << 16)
        self.rest += data
        return bool(data)

    def until(self, end):
        while end not in self.rest:
            if not self.more():
                raise EOFError(f'the connection ended after {self.rest[-200:]!r}')
        head, _, self.rest = self.rest.partition(end)
        return head + end

    def exactly(self, n):
        while len(self.rest) < n:
            if not self.more():
                raise EOFError(f'the connection ended after {len(self.rest)} of {n} bytes')
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    def all(self):
        """What comes until the end, be it a reset."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        data, self.rest = self.rest, b''
        return data

    def reset(self):
        """Ends it by RST."""
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        self.s.close()

    def response(self, head=False):
        """An HTTP response: (status, fields, body)."""
        lines = self.until(b'\r\n\r\n').decode('latin-1').split('\r\n')
        status = int(lines[0].split()[1])
        fields = {k.lower(): v.strip() for k, v in (x.split(':', 1) for x in lines[1:-2])}
        n = int(fields.get('content-length', 0))
        return status, fields, b'' if head or status in (100, 304) else self.exactly(n)


def eventually(fn, why=lambda: '', seconds=20):
    by = time.monotonic() + seconds
    while not fn():
        assert time.monotonic() < by, why() or 'it does not become so'
        time.sleep(0.01)


def out(*cmd, data=None, timeout=30, ok=True):
    p = subprocess.run([str(c) for c in cmd], input=data, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=timeout)
    assert not ok or p.returncode == 0, (cmd, p.returncode, p.stdout[-1000:], p.stderr[-1000:])
    return p.stdout


def same(a, b):
    assert a == b, f'{str(a)[:500]!r} is not {str(b)[:500]!r}'


def main(doc):
    global BUILD
    if len(sys.argv) < 2:
        sys.exit(f'usage: {sys.argv[0]} BUILD [TEST...] [-TEST...]\n{doc}')
    BUILD = Path(sys.argv[1]).resolve()
    resource.setrlimit(resource.RLIMIT_NOFILE, (HARD, HARD))
    names = [n for n in sys.argv[2:] if n[0] != '-']
    without, good, bad = [n[1:] for n in sys.argv[2:] if n[0] == '-'], 0, 0

    def late(*_):
        raise TimeoutError(f'longer than {LIMIT} s')
    signal.signal(signal.SIGALRM, late)
    for fn, needs in TESTS:
        missing = [n for n in needs if not shutil.which(n)]
        if (names and fn.__name__ not in names) or fn.__name__ in without:
            continue
        if missing:
            print(f'skip {fn.__name__}: {missing[0]} is not installed', flush=True)
            continue
        start = time.monotonic()
        signal.alarm(LIMIT)
        try:
            fn()
            good += 1
            print(f'ok   {fn.__name__} ({time.monotonic() - start:.2f} s)', flush=True)
        except Exception:
            bad += 1
            print(f'FAIL {fn.__name__} ({time.monotonic() - start:.2f} s)')
            traceback.print_exc(file=sys.stdout)
        finally:
            signal.alarm(0)
    print(f'{good} passed, {bad} failed')
    sys.exit(1 if bad else 0)
