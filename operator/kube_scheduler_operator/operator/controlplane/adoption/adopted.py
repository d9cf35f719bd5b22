"""Adopts the settings of the schedulers that predate the operator: all of them, or no node changes.

Their Pods are visible until the first node is moved, so every revision records their settings
(`adopted.json` in its ConfigMap kube-scheduler-pod) for later. A manifest that another program
writes after that is drift, and changes no adopted setting.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from ....base import names
from ....base.findings import Finding
from ....base.json_text import parse_json
from ....base.objects import Object, mapping
from ....base.platform import Platform
from ....base.templates import canonical_json
from ....config.effective.attachment import last_accepted, name_of
from ....config.effective.control_plane.observe_attached import EXTENDERS, PROFILES
from ....config.effective.control_plane.overrides import ARGUMENTS, SERVING_INFO
from ....config.effective.settings.requested_pod import OWN_RESOURCES, requested_pod
from ....config.language.command_line import Flags, parse
from ....config.language.feature_gates import Gates
from ....config.language.merging.merge import merge_process
from ....config.language.validation.configuration import Target
from ...model import operand_pods
from ...model.plan import Action
from ...model.snapshot import Snapshot
from ...status.conditions import AS_EXPECTED, Condition, problem_condition
from ..node_pods import OWN_VOLUMES
from ..operand_image import operand_image, operand_version
from ..revision.history import Revision, newest_first, read, runs_revision
from .config_files import ConfigFiles, read_files, unneeded_readers
from .flag_settings import configuration_of, flags_not_kept
from .inventory import Inventory, NotKept, take_inventory
from .pod_settings import NO_SETTINGS, PodSettings, read_settings

NOT_KEPT: Final = "SettingNotKept"
NODES_DIFFER: Final = "NodesDiffer"
READING: Final = "ReadingConfiguration"
NOT_IN_MANIFEST: Final = "NotInManifest"

_LISTED: Final = 20
"""The number of settings that a message names."""

PROFILING_OFF: Final = (
    "/debug/pprof, which kube-scheduler serves by default, is off: `kubectl scheduler pprof` "
    "serves it while it fetches a profile, and enableProfiling: true in "
    "spec.unsupportedConfigOverrides of KubeScheduler always"
)

_GRACE: Final = "terminationGracePeriodSeconds"
_OWN_GRACE: Final = 10


@dataclass(frozen=True, slots=True)
class StockScheduler:
    node: str
    pod: Object
    flags: Flags  # of its command line
    inventory: Inventory  # what its Pod has beyond its flags
    file: Mapping[str, Any]  # its configuration in v1, without what the operator sets itself
    not_kept: tuple[NotKept, ...]  # what cannot be kept

    @property
    def config(self) -> dict[str, Any]:
        return merge_process([self.file, configuration_of(self.flags)])

    def values(self) -> dict[str, str]:
        """Everything that must be equal on all nodes, by name."""
        values = {f"flags.{name}": json.dumps(given) for name, given in self.flags.items()}
        pairs = self.inventory.settings.names()
        for key, value in self.file.items():
            values[f"config.{key}"] = json.dumps(value, sort_keys=True)
        return values | {name: json.dumps(value, sort_keys=True) for name, value in pairs}


@dataclass(frozen=True, slots=True)
class Adopted:
    """What the operator keeps from the schedulers that predate it."""

    settings: PodSettings = NO_SETTINGS  # of their static Pods
    # fields of KubeSchedulerConfiguration, from their files and flags
    config: Mapping[str, Any] = field(default_factory=dict)
    # what cannot be kept, and differences between nodes; each blocks a revision
    findings: tuple[Finding, ...] = ()
    new: bool = False  # whether they still run, and no node has a revision of the operator
    # node -> its configuration file that is being read
    waiting: Mapping[str, str] = field(default_factory=dict)
    # node -> labels and annotations of its Pod that are not in its manifest
    foreign: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # the schedulers that still run
    schedulers: tuple[StockScheduler, ...] = field(default=(), compare=False, repr=False)
    actions: tuple[Action, ...] = ()  # on the Pods that read configuration files
    requeue_after: float | None = None  # seconds until the next look at these Pods

    @property
    def record(self) -> str:
        """The record for a revision; empty if there is nothing to keep."""
        if not self.settings and not self.config:
            return ""
        return canonical_json({"pod": self.settings.document, "config": self.config})


NOTHING: Final = Adopted()
"""Nothing was adopted, or it had no settings."""


def adopted(snapshot: Snapshot) -> Adopted:
    """What is adopted: from the Pods that run, else from the record of the revision in use."""
    platform = snapshot.platform
    if not platform.adopts_pods:
        return NOTHING
    history = read(snapshot.config_maps, platform.parts)
    pods = sorted(snapshot.operand_pods.items())
    if not pods or _has_begun(snapshot, history):
        known = _remembered(history) or _recovered(snapshot)
        return replace(known, actions=unneeded_readers(snapshot, set()))
    files = read_files(snapshot, dict(pods), target_of(snapshot))
    schedulers = [_scheduler(node, pod, platform, files) for node, pod in pods]
    # A file that is not read yet is neither equal nor different.
    different = _differences(schedulers) if not files.waiting else ()
    findings = [*_not_kept(schedulers, platform), *different, *_unread(files)]
    first = schedulers[0]
    return Adopted(
        first.inventory.settings,
        first.config,
        tuple(findings),
        new=True,
        waiting=files.waiting,
        foreign=snapshot.foreign_metadata,
        schedulers=tuple(schedulers),
        actions=files.actions,
        requeue_after=files.requeue_after,
    )


def target_of(snapshot: Snapshot) -> Target:
    """The scheduler that runs, and for which a file is converted."""
    return Target(Gates(operand_version(snapshot, operand_image(snapshot)), {}))


def _unread(files: ConfigFiles) -> Iterator[Finding]:
    """Files that are being read; they block without being an error."""
    for node, path in sorted(files.waiting.items()):
        message = f'reading {path} of node "{node}"'
        yield Finding(names.ADOPTED_SETTINGS, READING, "", message, blocking=True)


def adoption_conditions(
    platform: Platform,
    adoption: Adopted,
    findings: Sequence[Finding],
    flags: Iterable[str] = (),
    config: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Condition, ...]:
    """What was kept, for information, and what keeps the operator from changing a node.

    `flags` are the names of those that were adopted; `config` is the effective configuration, empty
    if it is not known.
    """
    if not platform.adopts_pods:
        return ()
    problems = [(f.reason, f.text) for f in findings if f.condition == names.ADOPTION_DEGRADED]
    return (
        _information(adoption, findings, flags, config),
        problem_condition(names.ADOPTION_DEGRADED, problems),
    )


def _information(
    adoption: Adopted,
    findings: Sequence[Finding],
    flags: Iterable[str],
    config: Mapping[str, Any],
) -> Condition:
    type_ = names.ADOPTED_SETTINGS
    reading = [f.text for f in findings if f.reason == READING]
    if reading:
        return problem_condition(type_, ((READING, text) for text in reading))
    kept = [f"flags.{name}" for name in sorted(flags)]
    kept += [name for name, _ in adoption.settings.names()]
    kept += [".".join(path) for path in _leaves(adoption.config)]
    more = f" and {len(kept) - _LISTED} more" if len(kept) > _LISTED else ""
    listed = f"from the scheduler before the operator: {', '.join(kept[:_LISTED])}{more}; kept in "
    notes = [f"{listed}every revision"] if kept else []
    notes += foreign_notes(adoption.foreign)
    if config and not config.get("enableProfiling"):
        notes.append(PROFILING_OFF)
    message = "; ".join(notes)
    if kept or adoption.foreign:
        return Condition(type_, "True", "Kept" if kept else NOT_IN_MANIFEST, message)
    return Condition(type_, "False", AS_EXPECTED, message)


def foreign_notes(foreign: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What is not adopted because it is on a Pod in the API only; one sentence for each node."""
    for node, keys in sorted(foreign.items()):
        more = f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
        yield (
            f'{", ".join(keys[:_LISTED])}{more} of the Pod on node "{node}" are not kept, because '
            "another client wrote them to the API: put them into the manifest to keep them"
        )


def _has_begun(snapshot: Snapshot, history: tuple[Revision, ...]) -> bool:
    """Whether a node has, or had, a revision: what other Pods show from then on is not adopted."""
    installed = (revision.outcome == names.OUTCOME_INSTALLED for revision in history)
    return runs_revision(snapshot) or any(installed)


def _remembered(history: tuple[Revision, ...]) -> Adopted | None:
    """The record of the newest revision that is installed or being rolled out; None without one."""
    having = (revision for revision in newest_first(history) if names.POD in revision.copies)
    return next(map(read_record, having), None)


def _recovered(snapshot: Snapshot) -> Adopted:
    """What schedulers of the operator show if all revisions, which have the record, are lost.

    Their mirror Pods show the settings of the Pod, and `spec.observedConfig` of KubeScheduler has
    the fields of the configuration, as it has the flags. Otherwise the next revision would start
    the schedulers without these settings.
    """
    pods = [operand_pods.read(pod) for pod in snapshot.operand_pods.values()]
    ours = [pod for pod in pods if pod.ours]
    if not ours:
        return NOTHING
    newest = max(ours, key=lambda pod: (pod.revision, pod.node))
    settings = _recovered_settings(snapshot, snapshot.operand_pods[newest.node])
    return Adopted(settings, _recovered_config(snapshot))


def read_record(revision: Revision) -> Adopted:
    """The record of a revision; NOTHING if it has none."""
    data = mapping(mapping(revision.copies.get(names.POD)).get("data"))
    return _parsed(str(data.get(names.ADOPTED_KEY) or ""))


# Cached, because every reconcile reads the same record.
@lru_cache(maxsize=4)
def _parsed(text: str) -> Adopted:
    if not text:
        return NOTHING
    try:
        document = mapping(parse_json(text))
    except ValueError:
        return NOTHING
    return Adopted(read_settings(document.get("pod")), mapping(document.get("config")))


def _scheduler(node: str, pod: Object, platform: Platform, files: ConfigFiles) -> StockScheduler:
    operand, inventory = operand_pods.read(pod), take_inventory(pod, platform)
    flags = parse(operand.arguments)
    lost = (
        *inventory.not_kept,
        *flags_not_kept(flags, platform),
        *files.not_kept.get(node, ()),
    )
    return StockScheduler(node, pod, flags, inventory, files.configs.get(node, {}), lost)


def _not_kept(schedulers: list[StockScheduler], platform: Platform) -> Iterator[Finding]:
    """Settings that would be lost, with the nodes that have them."""
    nodes: dict[NotKept, list[str]] = {}
    for scheduler in schedulers:
        for lost in scheduler.not_kept:
            nodes.setdefault(lost, []).append(scheduler.node)
    for lost, having in sorted(nodes.items(), key=lambda item: item[0].name):
        where = "" if len(having) == len(schedulers) else f" on {_nodes(having)}"
        path = f"{platform.manifest_path}{where}: {lost.name}"
        yield _finding(NOT_KEPT, path, f"{lost.message}. Until then no node is touched")


def _differences(schedulers: list[StockScheduler]) -> Iterator[Finding]:
    """Settings that nodes do not share: a revision is one for all nodes."""
    first, *others = schedulers
    expected = first.values()
    by_difference: dict[tuple[str, ...], list[str]] = {}
    for scheduler in others:
        values = scheduler.values()
        known = sorted(expected.keys() | values.keys())
        different = tuple(name for name in known if expected.get(name) != values.get(name))
        if different:
            by_difference.setdefault(different, []).append(scheduler.node)
    for different, nodes in by_difference.items():
        message = (
            f'{_nodes(nodes)} and node "{first.node}" differ in {", ".join(different)}; a revision '
            "is the same on all nodes, so write the same manifest on each (kubeadm: the same "
            "--patches). Until then no node is touched"
        )
        yield _finding(NODES_DIFFER, "", message)


def _nodes(nodes: list[str]) -> str:
    quoted = ", ".join(f'"{node}"' for node in nodes)
    return f"node {quoted}" if len(nodes) == 1 else f"nodes {quoted}"


def _finding(reason: str, path: str, message: str) -> Finding:
    return Finding(names.ADOPTION_DEGRADED, reason, path, message, blocking=True)


def _leaves(config: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in sorted(config.items()):
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key)


# --- what schedulers of the operator show -------------------------------------------------------


def _recovered_settings(snapshot: Snapshot, pod: Object) -> PodSettings:
    """The settings of a scheduler of the operator, without the operator's own.

    Settings that OperatorSettings replaces are omitted: their adopted values are unknown.
    """
    settings = take_inventory(_without_own(pod), snapshot.platform).settings
    return _without_requested(settings, snapshot)


def _recovered_config(snapshot: Snapshot) -> dict[str, Any]:
    """The adopted fields of the configuration, from `spec.observedConfig`."""
    observed = mapping(snapshot.spec.get("observedConfig"))
    config = {
        key: value
        for key, value in observed.items()
        if key not in (ARGUMENTS, SERVING_INFO, PROFILES, EXTENDERS)
    }
    profiles = observed.get(PROFILES)
    if isinstance(profiles, list) and snapshot.scheduler_profiles is not None:
        taken = _scheduler_names(snapshot.scheduler_profiles)
        kept = [
            profile for profile in profiles if mapping(profile).get("schedulerName") not in taken
        ]
        config |= {PROFILES: kept} if kept else {}
    # Those of SchedulerExtenders look like any other.
    if snapshot.scheduler_extenders == {} and observed.get(EXTENDERS):
        config[EXTENDERS] = observed[EXTENDERS]
    return config


def _scheduler_names(objects: Mapping[str, Object]) -> set[str]:
    return {
        str(version.get("schedulerName") or name_of(obj))
        for obj in objects.values()
        for version in (mapping(obj.get("spec")), last_accepted(obj) or {})
    }


def _without_own(pod: Object) -> dict[str, Any]:
    """A mirror Pod of the operator as kubeadm would write it, with the settings that it keeps."""
    spec = dict(mapping(pod.get("spec")))
    if spec.get(_GRACE) == _OWN_GRACE:
        del spec[_GRACE]
    containers = []
    for container in map(dict, spec.get("containers") or ()):
        container["volumeMounts"] = [
            mount
            for mount in container.get("volumeMounts") or ()
            if not str(mount.get("name")).startswith(OWN_VOLUMES)
        ]
        if container.get("resources") == OWN_RESOURCES:
            del container["resources"]
        containers.append(container)
    return {**pod, "spec": {**spec, "containers": containers}}


def _without_requested(settings: PodSettings, snapshot: Snapshot) -> PodSettings:
    obj = (snapshot.operator_settings or {}).get(names.CLUSTER)
    if obj is None:
        return settings
    request = requested_pod(mapping(last_accepted(obj)))
    return settings.without(frozenset(request.replaced))
