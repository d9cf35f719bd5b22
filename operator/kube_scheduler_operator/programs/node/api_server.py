"""The two requests that the certificate syncer makes, with nothing but the standard library.

The operator's client costs 30 MiB more, on every control-plane node, for ever.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IDENTITY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts the token of a pod, and renews it, and the CA of the API server."""

_TIMEOUT: Final = 10.0


class ApiServerError(Exception):
    """No API server answered, or it refused; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API server at one of several addresses; the first one that answers counts.

    Attributes:
        servers: URLs, the nearest first.
        identity: directory with `token` and `ca.crt`.
    """

    servers: tuple[str, ...]
    identity: Path = IDENTITY

    def secret(self, namespace: str, name: str) -> dict[str, bytes] | None:
        """The data of a Secret; None if there is none.

        Raises:
            ApiServerError: nobody answered, or the answer is no Secret.
        """
        path = f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}"
        code, answer = self._ask("GET", path)
        if code == http.HTTPStatus.NOT_FOUND:
            return None
        if code != http.HTTPStatus.OK:
            raise ApiServerError(str(answer.get("message") or f"HTTP {code}"))
        try:
            return {
                key: base64.b64decode(value, validate=True)
                for key, value in (answer["data"] or {}).items()
            }
        except (KeyError, AttributeError, ValueError) as error:
            raise ApiServerError(f"the answer is no Secret: {error}") from error

    def event(self, namespace: str, pod: str, reason: str, message: str, *, bad: bool) -> None:
        """Record an event about a pod; one about a node could only be in namespace `default`.

        Raises:
            ApiServerError: it was not taken.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        code, answer = self._ask(
            "POST",
            f"/api/v1/namespaces/{quote(namespace)}/events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": "cert-syncer-", "namespace": namespace},
                "involvedObject": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": namespace,
                    "name": pod,
                },
                "reason": reason,
                "message": message,
                "type": "Warning" if bad else "Normal",
                "source": {"component": "cert-syncer"},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            },
        )
        if code != http.HTTPStatus.CREATED:
            raise ApiServerError(str(answer.get("message") or f"HTTP {code}"))

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        failures = []
        for server in self.servers:
            try:
                return self._ask_one(server, method, path, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                failures.append(f"{server}: {error}")
        raise ApiServerError("; ".join(failures) or "no API server is configured")

    def _ask_one(
        self, server: str, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, dict[str, Any]]:
        url = urlsplit(server)
        # Read each time: the kubelet renews the token, and a new CA may come.
        context = ssl.create_default_context(cafile=str(self.identity / "ca.crt"))
        token = (self.identity / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPSConnection(
            url.hostname or "", url.port or 443, timeout=_TIMEOUT, context=context
        )
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        return response.status, answer if isinstance(answer, dict) else {}


def in_cluster(first: Sequence[str]) -> ApiServer:
    """The API server of the cluster that this pod runs in; `first` are tried before it."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return ApiServer(tuple(first))
    return ApiServer(
        (*first, f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    )
