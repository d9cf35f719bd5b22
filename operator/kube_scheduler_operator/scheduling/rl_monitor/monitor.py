"""Rates events of pods and stores the learned values in a ConfigMap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from ...base.klog import kv
from ...kube.client import ApiClient
from ...kube.errors import AlreadyExists, ApiError, NotFound
from ...kube.resource import CONFIG_MAPS, ObjectRef
from ..policies.learned_values import CONFIG_MAP, LearnedValues, pod_type, read_values
from ..policies.pods import read_pod
from .rewards import MTTF, rated_events

log = logging.getLogger(__name__)

EVERY: Final = 5.0
"""Minimum seconds between writes: pods of a rollout fail or start together."""


class Monitor:
    """Receives pods (kube.reflector.Receiver) and rates their events.

    `mttf` is the runtime in seconds after which a failure counts only half.
    """

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
        """Write the state.

        Raises:
            ApiError: writing failed.
        """
        data = state.data()
        try:
            await self._client.patch(self._ref, {"data": data})
        except NotFound:
            metadata = {"name": CONFIG_MAP, "namespace": self._namespace}
            try:
                await self._client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
            except AlreadyExists:
                await self._client.patch(self._ref, {"data": data})


async def write_periodically(monitor: Monitor, store: StateStore, interval: float) -> None:
    """Write changes periodically until cancelled."""
    while True:
        await asyncio.sleep(interval)
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
