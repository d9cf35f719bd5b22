"""Feeds a `Cluster` with nodes and Pods from the API, and policies with ConfigMaps.

Requests never wait for the API: before the initial lists, and while the API is unavailable, they
are served from the data at hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...kube.api import Object
from ...kube.client import ApiClient
from ...kube.reading import Loads
from ...kube.reflector import Decoding, Reflector, ReflectorTuning, Selection
from ...kube.resource import CONFIG_MAPS, NODES, PODS
from ..policies.cluster import Cluster
from ..policies.pod_fields import POD

log = logging.getLogger(__name__)

BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Selects Pods that use resources of a node; a placed Pod is then one event and not three."""

PACE: Final = ReflectorTuning(page=200)
"""Decoding a page of nodes takes ten milliseconds, during which requests wait."""

ConfigMapCallback = Callable[[str, str, "Mapping[str, str] | None"], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """The state of the watch of one resource."""

    resource: str  # plural name
    synced: bool  # whether the initial list is complete
    age: float  # seconds since data was last received
    events: int
    lists: int
    failures: int
    problem: str  # why the watch fails; empty if it works


class _Nodes:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def set(self, obj: Object) -> None:
        self._cluster.set_node(obj)

    def remove(self, obj: Object) -> None:
        self._cluster.remove_node(obj["metadata"]["name"])


class _Pods:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def set(self, obj: Object) -> None:
        self._cluster.set_pod(obj)

    def remove(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self._cluster.remove_pod(
            metadata.get("namespace") or "", metadata["name"], metadata.get("uid") or ""
        )


class _ConfigMap:
    def __init__(self, callback: ConfigMapCallback) -> None:
        self._callback = callback

    def set(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self._callback(metadata["namespace"], metadata["name"], obj.get("data") or {})

    def remove(self, obj: Object) -> None:
        self._callback(obj["metadata"]["namespace"], obj["metadata"]["name"], None)


class ClusterFeed:
    """Watches nodes, the ConfigMaps of policies and, with `pods`, bound Pods (see `watch_pods`)."""

    def __init__(
        self,
        cluster: Cluster,
        client: ApiClient,
        on_config_map: ConfigMapCallback,
        *,
        loads: Loads,
        pods: bool = True,
        pace: ReflectorTuning = PACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._on_config_map = on_config_map
        self._loads = loads
        self._pace = pace
        self._clock = clock
        self._nodes = Reflector(
            client, NODES, _Nodes(cluster), decoding=Decoding(loads), tuning=pace
        )
        self._pods_receiver = _Pods(cluster)
        self._pods: Reflector | None = None
        self._pods_task: asyncio.Task[None] | None = None
        self._needs_pods = pods
        self._config_maps: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            await self.watch_pods(self._needs_pods)
            await self._nodes.run()
        finally:
            await self.watch_config_maps(())
            await _ended(self._pods_task)

    async def synced(self) -> None:
        """Return after the initial lists of nodes and Pods."""
        await self._nodes.synced()
        if self._pods is not None:
            await self._pods.synced()

    async def watch_pods(self, needed: bool) -> None:
        """Start or stop the watch of bound Pods, the most expensive one: it decodes every Pod."""
        if needed and self._pods is None:
            self._pods = Reflector(
                self._client,
                PODS,
                self._pods_receiver,
                Selection(field_selector=BOUND),
                decoding=Decoding(self._loads, POD),
                tuning=self._pace,
            )
            self._pods_task = asyncio.create_task(self._pods.run())
        elif not needed and self._pods is not None:
            reflector, self._pods = self._pods, None
            await _ended(self._pods_task)
            reflector.forget()

    async def watch_config_maps(self, config_maps: Iterable[tuple[str, str]]) -> None:
        """Watch exactly these ConfigMaps (namespace, name)."""
        desired = set(config_maps)
        for key in desired - set(self._config_maps):
            namespace, name = key
            reflector = Reflector(
                self._client,
                CONFIG_MAPS,
                _ConfigMap(self._on_config_map),
                Selection(namespace, field_selector=f"metadata.name={name}"),
                decoding=Decoding(self._loads),
                tuning=self._pace,
            )
            self._config_maps[key] = asyncio.create_task(reflector.run())
        for key in set(self._config_maps) - desired:
            await _ended(self._config_maps.pop(key))

    def watched(self) -> list[Watched]:
        now = self._clock()
        return [
            Watched(
                reflector.resource.plural,
                reflector.state.synced,
                now - reflector.state.received_at if reflector.state.lists else float("inf"),
                reflector.state.events,
                reflector.state.lists,
                reflector.state.failures,
                reflector.state.problem,
            )
            for reflector in (self._nodes, self._pods)
            if reflector is not None
        ]


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
