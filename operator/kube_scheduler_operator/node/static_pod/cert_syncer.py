"""The certificate syncer: copies renewed certificates to its node, independent of the operator.

It reads the original Secrets instead of the operator's copies, so a certificate arrives while no
operator runs and no scheduler could start one. It authenticates with its pod's service account
token and stores no credentials of its own on disk.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...base.files import Disk, UnsafeNameError
from .api_server import ApiServer, ApiServerError, in_cluster
from .certificates import Certificates, PairError

log = logging.getLogger(__name__)

INTERVAL: Final = 30.0
"""Seconds between synchronizations. Certificates are renewed days before they expire."""


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
