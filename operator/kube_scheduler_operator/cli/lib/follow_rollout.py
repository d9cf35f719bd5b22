"""What `kubectl scheduler rollout watch` tells: from two states of KubeScheduler to lines. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ...base import names
from ...controlplane.rollout.node_statuses import Entry, read_entry


class End(Enum):
    """How a rollout can end."""

    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class State:
    """A rollout as KubeScheduler shows it.

    Attributes:
        latest: the newest revision.
        nodes: their entries, by name.
        waits: what each node waits for.
        trouble: what is wrong but is still being tried.
        end: whether it is over; None while it goes on.
        sentence: how it ended.
    """

    latest: int
    nodes: Mapping[str, Entry]
    waits: Mapping[str, str]
    trouble: str
    end: End | None
    sentence: str


# What keeps an edit from becoming a revision, and what ends one.
_FAILURES = (
    names.OVERRIDES_DEGRADED,
    names.TARGET_CONFIG_DEGRADED,
    names.CONFIG_OBSERVATION_DEGRADED,
    names.PREFLIGHT_DEGRADED,
    names.NODE_INSTALLER_DEGRADED,
)
_FAILS_NOTHING = ("PolicyRemoved", "FeatureGatesNotFound")  # reasons that hold nothing up


def read_state(kubescheduler: Mapping[str, Any]) -> State:
    """How far the rollout is."""
    status = kubescheduler.get("status") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    entries = {raw["nodeName"]: read_entry(raw) for raw in status.get("nodeStatuses") or ()}
    progress = conditions.get(names.NODE_INSTALLER_PROGRESSING, {})
    failing = [
        condition
        for condition in (conditions.get(type_, {}) for type_ in _FAILURES)
        if condition.get("status") == "True" and not _is_advice(condition)
    ]
    final = [c for c in failing if _is_final(c)]
    generation = (kubescheduler.get("metadata") or {}).get("generation", 0)
    looked = status.get("observedGeneration", 0) == generation
    management = (kubescheduler.get("spec") or {}).get("managementState") or "Managed"
    end: End | None = None
    sentence = ""
    if management == "Unmanaged":
        end = End.FAILED
        sentence = "managementState of the KubeScheduler is Unmanaged: nothing is rolled out"
    elif looked and final:
        end, sentence = End.FAILED, _text(final[0])
    elif looked and progress.get("status") == "False" and not any(
        entry.target for entry in entries.values()
    ):  # fmt: skip
        if progress.get("reason") in ("AllNodesAtLatestRevision", "Removed"):
            end, sentence = End.DONE, str(progress.get("message", ""))
        elif progress.get("reason") == "RevisionRejected":
            end, sentence = End.FAILED, str(progress.get("message", ""))
    return State(
        latest=int(status.get("latestAvailableRevision") or 0),
        nodes=entries,
        waits=_waits(str(progress.get("message", "")), list(entries)),
        trouble=_text(failing[0]) if failing and not final else "",
        end=end,
        sentence=sentence,
    )


def _is_advice(condition: Mapping[str, Any]) -> bool:
    """Whether it holds nothing up; of several messages the reason tells only about the first."""
    alone = "\n" not in str(condition.get("message", ""))
    return alone and condition.get("reason") in _FAILS_NOTHING


def _is_final(condition: Mapping[str, Any]) -> bool:
    """A node that cannot take a revision is tried again; all else waits for an edit."""
    retried = condition["type"] == names.NODE_INSTALLER_DEGRADED
    return not retried or condition.get("reason") == "RevisionFailed"


def _text(condition: Mapping[str, Any]) -> str:
    return f"{condition['type']}: {condition.get('message') or condition.get('reason', '')}"


def _waits(message: str, nodes: Sequence[str]) -> dict[str, str]:
    """What each node waits for, out of "moving to revision 2; …; NODE: what; NODE: what"."""
    found: dict[str, str] = {}
    current = ""
    for part in message.split("; "):
        node, colon, what = part.partition(": ")
        if colon and node in nodes:
            current, found[node] = node, what
        elif current:  # the text has a semicolon of its own
            found[current] += f"; {part}"
    return found


def tell(before: State | None, after: State) -> list[str]:
    """One line for everything that is new in `after`."""
    lines = []
    if before is None or before.latest != after.latest:
        lines.append(
            f"revision {after.latest} is the newest" if after.latest else "no revision yet"
        )
    for name, entry in sorted(after.nodes.items()):
        old = before.nodes.get(name) if before is not None else None
        wait = after.waits.get(name, "")
        goal = entry.target or (after.latest if wait else 0)
        move = f"{entry.current or 'stock'} → {goal}"
        if old is None and not goal:
            lines.append(f"{name}: runs {entry.current or 'no revision yet'}")
        elif old is not None and old.current != entry.current:
            lines.append(f"{name}: runs {entry.current}, was {old.current or 'stock'}")
        if entry.target and (old is None or old.target != entry.target):
            lines.append(f"{name}: {move}: its turn")
        if wait and (before is None or before.waits.get(name) != wait):
            lines.append(f"{name}: {move}: {wait}")
        if entry.failed_revision and (
            old is None
            or (old.failed_revision, old.failed_time) != (entry.failed_revision, entry.failed_time)
        ):
            said = "; ".join(entry.failed_errors) or entry.failed_reason
            lines.append(f"{name}: revision {entry.failed_revision} failed: {said}")
    gone = sorted(before.nodes.keys() - after.nodes.keys()) if before is not None else ()
    lines += [f"{name}: is gone" for name in gone]
    if after.trouble and (before is None or before.trouble != after.trouble):
        lines.append(after.trouble)
    return lines
