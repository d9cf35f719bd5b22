"""What users' settings come to: observed, composed, and as the content of a revision."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..base import names
from ..base.findings import Finding
from ..model import operand_pods
from ..model.attachment import CONTROL_PLANE
from ..model.snapshot import Snapshot
from .compose import Composition, Inputs, compose
from .operand_image import operand_image, operand_version
from .revision.content import Content
from .revision.credentials import has_serving_certificate
from .revision.inputs import record
from .target_config_maps import target_data


def wanted(snapshot: Snapshot) -> tuple[Content | None, tuple[Finding, ...]]:
    """What users' settings come to, for commands that ask "what if"; nothing is done about it.

    Returns:
        configuration and pod of the revision that they ask for (None if it would not be cut),
        without the credentials that the cluster adds, and what somebody should know about it.
    """
    image = operand_image(snapshot)
    composition = composed(snapshot, image)
    findings = (*composition.findings, *image_findings(image))
    if any(finding.blocking for finding in findings):
        return None, findings
    return content_of(snapshot, composition, image, {}), findings


def composed(snapshot: Snapshot, image: str) -> Composition:
    """The configuration that all settings in a snapshot come to, for the scheduler in `image`."""
    return compose(_inputs(snapshot, image))


def content_of(
    snapshot: Snapshot,
    composition: Composition,
    image: str,
    credentials: Mapping[str, Mapping[str, str]],
) -> Content | None:
    """The revision that a composition asks for; None if it has no configuration.

    Args:
        snapshot: what was seen.
        composition: of that.
        image: kube-scheduler's.
        credentials: further parts, which the cluster adds.
    """
    if composition.config is None:
        return None
    reason = str(snapshot.spec.get("forceRedeploymentReason") or "")
    target = target_data(snapshot.platform, composition, image, reason)
    profiles = {v.name: v.spec for v in composition.verdicts if v.spec is not None}
    extenders = {
        v.name: v.spec for v in composition.extenders if v.spec is not None and v.entry is not None
    }
    inputs = record(snapshot.scheduler, snapshot.kubescheduler, profiles, extenders)
    return Content({**target, **credentials}, inputs)


def image_findings(image: str) -> tuple[Finding, ...]:
    """What somebody should do if no image is known; nothing if one is."""
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


def _inputs(snapshot: Snapshot, image: str) -> Inputs:
    stock = next(
        (
            pod.arguments
            for pod in (operand_pods.read(pod) for _, pod in sorted(snapshot.operand_pods.items()))
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
        scheduler_extenders=None
        if snapshot.scheduler_extenders is None
        else tuple(snapshot.scheduler_extenders.values()),
    )


def _composed_arguments(snapshot: Snapshot) -> tuple[str, ...]:
    """The scheduler's command line as it was composed last: what the target's pod has."""
    try:
        pod = json.loads(snapshot.config_maps[names.POD]["data"][names.POD_KEY])
        return operand_pods.read(pod).arguments
    except (KeyError, TypeError, AttributeError, ValueError):
        return ()  # there is none yet, or somebody put something else there
