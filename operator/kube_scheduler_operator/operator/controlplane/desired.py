"""The desired state of the control plane: its configuration, and the content of a revision."""

from __future__ import annotations

from collections.abc import Mapping

from ...base import names
from ...base.findings import Finding
from ...base.limits import CONFIG_MAP_BYTES
from ...base.spec_limits import TOO_LARGE, data_bytes
from ...config.effective.control_plane.recorded_inputs import record
from ...config.effective.control_plane.scheduler import (
    EffectiveControlPlane,
    effective_control_plane,
)
from ..model.snapshot import Snapshot
from .adoption.adopted import Adopted, adopted
from .observed_facts import facts_of, objects_of
from .operand_image import operand_image
from .revision.content import RevisionContent
from .target_config_maps import target_data


def desired_content(snapshot: Snapshot) -> tuple[RevisionContent | None, tuple[Finding, ...]]:
    """The desired revision, for commands that preview an edit.

    Returns:
        (configuration and Pod of the revision, without the cluster's credentials; None if an error
        blocks it, all errors and warnings).
    """
    image, kept = operand_image(snapshot), adopted(snapshot)
    facts = facts_of(snapshot, image, kept)
    control_plane = effective_control_plane(objects_of(snapshot), facts)
    findings = (*kept.findings, *control_plane.findings, *image_findings(image))
    if any(finding.blocking for finding in findings):
        return None, findings
    return content_of(control_plane, {}, kept), findings


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
