"""Previews the adoption of a cluster's schedulers, setting by setting.

A reconcile (`adopted`, `desired_content`) decides, over a snapshot with the reports that the
operator would read from the nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from ....base.environment import holds_credentials
from ....base.findings import Finding
from ....base.go_values import boolean
from ....base.objects import mapping
from ....base.platform import KUBEADM, Platform
from ....config.effective.control_plane.observe import kept_flags
from ....config.effective.facts import is_stock_image
from ....config.language.command_line import CONFIG_PATH
from ....config.language.flags import VOID_WITH_CONFIG
from ....config.language.schema import DEFAULT_SCHEDULER
from ....config.language.validation.configuration import Target
from ....config.migrate.changes import Change, ConversionError, ConversionLog
from ....config.migrate.convert import convert, source_of
from ....config.migrate.old_schema import V1
from ....config.migrate.operator_objects import control_plane_objects
from ....node.config_reader.program import credentials
from ....node.config_reader.report import ConfigReport
from ...model import operand_pods
from ...model.snapshot import Snapshot
from ..desired import desired_content
from ..operand_image import operand_image
from ..revision.content import RevisionContent
from .adopted import (
    PROFILING_OFF,
    READING,
    Adopted,
    StockScheduler,
    adopted,
    foreign_notes,
    target_of,
)
from .config_files import answered_readers, config_path
from .flag_settings import configuration_of, field_of

HIDDEN: Final = "(not shown)"
"""Replaces a value that may be a credential."""

_OBSERVED: Final = "spec.observedConfig"
_OBJECTS: Final = ("profiles", "extenders")
_FOREIGN: Final = "is on the Pod in the API only; put it into the manifest to keep it"


class Outcome(Enum):
    """What becomes of a setting; the value is displayed."""

    KEPT = "kept"
    SAME = "same"
    NO_EFFECT = "no effect"
    DROPPED = "dropped"
    BLOCKS = "blocks"
    UNKNOWN = "not visible"


@dataclass(frozen=True, slots=True)
class PreviewedSetting:
    name: str  # `flags.v`, `env.GOGC`, `config.parallelism` …
    value: str  # the value, as text; HIDDEN if it may be a credential
    outcome: Outcome
    note: str = ""  # where it is kept, or why it is not, and the way to keep its effect


@dataclass(frozen=True, slots=True)
class PreviewedNode:
    node: str
    image: str
    file: str  # its configuration file; empty without one
    settings: tuple[PreviewedSetting, ...]  # all that it was started with, by name
    converted: tuple[Change, ...] = ()  # what the conversion of its file to v1 changed


@dataclass(frozen=True, slots=True)
class AdoptionPreview:
    nodes: tuple[PreviewedNode, ...]  # the schedulers, by node; empty if there is nothing to adopt
    adopted: Adopted
    findings: tuple[Finding, ...]  # what blocks the first revision
    warnings: tuple[Finding, ...]  # the other findings of validation
    content: RevisionContent | None  # the first revision; None if it is blocked
    unseen: Mapping[str, str]  # node -> the configuration file that is not known
    notes: tuple[str, ...]  # what is not adopted because it is not in a manifest
    profiling_ends: bool  # whether a scheduler serves profiles, and will not

    @property
    def adoptable(self) -> bool:
        """Whether the operator adopts the schedulers, and loses nothing."""
        return self.content is not None and not self.unseen

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The configuration of the first revision without credentials, to be shown."""
        return mapping(_without_credentials(self.content.config)) if self.content else {}

    @property
    def arguments(self) -> list[str]:
        """The flags of the first revision without credentials, to be shown."""
        words = self.content.operand.get("args") if self.content else None
        return [
            f"{flag}={HIDDEN}" if holds_credentials(flag, value) else f"{flag}={value}"
            for flag, _, value in (word.partition("=") for word in words or ())
        ]


def _without_credentials(document: Any) -> Any:
    shown = deepcopy(document)
    for path in credentials(document):
        target = shown
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = HIDDEN
    return shown


def preview(snapshot: Snapshot, reports: Mapping[str, ConfigReport]) -> AdoptionPreview:
    """Decide as the operator does; `reports` has the known configuration files of nodes.

    The snapshot's schedulers predate the operator.
    """
    answered = answered_readers(snapshot, reports)
    read = replace(snapshot, config_reader_pods=answered)
    adoption = adopted(read)
    content, findings = desired_content(read)
    unseen = {node: path for node, path in adoption.waiting.items() if node not in reports}
    blocking = [f for f in findings if f.blocking and f.reason != READING]
    ends = (
        content is not None
        and not content.config.get("enableProfiling")
        and any(_serves_profiles(one, reports.get(one.node)) for one in adoption.schedulers)
    )
    return AdoptionPreview(
        nodes=tuple(
            _node(
                scheduler,
                snapshot,
                reports.get(scheduler.node),
                adoption.foreign.get(scheduler.node, ()),
            )
            for scheduler in adoption.schedulers
        ),
        adopted=adoption,
        findings=tuple(dict.fromkeys(blocking)),
        warnings=tuple(dict.fromkeys(f for f in findings if not f.blocking)),
        content=content,
        unseen=unseen,
        notes=(*foreign_notes(adoption.foreign), *((PROFILING_OFF,) if ends else ())),
        profiling_ends=ends,
    )


def _serves_profiles(scheduler: StockScheduler, report: ConfigReport | None) -> bool:
    """Whether a scheduler serves /debug/pprof, as kube-scheduler does by default."""
    if "config" in scheduler.flags:
        return mapping(report.config if report else {}).get("enableProfiling") is not False
    value = scheduler.flags.get("profiling", ["true"])[-1]
    with suppress(ValueError):
        return boolean(value)
    return True


def _node(
    scheduler: StockScheduler,
    snapshot: Snapshot,
    report: ConfigReport | None,
    foreign: Sequence[str],
) -> PreviewedNode:
    path, platform = config_path(scheduler.pod), snapshot.platform
    lost = {not_kept.name: not_kept.message for not_kept in scheduler.not_kept}
    settings = [
        *_flags(scheduler, platform, lost),
        *_config(scheduler),
        *(
            PreviewedSetting(name, shown(name, value), Outcome.KEPT)
            for name, value in scheduler.inventory.settings.names()
        ),
        *(PreviewedSetting(name, HIDDEN, Outcome.DROPPED, _FOREIGN) for name in foreign),
    ]
    listed = {setting.name for setting in settings}
    settings += [
        PreviewedSetting(name, HIDDEN, Outcome.BLOCKS, message)
        for name, message in lost.items()
        if name not in listed
    ]
    image = operand_pods.read(scheduler.pod).image
    if platform == KUBEADM and not is_stock_image(image):  # others have images of other names
        settings.insert(0, _image(image, operand_image(snapshot)))
    converted = _changes(report, target_of(snapshot))
    return PreviewedNode(scheduler.node, image, path, tuple(settings), converted)


def _image(image: str, desired: str) -> PreviewedSetting:
    """Preview an image that is not Kubernetes' own: it may have plugins, and any version."""
    if image != desired:
        return PreviewedSetting("image", image, Outcome.DROPPED, f"OPERAND_IMAGE is {desired}")
    note = "the preflight runs it first; for the stock scheduler, restore its manifest before"
    return PreviewedSetting("image", image, Outcome.KEPT, note)


def _changes(report: ConfigReport | None, target: Target) -> tuple[Change, ...]:
    if report is None or report.config is None:
        return ()
    with suppress(ConversionError):
        if source_of(report.config) is not V1:
            return convert(report.config, target).changes
    return ()


def _flags(
    scheduler: StockScheduler, platform: Platform, lost: Mapping[str, str]
) -> Iterator[PreviewedSetting]:
    kept = kept_flags(scheduler.flags, platform)
    fields = configuration_of(scheduler.flags)
    for flag, values in sorted(scheduler.flags.items()):
        name, value = f"flags.{flag}", ", ".join(values)
        text = HIDDEN if holds_credentials(flag, value) else value
        field = field_of(flag, scheduler.flags)
        if name in lost and (flag != "config" or not scheduler.file):
            yield PreviewedSetting(name, text, Outcome.BLOCKS, lost[name])
        elif flag == "config":
            if value != CONFIG_PATH:
                yield PreviewedSetting(name, text, *_config_flag(scheduler, value))
        elif field and _has(fields, field):
            yield PreviewedSetting(name, text, Outcome.KEPT, _observed(field))
        elif flag in VOID_WITH_CONFIG and "config" in scheduler.flags:
            note = "kube-scheduler ignores it beside --config"
            yield PreviewedSetting(name, text, Outcome.NO_EFFECT, note)
        elif flag in kept:
            yield PreviewedSetting(name, text, Outcome.KEPT, _observed(("arguments", flag)))
        elif flag in platform.dropped_arguments:
            note = "names a file of the distribution; the scheduler makes its own certificate"
            yield PreviewedSetting(name, text, Outcome.DROPPED, note)
        elif flag == "leader-elect" and value == "false":
            note = "a leader is elected, which a single scheduler wins at once"
            yield PreviewedSetting(name, text, Outcome.DROPPED, note)
        else:
            yield PreviewedSetting(name, text, Outcome.SAME)


def _config_flag(scheduler: StockScheduler, path: str) -> tuple[Outcome, str]:
    if scheduler.file:
        return Outcome.KEPT, "the operator's file has its fields, listed as config"
    note = f"the API does not show {path}; the operator reads it on the node, or copy it for -f"
    return Outcome.UNKNOWN, note


def _config(scheduler: StockScheduler) -> Iterator[PreviewedSetting]:
    flags = configuration_of(scheduler.flags)
    for key, value in sorted(scheduler.file.items()):
        note = f"{_observed((key,))}; flags win" if key in flags else _observed((key,))
        yield PreviewedSetting(f"config.{key}", config_text(key, value), Outcome.KEPT, note)


def config_text(key: str, value: Any) -> str:
    """A field of a configuration as text: profiles and extenders by name."""
    if key == "profiles" and isinstance(value, list):
        named = (mapping(item).get("schedulerName") or DEFAULT_SCHEDULER for item in value)
        return ", ".join(map(str, named))
    if key == "extenders" and isinstance(value, list):
        return ", ".join(str(mapping(item).get("urlPrefix")) for item in value)
    return value_text(value)


def shown(name: str, value: Any) -> str:
    """The value of a setting as text; HIDDEN if it may be a credential."""
    if name.startswith("env."):
        value = mapping(value).get("value", mapping(value).get("valueFrom", value))
    hidden = isinstance(value, str) and holds_credentials(name, value)
    return HIDDEN if hidden else value_text(value)


def _observed(path: Sequence[str]) -> str:
    return ".".join((_OBSERVED, *path))


def _has(fields: Mapping[str, Any], path: Sequence[str]) -> bool:
    value: Any = fields
    for key in path:
        if key not in mapping(value):
            return False
        value = value[key]
    return True


def value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        host = mapping(value.get("hostPath")).get("path")
        if host:
            return f"hostPath {host}"
        if value.get("mountPath"):
            return f"{value.get('name')}{', read-only' if value.get('readOnly') else ''}"
        return ", ".join(f"{key}={_inner(item)}" for key, item in value.items() if key != "name")
    if isinstance(value, list):
        return ", ".join(_inner(item) for item in value)
    return json.dumps(value)


def _inner(value: Any) -> str:
    text = value_text(value)
    return f"({text})" if isinstance(value, Mapping | list) else text


# --- the adopted profiles and extenders as objects, which then have the same effect -------------


@dataclass(frozen=True, slots=True)
class AdoptedObjects:
    objects: tuple[dict[str, Any], ...]  # for `kubectl apply`
    changes: tuple[Change, ...]  # what differs from the adopted configuration
    remaining: tuple[str, ...]  # adopted fields that no object has; they stay in effect as they are


def adopted_objects(adopted: Mapping[str, Any], effective: Mapping[str, Any]) -> AdoptedObjects:
    """The objects for an adopted configuration.

    `effective` is the configuration that the adopted fields result in, with spec.profile of the
    Scheduler.
    """
    profiles = adopted.get("profiles")
    listed = [mapping(profile) for profile in profiles] if isinstance(profiles, list) else []
    served = {str(profile.get("schedulerName") or DEFAULT_SCHEDULER) for profile in listed}
    config: dict[str, Any] = {
        "profiles": [
            profile
            for profile in effective.get("profiles") or ()
            if str(profile.get("schedulerName") or DEFAULT_SCHEDULER) in served
        ],
        "extenders": adopted.get("extenders") or [],
    }
    log = ConversionLog()
    objects = control_plane_objects(config, set(), log)
    named = {
        str(profile.get("schedulerName") or DEFAULT_SCHEDULER) for profile in config["profiles"]
    }
    if served and DEFAULT_SCHEDULER not in named:
        why = (
            f"beside SchedulerProfiles, the control plane's scheduler always serves it; if another "
            f"scheduler serves {DEFAULT_SCHEDULER}, keep the profiles adopted instead"
        )
        log.differs(("profiles",), f"profile {DEFAULT_SCHEDULER} added", why)
    if not served:  # control_plane_objects has a profile for a file without any
        objects = [profile for profile in objects if profile["kind"] != "SchedulerProfile"]
    remaining = tuple(sorted(key for key in adopted if key not in _OBJECTS))
    return AdoptedObjects(tuple(objects), log.changes(), remaining)
