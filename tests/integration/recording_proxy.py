"""A proxy between a kube-scheduler and a real API server that records what they say.

Writes go through one at a time, with the state of their object before and after, so that each can
be repeated elsewhere alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from .conftest import TEST_SECONDS, ApiServer

Object = dict[str, Any]

END_OF_LIST: Final = "k8s.io/initial-events-end"
_READS: Final = ("GET", "HEAD")


@dataclass
class Exchange:
    """A request and its answer."""

    method: str
    path: str  # with the query
    content_type: str = ""
    body: Object = field(default_factory=dict)
    status: int = 0
    answer: Object = field(default_factory=dict)
    # of a watch: its events up to the bookmark that ends the list
    events: list[Object] = field(default_factory=list)
    before: Object | None = None  # the object that is written, before; None: there was none
    after: Object | None = None

    @property
    def parts(self) -> list[str]:
        return urlsplit(self.path).path.strip("/").split("/")

    @property
    def watches(self) -> bool:
        return "watch" in parse_qs(urlsplit(self.path).query)


class RecordingProxy:
    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.exchanges: list[Exchange] = []
        self._api = api
        self.writing = threading.Lock()  # held by who writes
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.handle(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        self.kubeconfig = folder / "proxy.kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else {}
        content_type = (handler.headers.get("Content-Type") or "").partition(";")[0]
        exchange = Exchange(handler.command, handler.path, content_type, body)
        if exchange.watches:
            self._watch(handler, exchange)
            return
        self.send(exchange)
        content = json.dumps(exchange.answer).encode()
        handler.send_response(exchange.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def send(self, exchange: Exchange) -> Exchange:
        """Send a request to the API server and record the answer."""
        if exchange.method in _READS:
            self._ask(exchange)
            self.exchanges.append(exchange)
            return exchange
        with self.writing:
            exchange.before = self._object(exchange)
            self._ask(exchange)
            exchange.after = self._object(exchange)
            self.exchanges.append(exchange)
        return exchange

    def _object(self, exchange: Exchange) -> Object | None:
        """The object that a write is about; None: it does not exist, or has no name yet."""
        parts = exchange.parts
        if "events" in parts:
            return None
        at = (
            parts.index("namespaces") + 2 if "namespaces" in parts[:-2] else 2 + (parts[0] != "api")
        )
        if len(parts) <= at + 1:
            return None
        asked = Exchange("GET", "/" + "/".join(parts[: at + 2]))
        self._ask(asked)
        return asked.answer if asked.status == 200 else None

    def _ask(self, exchange: Exchange) -> None:
        connection, response = self._request(exchange)
        exchange.status, exchange.answer = response.status, json.loads(response.read() or b"{}")
        connection.close()

    def _request(self, exchange: Exchange) -> tuple[HTTPConnection, HTTPResponse]:
        host = urlsplit(self._api.url).netloc
        connection = HTTPSConnection(host, timeout=TEST_SECONDS * 10, context=self._api.tls)
        content = json.dumps(exchange.body) if exchange.body else None
        headers = {"Content-Type": exchange.content_type or "application/json"}
        connection.request(exchange.method, exchange.path, content, headers)
        return connection, connection.getresponse()

    def _watch(self, handler: BaseHTTPRequestHandler, exchange: Exchange) -> None:
        connection, response = self._request(exchange)
        exchange.status = response.status
        self.exchanges.append(exchange)
        handler.send_response(response.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        is_list = True
        try:
            while line := response.readline():
                if is_list:
                    event = json.loads(line)
                    exchange.events.append(event)
                    is_list = not _ends_list(event)
                handler.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            handler.wfile.write(b"0\r\n\r\n")
        except (OSError, ValueError):
            pass  # one side has ended
        finally:
            connection.close()


def _ends_list(event: Mapping[str, Any]) -> bool:
    annotations = event["object"].get("metadata", {}).get("annotations") or {}
    return event["type"] == "BOOKMARK" and annotations.get(END_OF_LIST) == "true"
