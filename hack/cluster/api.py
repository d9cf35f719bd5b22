"""The few requests that the sandbox itself makes to its API server.

Not kubectl, because starting it takes longer than the request; and no client library, because
nothing is installed when the sandbox starts.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.model import Sandbox

Object = dict[str, Any]

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""What to accept for whom the names of objects are enough."""


class ApiError(SandboxError):
    """The API server answered with an error, or not at all (code 0)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Connection(http.client.HTTPSConnection):
    """Closes itself when the thread or the client that kept it is gone."""

    def __init__(self, port: int, context: ssl.SSLContext, seconds: float) -> None:
        super().__init__("127.0.0.1", port, timeout=seconds, context=context)
        self._tls = context

    def connect(self) -> None:
        """Connect a socket that has TLS already.

        Python's own order leaks a socket whose server resets it before the handshake begins.
        """
        secured = self._tls.wrap_socket(socket.socket(), server_hostname=self.host)
        try:
            secured.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            secured.settimeout(self.timeout)
            secured.connect((self.host, self.port))
        except BaseException:
            secured.close()
            raise
        self.sock = secured

    def __del__(self) -> None:
        self.close()


class Api:
    """The API server of a sandbox, as its administrator, or as `user` in `groups`."""

    def __init__(self, sandbox: Sandbox, user: str = "", groups: tuple[str, ...] = ()) -> None:
        self._identity = {"Impersonate-User": user} if user else {}
        self._groups = groups
        pki = sandbox.state / "pki"
        self._port = sandbox.api_port
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._kept = threading.local()

    def request(
        self,
        method: str,
        path: str,
        body: Object | str | None = None,
        *,
        content_type: str = "",
    ) -> Object:
        """Make one request and return the object of the response; see `text`."""
        return _object(self.text(method, path, body, content_type=content_type))

    def text(
        self,
        method: str,
        path: str,
        body: Object | str | None = None,
        *,
        content_type: str = "",
    ) -> str:
        """Make one request and return the text of the response.

        Args:
            method: of HTTP.
            path: with its query.
            body: an object, or JSON that Python has no value for.
            content_type: of the body; empty: JSON, in a PATCH a merge patch.

        Raises:
            ApiError: It was refused, or there was no answer.
        """
        usual = "application/merge-patch+json" if method == "PATCH" else "application/json"
        kind = content_type or usual
        content = json.dumps(body) if isinstance(body, dict) else body and body.encode()
        for fresh in (False, True):
            server = self._connection(fresh=fresh)
            reused = server.sock is not None
            try:
                self._send(server, method, path, content, kind)
                answer = server.getresponse()
                text = answer.read().decode(errors="replace")
                break
            except (OSError, http.client.HTTPException) as error:
                server.close()
                # A connection that was idle may have been closed at the other end meanwhile.
                if not reused or isinstance(error, TimeoutError):
                    raise ApiError(0, f"{method} {path}: {error}") from error
        if answer.status >= 300:
            message = _object(text).get("message", text[:500])
            raise ApiError(answer.status, f"{method} {path}: {answer.status} {message}")
        return text

    def _send(
        self, server: _Connection, method: str, path: str, content: str | bytes | None, kind: str
    ) -> None:
        body = content.encode() if isinstance(content, str) else content
        server.putrequest(method, path)
        headers = {"Content-Type": kind, **self._identity}
        if body is not None:
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            server.putheader(name, value)
        for group in self._groups:
            server.putheader("Impersonate-Group", group)
        server.endheaders(body)

    def watch(self, path: str, accept: str = "application/json") -> Iterator[Object]:
        """The events of one watch request, until the server ends it.

        Args:
            path: with its query.
            accept: the form of the objects; `METADATA` leaves out all else.

        Raises:
            ApiError: it was refused, or the connection broke.
        """
        server = _Connection(self._port, self._context, 60.0)
        try:
            server.request("GET", path, headers={"Accept": accept})
            answer = server.getresponse()
            if answer.status >= 300:
                raise ApiError(answer.status, f"GET {path}: {answer.status}")
            while line := answer.readline():
                yield _object(line.decode(errors="replace"))
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"GET {path}: {error}") from error
        finally:
            server.close()

    def _connection(self, *, fresh: bool) -> _Connection:
        """One per thread, kept open, so that polling does not load the machine with handshakes."""
        found: _Connection | None = getattr(self._kept, "connection", None)
        if found is None or fresh:
            found = _Connection(self._port, self._context, 30.0)
            self._kept.connection = found
        return found

    def create(self, path: str, body: Object) -> None:
        """Create an object unless one of its name exists."""
        try:
            self.request("POST", path, body)
        except ApiError as error:
            if error.code != 409:
                raise

    def ready(self) -> bool:
        """Whether the API server reports itself ready."""
        try:
            self.request("GET", "/readyz")
        except ApiError:
            return False
        return True

    def nodes(self) -> dict[str, Object]:
        """The Node objects by name."""
        items = self.request("GET", "/api/v1/nodes")["items"]
        return {one["metadata"]["name"]: one for one in items}


def _object(text: str) -> Object:
    found: Object = json.loads(text) if text.startswith("{") else {}
    return found


def condition(node_or_deployment: Object, kind: str) -> str:
    """The status of a condition: True, False or Unknown."""
    for one in node_or_deployment.get("status", {}).get("conditions", []):
        if one["type"] == kind:
            return str(one["status"])
    return "Unknown"


def wait(
    ready: Callable[[], bool], seconds: float, failed: Callable[[], str], *, every: float = 0.1
) -> None:
    """Wait until something is so.

    Raises:
        SandboxError: It is not so in time; with what ``failed`` knows about it.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise SandboxError(f"{failed()} (gave up after {seconds:.0f} s)")
        time.sleep(every)
