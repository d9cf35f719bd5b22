"""kubeadm: the configuration file on control-plane nodes, and how the static Pod gets it.

Two ways: ClusterConfiguration, which `kubeadm upgrade` keeps, or a patch of the manifest for
`--patches`. Sources, in k8s.io/kubernetes 1.36.3, cmd/kubeadm/app: apis/kubeadm/v1beta4/types.go
(extraArgs is a list that may repeat a flag) and v1beta3/types.go (a map); util/config/common.go
(kubeadm writes v1beta4 from 1.31 on); phases/controlplane/manifests.go (an extra argument replaces
kubeadm's own flag of that name); util/patches/patches.go (names of patches, YAML allowed).
"""

from __future__ import annotations

from typing import Any, Final

from ...language.command_line import Flags
from ...language.versions import Version
from .desired import Desired, named_files, without_agents
from .provider import ProviderFile, ProviderOutput
from .unsupported import unsupported_agents, unsupported_repetitions

CONFIG: Final = "/etc/kubernetes/kube-scheduler.yaml"
KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"
VOLUME: Final = "scheduler-config"
PATCH: Final = "kube-scheduler0+json.yaml"
LISTS_SINCE: Final = Version(1, 31)


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the configuration file, and a ClusterConfiguration that mounts and names it."""
    lists = desired.gates.version >= LISTS_SINCE
    flags = _flags(desired)
    volumes = [
        {"name": name, "hostPath": path, "mountPath": path, "readOnly": True, "pathType": "File"}
        for name, path in _volumes(desired).items()
    ]
    arguments: Any = {name: values[-1] for name, values in flags.items()}
    if lists:
        arguments = [
            {"name": name, "value": value} for name, values in flags.items() for value in values
        ]
    document = {
        "apiVersion": f"kubeadm.k8s.io/{'v1beta4' if lists else 'v1beta3'}",
        "kind": "ClusterConfiguration",
        "scheduler": {"extraArgs": arguments, "extraVolumes": volumes},
    }
    file = ProviderFile(
        "cluster-configuration.yaml",
        "merge it into the file of `kubeadm init --config`; on an existing cluster, into the "
        "ConfigMap kubeadm-config, and run `kubeadm init phase control-plane scheduler --config "
        "FILE` on one node at a time",
        document,
    )
    findings = list(unsupported_agents(desired))
    if not lists:
        who = f"kubeadm before {LISTS_SINCE.short}"
        findings += unsupported_repetitions(desired, who, "use --for kubeadm-patches")
    return ProviderOutput((_config_file(desired), file), tuple(findings))


def write_patches(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the configuration file, and a JSON patch of the manifest that mounts and names it."""
    command = "/spec/containers/0/command/-"
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": command, "value": f"--{name}={value}"}
        for name, values in _flags(desired).items()
        for value in values
    ]
    for name, path in _volumes(desired).items():
        mount = {"name": name, "mountPath": path, "readOnly": True}
        volume = {"name": name, "hostPath": {"path": path, "type": "File"}}
        patch += [
            {"op": "add", "path": "/spec/containers/0/volumeMounts/-", "value": mount},
            {"op": "add", "path": "/spec/volumes/-", "value": volume},
        ]
    file = ProviderFile(
        PATCH,
        "in the directory of `kubeadm init|join|upgrade --patches DIR` on every control-plane node",
        patch,
    )
    return ProviderOutput((_config_file(desired), file), tuple(unsupported_agents(desired)))


def _config_file(desired: Desired) -> ProviderFile:
    config = without_agents(desired).with_kubeconfig(KUBECONFIG)
    return ProviderFile(CONFIG, "first, on every control-plane node", config)


def _flags(desired: Desired) -> Flags:
    return {"config": [CONFIG], **desired.flags}


def _volumes(desired: Desired) -> dict[str, str]:
    """Map volumes to files of the node; kubeadm itself mounts only the kubeconfig."""
    files = named_files(without_agents(desired))
    return {VOLUME: CONFIG, **{f"scheduler-file-{n}": path for n, path in enumerate(files)}}
