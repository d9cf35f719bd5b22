"""The certificate syncer: copies renewed certificates to its node, independent of the operator.

It reads the original Secrets instead of the operator's copies, so a certificate arrives while no
operator runs and no scheduler could start one. It authenticates with its pod's service account
token and stores no credentials of its own on disk. Its API client needs the standard library only:
the operator's would need 30 MiB more on every control-plane node.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import os
import signal
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ...base.files import Disk, UnsafeNameError
from ...base.json_text import parse_json
from ...base.limits import DOCUMENT
from ...base.times import rfc3339
from .certificates import Certificates, PairError

log = logging.getLogger(__name__)

INTERVAL: Final = 30.0
"""Seconds between synchronizations. Certificates are renewed days before they expire."""

IDENTITY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Directory in which the kubelet renews a pod's token and mounts the API server's CA."""

_TIMEOUT: Final = 10.0


class ApiServerError(Exception):
    """No API server answered, or the request was rejected; the message has the reason."""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A Secret to copy to the node; if an optional one is deleted, its files are removed."""

    namespace: str
    name: str
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> SecretRef:
        """Parse `NAMESPACE/NAME`, or `NAMESPACE/NAME?` for an optional one.

        Raises:
            ValueError: the text has neither form.
        """
        namespace, slash, name = text.removesuffix("?").partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f"{text!r} is not NAMESPACE/NAME or NAMESPACE/NAME?")
        return cls(namespace, name, text.endswith("?"))

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SyncEvent:
    """The content of a Kubernetes Event; `bad` makes it a Warning."""

    reason: str
    message: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class CertSyncerOptions:
    """The flags of `kube-scheduler-operator cert-syncer`, under their names."""

    certs_dir: Path
    secrets: tuple[SecretRef, ...]
    servers: tuple[str, ...] = ()
    pod: str = ""
    namespace: str = ""
    interval: float = INTERVAL


class Syncer:
    def __init__(self, options: CertSyncerOptions, api: ApiServer) -> None:
        self._options = options
        self._api = api
        self._certificates = Certificates(options.certs_dir, Disk())
        self._failures: dict[SecretRef, SyncEvent] = {}

    def sync(self) -> None:
        """Synchronize once; record every change, and every failure when it begins or changes."""
        for secret in self._options.secrets:
            event = self._sync(secret)
            if event is not None and event != self._failures.get(secret):
                (log.warning if event.bad else log.info)("%s: %s", event.reason, event.message)
                self._record(event)
            if event is None or not event.bad:
                self._failures.pop(secret, None)
            else:
                self._failures[secret] = event

    def _sync(self, secret: SecretRef) -> SyncEvent | None:
        try:
            data = self._api.secret(secret.namespace, secret.name)
            if data is not None:
                changed = self._certificates.put(secret.name, data)
                message = f"Updated the node's certificate from {secret}"
                return SyncEvent("CertificateUpdated", message) if changed else None
            if secret.optional:
                removed = self._certificates.remove(secret.name)
                message = f"Removed the node's certificate: {secret} was deleted"
                return SyncEvent("CertificateRemoved", message) if removed else None
            problem = "not found; the node keeps its current certificate"
        except (ApiServerError, PairError, UnsafeNameError, OSError) as error:
            problem = str(error)
        return SyncEvent("CertificateUpdateFailed", f"{secret}: {problem}", bad=True)

    def _record(self, event: SyncEvent) -> None:
        namespace, pod = self._options.namespace, self._options.pod
        try:
            self._api.event(namespace, pod, event.reason, event.message, bad=event.bad)
        except ApiServerError as error:
            log.info("Failed to record the event: %s", error)


def main(options: CertSyncerOptions) -> int:
    """Synchronize until SIGTERM; return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    syncer = Syncer(options, in_cluster(options.servers))
    while True:
        syncer.sync()
        time.sleep(options.interval)


# --- the API server, with the standard library ---------------------------------------------------


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
