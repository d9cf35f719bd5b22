"""Watches how pods fare and keeps what is learnt in a ConfigMap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...base.klog import kv
from ...kube.errors import AlreadyExists, ApiError, NotFound
from ...kube.resource import CONFIG_MAPS, ObjectRef
from ...policies.learned_values import CONFIG_MAP, State, pod_type, read_state
from ...policies.pods import read_pod
from .rewards import MTTF, happenings

if TYPE_CHECKING:
    from ...kube.client import ApiClient

log = logging.getLogger(__name__)

EVERY: Final = 5.0
"""Seconds between two writes at least: pods of a rollout fail or start together."""


class Monitor:
    """Receives pods (kube.reflector.Receiver) and rates what happens to them.

    Args:
        state: what is known already.
        mttf: seconds after which a failure is held against its node only half.

    Attributes:
        state: what has been learnt.
        changed: it has been since it was last taken over.
    """

    def __init__(self, state: State, mttf: float = MTTF) -> None:
        self.state = state
        self.changed = False
        self._mttf = mttf
        self._since = state.at  # whatever happened until then has been rated
        self._seen: dict[str, set[str]] = {}

    def set(self, obj: Mapping[str, Any]) -> None:
        """A pod is there, or has changed."""
        pod = read_pod(obj)
        if not pod.node_name:
            return
        seen = self._seen.setdefault(pod.key, set())
        for each in happenings(obj, self._mttf):
            if each.key in seen:
                continue
            seen.add(each.key)
            if each.at and each.at <= self._since:
                continue
            kind = pod_type(pod)
            value = self.state.reward(kind, pod.node_name, each.reward)
            self.state.at = max(self.state.at, each.at)
            self.changed = True
            log.info(
                "Rated",
                extra=kv(pod=f"{pod.namespace}/{pod.name}", type=kind, node=pod.node_name,
                         why=each.what, reward=each.reward, value=round(value, 4)),
            )  # fmt: skip

    def remove(self, obj: Mapping[str, Any]) -> None:
        """A pod is gone."""
        self._seen.pop(read_pod(obj).key, None)


class Memory:
    """The ConfigMap that the state is kept in.

    Args:
        client: asks the API.
        namespace: of the ConfigMap.
    """

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._ref = ObjectRef(CONFIG_MAPS, namespace, CONFIG_MAP)

    async def load(self) -> State:
        """What is there; tries until the API answers."""
        while True:
            try:
                return read_state((await self._client.get(self._ref)).get("data"))
            except NotFound:
                return State()
            except ApiError as error:
                log.warning("Cannot read the state yet", extra=kv(err=str(error)))
                await asyncio.sleep(EVERY)

    async def save(self, state: State) -> None:
        """Write the state.

        Raises:
            ApiError: it could not be written.
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


async def keep(monitor: Monitor, memory: Memory, every: float = EVERY) -> None:
    """Write what has changed, again and again; until it is cancelled."""
    while True:
        await asyncio.sleep(every)
        await write(monitor, memory)


async def write(monitor: Monitor, memory: Memory) -> None:
    """Write what has changed; what cannot be written now is written the next time."""
    if not monitor.changed:
        return
    monitor.changed = False
    try:
        await memory.save(monitor.state)
    except ApiError as error:
        monitor.changed = True
        log.warning("Cannot write the state now", extra=kv(err=str(error)))
