"""The documents of files, and those in them: ConfigMaps, patches, values and other forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import dirname, join, normpath
from typing import Any, Final

from ....base.decoding import INVALID_TYPE
from ....base.findings import ERROR, WARNING, Path, Severity, format_path
from ....base.objects import mapping
from ....base.source.culprit import TEMPLATE
from ....base.source.encoding import LINE_BREAK, characters
from ....base.source.reader import Document, ParseError, Position, is_json, read, read_yaml
from ....scheduling.load.policy_files import CRANE_KIND
from ...language.schema import KIND, args_struct
from ..checks import Item
from ..configurations import unprintable_arguments
from ..forms.embedded import CONFIGURATION
from ..forms.form import CommandLine, Contents, Embedding, Part
from ..forms.kustomize import ChangedImages
from ..forms.plain_commands import may_be_plain, read_plain
from ..forms.table import read_form
from ..forms.volcano import is_volcano, looks_like_volcano
from ..forms.workload import with_image
from ..reports.report import FileFinding
from .linking import Readers, names_text
from .other_files import NOT_RENDERED, foreign_file, lacks_its_kind, template_of

SYNTAX: Final = "Syntax"
NOT_STRICT: Final = "NotStrict"
NO_DOCUMENT: Final = "NoDocument"
FIRST_ONLY: Final = "kube-scheduler reads only the first document of its file"

_POLICY: Final = re.compile(r"""\bkind["']?\s*:\s*["']?Policy\b""")
_WITHOUT_KIND: Final = re.compile(r"\b(profiles|urlPrefix)\b")
"""What a configuration has that `lacks_its_kind`."""
_LINE: Final = re.compile(r"\bline (\d+)\b")
_DEEPEST: Final = 4
"""How deep texts in texts are searched: a ConfigMap in Helm values has 3 levels."""


@dataclass(slots=True)
class Source:
    """A file, or a text or a part of one."""

    file: str  # the display name of the file
    content: str | bytes  # the text; of a part that of which it is a part
    place: Embedding | None = None  # where in the file it is; None: it is the file
    items: list[Item] = field(default_factory=list)  # the documents that are objects
    problems: list[FileFinding] = field(default_factory=list)  # of the text, not of a document
    first: Document | None = None  # the first nonempty document
    # index of an item -> what it contains for kube-scheduler, for items of a known form
    contents: dict[int, Contents] = field(default_factory=dict)

    @property
    def is_rendered(self) -> bool:
        """Whether it is not a template, whose values cannot be checked."""
        return not any(problem.reason == NOT_RENDERED for problem in self.problems)

    @property
    def text(self) -> str:
        content = self.content
        return content if isinstance(content, str) else characters(content).text

    @property
    def has_configuration(self) -> bool:
        """Whether the text, which may be broken, names kube-scheduler's configuration."""
        content = self.content
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        return CONFIGURATION.search(text) is not None

    @property
    def commands(self) -> Iterator[tuple[Item, CommandLine]]:
        for index, contents in self.contents.items():
            for command in contents.commands:
                yield self.items[index], command


def read_sources(
    files: Sequence[tuple[str, str | bytes]], minor: int, own: Callable[[Item], bool]
) -> list[Source]:
    """Read files, and everything in them that is kube-scheduler's.

    Args:
        files: (name, content).
        minor: of the kube-scheduler that reads them, unless they show another one.
        own: whether an item has a kind that is checked as it is.
    """
    sources = [_read(file, content, minor, own) for file, content in files]
    _choose_candidates(sources)
    _change_images(sources)
    contents = [dict(source.contents) for source in sources]
    readers, nested = readers_of(sources), sources
    for _ in range(_DEEPEST):
        nested = []
        for source, whole in zip(sources, contents, strict=True):
            source.contents = dict(whole)
            nested += (source, *_inside(source, minor, own, readers, 0))
        known, readers = len(readers.commands), readers_of(nested)
        if len(readers.commands) == known:
            break  # otherwise schedulers that texts start may read other texts
    _find_readers(nested, readers)
    return nested


def _choose_candidates(sources: Sequence[Source]) -> None:
    """Count programs of unknown images as kube-schedulers whose --config is a configuration."""
    texts = [
        text
        for source in sources
        for contents in source.contents.values()
        for text in contents.texts
        if CONFIGURATION.search(text.content)
    ]
    for source in sources:
        for index, contents in source.contents.items():
            reading = tuple(
                command
                for command in contents.candidates
                if any(names_text(command, text) for text in texts)
            )
            if reading:
                source.contents[index] = replace(contents, commands=(*contents.commands, *reading))


def _change_images(sources: Sequence[Source]) -> None:
    """Give the schedulers of workloads the images that Kustomizations of the run give them."""
    changed = ChangedImages.of([
        (source.file, contents.kustomization)
        for source in sources
        for contents in source.contents.values()
        if contents.kustomization is not None
    ])  # fmt: skip
    for source in sources:
        for index, contents in source.contents.items():
            commands = tuple(
                with_image(command, changed.applied(source.file, command.image))
                for command in contents.commands
            )
            source.contents[index] = replace(contents, commands=commands)


def _find_readers(sources: Sequence[Source], readers: Readers) -> None:
    """Set the readers of configurations that are files themselves."""
    if not readers.commands:
        return
    for source in sources:
        for index, item in enumerate(source.items):
            if item.kind == KIND and item.place is None:
                source.items[index] = replace(item, reader=readers.of_file(item.file))


def readers_of(sources: Sequence[Source]) -> Readers:
    commands = [command for source in sources for _, command in source.commands]
    generated = [
        (normpath(join(dirname(source.file), key.made_of)), key)
        for source in sources
        for contents in source.contents.values()
        for key in contents.generated
    ]
    return Readers(commands, [item for source in sources for item in source.items], generated)


def _inside(
    source: Source, minor: int, own: Callable[[Item], bool], readers: Readers, depth: int
) -> Iterator[Source]:
    """Yield the texts and parts of a source's documents, and those in them."""
    if depth == _DEEPEST or not source.contents:
        return
    lines: list[str] = []
    for index, contents in list(source.contents.items()):
        item, kept = source.items[index], []
        for part in contents.parts:
            inner = _part(source, item, part, contents, own)
            nested = list(_inside(inner, minor, own, readers, depth + 1))
            if inner.problems or _is_ours(inner):
                yield inner
                yield from nested
        for text in contents.texts:
            reader = readers.of_text(text)
            if reader is not None and names_text(reader, text):
                text = replace(text, required=True)
            elif not text.required and not _may_be_ours(text.content):
                continue
            lines = lines or LINE_BREAK.split(source.text)
            at = item.document.position(text.at)
            place = Embedding(text, at, tuple(lines[at.line :]), source.place)
            inner = _read(source.file, text.content, minor, own, place, reader)
            nested = list(_inside(inner, minor, own, readers, depth + 1))
            if text.required or _is_ours(inner):
                kept.append(text)
                yield inner
                yield from nested
        source.contents[index] = replace(contents, texts=tuple(kept))


def _part(
    source: Source, item: Item, part: Part, contents: Contents, own: Callable[[Item], bool]
) -> Source:
    place = Embedding(part, item.document.root.position, outer=source.place)
    document = Document(part.root)
    reader = contents.commands[part.command] if part.command is not None else None
    value = document.value
    inner = Source(source.file, source.content, place, first=document)
    if isinstance(value, Mapping):
        inner.items.append(Item(source.file, document, value, place, reader))
        form = None if own(inner.items[0]) else read_form(document)
        if form is not None:
            inner.contents[0] = form
        else:
            inner.problems += _of_a_template(inner.items[0])
    else:
        message = "the configuration must be an object"
        fix = "write its fields below, indented"
        at = place.in_file(part.root.position)
        problem = FileFinding(source.file, at, "", "", INVALID_TYPE, message, fix, ERROR)
        inner.problems.append(problem)
    return inner


def _may_be_ours(text: str) -> bool:
    if KIND in text or "scheduler" in text.lower() or _POLICY.search(text):
        return True
    return bool(_WITHOUT_KIND.search(text)) or looks_like_volcano(text)


def _is_ours(source: Source) -> bool:
    """Report whether a text is kube-scheduler's, crane's or Volcano's, even if it is broken."""
    if any(source.contents.values()):
        return True
    kinds = [item.value.get("kind") for item in source.items]
    if any(kind in (KIND, "Policy", CRANE_KIND) for kind in kinds):
        return True
    if any(is_volcano(item.value) or lacks_its_kind(item.value) for item in source.items):
        return True
    if not any(problem.reason in (SYNTAX, NOT_RENDERED) for problem in source.problems):
        return False
    text = source.text
    return source.has_configuration or bool(_POLICY.search(text)) or looks_like_volcano(text)


def _is_not_decoded(document: Document, path: Path, minor: int) -> bool:
    """Report whether a path is in arguments that kube-scheduler passes on as they are, in JSON."""
    if path[:1] + path[2:3] + path[4:5] != ("profiles", "pluginConfig", "args"):
        return False
    name = document.data((*path[:4], "name"))
    return isinstance(name, str | None) and args_struct(name or "", minor) is None


def is_read(item: Item) -> bool:
    """Report whether kube-scheduler reads this document of its file."""
    document = item.document
    return document.index == 0 and not document.is_listed and item.kind == KIND


def _read(
    file: str,
    content: str | bytes,
    minor: int,
    own: Callable[[Item], bool],
    place: Embedding | None = None,
    reader: CommandLine | None = None,
) -> Source:
    shown = (place.version if place else None) or (reader.version if reader else None)
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    source = Source(file, content, place)
    if KIND.encode() not in data and may_be_plain(data) and _read_plain(source, data):
        return source
    documents, error = read(content)
    if error is not None and is_json(data) and looks_like_volcano(characters(data).text):
        documents, error = read_yaml(data)
    objects = [obj for document in documents for obj in document.objects()]
    source.first = documents[0] if documents else None
    reading = _Reading(source, data, shown.minor if shown else minor)
    for document in objects:
        reading.add(document, own, reader)
    for document in documents:
        reading.report_flaws(document)
        reading.report_unprintable(document)
    if error is not None:
        reading.report_error(error, documents[-1].index + 1 if documents else 0)
    elif not objects:
        message = "the List has no items" if documents else "the file does not contain a document"
        reading.report(Position(1, 1), 0, NO_DOCUMENT, message, f"add a {KIND}")
    for item in source.items:
        if item.kind == KIND:
            source.problems += _of_a_template(item)
    return source


@dataclass(frozen=True, slots=True)
class _Reading:
    """A text that is being read."""

    source: Source  # receives its documents and problems
    data: bytes  # the content as bytes
    minor: int  # of the kube-scheduler that reads it

    def report(self, position: Position, index: int, reason: str, message: str, fix: str) -> None:
        """Report a problem of the document at `index`."""
        items, place = self.source.items, self.source.place
        # What follows a configuration is not read by kube-scheduler.
        ignored = bool(items) and index > 0 and is_read(items[0])
        severity: Severity = WARNING if ignored else ERROR
        more = f"; {FIRST_ONLY}" if ignored else ""
        at = place.in_file(position) if place else position
        if place:
            message, fix = _with_lines(message, place), _with_lines(fix, place)
        file, message = self.source.file, message + more
        problem = FileFinding(file, at, "", "", reason, message, fix, severity)
        self.source.problems.append(problem)

    def add(
        self, document: Document, own: Callable[[Item], bool], reader: CommandLine | None
    ) -> None:
        """Add a document to the source, or report that it is none."""
        source, value = self.source, document.value
        is_object = isinstance(value, Mapping)
        item = Item(source.file, document, value if is_object else {}, source.place, reader)
        contents = None if own(item) else read_form(document)
        if contents is not None and source.place and source.place.version:
            contents = contents.for_version(source.place.version)
        if is_object or contents:
            if contents is not None:
                source.contents[len(source.items)] = contents
            source.items.append(item)
            return
        if document.index == 0 and self._report_foreign(0):
            return
        message = "a document must be an object with apiVersion and kind"
        fix = "add both, or remove the document"
        self.report(document.root.position, document.index, NO_DOCUMENT, message, fix)

    def report_flaws(self, document: Document) -> None:
        """Report what kube-scheduler's strict decoding rejects."""
        for flaw in document.flaws:
            template = template_of(self.source.text) if TEMPLATE in flaw.message else None
            if template is not None:
                what, fix = template.message, template.fix
                self.report(flaw.position, document.index, NOT_RENDERED, what, fix)
                continue
            ignored = is_volcano(mapping(document.root.data)) or _is_not_decoded(
                document, flaw.path, self.minor
            )
            if not ignored:
                wrong, _, fix = flaw.message.rpartition("; ")
                self.report(flaw.position, document.index, NOT_STRICT, wrong or fix, fix)

    def report_unprintable(self, document: Document) -> None:
        """Report arguments of plugins that kube-scheduler cannot print."""
        if mapping(document.root.data).get("kind") != KIND:
            return
        for path, message in unprintable_arguments(document, self.minor):
            what, _, fix = message.rpartition("; ")
            wrong = (
                f"{format_path(path)}: kube-scheduler has to read these arguments as YAML to "
                f"print them with -v=2, as the operator starts it: {what or fix}"
            )
            fix = "remove args; the plugin has no arguments"
            self.report(document.position(path), document.index, SYNTAX, wrong, fix)

    def report_error(self, error: ParseError, index: int) -> None:
        """Report the error that ended the text, in the document at `index`."""
        if index == 0 and self._report_foreign(index):
            return
        template = template_of(self.source.text)
        if template is not None:
            self.report(template.position, index, NOT_RENDERED, template.message, template.fix)
            return
        wrong, _, fix = error.message.rpartition("; ")
        what, fix = (wrong, fix) if wrong else (fix, "correct the syntax")
        self.report(error.position, index, SYNTAX, what, fix)

    def _report_foreign(self, index: int) -> bool:
        """Report that the file has another format; return whether it has."""
        foreign = foreign_file(self.data)
        if foreign is not None:
            self.report(foreign.position, index, SYNTAX, foreign.message, foreign.fix)
        return foreign is not None


def _read_plain(source: Source, data: bytes) -> bool:
    """Read a file that is a command line of kube-scheduler, and not YAML; return whether it is."""
    name = source.place.text.node_path if source.place and source.place.text else ""
    text = characters(data).text
    plain = read_plain(name or source.file, text)
    if plain is None:
        return False
    document, contents = plain
    source.items.append(Item(source.file, document, {}, source.place))
    source.contents[0] = contents
    # The words of its expressions are not flags; ${NAME} is a variable of systemd.
    template = template_of(text.replace("${", "$("))
    if template is not None:
        source.contents[0] = Contents()
        at = source.place.in_file(template.position) if source.place else template.position
        message, fix = template.message, template.fix
        problem = FileFinding(source.file, at, "", "", NOT_RENDERED, message, fix, ERROR)
        source.problems.append(problem)
    return True


def _with_lines(message: str, place: Embedding) -> str:
    """Replace the line numbers of an embedded text by those of the file."""

    def of_file(match: re.Match[str]) -> str:
        return f"line {place.in_file(Position(int(match[1]), 1)).line}"

    return _LINE.sub(of_file, message)


def _of_a_template(item: Item) -> Iterator[FileFinding]:
    """Report once that a configuration still contains expressions of a template."""
    for path, text in _strings(item.document.root.data, ()):
        template = template_of(text)
        if template is not None:
            at, message, fix = item.position(path), template.message, template.fix
            yield FileFinding(item.file, at, "", "", NOT_RENDERED, message, fix, ERROR)
            return


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))
