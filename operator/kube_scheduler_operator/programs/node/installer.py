"""The installer: one revision onto this node, once, whatever happens in between."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base.files import Disk, mounted
from ...base.names import KUBECONFIG, KUBECONFIG_KEY, POD_KEY
from . import kubeconfig, manifest, preflight, program, rollout_permission
from .certificates import Certificates
from .layout import CONFIGMAPS
from .manifest import ManifestError
from .swap import Request, Swap

if TYPE_CHECKING:
    from collections.abc import Callable

    from .health_watch import Host
    from .host import NodeHost
    from .layout import Layout
    from .manifest import Probe
    from .result import Result

PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(program.Options):
    """The flags of `kube-scheduler-operator installer`, under their names."""

    revision: int
    configmaps_dir: Path
    pod_dir: Path
    effective_config: Path | None = None
    go_ahead: Path | None = None
    staged: Path | None = None
    content_hash: str = ""
    kubeconfig: Path | None = None
    secrets_dir: Path | None = None
    certs_dir: Path | None = None
    rollback: bool = False
    keep: frozenset[int] | None = None


def main(options: Options) -> int:
    """Run the installer to its end; its exit code."""
    return program.run(lambda: install(options), options.termination_log)


def install(
    options: Options,
    disk: Disk | None = None,
    make_host: Callable[[dict[str, Any]], Host] | None = None,
) -> Result:
    """Wait for the check, stage, wait for the go-ahead, and install.

    Only the waiting is done without the lock; on every way out a manifest is in its place.

    Args:
        options: what and where.
        disk: what writes; the real one if None.
        make_host: what sees the node, for a pod; the real one if None.

    Raises:
        OSError: the disk or a mount does not do what it must.
        ManifestError: the revision's pod is not one that can be installed.
        PairError: the certificate that the scheduler needs cannot be used.
    """
    if options.staged is not None:
        options.staged.unlink(missing_ok=True)  # an earlier run of this container said so
    disk = disk or Disk()
    pod = _read_pod(options.pod_dir / POD_KEY)
    layout = options.layout(disk)
    host = make_host(pod) if make_host else _node_host(options, pod, layout)
    # Before the lock: a check that never passes must not keep other installers from working.
    checked = preflight.wait(options.effective_config, PROC) if options.effective_config else b""
    _provide_certificates(options, disk)
    if options.go_ahead is not None and not rollout_permission.has_come(options.go_ahead):
        with program.alone(layout):
            Swap(_request(options, pod, checked), layout, host).stage()
            layout.leave_running()  # a swap that lost its power may have left none
        if options.staged is not None:
            options.staged.touch()
        rollout_permission.wait(options.go_ahead)
    with program.alone(layout):
        return Swap(_request(options, pod, checked), layout, host).run()


def _provide_certificates(options: Options, disk: Disk) -> None:
    """Give a new node its first certificates; whatever is there, the syncer keeps up to date."""
    if options.secrets_dir is None or options.certs_dir is None:
        return
    certificates = Certificates(options.certs_dir, disk)
    for name, data in mounted(options.secrets_dir).items():
        if data and not certificates.has(name):
            certificates.put(name, data)


def _request(options: Options, pod: dict[str, Any], effective: bytes) -> Request:
    found = kubeconfig.fingerprint(options.kubeconfig) if options.kubeconfig else ""
    until = kubeconfig.expires(options.kubeconfig) if options.kubeconfig else None
    final = manifest.static_pod_for_revision(
        pod,
        options.revision,
        options.content_hash,
        found,
        until.strftime("%Y-%m-%dT%H:%M:%SZ") if until else "",
    )
    data = manifest.serialise(final)
    return Request(
        revision=options.revision,
        retry=options.retry,
        node=options.node,
        target=manifest.parse(data, options.static_pod_name),
        kubeconfig=found,
        content=_read_configmaps(options.configmaps_dir),
        effective=effective,
        health_timeout=options.health_timeout,
        settling_time=options.settling_time,
        rollback=options.rollback,
        keep=options.keep,
    )


def _node_host(options: Options, pod: dict[str, Any], layout: Layout) -> NodeHost:
    container = str(pod["spec"]["containers"][0]["name"])
    api_server = _api_server(options, layout)
    return options.host(manifest.log_directory_prefix(pod, options.node), container, api_server)


def _api_server(options: Options, layout: Layout) -> Probe | None:
    """The scheduler's API server, if not having it says nothing against the revision."""
    if options.kubeconfig:
        return kubeconfig.api_server(options.kubeconfig)
    name = f"{KUBECONFIG}/{KUBECONFIG_KEY}"
    found = kubeconfig.api_server(options.configmaps_dir / name)
    # Where the kubeconfig is a part of the revision, a new address may be what is wrong with it.
    good = layout.revision_dir(layout.last_good_revision()) / CONFIGMAPS / name
    return found if found == kubeconfig.api_server(good) else None


def _read_configmaps(directory: Path) -> dict[str, bytes]:
    """What the scheduler reads of the revision: paths in its directory and their content."""
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
        raise ManifestError(f"{path} must be a Pod")
    return pod
