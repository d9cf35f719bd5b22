"""What `kubectl scheduler why` shows about a group of pods, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_MESSAGE
from ...simulate.group_diagnosis import GroupExplanation
from ..console.output import counted, first_names

_SHOWN: Final = 8


def group_lines(group: GroupExplanation) -> Iterator[str]:
    """Yield what kube-scheduler does with a group; the pod that does not fit comes later."""
    policy = f"minCount {group.min_count}" if group.min_count else "policy basic"
    named = f" ({policy})" if group.exists else ""
    yield (
        f"{group.title}{named}: {counted(len(group.running), 'Pod')} of it with a node, "
        f"{len(group.waiting)} without."
    )
    if group.problem:
        yield f"What its scheduler decides is not known: {group.problem}."
    elif group.unread:
        yield f"{group.unread}. Each of its Pods is scheduled alone."
    elif not group.exists:
        yield (
            f"{group.title} does not exist: kube-scheduler tries none of its Pods before it does."
        )
    elif group.waiting:
        yield from _decision(group)


def _decision(group: GroupExplanation) -> Iterator[str]:
    if group.composite:
        name = foreign(group.composite, FOREIGN_MESSAGE)
        yield f"It is placed together with the other groups below CompositePodGroup {name}."
    if group.topology:
        yield f"All its Pods have to be in one domain of {', '.join(group.topology)}."
    if group.unenforced:
        yield f"{group.unenforced}, so each of its Pods that fits is placed."
    if group.missing and not group.unenforced:
        yield (
            f"kube-scheduler tries none of them before {group.min_count} Pods of it exist: "
            f"{group.min_count - group.missing} of {group.min_count} do."
        )
    elif group.gates_hold:
        gated = first_names(group.gated)
        yield f"kube-scheduler tries none of them while one has scheduling gates: {gated}."
    elif group.decision.placed:
        yield from _placed(group)
    else:
        yield "kube-scheduler places none of them now."
    if not group.decision.placed:
        yield from _together(group)


def _placed(group: GroupExplanation) -> Iterator[str]:
    now = group.decision
    if now.preempted:
        count = counted(len(now.preempted), "Pod")
        yield f"kube-scheduler would preempt {count} for it: {first_names(now.preempted)}."
    when = "then" if now.preempted else "now"
    yield f"kube-scheduler would place {len(now.placed)} of {len(group.waiting)} {when}:"
    yield from _nodes(now.placed)
    yield from _reasons(now.pending)


def _together(group: GroupExplanation) -> Iterator[str]:
    together, preempted = group.together, group.decision.preempted
    if preempted:
        count = counted(len(preempted), "Pod")
        names = first_names(preempted)
        yield f"It would preempt {count} for single Pods of the group all the same: {names}."
    fitting = len(group.running) + len(together.placed)
    own = " (with those that run)" if group.running else ""
    need = f", and {group.min_count} have to" if group.min_count and not group.unenforced else ""
    gates = " without their scheduling gates" if group.gated else ""
    yield f"{counted(fitting, 'Pod')} of it can be placed at the same time{own}{gates}{need}:"
    yield from _nodes(together.placed)
    yield from _reasons(together.pending)


def _nodes(placed: Mapping[str, str]) -> Iterator[str]:
    by_node: dict[str, list[str]] = {}
    for pod, node in placed.items():
        by_node.setdefault(node, []).append(pod)
    rows = sorted(by_node.items())
    for node, pods in rows[:_SHOWN]:
        yield f"  fits on {node}: {first_names(pods)}"
    if len(rows) > _SHOWN:
        yield f"  … and on {len(rows) - _SHOWN} more nodes"


def _reasons(pending: Mapping[str, str]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for pod, reason in pending.items():
        by_reason.setdefault(foreign(reason, FOREIGN_MESSAGE), []).append(pod)
    rows = sorted(by_reason.items(), key=lambda row: -len(row[1]))
    for reason, pods in rows[:_SHOWN]:
        yield f"  without a node: {first_names(pods)}"
        yield f"    kube-scheduler: {reason}"
    if len(rows) > _SHOWN:
        yield f"  … and {len(rows) - _SHOWN} more reasons"
