"""The rl-monitor program: rates events of pods and stores the learned values in a ConfigMap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ... import __version__
from ...base import names
from ...base.klog import kv
from ...base.tasks import cancel, stop_on_signals
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.errors import AlreadyExists, ApiError, NotFound
from ...kube.reflector import Reflector, Selection
from ...kube.resource import CONFIG_MAPS, PODS, ObjectRef
from ..policies.learned_values import CONFIG_MAP, LearnedValues, pod_type, read_values
from ..policies.pods import read_pod
from .rewards import MTTF, rated_events

log = logging.getLogger(__name__)

EVERY: Final = 5.0
"""Minimum seconds between writes: pods of a rollout fail or start together."""


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
        learning = asyncio.create_task(_learn(client, options))
        await stop.wait()
        await cancel(learning)
    return 0


async def _learn(client: ApiClient, options: RlMonitorOptions) -> None:
    """Watch pods until cancelled, and write changes."""
    store = StateStore(client, options.state_namespace)
    monitor = Monitor(await store.load(), options.mttf)
    log.info("Watching pods", extra=kv(namespace=options.namespace or "(all)"))
    selection = Selection(options.namespace, field_selector="spec.nodeName!=")
    writing = asyncio.create_task(_write_periodically(monitor, store))
    try:
        await Reflector(client, PODS, monitor, selection).run()
    finally:
        log.info("Stopping")
        await cancel(writing)
        await write(monitor, store)


class Monitor:
    """Receives pods (kube.reflector.Receiver) and rates their events."""

    def __init__(self, state: LearnedValues, mttf: float = MTTF) -> None:
        self.state = state
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
            kind = pod_type(pod)
            value = self.state.reward(kind, pod.node_name, event.reward)
            rated[pod.node_name] = max(rated.get(pod.node_name, 0.0), event.at)
            self.changed = True
            log.info(
                "Rated",
                extra=kv(pod=f"{pod.namespace}/{pod.name}", type=kind, node=pod.node_name,
                         why=event.what, reward=event.reward, value=round(value, 4)),
            )  # fmt: skip

    def remove(self, obj: Mapping[str, Any]) -> None:
        self._seen.pop(read_pod(obj).key, None)


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
        """Write the state. Raises ApiError."""
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
    except ApiError as error:
        monitor.changed = True
        log.warning("Failed to write the state, will retry", extra=kv(err=str(error)))
