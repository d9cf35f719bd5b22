"""The certificate syncer: what the cluster renews gets to this node, whoever else is down.

It reads the Secrets where the cluster keeps them and not the operator's copies, so that a
certificate arrives while no operator runs, and because no scheduler may be able to start one. Its
own identity is the token that the kubelet gives its pod: nothing on the disk lets anybody in.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ...base.files import Disk, UnsafeNameError
from .api_server import ApiServer, ApiServerError, in_cluster
from .certificates import Certificates, PairError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

log = logging.getLogger(__name__)

INTERVAL: Final = 30.0
"""Seconds between looks. Certificates are renewed days before they expire."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A Secret that belongs on the node; without an optional one, nothing of it stays there."""

    namespace: str
    name: str
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """Read `NAMESPACE/NAME`, or `NAMESPACE/NAME?` for an optional one.

        Raises:
            ValueError: it is neither.
        """
        namespace, slash, name = text.removesuffix("?").partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f"{text!r} is not NAMESPACE/NAME or NAMESPACE/NAME?")
        return cls(namespace, name, text.endswith("?"))

    def __str__(self) -> str:
        return f"secret/{self.name} of {self.namespace}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that people should know; `bad` makes it a warning."""

    reason: str
    message: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `kube-scheduler-operator cert-syncer`, under their names."""

    certs_dir: Path
    secrets: tuple[Wanted, ...]
    servers: tuple[str, ...] = ()
    pod: str = ""
    namespace: str = ""
    interval: float = INTERVAL


class Source(Protocol):
    """Where Secrets are read and notes go to."""

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """The data of a Secret; None if there is none."""

    def tell(self, note: Note) -> None:
        """Let people know."""


class Syncer:
    """Keeps the certificates of one node as they are in the cluster."""

    def __init__(
        self, wanted: Sequence[Wanted], source: Source, certificates: Certificates
    ) -> None:
        self._wanted = wanted
        self._source = source
        self._certificates = certificates
        self._said: dict[Wanted, Note] = {}

    def sync(self) -> None:
        """Look once; says what it did, and what it cannot do once for each trouble."""
        for one in self._wanted:
            note = self._sync(one)
            if note is not None and note != self._said.get(one):
                (log.warning if note.bad else log.info)("%s: %s", note.reason, note.message)
                self._source.tell(note)
            if note is None or not note.bad:
                self._said.pop(one, None)
            else:
                self._said[one] = note

    def _sync(self, one: Wanted) -> Note | None:
        try:
            data = self._source.secret(one.namespace, one.name)
            if data is not None:
                changed = self._certificates.put(one.name, data)
                return Note("CertificateUpdated", f"wrote {one}") if changed else None
            if one.optional:
                removed = self._certificates.remove(one.name)
                return Note("CertificateRemoved", f"{one} is gone") if removed else None
            problem = "it does not exist; what is on the node stays"
        except (ApiServerError, PairError, UnsafeNameError, OSError) as error:
            problem = str(error)
        return Note("CertificateUpdateFailed", f"{one}: {problem}", bad=True)


@dataclass(slots=True)
class _Cluster:
    """The cluster as this pod sees it."""

    api: ApiServer
    pod: str
    namespace: str

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return self.api.secret(namespace, name)

    def tell(self, note: Note) -> None:
        try:
            self.api.event(self.namespace, self.pod, note.reason, note.message, bad=note.bad)
        except ApiServerError as error:
            log.info("The event was not taken: %s", error)


def main(options: Options) -> int:
    """Sync until SIGTERM; the exit code."""
    signal.signal(signal.SIGTERM, _end)
    source = _Cluster(in_cluster(options.servers), options.pod, options.namespace)
    syncer = Syncer(options.secrets, source, Certificates(options.certs_dir, Disk()))
    while True:
        syncer.sync()
        time.sleep(options.interval)


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)
