"""Reads the configuration files of schedulers that predate the operator, with one Pod on each node.

Such a file is on the node only, and may name credentials; the Pod (node/config_reader) reports
its settings. It reads the file once for each Pod of a scheduler, and every minute after an error.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from ....base import names
from ....base.findings import format_path
from ....base.objects import Object, annotation, mapping
from ....base.platform import Platform
from ....base.templates import canonical_json
from ....config.language.command_line import CONFIG_PATH, parse
from ....config.language.validation.configuration import Target
from ....config.migrate.changes import ConversionError, Severity
from ....config.migrate.convert import convert, source_of
from ....config.migrate.old_schema import V1
from ....kube.resource import PODS
from ....node.config_reader.report import ConfigReport
from ...model import operand_pods
from ...model.apply import deletions
from ...model.plan import Action, Create
from ...model.pod_status import named
from ...model.snapshot import Snapshot
from ..node_pods import render_config_reader_pod
from .inventory import NotKept

AGAIN: Final = 60.0
"""Seconds after which a file with an error is read again."""


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    # node -> the settings in its file, without what the operator sets itself
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # node -> what cannot be adopted
    not_kept: Mapping[str, tuple[NotKept, ...]] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)  # node -> the file that is being read
    actions: tuple[Action, ...] = ()  # Pods to create or delete
    requeue_after: float | None = None  # seconds until the next look


def read_files(snapshot: Snapshot, pods: Mapping[str, Object], target: Target) -> ConfigFiles:
    """The files of these schedulers' Pods (node -> mirror Pod), as far as they are read."""
    configs: dict[str, Mapping[str, Any]] = {}
    lost: dict[str, tuple[NotKept, ...]] = {}
    waiting: dict[str, str] = {}
    actions: list[Action] = []
    waits: list[float] = []
    desired = set()
    for node, pod in pods.items():
        path = config_path(pod)
        if not path:
            continue
        desired_pod = _reader(snapshot, node, pod, path)
        desired.add(desired_pod["metadata"]["name"])
        current = snapshot.config_reader_pods.get(desired_pod["metadata"]["name"])
        is_stale = current is not None and _is_stale(current, desired_pod)
        report = last_report(current) if current is not None and not is_stale else None
        if current is None:
            actions.append(Create(PODS, desired_pod))
            waiting[node] = path
        elif report is None:
            if is_stale:
                actions += deletions(PODS, {node: current})
            elif _age(snapshot, current) >= snapshot.settings.rollout.pending_tolerance:
                name = f"{snapshot.platform.target_namespace}/{desired_pod['metadata']['name']}"
                message = f"{path} is not read, because Pod {name} does not end; describe the Pod"
                lost[node] = (NotKept("flags.config", message),)
            else:
                age = _age(snapshot, current)
                waits.append(max(snapshot.settings.rollout.pending_tolerance - age, 1.0))
            waiting[node] = path
        elif report.config is None:
            lost[node] = (NotKept("flags.config", f"{path}: {report.error}"),)
            age = _age(snapshot, current)
            if age >= AGAIN:
                actions += deletions(PODS, {node: current})
            waits.append(max(AGAIN - age, 1.0))
        else:
            configs[node], lost[node] = adoptable(report.config, path, snapshot.platform, target)
    actions += unneeded_readers(snapshot, desired)
    return ConfigFiles(configs, lost, waiting, tuple(actions), min(waits, default=None))


def _age(snapshot: Snapshot, pod: Object) -> float:
    created = operand_pods.created(pod)
    return (snapshot.now - created).total_seconds() if created else 0.0


def unneeded_readers(snapshot: Snapshot, desired: set[str]) -> tuple[Action, ...]:
    """Delete the Pods that have read files, except those in `desired`."""
    pods = snapshot.config_reader_pods.items()
    return deletions(PODS, {name: pod for name, pod in pods if name not in desired})


def config_path(pod: Object) -> str:
    files = parse(operand_pods.read(pod).arguments).get("config") or [""]
    return "" if files[-1] == CONFIG_PATH else files[-1]


def adoptable(
    document: Mapping[str, Any], path: str, platform: Platform, target: Target
) -> tuple[dict[str, Any], tuple[NotKept, ...]]:
    """(the file's settings as KubeSchedulerConfiguration v1, what cannot be adopted).

    Without what the operator sets itself: the kubeconfig and the Lease.
    """
    lost = []
    try:
        if source_of(document) is V1:
            config = dict(document)
        else:
            conversion = convert(document, target)
            config = conversion.config
            gone = [format_path(c.path) for c in conversion.changes if c.severity is Severity.LOST]
            if gone:
                lost.append(NotKept("flags.config", _unconverted(path, gone)))
    except ConversionError as error:
        fields = [format_path(problem.path) for problem in error.problems]
        return {}, (NotKept("flags.config", _unconverted(path, fields)),)
    client = dict(mapping(config.get("clientConnection")))
    election = dict(mapping(config.get("leaderElection")))
    own = (
        (client, "kubeconfig", "clientConnection", platform.scheduler_kubeconfig),
        (election, "resourceLock", "leaderElection", "leases"),
        (election, "resourceName", "leaderElection", platform.operand_lease_name),
        (election, "resourceNamespace", "leaderElection", platform.operand_lease_namespace),
    )
    for fields_, key, group, value in own:
        if fields_.pop(key, None) not in (None, "", value):
            message = f"{path}: the operator's schedulers have {value} here; change the file"
            lost.append(NotKept(f"config.{group}.{key}", message))
    election.pop("leaderElect", None)
    for key in ("apiVersion", "kind", "clientConnection", "leaderElection"):
        config.pop(key, None)
    groups = {"clientConnection": client, "leaderElection": election}
    return {**config, **{key: value for key, value in groups.items() if value}}, tuple(lost)


def _unconverted(path: str, fields: Sequence[str]) -> str:
    names_ = ", ".join(dict.fromkeys(filter(None, fields))) or "its type"
    return f"{path}: {names_} cannot be converted to v1; run `convert` on the file"


def answered_readers(
    snapshot: Snapshot, reports: Mapping[str, ConfigReport]
) -> dict[str, dict[str, Any]]:
    """Reader Pods that have reported, by name: the snapshot's next state, for a preview.

    `reports` has the report on the file of each node's scheduler.
    """
    answered = {}
    for node, report in reports.items():
        pod = snapshot.operand_pods.get(node)
        path = config_path(pod) if pod is not None else ""
        if pod is None or not path:
            continue
        reader = _reader(snapshot, node, pod, path)
        ended = {"terminated": {"exitCode": 0, "message": report.serialise()}}
        status = {"containerStatuses": [{"name": names.CONFIG_READER, "state": ended}]}
        answered[reader["metadata"]["name"]] = {**reader, "status": status}
    return answered


def last_report(pod: Object) -> ConfigReport | None:
    for status in mapping(pod.get("status")).get("containerStatuses") or ():
        ended = mapping(mapping(status.get("state")).get("terminated"))
        if ended.get("exitCode") == 0:
            return ConfigReport.parse(str(ended.get("message") or ""))
    return None


def _reader(snapshot: Snapshot, node: str, pod: Object, path: str) -> dict[str, Any]:
    """The Pod that reads the file; its annotation identifies the file and the scheduler."""
    reader = render_config_reader_pod(
        snapshot.platform,
        node,
        _on_host(pod, path),
        snapshot.settings.operator_image,
        str((snapshot.kubescheduler or {}).get("metadata", {}).get("uid", "")),
    )
    scheduler = str(mapping(pod.get("metadata")).get("uid") or "")
    digest = sha256(f"{canonical_json(reader)}{scheduler}".encode()).hexdigest()[:16]
    metadata = {**reader["metadata"], "annotations": {names.CONTENT_HASH_ANNOTATION: digest}}
    return {**reader, "metadata": metadata}


def _on_host(pod: Object, path: str) -> str:
    """The path of a scheduler's file on its node; the same if no mount has it."""
    spec = mapping(pod.get("spec"))
    volumes = {str(volume.get("name")): volume for volume in spec.get("volumes") or ()}
    containers = [mapping(container) for container in spec.get("containers") or ()]
    container = named(containers, names.OPERAND)
    best = ""
    on_host = path
    for mount in container.get("volumeMounts") or ():
        at = str(mount.get("mountPath") or "").rstrip("/")
        source = mapping(volumes.get(str(mount.get("name")), {}).get("hostPath")).get("path")
        if source and (path == at or path.startswith(f"{at}/")) and len(at) >= len(best):
            sub = str(mount.get("subPath") or "")
            best = at
            on_host = posixpath.normpath("/".join((str(source), sub, path[len(at) :])))
    return on_host


def _is_stale(current: Object, desired: Object) -> bool:
    """Whether a Pod was created for another file, or failed as a whole without a report."""
    key = names.CONTENT_HASH_ANNOTATION
    if annotation(current, key) != annotation(desired, key):
        return True
    return mapping(current.get("status")).get("phase") == "Failed"
