"""Which revision numbers count, and by what proof.

Names, labels and annotations in the API are hints: a client that may write Pods or ConfigMaps can
set them, by mistake as well. A number counts

* if KubeScheduler's status has it: the operator's own record;
* if ConfigMaps have it, up to the number after that record, or with every copy and the hash of
  their content;
* if a program on a node has verified the revision's directory (operator/model/operand_pods.py).

A number that would be a large jump is reported and does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ....base.management import REMOVED, how_to_request
from ....base.objects import Object
from ....base.revision_number import LARGEST, LARGEST_JUMP, revision_number
from ...model import operand_pods
from ...model.operand_pods import Disks
from ...model.snapshot import Snapshot
from .history import Revision, read, status_name

LOOK_PATIENCE: Final = 60.0
"""Seconds for which a new number waits for a look at the disk of a node that shows a higher one."""


@dataclass(frozen=True, slots=True)
class KnownNumbers:
    history: tuple[Revision, ...]  # the revisions that count, oldest first
    advertised: int  # `status.latestAvailableRevision`; 0 if it is not plausible
    newest_on_disk: int  # the highest verified number on a node; 0 without one
    problem: str  # what does not count and what to do

    @property
    def in_api(self) -> int:
        return max(self.advertised, *(revision.number for revision in self.history), 0)


def known_numbers(snapshot: Snapshot, disks: Disks) -> KnownNumbers:
    reported = snapshot.status.get("latestAvailableRevision") or 0
    advertised = revision_number(reported)
    revisions = read(snapshot.config_maps, snapshot.platform.parts)
    counting = _counting(revisions, advertised, advertised)
    in_api = max(advertised, *(revision.number for revision in counting), 0)
    problems = []
    if reported and not advertised:
        problems.append(
            f"status.latestAvailableRevision {reported} is larger than {LARGEST} and does not "
            "count; numbering continues after the newest plausible revision"
        )
    newest = 0
    for node, disk in sorted(disks.items()):
        if in_api and disk.newest > in_api + LARGEST_JUMP:
            problems.append(
                f'node "{node}" has revision {disk.newest}, which is {disk.newest - in_api} above '
                "the newest one and does not count; remove its directory from "
                f"{snapshot.platform.resource_dir} on the node, and then the node's installer Pods"
            )
        else:
            newest = max(newest, disk.newest)
    history = _counting(revisions, advertised, max(advertised, newest))
    doubted = [status_name(revision.number) for revision in revisions if revision not in history]
    listed = sorted([*_implausible_names(snapshot.config_maps), *doubted])
    if listed:
        problems.append(
            f"{', '.join(listed)} in {snapshot.platform.target_namespace} does not "
            "count; delete it, because its number is not plausible, it is incomplete, or its "
            "content does not match its hash"
        )
    if max(in_api, newest) >= LARGEST:
        name = ((snapshot.kubescheduler or {}).get("metadata") or {}).get("name", "")
        problems.append(
            f"no revision number is left: {how_to_request(snapshot.platform, REMOVED)}, delete "
            f'KubeScheduler "{name}" and create it again'
        )
    return KnownNumbers(history, advertised, newest, "; ".join(problems))


def unseen_nodes(snapshot: Snapshot, disks: Disks, known: int) -> dict[str, float]:
    """Node -> seconds to wait until a program looks at its disk.

    The mirror pods of these nodes show a number above `known`. A label cannot delay a revision for
    longer than LOOK_PATIENCE.
    """
    waits = {}
    kubescheduler = snapshot.kubescheduler or {}
    for node, raw in snapshot.operand_pods.items():
        pod, disk = operand_pods.read(raw), disks.get(node)
        if pod.revision <= known or (disk is not None and disk.is_current(pod)):
            continue
        spec = (snapshot.nodes.get(node) or {}).get("spec")
        if spec is None or spec.get("unschedulable"):
            continue  # no guard is created there
        moments = (pod.created, operand_pods.created(kubescheduler))
        ages = [abs((snapshot.now - moment).total_seconds()) for moment in moments if moment]
        left = LOOK_PATIENCE - min(ages, default=LOOK_PATIENCE)
        if left > 0:
            waits[node] = left
    return waits


def _counting(history: Sequence[Revision], advertised: int, floor: int) -> tuple[Revision, ...]:
    """The revisions that count: without a gap after one that does, or with proof."""
    counting: list[Revision] = []
    for revision in history:
        number = revision.number
        expected = number <= max(floor, *(known.number for known in counting), 0) + 1
        plausible = not advertised or number <= advertised + LARGEST_JUMP
        if expected or (plausible and revision.intact):
            counting.append(revision)
    return tuple(counting)


def _implausible_names(config_maps: Mapping[str, Object]) -> list[str]:
    prefix = status_name(0).removesuffix("0")
    return [
        name
        for name in config_maps
        if name.startswith(prefix)
        and name.removeprefix(prefix).isdecimal()
        and not revision_number(name.removeprefix(prefix))
    ]
