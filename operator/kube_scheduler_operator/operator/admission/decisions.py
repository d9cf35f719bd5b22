"""The answers of the webhook, based on the assignments that the operator reports to it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base import names
from ...base.bounded_cache import Recent
from ...base.defects import contained
from ...base.json_text import parse_json
from ...base.klog import kv
from ...base.objects import Object, mapping
from ...kube.client import ApiClient
from ...kube.errors import KubeError, NotFound
from ...kube.resource import NAMESPACES
from ...serving.http_types import HttpResponse
from ...serving.sharing import AddressRate
from ..secondary.admission_review import (
    NewPod,
    NotAReviewError,
    answer,
    needs_namespace,
    read_review,
    scheduler_for,
)

log = logging.getLogger(__name__)

NAMESPACE_SECONDS: Final = 2.0
"""How long the labels of a namespace are remembered."""

OUTDATED_SECONDS: Final = 300.0
"""How long they serve while the namespace cannot be read, as while another operator's rights apply
in an upgrade."""

REMEMBERED: Final = 1024
"""The number of namespaces whose labels are remembered."""

ANSWER_SECONDS: Final = 1.0
"""How long a request may take; the API server has given up by then."""

UNREAD_SECONDS: Final = 0.5
"""How long a read may take before remembered labels decide."""

READS: Final = 200.0
"""Namespaces a second that are read for requests of one address, in the long run."""

READS_AT_ONCE: Final = 1000

_JSON: Final = b"application/json; charset=utf-8"

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ReviewAnswer(HttpResponse):
    """A text, or JSON with status 200."""

    result: str = ""  # the result that metrics count; empty: none


def text(status: int, message: str, result: str = "") -> ReviewAnswer:
    return ReviewAnswer(status, f"{message}\n".encode(), result=result)


CANNOT_DECIDE: Final = text(503, "cannot decide", "error")


class NamespaceLabels:
    """Labels of namespaces, read when a Pod is created there."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Recent[str, tuple[float, Mapping[str, str]]] = Recent(REMEMBERED)
        self._reading: dict[str, asyncio.Task[Mapping[str, str]]] = {}

    def known(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace that was read a moment ago; None: read it."""
        return self._remembered(name, NAMESPACE_SECONDS)

    def _remembered(self, name: str, seconds: float) -> Mapping[str, str] | None:
        known = self._known.get(name)
        return known[1] if known and self._clock() - known[0] < seconds else None

    def is_read(self, name: str) -> bool:
        return name in self._reading

    async def of(self, api: ApiClient, name: str) -> Mapping[str, str]:
        """Read the labels of a namespace; Pods that are created at the same time share one request.

        Raises:
            KubeError: it cannot be read.
            TimeoutError: it takes too long.
        """
        known = self.known(name)
        if known is not None:
            return known
        reading = self._reading.get(name)
        if reading is None:
            reading = asyncio.create_task(self._read(api, name))
            self._reading[name] = reading
            reading.add_done_callback(lambda done: self._done(name, done))
        return await asyncio.shield(reading)

    async def latest(self, api: ApiClient, name: str) -> Mapping[str, str]:
        """Read the labels of a namespace; if that fails, return those of the last minutes.

        Raises:
            NotFound: it does not exist.
            KubeError, TimeoutError: as `of`, where no labels are remembered.
        """
        outdated = self._remembered(name, OUTDATED_SECONDS)
        if outdated is None:
            return await self.of(api, name)
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                return await self.of(api, name)
        except NotFound:
            raise
        except (KubeError, TimeoutError) as error:
            reason = str(error) or "it took too long"
            log.warning("Decided by earlier labels of the namespace", extra=kv(err=reason))
            return outdated

    async def _read(self, api: ApiClient, name: str) -> Mapping[str, str]:
        async with asyncio.timeout(ANSWER_SECONDS):
            namespace = await api.get(NAMESPACES.named(name))
        labels: Mapping[str, str] = mapping(namespace["metadata"].get("labels"))
        self._known.keep(name, (self._clock(), labels))
        return labels

    def _done(self, name: str, done: asyncio.Task[Mapping[str, str]]) -> None:
        self._reading.pop(name, None)
        if not done.cancelled():
            done.exception()  # each waiting Pod receives it


class ReviewDecisions:
    """Decides about new Pods; those in the namespaces `excluded` are never assigned."""

    def __init__(self, api: ApiClient, excluded: Iterable[str]) -> None:
        self._api = api
        self._excluded = frozenset(excluded)
        self._schedulers: Sequence[Object] = ()
        self._by_namespace = False
        self._labels = NamespaceLabels()
        self._reads = AddressRate(READS, READS_AT_ONCE, 0.0, time.monotonic)

    def use(self, schedulers: Sequence[Object]) -> None:
        """Decide by these SecondarySchedulers from now on."""
        self._schedulers, self._by_namespace = schedulers, needs_namespace(schedulers)

    def decide(self, body: bytes, address: str) -> ReviewAnswer | Awaitable[ReviewAnswer]:
        """Answer a request of `address`; whatever its body is, the process continues."""
        try:
            pod = read_review(parse_json(body), self._excluded)
            return self._about(pod, address)
        except NotAReviewError as error:
            return text(400, str(error), "invalid")
        except ValueError:
            return text(400, "the body is not JSON", "invalid")
        except MemoryError:
            return CANNOT_DECIDE
        except Exception as error:  # a defect here must not reach the API server's client
            return _defect(error)

    def _about(self, pod: NewPod, address: str) -> ReviewAnswer | Awaitable[ReviewAnswer]:
        if not pod.eligible or not self._schedulers:
            return _decided(pod, "")
        labels = self._labels.known(pod.namespace) if self._by_namespace else {}
        if labels is not None:
            return _decided(pod, scheduler_for(pod, self._schedulers, labels))
        if _NAMESPACE.fullmatch(pod.namespace) is None:
            raise NotAReviewError("request.namespace is not the name of a namespace")
        if not self._labels.is_read(pod.namespace) and self._reads.wait(address) is None:
            return text(429, "too many namespaces at once", "busy")
        return self._later(pod)

    async def _later(self, pod: NewPod) -> ReviewAnswer:
        try:
            labels = await self._labels.latest(self._api, pod.namespace)
            return _decided(pod, scheduler_for(pod, self._schedulers, labels))
        except (KubeError, TimeoutError) as error:
            reason = str(error) or "it took too long"
            log.warning("Left a Pod unchanged", extra=kv(err=reason))
            return CANNOT_DECIDE
        except Exception as error:
            return _defect(error)


def _decided(pod: NewPod, scheduler: str) -> ReviewAnswer:
    body = json.dumps(answer(pod.uid, scheduler)).encode()
    return ReviewAnswer(200, body, _JSON, result="assigned" if scheduler else "unchanged")


def _defect(error: Exception) -> ReviewAnswer:
    contained("webhook", names.ASSIGNMENT, error)
    return text(500, "cannot decide", "error")
