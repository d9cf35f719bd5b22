"""The API client of the certificate syncer, with the standard library only.

The operator's client would need 30 MiB more on every control-plane node.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ...base.json_text import parse_json
from ...base.limits import DOCUMENT
from ...base.times import rfc3339

IDENTITY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Directory in which the kubelet renews a pod's token and mounts the API server's CA."""

_TIMEOUT: Final = 10.0


class ApiServerError(Exception):
    """No API server answered, or the request was rejected; the message has the reason."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API server at the first of several addresses that answers."""

    servers: tuple[str, ...]  # URLs, the nearest first
    identity: Path = IDENTITY  # directory with `token` and `ca.crt`

    def secret(self, namespace: str, name: str) -> dict[str, bytes] | None:
        """Return the data of a Secret; None if it does not exist.

        Raises:
            ApiServerError: no API server answered, or the response is not a Secret.
        """
        path = f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}"
        code, answer = self._request("GET", path)
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
            raise ApiServerError(f"the response is not a Secret: {error}") from error

    def event(self, namespace: str, pod: str, reason: str, message: str, *, bad: bool) -> None:
        """Create an Event for a pod; an Event for a node would have to be in namespace `default`.

        Raises:
            ApiServerError: the Event was not created.
        """
        now = rfc3339(datetime.now(UTC))
        code, answer = self._request(
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

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        failures = []
        for server in self.servers:
            try:
                return self._request_at(server, method, path, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                failures.append(f"{server}: {error}")
        raise ApiServerError("; ".join(failures) or "no API server is configured")

    def _request_at(
        self, server: str, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, dict[str, Any]]:
        url = urlsplit(server)
        # Read for each request: the kubelet renews the token, and the CA may be rotated.
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
            text = response.read(DOCUMENT.bytes + 1)
        finally:
            connection.close()
        try:
            answer = parse_json(text)
        except ValueError:
            answer = {}
        return response.status, answer if isinstance(answer, dict) else {}


def in_cluster(first: Sequence[str]) -> ApiServer:
    """Return this pod's API server; the URLs `first` are tried before its Service."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return ApiServer(tuple(first))
    return ApiServer(
        (*first, f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    )
