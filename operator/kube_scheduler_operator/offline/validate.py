"""Validates files: errors and warnings with their positions, and whether the scheduler starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import (
    ERROR,
    WARNING,
    Path,
    Problem,
    Severity,
    did_you_mean,
    format_path,
    listing,
)
from ..base.objects import mapping
from ..kube.resource import CONFIGURED, LOAD_POLICIES, OPERATOR_SETTINGS
from ..load.policy_files import CRANE_GROUP, CRANE_KIND
from ..schedulerconfig.crd_schema import validate_object
from ..schedulerconfig.decode import INVALID_TYPE, UNKNOWN_FIELD
from ..schedulerconfig.printed_arguments import unprintable_arguments
from ..schedulerconfig.schema import API_VERSION, ARGS, KIND, args_struct
from ..schedulerconfig.source import Document, Position, read
from ..schedulerconfig.source_culprit import first_culprit
from ..schedulerconfig.warnings import warnings_between
from .checks import Checked, Checker, CheckOptions, Item, Kind
from .config_maps import CONFIG_MAP, MountedFile, mounted_files, scheduler_images
from .control_plane import check_configurations
from .load_policies import check_load_policies
from .operator_settings import check_operator_settings
from .secondary_schedulers import check_objects

SYNTAX: Final = "Syntax"
NOT_STRICT: Final = "NotStrict"
OLD_API_VERSION: Final = "OldAPIVersion"
UNKNOWN_KIND: Final = "UnknownKind"
NO_DOCUMENT: Final = "NoDocument"
NEVER_READ: Final = "NeverRead"

Kinds = Mapping[tuple[str, str], Kind]

KINDS: Final[Kinds] = {
    ("kubescheduler.config.k8s.io", KIND): Kind("v1", check_configurations),
    **{
        (each.group, each.kind): Kind(each.version, check_objects, f"{each.name}.yaml")
        for each in CONFIGURED.values()
    },
    (LOAD_POLICIES.group, LOAD_POLICIES.kind): Kind(LOAD_POLICIES.version, check_load_policies),
    (OPERATOR_SETTINGS.group, OPERATOR_SETTINGS.kind): Kind(
        OPERATOR_SETTINGS.version, check_operator_settings
    ),
    (CRANE_GROUP, CRANE_KIND): Kind("v1alpha1", check_load_policies),
}
"""The kinds that can be checked, by API group and kind."""

_GROUP: Final = API_VERSION.partition("/")[0]
_OURS: Final = frozenset((_GROUP, names.PREFIX, CRANE_GROUP))
"""API groups whose kinds are all known here; the others belong to OpenShift."""
_ARGUMENTS: Final = frozenset(f"{plugin}Args" for plugin in ARGS)
_OLD_GROUPS: Final = (_GROUP, "componentconfig")

_REMEDIES: Final[Mapping[str, str]] = {UNKNOWN_FIELD: "remove it"}
_REMEDY: Final = "change the value as the message describes"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding in a file.

    Attributes:
        file: the display name of the file.
        position: line and column.
        kind: the kind of the document; empty if it has none.
        path: the field; empty for the document as a whole.
        reason: a CamelCase identifier, for programs.
        message: what is wrong, or what will happen.
        fix: the remedy.
        severity: an error keeps the scheduler from starting.
    """

    file: str
    position: Position
    kind: str
    path: str
    reason: str
    message: str
    fix: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All findings of some files.

    Attributes:
        findings: errors and warnings, by file and position.
        documents: (file, kind) of every checked document, in order.
        others: (file, kind) of objects that do not configure a scheduler.
        items: the checked documents.
    """

    findings: tuple[Diagnosis, ...]
    documents: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...] = ()
    items: tuple[Item, ...] = ()

    def count(self, severity: Severity) -> int:
        """The number of findings of this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def starts(self) -> bool:
        """Whether the scheduler would start."""
        return not self.count(ERROR)

    @property
    def notes(self) -> tuple[str, ...]:
        """For which version configurations in ConfigMaps were checked."""
        mounted = dict.fromkeys(item.mounted for item in self.items if item.mounted)
        return tuple(
            f"{CONFIG_MAP} {each.config_map} was checked for kube-scheduler "
            f"{each.version.short}, as in the image of {each.workload}"
            for each in mounted
            if each.version
        )


def validate(
    files: Sequence[tuple[str, str | bytes]], options: CheckOptions, kinds: Kinds = KINDS
) -> ValidationReport:
    """Check the documents of files.

    Args:
        files: (name, content); a text, or bytes that are UTF-8 or UTF-16.
        options: what the check depends on besides the files.
        kinds: the kinds to check.
    """
    findings: list[Diagnosis] = []
    known: list[tuple[Item, Kind]] = []
    others: list[tuple[Item, Problem]] = []
    for items, found, first in _documents(files, options):
        findings += found
        has_configuration = bool(items) and _is_mounted(items[0])
        for item in items:
            kind = _kind(item, kinds)
            if has_configuration and item is not items[0] and _is_for_kube_scheduler(item):
                findings.append(_diagnosis(item, _never_read(item)))
                continue
            if isinstance(kind, Problem):
                if _of_others(item, kinds):
                    others.append((item, kind))
                else:
                    findings.append(_diagnosis(item, kind))
            else:
                known.append((item, kind))
        findings += [_diagnosis(item, problem) for item, problem in _refused(items, first)]
    if not (known or findings):  # nothing else was to be checked
        findings += [_diagnosis(item, problem) for item, problem in others]
    findings += [_diagnosis(item, problem) for item, problem in _check(known, options)]
    order = {name: index for index, (name, _) in enumerate(files)}
    findings.sort(key=lambda each: (order[each.file], each.position, each.path))
    return ValidationReport(
        tuple(findings),
        tuple((item.file, item.kind) for item, _ in known),
        tuple((item.file, item.kind) for item, _ in others),
        tuple(item for item, _ in known),
    )


_Documents = tuple[list[Item], list[Diagnosis], Document | None]
"""The documents that are objects, problems of the text, and the first nonempty document."""


def _documents(
    files: Sequence[tuple[str, str | bytes]], options: CheckOptions
) -> Iterator[_Documents]:
    """The documents of each file, then those of each file in its ConfigMaps."""
    minor = options.gates.version.minor
    manifests = [(text, _read(file, text, minor)) for file, text in files]
    images = scheduler_images(item.value for _, (items, _, _) in manifests for item in items)
    for (file, _), (text, (items, found, first)) in zip(files, manifests, strict=True):
        mounted = {
            id(item): list(mounted_files(item.document, text, images))
            for item in items
            if item.kind == CONFIG_MAP
        }
        yield [item for item in items if not mounted.get(id(item))], found, first
        for each in (one for found_ones in mounted.values() for one in found_ones):
            version = each.version.minor if each.version else minor
            yield _read(file, each.text, version, each)


def _of_others(item: Item, kinds: Kinds) -> bool:
    """Whether it is an object of another API, and not a misspelt kind of this operator.

    Other products have kinds of the same names: Kyverno a Policy, Volcano a Scheduler.
    """
    api_version = str(item.value.get("apiVersion") or "")
    group = api_version.rpartition("/")[0]
    ours = {group for group, _ in kinds} | {_GROUP}
    if not item.kind or "apiVersion" not in item.value or item.kind == KIND:
        return False
    if (group, item.kind) in kinds or _is_policy(item):
        return False
    if group in ours:
        of_group = {name for other, name in kinds if other == group}
        return group not in _OURS and not did_you_mean(item.kind, of_group)
    return not (item.kind in {name for _, name in kinds} and did_you_mean(group, ours))


def _is_mounted(item: Item) -> bool:
    """Whether it is the document that kube-scheduler reads from its file."""
    document = item.document
    return document.index == 0 and not document.is_listed and item.kind == KIND


def _is_for_kube_scheduler(item: Item) -> bool:
    """Whether it is a configuration, or not an object that the API server would accept."""
    api_version = str(item.value.get("apiVersion") or "")
    if not api_version or item.kind in (KIND, "") or _is_policy(item):
        return True
    return api_version.rpartition("/")[0] in _OLD_GROUPS


def _is_policy(item: Item) -> bool:
    """Whether it is a Policy of kube-scheduler; other products have a Policy in their own group."""
    return item.kind == "Policy" and item.value.get("apiVersion") in ("v1", "", None)


def _is_not_decoded(document: Document, path: Path, minor: int) -> bool:
    """Whether a path is in arguments that kube-scheduler passes on as they are, in JSON."""
    if path[:1] + path[2:3] + path[4:5] != ("profiles", "pluginConfig", "args"):
        return False
    name = document.data((*path[:4], "name"))
    return isinstance(name, str | None) and args_struct(name or "", minor) is None


def _read(
    file: str, content: str | bytes, minor: int, mounted: MountedFile | None = None
) -> _Documents:
    documents, error = read(content)
    objects = [each for document in documents for each in document.objects()]
    items: list[Item] = []
    found: list[Diagnosis] = []

    def report(position: Position, index: int, reason: str, message: str, fix: str) -> None:
        # What follows a configuration is not read by kube-scheduler.
        is_read = not (items and index and _is_mounted(items[0]))
        severity: Severity = ERROR if is_read else WARNING
        ignored = "" if is_read else f"; {_FIRST_ONLY}"
        if mounted:
            position = mounted.in_manifest(position)
        found.append(Diagnosis(file, position, "", "", reason, message + ignored, fix, severity))

    for document in objects:
        value = document.value
        if isinstance(value, Mapping):
            items.append(Item(file, document, value, mounted))
        else:
            message = "a document must be an object with apiVersion and kind"
            fix = "add both, or remove the document"
            report(document.root.position, document.index, NO_DOCUMENT, message, fix)
    for document in documents:
        for flaw in document.flaws:
            wrong, _, fix = flaw.message.rpartition("; ")
            if not _is_not_decoded(document, flaw.path, minor):
                report(flaw.position, document.index, NOT_STRICT, wrong or fix, fix)
        if mapping(document.root.data).get("kind") == KIND:
            for path, message in unprintable_arguments(document, minor):
                what, _, fix = message.rpartition("; ")
                wrong = (
                    f"{format_path(path)}: kube-scheduler has to read these arguments as YAML to "
                    f"print them with -v=2, as the operator starts it: {what or fix}"
                )
                fix = "remove args; the plugin has no arguments"
                report(document.position(path), document.index, SYNTAX, wrong, fix)
    if error is not None:
        wrong, _, fix = error.message.rpartition("; ")
        index = documents[-1].index + 1 if documents else 0
        report(error.position, index, SYNTAX, wrong or fix, fix if wrong else "correct the syntax")
    elif not documents:
        message = "the file does not contain a document"
        report(Position(1, 1), 0, NO_DOCUMENT, message, f"add a {KIND}")
    return items, found, documents[0] if documents else None


def _kind(item: Item, kinds: Kinds) -> Kind | Problem:
    """How to check a document, or why it cannot be checked."""
    api_version = str(item.value.get("apiVersion") or "")
    for key, text in (("apiVersion", api_version), ("kind", item.kind)):
        if culprit := first_culprit(text):
            what, _, fix = culprit.partition("; ")
            return Problem(UNKNOWN_KIND, (key,), f"{key} contains {what}", fix)
    group, _, version = api_version.rpartition("/")
    kind = kinds.get((group, item.kind))
    if kind is not None and kind.version == version:
        return kind
    old = item.kind == KIND and group in _OLD_GROUPS
    if (old and kind is None) or (old and version.startswith("v1")) or _is_policy(item):
        return Problem(
            OLD_API_VERSION,
            ("apiVersion",),
            f"kube-scheduler no longer supports {item.kind} of {api_version}, only {API_VERSION}",
            f"kube-scheduler-operator convert -f {item.file}",
        )
    if kind is not None:
        supported = f"{group}/{kind.version}"
        message = f"the apiVersion of {item.kind} is {supported}, not {api_version}"
        return Problem(UNKNOWN_KIND, ("apiVersion",), message, f"write {supported}")
    known = listing(sorted(name for _, name in kinds))
    if group and _of_others(item, kinds):
        message = f"{item.kind} of {api_version} belongs to another API and is not checked here"
        return Problem(UNKNOWN_KIND, ("kind",), message, f"use {known}")
    for other, name in kinds:
        if name == item.kind:
            supported = f"{other}/{kinds[other, name].version}"
            if not api_version:
                return _missing(item, "apiVersion", f"write apiVersion: {supported}")
            message = f'{item.kind} of "{api_version}" is not the kind that is checked here'
            return Problem(UNKNOWN_KIND, ("apiVersion",), message, f"write {supported}")
    of_group = sorted(name for other, name in kinds if other == group)
    if not item.kind:
        return _missing(item, "kind", f"set it to {listing(of_group) or known}")
    if group == _GROUP and item.kind in _ARGUMENTS:
        message = f"{item.kind} is part of a {KIND}"
        fix = (
            f"write it as args in pluginConfig: {{name: {item.kind.removesuffix('Args')}, args: …}}"
        )
        return Problem(UNKNOWN_KIND, ("kind",), message, fix)
    hint = did_you_mean(item.kind, of_group or (name for _, name in kinds)).removeprefix("; ")
    message = f"{item.kind} of {api_version or 'no apiVersion'} is not a kind that can be checked"
    return Problem(UNKNOWN_KIND, ("kind",), message, hint or f"use {listing(of_group) or known}")


def _missing(item: Item, key: str, fix: str) -> Problem:
    """That a field is missing, or which one only looks like it."""
    for name in map(str, item.value):
        if key in name and (culprit := first_culprit(name)):
            what, _, correct = culprit.partition("; ")
            message = f"{key} is missing: the name of this field contains {what}"
            return Problem(UNKNOWN_KIND, (name,), message, correct)
    return Problem(UNKNOWN_KIND, (), f"{key} is missing", fix)


_FIRST_ONLY: Final = "kube-scheduler reads only the first document of its file"


def _never_read(item: Item) -> Problem:
    """The warning of a document behind a configuration."""
    message = f"{_FIRST_ONLY} and ignores this one"
    fix = "move it to its own file"
    if item.kind == KIND:
        fix += ", or move its profiles to the first document"
    return Problem(NEVER_READ, (), message, fix, WARNING)


def _refused(items: Sequence[Item], first: Document | None) -> Iterator[tuple[Item, Problem]]:
    """The configurations that kube-scheduler does not find because of another document.

    `first` is the first nonempty document of the file.
    """
    if first is None or not items or _is_mounted(items[0]):
        return
    fix = "move the configuration to a file of its own"
    if first.index:
        what, fix = "empty", "remove everything above the --- that precedes this configuration"
    elif not isinstance(first.root.data, Mapping):
        what = f"not an object (line {first.root.position.line})"
    else:
        kind = first.root.data.get("kind")
        what = f"a {kind}" if kind else "an object without kind"
        what += f" (line {first.root.position.line})"
    for item in items:
        if item.kind != KIND:
            continue
        if item.document.is_listed:
            message = "kube-scheduler reads no List and exits with an error"
        else:
            message = (
                f"{_FIRST_ONLY}, which is {what}, and exits with an error; this one is document "
                f"{item.document.index + 1}"
            )
        yield item, Problem(NEVER_READ, (), message, fix)


def _check(
    known: Sequence[tuple[Item, Kind]], options: CheckOptions
) -> Iterator[tuple[Item, Problem]]:
    reported: set[tuple[int, str]] = set()
    malformed: set[int] = set()
    for item, problem in _check_definitions(known):
        reported.add((id(item), format_path(problem.path)))
        if problem.reason == INVALID_TYPE:
            malformed.add(id(item))  # checks rely on the types that an API server ensures
        yield item, problem
    checkers: dict[Checker, list[Item]] = {}
    for item, kind in known:
        if id(item) not in malformed:
            checkers.setdefault(kind.checker, []).append(item)
    processes = []
    for checker, items in checkers.items():
        checked: Checked = checker(items, options)
        processes += checked.processes
        for item, problem in checked.problems:
            if (id(item), format_path(problem.path)) not in reported:
                yield item, problem
    by_process = {id(process): item for item, process in processes}
    for process, problem in warnings_between([process for _, process in processes]):
        yield by_process[id(process)], problem


def _check_definitions(items: Sequence[tuple[Item, Kind]]) -> Iterator[tuple[Item, Problem]]:
    """The violations of CustomResourceDefinitions."""
    for item, kind in items:
        if kind.definition:
            # With its nulls: the API server also rejects an unknown field that has no value.
            for problem in validate_object(item.document.root.data, kind.definition, kind.version):
                yield item, problem


def wrong_types(value: Mapping[str, Any]) -> Iterator[Problem]:
    """The fields of an object of a known kind that have another type than its definition."""
    group, _, version = str(value.get("apiVersion") or "").rpartition("/")
    kind = KINDS.get((group, str(value.get("kind"))))
    if kind is not None and kind.definition and kind.version == version:
        for problem in validate_object(value, kind.definition, version):
            if problem.reason == INVALID_TYPE:
                yield problem


def _diagnosis(item: Item, problem: Problem) -> Diagnosis:
    message, fix = problem.parts
    return Diagnosis(
        file=item.file,
        position=item.position(problem.path),
        kind=item.kind,
        path=format_path(problem.path),
        reason=problem.reason,
        message=message,
        fix=fix or _REMEDIES.get(problem.reason, _REMEDY),
        severity=problem.severity,
    )
