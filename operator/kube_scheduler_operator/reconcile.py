"""The pass: one snapshot in, one plan out, in the order in which a configuration travels.

observe -> compose -> check (config/) -> revise (revision/) -> roll out (rollout/) -> report
(status/). Nothing here talks to a cluster or looks at a clock; the same snapshot always gives the
same plan. A step that fails becomes a condition of its own, and the later steps work with what is
known: a configuration with a mistake in it never stops a rollout that had begun, and never touches
a running scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from . import names
from .apply import apply
from .config.blame import attribute
from .config.compose import Composition, Inputs, compose
from .config.findings import Finding
from .config.observe_profiles import said
from .config.scheduler_profiles import CONTROL_PLANE, Verdict
from .config.versions import Version
from .kube.resource import CLUSTER_OPERATORS, CONFIG_MAPS, KUBE_SCHEDULERS, SERVICE_ACCOUNTS
from .manifests.target import config_map, installer_service_account, target_data
from .plan import Action, Create, Event, Plan, Replace
from .revision.content import Content
from .revision.credentials import gather, has_serving_certificate
from .revision.history import Revision, read
from .revision.inputs import record
from .revision.revise import Revised, revise
from .rollout import operand as operands
from .rollout.guard import guard
from .rollout.look import look
from .rollout.nodes import write_entry
from .rollout.prune import prune
from .rollout.removal import remove
from .rollout.step import step
from .rollout.stepped import Stepped, describe
from .secondary.step import Secondary, secondary_schedulers
from .snapshot import Object, Snapshot
from .status.cluster_operator import plan_cluster_operator
from .status.conditions import Condition, merge_conditions
from .status.profiles import forget_profiles, report_profiles
from .status.report import (
    from_findings,
    removal_conditions,
    requeue_for_lease,
    revision_conditions,
    rollout_conditions,
)


def reconcile(snapshot: Snapshot) -> Plan:
    """Everything that should be done about the cluster as `snapshot` shows it."""
    if snapshot.spec.get("managementState") == "Unmanaged":
        return _report_cluster_operator(snapshot, snapshot.status.get("conditions") or ())
    image = operand_image(snapshot)
    secondary = secondary_schedulers(snapshot, image, partial(operand_version, snapshot))
    plan = _control_plane(snapshot, image, secondary)
    wait = _soonest(plan.requeue_after, secondary.requeue_after)
    return replace(plan, chains=secondary.chains, unserved=secondary.unserved, requeue_after=wait)


def _control_plane(snapshot: Snapshot, image: str, secondary: Secondary) -> Plan:
    """What should be done about the schedulers in static pods."""
    kubescheduler = snapshot.kubescheduler
    if kubescheduler is None:
        return _without_kubescheduler(snapshot)
    if snapshot.spec.get("managementState") == "Removed":
        return _removing(snapshot)

    # Observe, compose, check.
    composition = compose(_inputs(snapshot, image))
    credentials = gather(snapshot)
    of_others = (finding for verdict in secondary.verdicts for finding in said(verdict))
    findings = (
        *composition.findings,
        *of_others,
        *_image_findings(image),
        *credentials.findings,
    )
    profiles = snapshot.scheduler_profiles or {}
    observing: tuple[Action, ...] = ()
    if (snapshot.spec.get("observedConfig") or {}) != composition.observed_config:
        observing = (_write_observed(kubescheduler, composition),)
        if not snapshot.trouble:
            verdicts = (*composition.verdicts, *secondary.verdicts)
            return Plan(observing, report_profiles(profiles, verdicts, snapshot.now))

    # Revise.
    content = None
    if not any(finding.blocking for finding in findings):
        content = _content(snapshot, composition, image, credentials.parts)
    targets = _targets(snapshot, content) if content is not None else ()
    seen = look(snapshot)
    revised = revise(snapshot, content, seen.swapping)

    # Roll out.
    stepped = step(snapshot, revised, seen)

    # Report.
    verdicts = (*_attributed(composition, revised.rejected), *secondary.verdicts)
    reports = report_profiles(profiles, verdicts, snapshot.now)
    conditions = (
        *from_findings(findings),
        *revision_conditions("", revised.note),
        Condition(names.STATIC_RESOURCES_DEGRADED, "False", "AsExpected"),
        *rollout_conditions(
            snapshot,
            stepped,
            wanted=revised.wanted,
            rejected=revised.rejected,
            description=describe(stepped.entries, _described(revised)),
        ),
        *secondary.conditions,
    )
    status = _status(snapshot, revised, stepped, conditions)
    cluster_operator = _report_cluster_operator(snapshot, status["conditions"])
    work = (
        *_static_resources(snapshot),
        *credentials.actions,
        *targets,
        *revised.actions,
        *stepped.actions,
    )
    stepped.afterwards.extend(observing)
    actions = _in_order(snapshot, work, conditions, status, stepped)
    if not actions:
        # Only when there is nothing else to do: in a hurry, guards and the past can wait.
        actions = guard(snapshot, stepped) or prune(snapshot, revised.history, stepped)
    requeue_after = _soonest(
        stepped.requeue_after,
        cluster_operator.requeue_after,
        requeue_for_lease(snapshot, snapshot.now),
    )
    return Plan(actions, (*cluster_operator.reports, *reports), requeue_after)


def _removing(snapshot: Snapshot) -> Plan:
    """The way out: what was there before the operator comes back, then our objects go."""
    removal = remove(snapshot)
    stepped = removal.stepped
    conditions = removal_conditions(snapshot, removal)
    old = snapshot.status.get("conditions") or ()
    status = {
        **snapshot.status,
        "observedGeneration": (snapshot.kubescheduler or {})["metadata"].get("generation", 0),
        "nodeStatuses": [write_entry(entry) for entry in stepped.entries],
        "conditions": merge_conditions(old, conditions, snapshot.now),
    }
    cluster_operator = _report_cluster_operator(snapshot, status["conditions"], removal.progress)
    needed = () if removal.done else _static_resources(snapshot)
    work = (*needed, *stepped.actions)
    actions = _in_order(snapshot, work, conditions, status, stepped)
    requeue_after = _soonest(stepped.requeue_after, cluster_operator.requeue_after)
    left = forget_profiles(snapshot.scheduler_profiles or {}) if removal.done else ()
    return Plan(actions, (*cluster_operator.reports, *left), requeue_after)


def _in_order(
    snapshot: Snapshot,
    work: tuple[Action, ...],
    conditions: Sequence[Condition],
    status: Mapping[str, Any],
    stepped: Stepped,
) -> tuple[Action, ...]:
    """Work, then the status, which promises that what it names exists, then what rests on it.

    But when the API refused some of the work, people must be told before it is tried again.
    """
    complaint = _complaint(snapshot, conditions)
    if complaint:
        return (*complaint, *work)
    return (*work, *_report(snapshot, status, *stepped.events), *stepped.afterwards)


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)


# --- observe, compose -------------------------------------------------------------------------


def wanted(snapshot: Snapshot) -> tuple[Content | None, tuple[Finding, ...]]:
    """What users' settings come to, for commands that ask "what if"; nothing is done about it.

    Returns:
        configuration and pod of the revision that they ask for (None if it would not be cut),
        without the credentials that the cluster adds, and what somebody should know about it.
    """
    image = operand_image(snapshot)
    composition = compose(_inputs(snapshot, image))
    findings = (*composition.findings, *_image_findings(image))
    if any(finding.blocking for finding in findings):
        return None, findings
    return _content(snapshot, composition, image, {}), findings


def _content(
    snapshot: Snapshot,
    composition: Composition,
    image: str,
    credentials: Mapping[str, Mapping[str, str]],
) -> Content | None:
    if composition.config is None:
        return None
    reason = str(snapshot.spec.get("forceRedeploymentReason") or "")
    target = target_data(snapshot.platform, composition, image, reason)
    profiles = {v.name: v.spec for v in composition.verdicts if v.spec is not None}
    inputs = record(snapshot.scheduler, snapshot.kubescheduler, profiles)
    return Content({**target, **credentials}, inputs)


def operand_image(snapshot: Snapshot) -> str:
    """kube-scheduler's image: as configured, else as last installed, else as found running.

    An image that was configured once and never ran, because it cannot be pulled, is not kept.
    """
    if snapshot.settings.operand_image:
        return snapshot.settings.operand_image
    history = [
        revision
        for revision in reversed(read(snapshot.config_maps, snapshot.platform.parts))
        if revision.ready
    ]
    installed = [r for r in history if r.outcome == names.OUTCOME_INSTALLED]
    pods = [operands.read(pod) for _, pod in sorted(snapshot.operand_pods.items())]
    # Lazily: this is asked in every pass, and nearly always the first one answers.
    candidates = chain(
        (_image_in(revision) for revision in installed),
        (pod.image for pod in pods),
        (_image_in(revision) for revision in history),
    )
    return next((image for image in candidates if image), "")


def _image_in(revision: Revision) -> str:
    """The image in a revision's pod; empty if that is gone or somebody put something else there."""
    try:
        pod = json.loads(revision.copies[names.POD]["data"][names.POD_KEY])
        return str(pod["spec"]["containers"][0]["image"])
    except (KeyError, IndexError, TypeError, ValueError):
        return ""


def operand_version(snapshot: Snapshot, image: str) -> Version:
    """The operand's version: its image's tag if that is one, else the API server's."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    for text in (tag, snapshot.server_version):
        try:
            return Version.parse(text)
        except ValueError:
            continue
    return Version(1, 35, 0)


def _inputs(snapshot: Snapshot, image: str) -> Inputs:
    stock = next(
        (
            pod.arguments
            for pod in (operands.read(pod) for _, pod in sorted(snapshot.operand_pods.items()))
            if not pod.ours
        ),
        (),
    )
    return Inputs(
        platform=snapshot.platform,
        operand_version=operand_version(snapshot, image),
        scheduler=snapshot.scheduler,
        kubescheduler=snapshot.kubescheduler or {},
        stock_arguments=stock,
        # Where the cluster brings its own scheduler, its image may be called anything.
        stock_image=snapshot.platform.cluster_config
        or "/kube-scheduler:" in f"/{image}"
        or "/kube-scheduler@" in f"/{image}",
        previous_arguments=_composed_arguments(snapshot),
        payload_version=snapshot.settings.release_version,
        apiserver=snapshot.apiserver,
        feature_gate=snapshot.feature_gate,
        infrastructure=snapshot.infrastructure,
        serving_certificate=has_serving_certificate(snapshot),
        schedulers=frozenset({CONTROL_PLANE, *snapshot.secondaries.schedulers}),
        scheduler_profiles=None
        if snapshot.scheduler_profiles is None
        else tuple(snapshot.scheduler_profiles.values()),
    )


def _composed_arguments(snapshot: Snapshot) -> tuple[str, ...]:
    """The scheduler's command line as it was composed last: what the target's pod has."""
    try:
        pod = json.loads(snapshot.config_maps[names.POD]["data"][names.POD_KEY])
        return operands.read(pod).arguments
    except (KeyError, TypeError, AttributeError, ValueError):
        return ()  # there is none yet, or somebody put something else there


def _attributed(composition: Composition, rejected: Revision | None) -> tuple[Verdict, ...]:
    """The verdicts, with what kube-scheduler said of the profiles in a revision that it refused."""
    if rejected is None or composition.config is None:
        return composition.verdicts
    try:
        config = json.loads(rejected.copies[names.CONFIG]["data"][names.CONFIG_KEY])
        refused = config.get("profiles")
    except (KeyError, TypeError, AttributeError, ValueError):
        return composition.verdicts  # somebody put something else there
    did = "refused" if rejected.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = f"kube-scheduler {did} revision {rejected.number}, mend this or take it back"
    return attribute(
        composition.verdicts,
        rejected.message,
        refused,
        composition.config.get("profiles"),
        state,
    )


def _image_findings(image: str) -> tuple[Finding, ...]:
    if image:
        return ()
    return (
        Finding(
            names.TARGET_CONFIG_DEGRADED,
            "NoOperandImage",
            "OPERAND_IMAGE",
            "kube-scheduler's image is not known: no scheduler pod is visible to take it from; set "
            "OPERAND_IMAGE on the operator's Deployment",
            blocking=True,
        ),
    )


def _write_observed(kubescheduler: Object, composition: Composition) -> Action:
    spec = {**(kubescheduler.get("spec") or {}), "observedConfig": composition.observed_config}
    text = json.dumps(composition.observed_config, sort_keys=True)
    event = Event("ObservedConfigChanged", f"Writing updated observed config: {text}")
    return Replace(KUBE_SCHEDULERS, {**kubescheduler, "spec": spec}, events=(event,))


# --- objects ----------------------------------------------------------------------------------


def _targets(snapshot: Snapshot, content: Content) -> tuple[Action, ...]:
    """Writes that make the target ConfigMaps say what is wanted."""
    wanted = [config_map(snapshot.platform, name, data) for name, data in content.parts.items()]
    return tuple(
        action
        for obj in wanted
        for action in apply(CONFIG_MAPS, snapshot.config_maps, obj, ("data",))
    )


def _static_resources(snapshot: Snapshot) -> tuple[Action, ...]:
    account = installer_service_account(snapshot.platform, snapshot.settings.image_pull_secrets)
    # Where we are told nothing about them, what somebody else has set stays.
    fields = [f for f in ("automountServiceAccountToken", "imagePullSecrets") if f in account]
    return apply(SERVICE_ACCOUNTS, snapshot.service_accounts, account, fields)


# --- report -----------------------------------------------------------------------------------


def _described(revised: Revised) -> int:
    return revised.wanted.number if revised.wanted is not None else 0


def _status(
    snapshot: Snapshot, revised: Revised, stepped: Stepped, conditions: Sequence[Condition]
) -> dict[str, Any]:
    before = snapshot.status
    status = dict(before)
    if revised.latest:
        status["latestAvailableRevision"] = revised.latest
    status["nodeStatuses"] = [write_entry(entry) for entry in stepped.entries]
    status["readyReplicas"] = sum(pod.ready for pod in stepped.operands.values())
    status["observedGeneration"] = (snapshot.kubescheduler or {})["metadata"].get("generation", 0)
    status["version"] = snapshot.settings.operator_version
    old = before.get("conditions") or ()
    status["conditions"] = merge_conditions(old, conditions, snapshot.now)
    return status


def _complaint(snapshot: Snapshot, conditions: Sequence[Condition]) -> tuple[Action, ...]:
    """The write that says what is wrong and promises nothing; none if nothing is, or it is said."""
    if not snapshot.trouble:
        return ()
    before = snapshot.status
    old = before.get("conditions") or ()
    return _report(
        snapshot, {**before, "conditions": merge_conditions(old, conditions, snapshot.now)}
    )


def _report(snapshot: Snapshot, status: Mapping[str, Any], *events: Event) -> tuple[Action, ...]:
    """The write of KubeScheduler's status, if that changes it."""
    before = snapshot.status
    if status == before:
        return ()
    events = (*events, *_condition_events(before, status))
    obj = {**(snapshot.kubescheduler or {}), "status": status}
    return (Replace(KUBE_SCHEDULERS, obj, "status", events),)


def _condition_events(before: Object, after: Object) -> tuple[Event, ...]:
    """One line for every condition that turned bad or good again."""
    old = {c["type"]: c for c in before.get("conditions") or ()}
    events = []
    for condition in after["conditions"]:
        kind, status = condition["type"], condition["status"]
        if not kind.endswith("Degraded"):
            continue
        was = old.get(kind, {})
        same = was.get("status", "False") == status and (
            status == "False" or was.get("message") == condition.get("message")
        )
        if same:
            continue
        text = f"{kind} is {status}: {condition.get('message') or condition.get('reason', '')}"
        reason = "OperatorStatusChanged"
        events.append(Event(reason, text, "Warning" if status == "True" else "Normal"))
    return tuple(events)


def _report_cluster_operator(
    snapshot: Snapshot, conditions: Sequence[Mapping[str, Any]], progress: str = ""
) -> Plan:
    planned = plan_cluster_operator(
        platform=snapshot.platform,
        management_state=str(snapshot.spec.get("managementState") or ""),
        removal=progress,
        conditions=conditions,
        versions=_versions(snapshot),
        existing=snapshot.cluster_operator,
        now=snapshot.now,
    )
    if planned.object is None:
        return Plan(requeue_after=planned.requeue_after)
    if snapshot.cluster_operator is None:
        # The API ignores status at creation; it follows as soon as the object is there.
        bare = {key: value for key, value in planned.object.items() if key != "status"}
        return Plan(reports=(Create(CLUSTER_OPERATORS, bare),), requeue_after=0.0)
    write = Replace(CLUSTER_OPERATORS, planned.object, "status")
    return Plan(reports=(write,), requeue_after=planned.requeue_after)


def _versions(snapshot: Snapshot) -> dict[str, str]:
    """Versions that are certain: the operand's only when all its pods run the same image."""
    versions = {"operator": snapshot.settings.operator_version}
    images = {operands.read(pod).image for pod in snapshot.operand_pods.values()}
    if len(images) == 1:
        version = operand_version(snapshot, images.pop())
        versions[names.OPERAND] = str(version)
    return versions


def _without_kubescheduler(snapshot: Snapshot) -> Plan:
    """KubeScheduler is gone, which is no uninstall: say so and leave everything as it runs."""
    since = "2000-01-01T00:00:00Z"  # older than any inertia: this is a fact, not a disturbance
    ready = sum(operands.read(pod).ready for pod in snapshot.operand_pods.values())
    conditions = [
        {
            "type": names.STATIC_PODS_AVAILABLE,
            "status": "True" if ready else "False",
            "reason": "AsExpected" if ready else "NoReadyScheduler",
            "message": f"{ready} scheduler pods are Ready",
            "lastTransitionTime": since,
        },
        {
            "type": "KubeSchedulerDegraded",
            "status": "True",
            "reason": "NotFound",
            "message": (
                'KubeScheduler "cluster" does not exist; schedulers keep running as they are; '
                "create it to go on: "
                'kubectl create -f - <<< \'{"apiVersion":"operator.openshift.io/v1",'
                '"kind":"KubeScheduler","metadata":{"name":"cluster"},"spec":{}}\''
            ),
            "lastTransitionTime": since,
        },
    ]
    return _report_cluster_operator(snapshot, conditions)
