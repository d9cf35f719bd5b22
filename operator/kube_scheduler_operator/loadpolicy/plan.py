"""One LoadPolicy: what is there and what is asked for in, writes and status out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Problem
from ..base.objects import Object, label, mapping
from ..kube.resource import CONFIG_MAPS, DAEMON_SETS, LOAD_POLICIES
from ..load.policy import FAMILIES, FILE
from ..model.apply import apply, keep
from ..model.plan import Action, Delete, Event
from ..model.snapshot import Snapshot
from ..model.workloads import keep_workload
from ..status.object_status import Report, with_status
from .load_state import policy_digest, read_said, read_written
from .objects import config_map, place_of, state_config_map, workloads
from .request import Read, Request, read
from .status import Facts, report


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be done for one LoadPolicy.

    Attributes:
        actions: writes, in order, the status among them.
        degraded: what is wrong with it, as far as the cluster should know; empty if nothing is.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
    """

    actions: tuple[Action, ...]
    degraded: str = ""
    requeue_after: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What is to be in force.

    Attributes:
        request: None if no version of it can be.
        spec: what it was read from.
        problems: why the spec that is asked for is not it.
        held: an earlier one is in force instead.
    """

    request: Request | None
    spec: Mapping[str, Any]
    problems: Sequence[Problem] = ()
    held: bool = False


ANOTHER: Final = "AnotherPolicy"


def judge(obj: Object) -> Judged:
    """The spec, or the one that was accepted last if there is something wrong with it."""
    spec = mapping(obj.get("spec"))
    asked: Read = read(spec)
    if asked.request is not None:
        return Judged(asked.request, spec)
    kept = mapping(mapping(obj.get("status")).get("accepted"))
    if kept:
        earlier = read(kept).request
        if earlier is not None:
            return Judged(earlier, kept, asked.problems, held=True)
    return Judged(None, spec, asked.problems)


def plan(snapshot: Snapshot, obj: Object, first: str) -> Planned:
    """What is to be done.

    Args:
        snapshot: what was seen.
        obj: the LoadPolicy.
        first: the name of the LoadPolicy that has the nodes: this one's or an older one's.
    """
    name = obj["metadata"]["name"]
    if name != first:
        return _conclude(snapshot, obj, report(snapshot, Facts(obj, judge(obj), another=first)), ())
    judged = judge(obj)
    work: list[Action] = []
    text = ""
    if judged.request is not None:
        remove = _to_remove(snapshot, judged.request)
        wanted = config_map(snapshot, obj, judged.request, remove)
        text = wanted["data"][FILE]
        work += _keep_state(snapshot, judged.request, _current(snapshot, wanted))
        work += keep(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), wanted, ("data",))
        work += _keep_workloads(snapshot, obj, judged.spec)
    facts = Facts(obj, judged, policy=policy_digest(text) if text else "")
    return _conclude(snapshot, obj, report(snapshot, facts), work)


def _existing(snapshot: Snapshot, resource: Any) -> Mapping[str, Object]:
    return snapshot.loads.objects.get(resource, {})


def _state(snapshot: Snapshot) -> Object | None:
    return _existing(snapshot, CONFIG_MAPS).get(names.LOAD_STATE)


def _to_remove(snapshot: Snapshot, request: Request) -> tuple[str, ...]:
    """Families that nodes may have and that are not written any more."""
    wanted = request.policy.families
    return tuple(f for f in read_written(_state(snapshot)) if f not in wanted)


def _current(snapshot: Snapshot, wanted: Mapping[str, Any]) -> str:
    """The digest of the file that is there, if it is the one that is wanted; else nothing."""
    found = _existing(snapshot, CONFIG_MAPS).get(wanted["metadata"]["name"]) or {}
    text = mapping(found.get("data")).get(FILE)
    return policy_digest(text) if text == wanted["data"][FILE] else ""


def _keep_state(snapshot: Snapshot, request: Request, current: str) -> tuple[Action, ...]:
    """Say what may be on nodes before it is, and no longer once it has been taken away."""
    state = _state(snapshot)
    said = read_said(state)
    gone = said.removed if current and said.policy == current else ()
    written = {*read_written(state), *request.policy.families}
    written -= {*gone} - {*request.policy.families}
    wanted = state_config_map(snapshot, [family for family in FAMILIES if family in written])
    # What the annotator says there is not ours.
    wanted["data"] = {**mapping((state or {}).get("data")), **wanted["data"]}
    return apply(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), wanted, ("data",))


def _keep_workloads(snapshot: Snapshot, obj: Object, spec: Mapping[str, Any]) -> tuple[Action, ...]:
    actions: list[Action] = []
    made = workloads(obj, spec, place_of(snapshot))
    for resource, wanted, spec_hash in made:
        found = _existing(snapshot, resource).get(wanted["metadata"]["name"])
        why = "spec of the LoadPolicy or the operator's image changed"
        actions += keep_workload(
            resource, found, wanted, spec_hash, what=f"specification {spec_hash}", why=why
        )
    kept = {wanted["metadata"]["name"] for _, wanted, _ in made}
    name = obj["metadata"]["name"]
    for other, found in sorted(_existing(snapshot, DAEMON_SETS).items()):
        leaving = "deletionTimestamp" in found["metadata"]
        if other not in kept and label(found, names.LOAD_LABEL) == name and not leaving:
            event = Event("DaemonSetDeleted", f"Deleted DaemonSet/{other}: the source is another")
            actions.append(Delete(DAEMON_SETS, found, (event,)))
    return tuple(actions)


def _conclude(snapshot: Snapshot, obj: Object, found: Report, work: Sequence[Action]) -> Planned:
    refused = obj["metadata"]["name"] in snapshot.loads.troubles
    actions = with_status(LOAD_POLICIES, obj, found, work, refused=refused)
    return Planned(actions, found.degraded, found.requeue_after)
