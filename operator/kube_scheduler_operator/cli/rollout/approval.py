"""Plans `kubectl scheduler rollout approve`: what is held, why, and the write that releases it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...base import names
from ...base.objects import Object, mapping
from ...operator.controlplane.desired import desired_content
from ...operator.controlplane.placement_gate import HELD, SIMULATING, recorded_check
from ...operator.controlplane.placement_rules import rules_hash, rules_of
from ...operator.controlplane.revision.history import Revision
from ...operator.model.snapshot import Snapshot
from ..cluster.compare import changes, parse_revision
from ..console.errors import CommandError


@dataclass(frozen=True, slots=True)
class Approval:
    """An edit that is held."""

    configuration: str  # the hash of its configuration
    effect: tuple[str, ...]  # what it changes for Pods, or why that is not known, a sentence each
    changes: tuple[str, ...] | None  # in the configuration; None: the objects have changed since
    patch: Mapping[str, Any]  # the write that approves it; it fails if the object changes meanwhile


def plan_approval(snapshot: Snapshot, running: Revision | None) -> Approval:
    """Plan the approval of the edit that is held.

    `running` is the revision that nodes run; None if it is not known.

    Raises:
        CommandError: nothing is held.
    """
    settings = (snapshot.operator_settings or {}).get(names.CLUSTER)
    record = recorded_check(snapshot)
    state, message = record.get("state"), str(record.get("message") or "")
    if settings is None or not record:
        raise CommandError(
            "no edit is held: spec.placementCheck.mode of OperatorSettings is not Gate, or no edit "
            "has changed where Pods are placed"
        )
    if state == SIMULATING:
        raise CommandError(f"{message}: wait for its result, kubectl scheduler status shows it")
    if state != HELD:
        raise CommandError(f"no edit is held; the last one: {message}")
    configuration = str(record.get("configuration") or "")
    return Approval(
        configuration,
        tuple(_sentences(record)),
        _changes(snapshot, running, configuration),
        _patch(settings, configuration),
    )


def _sentences(record: Mapping[str, Any]) -> Iterator[str]:
    effect = str(record.get("effect") or record.get("message") or "")
    if record.get("result") != "Worse":
        yield f"what it changes for Pods is not known: {effect}"
    else:
        yield from effect.split("; ")


def _changes(
    snapshot: Snapshot, running: Revision | None, configuration: str
) -> tuple[str, ...] | None:
    content, _ = desired_content(snapshot)
    if content is None or running is None:
        return None
    rules = rules_of(content)
    if rules is None or rules_hash(rules) != configuration:
        return None
    return changes(parse_revision(running.content), parse_revision(content))


def _patch(settings: Object, configuration: str) -> Mapping[str, Any]:
    version = str(mapping(settings.get("metadata")).get("resourceVersion") or "")
    return {
        "metadata": {"resourceVersion": version},
        "spec": {"placementCheck": {"approved": configuration}},
    }
