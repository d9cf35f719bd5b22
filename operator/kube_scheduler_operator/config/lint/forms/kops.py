"""kops: spec.kubeScheduler of a Cluster, and the configuration beside it.

Sources: kubernetes/kops 1.34, pkg/apis/kops/componentconfig.go (KubeSchedulerConfig) and
docs/cluster_spec.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path, Problem
from ....base.objects import mapping
from ....base.source.reader import Document
from .document_fields import at, label_of, text, value_of, version_of
from .flags import of_map
from .form import CommandLine, CommandLineFlag, Contents

_KOPS_FLAGS: Final[Mapping[str, str]] = {
    "master": "master",
    "logLevel": "v",
    "logFormat": "logging-format",
    "featureGates": "feature-gates",
    "enableProfiling": "profiling",
    "enableContentionProfiling": "contention-profiling",
    "authenticationKubeconfig": "authentication-kubeconfig",
    "authorizationKubeconfig": "authorization-kubeconfig",
    "authorizationAlwaysAllowPaths": "authorization-always-allow-paths",
    "tlsCertFile": "tls-cert-file",
    "tlsPrivateKeyFile": "tls-private-key-file",
    "kubeAPIQPS": "kube-api-qps",
    "kubeAPIBurst": "kube-api-burst",
    "leaderElect": "leader-elect",
    "leaderElectLeaseDuration": "leader-elect-lease-duration",
    "leaderElectRenewDeadlineDuration": "leader-elect-renew-deadline",
    "leaderElectResourceLock": "leader-elect-resource-lock",
    "leaderElectResourceName": "leader-elect-resource-name",
    "leaderElectResourceNamespace": "leader-elect-resource-namespace",
    "leaderElectRetryPeriod": "leader-elect-retry-period",
}
"""Field of spec.kubeScheduler, or of its leaderElection -> the flag that kops sets for it."""
_KOPS_CONFIG: Final = "/var/lib/kube-scheduler/config.yaml"


def read(document: Document) -> Contents:
    """Read spec.kubeScheduler of a Cluster; kops also reads a configuration beside it."""
    value = value_of(document)
    path: Path = ("spec", "kubeScheduler")
    spec = at(value, "spec", "kubeScheduler")
    if not isinstance(spec, Mapping):
        return Contents()
    election = mapping(spec.get("leaderElection"))
    arguments = (*_of_kops(spec, path), *_of_kops(election, (*path, "leaderElection")))
    problems: tuple[Problem, ...] = ()
    if spec.get("usePolicyConfigMap"):
        problem = Problem(
            "UnknownArgument",
            (*path, "usePolicyConfigMap"),
            "kops sets --policy-configmap for it, a flag that kube-scheduler 1.23 removed: "
            "kube-scheduler does not start",
            "remove it, and append the KubeSchedulerConfiguration to the file as a document",
        )
        problems = (problem,)
    command = CommandLine(
        label=label_of(value),
        arguments=arguments,
        at=path,
        image=text(spec.get("image")),
        image_at=(*path, "image"),
        version=version_of(at(value, "spec", "kubernetesVersion")),
        namespace="kube-system",
        given={"config": _KOPS_CONFIG},
    )
    return Contents(commands=(command,), problems=problems)


def _of_kops(spec: Mapping[str, Any], path: Path) -> Iterator[CommandLineFlag]:
    for key, value in spec.items():
        if key in _KOPS_FLAGS:
            flags = of_map({key: value}, path)
            yield from (CommandLineFlag(_KOPS_FLAGS[key], flag.value, flag.path) for flag in flags)
