"""The conditions of KubeScheduler (names.py has their types).

Every reconcile writes every condition, so that one that no longer holds is withdrawn at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ...base import names
from ...base.findings import Finding
from ...base.management import UNMANAGED, how_to_request
from ...base.objects import annotation
from ...base.times import timestamp
from ...config.effective.control_plane.recorded_inputs import profile_changes, read_inputs
from ...config.language.merging.presets import DEFAULT_PROFILE
from ...config.language.versions import Version
from ...node.protocol.upgrade_request import version_of
from ..model.operand_pods import OperandPod
from ..model.pod_status import PULL
from ..model.snapshot import Snapshot
from ..status.conditions import (
    ALWAYS_FALSE,
    AS_EXPECTED,
    Condition,
    aggregate,
    problem_condition,
    warnings_condition,
)
from ..status.scheduler_lease import (
    control_plane_lease,
    holding_node,
    lease_holder,
    was_renewed,
)
from .revision.history import Revision, ended
from .revision.revise import RevisionResult
from .rollout.drift import hand_edits, has_drifted, has_edited_label, keeps_hand_edits
from .rollout.installer_pods import Installer, Stage
from .rollout.node_statuses import (
    NodeStatus,
    describe,
    is_cordoned,
    on_node,
    read_node_status,
)
from .rollout.observe import is_guarded, observe
from .rollout.removal import Removal
from .rollout.rollout_step import RolloutStep
from .upgrade_check import result_of
from .versions import skew_condition, versions

CONSTANT: Final[Mapping[str, str]] = {
    names.RESOURCE_SYNC_DEGRADED: (
        f"this operator has no such controller; {names.TARGET_CONFIG_DEGRADED} reports missing "
        "sources"
    ),
    names.CONTROLLER_MANAGER_RESOURCES_DEGRADED: (
        f"the name is another operator's; see {names.STATIC_RESOURCES_DEGRADED}"
    ),
    names.BACKING_RESOURCE_DEGRADED: (
        f"this operator has no such controller; {names.INSTALLER_DEGRADED} reports failed writes"
    ),
    names.GUARD_DEGRADED: (
        f"this operator has no such controller; {names.STATIC_PODS_DEGRADED} reports a scheduler "
        "that is missing or not Ready"
    ),
    names.MISSING_STATIC_POD_DEGRADED: (
        f"this operator has no such controller; it installs a missing scheduler again, and "
        f"{names.STATIC_PODS_DEGRADED} reports it"
    ),
    names.INSTALLER_POD_NETWORKING_DEGRADED: "installer Pods use the network of their node",
}
"""OpenShift's condition types that never become True here, and where to look instead."""

REVISION_FAILED: Final = "RevisionFailed"
"""Reason of NodeInstallerDegraded: the desired content did not stay healthy and is quarantined."""


def from_findings(findings: Sequence[Finding], unused: str = "") -> list[Condition]:
    """The conditions of findings; `unused` is why the settings that they are about do not run."""
    types = (
        names.CONFIG_OBSERVATION_DEGRADED,
        names.TARGET_CONFIG_DEGRADED,
        names.OVERRIDES_DEGRADED,
        names.SCHEDULER_PROFILES_DEGRADED,
        names.SCHEDULER_EXTENDERS_DEGRADED,
        names.OPERATOR_SETTINGS_DEGRADED,
        names.INEFFECTIVE_SETTINGS,
    )
    warnings, upgradeable = names.CONFIGURATION_WARNINGS, names.OVERRIDES_UPGRADEABLE
    overrides = [f for f in findings if f.condition == upgradeable]
    if overrides:
        text = aggregate(f.message for f in overrides)
        unsupported = Condition(upgradeable, "False", overrides[0].reason, text)
    else:
        unsupported = Condition(upgradeable, "True", "NoUnsupportedConfigOverrides")
    return [
        *(_of_findings(type_, findings) for type_ in types),
        warnings_condition(
            warnings, (f for f in findings if f.condition == warnings), unused=unused
        ),
        unsupported,
    ]


def constant_conditions(snapshot: Snapshot) -> list[Condition]:
    if not snapshot.platform.cluster_config:
        return []
    return [
        Condition(type_, "False", AS_EXPECTED, f"{ALWAYS_FALSE}{reason}")
        for type_, reason in CONSTANT.items()
    ]


def failure_conditions(
    failures: Sequence[Finding], types: Collection[str]
) -> tuple[Condition, ...]:
    """Conditions of the steps that raised an error, of these types; without types, of all."""
    failed = dict.fromkeys(f.condition for f in failures if not types or f.condition in types)
    return tuple(_of_findings(type_, failures) for type_ in failed)


def _of_findings(type_: str, findings: Sequence[Finding]) -> Condition:
    return problem_condition(type_, ((f.reason, f.text) for f in findings if f.condition == type_))


def revision_condition(revisions: RevisionResult) -> Condition:
    type_ = names.REVISION_DEGRADED
    if revisions.problem:
        return Condition(type_, "True", "ImplausibleRevision", revisions.problem)
    return Condition(type_, "False", AS_EXPECTED, revisions.note)


def rollout_conditions(step: RolloutStep) -> list[Condition]:
    snapshot, observation = step.snapshot, step.observation
    return [
        _progressing(step),
        _preflight(step),
        _node_installer(step),
        write_error(snapshot),
        *_installer_pods(step),
        _available(step, _healthy(step)),
        lease_holder(snapshot),
        _static_pods(step),
        _hand_edits(step),
        _kubeadm_upgrade(step),
        skew_condition(versions(snapshot, observation.operands, observation.disks)),
        _nodes(step),
    ]


def removal_conditions(removal: Removal) -> list[Condition]:
    progressing, failing = names.NODE_INSTALLER_PROGRESSING, names.NODE_INSTALLER_DEGRADED
    failures = [f'node "{node}": {why}' for node, why in sorted(removal.failures.items())]
    step = removal.step
    removed = f"the operator is {'removed' if removal.done else 'being removed'}"
    return [
        Condition(progressing, "False", "Removed", removal.progress)
        if removal.done
        else Condition(progressing, "True", "Removing", removal.progress),
        _collected(failing, "RestoreFailed", failures),
        write_error(step.snapshot),
        _available(step, f"{_active(step)}; {removed}"),
        _nodes(step),
    ]


def unmanaged_conditions(snapshot: Snapshot) -> list[Condition]:
    """The conditions of static Pods that are Unmanaged: what is observed of them."""
    observation = observe(snapshot)
    step = RolloutStep(snapshot, RevisionResult(), observation)
    known = tuple(read_node_status(raw) for raw in snapshot.status.get("nodeStatuses") or ())
    return [
        write_error(snapshot),
        _hand_edits(replace(step, node_statuses=known)),
        _available(step, _active(step)),
        lease_holder(snapshot),
        skew_condition(versions(snapshot, observation.operands, observation.disks)),
        _nodes(step),
    ]


def _progressing(step: RolloutStep) -> Condition:
    type_, snapshot = names.NODE_INSTALLER_PROGRESSING, step.snapshot
    statuses = step.node_statuses
    desired, rejected = step.revised.desired, step.revised.rejected
    description = describe(statuses, step.revised.desired_number)
    behind = [
        status
        for status in statuses
        if desired is not None and (status.current < desired.number or status.target)
    ]
    if behind and desired is not None:
        waits = [f"{node}: {what}" for node, what in sorted(step.waiting.items())]
        message = "; ".join([f"moving to revision {desired.number}", description, *waits])
        if all(_joined_later(snapshot, status, desired) for status in behind):
            # The API asks operators not to report Progressing when nodes join.
            return Condition(type_, "False", "NodesJoining", message)
        return Condition(type_, "True", "RollingOut", message)
    if rejected is not None:
        message = f"{description}; revision {rejected.number} {ended(rejected.outcome)}"
        return Condition(type_, "False", "RevisionRejected", message)
    if not snapshot.platform.cluster_config and len(statuses) > 1 and len(_currents(step)) == 1:
        description = f"All {description}"
    return Condition(type_, "False", "AllNodesAtLatestRevision", description)


def _joined_later(snapshot: Snapshot, status: NodeStatus, desired: Revision) -> bool:
    """Whether the node joined after the revision was installed on others."""
    if status.current or not desired.status or status.node not in snapshot.nodes:
        return False
    installed = timestamp(annotation(desired.status, names.OUTCOME_TIME_ANNOTATION))
    born = timestamp(snapshot.nodes[status.node]["metadata"].get("creationTimestamp"))
    return installed is not None and born is not None and born > installed


def _preflight(step: RolloutStep) -> Condition:
    rejected = step.revised.rejected
    if rejected is None or rejected.outcome != names.OUTCOME_REFUSED:
        return Condition(names.PREFLIGHT_DEGRADED, "False", AS_EXPECTED)
    message = (
        f"kube-scheduler refused revision {rejected.number}; no node was changed: "
        f"{rejected.message}"
    )
    for node, request in sorted(step.requests.items()):
        message += (
            f'; node "{node}" runs {request.image} as kubeadm wrote it, without the configuration '
            f"that {request.before} had, until this is corrected"
        )
    return Condition(names.PREFLIGHT_DEGRADED, "True", "ConfigurationRefused", message)


def _node_installer(step: RolloutStep) -> Condition:
    type_, rejected = names.NODE_INSTALLER_DEGRADED, step.revised.rejected
    if rejected is not None and rejected.outcome == names.OUTCOME_FAILED:
        return Condition(type_, "True", REVISION_FAILED, rejected.message)
    number = step.revised.desired_number
    retrying = [
        status
        for status in step.node_statuses
        if status.failed_revision and status.failed_revision == (status.target or number)
    ]
    if retrying:
        lines = [on_node(s.node, error) for s in retrying for error in s.failed_errors]
        return Condition(type_, "True", retrying[0].failed_reason, aggregate(lines))
    stuck = [
        f'node "{pod.node}" cannot install revision {pod.revision}: {pod.problem}'
        for pod in _awaited(step)
        if pod.stuck
    ]
    return _collected(type_, names.REASON_INSTALLER_FAILED, stuck)


def _installer_pods(step: RolloutStep) -> list[Condition]:
    """Whether installer pods start; a pod may be pending for a while before that is a failure."""
    pending, waiting, snapshot = [], [], step.snapshot
    reasons: dict[str, str] = {}
    for pod in _awaited(step):
        age = (snapshot.now - pod.created).total_seconds() if pod.created else 0.0
        late = age > snapshot.settings.rollout.pending_tolerance
        if pod.waiting and (late or pod.waiting[0] in _CANNOT_START):
            reasons["waiting"] = pod.waiting[0]
            waiting.append(
                f'Pod "{pod.name}" on node "{pod.node}" container is waiting: '
                f"{pod.waiting[0]}: {pod.waiting[1]}"
            )
        elif late and pod.stage in (Stage.PENDING, Stage.PREFLIGHT, Stage.STAGING):
            reasons["pending"] = "Pending"
            pending.append(
                f'Pod "{pod.name}" on node "{pod.node}" is {pod.stage.value} since '
                f"{pod.pod['metadata'].get('creationTimestamp')}: "
                f"{pod.message or pod.awaited_files or 'no message'}"
            )
    return [
        _collected(names.INSTALLER_POD_PENDING_DEGRADED, reasons.get("pending", ""), pending),
        _collected(names.INSTALLER_POD_WAITING_DEGRADED, reasons.get("waiting", ""), waiting),
    ]


def _awaited(step: RolloutStep) -> list[Installer]:
    """Installer pods whose result is still to come."""
    number = step.revised.desired_number
    targets = {
        (status.node, status.target or number)
        for status in step.node_statuses
        if status.target or status.current < number
    }
    return [
        pod
        for pod in step.observation.installers
        if (pod.node, pod.revision) in targets and not pod.has_ended and not pod.deleting
    ]


# These problems do not go away while the container is being created.
_CANNOT_START: Final = frozenset(
    {*PULL, "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)


def _collected(type_: str, reason: str, messages: Sequence[str]) -> Condition:
    return problem_condition(type_, ((reason, message) for message in messages))


def write_error(snapshot: Snapshot) -> Condition:
    errors = [snapshot.last_error] if snapshot.last_error else []
    return _collected(names.INSTALLER_DEGRADED, "SyncError", errors)


def without_kubescheduler(snapshot: Snapshot) -> Condition:
    """StaticPodsAvailable while nothing is rolled out: KubeScheduler does not exist."""
    step = RolloutStep(snapshot, RevisionResult(), observe(snapshot))
    ready = sum(pod.ready for pod in step.observation.operands.values())
    pods = "1 scheduler pod is" if ready == 1 else f"{ready} scheduler pods are"
    return _available(step, f"{pods} Ready")


def _available(step: RolloutStep, healthy: str) -> Condition:
    type_ = names.STATIC_PODS_AVAILABLE
    problem, _ = control_plane_lease(step.snapshot)
    if not any(pod.ready for pod in step.observation.operands.values()):
        unseen = "" if problem else _schedules_unseen(step)
        if unseen:
            return Condition(type_, "True", AS_EXPECTED, unseen)
        return Condition(type_, "False", "NoReadyScheduler", "no scheduler pod is Ready")
    if problem:
        return Condition(type_, "False", "LeaseNotRenewed", problem)
    return Condition(type_, "True", AS_EXPECTED, healthy)


def _schedules_unseen(step: RolloutStep) -> str:
    """The renewed Lease of a scheduler whose kubelet does not report; empty: no such Lease.

    Kubernetes marks every Pod of a node that is not Ready as not Ready, whether or not it works.
    """
    unseen = step.observation.operands.keys() & step.observation.not_ready.keys()
    node = holding_node(step.snapshot)
    if node not in unseen or not was_renewed(step.snapshot):
        return ""
    return (
        f'the scheduler on node "{node}" renews its Lease; its Pod is not observed, because the '
        "node is not Ready"
    )


def _healthy(step: RolloutStep) -> str:
    """The message of Available; on OpenShift in the reference's words."""
    observation, desired = step.observation, step.revised.desired
    statuses, currents = step.node_statuses, _currents(step)
    if step.snapshot.platform.cluster_config or len(currents) != 1 or 0 in currents:
        description = describe(statuses, step.revised.desired_number)
        return f"{_active(step)}; {description}"
    (number,) = currents
    pods = (observation.operands.get(status.node) for status in statuses)
    ready = sum(pod is not None and pod.ready and pod.revision == number for pod in pods)
    nodes = "node" if len(statuses) == 1 else "nodes"
    message = f"{ready} of {len(statuses)} {nodes} at revision {number}"
    if ready and desired is not None and desired.number == number:
        profile = _profile(desired.inputs)
        changes = profile_changes(step.snapshot.spec, desired.inputs) if profile else ""
        message += f", profile {profile}" if profile else ""
        message += f" changed by {changes}" if changes else ""
    return message


# Every reconcile reads the same inputs again.
@lru_cache(maxsize=4)
def _profile(inputs: str) -> str:
    recorded = read_inputs(inputs)
    return str(recorded.scheduler.get("profile") or DEFAULT_PROFILE) if recorded else ""


def _active(step: RolloutStep) -> str:
    ready = sum(pod.ready for pod in step.observation.operands.values())
    return "1 node is active" if ready == 1 else f"{ready} nodes are active"


def _currents(step: RolloutStep) -> set[int]:
    return {status.current for status in step.node_statuses}


def _static_pods(step: RolloutStep) -> Condition:
    observation = step.observation
    statuses = {status.node: status for status in step.node_statuses}
    settled = sorted(step.snapshot.nodes.keys() - step.moving - observation.not_ready.keys())
    problems = []
    for node in settled:
        pod = observation.operands.get(node)
        if pod is None:
            problems.append(f'no scheduler pod on node "{node}"')
        elif not pod.ready:
            problems.append((pod.trouble or f"pod/{pod.name} is not Ready") + _last_error(pod))
        elif step.is_kubeadms(node):
            continue  # KubeadmUpgrade reports it
        elif node in statuses and has_drifted(statuses[node], pod, observation.disks.get(node)):
            runs = (
                f"revision {pod.revision}" if pod.ours else "a manifest that is not the operator's"
            )
            problems.append(
                f'node "{node}" runs {runs} instead of revision {statuses[node].current}, which '
                "will be put back: find out who changed the manifest"
            )
    problems += [f'node "{node}": {why}' for node, why in sorted(step.refusals.items())]
    pause = how_to_request(step.snapshot.platform, UNMANAGED)
    problems += [
        f"{edited}, and will be put back; to keep an edit, {pause}"
        for edited in _edited(step, kept=False)
    ]
    by_kubeadm = sorted(s.node for s in step.node_statuses if _is_of_kubeadm(step, s))
    if by_kubeadm:
        problems.append(
            f"the manifest on {', '.join(by_kubeadm)} has kubeadm's form: kubeadm's arguments of "
            "the scheduler are not used. Set flags in spec.unsupportedConfigOverrides.arguments"
        )
    if problems or not observation.not_ready:
        return _collected(names.STATIC_PODS_DEGRADED, "Error", problems)
    unseen = f"not observed on {', '.join(sorted(observation.not_ready))}: not Ready"
    return Condition(names.STATIC_PODS_DEGRADED, "False", AS_EXPECTED, unseen)


def _is_of_kubeadm(step: RolloutStep, status: NodeStatus) -> bool:
    """Whether kubeadm wrote over the revision, without another version."""
    disk = step.observation.disks.get(status.node)
    return bool(status.current and disk is not None and disk.image) and not (
        step.is_kubeadms(status.node) or status.node in step.refusals
    )


def _edited(step: RolloutStep, *, kept: bool) -> list[str]:
    sentences = []
    for status in step.node_statuses:
        disk = step.observation.disks.get(status.node)
        edits = () if step.is_kubeadms(status.node) else hand_edits(status, disk)
        if edits and disk is not None and keeps_hand_edits(step.snapshot, status, disk) is kept:
            since = f"since revision {status.current} was installed"
            sentences.append(f'node "{status.node}": {disk.changes} {since}')
    return sentences


def _hand_edits(step: RolloutStep) -> Condition:
    """Informational: edits that stay until the next revision, and labels that do not count."""
    management = step.snapshot.management
    later = f" once that is no longer so: {management}" if management.state == UNMANAGED else ""
    problems = [
        ("FilesEdited", f"{edited}{fate}")
        for kept, fate in (
            (True, "; the edit stays until the next revision"),
            (False, f", and will be put back{later}"),
        )
        for edited in _edited(step, kept=kept)
    ]
    for status in step.node_statuses:
        pod = step.observation.operands.get(status.node)
        disk = step.observation.disks.get(status.node)
        if pod is not None and has_edited_label(status, pod, disk):
            message = (
                f'node "{status.node}" has revision {status.current} on its disk; the label '
                f"{names.REVISION_LABEL} of pod/{pod.name} was edited and does not count. Delete "
                "the Pod: the kubelet creates it again, and the scheduler keeps running"
            )
            problems.append(("LabelEdited", message))
    if not problems and (unseen := _unobserved(step, "whether its files were edited")):
        return Condition(names.HAND_EDITS, "Unknown", "NotObserved", aggregate(unseen))
    return problem_condition(names.HAND_EDITS, problems)


def _unobserved(step: RolloutStep, fact: str) -> list[str]:
    """The nodes with a revision where no program reads the files, or has read them yet."""
    sentences = []
    for status in step.node_statuses:
        node = status.node
        why = step.observation.not_ready.get(node, "")
        if not why and node not in step.observation.disks:
            why = f'node "{node}": no guard has reported yet'
        if not why and _stays_unguarded(step, node):
            why = f'node "{node}": no guard runs'
        if status.current and why:
            sentences.append(f"{why}; {fact} is not known")
    return sentences


def _stays_unguarded(step: RolloutStep, node: str) -> bool:
    """Whether no guard reads a node's files, and the operator does not start one now."""
    snapshot = step.snapshot
    stays = snapshot.management.state == UNMANAGED or is_cordoned(snapshot.nodes.get(node) or {})
    return stays and not is_guarded(snapshot, node)


def _kubeadm_upgrade(step: RolloutStep) -> Condition:
    """Informational: what waits for kubeadm, and what kubeadm waits for."""
    problems = []
    for node, hold in sorted(step.holds.items()):
        problems.append((hold.reason, f'node "{node}": {hold.why}'))
    problems += [
        (
            "Requested",
            f'node "{node}": kubeadm wrote {request.image}; a revision with it follows'
            f"{_of_check(step.snapshot, request.image)}",
        )
        for node, request in sorted(step.requests.items())
        if node not in step.holds
    ]
    follows = step.snapshot.platform.upgrade_dir
    if not problems and follows and (unseen := _unobserved(step, "whether kubeadm works there")):
        return Condition(names.KUBEADM_UPGRADE, "Unknown", "NotObserved", aggregate(unseen))
    return problem_condition(names.KUBEADM_UPGRADE, problems)


def _of_check(snapshot: Snapshot, image: str) -> str:
    """What the check of the version had found, on request; nothing waits for it."""
    version = version_of(image)
    result = result_of(snapshot, Version(*version)) if version is not None else ""
    return f"; {result}" if result else ""


def _last_error(pod: OperandPod) -> str:
    error = pod.last_error
    return f" ({error})" if error and error not in pod.trouble else ""


def _nodes(step: RolloutStep) -> Condition:
    type_, count = names.NODES_DEGRADED, len(step.snapshot.nodes)
    not_ready = step.observation.not_ready
    if not count:
        message = "no node has a control-plane role label"
        return Condition(type_, "True", "NoControlPlaneNodes", message)
    if not_ready:
        listed = ", ".join(why for _, why in sorted(not_ready.items()))
        message = f"The master nodes not ready: {listed}"
        return Condition(type_, "True", "MasterNodesNotReady", message)
    if step.snapshot.platform.cluster_config:
        message = "All master nodes are ready"  # the reference's words
    else:
        nodes = "control-plane node is" if count == 1 else f"{count} control-plane nodes are"
        message = f"{'The' if count == 1 else 'All'} {nodes} Ready"
    return Condition(type_, "False", "MasterNodesReady", message)
