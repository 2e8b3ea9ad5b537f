"""Starts `tercet serve` for tests, on a free port of 127.0.0.1, and talks to it without any client library."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

MODEL = pathlib.Path(os.environ.get("TERCET_MODELS", "/nonexistent")) / "smollm2-135m.gguf"
DEADLINE = 300  # seconds until something that hangs has failed


def eventually(condition):
    """Whether it comes true while a test may wait."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def post(body, path="/v1/completions"):
    """The bytes of a request."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def self_signed(folder):
    """Paths of a certificate for 127.0.0.1 and of its key, made in `folder`."""
    cert, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key], check=True, capture_output=True)
    return cert, key


class Server:
    """The running server; `log` is what it wrote so far."""

    def __init__(self, tercet, *arguments, model=MODEL, **environment):
        self.process = subprocess.Popen([tercet, "serve", str(model), "--port", "0", *arguments], text=True,
                                        stderr=subprocess.PIPE, env={**os.environ, **environment})
        self.log = ""
        ready = threading.Event()

        def read():
            for line in self.process.stderr:
                self.log += line
                found = re.search(r"on (https?)://\S+:(\d+)", line)
                if found:
                    self.scheme, self.port = found[1], int(found[2])
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read)
        self.reader.start()
        if not ready.wait(DEADLINE) or not hasattr(self, "port"):
            self.stop()
            raise RuntimeError("no server: " + self.log)
        self.url = f"{self.scheme}://127.0.0.1:{self.port}/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM):
        """Ends the server; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        return status

    def ask(self, path, body=None, method=None, headers=None):
        """(status, headers, parsed body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method or ("GET" if body is None else "POST"), path, data, headers or {})
            response = connection.getresponse()
            text = response.read()
            is_json = "json" in (response.getheader("Content-Type") or "")
            return response.status, response.headers, json.loads(text) if is_json else text.decode()
        finally:
            connection.close()

    def complete(self, **fields):
        """The first choice and the usage of a completion."""
        status, _, body = self.ask("/v1/completions", fields)
        if status != 200:
            raise RuntimeError(f"{status}: {body}")
        return body["choices"][0], body["usage"]

    def stream(self, path="/v1/completions", **fields):
        """The chunks of a stream, which must end as it should."""
        status, _, text = self.ask(path, {**fields, "stream": True})
        *events, done, rest = text.split("\n\n")
        if (status, done, rest) != (200, "data: [DONE]", ""):
            raise RuntimeError(f"{status}: {text[-400:]}")
        return [json.loads(event.removeprefix("data: ")) for event in events]

    def leave_early(self, request):
        """Sends a streaming request, reads a little of the answer, and closes."""
        body = json.dumps(request).encode()
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE) as connection:
            connection.sendall(post(body))
            connection.recv(400)

    def idle(self):
        """Whether nothing runs or waits any more, while a test may wait for it."""
        return eventually(lambda: self.metric("vllm:num_requests_running") == 0
                          and self.metric("vllm:num_requests_waiting") == 0)

    def metric(self, name):
        """The sum over all series of this name."""
        _, _, text = self.ask("/metrics")
        values = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.M)
        return sum(map(float, values))

    def memory(self):
        """Resident memory in bytes, without mapped files."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"RssAnon:\s+(\d+) kB", status)[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@unittest.skipUnless(MODEL.is_file(), "tercet pull smollm2-135m, and set TERCET_MODELS to its folder")
class ServerTest(unittest.TestCase):
    """Tests of one running server. A test class says which program it is and with which flags it starts."""

    tercet = None
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.tercet, *cls.flags)

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise RuntimeError("the server failed: " + cls.server.log)
