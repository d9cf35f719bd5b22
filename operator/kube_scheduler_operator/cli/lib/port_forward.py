"""HTTP(S) to a port of a pod through the API server: what `kubectl port-forward` does, in process.

The streaming is the kubernetes client's (`kubernetes.stream`), which speaks the WebSocket protocol
that the kubelet offers; only the HTTP request is ours.
"""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from .common import CommandError

if TYPE_CHECKING:
    from ...kube.credentials import Access

_WAIT = 30.0
"""Seconds that a request may take beyond the time that its profile takes."""


class Tunnel:
    """A connection to one port of one pod, for one request; blocking.

    Args:
        access: the user's own identity at the API server.
        namespace: of the pod.
        pod: its name.
        port: its port.
        tls: whether it speaks TLS.
    """

    def __init__(
        self, access: Access, namespace: str, pod: str, port: int, *, tls: bool = True
    ) -> None:
        self._where = (access, namespace, pod, port)
        self._stream: socket.socket | None = None
        self._port = port
        self._tls = tls

    def close(self) -> None:
        """End it, also in the middle of a request that another thread does."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.shutdown(socket.SHUT_RDWR)

    def fetch(self, path: str, token: str, seconds: float, target: IO[bytes]) -> int:
        """GET `path` into `target`; the HTTP status.

        Args:
            path: with its query.
            token: for the pod's own server, as a bearer; empty: it wants none.
            seconds: how long the server will work before it answers.
            target: gets the body of an answer with status 200, and only that.

        Raises:
            CommandError: there is no connection, or it broke.
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
            told = forward.error(self._port) or error or type(error).__name__
            raise CommandError(
                f"the connection to port {self._port} of the pod broke: {told}"
            ) from error
        else:
            return answer.status
        finally:
            connection.close()
            forward.close()


def _wrapped(stream: socket.socket) -> socket.socket:
    # The certificate is one that the scheduler made for itself at its start, so there is
    # nothing to check it against. It need not be: the other end of this stream is the loopback
    # of the node, reached through the API server and the kubelet, both of which were verified.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(stream)


def _open(access: Access, namespace: str, pod: str, port: int) -> Any:
    # Half a second and 60 MiB: nobody else shall pay for it.
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
    core: Any = client.CoreV1Api
    api = core(client.ApiClient(configuration))
    forward: Any = stream.portforward
    try:
        return forward(api.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(port))
    except ApiException as error:
        text = " ".join(str(error.reason).split())
        if "403" in text:
            raise CommandError(
                f"you may not reach pod {pod}; somebody who may must give you a Role in namespace "
                f'{namespace}: apiGroups: [""], resources: ["pods/portforward"], '
                'verbs: ["get", "create"]'
            ) from error
        raise CommandError(f"no connection to pod {pod} in {namespace}: {text[:300]}") from error
