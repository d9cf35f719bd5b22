"""Reports to the ClusterOperator, even while KubeScheduler does not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from ...base import names
from ...base.objects import mapping
from ...kube.resource import CLUSTER_OPERATORS
from ..model import operand_pods
from ..model.plan import Create, Plan, Replace
from ..model.snapshot import Snapshot
from ..status.cluster_operator import plan_cluster_operator
from .managed_status import scheduler_conditions
from .operand_image import operand_image, operand_version

_OPERATOR: Final = "operator"
_RAW_INTERNAL: Final = "raw-internal"
"""OpenShift's name for the operator's version as soon as it runs."""


def report_cluster_operator(
    snapshot: Snapshot, conditions: Sequence[Mapping[str, Any]], progress: str = ""
) -> Plan:
    """The write of the ClusterOperator, and when it may change by itself.

    `conditions` are KubeScheduler's new ones; `progress` is that of a removal.
    """
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
        # The API ignores status at creation; it is written once the object exists.
        without_status = {key: value for key, value in planned.object.items() if key != "status"}
        return Plan(reports=(Create(CLUSTER_OPERATORS, without_status),), requeue_after=0.0)
    write = Replace(CLUSTER_OPERATORS, planned.object, "status")
    return Plan(reports=(write,), requeue_after=planned.requeue_after)


def report_without_kubescheduler(snapshot: Snapshot) -> Plan:
    """Report that KubeScheduler is missing: not an uninstall, so all schedulers stay."""
    since = "2000-01-01T00:00:00Z"  # older than any inertia: not a transient problem
    if not snapshot.platform.owns_static_pods:
        missing = _missing(since, "SecondarySchedulers keep running unchanged")
        available = [
            {**asdict(condition), "lastTransitionTime": since}
            for condition in scheduler_conditions(snapshot)
        ]
        return report_cluster_operator(snapshot, [*available, missing])
    ready = sum(operand_pods.read(pod).ready for pod in snapshot.operand_pods.values())
    pods = "1 scheduler pod is" if ready == 1 else f"{ready} scheduler pods are"
    conditions = [
        {
            "type": names.STATIC_PODS_AVAILABLE,
            "status": "True" if ready else "False",
            "reason": "AsExpected" if ready else "NoReadyScheduler",
            "message": f"{pods} Ready",
            "lastTransitionTime": since,
        },
        _missing(since, "schedulers keep running unchanged"),
    ]
    return report_cluster_operator(snapshot, conditions)


def _missing(since: str, meanwhile: str) -> dict[str, str]:
    return {
        "type": "KubeSchedulerDegraded",
        "status": "True",
        "reason": "NotFound",
        "message": (
            f'KubeScheduler "cluster" does not exist; {meanwhile}; to continue, create it: '
            'kubectl create -f - <<< \'{"apiVersion":"operator.openshift.io/v1",'
            '"kind":"KubeScheduler","metadata":{"name":"cluster"},"spec":{}}\''
        ),
        "lastTransitionTime": since,
    }


def _versions(snapshot: Snapshot) -> dict[str, str]:
    """The certain versions: the operand's only if all its pods run the same image."""
    own = snapshot.settings.operator_version
    images = _images(snapshot)
    if snapshot.platform.cluster_config:
        return _versions_of_the_release(snapshot, own, images)
    versions = {_OPERATOR: own}
    if len(images) == 1:
        versions[names.OPERAND] = str(operand_version(snapshot, images.pop()))
    return versions


def _images(snapshot: Snapshot) -> set[str]:
    """The images of all schedulers: the control plane's, else those of SecondarySchedulers."""
    if snapshot.platform.owns_static_pods:
        return {operand_pods.read(pod).image for pod in snapshot.operand_pods.values()}
    statuses = (mapping(obj.get("status")) for obj in snapshot.secondaries.schedulers.values())
    return {str(status["image"]) for status in statuses if status.get("image")}


def _versions_of_the_release(snapshot: Snapshot, own: str, images: set[str]) -> dict[str, str]:
    """The names and spellings of a release payload, which ends an upgrade by comparing them.

    The operator's version is reported once every scheduler runs the image of its release.
    """
    image = operand_image(snapshot)
    if images != {image}:
        return {_RAW_INTERNAL: own}
    tagged = str(operand_version(snapshot, image)).removeprefix("v")
    operand = snapshot.settings.operand_version or tagged
    return {_RAW_INTERNAL: own, _OPERATOR: own, names.OPERAND: operand}
