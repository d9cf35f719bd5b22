"""Waiting pods that preemption has nominated to a node, and that hold room there.

kube-scheduler counts a nominated pod on its node when it tries pods of the same or a lower
priority. Pods of the world wait outside of the simulation until a question is about them, so each
nominated one gets a stand-in: a pod with its demands and its nomination that fits nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from ..config.language.feature_gates import Gates
from ..config.language.versions import Version
from .configuration import only, profiles_of
from .kinds import IMPOSSIBLE, PODS, Object, pod_name
from .pod_groups import GROUP_FIELDS
from .store import WorldStore
from .world import World

_STAND_IN: Final = f"{IMPOSSIBLE}nominated"
_GATED_HOLD_ROOM: Final = Version(1, 37)
"""The version from which kube-scheduler records the nomination of a pod with scheduling gates."""


def nominated(pod: Mapping[str, Any]) -> str:
    """Return the node to which a waiting pod is nominated; empty without one."""
    if (pod.get("spec") or {}).get("nodeName"):
        return ""  # the API server keeps it in the status of some bound pods
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


def holds_room(pod: Mapping[str, Any], version: Version | None) -> bool:
    """Return whether kube-scheduler keeps the room of a nominated pod; None is a new version."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    gated = bool(pod["spec"].get("schedulingGates"))
    return not gated or version is None or version >= _GATED_HOLD_ROOM


class Nominations:
    """The nominated pods of a world that are not fed, and their stand-ins."""

    def __init__(self, store: WorldStore, world: World) -> None:
        self._store = store
        self._waiting: dict[str, list[Object]] = {}  # by schedulerName
        self._held: dict[str, Object] = {}  # namespace/name of a pod -> its stand-in
        for entry in world.objects[PODS].values():
            if not entry.node and b'"nominatedNodeName"' in entry.content:
                pod = entry.object()
                if nominated(pod) and "deletionTimestamp" not in pod["metadata"]:
                    self._waiting.setdefault(pod["spec"]["schedulerName"], []).append(pod)

    def profiles(
        self, config: Mapping[str, Any], names: Collection[str], gates: Callable[[], Gates]
    ) -> list[dict[str, Any]]:
        """Hold the room of pods for the scheduler of a configuration that serves these names.

        Another scheduler does not know their nominations. Return the profile that it needs.
        """
        pods = [pod for name in names for pod in self._waiting.pop(name, ())]
        if not pods:
            return []
        known = gates()
        profile = f"simulation-nominated-{len(self._held)}"  # one for each scheduler
        for pod in pods:
            if holds_room(pod, known.version):
                self._held[pod_name(pod)] = self._stand_in(pod, profile)
        self.hold(pods)
        return [
            # Without a plugin of postFilter, kube-scheduler drops the nomination of a pod that
            # fits nowhere.
            only(
                profiles_of(config)[0],
                known,
                profile,
                filters=["NodeAffinity"],
                post_filters=["DefaultPreemption"],
            )
        ]

    def hold(self, pods: Iterable[Object]) -> None:
        """Hold the room of those pods that have a stand-in."""
        for pod in pods:
            if stand_in := self._held.get(pod_name(pod)):
                self._store.put(PODS, stand_in)

    def release(self, pod: Object) -> None:
        """Free the room of a pod until it is held again."""
        if stand_in := self._held.get(pod_name(pod)):
            metadata = stand_in["metadata"]
            self._store.delete(PODS, (metadata["namespace"], metadata["name"]))

    def _stand_in(self, pod: Object, profile: str) -> Object:
        name = f"{_STAND_IN}-{len(self._held)}"
        dropped = ("schedulingGates", *GROUP_FIELDS)
        spec = {key: value for key, value in pod["spec"].items() if key not in dropped}
        return {
            **pod,
            "metadata": {**pod["metadata"], "name": name, "uid": name},
            "spec": {
                **spec,
                "schedulerName": profile,
                "nodeSelector": {_STAND_IN: "true"},
                "preemptionPolicy": "Never",
            },
            "status": {"phase": "Pending", "nominatedNodeName": nominated(pod)},
        }
