"""Settings that have no effect on kube-scheduler, and what to use instead.

OpenShift's Scheduler has fields that other operators implement. On other platforms, a finding names
the setting that has the same effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....base import names
from ....base.findings import Finding
from ....base.objects import mapping
from .inputs import Inputs

_ROLE: Final = "node-role.kubernetes.io/control-plane"
_TAINT: Final = f"{_ROLE}:NoSchedule"


def ineffective_settings(inputs: Inputs) -> Iterator[Finding]:
    """Report settings without effect; no finding blocks."""
    spec = mapping(mapping(inputs.scheduler).get("spec"))
    if inputs.platform.cluster_config:
        for key, instead in (
            ("tlsSecurityProfile", "spec.tlsSecurityProfile of APIServer"),
            ("featureGates", "FeatureGate"),
        ):
            if inputs.spec.get(key) is not None:
                message = f'on this platform, set {instead} "{names.CLUSTER}" instead'
                yield _finding("SetElsewhere", f"spec.{key}", message)
        return
    schedulable = spec.get("mastersSchedulable")
    if not inputs.platform.owns_static_pods:
        if schedulable is not None:
            message = "the provider's control-plane nodes are not visible; remove it"
            yield _finding("NoControlPlaneNodes", "spec.mastersSchedulable", message)
        if inputs.spec.get("bindAddress"):
            message = "the kubelet probes the Pod's own address on this platform; remove it"
            yield _finding("NotSupported", "spec.bindAddress", message)
    elif schedulable is not None:
        change = f"{_TAINT}-" if schedulable else f"{_TAINT} --overwrite"
        message = (
            f"the taint {_TAINT} of the nodes decides; "
            f"{'remove' if schedulable else 'add'} it: kubectl taint nodes -l {_ROLE} {change}"
        )
        yield _finding("DecidedByTaints", "spec.mastersSchedulable", message)
    if spec.get("defaultNodeSelector"):
        message = (
            "the admission plugin PodNodeSelector of kube-apiserver decides; enable it "
            "with --enable-admission-plugins=PodNodeSelector and put the selector into "
            "clusterDefaultNodeSelector of its configuration, or into the annotation "
            "scheduler.alpha.kubernetes.io/node-selector of namespaces"
        )
        yield _finding("DecidedByAdmission", "spec.defaultNodeSelector", message)


def _finding(reason: str, path: str, message: str) -> Finding:
    return Finding(names.INEFFECTIVE_SETTINGS, reason, path, message, blocking=False)
