#!/usr/bin/env python3
"""Hostile clients of the web UI.

    page_attacks.py PORT CONNECTIONS [HELD]

Opens so many connections to 127.0.0.1:PORT from eight addresses, HELD of them at a time, and opens another for each that the
server ends. Prints one JSON line: the connections by kind, and those that got an answer."""

import collections
import contextlib
import errno
import json
import os
import random
import resource
import select
import socket
import ssl
import struct
import sys
import time

ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]
HEAD = b"GET /work HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PATIENCE = 0.5  # seconds between two parts of a slow request


def tls_hello():
    out = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    return out.read()


def post(*lines):
    return b"POST /api/v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


# The first bytes of a connection, then those that follow again and again.
KINDS = {
    "idle": (b"", b""),
    "slow header": (b"GET / HTTP/1.1\r\nX-Slow: ", b"a"),
    "half request": (b"GET /work HTT", b""),
    "half header": (HEAD, b""),
    "endless header": (HEAD, b"X-Long: " + b"a" * 4000 + b"\r\n"),
    "endless body": (post(b"Content-Type: application/json", b"Content-Length: 8000"), b"{"),
    "endless chunks": (post(b"Transfer-Encoding: chunked"), b"10\r\n" + b"x" * 16 + b"\r\n"),
    "body of a GET": (HEAD + b"Content-Length: 9999999\r\n\r\n", b"x" * 4000),
    "wrong method": (b"BREW /work HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b""),
    "no version": (b"GET /work\r\n\r\n", b""),
    "pipelined garbage": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20 + os.urandom(4096), b""),
    "TLS hello": (tls_hello(), b""),
    "no reader": (HEAD.replace(b"/work", b"/style.css") + b"\r\n", b""),
    "reset": (b"GET / HTTP/1.1\r\nHost: ", None),
}


class Crowd:
    def __init__(self, port, chance):
        self.port, self.chance = port, chance
        self.poll = select.epoll()
        self.peers = {}  # by descriptor: socket, kind, time of the next part
        self.opened, self.answered = collections.Counter(), collections.Counter()
        self.failed = 0

    def open(self):
        peer = socket.socket()
        peer.setblocking(False)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            peer.bind((self.chance.choice(ADDRESSES), 0))
            failure = peer.connect_ex(("127.0.0.1", self.port))
        except OSError:
            failure = errno.EADDRNOTAVAIL
        if failure not in (0, errno.EINPROGRESS):
            self.failed += 1
            peer.close()
            return
        kind = self.chance.choice(list(KINDS))
        self.opened[kind] += 1
        self.peers[peer.fileno()] = [peer, kind, None]
        self.poll.register(peer, select.EPOLLOUT | select.EPOLLIN | select.EPOLLRDHUP)

    def close(self, number):
        peer = self.peers.pop(number)[0]
        with contextlib.suppress(OSError):
            self.poll.unregister(number)
        peer.close()

    def send(self, number, data):
        peer = self.peers[number][0]
        try:
            peer.send(data)
        except BlockingIOError:
            pass
        except OSError:
            self.close(number)

    def begin(self, number):
        """The connection is there: its first bytes."""
        peer, kind, _ = self.peers[number]
        first, rest = KINDS[kind]
        self.poll.modify(number, select.EPOLLRDHUP | (0 if kind == "no reader" else select.EPOLLIN))
        self.peers[number][2] = time.monotonic() + PATIENCE
        self.send(number, first)
        if rest is None and number in self.peers:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close(number)

    def hear(self, number):
        peer, kind, _ = self.peers[number]
        try:
            got = peer.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        self.answered[kind] += got.startswith(b"HTTP/")
        if not got:
            self.close(number)

    def turn(self):
        """Handles events, then the slow connections."""
        for number, event in self.poll.poll(0.02):
            if number not in self.peers:
                continue
            if event & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLRDHUP):
                if event & select.EPOLLIN:
                    self.hear(number)
                if number in self.peers:
                    self.close(number)
            elif self.peers[number][2] is None and event & select.EPOLLOUT:
                self.begin(number)
            elif event & select.EPOLLIN:
                self.hear(number)
        now = time.monotonic()
        for number, (_, kind, at) in list(self.peers.items()):
            if at is not None and at < now and KINDS[kind][1]:
                self.peers[number][2] = now + PATIENCE
                self.send(number, KINDS[kind][1])


def main():
    port, connections, held = int(sys.argv[1]), int(sys.argv[2]), int((sys.argv[3:] or ["500"])[0])
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, held + 100), limit))
    crowd = Crowd(port, random.Random(1))
    while sum(crowd.opened.values()) < connections:
        for _ in range(min(50, held - len(crowd.peers), connections - sum(crowd.opened.values()))):
            crowd.open()
        crowd.turn()
    end = time.monotonic() + 2  # the last ones are there
    while time.monotonic() < end:
        crowd.turn()
    for number in list(crowd.peers):
        crowd.close(number)
    print(json.dumps({"opened": crowd.opened, "answered": crowd.answered, "failed": crowd.failed}), flush=True)


if __name__ == "__main__":
    main()
