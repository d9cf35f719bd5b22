"""Feeds a `Cluster` with nodes and Pods from the API, and policies with ConfigMaps.

Requests never wait for the API: before the initial lists, and while the API is unavailable, they
are served from the data at hand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import orjson

from ...base.tasks import cancel, keep
from ...kube.api import Object
from ...kube.client import ApiClient
from ...kube.protobuf import Message
from ...kube.reflector import Callbacks, Decoding, Reflector, ReflectorTuning, Selection
from ...kube.resource import CONFIG_MAPS, NODES, PODS, Resource
from ..policies.cluster import Cluster
from ..policies.pod_fields import POD

log = logging.getLogger(__name__)

BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Selects Pods that use resources of a node; a placed Pod is then one event and not three."""

PACE: Final = ReflectorTuning(page=200)
"""Decoding a page of nodes takes ten milliseconds, during which requests wait."""

ConfigMapCallback = Callable[[str, str, "Mapping[str, str] | None"], None]


class ClusterFeed:
    """Watches nodes, the ConfigMaps of policies and, with `pods`, bound Pods (see `watch_pods`)."""

    def __init__(
        self,
        cluster: Cluster,
        client: ApiClient,
        on_config_map: ConfigMapCallback,
        *,
        pods: bool = True,
        pace: ReflectorTuning = PACE,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._on_config_map = on_config_map
        self._pace = pace
        self._nodes = self._reflector(NODES, Callbacks(cluster.set_node, self._remove_node))
        self._pods: Reflector | None = None
        self._pods_task: asyncio.Task[None] | None = None
        self._needs_pods = pods
        self._config_maps: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            await self.watch_pods(self._needs_pods)
            await keep("watch of nodes", self._nodes.run)
        finally:
            await self.watch_config_maps(())
            await cancel(self._pods_task)

    async def synced(self) -> None:
        """Return after the initial lists of nodes and Pods."""
        await self._nodes.synced()
        if self._pods is not None:
            await self._pods.synced()

    async def watch_pods(self, needed: bool) -> None:
        """Start or stop the watch of bound Pods, the most expensive one: it decodes every Pod."""
        if needed and self._pods is None:
            receiver = Callbacks(self._cluster.set_pod, self._cluster.remove_pod)
            selection = Selection(field_selector=BOUND)
            self._pods = self._reflector(PODS, receiver, selection, fields=POD)
            self._pods_task = asyncio.create_task(keep("watch of pods", self._pods.run))
        elif not needed and self._pods is not None:
            reflector, self._pods = self._pods, None
            await cancel(self._pods_task)
            reflector.forget()

    async def watch_config_maps(self, config_maps: Iterable[tuple[str, str]]) -> None:
        """Watch exactly these ConfigMaps (namespace, name)."""
        desired = set(config_maps)
        for key in desired - set(self._config_maps):
            namespace, name = key
            receiver = Callbacks(self._set_config_map, self._remove_config_map)
            selection = Selection(namespace, field_selector=f"metadata.name={name}")
            reflector = self._reflector(CONFIG_MAPS, receiver, selection)
            self._config_maps[key] = asyncio.create_task(
                keep("watch of a ConfigMap", reflector.run)
            )
        for key in set(self._config_maps) - desired:
            await cancel(self._config_maps.pop(key))

    def watched(self) -> list[Reflector]:
        """Return the watches of nodes and, if there is one, of Pods."""
        return [self._nodes] if self._pods is None else [self._nodes, self._pods]

    def _reflector(
        self,
        resource: Resource,
        receiver: Callbacks,
        selection: Selection | None = None,
        *,
        fields: Message | None = None,
    ) -> Reflector:
        decoding = Decoding(orjson.loads, fields)
        return Reflector(
            self._client, resource, receiver, selection, decoding=decoding, tuning=self._pace
        )

    def _remove_node(self, node: Object) -> None:
        self._cluster.remove_node(node["metadata"]["name"])

    def _set_config_map(self, config_map: Object) -> None:
        metadata, data = config_map["metadata"], config_map.get("data") or {}
        self._on_config_map(metadata["namespace"], metadata["name"], data)

    def _remove_config_map(self, config_map: Object) -> None:
        metadata = config_map["metadata"]
        self._on_config_map(metadata["namespace"], metadata["name"], None)
