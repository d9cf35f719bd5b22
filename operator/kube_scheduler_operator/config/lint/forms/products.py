"""Products that accept flags of kube-scheduler in one field: kops, k0s, Gardener, kwok.

Sources: kubernetes/kops 1.34, pkg/apis/kops/componentconfig.go (KubeSchedulerConfig) and
docs/cluster_spec.md; k0sproject/k0s 1.34, pkg/apis/k0s/v1beta1/clusterconfig_types.go
(SchedulerSpec); gardener/gardener at b312835, pkg/apis/core/v1beta1/types_shoot.go; kwok 0.7,
pkg/apis/config/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import WARNING, Path, Problem, did_you_mean, listing
from ....base.objects import mapping
from ....base.source.reader import Document
from .document_fields import at, entries, group_kind, label_of, objects, text, value_of, version_of
from .flags import of_map, of_names, of_words
from .form import CommandLine, CommandLineFlag, Contents, Form
from .words import word_problems

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
PROFILES: Final = ("balanced", "bin-packing")
"""The profiles of Gardener's Shoots (config/lint/providers/gardener.py writes them)."""


def read_kops(document: Document) -> Contents | None:
    """Read spec.kubeScheduler of a Cluster; kops also reads a configuration beside it."""
    value = value_of(document)
    if group_kind(value) != ("kops.k8s.io", "Cluster"):
        return None
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


def read_k0s(document: Document) -> Contents | None:
    """Read spec.scheduler of a ClusterConfig; its rawArgs come after its extraArgs."""
    value = value_of(document)
    if group_kind(value) != ("k0s.k0sproject.io", "ClusterConfig"):
        return None
    path: Path = ("spec", "scheduler")
    spec = mapping(at(value, *map(str, path)))
    words = [
        (word, (*path, "rawArgs", index))
        for index, word in enumerate(entries(spec.get("rawArgs")))
        if isinstance(word, str)
    ]
    arguments = (*of_map(spec.get("extraArgs"), (*path, "extraArgs")), *of_words(words))
    problems = tuple(word_problems([("kube-scheduler", path), *words]))
    if not arguments and not problems:
        return Contents()
    command = CommandLine(
        "ClusterConfig of k0s",
        arguments,
        path,
        namespace="kube-system",
        given={"kubeconfig": "/var/lib/k0s/pki/scheduler.conf", "leader-elect": "true"},
    )
    return Contents(commands=(command,), problems=problems)


def read_gardener(document: Document) -> Contents | None:
    value = value_of(document)
    if group_kind(value) != ("core.gardener.cloud", "Shoot"):
        return None
    path: Path = ("spec", "kubernetes", "kubeScheduler")
    spec = at(value, *map(str, path))
    if not isinstance(spec, Mapping):
        return Contents()
    gates = (*path, "featureGates")
    flags = of_map({"feature-gates": spec.get("featureGates") or {}}, path)
    arguments = tuple(CommandLineFlag(flag.name, flag.value, gates) for flag in flags if flag.value)
    command = CommandLine(
        label=label_of(value),
        arguments=arguments,
        at=path,
        version=version_of(at(value, "spec", "kubernetes", "version")),
        namespace="kube-system",
    )
    return Contents(commands=(command,), problems=tuple(_shoot(spec, path)))


def _shoot(spec: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    profile = spec.get("profile")
    if profile is not None and profile not in PROFILES:
        hint = did_you_mean(str(profile), PROFILES).removeprefix("; ")
        yield Problem(
            "UnknownProfile",
            (*path, "profile"),
            f'Gardener has the profiles {listing(PROFILES)}, not "{profile}"',
            hint or f"use {listing(PROFILES)}",
        )
    for key in spec:
        if key not in ("profile", "featureGates", "kubeMaxPDVols"):
            yield Problem(
                "UnknownField",
                (*path, key),
                f'Gardener has no field "{key}" here: a Shoot supports only a profile and feature '
                "gates of kube-scheduler",
                "run the profile in a SecondaryScheduler",
            )
    if spec.get("kubeMaxPDVols") not in (None, ""):
        yield Problem(
            "VoidArgument",
            (*path, "kubeMaxPDVols"),
            "kube-scheduler does not read kubeMaxPDVols, and Gardener forbids it from Kubernetes "
            "1.35 on",
            "remove it",
            WARNING,
        )


def read_kwok(document: Document) -> Contents | None:
    value = value_of(document)
    if group_kind(value) != ("config.kwok.x-k8s.io", "KwokctlConfiguration"):
        return None
    commands = []
    for index, patch in objects(value.get("componentsPatches")):
        path: Path = ("componentsPatches", index, "extraArgs")
        if patch.get("name") == "kube-scheduler":
            arguments = tuple(of_names(patch.get("extraArgs"), path, "key"))
            commands.append(CommandLine("KwokctlConfiguration", arguments, path))
    return Contents(commands=tuple(commands))


KOPS: Final = Form(
    "kops Cluster (`spec.kubeScheduler`) and the configuration beside it",
    "kubernetes/kops 1.34, pkg/apis/kops/componentconfig.go",
    read_kops,
)
K0S: Final = Form(
    "k0s ClusterConfig (`spec.scheduler`)",
    "k0sproject/k0s 1.34, pkg/apis/k0s/v1beta1/clusterconfig_types.go",
    read_k0s,
)
GARDENER: Final = Form(
    "Gardener Shoot (`spec.kubernetes.kubeScheduler`)",
    "gardener/gardener at b312835, pkg/apis/core/v1beta1/types_shoot.go",
    read_gardener,
)
KWOK: Final = Form(
    "KwokctlConfiguration (`componentsPatches`)", "kwok 0.7, pkg/apis/config/v1alpha1", read_kwok
)
