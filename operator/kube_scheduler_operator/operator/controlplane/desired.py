"""The desired state of the control plane: its sources, and the content of a revision."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ...base import names
from ...base.findings import Finding
from ...base.json_text import parse_json
from ...base.limits import CONFIG_MAP_BYTES
from ...base.objects import Object, entries, mapping
from ...base.spec_limits import TOO_LARGE, data_bytes
from ...config.effective.control_plane.accepted_settings import AcceptedSettings
from ...config.effective.control_plane.overrides import ARGUMENTS
from ...config.effective.control_plane.recorded_inputs import RecordedInputs, read_inputs, record
from ...config.effective.control_plane.scheduler import (
    EffectiveControlPlane,
    effective_control_plane,
)
from ...config.effective.facts import ControlPlaneFacts, Facts, Permissions
from ...config.effective.objects import Objects
from ...config.effective.secondary.request import DEFAULT_RESOURCES
from ...config.effective.settings.requested_pod import OWN_RESOURCES
from ...config.effective.settings.validate import PodDefaults
from ...config.language.versions import Version
from ..model import operand_pods
from ..model.operand_pods import Disks
from ..model.snapshot import Snapshot
from .adoption.adopted import NOTHING, Adopted, adopted
from .managed import accepted_by
from .operand_image import operand_image, operand_version
from .revision.content import RevisionContent
from .revision.credentials import has_serving_certificate
from .revision.history import newest_first, read, runs_revision
from .revision.proof import known_numbers
from .target_config_maps import target_data


def desired_content(
    snapshot: Snapshot, *, planned: bool = False
) -> tuple[RevisionContent | None, tuple[Finding, ...]]:
    """The desired revision, for commands that preview an edit.

    `planned`: agents count that do not run yet.

    Returns:
        (configuration and Pod of the revision, without the cluster's credentials; None if an error
        blocks it, all errors and warnings).
    """
    control_plane, kept = desired_control_plane(snapshot, planned=planned), adopted(snapshot)
    image = operand_image(snapshot)
    findings = (*kept.findings, *control_plane.findings, *image_findings(image))
    if any(finding.blocking for finding in findings):
        return None, findings
    return content_of(control_plane, {}, kept), findings


def desired_control_plane(snapshot: Snapshot, *, planned: bool = False) -> EffectiveControlPlane:
    """What the objects lead to, without what was accepted before, for commands."""
    facts = facts_of(snapshot, operand_image(snapshot), adopted(snapshot))
    return effective_control_plane(objects_of(snapshot), replace(facts, planned=planned))


def content_of(
    control_plane: EffectiveControlPlane,
    credentials: Mapping[str, Mapping[str, str]],
    kept: Adopted,
) -> RevisionContent | None:
    composition = control_plane.composition
    inputs, objects = composition.inputs, composition.inputs.objects
    if composition.config is None:
        return None
    reason = str(inputs.spec.get("forceRedeploymentReason") or "")
    target = target_data(
        inputs.platform, composition, control_plane.image, reason, kept, control_plane.pods
    )
    profiles = {p.name: p.spec for p in composition.results if p.spec is not None}
    extenders = {
        e.name: e.spec for e in composition.extenders if e.spec is not None and e.entry is not None
    }
    settings = control_plane.settings
    own = settings.spec if settings is not None else None
    recorded = record(objects.scheduler, objects.kubescheduler, profiles, extenders, own)
    return RevisionContent({**target, **credentials}, recorded)


def image_findings(image: str, *, static_pods: bool = True) -> tuple[Finding, ...]:
    if image:
        return ()
    why = (
        "no scheduler Pod is visible"
        if static_pods
        else "the API server's version is not a release of Kubernetes"
    )
    message = (
        f"kube-scheduler's image is unknown, because {why}; set OPERAND_IMAGE on the operator's "
        "Deployment"
    )
    type_, path = names.TARGET_CONFIG_DEGRADED, "OPERAND_IMAGE"
    return (Finding(type_, "NoOperandImage", path, message, blocking=True),)


def size_findings(content: RevisionContent) -> tuple[Finding, ...]:
    findings = []
    for name, data in sorted(content.parts.items()):
        size = data_bytes(data)
        if size > CONFIG_MAP_BYTES:
            message = (
                f"this would have {size} bytes, and the limit is {CONFIG_MAP_BYTES}; shorten "
                "spec.unsupportedConfigOverrides or spec.forceRedeploymentReason"
            )
            path = f"ConfigMap/{name}"
            findings.append(
                Finding(names.TARGET_CONFIG_DEGRADED, TOO_LARGE, path, message, blocking=True)
            )
    return tuple(findings)


# --- what config/effective/ composes from: objects, facts and accepted settings ---------------


def objects_of(snapshot: Snapshot) -> Objects:
    return Objects(
        scheduler=snapshot.scheduler,
        kubescheduler=snapshot.kubescheduler or {},
        profiles=_values(snapshot.scheduler_profiles),
        extenders=_values(snapshot.scheduler_extenders),
        secondaries=tuple(snapshot.secondaries.schedulers.values()),
        operator_settings=_operator_settings(snapshot),
        apiserver=snapshot.apiserver,
        feature_gate=snapshot.feature_gate,
        infrastructure=snapshot.infrastructure,
    )


def facts_of(snapshot: Snapshot, image: str, kept: Adopted = NOTHING) -> Facts:
    """What else a configuration is based on; `image` is kube-scheduler's, `kept` was adopted."""
    platform = snapshot.platform
    return replace(
        facts_of_secondaries(snapshot, image),
        pods=PodDefaults(OWN_RESOURCES, dict(kept.settings.names()))
        if platform.owns_static_pods
        else PodDefaults(DEFAULT_RESOURCES),
        control_plane=ControlPlaneFacts(
            stock_arguments=_stock_arguments(snapshot, kept),
            adopted_config=kept.config,
            previous_arguments=_composed_arguments(snapshot),
            serving_certificate=has_serving_certificate(snapshot),
        ),
    )


def facts_of_secondaries(snapshot: Snapshot, image: str) -> Facts:
    """The facts for SecondarySchedulers; a defect in the control plane's must not stop them."""
    settings, platform = snapshot.settings, snapshot.platform
    return Facts(
        platform=platform,
        default_version=operand_version(snapshot, ""),
        image=image,
        follows_kubeadm=platform.owns_static_pods and not settings.operand_image,
        payload_version=settings.release_version,
        server_version=None if platform.owns_static_pods else _server_version(snapshot),
        managed_scheduler=settings.managed_scheduler,
        load_policies=None
        if snapshot.loads.policies is None
        else frozenset(snapshot.loads.policies),
        permissions=Permissions(
            settings.allowed_images,
            settings.agent_images,
            tuple(platform.secondary_namespaces(settings.secondary_namespaces)),
            settings.operator_image,
        ),
    )


def accepted_settings(snapshot: Snapshot, disks: Disks) -> AcceptedSettings | None:
    """The settings of the newest revision that is installed or being rolled out; None if unknown.

    The revision may be incomplete: it was validated before it was created.
    Without one, those of the newest revision that another edit replaced before it was installed.

    They are unknown if that revision has no record, or if nodes run revisions that the API has
    lost.
    """
    history = known_numbers(snapshot, disks).history
    newest = next(newest_first(history), None)
    if newest is None:
        lost = runs_revision(snapshot) or any(disk.revision for disk in disks.values())
        return None if lost else AcceptedSettings()
    inputs = read_inputs(newest.inputs)
    if inputs is None:
        return None
    # A revision without its Pod yet uses the image of the revision before it.
    older = (revision for revision in history[::-1] if revision.number <= newest.number)
    image = next(filter(None, (revision.content.image for revision in older)), "")
    return AcceptedSettings(newest.number, inputs, image)


def _operator_settings(snapshot: Snapshot) -> Mapping[str, Any] | None:
    """OperatorSettings "cluster"; None if it does not exist.

    If it cannot be read, the accepted settings stay in use: a restarted API server may not serve
    the kind at first, and an object may be too large.
    """
    objects = snapshot.operator_settings
    if objects is None:
        objects = recorded_object(_recorded(snapshot))
    return objects.get(names.CLUSTER)


def recorded_object(inputs: RecordedInputs | None) -> Mapping[str, Mapping[str, Any]]:
    """OperatorSettings "cluster" as it was recorded, by name; empty if there was none."""
    if inputs is None or inputs.operator_settings is None:
        return {}
    return {names.CLUSTER: {"spec": inputs.operator_settings}}


def _recorded(snapshot: Snapshot) -> RecordedInputs | None:
    if not snapshot.platform.owns_static_pods:
        accepted = accepted_by(snapshot)
        return accepted.inputs if accepted is not None else None
    history = read(snapshot.config_maps, snapshot.platform.parts)
    for newest in reversed(history):
        if newest.outcome in ("", names.OUTCOME_INSTALLED):
            return read_inputs(newest.inputs)
    return None


def _server_version(snapshot: Snapshot) -> Version | None:
    with suppress(ValueError):
        return Version.parse(snapshot.server_version)
    return None


def _stock_arguments(snapshot: Snapshot, kept: Adopted) -> tuple[str, ...]:
    if snapshot.platform.adopts_pods and not kept.new:
        # A manifest that appears after adoption is drift, or a new node's.
        return _recorded_arguments(snapshot)
    pods = (operand_pods.read(pod) for _, pod in sorted(snapshot.operand_pods.items()))
    return next((pod.arguments for pod in pods if not pod.ours), ())


def _recorded_arguments(snapshot: Snapshot) -> tuple[str, ...]:
    """The flags of the adopted scheduler, while `spec.observedConfig`, which has them, is missing.

    A client that replaces KubeScheduler by what Git has removes that field.
    """
    if snapshot.spec.get("observedConfig") is not None:
        return ()
    inputs = _recorded(snapshot)
    observed = mapping(inputs.kubescheduler.get("observedConfig")) if inputs is not None else {}
    return tuple(
        f"--{name}={value}"
        for name, values in mapping(observed.get(ARGUMENTS)).items()
        for value in entries(values)
    )


def _values(objects: Mapping[str, Object] | None) -> tuple[Mapping[str, Any], ...] | None:
    return None if objects is None else tuple(objects.values())


def _composed_arguments(snapshot: Snapshot) -> tuple[str, ...]:
    """The scheduler's command line that was composed last, from the target Pod."""
    try:
        pod = parse_json(snapshot.config_maps[names.POD]["data"][names.POD_KEY])
        return operand_pods.read(pod).arguments
    except (KeyError, TypeError, AttributeError, ValueError):
        return ()  # it does not exist yet, or another writer has changed it
