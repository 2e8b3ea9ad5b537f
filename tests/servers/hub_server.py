#!/usr/bin/env python3
"""A model hub in miniature, on 127.0.0.1, for tests: lists repositories and serves their files, with the faults that a
repository's name asks for. Prints its port and serves until its standard input ends.

  /api/models/o/REPO            the files of the repository
  /o/REPO/resolve/main/FILE     302 to /blob/..., with X-Linked-ETag
  /blob/REPO/FILE               the contents: body(FILE); ranges as RFC 9110 has them
  /log                          the requests so far: method, path, range, authorization; one a line

REPO: plain; dropping (every answer ends after 40,000 bytes); rangeless (ignores ranges); flaky (503 twice, then well);
wrong (another hash); unhashed (no entity tags); private (401 without the token "secret"); many (several GGUF files);
stubborn (drops every answer before its first byte); split; empty; hostile (names that leave the folder); down (503).
"""

import collections
import hashlib
import http.server
import json
import re
import sys
import threading

FILES = {
    "many": ["m-Q8_0.gguf", "m-Q4_K_M.gguf", "mmproj-m.gguf", "README.md"],
    "split": ["m-00002-of-00002.gguf", "m-00001-of-00002.gguf"],
    "empty": ["README.md"],
    "hostile": ["../../../outside.gguf", "/etc/outside.gguf", ".hidden.gguf"],
}
REPOS = {"plain", "dropping", "rangeless", "flaky", "wrong", "unhashed", "private", "stubborn", "down", *FILES}


def body(file):
    return b"".join(hashlib.sha256(f"{file}{i}".encode()).digest() for i in range(5000))  # 160,000 bytes


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log = []
    flaky = collections.Counter()

    def log_message(self, *_):
        pass

    def answer(self, status, content=b"", sent=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:sent])
        if sent is not None and sent < len(content):
            self.close_connection = True

    def do_GET(self):
        if self.path == "/log":
            return self.answer(200, "\n".join(self.log).encode())
        self.log.append(" ".join([self.path, self.headers.get("Range", "-"), self.headers.get("Authorization", "-")]))
        path = self.path.partition("?")[0]
        if match := re.fullmatch(r"/api/models/o/(\w+)", path):
            return self.listing(match[1])
        if match := re.fullmatch(r"/o/(\w+)/resolve/main/(.+)", path):
            return self.resolve(*match.groups())
        if match := re.fullmatch(r"/blob/(\w+)/(.+)", path):
            return self.blob(*match.groups())
        return self.answer(404, b"Not found")

    def listing(self, repo):
        if repo == "garbage":
            return self.answer(200, b"<html>hello</html>")
        if repo == "private" and self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, b"Unauthorized")
        if repo == "down":
            return self.answer(503, b"Service unavailable")
        if repo not in REPOS:
            return self.answer(404, b"Repository not found")
        names = FILES.get(repo, ["m.gguf", "README.md"])
        return self.answer(200, json.dumps({"siblings": [{"rfilename": name} for name in names]}).encode())

    def resolve(self, repo, file):
        digest = hashlib.sha256(b"other" if repo == "wrong" else body(file)).hexdigest()
        tag = {} if repo == "unhashed" else {"X_Linked_ETag": f'"{digest}"'}
        # localhost is another host than 127.0.0.1 to a client, as a hub's storage is.
        self.answer(302, Location=f"http://localhost:{self.server.server_port}/blob/{repo}/{file}", **tag)

    def blob(self, repo, file):
        content = body(file)
        if repo == "stubborn":
            self.close_connection = True
            return None
        self.flaky[repo] += 1
        if repo == "flaky" and self.flaky[repo] <= 2:
            return self.answer(503, b"busy")
        sent = 40000 if repo in ("dropping", "rangeless") and self.flaky[repo] <= 3 else None
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not match or repo == "rangeless":
            return self.answer(200, content, sent)
        first = int(match[1])
        if first >= len(content):
            return self.answer(416, Content_Range=f"bytes */{len(content)}")
        return self.answer(206, content[first:], sent, Content_Range=f"bytes {first}-{len(content) - 1}/{len(content)}")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
