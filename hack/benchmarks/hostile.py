"""The operator beside a tenant who creates Pods that are as large as the API server accepts.

The API server, etcd and the operator are real; no node is needed, because the Pods name a scheduler
that does not exist. Without them and with them in turns: memory, round trips of /healthz, which the
loop answers that also renews the Lease, and the renewals themselves.
"""

from __future__ import annotations

import http.client
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

from benchmarks import processors
from benchmarks.extender_calls import percentile
from benchmarks.many_cluster import Cluster
from benchmarks.table import REPOSITORY, Row
from cluster import lifecycle, teardown
from cluster.api import Api, ApiError
from cluster.console import say
from cluster.model import Sandbox
from cluster.observe import OPERATOR_NAMESPACE

TENANT: Final = "tenant"
ENTRIES: Final = 200_000
"""Environment entries of a Pod: 2.6 MB as JSON, and 1.4 MB in etcd, which accepts 1.5 MiB."""

ATTEMPTS: Final = 5
"""Requests for a Pod; one without an answer is repeated."""

INTERVAL: Final = 0.02
"""Seconds between two round trips of /healthz."""

MORE_MEMORY: Final = 128.0
"""MiB that the Pods may cost the operator."""

LONGEST_GAP: Final = 1000.0
"""Milliseconds for which the loop may not answer."""


@dataclass(slots=True)
class Turn:
    """What was seen in one turn."""

    peak: float = 0.0  # of resident memory, MiB
    answers: list[float] = field(default_factory=list)  # round trips of /healthz, ms
    renewals: list[float] = field(default_factory=list)  # times of the Lease, seconds since 1970
    ended: bool = False  # whether the operator ended, for example because it had no memory

    @property
    def longest_renewal(self) -> float:
        """The longest time between two renewals, seconds."""
        pairs = zip(self.renewals, self.renewals[1:], strict=False)
        return max((after - before for before, after in pairs), default=0.0)


def measure(
    name: str, pods: int, rounds: int, seconds: float, source: Path = REPOSITORY
) -> Iterator[Row]:
    """The figures of the operator whose package is in `source`."""
    teardown.down(name)
    sandbox = lifecycle.up(name, 0, 0, with_operator=False)
    with ExitStack() as stack:
        stack.callback(teardown.down, name)
        cluster = Cluster(sandbox, 0, 0, source=source)
        stack.callback(cluster.close)
        cluster.start(5.0)
        tenant = Tenant(sandbox)
        turns: dict[str, list[Turn]] = {"no Pods": [], f"{pods} Pods of 2.6 MB": []}
        for _ in range(rounds):
            for which, count in zip(turns, (0, pods), strict=True):
                tenant.create(count)
                turns[which].append(_turn(cluster, sandbox, seconds))
                tenant.delete()
                say(f"  {which}: {turns[which][-1].peak:.0f} MiB")
                time.sleep(5.0)
    without, beside = turns.values()
    for which, found in turns.items():
        yield from _rows(which, found)
    more = [each.peak - other.peak for each, other in zip(beside, without, strict=True)]
    yield Row("peak memory that the Pods cost", more, "MiB", MORE_MEMORY)


def _rows(which: str, turns: list[Turn]) -> Iterator[Row]:
    longest = [max(turn.answers, default=float("nan")) for turn in turns]
    yield Row(f"{which}: peak memory", [turn.peak for turn in turns], "MiB", None)
    for share in (0.5, 0.999):
        values = [percentile(turn.answers, share) for turn in turns]
        yield Row(f"{which}: /healthz, p{100 * share:g}", values, "ms", None)
    yield Row(f"{which}: /healthz, longest", longest, "ms", LONGEST_GAP)
    renewals = [turn.longest_renewal for turn in turns]
    yield Row(f"{which}: longest time between renewals", renewals, "s", None)
    yield Row(f"{which}: the operator ended", [float(turn.ended) for turn in turns], "", 0.0)


def _turn(cluster: Cluster, sandbox: Sandbox, seconds: float) -> Turn:
    """Watch the operator for a while."""
    ended = cluster.revive()
    Path(f"/proc/{cluster.pid}/clear_refs").write_text("5")  # VmHWM begins again
    turn, stop = Turn(ended=ended), threading.Event()
    following = threading.Thread(target=_follow, args=(Api(sandbox), cluster, turn, stop))
    following.start()
    try:
        _follow_health(_port(sandbox), turn, time.monotonic() + seconds)
    finally:
        stop.set()
        following.join()
    return turn


def _port(sandbox: Sandbox) -> int:
    text = (sandbox.state / "logs/operator.log").read_text()
    return int(re.findall(r'"Serving metrics and health".* port=(\d+)', text)[-1])


def _follow_health(port: int, turn: Turn, end: float) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    while (begun := time.monotonic()) < end:
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):  # it was idle for too long, or ended
            connection.close()
            time.sleep(INTERVAL)
            continue
        turn.answers.append(1000 * (time.monotonic() - begun))
        time.sleep(max(0.0, INTERVAL - (time.monotonic() - begun)))
    connection.close()


def _follow(api: Api, cluster: Cluster, turn: Turn, stop: threading.Event) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases"
    while not stop.wait(0.5):
        try:
            turn.peak = max(turn.peak, processors.memory(cluster.pid, "VmHWM"))
        except (KeyError, OSError):
            turn.ended = True
        with suppress(ApiError):
            for lease in api.request("GET", path)["items"]:
                renewed = datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()
                if not turn.renewals or renewed > turn.renewals[-1]:
                    turn.renewals.append(renewed)


class Tenant:
    """A user who may create Pods in a namespace."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._api = Api(sandbox)
        self._path = f"/api/v1/namespaces/{TENANT}/pods"
        self._made: list[str] = []
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self._api.create("/api/v1/namespaces", {"metadata": {"name": TENANT}})
        with suppress(ApiError):  # the controller manager was faster
            self._api.create(f"/api/v1/namespaces/{TENANT}/serviceaccounts", account)

    def create(self, count: int) -> None:
        """Create Pods that stay Pending."""
        entries = ",".join('{"name":"A"}' for _ in range(ENTRIES))
        for number in range(count):
            name = f"large-{number:02}"
            self._create(_pod(name, entries))
            self._made.append(name)

    def _create(self, pod: str) -> None:
        """Create a Pod; a busy machine may take more than a minute for one."""
        for attempt in range(ATTEMPTS):
            try:
                self._api.request("POST", self._path, pod)
                return
            except ApiError as error:
                if error.code == HTTPStatus.CONFLICT and attempt:
                    return  # the request before was slow, and succeeded
                if error.code or attempt == ATTEMPTS - 1:
                    raise

    def delete(self) -> None:
        """Delete them."""
        while self._made:
            self._api.request("DELETE", f"{self._path}/{self._made.pop()}?gracePeriodSeconds=0")


def _pod(name: str, entries: str) -> str:
    return (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"' + name + '"},"spec":{'
        '"schedulerName":"no-such-scheduler","automountServiceAccountToken":false,'
        '"containers":[{"name":"c","image":"registry.example.com/c:v1","env":[' + entries + "]}]}}"
    )
