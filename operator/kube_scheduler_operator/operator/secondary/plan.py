"""The plan for one SecondaryScheduler: from its observed and desired state to writes and status.

The desired content is rolled out unless it is invalid or is known to fail; then the last known good
content stays or returns. The Deployment removes a pod only after its successor is Ready, so
scheduling continues during the rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object, annotation, is_being_deleted, label
from ...config.effective.secondary.compose import scheduler_names
from ...config.effective.secondary.scheduler import NOT_ALLOWED
from ...config.language.versions import Version
from ...kube.resource import CONFIG_MAPS, DEPLOYMENTS, PODS, SECONDARY_SCHEDULERS
from ..model.apply import deletions, keep
from ..model.plan import Action
from ..model.snapshot import Snapshot
from ..status.object_status import ObjectPlan, with_status
from .assignment import Claim
from .content import SecondaryContent, config_map, content_of
from .created_objects import Existing, keep_deployment, keep_static_objects, running_hash
from .desired import DesiredScheduler
from .history import BAD, History, HistoryEntry, begun, find, kept, last_good, with_outcome
from .history import read as read_history
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
    """Return (plan for `obj`, history entry of the desired content if it was ever rolled out).

    `further` has the findings that are not about its configuration; a blocking one stops its
    rollout. `claim` has the pods of its `spec.assign`.
    """
    name = obj["metadata"]["name"]
    existing = snapshot.secondaries.objects.get(name, {})
    findings = (*further, *desired.findings)
    if any(f.condition == names.DEGRADED and f.reason == NOT_ALLOWED for f in further):
        # The operator can neither read nor write in that namespace.
        state = SchedulerState(obj, desired, findings, readable=False, claim=claim)
        return with_status(snapshot, SECONDARY_SCHEDULERS, obj, report(snapshot, state), ()), None
    deployment = existing.get(DEPLOYMENTS, {}).get(name)
    pods = [read_pod(pod) for _, pod in sorted(existing.get(PODS, {}).items())]
    history, running = read_history(obj), running_hash(deployment)
    result = content_outcome(snapshot, deployment, pods, find(history, running))
    if result.outcome:
        history = with_outcome(history, running, result.outcome, snapshot.now, result.message)
    contents = _contents(existing)
    content = None if any(finding.blocking for finding in findings) else desired.content
    target = _target(content, history, running, contents)
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
        work += _prune(existing, history, pods, target, running)
    entry = find(history, content.hash) if content is not None else None
    planned = with_status(snapshot, SECONDARY_SCHEDULERS, obj, report(snapshot, state), work)
    return planned, entry


def _contents(existing: Existing) -> dict[str, SecondaryContent]:
    """Read the contents of existing ConfigMaps, by hash; ignore those with a wrong hash."""
    contents = {}
    for obj in existing.get(CONFIG_MAPS, {}).values():
        content = content_of(obj)
        if not is_being_deleted(obj) and label(obj, names.CONFIG_HASH_LABEL) == content.hash:
            contents[content.hash] = content
    return contents


def _served(
    pods: Sequence[SchedulerPod], contents: Mapping[str, SecondaryContent]
) -> frozenset[str]:
    """Return the schedulerNames that every Ready pod serves; any of them may lead."""
    served = [
        frozenset(scheduler_names(contents[pod.hash].config) if pod.hash in contents else ())
        for pod in pods
        if pod.ready
    ]
    return frozenset.intersection(*served) if served else frozenset()


def _target(
    desired: SecondaryContent | None,
    history: History,
    running: str,
    contents: dict[str, SecondaryContent],
) -> SecondaryContent | None:
    """Choose the content to run; None if none can run."""
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
    wanted = config_map(desired.request, target)
    settings = annotation(obj, names.ACCEPTED_SETTINGS_ANNOTATION)
    if settings and desired.content is not None and target.hash == desired.content.hash:
        # For `kubectl scheduler rollout undo`: the settings of users that led to this content.
        wanted["metadata"]["annotations"] = {names.ACCEPTED_SETTINGS_ANNOTATION: settings}
    return keep(CONFIG_MAPS, existing.get(CONFIG_MAPS, {}), wanted, ())


def _prune(
    existing: Existing,
    history: History,
    pods: Sequence[SchedulerPod],
    target: SecondaryContent | None,
    running: str,
) -> tuple[Action, ...]:
    """Delete ConfigMaps that no pod runs and no rollout would return to."""
    in_use = [*(pod.hash for pod in pods), running, *([target.hash] if target else [])]
    stays = kept(history, in_use)
    known = existing.get(CONFIG_MAPS, {}).items()
    unneeded = {n: obj for n, obj in known if label(obj, names.CONFIG_HASH_LABEL) not in stays}
    return deletions(CONFIG_MAPS, unneeded)
