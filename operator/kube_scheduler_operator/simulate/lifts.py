"""Takes pods off their nodes for a question, so that kube-scheduler has certainly noticed it.

kube-scheduler handles the events of one kind in their order, but each kind, and to 1.34 each of two
handlers of pods, at its own pace. From 1.35 on, one handler takes all pods (`addAllEventHandlers`):
what is asked with a pod that is created later sees that a pod was deleted before. Before, one
handler has the pods with a node and another one those without. There, a lifted pod gets a host port
that no other pod has, and a pod with this port shows on which nodes it is known.

The claims of a lifted pod are free meanwhile, unless others use them too. Claims have a handler of
their own in all versions: a claim that is created afterwards, and a pod that names it, show that
the change before it is known.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from ..config.language.feature_gates import Gates
from ..config.language.versions import Version
from .configuration import only
from .decisions import PodDecision
from .device_selectors import failed_selector
from .kinds import (
    IMPOSSIBLE,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    Object,
    new_object,
    pod_name,
)
from .run import Run
from .world import World

_ONE_HANDLER: Final = Version(1, 35)
WITNESS: Final = "simulation-witness"
"""The schedulerName of the pods that show which lifted pods are known."""
_CONTAINER: Final[Object] = {"name": "none", "image": "none"}


CLAIM_WITNESS: Final = "simulation-claim-witness"
"""The schedulerName of the pods that show which claims are known."""
_NO_CLASS: Final = f"{IMPOSSIBLE}class"


async def answers_once_known(
    ask: Callable[[], Awaitable[list[PodDecision]]], objects: Collection[Object]
) -> list[PodDecision]:
    """Ask until kube-scheduler has read objects that the pods in question need.

    It reads each kind independently of pods, and its message names what it has not read yet
    (`assumecache.NotFoundError`, or the NotFound of a lister).

    Raises:
        SimulationError: kube-scheduler ended, or the time is over.
    """
    names = [obj["metadata"]["name"] for obj in objects]
    while True:
        answers = await ask()
        messages = [answer.message for answer in answers if not failed_selector([answer.message])]
        if not any(name in message for name in names for message in messages):
            return answers


def witness_profiles(
    profile: Mapping[str, Any], gates: Gates, world: World
) -> list[dict[str, Any]]:
    """Return the profiles that `Lifts` needs beside another one, in this version and world."""
    found = []
    if gates.version < _ONE_HANDLER:
        found.append(only(profile, gates, WITNESS, filters=["NodePorts"]))
    if any(claim.get("status", {}).get("allocation") for claim in world.all(RESOURCE_CLAIMS)):
        found.append(only(profile, gates, CLAIM_WITNESS, filters=["DynamicResources"]))
    return found


class Lifts:
    """Lifts pods in a run whose `profiles` have those of `witness_profiles`."""

    def __init__(self, run: Run, profiles: Collection[str]) -> None:
        self.run = run
        self._witnessed = WITNESS in profiles
        self._with_claims = CLAIM_WITNESS in profiles
        self._ports: dict[str, Object] = {}  # namespace/name -> the pod's own host port

    @asynccontextmanager
    async def lifted(
        self, pods: Sequence[Object], instead: Sequence[Object] = ()
    ) -> AsyncIterator[None]:
        """Free the places of pods, and the room of nominated ones, meanwhile.

        Some of them take their places `instead`, in another form.

        Raises:
            SimulationError: kube-scheduler ended, or the time is over.
        """
        running = _running(pods)
        if self._witnessed and (unknown := [p for p in running if pod_name(p) not in self._ports]):
            for pod in unknown:
                self._ports[pod_name(pod)] = _own_port(len(self._ports))
            await self._place(unknown)
        await self._take(pods)
        claims = self.run.free_claims(running) if self._with_claims else []
        await self._until_claims_known(claims)
        await self._place(instead)
        yield
        await self._take(instead)
        for claim in claims:
            self.run.put(RESOURCE_CLAIMS, claim)
        await self._until_claims_known(claims)
        await self._place(running)
        self.run.hold(pods)

    async def _take(self, pods: Sequence[Object]) -> None:
        self.run.release(pods)
        await self._until_known(_running(pods), known=False)

    async def _place(self, pods: Sequence[Object]) -> None:
        for pod in pods:
            placed = copy.deepcopy(pod)
            if port := self._ports.get(pod_name(pod)):
                placed["spec"]["containers"][0].setdefault("ports", []).append(port)
            self.run.put(PODS, placed)
        await self._until_known(pods, known=True)

    async def _until_known(self, pods: Sequence[Object], *, known: bool) -> None:
        """Wait until kube-scheduler knows, or does not know, pods on their nodes."""
        left = {
            pod_name(pod): pod
            for pod in pods
            if self._witnessed and self.run.has(NODES, pod["spec"]["nodeName"])
        }
        while left:
            of_nodes = {pod["spec"]["nodeName"]: name for name, pod in left.items()}
            ports = [self._ports[name] for name in of_nodes.values()]
            container = {**_CONTAINER, "ports": ports}
            decision = await self._decision_of(WITNESS, {"containers": [container]})
            for node, name in of_nodes.items():
                if (node not in (decision.candidates or ())) is known:
                    del left[name]

    async def _until_claims_known(self, claims: Sequence[Object]) -> None:
        """Wait until kube-scheduler knows the last change of claims."""
        if not claims:
            return
        name = self._new_name()
        exactly = {"deviceClassName": _NO_CLASS}  # which does not exist, so the pod is refused
        marker = new_object(RESOURCE_CLAIMS, name, "default", uid=name)
        marker["spec"] = {"devices": {"requests": [{"name": "none", "exactly": exactly}]}}
        self.run.put(RESOURCE_CLAIMS, marker)
        named = [{"name": "none", "resourceClaimName": name}]
        spec = {"containers": [_CONTAINER], "resourceClaims": named}

        async def ask() -> list[PodDecision]:
            return [await self._decision_of(CLAIM_WITNESS, spec)]

        await answers_once_known(ask, [marker])
        self.run.remove(RESOURCE_CLAIMS, name, "default")

    async def _decision_of(self, scheduler: str, spec: Mapping[str, Any]) -> PodDecision:
        name = self._new_name()
        witness = new_object(PODS, name, "default", uid=name)
        own = {"schedulerName": scheduler, **spec}
        witness |= {"spec": own, "status": {"phase": "Pending"}}
        (decision,) = (await self.run.schedule([witness], settle=False)).values()
        self.run.forget([witness])
        return decision

    def _new_name(self) -> str:
        return f"{IMPOSSIBLE}witness-{self.run.next_number()}"


def _running(pods: Sequence[Object]) -> list[Object]:
    return [pod for pod in pods if pod["spec"].get("nodeName")]


def _own_port(number: int) -> Object:
    """Return a host port on an address that no other pod uses."""
    address = f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {"hostPort": 1, "hostIP": address, "protocol": "SCTP", "containerPort": 1}
