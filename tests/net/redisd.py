#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/redisd.c against redis-cli and redis-benchmark, against Redis itself where that is installed
(the same session must give the same output), and against mean clients.

  tests/net/redisd.py build/native [TEST...]
"""
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

import lib
from lib import Conn, Server, eventually, out, same, test

# What is typed, and what redis-cli prints for it.
SESSION = [
    ('PING', 'PONG'), ('PING hello', 'hello'), ('ECHO "a b"', 'a b'),
    ('GET k', ''), ('SET k v', 'OK'), ('GET k', 'v'), ('get K', ''), ('EXISTS k k none', '2'),
    ('SET k w NX', ''), ('GET k', 'v'), ('SET k w XX', 'OK'), ('SET none w XX', ''),
    ('SET k x GET', 'w'), ('SETNX k y', '0'), ('SETNX k2 y', '1'), ('GETSET k2 z', 'y'),
    ('STRLEN k2', '1'), ('GETDEL k2', 'z'), ('GETDEL k2', ''), ('TYPE k', 'string'), ('TYPE none', 'none'),
    ('APPEND k yz', '3'), ('APPEND new abc', '3'), ('GET k', 'xyz'), ('STRLEN none', '0'),
    ('SET n 10', 'OK'), ('INCR n', '11'), ('DECR n', '10'), ('INCRBY n 32', '42'), ('DECRBY n 2', '40'),
    ('INCR k', 'ERR value is not an integer or out of range'), ('INCR fresh', '1'),
    ('SET m 9223372036854775807', 'OK'), ('INCR m', 'ERR increment or decrement would overflow'),
    ('INCRBY n 1.5', 'ERR value is not an integer or out of range'),
    ('MSET a 1 b 2 c 3', 'OK'), ('MGET a none b', '1\n\n2'), ('MSET a 1 b',
     "ERR wrong number of arguments for 'mset' command"),
    ('DEL a b none', '2'), ('UNLINK c', '1'),
    ('RPUSH l a b c', '3'), ('LPUSH l z y', '5'), ('LRANGE l 0 -1', 'y\nz\na\nb\nc'),
    ('LRANGE l 1 2', 'z\na'), ('LRANGE l -2 99', 'b\nc'), ('LRANGE l 5 2', ''), ('LRANGE none 0 1', ''),
    ('LLEN l', '5'), ('LINDEX l 0', 'y'), ('LINDEX l -1', 'c'), ('LINDEX l 9', ''),
    ('LINDEX l x', 'ERR value is not an integer or out of range'), ('LINDEX none x', ''),
    ('LINDEX k x', 'WRONGTYPE Operation against a key holding the wrong kind of value'),
    ('LPOP l', 'y'), ('RPOP l', 'c'), ('LPOP l 2', 'z\na'), ('LPOP l 9', 'b'), ('EXISTS l', '0'),
    ('LPOP l', ''), ('LPOP l 2', ''), ('TYPE l', 'none'), ('LLEN l', '0'),
    ('LPUSH k v', 'WRONGTYPE Operation against a key holding the wrong kind of value'),
    ('RPUSH l x', '1'), ('GET l', 'WRONGTYPE Operation against a key holding the wrong kind of value'),
    ('TYPE l', 'list'), ('SET l string', 'OK'), ('GET l', 'string'), ('MGET k l none', 'xyz\nstring\n'),
    ('RPUSH q 1 2', '2'), ('BLPOP none q 1', 'q\n1'), ('BRPOP q 0', 'q\n2'), ('BLPOP q 0.01', ''),
    ('BLPOP q x', 'ERR timeout is not a float or out of range'), ('BLPOP q -1', 'ERR timeout is negative'),
    *((f'BLPOP q "{t}"', 'ERR timeout is not a float or out of range')
      for t in ('', ' 1', '1 ', '1\\x00', '\\x00', '1x', 'nan')),
    ('BLPOP q 1e-3', ''), ('BLPOP q 0x1p-8', ''),
    ('TTL k', '-1'), ('TTL none', '-2'), ('EXPIRE k 100', '1'), ('TTL k', '100'), ('PERSIST k', '1'),
    ('PERSIST k', '0'), ('TTL k', '-1'), ('EXPIRE none 1', '0'), ('SET e v EX 50', 'OK'), ('TTL e', '50'),
    ('SET e w KEEPTTL', 'OK'), ('TTL e', '50'), ('INCR e', 'ERR value is not an integer or out of range'),
    ('SET e w', 'OK'), ('TTL e', '-1'), ('SET e v PX 50000', 'OK'), ('TTL e', '50'), ('EXPIRE e 0', '1'),
    ('EXISTS e', '0'), ('EXPIRE k x', 'ERR value is not an integer or out of range'),
    ('SET e v EX 0', "ERR invalid expire time in 'set' command"), ('SET e v EX', 'ERR syntax error'),
    ('SET e v NX XX', 'ERR syntax error'),
    ('SET e v EX x NX XX', 'ERR syntax error'), ('SET e v EX 0 PX 1', 'ERR syntax error'),
    ('SET e v PX x BAD', 'ERR syntax error'), ('SET e v KEEPTTL EX 0', 'ERR syntax error'),
    ('SET e v EX x EX 0', "ERR invalid expire time in 'set' command"),
    ('SET e v EX 0 EX x', 'ERR value is not an integer or out of range'), ('EXISTS e', '0'),
    ('SET e v EX x EX 50', 'OK'), ('TTL e', '50'), ('DEL e', '1'),
 ('SETEX e 0 v', "ERR invalid expire time in 'setex' command"),
    ('SETEX e 10 v', 'OK'), ('PSETEX e 10000 v', 'OK'), ('TTL e', '10'),
    ('PEXPIRE e -1', '1'), ('EXISTS e', '0'),
    ('SETEX e 10000000000 v', 'OK'), ('TTL e', '10000000000'), ('SET e v PX 9000000000000000000', 'OK'),
    ('TTL e', '9000000000000000'), ('EXPIRE e 9223372036', '1'), ('TTL e', '9223372036'),
    ('EXPIRE e 9223372036854775807', "ERR invalid expire time in 'expire' command"),
    ('PEXPIRE e 9223372036854775807', "ERR invalid expire time in 'pexpire' command"),
    ('SETEX e 9223372036854775 v', "ERR invalid expire time in 'setex' command"), ('TTL e', '9223372036'),
    ('PEXPIRE e -9223372036854775808', '1'), ('EXISTS e', '0'),
    ('SELECT 3', 'OK'), ('GET k', ''), ('SET k three', 'OK'), ('DBSIZE', '1'), ('KEYS *', 'k'),
    ('FLUSHDB', 'OK'), ('DBSIZE', '0'), ('SELECT 0', 'OK'), ('GET k', 'xyz'),
    ('SELECT 99', 'ERR DB index is out of range'), ('SELECT x', 'ERR value is not an integer or out of range'),
    ('SELECT 99999999999', 'ERR value is out of range, value must between -2147483648 and 2147483647'),
    ('MSET hello 1 hallo 2 hxllo 3 hllo 4', 'OK'), ('KEYS h[ae]llo', None), ('KEYS h?ll[^a-z]', ''),
    ('KEYS h*llo', None), ('KEYS "h\\\\allo"', 'hallo'), ('KEYS none*', ''),
    ('GET', "ERR wrong number of arguments for 'get' command"),
    ('NOPE a b', "ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "),
    ('PUBLISH nobody x', '0'), ('PUBSUB CHANNELS', ''), ('PUBSUB NUMSUB a', 'a\n0'),
    ('PUBSUB NUMPAT', '0'), ('PUBSUB NUMPAT x', "ERR wrong number of arguments for 'pubsub|numpat' command"),
    ('PUBSUB nope', "ERR unknown subcommand 'nope'. Try PUBSUB HELP."),
    ('NOPE ' + 'x' * 200, f"ERR unknown command 'NOPE', with args beginning with: '{'x' * 128}' "),
    (f'NOPE {"x" * 60} {"y" * 200} z',
     f"ERR unknown command 'NOPE', with args beginning with: '{'x' * 60}' '{'y' * 65}' "),
    ('CONFIG GET appendonly', 'appendonly\nno'), ('CONFIG GET SAVE', 'SAVE\n'), ('CONFIG GET APPENDONL[Y]',
     'appendonly\nno'), ('CONFIG GET nope', ''), ('CONFIG NOPE', "ERR unknown subcommand 'NOPE'. Try CONFIG HELP."),
    ('CONFIG GET', "ERR wrong number of arguments for 'config|get' command"),
    ('CLIENT GETNAME', ''), ('CLIENT SETNAME me', 'OK'), ('CLIENT GETNAME', 'me'),
    ('CLIENT SETNAME "a b"', 'ERR Client names cannot contain spaces, newlines or special characters.'),
    ('CLIENT GETNAME', 'me'), ('CLIENT SETNAME ""', 'OK'), ('CLIENT GETNAME', ''),
    ('CLIENT SETNAME', "ERR wrong number of arguments for 'client|setname' command"),
    ('CLIENT nope', "ERR unknown subcommand 'nope'. Try CLIENT HELP."),
    ('HELLO x', 'ERR Protocol version is not an integer or out of range'),
    ('HELLO 9', 'NOPROTO unsupported protocol version'),
    ('FLUSHALL ALL', 'ERR syntax error'), ('FLUSHDB 0', 'ERR syntax error'), ('FLUSHDB SYNC ASYNC', 'ERR syntax error'),
    ('DBSIZE', '10'), ('FLUSHDB async', 'OK'), ('DBSIZE', '0'), ('FLUSHALL SYNC', 'OK'), ('FLUSHALL', 'OK'),
]


def redisd(**more):
    return Server('redisd', **more)


def cli(s, *args, data=None):
    return out('redis-cli', '-p', s.port, *args, data=data)


def bulk(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)


class Client(Conn):
    def ask(self, *words):
        self.send(bulk(*words))
        return self.reply()

    def reply(self):
        line = self.until(b'\r\n')[:-2]
        kind, rest = line[:1], line[1:]
        if kind in b'+-':
            return line.decode()
        n = int(rest)
        if kind == b':':
            return n
        if n < 0:
            return None
        if kind == b'$':
            return self.exactly(n + 2)[:-2]
        return [self.reply() for _ in range(n)]


def client(s):
    return Client(s.addr)


@test(needs='redis-cli')
def session():
    with redisd() as s:
        rest = cli(s, data='\n'.join(line for line, _ in SESSION).encode() + b'\n').decode()
        for line, text in SESSION:
            if text is None:  # in any order
                n = {'KEYS h[ae]llo': 2, 'KEYS h*llo': 4}[line]
                lines, rest = rest.split('\n', n)[:n], rest.split('\n', n)[n]
                same(sorted(lines), sorted({2: ['hallo', 'hello'],
                                            4: ['hallo', 'hello', 'hllo', 'hxllo']}[n]))
                continue
            want = text + '\n'
            extra = '\n' if want.startswith(('ERR', 'WRONGTYPE', 'NOPROTO')) and rest.startswith(want + '\n') else ''
            assert rest.startswith(want + extra), f'{line}: {rest[:80]!r} is not {want!r}'
            rest = rest[len(want + extra):]
        same(rest, '')


@test(needs=('redis-cli', 'redis-server'))
def same_as_redis():
    """The session, given to Redis, gives the same bytes."""
    lines = [line for line, want in SESSION if want is not None]
    data = '\n'.join(lines).encode() + b'\n'
    with redisd() as s, tempfile.TemporaryDirectory() as tmp:
        sock = os.path.join(tmp, 's')
        p = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', sock, '--save', '',
                              '--appendonly', 'no', '--dir', tmp], stdout=subprocess.DEVNULL)
        try:
            eventually(lambda: os.path.exists(sock) and b'PONG' in
                       out('redis-cli', '-s', sock, 'PING', ok=False))
            theirs = out('redis-cli', '-s', sock, data=data).decode()
        finally:
            p.terminate()
            p.wait(20)
        ours = cli(s, data=data).decode()
        if ours != theirs:
            for a, b in zip(ours.split('\n'), theirs.split('\n')):
                same(a, b)
        same(ours, theirs)


@test
def pipelining():
    with redisd() as s, client(s) as c:
        n = 2000
        c.send(b''.join(bulk('SET', f'k{i}', f'v{i}') + bulk('GET', f'k{i}') for i in range(n)))
        for i in range(n):
            same(c.reply(), '+OK')
            same(c.reply(), b'v%d' % i)
        data = bulk('SET', 'a', 'b\r\nc') + b'GET a\r\n' + b'\r\n*0\r\n' + bulk('ECHO', '') + b'PING\n'
        for step in (1, 3, len(data)):
            for i in range(0, len(data), step):
                c.send(data[i:i + step])
            same([c.reply() for _ in range(4)], ['+OK', b'b\r\nc', b'', '+PONG'])


@test
def big_values():
    with redisd() as s, client(s) as c:
        big = os.urandom(1 << 20) * 20
        same(c.ask('SET', 'big', big), '+OK')
        assert c.ask('GET', 'big') == big
        same(c.ask('APPEND', 'big', b'x'), len(big) + 1)
        n = 5000
        same(c.ask('RPUSH', 'l', *range(n)), n)
        same([int(x) for x in c.ask('LRANGE', 'l', 0, -1)], list(range(n)))
        same(c.ask('DEL', 'big', 'l'), 2)


@test
def protocol_errors():
    with redisd() as s:
        for data, why in ((b'*x\r\n', b'invalid multibulk length'), (b'*1\r\nPING\r\n', b"expected '$'"),
                          (b'*1\r\n$-5\r\n', b'invalid bulk length'), (b'*99999999\r\n', b'multibulk'),
                          (b'*1\r\n$99999999999\r\n', b'bulk length'), (b'SET "a\r\n', b'unbalanced'),
                          (b'a' * 70000, b'too big inline'), (b'*1\r\n$4\r\nPINGxx', b'bulk length')):
            with client(s) as c:
                c.send(data)
                answer = c.all()
                assert answer.startswith(b'-ERR Protocol error: ') and why in answer, (data[:50], answer)
        for data, last in ((b'*x\r\n', b'invalid multibulk length'), (bulk('QUIT'), b'+OK')):
            with client(s) as c:  # it still sends: the last reply must come all the same
                c.send(data + bulk('SET', 'k', b'x' * (16 << 20)))
                assert last in c.all()
        with client(s) as c:  # half of a command, and gone
            c.send(b'*2\r\n$3\r\nGET\r\n$100\r\nabc')
            c.reset()
        with client(s) as c:
            c.send(b'*2\r\n$3\r\nGET\r\n$100\r\nabc')
            c.s.shutdown(socket.SHUT_WR)
            same(c.all(), b'')
        with client(s) as c:
            same(c.ask('PING'), '+PONG')
            same(c.ask('QUIT'), '+OK')
            same(c.all(), b'')


@test
def browsers():
    """A page can make a browser send a request here, with commands for a body. As Redis: it ends."""
    with redisd() as s, client(s) as p:
        for data in (b'POST / HTTP/1.1\r\n\r\nSET k v\r\n', b'GET / HTTP/1.1\r\nHost: h\r\nSET k v\r\n'):
            with client(s) as c:
                c.send(data)
                assert b'OK' not in c.all()
            same(p.ask('EXISTS', 'k'), 0)


@test
def expiry():
    with redisd() as s, client(s) as c:
        same(c.ask('SET', 'k', 'v', 'PX', 30), '+OK')
        assert 0 <= c.ask('PTTL', 'k') <= 30 or c.ask('EXISTS', 'k') == 0
        eventually(lambda: c.ask('GET', 'k') is None)
        for i in range(1000):
            c.send(bulk('SET', f'e{i}', 'v', 'PX', 20))
        same([c.reply() for _ in range(1000)], ['+OK'] * 1000)
        eventually(lambda: c.ask('DBSIZE') == 0)  # nobody asks for them
        same(c.ask('SET', 'k', 'v', 'EX', 1000), '+OK')
        same(c.ask('FLUSHALL'), '+OK')


def expire_together(s, dbs, n):
    """n keys in each of the databases, all of which expire at once, soon."""
    at = time.monotonic() + 0.2 + 12e-6 * n * len(dbs)
    with client(s) as c:
        for db in dbs:
            c.send(bulk('SELECT', db))
            for i in range(0, n, 500):
                left = str(max(1, round((at - time.monotonic()) * 1000)))
                c.send(b''.join(bulk('SET', f'e{k}', 'v', 'PX', left) for k in range(i, i + 500)))
                same(set(c.reply() for _ in range(500 if i else 501)), {'+OK'})


@test
def expiry_under_way():
    """A key that is given a time to live while those are dropped of which all had expired."""
    with redisd() as s, client(s) as first, client(s) as c:
        same(first.ask('SELECT', 1), '+OK')
        for i in range(2):
            expire_together(s, range(1, 16), 3000)
            while first.ask('DBSIZE') > 0:  # then database 0 has been looked at, and the others have not
                pass
            same(c.ask('SET', f'k{i}', 'v', 'PX', 10), '+OK')
            eventually(lambda: c.ask('DBSIZE') == 0, lambda: 'nobody drops it', seconds=5)


@test
def stops_while_keys_expire():
    """Those who drop keys, at the end and because they have expired, do not meet."""
    for _ in range(3):
        with redisd() as s, client(s) as c:
            expire_together(s, range(16), 3000)
            while c.ask('DBSIZE') > 0:
                pass
            s.p.send_signal(signal.SIGTERM)  # the other databases are being looked at
            s.ends(10)


@test
def replies_are_bounded():
    """What a client asks for in one command has no end; what the server makes of it has."""
    big, n, most = b'x' * (1 << 20), 1000, 200 << 20
    with redisd() as s, client(s) as c:
        same(c.ask('SET', 'k', big), '+OK')
        for i in (50, 100, 150):
            same(c.ask('RPUSH', 'l', *[big] * 50), i)
        before = s.rss()
        for words in (('MGET', *['k'] * n), ('LRANGE', 'l', 0, -1), ('LPOP', 'l', 150), ('RPOP', 'l', 1000)):
            c.send(bulk(*words) + bulk('PING'))
            same(c.until(b'\r\n')[:4], b'-OOM')
            same(c.reply(), '+PONG')
        assert s.rss() - before < most, f'{(s.rss() - before) >> 20} MB'
        same(c.ask('LLEN', 'l'), 150)  # nothing was taken
        same(c.ask('LPOP', 'l', 100) == [big] * 100, True)
        same([x == big for x in c.ask('MGET', *['k'] * 100)], [True] * 100)


@test
def blocking_pops():
    with redisd() as s, client(s) as a, client(s) as b, client(s) as p:
        a.send(bulk('BLPOP', 'x', 'q', 20) + bulk('PING'))
        eventually(lambda: p.ask('INFO', 'stats') and waiting(s, p, 1))
        b.send(bulk('BRPOP', 'q', 20))
        time.sleep(0.05)
        same(p.ask('RPUSH', 'q', 'one', 'two'), 2)
        same(a.reply(), [b'q', b'one'])  # who came first is first
        same(a.reply(), '+PONG')
        same(b.reply(), [b'q', b'two'])
        same(p.ask('EXISTS', 'q'), 0)
        start = time.monotonic()
        same(a.ask('BLPOP', 'q', '0.1'), None)
        assert time.monotonic() - start >= 0.1
        # One that has gone gets nothing.
        gone = client(s)
        same(gone.ask('PING'), '+PONG')  # the server has it
        gone.send(bulk('BLPOP', 'q', 0))
        gone.s.close()
        eventually(lambda: s.fds() == s.fds_at_start + 3)
        same(p.ask('RPUSH', 'q', 'kept'), 1)
        same(p.ask('LLEN', 'q'), 1)
        same(a.ask('BLPOP', 'q', 0), [b'q', b'kept'])


@test
def gone_with_much_pipelined():
    """A client that waits, has sent a lot and goes leaves nothing behind, and takes no element."""
    with redisd() as s, client(s) as p:
        for i in range(10):
            gone = client(s)
            same(gone.ask('PING'), '+PONG')  # the server has it
            gone.send(bulk('BLPOP', 'q', 0) + bulk('PING') * 6000)  # 84 KB
            gone.reset() if i % 2 else gone.s.close()
        eventually(lambda: s.fds() == s.fds_at_start + 1)
        same(p.ask('RPUSH', 'q', *range(10)), 10)
        same(p.ask('LLEN', 'q'), 10)
        with client(s) as c:  # it stays, and all is answered
            c.send(bulk('BLPOP', 'other', 0) + bulk('PING') * 6000)
            eventually(lambda: waiting(s, c, 1))
            same(p.ask('RPUSH', 'other', 'x'), 1)
            same(c.reply(), [b'other', b'x'])
            same([c.reply() for _ in range(6000)], ['+PONG'] * 6000)
        with client(s) as c:  # more than that is too much
            try:
                c.send(bulk('BLPOP', 'other', 0) + bulk('ECHO', b'x' * (1 << 20)) * 70)
            except OSError:
                pass
            same(c.all(), b'')


def waiting(s, c, n):
    """Nothing tells who waits: time must do, and the server must be at rest."""
    cpu = s.cpu()
    time.sleep(0.05)
    return s.cpu() - cpu < 0.04


@test
def blocking_queue():
    """Workers and producers: each element once."""
    n, workers = 2000, 20
    with redisd() as s:
        got, lock = [], threading.Lock()

        def work():
            with client(s) as c:
                while True:
                    _, v = c.ask('BRPOP', 'other', 'jobs', 0)
                    if v == b'end':
                        return
                    with lock:
                        got.append(int(v))
        threads = [threading.Thread(target=work) for _ in range(workers)]
        for t in threads:
            t.start()
        with client(s) as p:
            for i in range(n):
                p.send(bulk('LPUSH', 'jobs', i))
            for _ in range(n):
                p.reply()
            eventually(lambda: len(got) == n)
            p.ask('LPUSH', 'jobs', *['end'] * workers)
        for t in threads:
            t.join()
        same(sorted(got), list(range(n)))


@test
def publish():
    with redisd() as s, client(s) as a, client(s) as b, client(s) as p:
        same(a.ask('SUBSCRIBE', 'news', 'x'), [b'subscribe', b'news', 1])
        same(a.reply(), [b'subscribe', b'x', 2])
        same(b.ask('PSUBSCRIBE', 'n*s'), [b'psubscribe', b'n*s', 1])
        same(p.ask('PUBLISH', 'news', 'hello'), 2)
        same(p.ask('PUBLISH', 'none', 'hello'), 0)
        same(a.reply(), [b'message', b'news', b'hello'])
        same(b.reply(), [b'pmessage', b'n*s', b'news', b'hello'])
        same(sorted(p.ask('PUBSUB', 'CHANNELS')), [b'news', b'x'])
        same(p.ask('PUBSUB', 'NUMSUB', 'news'), [b'news', 1])
        assert a.ask('GET', 'k').startswith("-ERR Can't execute 'get'")
        same(a.ask('PING'), [b'pong', b''])
        same(a.ask('UNSUBSCRIBE', 'x'), [b'unsubscribe', b'x', 1])
        same(a.ask('UNSUBSCRIBE'), [b'unsubscribe', b'news', 0])
        same(a.ask('GET', 'k'), None)
        same(p.ask('PUBLISH', 'news', 'more'), 1)
        for i in range(1000):
            p.send(bulk('PUBLISH', 'news', i))
        same([p.reply() for _ in range(1000)], [1] * 1000)
        same(b.reply()[3], b'more')
        same([int(b.reply()[3]) for _ in range(1000)], list(range(1000)))
        b.s.close()
        eventually(lambda: p.ask('PUBLISH', 'news', 'gone') == 0)


@test
def many_channels():
    n = 50000
    names = [b'channel:%d' % i for i in range(n)]
    with redisd() as s, client(s) as a, client(s) as p:
        start = s.cpu()
        for what in ('SUBSCRIBE', 'UNSUBSCRIBE'):
            sender = threading.Thread(target=a.send, args=(bulk(what, *names),))
            sender.start()
            for i, name in enumerate(names):
                same(a.reply(), [what.lower().encode(), name, i + 1 if what == 'SUBSCRIBE' else n - i - 1])
            sender.join()
            same(len(p.ask('PUBSUB', 'CHANNELS')), n if what == 'SUBSCRIBE' else 0)
        print(f'     {s.cpu() - start:.2f} s of CPU for {n} channels')
        assert s.cpu() - start < 4, 'it looks at all channels for each'
        a.send(bulk('SUBSCRIBE', *names[:1000]) + bulk('PSUBSCRIBE', 'x') + bulk('UNSUBSCRIBE'))
        same([a.reply()[2] for _ in range(1001)], list(range(1, 1002)))
        rest = [a.reply() for _ in range(1000)]
        same(sorted(x[1] for x in rest), sorted(names[:1000]))
        same([x[2] for x in rest], list(range(1000, 0, -1)))


@test
def slow_subscriber():
    """One that does not read never holds up a publisher; the others get all; it is thrown out."""
    with redisd() as s, client(s) as slow, client(s) as good, client(s) as p:
        slow.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.ask('SUBSCRIBE', 'c')
        good.ask('SUBSCRIBE', 'c')
        text = b'x' * 100000
        for i in range(400):  # 40 MB
            assert p.ask('PUBLISH', 'c', text) in (1, 2)
            same(good.reply(), [b'message', b'c', text])
        eventually(lambda: p.ask('PUBSUB', 'NUMSUB', 'c') == [b'c', 1])
        eventually(lambda: s.fds() == s.fds_at_start + 2)


@test
def big_for_subscribers():
    """What is bigger than an outbox may hold reaches who reads; who has unsubscribed has no outbox."""
    with redisd() as s, client(s) as a, client(s) as p:
        big = b'x' * (9 << 20)
        same(p.ask('SET', 'big', big), '+OK')
        for _ in range(3):
            same(a.ask('SUBSCRIBE', 'c'), [b'subscribe', b'c', 1])
            same(p.ask('PUBLISH', 'c', big), 1)
            same(a.reply()[2] == big, True)
            a.send(bulk('PSUBSCRIBE', '*') + bulk('PING') + bulk('UNSUBSCRIBE', 'c') + bulk('PUNSUBSCRIBE')
                   + bulk('GET', 'big') * 4 + bulk('PING'))
            same([a.reply() for _ in range(4)], [[b'psubscribe', b'*', 2], [b'pong', b''],
                                                 [b'unsubscribe', b'c', 1], [b'punsubscribe', b'*', 0]])
            same([a.reply() == big for _ in range(4)], [True] * 4)
            same(a.reply(), '+PONG')


@test(needs='redis-benchmark')
def load_by_redis_benchmark():
    with redisd() as s:
        for more in (('-P', '1'), ('-P', '16')):
            text = out('redis-benchmark', '-p', s.port, '-t', 'ping,get,set,incr,lpush,lpop,lrange_100,mset',
                       '-n', '4000', '-c', '50', '-r', '1000', '--csv', *more).decode()
            assert 'WARNING' not in text and 'rror' not in text, text
            assert len(text.strip().split('\n')) >= 9, text


def at_rest(s):
    cpu = s.cpu()
    time.sleep(0.5)
    assert s.cpu() - cpu <= 0.1, f'spins: {s.cpu() - cpu} s of CPU in 0.5 s'


@test(needs='redis-benchmark')
def descriptors_run_out_under_load():
    with redisd(files=48) as s:
        held = [client(s) for _ in range(100)]  # the last of them wait
        for c in held[:20]:
            same(c.ask('PING'), '+PONG')
        bench = subprocess.Popen(['redis-benchmark', '-p', str(s.port), '-t', 'set', '-n', '20000', '-c', '30',
                                  '-q'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(0.2)
        for c in held:  # its clients come in as these go
            c.s.close()
        text = bench.communicate(timeout=20)[0]
        assert bench.returncode == 0 and 'requests per second' in text and 'rror' not in text, text
        eventually(lambda: s.fds() == s.fds_at_start)
        held = [client(s) for _ in range(30)]
        same([c.ask('PING') for c in held], ['+PONG'] * 30)
        at_rest(s)
        for c in held:
            c.s.close()


@test
def descriptors_run_out():
    with redisd(files=48) as s:
        held = [client(s) for _ in range(100)]
        for c in held[:20]:
            same(c.ask('PING'), '+PONG')
        at_rest(s)
        for c in held[:60]:
            c.s.close()
        for c in held[60:]:
            same(c.ask('PING'), '+PONG')
            c.s.close()


@test
def idle_costs_nothing():
    with redisd() as s:
        held = [client(s) for _ in range(100)]
        for c in held:
            same(c.ask('PING'), '+PONG')
        eventually(lambda: waiting(s, held[0], 0))
        cpu = s.cpu()
        time.sleep(1)
        assert s.cpu() - cpu <= 0.1, f'{s.cpu() - cpu} s of CPU in a second of nothing'
        for c in held:
            c.s.close()


@test
def resets():
    with redisd() as s:
        for i in range(50):
            for data in (b'', b'*1\r\n', bulk('PING') * 200, bulk('BLPOP', 'q', 0), bulk('SUBSCRIBE', 'c'),
                         bulk('SET', 'k', b'x' * 100000)[:5000]):
                c = client(s)
                c.send(data)
                c.reset()
        with client(s) as c:
            eventually(lambda: c.ask('PUBLISH', 'c', 'x') == 0)
            same(c.ask('DBSIZE'), 0)


@test
def stops():
    for how in ('SHUTDOWN', signal.SIGTERM, signal.SIGINT):
        with redisd() as s, client(s) as a, client(s) as b, client(s) as c:
            a.send(bulk('BLPOP', 'q', 0))
            b.ask('SUBSCRIBE', 'c')
            same(c.ask('SET', 'k', 'v'), '+OK')
            if how == 'SHUTDOWN':
                c.send(bulk('SHUTDOWN', 'NOSAVE'))
            else:
                s.p.send_signal(how)
            for x in (a, b, c):
                x.all()
            s.ends(10)


if __name__ == '__main__':
    lib.main(__doc__)
