"""HTTP(S) requests to a port of a pod through the API server, like `kubectl port-forward`.

The kubernetes client (`kubernetes.stream`) implements the WebSocket protocol of the kubelet; this
module adds the HTTP request.
"""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from ...base.limits import ANSWER, REFUSAL
from ..console.errors import CommandError

if TYPE_CHECKING:
    from ...kube.credentials import Access

_WAIT = 30.0
"""Seconds that a request may take in addition to the recording of a profile."""


_CHUNK: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ResponseLimit:
    """The limits of a response from a program that is not trusted."""

    size: int  # bytes of its body
    seconds: float  # the time from the connection to its end


class Tunnel:
    """A connection to one port of one pod; blocking."""

    def __init__(
        self, access: Access, namespace: str, pod: str, port: int, *, tls: bool = True
    ) -> None:
        self._where = (access, namespace, pod, port)
        self._stream: socket.socket | None = None
        self._port = port
        self._tls = tls
        self._forward: Any = None
        self._connection: http.client.HTTPConnection | None = None
        self._closed = False

    def close(self) -> None:
        """Close it, even during a request in another thread."""
        self._closed = True
        if self._stream is not None:
            with suppress(OSError):
                self._stream.shutdown(socket.SHUT_RDWR)
        if self._connection is not None:
            self._connection.close()
            self._forward.close()

    def post(self, path: str, token: str, body: bytes, seconds: float) -> tuple[int, bytes]:
        """POST `body`; returns the HTTP status and the response. The connection stays open.

        `seconds` is the longest time without a byte of the response.

        Raises:
            CommandError: the connection cannot be established, or failed, or the response is too
                large.
        """
        if self._connection is None:
            self._forward = _open(*self._where)
            self._stream = self._forward.socket(self._port)
            self._connection = http.client.HTTPConnection("localhost", self._port)
            self._connection.sock = self._stream
        self._stream.settimeout(seconds)  # type: ignore[union-attr]  # it is open
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/gzip"}
            self._connection.request("POST", path, body, headers)
            answer = self._connection.getresponse()
            return answer.status, _limited(answer, ANSWER.bytes)
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(self._forward, error) from error

    def fetch(self, path: str, token: str, seconds: float, target: IO[bytes]) -> int:
        """GET `path`, with its query, into `target` if the status is 200; returns the HTTP status.

        `token` authenticates to the pod's server; `seconds` is the expected time until the
        response.

        Raises:
            CommandError: the connection cannot be established, or failed.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with self._response(path, headers, seconds + _WAIT) as answer:
            if answer.status == 200:
                shutil.copyfileobj(answer, target)
            else:
                _limited(answer, REFUSAL.bytes)
            return answer.status

    def read(self, path: str, limit: ResponseLimit) -> tuple[int, bytes]:
        """GET `path`, with its query; the HTTP status and, if it is 200, the body.

        Raises:
            CommandError: the connection cannot be established, failed, or exceeded a limit.
        """
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._closed = True
            if self._forward is not None:
                _cut(self._forward)

        timer = threading.Timer(limit.seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            with self._response(path, {}, limit.seconds) as answer:
                content = _limited(answer, limit.size) if answer.status == 200 else b""
                if expired.is_set():  # the end of the stream looks like that of the body
                    raise TimeoutError("it was closed")
                return answer.status, content
        except CommandError:
            if expired.is_set():
                raise CommandError(
                    f"there was no complete response within {limit.seconds:g} s"
                ) from None
            raise
        finally:
            timer.cancel()

    @contextmanager
    def _response(
        self, path: str, headers: dict[str, str], silence: float
    ) -> Iterator[http.client.HTTPResponse]:
        """GET a path; `silence` is the longest time without a byte of the response.

        Raises:
            CommandError: the connection cannot be established, or failed, also while it is read.
        """
        forward = self._forward = _open(*self._where)
        stream = forward.socket(self._port)
        stream.settimeout(silence)
        connection = http.client.HTTPConnection("localhost", self._port)
        try:
            self._stream = _wrapped(stream) if self._tls else stream
            connection.sock = self._stream
            if self._closed:  # before there was a stream to close
                raise TimeoutError("it was closed")
            connection.request("GET", path, headers=headers)
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(forward, error) from error
        finally:
            _cut(forward)
            _drain(stream)
            connection.close()
            forward.close()

    def _failed(self, forward: Any, error: Exception) -> CommandError:
        reason = forward.error(self._port) or error or type(error).__name__
        return CommandError(f"the connection to port {self._port} of the pod failed: {reason}")


def _limited(answer: IO[bytes], size: int) -> bytes:
    """Read the body."""
    content = bytearray()
    while chunk := answer.read(_CHUNK):
        content += chunk
        if len(content) > size:
            raise CommandError(f"its response has more than {size} bytes")
    return bytes(content)


def _cut(forward: Any) -> None:
    """End the connection to the API server; what has arrived can still be read."""
    with suppress(OSError, AttributeError, TypeError):  # it may be closed already
        # SSLSocket.shutdown would continue without TLS.
        socket.socket.shutdown(forward.websocket.sock, socket.SHUT_RDWR)


def _drain(stream: socket.socket) -> None:
    """Read the rest: the client's thread fails, with a traceback, if it cannot deliver it."""
    with suppress(OSError):
        while stream.recv(_CHUNK):
            pass


def _wrapped(stream: socket.socket) -> socket.socket:
    # The scheduler's certificate is self-signed and cannot be verified. This is safe: the stream
    # ends at the loopback of the node and passes only the API server and the kubelet, whose
    # certificates are verified.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(stream)


def load_client() -> None:
    """Import what `Tunnel` needs, which takes a second and 60 MiB."""
    from kubernetes import client, stream  # noqa: F401

    # The package loads a module when one of its names is used first.
    _ = client.ApiClient, client.Configuration, client.CoreV1Api


def _open(access: Access, namespace: str, pod: str, port: int) -> Any:
    import kubernetes
    from kubernetes.client.exceptions import ApiException

    client: Any = kubernetes.client
    portforward: Any = kubernetes.stream.portforward
    configuration = client.Configuration()
    configuration.host = access.server
    configuration.ssl_ca_cert = access.ca_file
    configuration.cert_file = access.cert_file
    configuration.key_file = access.key_file
    configuration.verify_ssl = access.verify
    configuration.tls_server_name = access.tls_server_name
    configuration.proxy = access.proxy
    if access.authorization:
        configuration.api_key = {"authorization": access.authorization}
    headers = dict(access.impersonation)
    if len(headers) < len(access.impersonation):  # the client keeps one value of each header
        raise CommandError(f"connecting to pod {pod} supports --as-group once; use it once")
    connected = client.ApiClient(configuration)
    for header, value in headers.items():
        connected.set_default_header(header, value)
    api = client.CoreV1Api(connected)
    try:
        opened = portforward(
            api.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(port)
        )
    except ApiException as error:
        text = " ".join(str(error.reason).split())
        if "403" in text:
            raise CommandError(
                f"no permission to connect to pod {pod}; ask a cluster administrator for a Role in "
                f'namespace {namespace}: apiGroups: [""], resources: ["pods/portforward"], '
                'verbs: ["get", "create"]'
            ) from error
        raise CommandError(f"cannot connect to pod {pod} in {namespace}: {text[:300]}") from error
    end_quietly(opened.websocket)
    return opened


def end_quietly(websocket: Any) -> None:
    """Free the socket also if the other end closes the WebSocket first, or resets its connection.

    The client's thread prints the traceback of any other error than the end of the WebSocket.
    """
    from websocket import WebSocketConnectionClosedException

    close, receive = websocket.close, websocket.recv_data_frame

    def close_both(*arguments: Any, **options: Any) -> None:
        close(*arguments, **options)
        websocket.shutdown()

    def receive_or_end(*arguments: Any, **options: Any) -> Any:
        try:
            return receive(*arguments, **options)
        except (OSError, WebSocketConnectionClosedException) as error:
            websocket.shutdown()
            raise WebSocketConnectionClosedException(str(error)) from error

    websocket.close, websocket.recv_data_frame = close_both, receive_or_end
