"""What the API has of nodes and pods, brought into a `Cluster`; and ConfigMaps for policies.

Requests never wait for any of this: until the first lists are there, and while the API is away,
they are answered from what is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...kube.reflector import Pace, Reflector, Selection
from ...kube.resource import CONFIG_MAPS, NODES, PODS
from ...policies.pod_fields import POD

if TYPE_CHECKING:
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ...policies.cluster import Cluster

log = logging.getLogger(__name__)

BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that hold something on a node. A pod that is placed is then one event and not three."""

PACE: Final = Pace(page=200)
"""Decoding a page of nodes takes ten milliseconds, for which requests have to wait."""

ConfigMapCallback = Callable[[str, str, "Mapping[str, str] | None"], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """How the watch of one kind is going.

    Attributes:
        resource: plural.
        synced: everything was read once.
        age: seconds since the last sign of life.
        events, lists, failures: how many there were.
        problem: why it cannot go on; empty if it does.
    """

    resource: str
    synced: bool
    age: float
    events: int
    lists: int
    failures: int
    problem: str


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
    def __init__(self, tell: ConfigMapCallback) -> None:
        self._tell = tell

    def set(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self._tell(metadata["namespace"], metadata["name"], obj.get("data") or {})

    def remove(self, obj: Object) -> None:
        self._tell(obj["metadata"]["namespace"], obj["metadata"]["name"], None)


class View:
    """Watches nodes, bound pods and the ConfigMaps that somebody wants to hear of.

    Args:
        cluster: is kept up to date.
        client: asks the API.
        tell: is told of ConfigMaps.
        loads: decodes JSON.
        pods: somebody wants to know of pods; see `want_pods`.
        pace: pauses and sizes.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: ApiClient,
        tell: ConfigMapCallback,
        *,
        loads: Callable[[bytes], Any],
        pods: bool = True,
        pace: Pace = PACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._tell = tell
        self._loads = loads
        self._pace = pace
        self._clock = clock
        self._nodes = Reflector(client, NODES, _Nodes(cluster), loads=loads, pace=pace)
        self._pods_receiver = _Pods(cluster)
        self._pods: Reflector | None = None
        self._pods_task: asyncio.Task[None] | None = None
        self._pods_wanted = pods
        self._config_maps: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            await self.want_pods(self._pods_wanted)
            await self._nodes.run()
        finally:
            await self.want(())
            await _ended(self._pods_task)

    async def synced(self) -> None:
        """Return once all nodes and pods were read."""
        await self._nodes.synced()
        if self._pods is not None:
            await self._pods.synced()

    async def want_pods(self, wanted: bool) -> None:
        """Watch bound pods, or forget them: a watch of all pods is the dearest thing here.

        Each pod that is placed is decoded here.
        """
        if wanted and self._pods is None:
            self._pods = Reflector(
                self._client,
                PODS,
                self._pods_receiver,
                Selection(field_selector=BOUND),
                loads=self._loads,
                fields=POD,
                pace=self._pace,
            )
            self._pods_task = asyncio.create_task(self._pods.run())
        elif not wanted and self._pods is not None:
            reflector, self._pods = self._pods, None
            await _ended(self._pods_task)
            reflector.forget()

    async def want(self, config_maps: Iterable[tuple[str, str]]) -> None:
        """Watch these ConfigMaps (namespace, name) and no others."""
        wanted = set(config_maps)
        for key in wanted - set(self._config_maps):
            namespace, name = key
            reflector = Reflector(
                self._client,
                CONFIG_MAPS,
                _ConfigMap(self._tell),
                Selection(namespace, field_selector=f"metadata.name={name}"),
                loads=self._loads,
                pace=self._pace,
            )
            self._config_maps[key] = asyncio.create_task(reflector.run())
        for key in set(self._config_maps) - wanted:
            await _ended(self._config_maps.pop(key))

    def watched(self) -> list[Watched]:
        """How it is going, kind by kind."""
        now = self._clock()
        return [
            Watched(
                reflector.resource.plural,
                reflector.state.synced,
                now - reflector.state.heard if reflector.state.lists else float("inf"),
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
