"""The plan for one SecondaryScheduler: from its observed and desired state to writes and status.

The desired content is rolled out unless it is invalid or is known to fail; then the last known good
content stays or returns. The Deployment removes a pod only after its successor is Ready, so
scheduling continues during the rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object, annotation, label
from ..effective.secondary.compose import scheduler_names
from ..effective.secondary.scheduler import NOT_ALLOWED
from ..kube.resource import CONFIG_MAPS, DEPLOYMENTS, PODS, SECONDARY_SCHEDULERS
from ..model.apply import keep
from ..model.plan import Action, Delete
from ..model.snapshot import Snapshot
from ..schedulerconfig.versions import Version
from ..status.object_status import ObjectPlan, with_status
from .assignment import Claim
from .content import SecondaryContent, config_map, content_of
from .desired import DesiredScheduler
from .history import BAD, History, HistoryEntry, begun, find, kept, last_good, with_outcome
from .history import read as read_history
from .objects import Existing, keep_deployment, keep_static_objects, running_hash
from .outcome import content_outcome
from .pods import SchedulerPod
from .pods import read as read_pod
from .status import SchedulerState, report


def plan(
    snapshot: Snapshot,
    obj: Object,
    desired: DesiredScheduler,
    version: Version,
    further: Sequence[Finding] = (),
    claim: Claim | None = None,
) -> tuple[ObjectPlan, HistoryEntry | None]:
    """(the plan for `obj`, the history entry of the desired content if it was ever rolled out).

    `further` has the findings that are not about its configuration; a blocking one stops its
    rollout. `claim` has the pods of its `spec.assign`.
    """
    name = obj["metadata"]["name"]
    existing = snapshot.secondaries.objects.get(name, {})
    findings = (*further, *desired.findings)
    if any(
        finding.condition == names.DEGRADED and finding.reason == NOT_ALLOWED for finding in further
    ):
        # The operator can neither read nor write in that namespace.
        state = SchedulerState(
            obj=obj, desired=desired, findings=findings, readable=False, claim=claim
        )
        return with_status(snapshot, SECONDARY_SCHEDULERS, obj, report(snapshot, state), ()), None
    deployment = existing.get(DEPLOYMENTS, {}).get(name)
    pods = [read_pod(pod) for _, pod in sorted(existing.get(PODS, {}).items())]
    history = read_history(obj)
    result = content_outcome(snapshot, deployment, pods, find(history, running_hash(deployment)))
    if result.outcome:
        history = with_outcome(
            history, running_hash(deployment), result.outcome, snapshot.now, result.message
        )
    contents = _contents(existing)
    content = None if any(finding.blocking for finding in findings) else desired.content
    target = _target(content, history, running_hash(deployment), contents)
    work: list[Action] = []
    if target is not None:
        history = begun(history, target.hash, snapshot.now)
        work += keep_static_objects(desired.request, existing)
        work += _keep_config_map(obj, desired, target, existing)
        work += keep_deployment(desired.request, target, existing)
    state = SchedulerState(
        obj=obj,
        desired=desired,
        findings=findings,
        deployment=deployment,
        pods=tuple(pods),
        history=history,
        result=result,
        content=content,
        target=target,
        version=version,
        served=_served(pods, contents),
        claim=claim,
    )
    if not work:
        # Old ConfigMaps can wait until everything else is done.
        work += _prune(existing, history, pods, target, running_hash(deployment))
    asked = find(history, content.hash) if content is not None else None
    planned = with_status(snapshot, SECONDARY_SCHEDULERS, obj, report(snapshot, state), work)
    return planned, asked


def _contents(existing: Existing) -> dict[str, SecondaryContent]:
    """The contents of existing ConfigMaps, by hash; a ConfigMap with a wrong hash is ignored."""
    found = {}
    for config_map_ in existing.get(CONFIG_MAPS, {}).values():
        content_hash = label(config_map_, names.CONFIG_HASH_LABEL)
        leaving = "deletionTimestamp" in config_map_["metadata"]
        content = content_of(config_map_)
        if not leaving and content_hash == content.hash:
            found[content_hash] = content
    return found


def _served(
    pods: Sequence[SchedulerPod], contents: Mapping[str, SecondaryContent]
) -> frozenset[str]:
    """The schedulerNames that each Ready pod serves; any of them may lead."""
    each = [
        frozenset(scheduler_names(contents[pod.hash].config) if pod.hash in contents else ())
        for pod in pods
        if pod.ready
    ]
    return frozenset.intersection(*each) if each else frozenset()


def _target(
    desired: SecondaryContent | None,
    history: History,
    running: str,
    contents: dict[str, SecondaryContent],
) -> SecondaryContent | None:
    """The content to run; None if none can run."""
    known = find(history, desired.hash) if desired is not None else None
    if desired is not None and (known is None or known.outcome not in BAD):
        return desired
    entry = find(history, running)
    if desired is None and running in contents and (entry is None or not entry.bad):
        return contents[running]
    good = last_good(history, contents.__contains__)
    if good:
        return contents[good]
    # There is no last known good content, so the desired or the running one stays.
    return desired or contents.get(running)


def _keep_config_map(
    obj: Object, desired: DesiredScheduler, target: SecondaryContent, existing: Existing
) -> tuple[Action, ...]:
    """Create the ConfigMap of `target`; an existing one is immutable except for its metadata."""
    made = config_map(desired.request, target)
    settings = annotation(obj, names.ACCEPTED_SETTINGS_ANNOTATION)
    if settings and desired.content is not None and target.hash == desired.content.hash:
        # The memory of `kubectl scheduler rollout undo`: what users had set for this content.
        made["metadata"]["annotations"] = {names.ACCEPTED_SETTINGS_ANNOTATION: settings}
    return keep(CONFIG_MAPS, existing.get(CONFIG_MAPS, {}), made, ())


def _prune(
    existing: Existing,
    history: History,
    pods: Sequence[SchedulerPod],
    target: SecondaryContent | None,
    running: str,
) -> list[Action]:
    """Deletions of ConfigMaps that no pod runs and no rollout would return to."""
    in_use = [*(pod.hash for pod in pods), running, *([target.hash] if target else [])]
    keep = kept(history, in_use)
    return [
        Delete(CONFIG_MAPS, obj)
        for _, obj in sorted(existing.get(CONFIG_MAPS, {}).items())
        if label(obj, names.CONFIG_HASH_LABEL) not in keep
        and "deletionTimestamp" not in obj["metadata"]
    ]
