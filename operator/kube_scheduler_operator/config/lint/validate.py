"""Validates files: errors and warnings with their positions, and whether the scheduler starts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...base.decoding import INVALID_TYPE, UNKNOWN_FIELD
from ...base.findings import WARNING, Path, Problem, format_path
from ...base.objects import mapping
from ..language.plugins.in_tree_plugins import OLDEST
from ..language.schema import KIND
from ..language.versions import Version
from .between_documents import (
    check_elections,
    check_scheduler_names,
    check_schedulers,
    unread_documents,
)
from .checks import (
    OTHER_SCHEDULER,
    Checked,
    Checker,
    CheckOptions,
    Item,
    Kind,
    is_of_volcano,
    known_scheduler,
    kube_scheduler_of,
)
from .command_lines import check_command
from .documents.find_documents import (
    SYNTAX,
    Source,
    is_read,
    read_sources,
    readers_of,
)
from .documents.other_files import (
    RENDERED,
    has_no_type,
    may_concern,
    no_configuration,
    nothing_to_check,
    of_volcano,
)
from .forms.form import KUBE_SCHEDULER, CommandLine, Contents
from .forms.volcano import LABEL as VOLCANO_LABEL
from .forms.volcano import NOT_CHECKED as OF_VOLCANO
from .forms.volcano import is_volcano
from .known_kinds import (
    KINDS,
    check_definitions,
    is_for_kube_scheduler,
    is_of_another_api,
    is_policy,
    kind_of,
)
from .operator_objects import check_load_policy_names
from .reports.report import FileFinding, ValidationReport
from .rights import check_rights

_REMEDIES: Final[Mapping[str, str]] = {UNKNOWN_FIELD: "remove it"}
_REMEDY: Final = "change the value as the message describes"


def validate(
    files: Sequence[tuple[str, str | bytes]],
    options: CheckOptions,
    found: Collection[str] = (),
) -> ValidationReport:
    """Check the documents of files.

    Args:
        files: (name, content); a text, or bytes that are UTF-8 or UTF-16.
        options: what the check depends on besides the files.
        found: the names of files that were found in a directory or by a pattern: what is not
            kube-scheduler's in them is not reported.
    """
    read = [(name, text) for name, text in files if name not in found or may_concern(text)]
    sorted_ = _Sorted(found, options)
    sources = read_sources(read, options.gates.version.minor, sorted_.is_checked)
    for source in sources:
        sorted_.take(source)
    findings = list(sorted_.findings)
    of_volcano = sorted_.of_volcano
    if not (sorted_.documents or findings):  # nothing else was to be checked
        findings += [_diagnosis(item, problem) for item, problem in sorted_.others]
        of_volcano = of_volcano if found else []
    problems = _check(sorted_.known, options, sources, found)
    findings += [_diagnosis(item, problem) for item, problem in problems]
    order = {name: index for index, (name, _) in enumerate(files)}
    findings.sort(key=lambda finding: (order[finding.file], finding.position, finding.path))
    items = tuple(item for item, _ in sorted_.known)
    passed_over = len(files) - len(read) + sorted_.passed_over
    commands = [command for source in sources for _, command in source.commands]
    return ValidationReport(
        tuple(dict.fromkeys(findings)),
        tuple(sorted_.documents),
        tuple((item.file, item.kind) for item, _ in sorted_.others),
        items,
        tuple(commands),
        tuple(_remarks(passed_over, sorted_.templates, of_volcano)),
        readers=_readers(items, commands),
        is_on_record=_is_on_record(items, commands, options.gates.version),
    )


@dataclass(slots=True)
class _Sorted:
    """The documents of files, by what becomes of them."""

    found: Collection[str]  # the names of files that were found, not named
    options: CheckOptions
    # about texts, forms, and documents that cannot be checked
    findings: list[FileFinding] = field(default_factory=list)
    known: list[tuple[Item, Kind]] = field(default_factory=list)  # the documents to check
    documents: list[tuple[str, str]] = field(default_factory=list)  # (file, kind) of those to count
    # documents without anything to check, and why
    others: list[tuple[Item, Problem]] = field(default_factory=list)
    of_volcano: list[str] = field(default_factory=list)  # Volcano's configurations among them
    passed_over: int = 0  # the number of found files without anything of kube-scheduler
    templates: int = 0  # the number of found files that are unrendered templates

    def is_checked(self, item: Item) -> bool:
        """Report whether a document is checked, or named, as it is."""
        return (item.group, item.kind) in KINDS or is_volcano(item.value)

    def take(self, source: Source) -> None:
        """Sort the documents of a file, or of a text in one."""
        if source.file in self.found and source.place is None and not self._is_ours(source):
            self.passed_over += source.is_rendered and not source.items
            self.templates += not source.is_rendered
            self.others += [(item, nothing_to_check(item)) for item in source.items]
            return
        self.findings += source.problems
        unread = list(unread_documents(source))
        self.findings += [_diagnosis(item, problem) for item, problem in unread]
        ignored = {id(item) for item, problem in unread if problem.severity == WARNING}
        for index, item in enumerate(source.items):
            contents = source.contents.get(index)
            if contents is not None:
                self._take_form(item, contents)
            elif id(item) in ignored and item is not source.items[0] and is_read(source.items[0]):
                self.documents.append((item.file, item.kind))
            else:
                self._take_object(item, source)
        if not source.items and source.problems:
            self.documents.append((source.file, ""))

    def _take_form(self, item: Item, contents: Contents) -> None:
        """Take a document that contains configurations and command lines."""
        if not contents:
            self.others.append((item, nothing_to_check(item)))
            return
        if _only_starts_volcano(contents):
            self.others.append((item, of_volcano()))
            return
        has_its_configuration = any(part.command is not None for part in contents.parts)
        if contents.problems or (_starts_kube_scheduler(contents) and not has_its_configuration):
            label = next((command.label for command in contents.commands), "document")
            self.documents.append((item.file, item.kind or label))
        # Otherwise it only has others, which are counted themselves.
        self.findings += [_diagnosis(item, problem) for problem in contents.problems]

    def _take_object(self, item: Item, source: Source) -> None:
        """Take a document of a kind that is checked, or of any other."""
        if is_of_volcano(item):
            self._take_volcanos(item)
            return
        kind = kind_of(item, self.options)
        if isinstance(kind, Kind):
            if source.is_rendered:
                self.known.append((item, kind))
            self.documents.append((item.file, item.kind))
        elif is_of_another_api(item) or has_no_type(item):
            if source.place and source.place.text and source.place.text.required:
                problem = no_configuration(item, source.place.owner)
                self.findings.append(_diagnosis(item, problem))
                self.documents.append((item.file, item.kind or "document"))
            else:
                self.others.append((item, nothing_to_check(item)))
        elif source.file not in self.found or is_for_kube_scheduler(item):
            self.findings.append(_diagnosis(item, kind))
            self.documents.append((item.file, item.kind))
        else:
            self.others.append((item, nothing_to_check(item)))

    def _take_volcanos(self, item: Item) -> None:
        """Take a configuration of Volcano's scheduler, which a kube-scheduler rejects."""
        reader = kube_scheduler_of(item, self.options)
        if not reader:
            self.others.append((item, of_volcano()))
            self.of_volcano.append(item.label)
            return
        message = f"{reader} does not read this configuration, which is in Volcano's format"
        fix = "write a KubeSchedulerConfiguration, or let Volcano's vc-scheduler read the file"
        self.findings.append(_diagnosis(item, Problem(OTHER_SCHEDULER, (), message, fix)))
        self.documents.append((item.file, VOLCANO_LABEL))

    def _is_ours(self, source: Source) -> bool:
        """Report whether a file that was found, not named, contains anything for kube-scheduler."""
        if any(source.contents.values()):
            return True
        is_broken = any(problem.reason == SYNTAX for problem in source.problems)
        if is_broken and source.has_configuration:
            return True
        return any(
            self.is_checked(item) or item.kind == KIND or is_policy(item) for item in source.items
        )


def _readers(items: Sequence[Item], commands: Sequence[CommandLine]) -> tuple[str, ...]:
    """Return the programs of all documents, each once; empty if one of them is unknown."""
    programs = [_program(item.reader, item.version) for item in items]
    programs += [_program(command, command.version) for command in commands]
    return tuple(dict.fromkeys(programs)) if all(programs) else ()


def _is_on_record(items: Sequence[Item], commands: Sequence[CommandLine], default: Version) -> bool:
    """Report whether no reader is older than the versions of which the rules are known."""
    shown = [item.version for item in items] + [command.version for command in commands]
    return all((version or default) >= OLDEST for version in shown or [default])


def _program(reader: CommandLine | None, version: Version | None) -> str:
    third = known_scheduler(reader)
    if third is not None:
        return f"{third.name} {third.version}"
    return f"kube-scheduler {version.short}" if version else ""


def _remarks(passed_over: int, templates: int, of_volcano: Sequence[str]) -> Iterator[str]:
    """Write remarks about files in directories, and Volcano's files, that were not checked."""
    if passed_over:
        files = "1 file has" if passed_over == 1 else f"{passed_over} files have"
        yield f"{files} nothing for kube-scheduler, so not checked"
    if templates:
        one, many = "1 file is an unrendered template", "files are unrendered templates"
        files = one if templates == 1 else f"{templates} {many}"
        yield f"{files}: helm template CHART | {RENDERED}"
    yield from (f"{label} {OF_VOLCANO}" for label in dict.fromkeys(of_volcano))


def _starts_kube_scheduler(contents: Contents) -> bool:
    return any(command.program == KUBE_SCHEDULER for command in contents.commands)


def _only_starts_volcano(contents: Contents) -> bool:
    """Report whether a document has nothing but the command line of Volcano's scheduler."""
    return bool(contents.commands) and not (
        _starts_kube_scheduler(contents) or contents.texts or contents.parts or contents.problems
    )


def _check(
    known: Sequence[tuple[Item, Kind]],
    options: CheckOptions,
    sources: Sequence[Source],
    found: Collection[str],
) -> Iterator[tuple[Item, Problem]]:
    reported: set[tuple[int, str]] = set()
    malformed: set[int] = set()
    for item, problem in check_definitions(known):
        reported.add((id(item), format_path(problem.path)))
        if problem.reason == INVALID_TYPE:
            malformed.add(id(item))  # checks rely on the types that an API server ensures
        yield item, problem
    checkers: dict[Checker, list[Item]] = {}
    for item, kind in known:
        if id(item) not in malformed:
            checkers.setdefault(kind.checker, []).append(item)
    yield from check_load_policy_names([item for item, _ in known])
    processes = []
    for checker, items in checkers.items():
        checked: Checked = checker(items, options)
        processes += checked.processes
        for item, problem in checked.problems:
            if (id(item), format_path(problem.path)) not in reported:
                yield item, problem
    yield from check_schedulers(processes, found, options)
    readers = readers_of(sources)
    for item, command in (started for source in sources for started in source.commands):
        yield from ((item, problem) for problem in check_command(item, command, readers, options))
    configured = [(item, process.config) for item, process in processes if item.kind == KIND]
    yield from check_elections(configured, readers.items)
    yield from check_rights(configured, readers.items, options)
    yield from check_scheduler_names(configured, readers.items)


def _diagnosis(item: Item, problem: Problem) -> FileFinding:
    message, fix = problem.parts
    return FileFinding(
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
    """Name the object and the field, with names of list entries instead of indices."""
    named: list[str | int] = []
    for index, part in enumerate(path):
        entry = item.document.data(path[: index + 1]) if isinstance(part, int) else None
        names_of = (mapping(entry).get(key) for key in _NAMING)
        named.append(next((name for name in names_of if isinstance(name, str) and name), part))
    owner = f"{item.place.owner} " if item.place else ""
    return f"{owner}{item.kind}/{item.name} {format_path(tuple(named))}".strip()


_NAMING: Final = ("schedulerName", "name", "urlPrefix", "topologyKey")
"""The fields that identify an entry of a list."""
