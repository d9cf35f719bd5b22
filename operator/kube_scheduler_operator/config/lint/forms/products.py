"""Products that keep kube-scheduler's settings in fields of their own.

kubeadm, Rancher's products and charts of Helm have modules of their own. Sources:

* AKS: MicrosoftDocs/azure-aks-docs at fb060ab, articles/aks/configure-aks-scheduler.md.
* Talos: siderolabs/talos at ad88231, pkg/machinery/config/types/v1alpha1/v1alpha1_types.go
  (SchedulerConfig, which the JSON schema of 1.14 no longer has) and types/k8s/scheduler.go. Talos
  sets apiVersion, kind and the kubeconfig itself and refuses --config (internal/app/machined/pkg/
  controllers/k8s).
* kops: kubernetes/kops 1.34, pkg/apis/kops/componentconfig.go (KubeSchedulerConfig) and
  docs/cluster_spec.md.
* Kubespray: kubernetes-sigs/kubespray at 0128a2c, roles/kubernetes/control-plane: defaults/main/
  kube-scheduler.yml, templates/kubescheduler-config.yaml.j2 and kubeadm-config.v1beta4.yaml.j2.
* k0s: k0sproject/k0s 1.34, pkg/apis/k0s/v1beta1/clusterconfig_types.go (SchedulerSpec).
* Gardener: gardener/gardener at b312835, pkg/apis/core/v1beta1/types_shoot.go.
* kwok: kwok 0.7, pkg/apis/config/v1alpha1.
* OpenShift: openshift/secondary-scheduler-operator at d906e11, pkg/apis/secondaryscheduler/v1/
  types.go, bindata/assets/secondary-scheduler/deployment.yaml and, for the flags and replicas,
  pkg/operator/target_config_reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ....base.decoding import INVALID_TYPE, UNKNOWN_FIELD
from ....base.findings import (
    NOT_ALLOWED,
    WARNING,
    Path,
    Problem,
    did_you_mean,
    format_path,
    listing,
)
from ....base.objects import entries, mapping
from ....base.source.reader import Document
from ....base.source.tree import SourceNode
from ...effective.profiles.aks_support import NAME
from ...language.flags import UNKNOWN_ARGUMENT, VOID_ARGUMENT
from .document_fields import (
    at,
    label_of,
    name_of,
    namespace_of,
    objects,
    text,
    value_of,
    version_of,
)
from .flags import of_map, of_names, of_words, word_problems
from .form import (
    CommandLine,
    CommandLineFlag,
    Contents,
    Mount,
    Part,
    Text,
    assembled,
    host_mounts,
    node_at,
    with_type,
)
from .workload import stock_version

# --- AKS: a SchedulerConfiguration (preview) with a KubeSchedulerConfiguration as text -----------


def read_aks(document: Document) -> Contents:
    value = value_of(document)
    path: Path = ("spec", "rawConfig")
    raw = at(value, *path)
    problems = []
    if name_of(value) not in ("", NAME):
        message = f'AKS reads the SchedulerConfiguration "{NAME}" only, not "{name_of(value)}"'
        problem = Problem("NotRead", ("metadata", "name"), message, f"rename it to {NAME}", WARNING)
        problems.append(problem)
    if not isinstance(raw, str):
        message = "must be a text with a KubeSchedulerConfiguration"
        problems.append(Problem(INVALID_TYPE, path, message, "begin it with `rawConfig: |`"))
        return Contents(problems=tuple(problems))
    content = Text(path, raw, label_of(value), required=True, place="aks")
    return Contents(texts=(content,), problems=tuple(problems))


# --- Talos: cluster.scheduler of a machine configuration, and the document KubeSchedulerConfig ---

_SET_BY_TALOS: Final = (
    "config", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig",
)  # fmt: skip


def read_talos(document: Document) -> Contents | None:
    """Read the scheduler of a machine configuration or a patch of one."""
    value = value_of(document)
    if value.get("kind") == "KubeSchedulerConfig" and value.get("apiVersion") == "v1alpha1":
        return _talos_scheduler(document, (), "KubeSchedulerConfig")
    if "kind" in value or not isinstance(at(value, "cluster", "scheduler"), dict):
        return None
    return _talos_scheduler(document, ("cluster", "scheduler"), "machine configuration of Talos")


def _talos_scheduler(document: Document, path: Path, label: str) -> Contents:
    spec = at(value_of(document), *path)
    image = text(at(spec, "image"))
    version = stock_version(image)
    arguments = tuple(of_map(at(spec, "extraArgs"), (*path, "extraArgs")))
    problems = []
    for flag in arguments:
        if flag.name in _SET_BY_TALOS:
            message = f"Talos sets --{flag.name} itself and does not accept it here"
            place = format_path((*path, "config"))
            more = f", and write the configuration to {place}" if flag.name == "config" else ""
            problems.append(Problem(NOT_ALLOWED, flag.path, message, f"remove it{more}"))
    command = CommandLine(
        label=label,
        arguments=tuple(flag for flag in arguments if flag.name not in _SET_BY_TALOS),
        at=(*path, "extraArgs"),
        mounts=tuple(host_mounts(at(spec, "extraVolumes"), path)),
        image=image,
        version=version,
        namespace="kube-system",
        given={"config": "/system/config/kubernetes/kube-scheduler/scheduler-config.yaml"},
    )
    parts: tuple[Part, ...] = ()
    config: Path = (*path, "config")
    if (node := node_at(document, config)) is not None:
        parts = (Part(with_type(node), label, (((), config),), version=version, command=0),)
    return Contents(parts=parts, commands=(command,), problems=tuple(problems))


# --- kops: spec.kubeScheduler of a Cluster, and the configuration beside it ----------------------

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


def read_kops(document: Document) -> Contents:
    """Read spec.kubeScheduler of a Cluster; kops also reads a configuration beside it."""
    value = value_of(document)
    path: Path = ("spec", "kubeScheduler")
    spec = at(value, *path)
    if not isinstance(spec, Mapping):
        return Contents()
    election = mapping(spec.get("leaderElection"))
    problem = Problem(
        UNKNOWN_ARGUMENT,
        (*path, "usePolicyConfigMap"),
        "kops sets --policy-configmap for it, a flag that kube-scheduler 1.23 removed: "
        "kube-scheduler does not start",
        "remove it, and append the KubeSchedulerConfiguration to the file as a document",
    )
    command = CommandLine(
        label=label_of(value),
        arguments=(*_kops_flags(spec, path), *_kops_flags(election, (*path, "leaderElection"))),
        at=path,
        image=text(spec.get("image")),
        image_at=(*path, "image"),
        version=version_of(at(value, "spec", "kubernetesVersion")),
        namespace="kube-system",
        given={"config": "/var/lib/kube-scheduler/config.yaml"},
    )
    return Contents(
        commands=(command,), problems=(problem,) if spec.get("usePolicyConfigMap") else ()
    )


def _kops_flags(spec: Mapping[str, Any], path: Path) -> Iterator[CommandLineFlag]:
    for key, value in spec.items():
        if key in _KOPS_FLAGS:
            for flag in of_map({key: value}, path):
                yield CommandLineFlag(_KOPS_FLAGS[key], flag.value, flag.path)


# --- Kubespray: group variables that become flags and the file of kube-scheduler -----------------

_VARIABLES_OF_FLAGS: Final = ("kube_kubeadm_scheduler_extra_args", "kube_scheduler_extra_args")
_VARIABLES_OF_FIELDS: Final = {
    "kube_scheduler_profiles": "profiles",
    "kube_scheduler_extenders": "extenders",
    "kube_scheduler_client_conn_extra_opts": "clientConnection",
    "kube_scheduler_leader_elect_extra_opts": "leaderElection",
}
_OTHER_FIELDS: Final = "kube_scheduler_config_extra_opts"
_KUBESPRAY: Final = "Kubespray's group variables"
_KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"


def read_kubespray(document: Document) -> Contents | None:
    value = value_of(document)
    variables = (*_VARIABLES_OF_FLAGS, *_VARIABLES_OF_FIELDS, _OTHER_FIELDS)
    if "kind" in value or value.keys().isdisjoint(variables):
        return None
    version = version_of(value.get("kube_version"))
    command = CommandLine(
        _KUBESPRAY,
        tuple(flag for key in _VARIABLES_OF_FLAGS for flag in of_map(value.get(key), (key,))),
        (_VARIABLES_OF_FLAGS[0],),
        version=version,
        namespace="kube-system",
        given={"config": "/etc/kubernetes/kubescheduler-config.yaml", "kubeconfig": _KUBECONFIG},
    )
    fields: dict[str, SourceNode] = {}
    paths: dict[str, Path] = {}
    for key, name in _VARIABLES_OF_FIELDS.items():
        node = node_at(document, (key,))
        if node is not None and node.data:
            fields[name], paths[name] = node, (key,)
    for key in mapping(value.get(_OTHER_FIELDS)):
        node = node_at(document, (_OTHER_FIELDS, key))
        if node is not None:
            fields[str(key)], paths[str(key)] = node, (_OTHER_FIELDS, key)
    start = document.root.position
    fields.setdefault("clientConnection", assembled({"kubeconfig": _KUBECONFIG}, start))
    parts: tuple[Part, ...] = ()
    if paths:
        root = with_type(replace(assembled(fields, start), position=start))
        outer = tuple(((name,), path) for name, path in paths.items())
        parts = (Part(root, _KUBESPRAY, outer, version=version, command=0),)
    return Contents(parts=parts, commands=(command,) if command.arguments or parts else ())


# --- k0s: spec.scheduler of a ClusterConfig ------------------------------------------------------


def read_k0s(document: Document) -> Contents:
    """Read spec.scheduler of a ClusterConfig; its rawArgs come after its extraArgs."""
    path: Path = ("spec", "scheduler")
    spec = at(value_of(document), *path)
    words = [
        (word, (*path, "rawArgs", index))
        for index, word in enumerate(entries(at(spec, "rawArgs")))
        if isinstance(word, str)
    ]
    arguments = (*of_map(at(spec, "extraArgs"), (*path, "extraArgs")), *of_words(words))
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


# --- Gardener: spec.kubernetes.kubeScheduler of a Shoot ------------------------------------------

_GARDENERS_PROFILES: Final = ("balanced", "bin-packing")
"""The profiles of Shoots, which config/lint/providers/managed.py writes."""


def read_gardener(document: Document) -> Contents:
    value = value_of(document)
    path: Path = ("spec", "kubernetes", "kubeScheduler")
    spec = at(value, *path)
    if not isinstance(spec, Mapping):
        return Contents()
    gates = (*path, "featureGates")
    flags = of_map({"feature-gates": spec.get("featureGates") or {}}, path)
    command = CommandLine(
        label=label_of(value),
        arguments=tuple(replace(flag, path=gates) for flag in flags if flag.value),
        at=path,
        version=version_of(at(value, "spec", "kubernetes", "version")),
        namespace="kube-system",
    )
    return Contents(commands=(command,), problems=tuple(_shoot_problems(spec, path)))


def _shoot_problems(spec: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    profile = spec.get("profile")
    if profile is not None and profile not in _GARDENERS_PROFILES:
        profiles = listing(_GARDENERS_PROFILES)
        message = f'Gardener has the profiles {profiles}, not "{profile}"'
        hint = did_you_mean(str(profile), _GARDENERS_PROFILES).removeprefix("; ")
        yield Problem("UnknownProfile", (*path, "profile"), message, hint or f"use {profiles}")
    for key in spec:
        if key not in ("profile", "featureGates", "kubeMaxPDVols"):
            message = (
                f'Gardener has no field "{key}" here: a Shoot supports only a profile and feature '
                "gates of kube-scheduler"
            )
            fix = "run the profile in a SecondaryScheduler"
            yield Problem(UNKNOWN_FIELD, (*path, key), message, fix)
    if spec.get("kubeMaxPDVols") not in (None, ""):
        message = (
            "kube-scheduler does not read kubeMaxPDVols, and Gardener forbids it from Kubernetes "
            "1.35 on"
        )
        yield Problem(VOID_ARGUMENT, (*path, "kubeMaxPDVols"), message, "remove it", WARNING)


# --- kwok: componentsPatches of a KwokctlConfiguration -------------------------------------------


def read_kwok(document: Document) -> Contents:
    commands = []
    for index, patch in objects(at(value_of(document), "componentsPatches")):
        path: Path = ("componentsPatches", index, "extraArgs")
        if patch.get("name") == "kube-scheduler":
            arguments = tuple(of_names(patch.get("extraArgs"), path, "key"))
            commands.append(CommandLine("KwokctlConfiguration", arguments, path))
    return Contents(commands=tuple(commands))


# --- OpenShift: a SecondaryScheduler of the secondary-scheduler-operator, and its ConfigMap ------

OPENSHIFT_SEVERAL: Final = "HighlyAvailable"
OPENSHIFT_PROGRAM: Final = "/bin/kube-scheduler"
_OPENSHIFT_LEASE: Final[Mapping[str, str]] = {
    "leader-elect": "true",
    "leader-elect-resource-name": "secondary-scheduler",
    "leader-elect-resource-namespace": "openshift-secondary-scheduler-operator",
}
_OPENSHIFT_LEVELS: Final[Mapping[str, str]] = {"Debug": "4", "Trace": "6", "TraceAll": "8"}


def read_openshift(document: Document) -> Contents:
    """Read what secondary-scheduler-operator starts with a SecondaryScheduler.

    spec.schedulerConfig names a ConfigMap with the key config.yaml.
    """
    value = value_of(document)
    path: Path = ("spec", "schedulerConfig")
    image = text(at(value, "spec", "schedulerImage"))
    command = CommandLine(
        label=label_of(value),
        arguments=(
            CommandLineFlag("config", "/etc/kubernetes/config.yaml", path),
            *(CommandLineFlag(flag, set_, path) for flag, set_ in _OPENSHIFT_LEASE.items()),
            *_openshift_flags(value),
        ),
        at=path,
        mounts=(Mount("/etc/kubernetes", "ConfigMap", text(at(value, *path)), at=path),),
        image=image,
        image_at=("spec", "schedulerImage"),
        version=stock_version(image),
        namespace=namespace_of(value) or "openshift-secondary-scheduler-operator",
        account="secondary-scheduler",
        replicas=_openshift_replicas(mapping(at(value, "spec", "topology"))),
    )
    return Contents(commands=(command,))


def _openshift_flags(value: Any) -> Iterator[CommandLineFlag]:
    level: Path = ("spec", "logLevel")
    if verbosity := _OPENSHIFT_LEVELS.get(text(at(value, *level))):
        yield CommandLineFlag("v", verbosity, level)
    serving: Path = ("spec", "observedConfig", "servingInfo")
    if suites := [*filter(None, map(text, entries(at(value, *serving, "cipherSuites"))))]:
        yield CommandLineFlag("tls-cipher-suites", ",".join(suites), (*serving, "cipherSuites"))
    if oldest := text(at(value, *serving, "minTLSVersion")):
        yield CommandLineFlag("tls-min-version", oldest, (*serving, "minTLSVersion"))


def _openshift_replicas(topology: Mapping[str, Any]) -> int:
    """Return the most that there are: one for each node that the selector matches, at most this."""
    if topology.get("mode") != OPENSHIFT_SEVERAL:
        return 1
    most = mapping(topology.get("highlyAvailableTopology")).get("maxReplicas")
    return most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else 3
