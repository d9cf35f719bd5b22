"""The Pods on a control-plane node: the static Pod, its installer, its guard, and its removal."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base import names
from ...base.platform import Platform
from ...base.templates import NAME_LIMIT, canonical_json, fit_name, label_value, render_object
from ...config.effective.settings.requested_pod import OWN_RESOURCES
from ...config.language.command_line import CONFIG_PATH
from ...node.protocol.revision_content import PLACEHOLDER

CONFIG_DIRECTORY: Final = CONFIG_PATH.removesuffix(f"/{names.CONFIG_KEY}")
STATIC_POD_RESOURCES: Final = CONFIG_DIRECTORY.removesuffix(f"/configmaps/{names.CONFIG}")
"""Mount path of a revision's directory in its scheduler, on every platform."""

OWN_VOLUMES: Final = ("cert-dir", "kubeconfig", "resource-dir", "var-run-kubernetes")
"""Beginnings of the names of the static Pod's own volumes."""


@dataclass(frozen=True, slots=True)
class InstallerSettings:
    health_timeout: float = 60.0  # seconds within which a new scheduler must become ready
    settling_time: float = 2.0  # seconds for which it must then stay ready without a restart
    log_level: int = 2  # klog verbosity of the installer
    rollback: bool = False  # whether an older revision may replace a newer one
    follow_kubeadm: bool = False  # whether another version in kubeadm's manifest is a request
    permitted: bool = False  # whether the Pod starts with the permission to roll out
    keep: tuple[int, ...] = ()  # revisions whose directories stay on the node


def render_static_pod(
    platform: Platform,
    image: str,
    arguments: Sequence[str],
    probe: tuple[str, int],
) -> dict[str, Any]:
    """The scheduler's static pod, with `REVISION` as placeholder for the revision number.

    `arguments` are all flags as `--name=value`, `--config` included (CONFIG_PATH); `probe` is the
    host and port of health probes.
    """
    host, port = probe
    return render_object(
        "kube-scheduler-pod.yaml.j2",
        platform=platform,
        image=image,
        arguments=list(arguments),
        probe_host=host,
        probe_port=port,
        operand=names.OPERAND,
        placeholder=PLACEHOLDER,
        resources=dict(OWN_RESOURCES),
        revision_label=names.REVISION_LABEL,
        static_pod_resources=STATIC_POD_RESOURCES,
    )


SHARED_VOLUMES: Final = "scheduler-"
"""Beginning of the names of the scheduler's volumes in the installer Pod."""


@dataclass(frozen=True, slots=True)
class Attempt:
    node: str
    revision: int
    number: int  # 0 for the first attempt; each later one may change the node again


@dataclass(frozen=True, slots=True)
class InstalledScheduler:
    image: str
    arguments: Sequence[str]  # its flags
    content_hash: str = ""  # the value of the Pod's annotation, if any
    # what the preflight shares with it besides the revision's ConfigMaps
    environment: tuple[Mapping[str, Any], ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()  # those that are settings of the cluster
    mounts: tuple[Mapping[str, Any], ...] = ()  # their mounts, read-only

    @classmethod
    def of(cls, pod: Mapping[str, Any], content_hash: str = "") -> InstalledScheduler:
        """Read the static Pod of a revision.

        Raises:
            KeyError, IndexError, TypeError: another client has changed it.
        """
        container = pod["spec"]["containers"][0]
        known = {str(volume["name"]): volume for volume in pod["spec"].get("volumes") or ()}
        shared: dict[str, str] = {}  # name in the static Pod -> name in the installer Pod
        mounts = []
        for mount in container.get("volumeMounts") or ():
            name = str(mount["name"])
            if name.startswith(OWN_VOLUMES):
                continue
            shared.setdefault(name, f"{SHARED_VOLUMES}{len(shared)}")
            mounts.append({**mount, "name": shared[name], "readOnly": True})
        volumes = tuple({**known[name], "name": renamed} for name, renamed in shared.items())
        environment = tuple(container.get("env") or ())
        image, arguments = container["image"], container["args"]
        return cls(image, arguments, content_hash, environment, volumes, tuple(mounts))


def render_installer_pod(
    platform: Platform,
    attempt: Attempt,
    scheduler: InstalledScheduler,
    operator_image: str,
    owner_uid: str,
    settings: InstallerSettings = InstallerSettings(),
) -> dict[str, Any]:
    """The Pod that checks a revision and installs it on a node; needs no scheduler.

    Its ConfigMaps `config-N` and `kube-scheduler-pod-N` must exist. `owner_uid` is the uid of the
    ConfigMap `revision-status-N`.
    """
    node, revision = attempt.node, attempt.revision
    return _render_node_pod(
        "installer-pod.yaml.j2",
        platform,
        node,
        pod_name=installer_pod_name(node, revision, attempt.number),
        revision=revision,
        retry=attempt.number,
        scheduler=scheduler,
        operator_image=operator_image,
        owner_uid=owner_uid,
        settings=settings,
        preflight_arguments=_preflight_arguments(platform),
        configmaps=[part for part in platform.parts if part != names.POD],
        secrets=_secrets(platform),
        host_directory=_host_directory(platform),
        config_directory=CONFIG_DIRECTORY,
    )


def render_restore_pod(
    platform: Platform,
    node: str,
    retry: int,
    operator_image: str,
    settings: InstallerSettings = InstallerSettings(),
) -> dict[str, Any]:
    """The Pod that restores the scheduler that `node` had before the operator."""
    return _render_node_pod(
        "restore-pod.yaml.j2",
        platform,
        node,
        pod_name=restore_pod_name(node, retry),
        retry=retry,
        operator_image=operator_image,
        settings=settings,
        host_directory=_host_directory(platform),
    )


def render_guard_pod(
    platform: Platform,
    node: str,
    operator_image: str,
    probe: Mapping[str, Any],
    *,
    known: str,
    owner_uid: str,
) -> dict[str, Any]:
    """The guard pod: it represents the scheduler of `node` in a PodDisruptionBudget.

    `probe` is `httpGet` of the scheduler's own readiness probe; `known` is the fingerprint of the
    kubeconfig that the scheduler was started with, or empty; `owner_uid` is KubeScheduler's uid.
    """
    return _render_node_pod(
        "guard-pod.yaml.j2",
        platform,
        node,
        pod_name=guard_pod_name(platform, node),
        operator_image=operator_image,
        probe=dict(probe),
        known=known,
        owner_uid=owner_uid,
        # A kubeconfig that is part of the revision changes only with the revision.
        watches_kubeconfig=not platform.credentials,
        watched=sorted(_watched_paths(platform).items()),
    )


def render_config_reader_pod(
    platform: Platform, node: str, file: str, operator_image: str, owner_uid: str
) -> dict[str, Any]:
    """The Pod that reads `file` of a node, and no other file."""
    return _render_node_pod(
        "config-reader-pod.yaml.j2",
        platform,
        node,
        pod_name=config_reader_pod_name(node),
        file=file,
        operator_image=operator_image,
        owner_uid=owner_uid,
    )


def _render_node_pod(template: str, platform: Platform, node: str, **values: Any) -> dict[str, Any]:
    return render_object(
        template,
        platform=platform,
        node=node,
        node_label_value=label_value(node),
        names=names,
        **values,
    )


def config_reader_pod_name(node: str) -> str:
    """`config-reader-NODE`; a long node name ends in a hash."""
    return _pod_name(f"{names.CONFIG_READER}-", node)


def _watched_paths(platform: Platform) -> dict[str, str]:
    """The paths that a guard reads, and their types as hostPath; no directory with other keys.

    A mount does not show that a file was replaced: node/static_pod/mounts.py notices it.
    """
    paths = {platform.manifest_dir: "Directory", platform.resource_dir: "Directory"}
    if not platform.credentials:
        paths[platform.scheduler_kubeconfig] = "File"
    if platform.upgrade_dir:
        paths[platform.upgrade_dir] = "DirectoryOrCreate"  # the first upgrade creates it
    return paths


def guard_pod_name(platform: Platform, node: str) -> str:
    """`STATIC-POD-guard-NODE`; a long node name ends in a hash."""
    return _pod_name(f"{platform.static_pod_name}-{names.GUARD}-", node)


def restore_pod_name(node: str, retry: int) -> str:
    """`restore-NODE`, or `restore-retry-K-NODE`; a long node name ends in a hash."""
    attempt = f"-retry-{retry}" if retry else ""
    return _pod_name(f"{names.RESTORE}{attempt}-", node)


def _preflight_arguments(platform: Platform) -> list[str]:
    """Flags that the preflight appends to the scheduler's own; the last value of a flag wins."""
    added = ["--write-config-to=/preflight/effective-config.yaml", "--secure-port=0"]
    if platform.credentials:
        # The preflight serves no requests and needs no managed certificate. On other platforms a
        # certificate comes from a user's overrides, and its file must exist.
        added += ["--tls-cert-file=", "--tls-private-key-file="]
    return added


def _secrets(platform: Platform) -> list[tuple[str, bool]]:
    """The Secrets that a scheduler needs on its node: (name, whether it is optional)."""
    own = platform.credentials
    return [(own.client_certificate, False), (own.serving_certificate, True)] if own else []


def _host_directory(platform: Platform) -> str:
    """The directory on a node that contains both manifests and revisions."""
    return posixpath.commonpath([platform.manifest_dir, platform.resource_dir])


def installer_pod_name(node: str, revision: int, retry: int) -> str:
    """`installer-N-NODE`, or `installer-N-retry-K-NODE`; a long node name ends in a hash."""
    attempt = f"-retry-{retry}" if retry else ""
    return _pod_name(f"{names.INSTALLER}-{revision}{attempt}-", node)


def _pod_name(prefix: str, node: str) -> str:
    return prefix + fit_name(node, NAME_LIMIT - len(prefix))


def stub_kubeconfig() -> str:
    """A kubeconfig for the preflight: complete, so that it parses, but without credentials.

    With `--write-config-to` the scheduler creates its clients but opens no connection.
    """
    return kubeconfig_text("preflight", {"server": "https://127.0.0.1:1"}, "preflight", {})


def kubeconfig_text(
    cluster: str, server: Mapping[str, str], user: str, credentials: Mapping[str, str]
) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": dict(server)}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": user, "context": {"cluster": cluster, "user": user}}],
        "current-context": user,
    }
    return canonical_json(document)
