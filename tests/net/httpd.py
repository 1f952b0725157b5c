#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/httpd.c against real clients (curl, nc, wrk) and mean ones.

  tests/net/httpd.py build/native [TEST...]
"""
import email.utils
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import lib
from lib import Server, eventually, out, same, test

OWN = 6344 + 4096 + 2 * 16  # bytes that httpd.c allocates for a connection: struct conn, its input
BIG = os.urandom(1 << 20) * 24
FOLDER = tempfile.TemporaryDirectory()
WWW = Path(FOLDER.name) / 'www'


def make_files():
    (WWW / 'sub').mkdir(parents=True)
    (WWW / 'empty').mkdir()
    (WWW / '/'.join(['deep'] * 191)).mkdir(parents=True)
    (WWW / 'index.html').write_text('<h1>top</h1>\n')
    (WWW / 'sub/index.html').write_text('<h1>sub</h1>\n')
    (WWW / 'a b.txt').write_text('a blank\n')
    (WWW / 'big.bin').write_bytes(BIG)
    (WWW / 'nothing').write_bytes(b'')
    (WWW / '.hidden').write_text('SECRET')
    (WWW.parent / 'secret').write_text('SECRET')
    (WWW / 'out').symlink_to('../secret')
    (WWW / 'abs').symlink_to(WWW.parent / 'secret')
    (WWW / 'in').symlink_to('sub/index.html')
    (WWW / 'up').symlink_to('..')
    os.mkfifo(WWW / 'fifo')


make_files()


def httpd(*args, **more):
    return Server('httpd', '-root', WWW, *args, **more)


def get(path, *fields, method='GET', version='1.1'):
    return ''.join(f'{line}\r\n' for line in
                   (f'{method} {path} HTTP/{version}', 'Host: h', *fields)) + '\r\n'


def status_of(s, data):
    """The status that a request is answered with; the connection must end then."""
    with s.connect() as c:
        c.send(data)
        answer = c.all()
    m = re.match(rb'HTTP/1\.1 (\d+) ', answer)
    assert m, answer[:200]
    return int(m[1])


# -- Files, by curl -------------------------------------------------------------------------------

@test(needs='curl')
def files():
    with httpd() as s:
        same(out('curl', '-s', s.url), b'<h1>top</h1>\n')
        same(out('curl', '-s', s.url + '/sub/'), b'<h1>sub</h1>\n')
        same(out('curl', '-sL', s.url + '/sub'), b'<h1>sub</h1>\n')
        same(out('curl', '-s', s.url + '/a%20b.txt?query'), b'a blank\n')
        same(out('curl', '-s', s.url + '/in'), b'<h1>sub</h1>\n')
        same(out('curl', '-s', s.url + '/nothing'), b'')
        same(out('curl', '-s', '-0', s.url + '/a%20b.txt'), b'a blank\n')
        head = out('curl', '-sI', s.url + '/a%20b.txt').decode()
        assert 'Content-Length: 8\r\n' in head and 'Content-Type: text/plain' in head, head
        date = re.search('Last-Modified: (.*)\r', head)[1]
        same(email.utils.parsedate_to_datetime(date).timestamp(),
             int((WWW / 'a b.txt').stat().st_mtime))
        code = ('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}')
        same(out(*code, s.url + '/none'), b'404')
        same(out(*code, s.url + '/empty/'), b'404')
        same(out(*code, s.url + '/sub'), b'301')
        same(out(*code, '-H', f'If-Modified-Since: {date}', s.url + '/a%20b.txt'), b'304')
        same(out(*code, '-H', 'If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT',
                 s.url + '/a%20b.txt'), b'200')
        same(out(*code, '-X', 'DELETE', s.url + '/'), b'405')
        same(out(*code, '-X', 'BREW', s.url + '/'), b'501')
        same(out(*code, '-X', 'OPTIONS', '--request-target', '*', s.url), b'200')


@test
def file_of_the_future():
    with httpd() as s, s.connect() as c:
        for time_of, known in ((time.time() + 1e6, False), (1e9, True)):
            os.utime(WWW / 'nothing', (time_of, time_of))
            c.send(get('/nothing'))
            fields = c.response()[1]
            date, modified = (email.utils.parsedate_to_datetime(fields[f]).timestamp()
                              for f in ('date', 'last-modified'))
            same((modified <= date, modified == time_of), (True, known))


@test
def directories():
    """The address of a directory, as it came: in any spelling, with its query."""
    with httpd() as s, s.connect() as c:
        for path in ('/sub', '/%73%75%62', '/sub?', '/sub?a=b&c=/d', '/sub?' + 'x' * 8000, '/empty'):
            c.send(get(path))
            status, fields, _ = c.response()
            path, mark, query = path.partition('?')
            same((status, fields['location']), (301, path + '/' + mark + query))
        # Each of its 1000 characters encoded.
        long = ''.join(f'%{ord(x):02x}' if x != '/' else x for x in '/' + 'deep/' * 190 + 'deep')
        c.send(get(long))
        same(c.response()[1]['location'], long + '/')
        c.send(get('/plaintext'))
        same(c.response()[2], b'Hello, World!')


@test(needs='curl')
def keep_alive():
    with httpd() as s:
        counts = out('curl', '-s', '-w', '%{num_connects}', *[s.url + '/plaintext'] * 5)
        same(counts, b'Hello, World!1' + b'Hello, World!0' * 4)
        same(out('curl', '-s', '-H', 'Connection: close', '-w', '%{num_connects}',
                 *[s.url + '/plaintext'] * 2), b'Hello, World!1' * 2)


@test
def keep_alive_of_1_0():
    with httpd() as s:
        with s.connect() as c:
            for path in ('/plaintext', '/none', '/a%20b.txt'):  # it must be told that it may go on
                c.send(get(path, 'Connection: Keep-Alive', version='1.0'))
                same(c.response()[1].get('connection'), 'keep-alive')
            c.send(get('/plaintext'))
            same(c.response()[1].get('connection'), None)
            c.send(get('/plaintext', version='1.0'))
            same(c.response()[1].get('connection'), 'close')
            same(c.all(), b'')


@test(needs='curl')
def big_file():
    with httpd() as s:
        url = s.url + '/big.bin'
        same(out('curl', '-s', url), BIG)
        same(out('curl', '-s', '-r', '1000-1999', url), BIG[1000:2000])
        same(out('curl', '-s', '-r', '-5', url), BIG[-5:])
        same(out('curl', '-s', '-r', f'{len(BIG) - 5}-', url), BIG[-5:])
        code = ('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}')
        same(out(*code, '-r', f'{len(BIG)}-', url), b'416')
        same(out(*code, '-r', '0-0', url), b'206')
        same(out(*code, '-r', '0-1,5-6', url), b'200')
        same(out('curl', '-s', '--limit-rate', '40M', url), BIG)


@test(needs='curl')
def uploads():
    body = BIG[:3 << 20]
    with httpd() as s:
        for more in ((), ('-H', 'Transfer-Encoding: chunked'), ('-H', 'Expect: 100-continue'),
                     ('-H', 'Expect:')):
            same(out('curl', '-s', *more, '--data-binary', '@-', s.url + '/echo', data=body), body)
        same(out('curl', '-s', '-T', '-', s.url + '/echo', data=body), body)
        same(out('curl', '-s', '--data-binary', '', s.url + '/echo'), b'')
        code = ('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--data-binary', '@-')
        same(out(*code, s.url + '/echo', data=BIG), b'413')
        same(out(*code, '-H', 'Transfer-Encoding: chunked', '-H', 'Expect:', s.url + '/echo', data=BIG,
                 ok=False), b'413')


@test
def traversal():
    with httpd() as s:
        for path in ('/../secret', '/%2e%2e/secret', '/sub/../../secret', '/sub/%2e%2e/%2e%2e/secret',
                     '/..%2fsecret', '/out', '/abs', '/up/secret', '/.hidden', '//etc/passwd',
                     '/%2fetc/passwd', '/sub/..', '/./index.html', '/fifo', '/%00', '/index.html%00x',
                     '/%', '/%zz', '/' + 'a/' * 2000, '/' + 'a' * 300, 'http://h/../secret'):
            with s.connect() as c:
                c.send(get(path))
                status, _, body = c.response()
                assert status in (400, 403, 404) and b'SECRET' not in body, (path, status)
                c.send(get('/plaintext'))
                same(c.response()[0], 200)


# -- Requests that nobody should send -------------------------------------------------------------

@test(needs='nc')
def pipelining_by_nc():
    with httpd() as s:
        data = (get('/plaintext') * 50 + get('/none') + get('/a%20b.txt')
                + get('/plaintext', 'Connection: close') + get('/plaintext')).encode()
        answer = out('nc', '-N', '127.0.0.1', s.port, data=data)
        same(re.findall(rb'HTTP/1.1 (\d+)', answer), [b'200'] * 50 + [b'404', b'200', b'200'])
        same(answer.count(b'Hello, World!'), 51)
        answer = out('nc', '-N', '127.0.0.1', s.port, data=b'what is this?\r\n\r\n')
        assert answer.startswith(b'HTTP/1.1 400 '), answer
        same(out('nc', '-N', '127.0.0.1', s.port, data=b'GET / HTTP/1.1\r\nHost: h\r\n'), b'')


@test
def pipelined_bodies():
    chunked = 'POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n'
    data = (get('/echo', 'Content-Length: 5', method='POST') + 'hello'
            + chunked + '3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: v\r\n\r\n' + get('/plaintext')
            + get('/plaintext', 'Content-Length: 3') + 'xyz' + get('/plaintext', method='HEAD'))
    with httpd() as s:
        for step in (1, 7, len(data)):
            with s.connect() as c:
                for i in range(0, len(data), step):
                    c.send(data[i:i + step])
                same([c.response()[2] for _ in range(4)],
                     [b'hello', b'abcde', b'Hello, World!', b'Hello, World!'])
                same(c.response(head=True)[1]['content-length'], '13')


@test
def method_outlives_body():
    """100 Continue makes sure that the body comes by a read of its own, over the head's place."""
    fields = ('Expect: 100-continue', 'Content-Length: 9')
    with httpd() as s, s.connect() as c:
        c.send(get('/plaintext', *fields, method='HEAD'))
        same(c.response()[0], 100)
        c.send('some body')
        same(c.response(head=True)[:1], (200,))
        same(c.rest, b'')
        c.send(get('/none', *fields, method='POST'))
        same(c.response()[0], 100)
        c.send('HEAD HEAD')
        same(c.response()[2], b'405 Method Not Allowed\n')
        c.send(get('/plaintext'))
        same(c.response()[2], b'Hello, World!')


@test
def bodies_that_nobody_wants():
    """What a request is answered with does not depend on whether it has a body."""
    files, echo = 'GET, HEAD, OPTIONS', 'GET, HEAD, OPTIONS, POST, PUT'
    with httpd() as s:
        for method, path, status, allow in (
                ('POST', '/', 405, files), ('PUT', '/plaintext', 405, files), ('DELETE', '/echo', 405, echo),
                ('OPTIONS', '/', 200, files), ('OPTIONS', '/echo', 200, echo), ('BREW', '/', 501, None),
                ('GET', '/plaintext', 200, None), ('GET', '/none', 404, None), ('GET', '/', 200, None),
                ('HEAD', '/', 200, None), ('GET', '/a%20b.txt', 200, None)):
            answers = set()
            for fields, body in (((), ''), (('Content-Length: 4',), 'body'),
                                 (('Transfer-Encoding: chunked',), '4\r\nbody\r\n0\r\n\r\n')):
                with s.connect() as c:
                    c.send(get(path, *fields, 'Connection: close', method=method) + body)
                    got = c.response(head=method == 'HEAD')
                    same((method, path, body, got[0], got[1].get('allow')), (method, path, body, status, allow))
                    answers.add(got[2])
                    same(c.all(), b'')
            same(len(answers), 1)
        with s.connect() as c:  # the body of a request for a file is not a request
            c.send(get('/', f'Content-Length: {len(get("/plaintext"))}') + get('/plaintext'))
            same(c.response()[2], b'<h1>top</h1>\n')
            same(c.all(), b'')


@test
def malformed():
    chunked = 'POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n'
    post = 'POST /echo HTTP/1.1\r\nHost: h\r\n'
    wrong = [
        (400, 'GET / HTTP/1.1\r\n\r\n'), (400, 'GET / HTTP/1.1\nHost: h\n\n'),
        (400, 'GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n'),
        (400, 'GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n'),
        (400, 'GET / HTTP/1.1\r\nHost : h\r\n\r\n'), (400, '\x16\x03\x01\x02\x00\r\n\r\n'),
        (400, post + 'Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'),
        (400, post + 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
        (400, post + 'Transfer-Encoding: identity\r\n\r\n'), (400, post + 'Content-Length: -1\r\n\r\n'),
        (501, post + 'Transfer-Encoding: gzip, chunked\r\n\r\n'), (505, 'GET / HTTP/2.0\r\n\r\n'),
        (417, post + 'Expect: more\r\n\r\n'), (400, chunked + 'x\r\n'), (400, chunked + '3\r\nabcd\r\n'),
        (400, chunked + '3\nabc\n0\n\n'), (413, chunked + 'fffffffffffffff\r\n'),
        (413, post + 'Content-Length: 99999999999\r\n\r\n'), (414, 'GET /' + 'a' * 9000),
        (431, 'GET / HTTP/1.1\r\nHost: h\r\nA: ' + 'a' * 20000),
        (431, 'GET / HTTP/1.1\r\nHost: h\r\n' + 'A: b\r\n' * 100 + '\r\n'),
    ]
    with httpd() as s:
        for status, data in wrong:
            same((status_of(s, data + 'x' * 1000 if status == 400 else data), data[:80]),
                 (status, data[:80]))
        same(status_of(s, get('/plaintext', 'Connection: close')), 200)


# -- Clients that are slow, or go away ------------------------------------------------------------

@test
def slowloris():
    with httpd('-head', '0.7', '-body', '0.7', '-idle', '5') as s:
        drip = [s.connect() for _ in range(100)]
        post = 'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n'
        start, ended = time.monotonic(), 0
        for i, c in enumerate(drip):
            c.send(post if i % 2 else 'GET / HTTP/1.1\r\n')
        while drip and time.monotonic() - start < 20:
            time.sleep(0.05)
            with s.connect() as good:  # the others don't notice
                good.send(get('/plaintext'))
                same(good.response()[0], 200)
            for c in list(drip):
                try:
                    c.send('A')
                    if select.select([c.s], [], [], 0)[0]:
                        assert c.all().startswith(b'HTTP/1.1 408'), c.rest
                        raise EOFError
                except (OSError, EOFError):
                    c.s.close()
                    drip.remove(c)
                    ended += 1
        same(ended, 100)


@test
def idle_and_half_open():
    with httpd('-idle', '0.5', '-head', '0.5') as s:
        with s.connect() as c, s.connect() as d:
            c.send(get('/plaintext'))
            same(c.response()[0], 200)
            same(c.all(), b'')  # closed after a while without a request
            same(d.all(), b'')
        with s.connect() as e, s.connect() as f:
            e.send(get('/plaintext'))
            e.s.shutdown(socket.SHUT_WR)  # half closed: still answered
            same(e.response()[2], b'Hello, World!')
            f.send('GET / HT')
            f.s.shutdown(socket.SHUT_WR)
            same(f.all(), b'')


@test
def slow_is_not_idle():
    """-idle is the time that an answer has from when it is written, whatever was before."""
    with httpd('-idle', '1.5', '-head', '5', '-body', '0.5') as s:
        with s.connect() as c:  # half of a request is always under way
            one = get('/plaintext')
            c.send(one[:10])
            for _ in range(20):
                time.sleep(0.1)
                c.send(one[10:] + one[:10])
                same(c.response()[2], b'Hello, World!')
        with s.connect() as c, s.connect() as d:
            c.send('GET /plaintext HTTP/1.1\r\n')
            d.send(get('/echo', 'Content-Length: 5', method='POST'))
            same(d.response()[0], 408)
            time.sleep(1.5)
            c.send('Host: h\r\n\r\n')
            same(c.response()[2], b'Hello, World!')


@test
def refused_while_sending():
    """A client that sends all of a body that is too long still gets to read the 413."""
    with httpd('-limit', '1000') as s:
        for _ in range(5):
            with s.connect() as c:
                c.send(get('/echo', f'Content-Length: {len(BIG)}', method='POST'))
                c.send(BIG)
                same(c.response()[0], 413)


@test
def never_reads():
    with httpd('-idle', '0.5') as s:
        with s.connect() as c:
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.send(get('/big.bin') * 3)
            eventually(lambda: s.fds() == s.fds_at_start + 2)  # the connection and the file
            eventually(lambda: s.fds() == s.fds_at_start)


@test
def cut_off_is_the_end():
    """An answer that was not taken in time is the last: another one in its middle would be part of it."""
    moved = '/' + '/'.join(['deep'] * 191)  # a Location that does not fit behind other answers
    chunks = '1\r\nx\r\n' * 300  # longer than its answer: most reads of the server end in a body
    for one in (get(moved), get('/echo', 'Transfer-Encoding: chunked', method='POST') + chunks + '0\r\n\r\n'):
        with httpd('-idle', '0.5') as s:
            with s.connect() as c:
                c.send(one)
                status, fields, text = c.response()
                same((status, text, fields.get('location')), (200, b'x' * 300, None) if chunks in one
                     else (301, b'', moved + '/'))
            with s.connect(timeout=1.2) as c:  # long enough for two answers not to be taken
                c.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                try:
                    while True:
                        c.send(one * 100)
                except OSError:
                    pass
                c.s.settimeout(20)
                answers = re.sub(rb'\r\nDate: [^\r]*', b'', c.all()).split(b'HTTP/1.1 ')[1:]
                assert len(answers) > 10, len(answers)
                same(set(answers[:-1]), {answers[0]})
                assert answers[0].startswith(answers[-1][:10]), answers[-1][:200]


@test
def resets():
    with httpd() as s:
        for _ in range(20):
            for data in ('', 'GET', get('/plaintext') * 100, get('/big.bin'),
                         'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc'):
                c = s.connect()
                c.send(data)
                if 'big' in data:
                    c.s.recv(1000)
                c.reset()
        with s.connect() as c:
            c.send(get('/plaintext'))
            same(c.response()[2], b'Hello, World!')


# -- Start and stop -------------------------------------------------------------------------------

@test
def graceful_stop():
    with httpd('-grace', '15') as s:
        post = 'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n'
        with s.connect() as busy, s.connect() as idle, s.connect() as fresh, s.connect() as file:
            idle.send(get('/plaintext'))
            idle.response()
            busy.send(post + 'abc')
            file.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            file.send(get('/big.bin'))
            file.until(b'\r\n\r\n')
            # All four are known to the server: this one came after them, and is answered.
            with s.connect() as probe:
                probe.send(get('/plaintext', 'Connection: close'))
                probe.all()
            s.p.send_signal(signal.SIGTERM)
            same(idle.all(), b'')
            same(fresh.all(), b'')
            try:
                socket.create_connection(s.addr, timeout=5).close()
                raise AssertionError('it still listens')
            except ConnectionRefusedError:
                pass
            same(s.p.poll(), None)
            busy.send('def')
            status, fields, body = busy.response()
            same((status, fields.get('connection'), body), (200, 'close', b'abcdef'))
            same(busy.all(), b'')
            assert file.all() == BIG
        s.ends()


@test
def stop_is_bounded():
    with httpd('-grace', '0.3') as s:
        with s.connect() as c, s.connect() as d:
            c.send('POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc')
            d.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            d.send(get('/big.bin'))
            d.s.recv(10)
            with s.connect() as probe:
                probe.send(get('/plaintext', 'Connection: close'))
                probe.all()
            s.p.send_signal(signal.SIGINT)
            s.ends(10)


# -- Load -----------------------------------------------------------------------------------------

@test(needs='wrk')
def load_by_wrk():
    with httpd() as s:
        text = out('wrk', '-t2', '-c64', '-d2s', s.url + '/plaintext').decode()
        assert 'Socket errors' not in text and 'Non-2xx' not in text, text
        assert int(re.search(r'(\d+) requests in', text)[1]) > 1000, text
        text = out('wrk', '-t2', '-c16', '-d1s', s.url + '/a%20b.txt').decode()
        assert 'Socket errors' not in text and 'Non-2xx' not in text, text


def at_rest(s):
    cpu = s.cpu()
    time.sleep(0.5)
    assert s.cpu() - cpu <= 0.1, f'spins: {s.cpu() - cpu} s of CPU in 0.5 s'


@test(needs='wrk')
def descriptors_run_out_under_load():
    """Those who have a connection are answered, those who have none wait, and nobody is forgotten."""
    with httpd(files=64) as s:
        text = out('wrk', '-t2', '-c100', '-d1s', s.url + '/plaintext').decode()
        assert int(re.search(r'(\d+) requests in', text)[1]) > 1000 and 'Non-2xx' not in text, text
        eventually(lambda: s.fds() == s.fds_at_start)  # wrk has gone
        held = [s.connect() for _ in range(40)]
        for c in held:
            for path in ('/plaintext', '/index.html'):
                c.send(get(path))
                same(c.response()[0], 200)
        at_rest(s)
        for c in held:
            c.s.close()


@test
def descriptors_run_out():
    with httpd(files=64) as s:
        held = [s.connect() for _ in range(120)]  # the kernel accepts what the server can't
        for c in held[:20]:
            c.send(get('/plaintext'))
            same(c.response()[0], 200)
        at_rest(s)
        for c in held[:20]:  # those that it has go on; files need a descriptor
            c.send(get('/plaintext'))
            same(c.response()[0], 200)
            c.send(get('/index.html'))
            assert c.response()[0] in (200, 503)
        for c in held[:80]:
            c.s.close()
        for c in held[80:]:
            c.send(get('/index.html'))
            same(c.response()[0], 200)
            c.s.close()


@test
def ten_thousand():
    n = min(10000, lib.HARD - 200)
    if n < 10000:
        print(f'     {n} connections: the hard limit of descriptors is {lib.HARD}')
    with httpd() as s:
        with s.connect() as c:
            c.send(get('/plaintext'))
            c.response()
        at_first = s.rss()
        conns, poll = {}, select.epoll()
        for _ in range(n):
            c = socket.create_connection(s.addr, timeout=20)
            conns[c.fileno()] = c
            poll.register(c, select.EPOLLIN)
        for _ in range(2):
            waiting = set(conns)
            for c in conns.values():
                c.send(get('/plaintext').encode())
            while waiting:
                ready = poll.poll(20)
                assert ready, f'{len(waiting)} are not answered'
                for fd, _ in ready:
                    answer = conns[fd].recv(4096)
                    assert answer.endswith(b'Hello, World!'), answer
                    waiting.remove(fd)
        each = (s.rss() - at_first) / n
        print(f'     {n} connections held and answered twice, {each / 1024:.1f} KB each')
        assert each <= 6 * 1024 + OWN, f'{each} bytes a connection, of which {OWN} are the server\'s own'
        for c in conns.values():
            c.close()


if __name__ == '__main__':
    lib.main(__doc__)
