"""Settings that do nothing for kube-scheduler, and who honours them instead.

OpenShift's Scheduler has fields that are not about kube-scheduler; there, other operators honour
them. Where there are none, the user is told what does the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..base import names
from ..base.findings import Finding
from ..base.objects import mapping
from ..model.inputs import Inputs

_ROLE: Final = "node-role.kubernetes.io/control-plane"
_TAINT: Final = f"{_ROLE}:NoSchedule"


def ineffective_settings(inputs: Inputs) -> Iterator[Finding]:
    """What was set and has no effect here; nothing of it blocks."""
    spec = mapping(mapping(inputs.scheduler).get("spec"))
    if inputs.platform.cluster_config:
        for key, instead in (
            ("tlsSecurityProfile", "spec.tlsSecurityProfile of APIServer"),
            ("featureGates", "FeatureGate"),
        ):
            if inputs.spec.get(key) is not None:
                message = f'on this platform {instead} "{names.CLUSTER}" counts; set it there'
                yield _finding("SetElsewhere", f"spec.{key}", message)
        return
    schedulable = spec.get("mastersSchedulable")
    if schedulable is not None:
        change = f"{_TAINT}-" if schedulable else f"{_TAINT} --overwrite"
        message = (
            f"what decides is the taint {_TAINT} of the nodes; "
            f"{'remove' if schedulable else 'add'} it: kubectl taint nodes -l {_ROLE} {change}"
        )
        yield _finding("DecidedByTaints", "spec.mastersSchedulable", message)
    if spec.get("defaultNodeSelector"):
        message = (
            "what decides is the admission plugin PodNodeSelector of kube-apiserver; enable it "
            "with --enable-admission-plugins=PodNodeSelector and put the selector into "
            "clusterDefaultNodeSelector of its configuration, or into the annotation "
            "scheduler.alpha.kubernetes.io/node-selector of namespaces"
        )
        yield _finding("DecidedByAdmission", "spec.defaultNodeSelector", message)


def _finding(reason: str, path: str, message: str) -> Finding:
    return Finding(names.INEFFECTIVE_SETTINGS, reason, path, message, blocking=False)
