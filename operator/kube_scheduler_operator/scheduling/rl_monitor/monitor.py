"""The rl-monitor program: rates events of pods and stores the learned values in a ConfigMap.

Rewards are 1 for running, 0 for a failure, and ½ for a failure after a long time. As in kubeRL, but
each occurrence counts once, not once per API event, and with the complete time between two
failures, of which the original uses only the seconds within the minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ... import __version__
from ...base import names
from ...base.klog import kv
from ...base.tasks import cancel, keep, stop_on_signals, until
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from ...kube.reflector import Reflector, Selection
from ...kube.resource import CONFIG_MAPS, PODS, ObjectRef
from ..policies.learned_values import (
    CONFIG_MAP,
    LearnedValues,
    pod_type,
    read_values,
    type_in_namespace,
)
from ..policies.pods import Pod, pod_key, read_pod, seconds

log = logging.getLogger(__name__)

EVERY: Final = 5.0
"""Minimum seconds between writes: pods of a rollout fail or start together."""

RUNNING: Final = 1.0
LASTED: Final = 0.5
FAILED: Final = 0.0

MTTF: Final = 600.0
"""Runtime in seconds after which a failure counts only half."""


@dataclass(frozen=True, slots=True)
class RlMonitorOptions:
    namespace: str | None  # namespace of the pods to watch; None for all
    state_namespace: str  # namespace of the ConfigMap
    kubeconfig: str = ""  # path of a kubeconfig; empty for the default
    mttf: float = MTTF


async def run(options: RlMonitorOptions) -> int:
    """Watch until SIGTERM or SIGINT; return the exit code."""
    stop = stop_on_signals()
    async with ApiClient(
        find(options.kubeconfig or None),
        field_manager=f"{names.PROGRAM}-rl-monitor",
        user_agent=f"{names.PROGRAM}/{__version__} rl-monitor",
    ) as client:
        await until(stop.wait(), _learn(client, options))
    return 0


async def _learn(client: ApiClient, options: RlMonitorOptions) -> None:
    """Watch pods until cancelled, and write changes."""
    store = StateStore(client, options.state_namespace)
    kind = pod_type if options.namespace is not None else type_in_namespace
    monitor = Monitor(await store.load(), options.mttf, kind)
    log.info("Watching pods", extra=kv(namespace=options.namespace or "(all)"))
    selection = Selection(options.namespace, field_selector="spec.nodeName!=")
    writing = asyncio.create_task(keep("writing", partial(_write_periodically, monitor, store)))
    try:
        await Reflector(client, PODS, monitor, selection).run()
    finally:
        log.info("Stopping")
        await cancel(writing)
        await write(monitor, store)


class Monitor:
    """Receives pods (kube.reflector.Receiver) and rates their events."""

    def __init__(
        self, state: LearnedValues, mttf: float = MTTF, kind: Callable[[Pod], str] = pod_type
    ) -> None:
        self.state = state
        self._kind = kind  # returns the type of a Pod
        self.changed = False  # whether they have changed since the last write
        self._mttf = mttf
        self._since = dict(state.rated)  # earlier events have already been rated
        self._seen: dict[str, set[str]] = {}

    def set(self, obj: Mapping[str, Any]) -> None:
        pod = read_pod(obj)
        if not pod.node_name:
            return
        # What changes in a Pod that is known here is new, whatever the clock of its node.
        since = self._since.get(pod.node_name, 0.0) if pod.key not in self._seen else 0.0
        rated, seen = self.state.rated, self._seen.setdefault(pod.key, set())
        for event in rated_events(obj, self._mttf):
            if event.key in seen:
                continue
            seen.add(event.key)
            if event.at and event.at <= since:
                continue
            kind = self._kind(pod)
            value = self.state.reward(kind, pod.node_name, event.reward)
            rated[pod.node_name] = max(rated.get(pod.node_name, 0.0), event.at)
            self.changed = True
            log.info(
                "Rated",
                extra=kv(pod=f"{pod.namespace}/{pod.name}", type=kind, node=pod.node_name,
                         why=event.what, reward=event.reward, value=round(value, 4)),
            )  # fmt: skip

    def remove(self, obj: Mapping[str, Any]) -> None:
        self._seen.pop(pod_key(obj), None)


class StateStore:
    """The ConfigMap with the state."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._ref = ObjectRef(CONFIG_MAPS, namespace, CONFIG_MAP)

    async def load(self) -> LearnedValues:
        """Read the state; retries until the API answers."""
        while True:
            try:
                return read_values((await self._client.get(self._ref)).get("data"))
            except NotFound:
                return LearnedValues()
            except ApiError as error:
                log.warning("Failed to read the state, will retry", extra=kv(err=str(error)))
                await asyncio.sleep(EVERY)

    async def save(self, state: LearnedValues) -> None:
        """Write the state. Raises KubeError."""
        data = state.data()
        try:
            await self._client.patch(self._ref, {"data": data})
        except NotFound:
            metadata = {"name": CONFIG_MAP, "namespace": self._namespace}
            try:
                await self._client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
            except AlreadyExists:
                await self._client.patch(self._ref, {"data": data})


async def _write_periodically(monitor: Monitor, store: StateStore) -> None:
    while True:
        await asyncio.sleep(EVERY)
        await write(monitor, store)


async def write(monitor: Monitor, store: StateStore) -> None:
    """Write changes; after a failure, the next call retries."""
    if not monitor.changed:
        return
    monitor.changed = False
    try:
        await store.save(monitor.state)
    except KubeError as error:
        monitor.changed = True
        log.warning("Failed to write the state, will retry", extra=kv(err=str(error)))


# --- rewards --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RatedEvent:
    """An event with a reward."""

    key: str  # unique key among the pod's events
    at: float  # time of the event, seconds since 1970; 0 if unknown
    reward: float  # 0..1
    what: str  # description for the log


def rated_events(pod: Mapping[str, Any], mttf: float = MTTF) -> Iterator[RatedEvent]:
    """Yield the events in a pod's status in order; after `mttf` seconds, a failure counts half."""
    status = pod.get("status") or {}
    events = [
        event
        for container in status.get("containerStatuses") or ()
        for event in _container(container, mttf)
    ]
    phase = status.get("phase")
    if phase in ("Failed", "Unknown") and not any(event.reward < RUNNING for event in events):
        changes = (seconds(c.get("lastTransitionTime")) for c in status.get("conditions") or ())
        at = max(changes, default=0.0)
        events.append(RatedEvent(phase, at, FAILED, f"the pod is {phase}"))  # for example, evicted
    yield from sorted(events, key=lambda event: event.at)


def _container(status: Mapping[str, Any], mttf: float) -> Iterator[RatedEvent]:
    name, restarts = status.get("name") or "", int(status.get("restartCount") or 0)
    last, now = status.get("lastState") or {}, status.get("state") or {}
    if ended := last.get("terminated"):
        yield _end(f"{name}/{restarts - 1}", ended, mttf)
    if ended := now.get("terminated"):
        yield _end(f"{name}/{restarts}", ended, mttf)
    if running := now.get("running"):
        at = seconds(running.get("startedAt"))
        # A restarted container has failed before: running is not yet a success.
        if not restarts:
            yield RatedEvent(f"{name}/started", at, RUNNING, f"container {name} runs")


def _end(key: str, ended: Mapping[str, Any], mttf: float) -> RatedEvent:
    name = key.partition("/")[0]
    begun, at = seconds(ended.get("startedAt")), seconds(ended.get("finishedAt"))
    if ended.get("exitCode") == 0:
        return RatedEvent(key, at, RUNNING, f"container {name} completed")
    lasted = begun > 0.0 and at - begun > mttf
    return RatedEvent(
        key,
        at,
        LASTED if lasted else FAILED,
        f"container {name} failed after {max(at - begun, 0.0):.0f} s",
    )
