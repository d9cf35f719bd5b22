"""The status of a LoadPolicy: conditions, and of how many nodes the load is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.findings import listing
from ..base.objects import Object
from ..base.times import rfc3339, timestamp
from ..kube.resource import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS
from ..load.policy import NODE_METRICS, sentence
from ..model.plan import Event
from ..model.snapshot import Snapshot
from ..status.accepted import ACCEPTED, HELD, LEFT_OUT, accepted_version, remembered
from ..status.conditions import AS_EXPECTED, Condition, aggregate, merge_conditions
from ..status.object_status import Report
from .load_state import Said, read_said

if TYPE_CHECKING:
    from .plan import Judged

ANOTHER: Final = "AnotherPolicy"
SYNC_ERROR: Final = "SyncError"
SILENCE: Final = 420.0
"""Seconds: an annotator that has said nothing for so long does not work; it says something at least
every five minutes."""
START: Final = 120.0
"""Seconds that all of it has to come up, image pulls included."""
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Facts:
    """What a status is made of.

    Attributes:
        obj: the LoadPolicy.
        judged: what is to be in force.
        policy: the digest of the file that is to be; empty if there is none.
        another: the LoadPolicy that has the nodes instead; empty if this one has.
    """

    obj: Object
    judged: Judged
    policy: str = ""
    another: str = ""

    @property
    def name(self) -> str:
        """Of the object."""
        return str(self.obj["metadata"]["name"])


def report(snapshot: Snapshot, facts: Facts) -> Report:
    """The status as it should be."""
    before: Mapping[str, Any] = facts.obj.get("status") or {}
    said = _said(snapshot, facts)
    accepted = _accepted(facts, before)
    available, wait = _available(snapshot, facts, said)
    trouble = snapshot.loads.troubles.get(facts.name, "")
    degraded = _degraded(accepted, available, trouble, said, _exporters(snapshot, facts))
    found = (accepted, available, degraded)
    generation = int(facts.obj["metadata"].get("generation") or 0)
    in_force = dict(facts.judged.spec) if accepted.status == "True" else None
    status = remembered(before, generation, in_force)
    conditions = before.get("conditions") or ()
    status["conditions"] = merge_conditions(conditions, found, snapshot.now)
    if facts.judged.request is not None and not facts.another:
        status["source"] = facts.judged.request.policy.source.type
    if said.at is not None:
        status |= _counts(said)
    serious = [
        one.message or one.reason
        for one in (accepted, available)
        if one.status != "True" and one.reason != "Starting"
    ]
    return Report(
        status,
        _events(facts.name, before, status),
        aggregate([*serious, *([trouble] if trouble else [])]),
        wait,
    )


def _said(snapshot: Snapshot, facts: Facts) -> Said:
    if facts.another or facts.judged.request is None:
        return Said()
    return read_said(snapshot.loads.objects.get(CONFIG_MAPS, {}).get(names.LOAD_STATE))


def _counts(said: Said) -> dict[str, Any]:
    assert said.at is not None  # noqa: S101 - the caller has looked
    counts = {
        "total": said.nodes, "known": said.known, "stale": said.stale, "missing": said.missing
    }  # fmt: skip
    found: dict[str, Any] = {"lastCycle": rfc3339(said.at), "nodes": counts}
    if said.stale_names:
        found["staleNodes"] = list(said.stale_names)
    if said.missing_names:
        found["missingNodes"] = list(said.missing_names)
    return found


# --- conditions -------------------------------------------------------------------------------


def _accepted(facts: Facts, before: Mapping[str, Any]) -> Condition:
    wrong = aggregate(sentence(problem) for problem in facts.judged.problems)
    if facts.another:
        message = (
            f'LoadPolicy "{facts.another}" is older and annotates the same nodes; there is one for '
            "all of them: delete one of the two"
        )
        return Condition(names.ACCEPTED, "False", ANOTHER, message)
    if not wrong:
        return Condition(names.ACCEPTED, "True", ACCEPTED)
    if facts.judged.held:
        message = f"{accepted_version(before)} stays in force\n{wrong}"
        return Condition(names.ACCEPTED, "False", HELD, message)
    return Condition(names.ACCEPTED, "False", LEFT_OUT, f"no version of it can be used\n{wrong}")


def _available(snapshot: Snapshot, facts: Facts, said: Said) -> tuple[Condition, float | None]:
    """Whether load is measured and written down, and in how many seconds that may change."""
    if facts.another or facts.judged.request is None:
        return _is_not("NotInForce", "it is not in force"), None
    deployments = snapshot.loads.objects.get(DEPLOYMENTS, {})
    deployment = deployments.get(f"{names.LOAD_ANNOTATOR}-{facts.name}") or {}
    ready = int((deployment.get("status") or {}).get("readyReplicas") or 0)
    age = (snapshot.now - said.at).total_seconds() if said.at is not None else None
    allowed = max(SILENCE, 3 * facts.judged.request.policy.cycle)
    born = timestamp(facts.obj["metadata"].get("creationTimestamp"))
    left = START - (snapshot.now - born).total_seconds() if born is not None else 0.0
    if not ready:
        message = "no pod of the annotator is Ready"
        if left > 0:
            return _is_not("Starting", message), left + 1.0
        return _is_not("NoReadyAnnotator", message), None
    if age is None or age > allowed:
        if age is None and left > 0:
            return _is_not("Starting", "the first cycle is not over"), left + 1.0
        when = f"for {age:.0f} s" if age is not None else "yet"
        return _is_not("NoCycle", f"the annotator has not reported a cycle {when}"), None
    wait = allowed - age + 1.0
    if not said.known and said.nodes:
        why = f": {said.error}" if said.error else ""
        return _is_not("NoLoadKnown", f"the load of no node is known{why}"), wait
    message = f"the load of {said.known} of {said.nodes} nodes is known"
    return Condition(names.AVAILABLE, "True", AS_EXPECTED, message), wait


def _is_not(reason: str, message: str) -> Condition:
    return Condition(names.AVAILABLE, "False", reason, message)


def _exporters(snapshot: Snapshot, facts: Facts) -> str:
    """How many pods of the exporter are not Ready; empty if all are."""
    request = facts.judged.request
    if request is None or request.policy.source.type != NODE_METRICS or facts.another:
        return ""
    found = snapshot.loads.objects.get(DAEMON_SETS, {}).get(f"{names.NODE_METRICS}-{facts.name}")
    status = (found or {}).get("status") or {}
    wanted = int(status.get("desiredNumberScheduled") or 0)
    ready = int(status.get("numberReady") or 0)
    if ready >= wanted:
        return ""
    return f"node-metrics is Ready on {ready} of {wanted} nodes"


def _degraded(
    accepted: Condition, available: Condition, trouble: str, said: Said, exporters: str
) -> Condition:
    found: list[tuple[str, str]] = []
    if accepted.status != "True":
        found.append((accepted.reason, accepted.message))
    if trouble:
        found.append((SYNC_ERROR, trouble))
    if available.status != "True" and available.reason not in ("Starting", "NotInForce"):
        found.append((available.reason, available.message))
    if said.stale or said.missing:
        found.append(("NodesUnknown", _unknown(said)))
    if exporters:
        found.append(("ExporterNotReady", exporters))
    if not found:
        return Condition(names.DEGRADED, "False", AS_EXPECTED)
    return Condition(names.DEGRADED, "True", found[0][0], aggregate(text for _, text in found))


def _unknown(said: Said) -> str:
    parts = []
    for count, some, what in (
        (said.stale, said.stale_names, "is stale"),
        (said.missing, said.missing_names, "was never known"),
    ):
        if count:
            shown = listing(some[:_SHOWN]).replace(" or ", " and ")
            more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
            where = f" ({shown}{more})" if shown else ""
            parts.append(f"the load of {count} of {said.nodes} nodes {what}{where}")
    why = f": {said.error}" if said.error else ""
    return f"{'; '.join(parts)}{why}; pods are placed there as if it were average"


# --- events -----------------------------------------------------------------------------------


def _events(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    """One line for each condition that turned bad, why if that changes, and when it is good."""
    old = {c["type"]: c for c in before.get("conditions") or ()}
    events = []
    for condition in after["conditions"]:
        kind, status = condition["type"], condition["status"]
        if kind not in (names.ACCEPTED, names.AVAILABLE):
            continue
        was = old.get(kind, {})
        seen = ("status", "reason")
        starting = status != "True" and condition.get("reason") in ("Starting", "NotInForce")
        first = not was and (status == "True" or kind == names.AVAILABLE)
        if starting or first or [was.get(key) for key in seen] == [condition.get(k) for k in seen]:
            continue
        text = condition.get("message") or condition.get("reason", "")
        message = f'LoadPolicy "{name}": {kind} is {status}: {text}'
        events.append(
            Event("LoadPolicyStatusChanged", message, "Normal" if status == "True" else "Warning")
        )
    return tuple(events)
