"""Files in, findings out: what is wrong in them, where, and whether the scheduler would start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..base.findings import ERROR, WARNING, Problem, Severity, format_path, listing
from ..schedulerconfig.decode import UNKNOWN_FIELD
from ..schedulerconfig.schema import API_VERSION, KIND
from ..schedulerconfig.source import Position, read
from ..schedulerconfig.warnings import hazards_between
from .kinds import KINDS, Checked, Checker, Item, Kind, Setting, check_definitions

SYNTAX: Final = "Syntax"
NOT_STRICT: Final = "NotStrict"
OLD_API_VERSION: Final = "OldAPIVersion"
UNKNOWN_KIND: Final = "UnknownKind"
NO_DOCUMENT: Final = "NoDocument"
NEVER_READ: Final = "NeverRead"

Kinds = Mapping[tuple[str, str], Kind]

_GROUP: Final = API_VERSION.partition("/")[0]
_OLD_GROUPS: Final = (_GROUP, "componentconfig")

_REMEDIES: Final[Mapping[str, str]] = {UNKNOWN_FIELD: "remove it"}
_REMEDY: Final = "write it as the sentence says"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding in a file.

    Attributes:
        file: how the file is called.
        position: line and column.
        kind: of the document; empty if there is none.
        path: the field; empty for the document as a whole.
        reason: CamelCase, for programs.
        message: a sentence: what is wrong, or what will happen.
        fix: what to do.
        severity: whether the scheduler would start.
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
class Verdict:
    """All findings, by file and position.

    Attributes:
        findings: errors and warnings.
        documents: (file, kind) of everything that was checked, in order.
        others: (file, kind) of what stands beside it and is of no concern to a scheduler.
    """

    findings: tuple[Diagnosis, ...]
    documents: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...] = ()

    def count(self, severity: Severity) -> int:
        """How many findings are of this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def starts(self) -> bool:
        """Whether the scheduler would start."""
        return not self.count(ERROR)


def validate(files: Sequence[tuple[str, str]], setting: Setting, kinds: Kinds = KINDS) -> Verdict:
    """Check the documents of files.

    Args:
        files: (name, text).
        setting: what decides besides them.
        kinds: what can be checked.
    """
    findings: list[Diagnosis] = []
    known: list[tuple[Item, Kind]] = []
    others: list[tuple[Item, Problem]] = []
    for file, text in files:
        items, found = _read(file, text)
        findings += found
        for item in items:
            kind = _kind(item, kinds)
            if isinstance(kind, Problem):
                if _of_others(item, kinds):
                    others.append((item, kind))
                else:
                    findings.append(_diagnosis(item, kind))
            else:
                known.append((item, kind))
        findings += [_diagnosis(item, problem) for item, problem in _never_read(items)]
    if not (known or findings):  # then they are what somebody wanted to have checked
        findings += [_diagnosis(item, problem) for item, problem in others]
    findings += [_diagnosis(item, problem) for item, problem in _check(known, setting)]
    order = {name: index for index, (name, _) in enumerate(files)}
    findings.sort(key=lambda each: (order[each.file], each.position, each.path))
    return Verdict(
        tuple(findings),
        tuple((item.file, item.kind) for item, _ in known),
        tuple((item.file, item.kind) for item, _ in others),
    )


def _of_others(item: Item, kinds: Kinds) -> bool:
    """Whether it is a Deployment, a Role or the like, and no misspelt kind of what is checked."""
    group = str(item.value.get("apiVersion") or "").rpartition("/")[0]
    ours = {group for group, _ in kinds} | set(_OLD_GROUPS)
    named = {name for _, name in kinds} | {"Policy", ""}
    return group not in ours and item.kind not in named and "apiVersion" in item.value


def _read(file: str, text: str) -> tuple[list[Item], list[Diagnosis]]:
    """(the documents that are objects, what is wrong with the text)."""

    def said(position: Position, reason: str, message: str, fix: str) -> Diagnosis:
        return Diagnosis(file, position, "", "", reason, message, fix, ERROR)

    documents, error = read(text)
    items: list[Item] = []
    found: list[Diagnosis] = []
    for document in documents:
        where = document.root.position
        value = document.value
        if isinstance(value, Mapping):
            items.append(Item(file, document, value))
        else:
            message = "a document must be an object with apiVersion and kind"
            found.append(said(where, NO_DOCUMENT, message, "write one, or remove the document"))
        for flaw in document.flaws:
            wrong, _, fix = flaw.message.rpartition("; ")
            found.append(said(flaw.position, NOT_STRICT, wrong or fix, fix))
    if error is not None:
        found.append(said(error.position, SYNTAX, error.message, "correct the syntax"))
    elif not documents:
        message = "there is no document in this file"
        found.append(said(Position(1, 1), NO_DOCUMENT, message, f"write a {KIND}"))
    return items, found


def _kind(item: Item, kinds: Kinds) -> Kind | Problem:
    """How to check a document, or why that is not possible."""
    api_version = str(item.value.get("apiVersion") or "")
    group, _, version = api_version.rpartition("/")
    kind = kinds.get((group, item.kind))
    if kind is not None and kind.version == version:
        return kind
    old = item.kind == KIND and group in _OLD_GROUPS
    if (old and kind is None) or (old and version.startswith("v1")) or item.kind == "Policy":
        return Problem(
            OLD_API_VERSION,
            ("apiVersion",),
            f"kube-scheduler no longer reads {item.kind} of {api_version}, only {API_VERSION}",
            f"kube-scheduler-operator convert -f {item.file}",
        )
    if kind is not None:
        wanted = f"{group}/{kind.version}"
        message = f"{item.kind} has apiVersion {wanted} and not {api_version}"
        return Problem(UNKNOWN_KIND, ("apiVersion",), message, f"write {wanted}")
    known = listing(sorted(name for _, name in kinds))
    for other, name in kinds:
        if name == item.kind:
            wanted = f"{other}/{kinds[other, name].version}"
            message = f'{item.kind} does not exist in "{api_version}"'
            return Problem(UNKNOWN_KIND, ("apiVersion",), message, f"write {wanted}")
    if not item.kind:
        return Problem(UNKNOWN_KIND, (), "kind is missing", f"write {known}")
    message = f"{item.kind} of {api_version or 'no apiVersion'} cannot be checked here"
    return Problem(UNKNOWN_KIND, ("kind",), message, f"give {known}")


def _never_read(items: Sequence[Item]) -> Iterator[tuple[Item, Problem]]:
    for item in items[1:]:
        if items[0].kind == item.kind == KIND:
            yield (
                item,
                Problem(
                    NEVER_READ,
                    (),
                    "kube-scheduler reads only the first document of its file and not this one",
                    "put it into a file of its own, or its profiles into the first document",
                    WARNING,
                ),
            )


def _check(known: Sequence[tuple[Item, Kind]], setting: Setting) -> Iterator[tuple[Item, Problem]]:
    said: set[tuple[int, str]] = set()
    for item, problem in check_definitions(known):
        said.add((id(item), format_path(problem.path)))
        yield item, problem
    checkers: dict[Checker, list[Item]] = {}
    for item, kind in known:
        checkers.setdefault(kind.checker, []).append(item)
    processes = []
    for checker, items in checkers.items():
        checked: Checked = checker(items, setting)
        processes += checked.processes
        for item, problem in checked.problems:
            # The API server would not even let it come to this.
            if (id(item), format_path(problem.path)) not in said:
                yield item, problem
    by_process = {id(process): item for item, process in processes}
    for process, problem in hazards_between([process for _, process in processes]):
        yield by_process[id(process)], problem


def _diagnosis(item: Item, problem: Problem) -> Diagnosis:
    message, fix = problem.parts
    return Diagnosis(
        file=item.file,
        position=item.document.position(problem.path),
        kind=item.kind,
        path=format_path(problem.path),
        reason=problem.reason,
        message=message,
        fix=fix or _REMEDIES.get(problem.reason, _REMEDY),
        severity=problem.severity,
    )
