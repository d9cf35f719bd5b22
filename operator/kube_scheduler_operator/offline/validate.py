"""Validates files: errors and warnings with their positions, and whether the scheduler starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from ..schedulerconfig.schema import API_VERSION, ARGS, KIND
from ..schedulerconfig.source import Document, Position
from ..schedulerconfig.source_culprit import first_culprit
from ..schedulerconfig.source_tree import SourceNode
from ..schedulerconfig.warnings import ConfiguredScheduler, warnings_between
from .checks import NEVER_READ, Checked, Checker, CheckOptions, Item, Kind
from .command_lines import check_command
from .control_plane import check_configurations, is_run_by_provider
from .documents import (
    FIRST_ONLY,
    NO_DOCUMENT,
    NOT_STRICT,
    SYNTAX,
    Source,
    TextProblem,
    is_read,
    read_sources,
    sources_items,
)
from .forms.config_map import CONFIG_MAP
from .forms.form import Contents
from .forms.kubeadm import GROUP as KUBEADM_GROUP
from .leader_election import check_elections
from .linking import Readers
from .other_files import (
    CONFIGURATION_FIELDS,
    has_no_type,
    may_concern,
    no_configuration,
    nothing_to_check,
)
from .pods_schedulers import check_scheduler_names
from .reader_target import is_for_volcano, known_scheduler, other_scheduler
from .secondary_schedulers import check_objects
from .templates import NOT_RENDERED, RENDERED
from .volcano.catalogue import volcano_of_image
from .volcano.recognition import LABEL as VOLCANO_LABEL
from .volcano.recognition import is_volcano

__all__ = [
    "KINDS",
    "NEVER_READ",
    "NOT_RENDERED",
    "NOT_STRICT",
    "NO_DOCUMENT",
    "OLD_API_VERSION",
    "SYNTAX",
    "UNKNOWN_KIND",
    "Diagnosis",
    "ValidationReport",
    "validate",
    "wrong_types",
]  # fmt: skip

OLD_API_VERSION: Final = "OldAPIVersion"
UNKNOWN_KIND: Final = "UnknownKind"

Kinds = Mapping[tuple[str, str], Kind]


# Few files have objects of these kinds, and loading what checks them takes a part of the start.
def _check_load_policies(items: Sequence[Item], options: CheckOptions) -> Checked:
    from .load_policies import check_load_policies

    return check_load_policies(items, options)


def _check_operator_settings(items: Sequence[Item], options: CheckOptions) -> Checked:
    from .operator_settings import check_operator_settings

    return check_operator_settings(items, options)


def _check_volcano(items: Sequence[Item], options: CheckOptions) -> Checked:
    from .volcano.configuration import check_volcano

    return check_volcano(items, options)


KINDS: Final[Kinds] = {
    ("kubescheduler.config.k8s.io", KIND): Kind("v1", check_configurations),
    **{
        (each.group, each.kind): Kind(each.version, check_objects, f"{each.name}.yaml")
        for each in CONFIGURED.values()
    },
    (LOAD_POLICIES.group, LOAD_POLICIES.kind): Kind(LOAD_POLICIES.version, _check_load_policies),
    (OPERATOR_SETTINGS.group, OPERATOR_SETTINGS.kind): Kind(
        OPERATOR_SETTINGS.version, _check_operator_settings
    ),
    (CRANE_GROUP, CRANE_KIND): Kind("v1alpha1", _check_load_policies),
}
"""The kinds that can be checked, by API group and kind."""


_VOLCANO: Final = Kind("", _check_volcano)
"""Volcano's configuration, which has neither an API group nor a kind."""
_GROUP: Final = API_VERSION.partition("/")[0]
_OURS: Final = frozenset((_GROUP, names.PREFIX, CRANE_GROUP))
"""API groups whose kinds are all known here; the others belong to OpenShift."""
_ARGUMENTS: Final = frozenset(f"{plugin}Args" for plugin in ARGS)
_OLD_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    _GROUP: ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"),
    "componentconfig": ("v1alpha1",),
}
"""API group -> the versions of KubeSchedulerConfiguration before v1."""

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
        subject: the object and the field, with names in place of list indices, so that it stays
            the same when lines and entries move.
        raised: whether it is an error only by the user's settings, so that the scheduler starts.
    """

    file: str
    position: Position
    kind: str
    path: str
    reason: str
    message: str
    fix: str
    severity: Severity
    subject: str = field(default="", compare=False)
    raised: bool = False

    @property
    def prevents_start(self) -> bool:
        """Whether the scheduler would not start because of it."""
        return self.severity == ERROR and not self.raised


@dataclass(frozen=True, slots=True)
class IgnoredFinding:
    """A warning that the user ignores, and why."""

    finding: Diagnosis
    justification: str


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All findings of some files.

    Attributes:
        findings: errors and warnings, by file and position.
        documents: (file, kind) of every checked document, in order.
        others: (file, kind) of objects that do not configure a scheduler.
        items: the checked documents that configure a scheduler.
        remarks: about files that were not checked.
        ignored: warnings that a comment or a flag ignores; not in `findings`.
        accepted: findings that are in the baseline; not in `findings`.
        scheduler: another scheduler, which reads all configurations; empty: kube-scheduler.
    """

    findings: tuple[Diagnosis, ...]
    documents: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...] = ()
    items: tuple[Item, ...] = ()
    remarks: tuple[str, ...] = ()
    ignored: tuple[IgnoredFinding, ...] = ()
    accepted: tuple[Diagnosis, ...] = ()
    scheduler: str = ""

    def count(self, severity: Severity) -> int:
        """The number of findings of this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def starts(self) -> bool:
        """Whether the scheduler would start."""
        return not any(each.prevents_start for each in (*self.findings, *self.accepted))

    @property
    def is_empty(self) -> bool:
        """Whether the files have nothing to check."""
        return not self.documents

    @property
    def notes(self) -> tuple[str, ...]:
        """For which version configurations in other documents were checked."""
        found = {}
        for item in self.items:
            third = known_scheduler(item.reader)
            shown = item.version or third
            volcano = volcano_of_image(item.reader.image) if item.reader else None
            if volcano is not None and item.place is not None and is_volcano(item.value):
                owner = item.place.owner
                label = item.reader.label if item.reader else owner
                source = f", as in the image of {label}" if label != owner else ""
                found[owner] = f"{owner} was checked for Volcano {volcano.version}{source}"
            elif item.place is not None and shown is not None and not is_volcano(item.value):
                owner = item.place.owner
                version = item.version.short if item.version else ""
                reader = item.reader
                image = reader is not None and reader.image and reader.label != owner
                source = f", as in the image of {reader.label}" if reader and image else ""
                what = f"kube-scheduler {version}"
                if third is not None:
                    what = f"{third.name} {third.version} (kube-scheduler {third.kubernetes.short})"
                found[owner] = f"{owner} was checked for {what}{source}"
        return (*found.values(), *self.remarks)


def validate(
    files: Sequence[tuple[str, str | bytes]],
    options: CheckOptions,
    kinds: Kinds = KINDS,
    found: Collection[str] = (),
) -> ValidationReport:
    """Check the documents of files.

    Args:
        files: (name, content); a text, or bytes that are UTF-8 or UTF-16.
        options: what the check depends on besides the files.
        kinds: the kinds to check.
        found: the names of files that were found in a directory or by a pattern: what is not
            kube-scheduler's in them is not reported.
    """

    def own(item: Item) -> bool:
        return (_group(item), item.kind) in kinds or is_volcano(item.value)

    read = [(name, text) for name, text in files if name not in found or may_concern(text)]
    sources = read_sources(read, options.gates.version.minor, own)
    findings: list[Diagnosis] = []
    known: list[tuple[Item, Kind]] = []
    documents: list[tuple[Item, str]] = []
    others: list[tuple[Item, Problem]] = []
    passed_over, templates = len(files) - len(read), 0
    for source in sources:
        if source.file in found and source.place is None and not _is_ours(source, own):
            passed_over += source.is_rendered and not source.items
            templates += not source.is_rendered
            others += [(item, nothing_to_check(item)) for item in source.items]
            continue
        findings += [_of_text(source, each) for each in source.problems]
        unread = {id(item) for item, problem in _unread(source) if problem.severity == WARNING}
        for item, problem in _unread(source):
            findings.append(_diagnosis(item, problem))
        for index, item in enumerate(source.items):
            contents = source.contents.get(index)
            if contents is not None:
                if contents:
                    documents.append((item, item.kind or _label(contents)))
                    findings += [_diagnosis(item, problem) for problem in contents.problems]
                else:
                    others.append((item, nothing_to_check(item)))
                continue
            if id(item) in unread and item is not source.items[0] and is_read(source.items[0]):
                documents.append((item, item.kind))
                continue
            kind = _kind(item, kinds)
            if isinstance(kind, Kind):
                if source.is_rendered:
                    known.append((item, kind))
                documents.append((item, VOLCANO_LABEL if kind is _VOLCANO else item.kind))
            elif _of_others(item, kinds) or has_no_type(item):
                if source.place and source.place.text and source.place.text.required:
                    findings.append(_diagnosis(item, no_configuration(item, source.place.owner)))
                    documents.append((item, item.kind or "document"))
                else:
                    others.append((item, nothing_to_check(item)))
            elif source.file not in found or _is_for_kube_scheduler(item):
                findings.append(_diagnosis(item, kind))
                documents.append((item, item.kind))
            else:
                others.append((item, nothing_to_check(item)))
        if not source.items and source.problems:
            broken = Item(source.file, source.first or _EMPTY, {})
            documents.append((broken, ""))
    held = _containers(sources)
    documents = [(item, kind) for item, kind in documents if id(item) not in held]
    if not (documents or findings):  # nothing else was to be checked
        findings += [_diagnosis(item, problem) for item, problem in others]
    findings += [
        _diagnosis(item, problem) for item, problem in _check(known, options, sources, found)
    ]
    order = {name: index for index, (name, _) in enumerate(files)}
    findings.sort(key=lambda each: (order[each.file], each.position, each.path))
    return ValidationReport(
        tuple(dict.fromkeys(findings)),
        tuple((item.file, kind) for item, kind in documents),
        tuple((item.file, item.kind) for item, _ in others),
        tuple(item for item, _ in known),
        _remarks(passed_over, templates),
        scheduler="Volcano" if _is_all_volcanos([item for item, _ in known], options) else "",
    )


def _is_all_volcanos(items: Sequence[Item], options: CheckOptions) -> bool:
    """Whether Volcano reads all configurations, as far as the files and options show."""
    return bool(items) and all(
        is_for_volcano(item, options)
        or (is_volcano(item.value) and not other_scheduler(item, options))
        for item in items
    )


_EMPTY: Final = Document(SourceNode(Position(1, 1), None))


def _label(contents: Contents) -> str:
    """The name of a document without kind, by its form."""
    labels = [each.label for each in contents.commands] + [each.owner for each in contents.parts]
    return labels[0] if labels else "document"


def _remarks(passed_over: int, templates: int) -> tuple[str, ...]:
    """About files in directories that were not checked."""
    found = []
    if passed_over:
        files = "1 file has" if passed_over == 1 else f"{passed_over} files have"
        found.append(f"{files} nothing for kube-scheduler, so not checked")
    if templates:
        files = "1 file is an unrendered template"
        if templates > 1:
            files = f"{templates} files are unrendered templates"
        found.append(f"{files}: helm template CHART | {RENDERED}")
    return tuple(found)


def _group(item: Item) -> str:
    return str(item.value.get("apiVersion") or "").rpartition("/")[0]


def _is_ours(source: Source, own: Callable[[Item], bool]) -> bool:
    """Whether a file that was found, not named, has anything of kube-scheduler."""
    if any(source.contents.values()):
        return True
    if any(each.reason == SYNTAX for each in source.problems) and source.has_configuration:
        return True
    return any(own(item) or item.kind == KIND or _is_policy(item) for item in source.items)


def _containers(sources: Sequence[Source]) -> set[int]:
    """The documents that only hold others, which are counted themselves."""
    return {
        id(source.items[index])
        for source in sources
        for index, contents in source.contents.items()
        if not (contents.commands or contents.problems)
    }


def _of_text(source: Source, problem: TextProblem) -> Diagnosis:
    return Diagnosis(
        source.file,
        problem.position,
        "",
        "",
        problem.reason,
        problem.message,
        problem.fix,
        problem.severity,
    )


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


def _is_for_kube_scheduler(item: Item) -> bool:
    """Whether it is a configuration, or not an object that the API server would accept."""
    api_version = str(item.value.get("apiVersion") or "")
    if not api_version or item.kind in (KIND, "") or _is_policy(item):
        return True
    return api_version.rpartition("/")[0] in _OLD_VERSIONS


def _is_policy(item: Item) -> bool:
    """Whether it is a Policy of kube-scheduler; other products have a Policy in their own group."""
    return item.kind == "Policy" and item.value.get("apiVersion") in ("v1", "", None)


def _kind(item: Item, kinds: Kinds) -> Kind | Problem:
    """How to check a document, or why it cannot be checked."""
    if is_volcano(item.value):
        return _VOLCANO
    api_version = str(item.value.get("apiVersion") or "")
    for key, text in (("apiVersion", api_version), ("kind", item.kind)):
        if culprit := first_culprit(text):
            what, _, fix = culprit.partition("; ")
            return Problem(UNKNOWN_KIND, (key,), f"{key} contains {what}", fix)
    group, _, version = api_version.rpartition("/")
    kind = kinds.get((group, item.kind))
    if kind is not None and kind.version == version:
        return kind
    old = item.kind == KIND and group in _OLD_VERSIONS
    if (old and version in _OLD_VERSIONS[group]) or _is_policy(item):
        return Problem(
            OLD_API_VERSION,
            ("apiVersion",),
            f"kube-scheduler no longer supports {item.kind} of {api_version}, only {API_VERSION}",
            _convert(item),
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
        if set(item.value) & CONFIGURATION_FIELDS:
            fix = f"write apiVersion: {API_VERSION} and kind: {KIND}"
            return _missing(item, "kind", fix)
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


def _convert(item: Item) -> str:
    """How to convert an old configuration; `convert` reads files and ConfigMaps."""
    text = item.place.text if item.place else None
    if item.place is None or (text is not None and text.kind == CONFIG_MAP):
        return f"kube-scheduler-operator convert -f {item.file}"
    return "copy it to a file of its own, and run kube-scheduler-operator convert -f FILE"


def _missing(item: Item, key: str, fix: str) -> Problem:
    """That a field is missing, or which one only looks like it."""
    for name in map(str, item.value):
        if key in name and (culprit := first_culprit(name)):
            what, _, correct = culprit.partition("; ")
            message = f"{key} is missing: the name of this field contains {what}"
            return Problem(UNKNOWN_KIND, (name,), message, correct)
    for name in map(str, item.value):
        if correct := _meant(name, key, list(map(str, item.value))):
            message = f'{key} is missing: this field is "{name}"'
            return Problem(UNKNOWN_KIND, (name,), message, correct)
    return Problem(UNKNOWN_KIND, (), f"{key} is missing", fix)


def _meant(name: str, key: str, names: Sequence[str]) -> str:
    """How to make the field `key` of one that is written otherwise; empty: it is another field."""
    word = name.lstrip("+-> ")
    mark = name.removesuffix(word).strip()
    if mark and word == key:
        if mark.startswith("---"):
            return "write --- in a line of its own"
        each = all(other.startswith((mark, " ")) for other in names)
        return f"remove the {mark} at the beginning of {'every' if each else 'the'} line"
    if word.lower() == key.lower() or (
        name not in CONFIGURATION_FIELDS and did_you_mean(name, [key])
    ):
        return f"rename it to {key}"
    return ""


def _never_read(item: Item) -> Problem:
    """The warning of a document behind a configuration."""
    message = f"{FIRST_ONLY} and ignores this one"
    fix = "move it to its own file"
    if item.kind == KIND:
        fix += ", or move its profiles to the first document"
    return Problem(NEVER_READ, (), message, fix, WARNING)


def _unread(source: Source) -> Iterator[tuple[Item, Problem]]:
    """The documents that kube-scheduler does not read or find, because of others in their file.

    kops reads a configuration that follows its Cluster, and kubeadm ignores one in its file.
    """
    items, first = source.items, source.first
    if source.place is not None and source.place.part is not None:
        return
    if first is None or not items or _has_kops_cluster(source):
        return
    text = source.place.text if source.place else None
    if text is not None and text.for_kubeadm:
        yield from ((item, _ignored_by_kubeadm()) for item in items if item.kind == KIND)
        return
    if any(_is_ignored_by_kubeadm(source, item) for item in items):
        for item in items:
            if _is_ignored_by_kubeadm(source, item):
                yield item, _ignored_by_kubeadm()
        return
    if is_read(items[0]):
        for item in items[1:]:
            if _is_for_kube_scheduler(item):
                yield item, _never_read(item)
        return
    fix = "move the configuration to a file of its own"
    if first.index:
        what, fix = "empty", "remove everything above the --- that precedes this configuration"
    elif not isinstance(first.root.data, Mapping):
        what = f"not an object (line {_line(source, first)})"
    else:
        kind = first.root.data.get("kind")
        what = f"a {kind}" if kind else "an object without kind"
        what += f" (line {_line(source, first)})"
    for item in items:
        if item.kind != KIND:
            continue
        if item.document.is_listed:
            message = "kube-scheduler reads no List and exits with an error"
        else:
            message = (
                f"{FIRST_ONLY}, which is {what}, and exits with an error; this one is document "
                f"{item.document.index + 1}"
            )
        yield item, Problem(NEVER_READ, (), message, fix)


def _line(source: Source, document: Document) -> int:
    """The line of a document in the file that users see."""
    position = document.root.position
    return (source.place.in_file(position) if source.place else position).line


def _has_kops_cluster(source: Source) -> bool:
    return any(_group(item) == "kops.k8s.io" for item in source.items)


def _is_ignored_by_kubeadm(source: Source, item: Item) -> bool:
    """Whether it is a configuration in a file of kubeadm."""
    return item.kind == KIND and any(_group(each) == KUBEADM_GROUP for each in source.items)


def _ignored_by_kubeadm() -> Problem:
    return Problem(
        NEVER_READ,
        (),
        "kubeadm ignores a KubeSchedulerConfiguration in its file, and kube-scheduler runs "
        "without it",
        "write it to a file of each control-plane node, and let scheduler.extraArgs name it with "
        "config and extraVolumes mount it; `kubectl scheduler compose --for kubeadm` writes both",
        WARNING,
    )


def _check(
    known: Sequence[tuple[Item, Kind]],
    options: CheckOptions,
    sources: Sequence[Source],
    found: Collection[str],
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
    yield from _between(processes, found, options)
    started = [pair for source in sources for pair in source.commands]
    every = sources_items(sources)
    readers = Readers([command for _, command in started], every)
    for item, command in started:
        for problem in check_command(item, command, readers, options):
            yield item, problem
    configured = [(item, process.config) for item, process in processes if item.kind == KIND]
    yield from check_elections(configured, every)
    yield from check_scheduler_names([config for _, config in configured], every)


_MOST_COMPARED: Final = 8
"""Schedulers of one directory that may belong to one cluster; more are a collection of examples."""


def _between(
    processes: Sequence[tuple[Item, ConfiguredScheduler]],
    found: Collection[str],
    options: CheckOptions,
) -> Iterator[tuple[Item, Problem]]:
    """Warnings about schedulers that would run in one cluster.

    Those are the schedulers of the files that were named, and those of each directory.
    """
    groups: dict[str, list[tuple[Item, ConfiguredScheduler]]] = {}
    for item, process in processes:
        directory = item.file.rpartition("/")[0] if item.file in found else _NAMED
        groups.setdefault(directory, []).append((item, process))
    for directory, group in groups.items():
        if directory != _NAMED and len(group) > _MOST_COMPARED:
            continue
        own = [pair for pair in group if not is_run_by_provider(pair[0], options)]
        # Several of a provider belong to several clusters, because each has one.
        compared = group if len(group) - len(own) < 2 else own
        by_process = {id(process): item for item, process in compared}
        for process, problem in warnings_between([process for _, process in compared]):
            yield by_process[id(process)], problem


_NAMED: Final = "\0"


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
        path=item.shown_path(problem.path),
        reason=problem.reason,
        message=message,
        fix=fix or _REMEDIES.get(problem.reason, _REMEDY),
        severity=problem.severity,
        subject=_subject(item, problem.path),
    )


def _subject(item: Item, path: Path) -> str:
    """The object and the field, with the names of list entries in place of their indices."""
    named: list[str | int] = []
    for index, part in enumerate(path):
        entry = item.document.data(path[: index + 1]) if isinstance(part, int) else None
        names_of = (mapping(entry).get(key) for key in _NAMING)
        named.append(next((each for each in names_of if isinstance(each, str) and each), part))
    owner = f"{item.place.owner} " if item.place else ""
    return f"{owner}{item.kind}/{item.name} {format_path(tuple(named))}".strip()


_NAMING: Final = ("schedulerName", "name", "urlPrefix", "topologyKey")
"""The fields that identify an entry of a list."""
