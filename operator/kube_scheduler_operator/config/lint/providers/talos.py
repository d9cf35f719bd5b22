"""Talos: a patch of the machine configuration of control-plane nodes.

Source: siderolabs/talos at ad88231 (2026-08-21) and its tags. SchedulerConfig in
pkg/machinery/config/types/v1alpha1 has `config` from 1.6 on, and lists in `extraArgs` from 1.13 on.
From 1.14 on, .cluster.scheduler is deprecated but works; the document KubeSchedulerConfig replaces
it, without extraVolumes, and both together are an error (pkg/machinery/config/types/k8s). Talos
sets apiVersion, kind and the kubeconfig itself and refuses --config and flags of kubeconfigs
(internal/app/machined/pkg/controllers/k8s), which a KubeScheduler cannot set either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...language.versions import Version
from .desired import Desired, named_files, without_agents
from .provider import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import unsupported_agents, unsupported_repetitions

OLDEST: Final = Version(1, 6)
LISTS_SINCE: Final = Version(1, 13)
DOCUMENT_SINCE: Final = Version(1, 14)


def write(desired: Desired, release: Version | None) -> ProviderOutput:
    """Write a patch with `cluster.scheduler`, or the document KubeSchedulerConfig for 1.14 on.

    Without a release, write the form that all releases support.
    """
    lists = release is not None and release >= LISTS_SINCE
    scheduler: dict[str, Any] = {"config": _config(desired)}
    arguments = {
        name: list(values) if lists and len(values) > 1 else values[-1]
        for name, values in desired.flags.items()
    }
    if arguments:
        scheduler["extraArgs"] = arguments
    files = named_files(without_agents(desired))
    document = release is not None and release >= DOCUMENT_SINCE
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
            f"Talos before {LISTS_SINCE.short}",
            f"upgrade Talos and use --for talos:{LISTS_SINCE.short}",
        )
    if document:
        findings += _not_mounted(files)
    return ProviderOutput((file,), tuple(findings))


def _config(desired: Desired) -> dict[str, Any]:
    """Return the configuration without what Talos sets itself."""
    config = without_agents(desired).with_kubeconfig("")
    connection = {key: value for key, value in config["clientConnection"].items() if value != ""}
    set_by_talos = {"apiVersion", "kind", "clientConnection"}
    kept = {key: value for key, value in config.items() if key not in set_by_talos}
    return {**kept, "clientConnection": connection} if connection else kept


def _too_old(release: Version | None) -> Iterator[ProviderFinding]:
    if release is not None and release < OLDEST:
        message = (
            f"Talos supports a scheduler configuration from {OLDEST.short} on, not in "
            f"{release.short}"
        )
        yield ProviderFinding("VersionNotSupported", "", message, "upgrade Talos")


def _not_mounted(files: Iterable[str]) -> Iterator[ProviderFinding]:
    message = "Talos' KubeSchedulerConfig mounts no files, so kube-scheduler does not find this one"
    fix = "keep cluster.scheduler, which has extraVolumes: use --for talos"
    for path in files:
        yield ProviderFinding("FileNotMounted", path, message, fix)
