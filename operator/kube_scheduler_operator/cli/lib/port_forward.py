"""HTTP(S) requests to a port of a pod through the API server, like `kubectl port-forward`.

The kubernetes client (`kubernetes.stream`) implements the WebSocket protocol of the kubelet; this
module adds the HTTP request.
"""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from .errors import CommandError

if TYPE_CHECKING:
    from ...kube.credentials import Access

_WAIT = 30.0
"""Seconds that a request may take in addition to the recording of a profile."""


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

    def close(self) -> None:
        """Close it, even during a request in another thread."""
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
            CommandError: the connection cannot be established, or failed.
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
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(self._forward, error) from error

    def fetch(self, path: str, token: str, seconds: float, target: IO[bytes]) -> int:
        """GET `path`, with its query, into `target` if the status is 200; returns the HTTP status.

        `token` authenticates to the pod's server; `seconds` is the expected time until the
        response.

        Raises:
            CommandError: the connection cannot be established, or failed.
        """
        forward = _open(*self._where)
        stream = forward.socket(self._port)
        stream.settimeout(seconds + _WAIT)
        connection = http.client.HTTPConnection("localhost", self._port)
        try:
            self._stream = _wrapped(stream) if self._tls else stream
            connection.sock = self._stream
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            if answer.status == 200:
                shutil.copyfileobj(answer, target)
            else:
                answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(forward, error) from error
        else:
            return answer.status
        finally:
            connection.close()
            forward.close()

    def _failed(self, forward: Any, error: Exception) -> CommandError:
        reason = forward.error(self._port) or error or type(error).__name__
        return CommandError(f"the connection to port {self._port} of the pod failed: {reason}")


def _wrapped(stream: socket.socket) -> socket.socket:
    # The scheduler's certificate is self-signed and cannot be verified. This is safe: the stream
    # ends at the loopback of the node and passes only the API server and the kubelet, whose
    # certificates are verified.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(stream)


def load_client() -> None:
    """Import what `Tunnel` needs, which takes half a second and 60 MiB."""
    from kubernetes import client, stream  # noqa: F401


def _open(access: Access, namespace: str, pod: str, port: int) -> Any:
    from kubernetes import client, stream
    from kubernetes.client.exceptions import ApiException

    made: Any = client.Configuration
    configuration = made()
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
    core: Any = client.CoreV1Api
    connect: Any = client.ApiClient
    connected = connect(configuration)
    for header, value in headers.items():
        connected.set_default_header(header, value)
    api = core(connected)
    forward: Any = stream.portforward
    try:
        opened = forward(
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
    _close_completely(opened.websocket)
    return opened


def _close_completely(websocket: Any) -> None:
    """Make `close` free the socket also if the other end has closed the WebSocket first."""
    close = websocket.close

    def both(*arguments: Any, **options: Any) -> None:
        close(*arguments, **options)
        websocket.shutdown()

    websocket.close = both
