"""Takes pods off their nodes for a question, so that kube-scheduler has certainly noticed it.

kube-scheduler handles the events of one kind in their order, but each kind, and to 1.34 each of two
handlers of pods, at its own pace. From 1.35 on, one handler takes all pods (`addAllEventHandlers`):
what is asked with a pod that is created later sees that a pod was deleted before. Before, one
handler has the pods with a node and another one those without. There, a lifted pod gets a host port
that no other pod has, and a pod with this port shows on which nodes it is known.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from ..config.language.feature_gates import Gates
from ..config.language.versions import Version
from .configuration import only
from .kinds import IMPOSSIBLE, NODES, PODS, Object, new_object, pod_name
from .run import Run

_ONE_HANDLER: Final = Version(1, 35)
WITNESS: Final = "simulation-witness"
"""The schedulerName of the pods that show which lifted pods are known."""


def witness_profiles(profile: Mapping[str, Any], gates: Gates) -> list[dict[str, Any]]:
    """Return the profile that `Lifts` needs beside another one, if this version needs one."""
    if gates.version >= _ONE_HANDLER:
        return []
    return [only(profile, gates, WITNESS, filters=["NodePorts"])]


class Lifts:
    """Lifts pods in a run; `witnessed` with the profile of `witness_profiles`."""

    def __init__(self, run: Run, *, witnessed: bool) -> None:
        self._run = run
        self._witnessed = witnessed
        self._ports: dict[str, Object] = {}  # namespace/name -> the pod's own host port
        self._witnesses = 0

    @asynccontextmanager
    async def lifted(
        self, pods: Sequence[Object], instead: Sequence[Object] = ()
    ) -> AsyncIterator[None]:
        """Free the places of pods, and the room of nominated ones, meanwhile.

        Some of them take their places `instead`, in another form.

        Raises:
            SimulationError: kube-scheduler ended, or the time is over.
        """
        if self._witnessed:
            for pod in _running(pods):
                if pod_name(pod) not in self._ports:
                    self._ports[pod_name(pod)] = _own_port(len(self._ports))
                    await self._place(pod)
        await self._take(pods)
        for pod in instead:
            await self._place(pod)
        yield
        await self._take(instead)
        for pod in _running(pods):
            await self._place(pod)
        self._run.hold(pods)

    async def _take(self, pods: Sequence[Object]) -> None:
        self._run.release(pods)
        for pod in _running(pods):
            await self._until_known(pod, known=False)

    async def _place(self, pod: Object) -> None:
        placed = copy.deepcopy(pod)
        if port := self._ports.get(pod_name(pod)):
            placed["spec"]["containers"][0].setdefault("ports", []).append(port)
        self._run.put(PODS, placed)
        await self._until_known(pod, known=True)

    async def _until_known(self, pod: Object, *, known: bool) -> None:
        """Wait until kube-scheduler knows, or does not know, a pod on its node."""
        node = pod["spec"]["nodeName"]
        while self._witnessed and self._run.has(NODES, node):
            self._witnesses += 1
            name = f"{IMPOSSIBLE}witness-{self._witnesses}"
            witness = new_object(PODS, name, "default", uid=name)
            port = self._ports[pod_name(pod)]
            container = {"name": "none", "image": "none", "ports": [port]}
            spec = {"schedulerName": WITNESS, "containers": [container]}
            witness |= {"spec": spec, "status": {"phase": "Pending"}}
            (decision,) = (await self._run.schedule([witness], settle=False)).values()
            self._run.forget([witness])
            if (node not in (decision.candidates or ())) is known:
                return


def _running(pods: Sequence[Object]) -> list[Object]:
    return [pod for pod in pods if pod["spec"].get("nodeName")]


def _own_port(number: int) -> Object:
    """Return a host port on an address that no other pod uses."""
    address = f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {"hostPort": 1, "hostIP": address, "protocol": "SCTP", "containerPort": 1}
