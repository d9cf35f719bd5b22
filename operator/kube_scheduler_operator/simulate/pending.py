"""All waiting pods by cause, as kube-scheduler sees them now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from .configuration import profiles_of
from .kinds import Object
from .owners import owner_of
from .probes import ALL, probe, reasons, whole_reason
from .run import Run, RunOptions, gates_of, probing_all
from .why import Fix, explain
from .world import UNKNOWN_TIME, World

GATED: Final = "gated"
NOT_SERVED: Final = "no scheduler"
UNSCHEDULABLE: Final = "unschedulable"
QUEUED: Final = "queued"


@dataclass(slots=True)
class WaitingGroup:
    """Pods that wait for the same reason."""

    kind: str  # one of the constants above
    cause: str  # in one line
    pods: list[Object] = field(default_factory=list)  # oldest first
    # the smallest change with which the oldest one fits; None: not tried, or none helps
    fix: Fix | None = None
    tried: bool = False  # whether changes were tried

    @property
    def since(self) -> str:
        """When the oldest pod was created; empty: unknown."""
        since = str(self.pods[0]["metadata"].get("creationTimestamp", ""))
        return "" if since == UNKNOWN_TIME else since

    @property
    def owners(self) -> list[str]:
        """The controllers of the pods, as Kind/name."""
        return list(dict.fromkeys(owner_of(pod) for pod in self.pods))


async def waiting_groups(
    world: World, options: RunOptions, namespace: str | None = None, fixes: int = 0
) -> list[WaitingGroup]:
    """Return the waiting pods of a namespace, or of all (None), by cause; the largest group first.

    Changes are tried for the first `fixes` groups.
    """
    pods = [
        pod
        for pod in world.pending()
        if namespace in (None, pod["metadata"]["namespace"])
        and "deletionTimestamp" not in pod["metadata"]
    ]
    groups: dict[tuple[str, str], WaitingGroup] = {}

    def put(kind: str, cause: str, pod: Object) -> None:
        groups.setdefault((kind, cause), WaitingGroup(kind, cause)).pods.append(pod)

    profiles = {profile["schedulerName"]: profile for profile in profiles_of(options.config)}
    served: dict[str, list[Object]] = {}
    for pod in pods:
        gates = [str(gate.get("name")) for gate in pod["spec"].get("schedulingGates") or ()]
        name = pod["spec"]["schedulerName"]
        if gates:
            put(GATED, f"has the scheduling gates {', '.join(gates)}", pod)
        elif name not in profiles:
            shown = foreign(name, FOREIGN_NAME)
            put(NOT_SERVED, f'no scheduler serves spec.schedulerName "{shown}"', pod)
        else:
            served.setdefault(name, []).append(pod)
    for name, chosen in served.items():
        for pod, (kind, cause) in zip(
            chosen, await _causes(world, options, profiles[name], chosen), strict=True
        ):
            put(kind, cause, pod)
    ordered = sorted(groups.values(), key=lambda group: (-len(group.pods), group.since))
    for group in [profile for profile in ordered if profile.kind == UNSCHEDULABLE][:fixes]:
        explained = await explain(world, group.pods[0], options)
        group.fix, group.tried = next(iter(explained.fixes), None), True
    return ordered


async def _causes(
    world: World, options: RunOptions, profile: Mapping[str, Any], pods: Sequence[Object]
) -> list[tuple[str, str]]:
    """Return (kind, cause) of a profile's pods, each tried alone in the world as it is."""
    async with Run(world, probing_all(options, profile, gates_of(options))) as run:
        probes = [probe(pod, f"simulation-{at:05d}", ALL) for at, pod in enumerate(pods)]
        decisions = list((await run.schedule(probes, settle=False)).values())
    causes = []
    for decision in decisions:
        if decision.candidates:
            causes.append((QUEUED, "fits: it is in the queue, or backs off"))
            continue
        texts = sorted({reason for _, reason in reasons(decision.message)})
        cause = "; ".join(texts) or whole_reason(decision.message)
        causes.append((UNSCHEDULABLE, cause))
    return causes
