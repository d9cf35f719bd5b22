"""What `adopt` looks at: manifests and configuration files of nodes, and the cluster's Pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...base import names
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...base.settings import Settings
from ...base.source.reader import read
from ...config.migrate.convert import foreign_content
from ...kube import resource as kinds
from ...kube.api import Api
from ...kube.errors import Forbidden
from ...node.config_reader.program import report_content
from ...node.config_reader.report import ConfigReport
from ...operator.controlplane.adoption.api_defaults import as_mirror_pod, is_scheduler
from ...operator.controlplane.adoption.config_files import config_path, last_report
from ...operator.model import operand_pods
from ...operator.model.operand_pods import foreign_by_node, of_manifest
from ...operator.model.snapshot import Snapshot
from ..cluster.operands import list_operand_pods
from ..cluster.operator_objects import read_snapshot
from ..console.errors import UsageError
from ..console.input_files import read_bytes

ALL_NODES: Final = ""
"""The node of a configuration file that `-f` names without one."""


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The content of the files of `-f`."""

    # by node: the manifest of its scheduler, or its mirror Pod
    manifests: Mapping[str, Object] = field(default_factory=dict)
    # by node: the report on its configuration file; ALL_NODES for nodes without one
    reports: Mapping[str, ConfigReport] = field(default_factory=dict)

    def pods(self, platform: Platform) -> dict[str, Object]:
        """Return the mirror Pods of the manifests, by node."""
        return {
            node: as_mirror_pod(of_manifest(manifest), node, platform)
            for node, manifest in self.manifests.items()
        }

    def reports_for(self, pods: Mapping[str, Object]) -> dict[str, ConfigReport]:
        """Return the reports on the files that these schedulers read, by node."""
        reports = {
            node: self.reports.get(node) or self.reports.get(ALL_NODES)
            for node, pod in pods.items()
            if config_path(pod)
        }
        return {node: report for node, report in reports.items() if report is not None}


def read_node_files(arguments: Sequence[str]) -> NodeFiles:
    """Read `-f [NODE=]PATH`; a directory stands for the files in it.

    The node of a manifest without NODE is its nodeName, or else the name of the directory that has
    this manifest only, or of the file.
    """
    manifests: dict[str, Object] = {}
    reports: dict[str, ConfigReport] = {}
    for argument in arguments:
        node, path = _split(argument)
        contents = {file: read_bytes(file) for file in _files(path)}
        schedulers = {file: list(_schedulers(content)) for file, content in contents.items()}
        if not node and Path(path).is_dir() and sum(map(len, schedulers.values())) == 1:
            node = Path(path).resolve().name  # the files of one node
        for file, content in contents.items():
            pods = schedulers[file]
            if not pods:
                if node in reports:
                    whose = f'node "{node}"' if node else "all nodes: use -f NODE=FILE for each"
                    raise UsageError(f"{file}: a second configuration file of {whose}")
                reports[node] = report_content(content, foreign_content)
            for pod in pods:
                known = mapping(pod.get("spec")).get("nodeName")
                name = node or str(known or ("stdin" if file == "-" else Path(file).stem))
                if name in manifests:
                    raise UsageError(
                        f'{file}: a second manifest of node "{name}": use -f NODE=FILE for each'
                    )
                manifests[name] = pod
    if manifests and (unknown := set(reports) - {ALL_NODES} - set(manifests)):
        raise UsageError(
            f'-f has a configuration file of node "{min(unknown)}" and not its manifest; add it'
        )
    return NodeFiles(manifests, reports)


def _split(argument: str) -> tuple[str, str]:
    """Split NODE=PATH into (node, path); a path that exists is not split."""
    node, equals, path = argument.partition("=")
    if not equals or "/" in node or Path(argument).exists():
        return "", argument
    return node, path


def _files(path: str) -> Iterator[str]:
    if path == "-" or not Path(path).is_dir():
        yield path
        return
    try:
        files = sorted(str(file) for file in Path(path).iterdir() if file.is_file())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if not files:
        raise UsageError(f"{path}: the directory has no file")
    yield from files


def _schedulers(content: bytes) -> Iterator[Object]:
    """Yield the Pods of kube-scheduler in a file; none in a configuration file."""
    documents, _ = read(content)
    for document in documents:
        yield from (obj.value for obj in document.objects() if is_scheduler(obj.value))


@dataclass(frozen=True, slots=True)
class AdoptionInput:
    snapshot: Snapshot  # with the schedulers that predate the operator
    reports: Mapping[str, ConfigReport]  # by node: on its configuration file
    recorded: tuple[str, ...] = ()  # nodes whose file the installed operator has read
    notes: tuple[str, ...] = ()  # what could not be read, and what follows


def from_files(files: NodeFiles, platform: Platform) -> AdoptionInput:
    pods = files.pods(platform)
    snapshot = replace(_snapshot(platform), operand_pods=pods)
    return AdoptionInput(snapshot, files.reports_for(pods))


async def from_cluster(api: Api, platform: Platform, files: NodeFiles) -> AdoptionInput:
    """Read the Pods in the API; their configuration files are in `files`.

    Raises:
        Forbidden: the user may not read the Pods of schedulers.
    """
    live = await list_operand_pods(api, platform)
    notes: list[str] = []
    pods = {node: of_manifest(pod) for node, pod in live.items()}
    snapshot = _snapshot(platform)
    try:
        snapshot = await read_snapshot(api, platform)
    except Forbidden as error:
        what = error.request.resource.name if error.request.resource else error.request.path
        notes.append(f"the operator's objects are left out, because you may not read {what}")
    snapshot = replace(
        snapshot,
        scheduler=snapshot.scheduler or _UNSET,
        kubescheduler=snapshot.kubescheduler or _UNSET,
        scheduler_profiles=snapshot.scheduler_profiles or {},
        scheduler_extenders=snapshot.scheduler_extenders or {},
        operator_settings=snapshot.operator_settings or {},
        operand_pods=pods,
        foreign_metadata=foreign_by_node(live),
    )
    read = await _recorded(api, snapshot, notes)
    reports = {**read, **files.reports_for(pods)}
    recorded = tuple(sorted(node for node in read if reports[node] is read[node]))
    return AdoptionInput(snapshot, reports, recorded, tuple(notes))


_UNSET: Final = {"metadata": {"name": names.CLUSTER}, "spec": {}}


def _snapshot(platform: Platform) -> Snapshot:
    """Return a cluster without the operator."""
    return Snapshot(datetime.now(UTC), platform, Settings(), scheduler=_UNSET, kubescheduler=_UNSET)


async def _recorded(api: Api, snapshot: Snapshot, notes: list[str]) -> dict[str, ConfigReport]:
    """Return what Pods of the operator have read on nodes, by node."""
    selector = f"app={names.CONFIG_READER}"
    try:
        readers = await api.list(
            kinds.PODS, snapshot.platform.target_namespace, label_selector=selector
        )
    except Forbidden:
        notes.append("what the operator has read on nodes is left out: you may not read its Pods")
        return {}
    reports = {}
    for pod in readers.items:
        node = str(mapping(pod.get("spec")).get("nodeName") or "")
        scheduler = snapshot.operand_pods.get(node)
        report = last_report(pod)
        made, started = operand_pods.created(pod), operand_pods.created(scheduler or {})
        if report is not None and made is not None and started is not None and made >= started:
            reports[node] = report
    return reports
