#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/proxy.c, by curl and by hand, in front of examples/httpd.c.

  tests/net/proxy.py build/native [TEST...]
"""
import os
import signal
import socket
import tempfile
import time
from pathlib import Path

import lib
from lib import Conn, Server, eventually, out, same, test

BIG = os.urandom(1 << 20) * 8
FOLDER = tempfile.TemporaryDirectory()
(Path(FOLDER.name) / 'big').write_bytes(BIG)
HELLO = b'\5\1\0'


def httpd():
    return Server('httpd', '-root', FOLDER.name)


def this_machine():
    """A name; where there is none (a bare system has no /etc/hosts), the address."""
    try:
        socket.getaddrinfo('localhost', None)
        return 'localhost'
    except OSError:
        return '127.0.0.1'


def request(addr, command=1):
    return b'\5' + bytes([command]) + b'\0\1' + socket.inet_aton(addr[0]) + addr[1].to_bytes(2, 'big')


@test(needs='curl')
def socks5():
    with httpd() as web, Server('proxy') as s:
        proxy = f'127.0.0.1:{s.port}'
        same(out('curl', '-s', '--socks5', proxy, web.url + '/plaintext'), b'Hello, World!')
        same(out('curl', '-s', '--socks5-hostname', proxy, f'http://{this_machine()}:{web.port}/plaintext'),
             b'Hello, World!')
        same(out('curl', '-s', '--socks5', proxy, web.url + '/big'), BIG)
        same(out('curl', '-s', '--socks5', proxy, '--data-binary', '@-', web.url + '/echo', data=BIG[:5000000]),
             BIG[:5000000])


@test(needs='curl')
def fixed():
    with httpd() as web, Server('proxy', '-to', f'127.0.0.1:{web.port}') as s:
        same(out('curl', '-s', s.url + '/big'), BIG)


@test
def half_close():
    listener = socket.create_server(('127.0.0.1', 0))
    with Server('proxy', '-to', f'127.0.0.1:{listener.getsockname()[1]}') as s, s.connect() as c:
        c.send('question')
        c.s.shutdown(socket.SHUT_WR)
        peer, _ = listener.accept()
        with peer:
            same(peer.recv(100), b'question')
            same(peer.recv(100), b'')  # its end was passed on; the other direction goes on
            peer.sendall(b'answer')
        same(c.all(), b'answer')
    listener.close()


@test
def idle():
    """A connection on which one side talks is not idle, however long the other has said nothing."""
    listener = socket.create_server(('127.0.0.1', 0))
    to = f'127.0.0.1:{listener.getsockname()[1]}'
    with Server('proxy', '-idle', '1.5', '-to', to) as s, s.connect() as c, listener.accept()[0] as one:
        with s.connect() as d, listener.accept()[0]:
            for i in range(20):
                time.sleep(0.1)
                one.sendall(bytes([i]))
                same(c.exactly(1), bytes([i]))
            same(c.all(), b'')  # and now it is
            same(d.all(), b'')
    listener.close()


@test
def never_reads():
    """Who has nothing more to say and takes nothing is idle too, however much there is for it."""
    listener = socket.create_server(('127.0.0.1', 0))
    to = f'127.0.0.1:{listener.getsockname()[1]}'
    with Server('proxy', '-idle', '0.7', '-to', to) as s, s.connect() as c, listener.accept()[0] as peer:
        c.s.shutdown(socket.SHUT_WR)
        same(peer.recv(100), b'')  # one of the two directions has ended
        peer.settimeout(0.3)
        try:
            while True:
                peer.send(BIG)
        except OSError:  # all buffers on the way are full
            pass
        eventually(lambda: s.fds() == s.fds_at_start, seconds=10)
    listener.close()


@test
def refused():
    with socket.create_server(('127.0.0.1', 0)) as unused:
        addr = unused.getsockname()
    with Server('proxy') as s:
        for data, want in ((HELLO + request(addr), b'\5\0\5\5\0\1' + bytes(6)),
                           (HELLO + request(addr, 2), b'\5\0\5\7\0\1' + bytes(6)),
                           (HELLO + b'\5\1\0\7', b'\5\0\5\x08\0\1' + bytes(6)),
                           (b'\5\1\2', b'\5\xff'), (b'GET / HTTP/1.1\r\n\r\n', b''), (b'\4\1', b'')):
            with s.connect() as c:
                c.send(data)
                same((data, c.all()), (data, want))


@test
def resets_and_stop():
    with httpd() as web, Server('proxy') as s:
        for _ in range(20):
            for data in (b'', HELLO, HELLO + request(web.addr),
                         HELLO + request(web.addr) + b'GET /big HTTP/1.1\r\nHost: h\r\n\r\n'):
                c = s.connect()
                c.send(data)
                if data.endswith(b'\n'):
                    c.exactly(1000)
                c.reset()
        eventually(lambda: s.fds() == s.fds_at_start)
        with s.connect() as c:
            c.send(HELLO + request(web.addr))
            same(c.exactly(12)[:4], b'\5\0\5\0')
            s.p.send_signal(signal.SIGTERM)  # with a connection open
            s.ends()


if __name__ == '__main__':
    lib.main(__doc__)
