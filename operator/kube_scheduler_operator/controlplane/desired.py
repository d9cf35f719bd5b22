"""The desired state of the control plane: its configuration, and the content of a revision."""

from __future__ import annotations

from collections.abc import Mapping

from ..base import names
from ..base.findings import Finding
from ..base.json_text import parse_json
from ..base.limits import CONFIG_MAP_BYTES
from ..base.objects import Object
from ..effective.control_plane.compose import Composition, Inputs, compose
from ..effective.control_plane.recorded_inputs import record
from ..model import operand_pods
from ..model.attachment import CONTROL_PLANE
from ..model.limits import TOO_LARGE, data_bytes
from ..model.snapshot import Snapshot
from ..operatorsettings.validate import SettingsResult
from .adoption.adopted import NOTHING, Adopted, adopted
from .operand_image import operand_image, operand_version
from .requested_settings import requested_by, static_pod_settings
from .revision.content import RevisionContent
from .revision.credentials import has_serving_certificate
from .target_config_maps import target_data


def desired_content(snapshot: Snapshot) -> tuple[RevisionContent | None, tuple[Finding, ...]]:
    """The desired revision, for commands that preview an edit.

    Returns:
        (configuration and Pod of the revision, without the cluster's credentials; None if an error
        blocks it, all errors and warnings).
    """
    image, kept = operand_image(snapshot), adopted(snapshot)
    composition = compose(inputs_of(snapshot, image, kept))
    findings = (*kept.findings, *composition.findings, *image_findings(image))
    if any(finding.blocking for finding in findings):
        return None, findings
    settings = static_pod_settings(snapshot, kept)
    return content_of(snapshot, composition, image, {}, kept, settings), findings


def content_of(
    snapshot: Snapshot,
    composition: Composition,
    image: str,
    credentials: Mapping[str, Mapping[str, str]],
    kept: Adopted,
    settings: SettingsResult | None,
) -> RevisionContent | None:
    """The content of the revision for a composition; None if it has no configuration."""
    if composition.config is None:
        return None
    reason = str(snapshot.spec.get("forceRedeploymentReason") or "")
    target = target_data(
        snapshot.platform, composition, image, reason, kept, requested_by(settings)
    )
    profiles = {v.name: v.spec for v in composition.results if v.spec is not None}
    extenders = {
        v.name: v.spec for v in composition.extenders if v.spec is not None and v.entry is not None
    }
    own = settings.spec if settings is not None else None
    inputs = record(snapshot.scheduler, snapshot.kubescheduler, profiles, extenders, own)
    return RevisionContent({**target, **credentials}, inputs)


def image_findings(image: str, *, static_pods: bool = True) -> tuple[Finding, ...]:
    """The error that the image is unknown; empty if it is known."""
    if image:
        return ()
    why = (
        "no scheduler Pod is visible"
        if static_pods
        else "the API server's version is not a release of Kubernetes"
    )
    return (
        Finding(
            names.TARGET_CONFIG_DEGRADED,
            "NoOperandImage",
            "OPERAND_IMAGE",
            f"kube-scheduler's image is unknown, because {why}; set OPERAND_IMAGE on the "
            "operator's Deployment",
            blocking=True,
        ),
    )


def size_findings(content: RevisionContent) -> tuple[Finding, ...]:
    """The error that a ConfigMap would be too large; empty if each fits."""
    found = []
    for name, data in sorted(content.parts.items()):
        size = data_bytes(data)
        if size > CONFIG_MAP_BYTES:
            message = (
                f"this would have {size} bytes, and the limit is {CONFIG_MAP_BYTES}; shorten "
                "spec.unsupportedConfigOverrides or spec.forceRedeploymentReason"
            )
            path = f"ConfigMap/{name}"
            found.append(
                Finding(names.TARGET_CONFIG_DEGRADED, TOO_LARGE, path, message, blocking=True)
            )
    return tuple(found)


def inputs_of(snapshot: Snapshot, image: str, kept: Adopted = NOTHING) -> Inputs:
    """Everything in a snapshot that the control plane's configuration depends on.

    `kept` is what was adopted.
    """
    stock = next(
        (
            pod.arguments
            for pod in (operand_pods.read(pod) for _, pod in sorted(snapshot.operand_pods.items()))
            if not pod.ours
        ),
        (),
    )
    if snapshot.platform.adopts_pods and not kept.new:
        stock = ()  # a manifest that appears after adoption is drift, or a new node's
    return Inputs(
        platform=snapshot.platform,
        operand_version=operand_version(snapshot, image),
        scheduler=snapshot.scheduler,
        kubescheduler=snapshot.kubescheduler or {},
        stock_arguments=stock,
        adopted_config=kept.config,
        # On OpenShift the image of the stock scheduler can have any name.
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
        scheduler_profiles=_values(snapshot.scheduler_profiles),
        scheduler_extenders=_values(snapshot.scheduler_extenders),
        agent_images=snapshot.settings.agent_images,
    )


def _values(objects: Mapping[str, Object] | None) -> tuple[Object, ...] | None:
    return None if objects is None else tuple(objects.values())


def _composed_arguments(snapshot: Snapshot) -> tuple[str, ...]:
    """The scheduler's command line that was composed last, from the target Pod."""
    try:
        pod = parse_json(snapshot.config_maps[names.POD]["data"][names.POD_KEY])
        return operand_pods.read(pod).arguments
    except (KeyError, TypeError, AttributeError, ValueError):
        return ()  # it does not exist yet, or another writer has changed it
