"""A door in front of a server that lets everything through and keeps what came in."""

import http.client
import http.server
import json
import threading

# What clients add that says nothing of the request.
SKIPPED_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "user-agent", "date",
                   "traceparent"}


class Recorder:
    """Listens on a free port of 127.0.0.1 and passes requests on to `server`. `requests` is what came: dicts of method,
    path, headers (in lower case) and body (text)."""

    def __init__(self, server):
        self.requests = []
        recorder = self

        class Door(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.read_body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                recorder.requests.append({
                    "method": self.command, "path": self.path,
                    "headers": {name: value for name, value in headers.items() if name not in SKIPPED_HEADERS},
                    "body": body.decode()})
                inner = http.client.HTTPConnection("127.0.0.1", server.port)
                headers.pop("connection", None)
                headers.pop("transfer-encoding", None)
                headers["content-length"] = str(len(body))
                inner.request(self.command, self.path, body, headers)
                answer = inner.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection", "date"):
                        self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while data := answer.read1(1 << 16):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
                inner.close()

            def read_body(self):
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            do_GET = do_POST = do_HEAD = pass_on

            def log_message(self, *_):
                pass

        self.door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self.door.handle_error = lambda *_: None  # clients close connections when they like
        self.door.daemon_threads = True
        self.port = self.door.server_port
        self.thread = threading.Thread(target=self.door.serve_forever)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.door.shutdown()
        self.thread.join()
        self.door.server_close()

    def distinct(self, most):
        """At most so many of the requests: first one of each path and set of fields, then others."""
        def kind(request):
            body = json.loads(request["body"] or "{}")
            fields = tuple(sorted((name, type(value).__name__) for name, value in body.items()))
            return request["method"], request["path"], fields, body.get("stream")

        kinds, rest = {}, []
        for request in self.requests:
            if kinds.setdefault(kind(request), request) is not request and request["path"].startswith("/v1/"):
                rest.append(request)
        return (list(kinds.values()) + rest)[:most]
