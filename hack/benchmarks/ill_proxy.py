"""What stands between a kube-scheduler and its extender to be ill in ways that ours is not."""

from __future__ import annotations

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SLOW_SECONDS = 0.1
PASS, SLOW, RUBBISH = "pass", "slow", "rubbish"
_RUBBISH = (
    (200, b"<html>It works!</html>"),
    (200, b'{"NodeNames": ["no-such-node"]}'),
    (200, b'[{"Host": 5, "Score": "high"}]'),
    (200, b'{"NodeNames": ["hollow-000'),
    (500, b"Traceback (most recent call last):"),
    (200, b""),
)


class Proxy:
    """Passes calls on to an extender, or plays one that is ill.

    Attributes:
        mode: PASS, SLOW or RUBBISH; to be set at any time.
        port: of 127.0.0.1.
    """

    def __init__(self, extender: int) -> None:
        self.mode = PASS
        self._count = 0
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1  # an answer in one piece

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = proxy._answer(extender, self.path, content)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """The client may hang up, which this proxy provokes."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _answer(self, extender: int, path: str, content: bytes) -> tuple[int, bytes]:
        if self.mode == RUBBISH:
            self._count += 1
            return _RUBBISH[self._count % len(_RUBBISH)]
        if self.mode == SLOW:
            time.sleep(SLOW_SECONDS)
        connection = http.client.HTTPConnection("127.0.0.1", extender, timeout=10)
        try:
            connection.request("POST", path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
