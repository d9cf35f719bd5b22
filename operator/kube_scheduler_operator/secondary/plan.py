"""One SecondaryScheduler: what is there and what is asked for in, writes and status out.

The content that is asked for is rolled out unless it is wrong, or is known not to run; then the
last one that did well stays or comes back. The Deployment never takes a pod away before its
successor is Ready, so the schedulers that run go on all along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object, label
from ..kube.resource import CONFIG_MAPS, DEPLOYMENTS, PODS, SECONDARY_SCHEDULERS
from ..model.apply import keep
from ..model.plan import Action, Delete
from ..model.snapshot import Snapshot
from ..schedulerconfig.versions import Version
from ..status.object_status import Report, with_status
from .content import Content, config_map, content_of
from .desired import Wanted
from .history import BAD, Entry, History, begun, find, judged, kept, last_good
from .history import read as read_history
from .objects import Existing, keep_deployment, keep_static_objects, running_hash
from .outcome import judge
from .pods import Pod
from .pods import read as read_pod
from .status import Said, report


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be done for one SecondaryScheduler.

    Attributes:
        actions: writes, in order, the status among them.
        degraded: what is wrong with it; empty if nothing is.
        asked: what is remembered of the content that is asked for; None: nothing.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
    """

    actions: tuple[Action, ...]
    degraded: str = ""
    requeue_after: float | None = None
    asked: Entry | None = None


def plan(
    snapshot: Snapshot,
    obj: Object,
    wanted: Wanted,
    version: Version,
    further: Sequence[Finding] = (),
) -> Planned:
    """What is to be done.

    Args:
        snapshot: what was seen.
        obj: the SecondaryScheduler.
        wanted: what it comes to.
        version: of its kube-scheduler.
        further: findings that are not about its own configuration; a blocking one holds it back.
    """
    name = obj["metadata"]["name"]
    existing = snapshot.secondaries.objects.get(name, {})
    findings = (*further, *wanted.findings)
    if any(
        finding.condition == names.DEGRADED and finding.reason == NOT_ALLOWED for finding in further
    ):
        # Nothing is known of that namespace, and nothing may be written there.
        said = Said(obj=obj, wanted=wanted, findings=findings, readable=False)
        return _conclude(snapshot, obj, report(snapshot, said), ())
    deployment = existing.get(DEPLOYMENTS, {}).get(name)
    pods = [read_pod(pod) for _, pod in sorted(existing.get(PODS, {}).items())]
    history = read_history(obj)
    verdict = judge(snapshot, deployment, pods, find(history, running_hash(deployment)))
    if verdict.outcome:
        history = judged(
            history, running_hash(deployment), verdict.outcome, snapshot.now, verdict.message
        )
    contents = _contents(existing)
    content = None if any(finding.blocking for finding in findings) else wanted.content
    target = _target(content, history, running_hash(deployment), contents)
    work: list[Action] = []
    if target is not None:
        history = begun(history, target.hash, snapshot.now)
        work += keep_static_objects(wanted.request, existing)
        work += _keep_config_map(wanted, target, existing)
        work += keep_deployment(wanted.request, target, existing)
    said = Said(
        obj=obj,
        wanted=wanted,
        findings=findings,
        deployment=deployment,
        pods=tuple(pods),
        history=history,
        verdict=verdict,
        content=content,
        target=target,
        version=version,
    )
    if not work:
        # Only when there is nothing else to do: in a hurry, the past can wait.
        work += _prune(existing, history, pods, target, running_hash(deployment))
    asked = find(history, content.hash) if content is not None else None
    return replace(_conclude(snapshot, obj, report(snapshot, said), work), asked=asked)


NOT_ALLOWED = "NamespaceNotAllowed"
"""Reason of the finding that the operator was not told of a namespace."""


def _contents(existing: Existing) -> dict[str, Content]:
    """The contents whose ConfigMaps are there, by hash; what somebody made up is not among them."""
    found = {}
    for config_map_ in existing.get(CONFIG_MAPS, {}).values():
        content_hash = label(config_map_, names.CONFIG_HASH_LABEL)
        leaving = "deletionTimestamp" in config_map_["metadata"]
        content = content_of(config_map_)
        if not leaving and content_hash == content.hash:
            found[content_hash] = content
    return found


def _target(
    wanted: Content | None,
    history: History,
    running: str,
    contents: dict[str, Content],
) -> Content | None:
    """The content that is to run; None if there is none that could."""
    known = find(history, wanted.hash) if wanted is not None else None
    if wanted is not None and (known is None or known.outcome not in BAD):
        return wanted
    entry = find(history, running)
    if wanted is None and running in contents and (entry is None or not entry.bad):
        return contents[running]
    good = last_good(history, contents.__contains__)
    if good:
        return contents[good]
    # There is nothing to go back to: what is there is as good as anything.
    return wanted or contents.get(running)


def _keep_config_map(wanted: Wanted, target: Content, existing: Existing) -> tuple[Action, ...]:
    """Make the ConfigMap of `target`; one that is there can only have lost its owner or labels."""
    made = config_map(wanted.request, target)
    return keep(CONFIG_MAPS, existing.get(CONFIG_MAPS, {}), made, ())


def _prune(
    existing: Existing,
    history: History,
    pods: Sequence[Pod],
    target: Content | None,
    running: str,
) -> list[Action]:
    """Deletions of ConfigMaps that nothing runs and nothing could go back to."""
    in_use = [*(pod.hash for pod in pods), running, *([target.hash] if target else [])]
    keep = kept(history, in_use)
    return [
        Delete(CONFIG_MAPS, obj)
        for _, obj in sorted(existing.get(CONFIG_MAPS, {}).items())
        if label(obj, names.CONFIG_HASH_LABEL) not in keep
        and "deletionTimestamp" not in obj["metadata"]
    ]


def _conclude(snapshot: Snapshot, obj: Object, found: Report, work: Sequence[Action]) -> Planned:
    refused = obj["metadata"]["name"] in snapshot.secondaries.troubles
    actions = with_status(SECONDARY_SCHEDULERS, obj, found, work, refused=refused)
    return Planned(actions, found.degraded, found.requeue_after)
