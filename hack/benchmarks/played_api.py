"""As much of an API server as an extender needs: lists and watches of nodes and pods, in a thread.

A real one would do as well; this one starts at once, and costs the machine next to nothing while
the extender beside it is measured.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]


class PlayedApi:
    """Serves nodes and pods on a port of its own; a context manager.

    Attributes:
        port: where.
    """

    def __init__(self, nodes: Sequence[Object]) -> None:
        self._lists: dict[str, list[Object]] = {"nodes": list(nodes), "pods": []}
        self._watches: dict[str, list[queue.SimpleQueue[bytes | None]]] = {"nodes": [], "pods": []}
        self._version = 1000
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def __enter__(self) -> PlayedApi:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.put(None)
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, directory: Path) -> Path:
        """A file that leads here."""
        path = directory / "kubeconfig"
        server = {"server": f"http://127.0.0.1:{self.port}"}
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": server}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        }  # fmt: skip
        path.write_text(json.dumps(document))
        return path

    def send(self, resource: str, kind: str, obj: Object) -> None:
        """Let the watches know of a change."""
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        line = json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"
        for watch in self._watches[resource]:
            watch.put(line)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                resource = url.path.rpartition("/")[2]
                query = parse_qs(url.query)
                if "watch" in query:
                    self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._watch(resource)
                else:
                    self._list(resource, query)

            def do_POST(self) -> None:  # events
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self._answer({})

            def _list(self, resource: str, query: dict[str, list[str]]) -> None:
                items = api._lists.get(resource, [])
                begin, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
                end = begin + limit
                more = {"continue": str(end)} if end < len(items) else {}
                metadata = {"resourceVersion": str(api._version), **more}
                self._answer({"metadata": metadata, "items": items[begin:end]})

            def _answer(self, document: Object) -> None:
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _watch(self, resource: str) -> None:
                lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
                api._watches.setdefault(resource, []).append(lines)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while (line := lines.get()) is not None:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler
