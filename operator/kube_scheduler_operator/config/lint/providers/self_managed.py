"""kubeadm, k3s, RKE2 and Talos, whose control-plane nodes users manage themselves.

Sources
kubeadm: k8s.io/kubernetes 1.36.3, cmd/kubeadm/app: apis/kubeadm/v1beta4/types.go (extraArgs is a
list that may repeat a flag) and v1beta3/types.go (a map); util/config/common.go (kubeadm writes
v1beta4 from 1.31 on); phases/controlplane/manifests.go (an extra argument replaces kubeadm's own
flag of that name); util/patches/patches.go (names of patches, YAML allowed).
k3s, RKE2: k3s-io/docs at 147c369, docs/installation/configuration.md; rancher/rke2-docs at 9477b7b
(2026-08-20), docs/install/configuration.md. kube-scheduler's kubeconfig is in server/cred below the
data directory (KubeConfigScheduler in k3s' pkg/daemons/control/deps).
Talos: siderolabs/talos at ad88231 (2026-08-21) and its tags. SchedulerConfig in
pkg/machinery/config/types/v1alpha1 has `config` from 1.6 on, and lists in `extraArgs` from 1.13 on.
From 1.14 on, .cluster.scheduler is deprecated but works; the document KubeSchedulerConfig replaces
it, without extraVolumes, and both together are an error (pkg/machinery/config/types/k8s). Talos
sets apiVersion, kind and the kubeconfig itself and refuses --config and flags of kubeconfigs
(internal/app/machined/pkg/controllers/k8s), which a KubeScheduler cannot set either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from ...language.command_line import Flags
from ...language.versions import Version
from .desired import Desired, named_files, without_agents
from .provider import (
    ProviderFile,
    ProviderFinding,
    ProviderOutput,
    unsupported_agents,
    unsupported_repetitions,
)

# --- kubeadm -------------------------------------------------------------------------------------
# Two ways: ClusterConfiguration, which `kubeadm upgrade` keeps, or a patch of the manifest for
# `--patches`.

_KUBEADM_CONFIG: Final = "/etc/kubernetes/kube-scheduler.yaml"
_KUBEADM_KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"
_VOLUME: Final = "scheduler-config"
_PATCH: Final = "kube-scheduler0+json.yaml"
_KUBEADM_LISTS_SINCE: Final = Version(1, 31)


def write_kubeadm(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the configuration file, and a ClusterConfiguration that mounts and names it."""
    lists = desired.gates.version >= _KUBEADM_LISTS_SINCE
    flags = _kubeadm_flags(desired)
    volumes = [
        {"name": name, "hostPath": path, "mountPath": path, "readOnly": True, "pathType": "File"}
        for name, path in _kubeadm_volumes(desired).items()
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
        who = f"kubeadm before {_KUBEADM_LISTS_SINCE.short}"
        findings += unsupported_repetitions(desired, who, "use --for kubeadm-patches")
    return ProviderOutput((_kubeadm_file(desired), file), tuple(findings))


def write_kubeadm_patches(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the configuration file, and a JSON patch of the manifest that mounts and names it."""
    command = "/spec/containers/0/command/-"
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": command, "value": f"--{name}={value}"}
        for name, values in _kubeadm_flags(desired).items()
        for value in values
    ]
    for name, path in _kubeadm_volumes(desired).items():
        mount = {"name": name, "mountPath": path, "readOnly": True}
        volume = {"name": name, "hostPath": {"path": path, "type": "File"}}
        patch += [
            {"op": "add", "path": "/spec/containers/0/volumeMounts/-", "value": mount},
            {"op": "add", "path": "/spec/volumes/-", "value": volume},
        ]
    file = ProviderFile(
        _PATCH,
        "in the directory of `kubeadm init|join|upgrade --patches DIR` on every control-plane node",
        patch,
    )
    return ProviderOutput((_kubeadm_file(desired), file), tuple(unsupported_agents(desired)))


def _kubeadm_file(desired: Desired) -> ProviderFile:
    config = without_agents(desired).with_kubeconfig(_KUBEADM_KUBECONFIG)
    return ProviderFile(_KUBEADM_CONFIG, "first, on every control-plane node", config)


def _kubeadm_flags(desired: Desired) -> Flags:
    return {"config": [_KUBEADM_CONFIG], **desired.flags}


def _kubeadm_volumes(desired: Desired) -> dict[str, str]:
    """Map volumes to files of the node; kubeadm itself mounts only the kubeconfig."""
    files = named_files(without_agents(desired))
    return {
        _VOLUME: _KUBEADM_CONFIG,
        **{f"scheduler-file-{n}": path for n, path in enumerate(files)},
    }


# --- k3s and RKE2 --------------------------------------------------------------------------------
# Both read /etc/rancher/NAME/config.yaml, then config.yaml.d/*.yaml by name; a key with `+` adds to
# the list of the files before, and every later file needs the `+` as well.

_VERBOSITY: Final = "v"


def write_k3s(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write both files for k3s, of whose process kube-scheduler is a part.

    Its components must agree on the verbosity: k3s sets logsapi.ReapplyHandlingIgnoreUnchanged
    (pkg/daemons/agent), so that a component with another `v` ends with an error
    (k8s.io/component-base 0.36.3, logs/api/v1/options.go). k3s passes --leader-elect=false where
    one server is enough, which wins over the file (pkg/daemons/control).
    """
    files = _rancher_files(without_agents(desired), "k3s", "k3s", left_out=(_VERBOSITY,))
    return ProviderOutput(files, (*unsupported_agents(desired), *_verbosity(desired)))


def _verbosity(desired: Desired) -> Iterator[ProviderFinding]:
    if _VERBOSITY in desired.flags:
        (value, *_) = desired.flags[_VERBOSITY]
        message = "kube-scheduler is a part of k3s' process, which has one verbosity"
        fix = f"remove it, and set `v: {value}` in k3s' config.yaml for all components"
        yield ProviderFinding("FlagNotSupported", desired.flag(_VERBOSITY), message, fix)


def write_rke2(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write both files for RKE2, where kube-scheduler is a static Pod.

    RKE2 mounts every existing file that a flag names by its absolute path (ReadFiles in
    rancher/rke2 at 6ce1a80, v1.36, pkg/podtemplate/podtemplate.go), so the configuration file needs
    no kube-scheduler-extra-mount, only files that it names do; each must exist before RKE2 starts.
    """
    called = without_agents(desired)
    by_flags = {value for values in desired.flags.values() for value in values}
    mounts = [path for path in named_files(called) if path not in by_flags]
    files = _rancher_files(called, "rke2", "rke2-server", mounts=mounts)
    return ProviderOutput(files, tuple(unsupported_agents(desired)))


def _rancher_files(
    desired: Desired,
    name: str,
    service: str,
    *,
    left_out: Collection[str] = (),
    mounts: Collection[str] = (),
) -> tuple[ProviderFile, ProviderFile]:
    """Return the configuration file and the drop-in file, for all server nodes, in this order."""
    config = f"/etc/rancher/{name}/kube-scheduler.yaml"
    arguments = [f"config={config}"]
    for flag, values in desired.flags.items():
        if flag not in left_out:
            arguments += [f"{flag}={value}" for value in values]
    drop_in = {"kube-scheduler-arg+": arguments}
    if mounts:
        drop_in["kube-scheduler-extra-mount+"] = [f"{path}:{path}:ro" for path in mounts]
    kubeconfig = f"/var/lib/rancher/{name}/server/cred/scheduler.kubeconfig"
    return (
        ProviderFile(config, "first, on every server node", desired.with_kubeconfig(kubeconfig)),
        ProviderFile(
            f"/etc/rancher/{name}/config.yaml.d/kube-scheduler.yaml",
            f"on every server node; then `systemctl restart {service}`, one node at a time",
            drop_in,
        ),
    )


# --- Talos ---------------------------------------------------------------------------------------

_OLDEST_TALOS: Final = Version(1, 6)
_TALOS_LISTS_SINCE: Final = Version(1, 13)
_TALOS_DOCUMENT_SINCE: Final = Version(1, 14)


def write_talos(desired: Desired, release: Version | None) -> ProviderOutput:
    """Write a patch with `cluster.scheduler`, or the document KubeSchedulerConfig for 1.14 on.

    Without a release, write the form that all releases support.
    """
    lists = release is not None and release >= _TALOS_LISTS_SINCE
    scheduler: dict[str, Any] = {"config": _talos_config(desired)}
    arguments = {
        name: list(values) if lists and len(values) > 1 else values[-1]
        for name, values in desired.flags.items()
    }
    if arguments:
        scheduler["extraArgs"] = arguments
    files = named_files(without_agents(desired))
    document = release is not None and release >= _TALOS_DOCUMENT_SINCE
    content: dict[str, Any] = {"apiVersion": "v1alpha1", "kind": "KubeSchedulerConfig", **scheduler}
    if not document:
        if files:
            scheduler["extraVolumes"] = [
                {"hostPath": path, "mountPath": path, "readonly": True} for path in files
            ]
        content = {"cluster": {"scheduler": scheduler}}
    file = ProviderFile(
        "talos-patch.yaml",
        "talosctl patch machineconfig --nodes CONTROL-PLANE-NODES --patch @FILE",
        content,
    )
    findings = [*_too_old(release), *unsupported_agents(desired)]
    if not lists:
        findings += unsupported_repetitions(
            desired,
            f"Talos before {_TALOS_LISTS_SINCE.short}",
            f"upgrade Talos and use --for talos:{_TALOS_LISTS_SINCE.short}",
        )
    if document:
        findings += _not_mounted(files)
    return ProviderOutput((file,), tuple(findings))


def _talos_config(desired: Desired) -> dict[str, Any]:
    """Return the configuration without what Talos sets itself."""
    config = without_agents(desired).with_kubeconfig("")
    connection = {key: value for key, value in config["clientConnection"].items() if value != ""}
    set_by_talos = {"apiVersion", "kind", "clientConnection"}
    kept = {key: value for key, value in config.items() if key not in set_by_talos}
    return {**kept, "clientConnection": connection} if connection else kept


def _too_old(release: Version | None) -> Iterator[ProviderFinding]:
    if release is not None and release < _OLDEST_TALOS:
        message = (
            f"Talos supports a scheduler configuration from {_OLDEST_TALOS.short} on, not in "
            f"{release.short}"
        )
        yield ProviderFinding("VersionNotSupported", "", message, "upgrade Talos")


def _not_mounted(files: Iterable[str]) -> Iterator[ProviderFinding]:
    message = "Talos' KubeSchedulerConfig mounts no files, so kube-scheduler does not find this one"
    fix = "keep cluster.scheduler, which has extraVolumes: use --for talos"
    for path in files:
        yield ProviderFinding("FileNotMounted", path, message, fix)
