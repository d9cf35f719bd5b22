"""The installer: puts one revision on this node exactly once, also across restarts.

It starts together with the preflight container, because the kubelet takes up to two seconds from
the end of an init container to the next start, and its own start overlaps with the preflight. The
operator grants the permission to roll out with an annotation of the Pod, which the kubelet mounts
as a file. In the other direction, the file --staged reports that the revision is staged: the
startup probe checks for it, and the operator sees that the container has started.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ...base.files import Disk, mounted, mounted_keys, read
from ...base.names import KUBECONFIG, KUBECONFIG_KEY, PERMISSION_GRANTED, POD, POD_KEY
from ...base.times import rfc3339
from ..protocol.result import Result
from ..protocol.revision_content import content_hash
from . import kubeconfig, manifest, processes, program
from .certificates import Certificates
from .host import PROC, NodeHost
from .layout import CONFIGMAPS, Layout, RevisionFiles
from .manifest import ManifestError, Probe
from .program import InstallerOptions
from .swap import Swap

log = logging.getLogger(__name__)

PREFLIGHT_FLAG: Final = "--write-config-to"
"""Flag that distinguishes the preflight from other schedulers on the node."""
_PREFLIGHT_POLL: Final = 0.05
"""Seconds between reads of the preflight's file."""
_PERMISSION_POLL: Final = 0.1
"""Seconds between reads of the permission; the kubelet takes longer to update the file."""


def main(options: InstallerOptions) -> int:
    return program.run(lambda: install(options), options.termination_log)


def install(
    options: InstallerOptions,
    disk: Disk | None = None,
    make_host: Callable[[dict[str, Any]], NodeHost] | None = None,
) -> Result:
    """Wait for the preflight, stage, wait for permission to roll out, and install.

    Holds the lock except while waiting; every exit leaves a manifest in place. Tests replace the
    disk, and the host, which is made for the static pod.

    Raises:
        OSError: reading or writing files failed.
        ManifestError: the revision's pod is invalid.
        PairError: the scheduler's certificate and key do not match.
    """
    if options.staged is not None:
        options.staged.unlink(missing_ok=True)  # from an earlier run of this container
    disk = disk or Disk()
    _verify(options)
    pod = _read_pod(options.pod_dir / POD_KEY)
    layout = options.layout(disk)
    host = make_host(pod) if make_host else _node_host(options, pod, layout)
    # Before the lock: a preflight that never passes must not block other installers.
    effective = options.effective_config
    checked = wait_for_preflight(effective, PROC) if effective else b""
    _provide_certificates(options, disk)
    if options.permission is not None and not is_granted(options.permission):
        with program.alone(layout):
            superseded = Swap(options, _files(options, pod, checked), layout, host).stage()
            layout.leave_running()  # a power cut during a swap may have left no manifest
        if superseded is not None:
            return superseded
        if options.staged is not None:
            options.staged.touch()
        _wait_for_permission(options.permission)
    with program.alone(layout):
        return Swap(options, _files(options, pod, checked), layout, host).run()


def wait_for_preflight(effective_config: Path, proc: Path) -> bytes:
    """Wait until the preflight of this pod has passed; return its output.

    After all checks and with all plugins created, kube-scheduler writes its completed configuration
    as its last action before exiting with 0 (LogOrWriteConfig at the end of Setup). If it rejects
    the configuration, it never writes the file, and this waits indefinitely: the operator sees the
    reason in the Pod and handles it. The preflight writes `effective_config`; `proc` is /proc of
    the node.
    """
    own_pod, _ = processes.parse_mounts((proc / "self/mountinfo").read_text(errors="replace"))
    while True:
        # The file is complete once its writer has exited. Finding the writer is expensive.
        if read(effective_config) and not processes.operands(proc, {own_pod}, PREFLIGHT_FLAG):
            return read(effective_config) or b""
        time.sleep(_PREFLIGHT_POLL)


def is_granted(permission: Path) -> bool:
    return (read(permission) or b"").decode(errors="replace").strip() == PERMISSION_GRANTED


def _wait_for_permission(permission: Path) -> None:
    """Wait for the permission indefinitely: to cancel, the operator deletes the pod."""
    log.info("The revision is staged; waiting for permission to roll out")
    while not is_granted(permission):
        time.sleep(_PERMISSION_POLL)
    log.info("Permission to roll out granted")


def _verify(options: InstallerOptions) -> None:
    """Check that the mounted ConfigMaps are those that the operator made.

    Raises:
        ManifestError: they were deleted and created with other content before they were mounted.
    """
    if not options.content_hash:
        return
    parts = {**mounted(options.configmaps_dir), POD: mounted_keys(options.pod_dir)}
    texts = {
        name: {key: data.decode(errors="replace") for key, data in keys.items()}
        for name, keys in parts.items()
    }
    if content_hash(texts) != options.content_hash:
        raise ManifestError(
            f"the ConfigMaps of revision {options.revision} do not have its content; delete the "
            "installer Pod, and the operator repairs them and creates it again"
        )


def _provide_certificates(options: InstallerOptions, disk: Disk) -> None:
    """Provide a node's first certificates; the certificate syncer keeps existing ones current."""
    if options.secrets_dir is None or options.certs_dir is None:
        return
    certificates = Certificates(options.certs_dir, disk)
    for name, data in mounted(options.secrets_dir).items():
        if data and not certificates.has(name):
            certificates.put(name, data)


def _files(options: InstallerOptions, pod: dict[str, Any], effective: bytes) -> RevisionFiles:
    fingerprint = kubeconfig.fingerprint(options.kubeconfig) if options.kubeconfig else ""
    until = kubeconfig.expires(options.kubeconfig) if options.kubeconfig else None
    final = manifest.static_pod_for_revision(
        pod,
        options.revision,
        options.content_hash,
        fingerprint,
        rfc3339(until) if until else "",
    )
    target = manifest.parse(manifest.serialise(final), options.static_pod_name)
    content = _read_configmaps(options.configmaps_dir)
    return RevisionFiles(target, content, effective, fingerprint)


def _node_host(options: InstallerOptions, pod: dict[str, Any], layout: Layout) -> NodeHost:
    container = str(pod["spec"]["containers"][0]["name"])
    api_server = _api_server(options, layout)
    prefix = manifest.log_directory_prefix(pod, options.node)
    return NodeHost(options, prefix, container, api_server)


def _api_server(options: InstallerOptions, layout: Layout) -> Probe | None:
    """Probe of the API server, unless its failure could be caused by the revision itself."""
    if options.kubeconfig:
        return kubeconfig.api_server(options.kubeconfig)
    name = f"{KUBECONFIG}/{KUBECONFIG_KEY}"
    probe = kubeconfig.api_server(options.configmaps_dir / name)
    # If the kubeconfig is part of the revision, a new address in it may be the error.
    good = layout.revision_dir(layout.last_good_revision()) / CONFIGMAPS / name
    return probe if probe == kubeconfig.api_server(good) else None


def _read_configmaps(directory: Path) -> dict[str, bytes]:
    """Return the files of the revision: content by path in its directory."""
    return {
        f"{CONFIGMAPS}/{name}/{key}": data
        for name, keys in mounted(directory).items()
        for key, data in keys.items()
    }


def _read_pod(path: Path) -> dict[str, Any]:
    try:
        pod = json.loads(path.read_bytes())
    except ValueError as error:
        raise ManifestError(f"{path} is not JSON: {error}") from error
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        raise ManifestError(f"{path} is not a Pod")
    return pod
