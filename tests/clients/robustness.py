#!/usr/bin/env python3
"""Hostile clients, and what is left of a server after them:

    tests/clients/robustness.py TERCET [--model PATH] [--requests 10000] [--settled 1000] [--no-memory] [--seed N]

Eight clients send random requests: well-formed ones, broken ones (bodies, UTF-8, nesting, headers, no HTTP at all), and
clients that leave at any moment, read slowly or write slowly. It fails unless the server runs on, every well-formed request
gets the answer that it gets alone, no other gets a status of 500 or more, and after the last request the server holds what it
held after the first 1,000 (--settled): memory within 32 MB, as many descriptors, no KV blocks, no connections.

The model is smollm2-135m in the folder TERCET_MODELS unless one is named.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import socket
import sys
import threading
import time

from tercet_server import DEADLINE, MODEL, Server, eventually, post

MAX_GROWTH = 32 << 20  # bytes
FLAGS = ("-c", "512", "--kv-tokens", "512", "--parallel", "6", "--max-queue", "512", "--max-body", "1", "-t", "2")

GOOD = [
    ("/v1/completions", {"prompt": "Hello", "max_tokens": 3, "temperature": 0}),
    ("/v1/completions", {"prompt": "One, two,", "max_tokens": 9, "temperature": 0.9, "seed": 5, "ignore_eos": True}),
    ("/v1/completions", {"prompt": "The sky is", "max_tokens": 6, "temperature": 0, "stream": True}),
    ("/v1/completions", {"prompt": "The sky is", "max_tokens": 2, "temperature": 0, "logprobs": 5, "n": 2}),
    ("/v1/completions", {"prompt": [5, 6, 7] * 30, "max_tokens": 2, "temperature": 0, "echo": True, "logprobs": 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "temperature": 0}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "seed": 1, "stream": True,
                              "stream_options": {"include_usage": True}}),
    ("/tokenize", {"prompt": "Some text"}),
]
SLOW = ("/v1/completions", {"prompt": "Once", "max_tokens": 40, "ignore_eos": True, "stream": True, "logprobs": 10, "seed": 2})


def shown(path, raw):
    """What of an answer does not depend on when it was given."""
    head, _, body = raw.partition(b"\r\n\r\n")
    if b"chunked" in head:
        parts = []
        while body and not body.startswith(b"0\r\n"):
            size, _, rest = body.partition(b"\r\n")
            parts.append(rest[:int(size, 16)])
            body = rest[int(size, 16) + 2:]
        body = b"".join(parts)
        if not body.endswith(b"data: [DONE]\n\n"):
            raise AssertionError(f"{path}: a stream without end: {body[-200:]}")
        events = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]
        return ["".join(choice.get("text") or choice.get("delta", {}).get("content") or ""
                        for event in events for choice in event["choices"])]
    answer = json.loads(body)
    return [choice.get("message") or [choice["text"], choice["logprobs"]] for choice in answer["choices"]] \
        if "choices" in answer else answer


class Attack:
    """One client's request; `rng` decides everything about it."""

    def __init__(self, server, expected, rng):
        self.server, self.expected, self.rng = server, expected, rng

    def connect(self, receive_buffer=0):
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(DEADLINE)
        connection.connect(("127.0.0.1", self.server.port))
        return connection

    def good(self):
        index = self.rng.randrange(len(GOOD))
        path, fields = GOOD[index]
        with self.connect() as connection:
            connection.sendall(closing(path, fields))
            self.check(index, read_all(connection))

    def good_in_pieces(self):
        index = self.rng.randrange(len(GOOD))
        data = closing(*GOOD[index])
        with self.connect() as connection:
            while data:
                size = self.rng.randrange(1, 60)
                connection.sendall(data[:size])
                data = data[size:]
                time.sleep(self.rng.random() * 0.005)
            self.check(index, read_all(connection))

    def good_and_slow_to_read(self):
        with self.connect(receive_buffer=4096) as connection:
            connection.sendall(closing(*SLOW))
            raw = b""
            for _ in range(self.rng.randrange(1, 30)):
                raw += connection.recv(100)
                time.sleep(0.01)
            self.check(len(GOOD), raw + read_all(connection))

    def watched(self):
        for path in ("/metrics", "/health", "/v1/models"):
            status = self.server.ask(path)[0]
            if status != 200:
                raise AssertionError(f"{path}: {status}")

    def check(self, index, raw):
        path = (GOOD + [SLOW])[index][0]
        got = shown(path, raw) if raw.startswith(b"HTTP/1.1 200 ") else raw[:300]
        if self.expected[index] != got:
            raise AssertionError(f"{path}: expected {self.expected[index]}, got {got}")

    def left(self):
        """A good request whose client goes, at any moment."""
        path, fields = self.rng.choice(GOOD + [SLOW, SLOW])
        fields = dict(fields, max_tokens=self.rng.choice([1, 50, 300]))
        data = closing(path, fields)
        with self.connect() as connection:
            connection.sendall(data[:self.rng.randrange(len(data))] if self.rng.random() < 0.3 else data)
            if self.rng.random() < 0.6:
                time.sleep(self.rng.random() * 0.1)
            elif self.rng.random() < 0.5:
                connection.settimeout(0.2)
                try:
                    connection.recv(self.rng.randrange(1, 3000))
                except TimeoutError:
                    pass
            if self.rng.random() < 0.5:  # a reset in place of an end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    def broken(self):
        data = self.broken_bytes()
        with self.connect() as connection:
            try:
                connection.sendall(data)
                if self.rng.random() < 0.5:
                    connection.shutdown(socket.SHUT_WR)
                    status = read_all(connection)[:13]
                    if status.startswith(b"HTTP/1.1 5"):
                        raise AssertionError(f"{status} for {data[:300]}")
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has said what it thinks of us

    def broken_bytes(self):
        rng = self.rng
        path, fields = rng.choice(GOOD)
        body = json.dumps(fields).encode()
        kind = rng.randrange(12)
        if kind == 0:
            mutated = bytearray(body)
            for _ in range(rng.randint(1, 4)):
                mutated[rng.randrange(len(mutated))] = rng.randrange(256)
            # What it asks for by now may be well-formed, and long.
            return post(bytes(mutated)[:-1] + b', "max_tokens": 2}', path)
        if kind == 1:
            return post(body[:rng.randrange(len(body))], path)
        if kind == 2:
            return post(b'{"prompt": ' + rng.choice([b"[", b'{"a":', b'["x",']) * rng.choice([100, 5000, 100_000]), path)
        if kind == 3:
            return post(b'{"prompt": "' + rng.choice([b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"]) * 50
                        + b'", "messages": [{"role": "user", "content": "\xe2\x82"}], "max_tokens": 1}', path)
        if kind == 4:
            wrong = dict(fields)
            key = rng.choice(["prompt", "messages", "max_tokens", "temperature", "n", "seed", "stop", "logit_bias", "logprobs",
                              "stream", "top_p", "stream_options"])
            wrong[key] = rng.choice([None, -1, 1e300, "x", [], {}, [[[]]], True, 2**70, "\ud800", [-1], [2**31], {"1": "a"}])
            wrong.setdefault("max_tokens", 1)
            return post(json.dumps(wrong).encode(), path)
        if kind == 5:
            return b"GET /v1/models HTTP/1.1\r\nX: " + b"x" * rng.choice([60_000, 70_000, 3_000_000]) + b"\r\n\r\n"
        if kind == 6:
            return b"GET /health HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(rng.choice([100, 20_000]))) + b"\r\n"
        if kind == 7:
            return b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path.encode(), rng.choice([2_000_000, 99999999999]))
        if kind == 8:
            return b"POST %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % path.encode() + rng.choice(
                [b"zz\r\n", b"fffffffffffffffff\r\n", b"5\r\nab", b"3\r\n{}x\r\n0\r\n\r\n"])
        if kind == 9:
            return rng.randbytes(rng.randrange(1, 3000))
        if kind == 10:
            return post(body, path) * 3 + rng.randbytes(50)
        return rng.choice([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET http://[::1 HTTP/1.1\r\n\r\n",
                           b"GET /%00%ff%2e%2e/ HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n" * 500, b"POST / HTTP/9.9\r\n\r\n"])


KINDS = [("good", 30), ("good_in_pieces", 5), ("good_and_slow_to_read", 3), ("watched", 3), ("left", 30), ("broken", 32)]


def closing(path, fields):
    return post(json.dumps(fields).encode(), path).replace(b"Host: x", b"Host: x\r\nConnection: close", 1)


def read_all(connection):
    data = b""
    while part := connection.recv(65536):
        data += part
    return data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tercet")
    parser.add_argument("--model", type=pathlib.Path, default=MODEL)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--settled", type=int, default=1000)
    parser.add_argument("--no-memory", action="store_true", help="do not judge memory (sanitizers keep what was freed)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    if args.model == MODEL and not MODEL.is_file():
        print("skipped: tercet pull smollm2-135m, and set TERCET_MODELS to its folder")
        return 77
    print(f"seed {args.seed}", flush=True)
    with Server(args.tercet, *FLAGS, model=args.model) as server:
        run(server, args)
        status = server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with {status}: {server.log[-3000:]}")
    return 0


def run(server, args):
    expected = []
    for path, fields in GOOD + [SLOW]:
        with socket.create_connection(("127.0.0.1", server.port), DEADLINE) as connection:
            connection.sendall(closing(path, fields))
            expected.append(shown(path, read_all(connection)))
    counts, lock = collections.Counter(), threading.Lock()
    names, weights = zip(*KINDS)

    def attack(number):
        rng = random.Random(args.seed * 1_000_003 + number)
        name = rng.choices(names, weights)[0]
        getattr(Attack(server, expected, rng), name)()
        with lock:
            counts[name] += 1

    def round_of(numbers):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for number, done in [(n, pool.submit(attack, n)) for n in numbers]:
                try:
                    done.result()
                except Exception as error:
                    raise AssertionError(f"request {number} of seed {args.seed}: {error!r}; {server.log[-2000:]}") from error
        if not server.idle() or not eventually(lambda: server.metric("tercet:http_connections") <= 1):
            raise AssertionError("the server has not come to rest")
        if server.metric("vllm:kv_cache_usage_perc") != 0:
            raise AssertionError("KV blocks are held by nobody")
        return server.memory(), server.descriptors()

    memory, descriptors = round_of(range(args.settled))
    print(f"after {args.settled}: {memory / 1e6:.1f} MB, {descriptors} descriptors", flush=True)
    last_memory, last_descriptors = memory, descriptors
    for first in range(args.settled, args.requests, 1000):
        last = min(first + 1000, args.requests)
        last_memory, last_descriptors = round_of(range(first, last))
        print(f"after {last}: {last_memory / 1e6:.1f} MB, {last_descriptors} descriptors", flush=True)
    if last_descriptors > descriptors + 1:  # the one that asks may still be there
        raise AssertionError("descriptors were lost")
    if last_memory - memory > MAX_GROWTH and not args.no_memory:
        raise AssertionError("memory grew")
    print(f"{sum(counts.values())} requests: {dict(counts)}; preemptions {server.metric('vllm:num_preemptions_total'):.0f}")


if __name__ == "__main__":
    sys.exit(main())
