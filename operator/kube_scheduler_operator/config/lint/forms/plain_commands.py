"""Command lines of kube-scheduler in files that are not YAML.

* units of systemd, by ExecStart (systemd.service(5), "Command lines");
* files of variables that a unit reads, such as KUBE_SCHEDULER_ARGS="--v=2" (systemd.exec(5),
  EnvironmentFile);
* files with one flag in each line, as MicroK8s and snaps have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ....base.findings import Path
from ....base.source.reader import Document
from ....base.source.tree import Position, SourceNode
from .flags import config_problems, with_unknown_values, word_problems
from .form import CommandLine, Contents, assembled

_COMMAND_LINE: Final = re.compile(
    rb"^(?:ExecStart\b|[ \t]*--[A-Za-z]|[^\n:]{0,80}SCHEDULER\w{0,64}=)", re.MULTILINE
)
_UNIT: Final = re.compile(r"^\[(?:Unit|Service|Install)\][ \t]*$", re.MULTILINE)
_EXEC_START: Final = re.compile(r"^ExecStart[ \t]*=[ \t]*[-@:+!]*((?:[^\n]*\\\n)*[^\n]*)", re.M)
_VARIABLE: Final = re.compile(
    r"^(?:export[ \t]+|Environment=\"?)?(\w{0,64}SCHEDULER\w{0,64})="
    r"([\"']?)((?:[^\n]*\\\n)*[^\n]*)",
    re.M,
)
_FLAG_FILE: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*|--[A-Za-z][^\n]*)?\n)+")
_PROGRAM: Final = re.compile(r"(?:^|/)kube-scheduler$")
_WORD: Final = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\[^\n]|[^\s\"'\\])+")
_UNQUOTED: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)|([^\"'\\]+)")
_KEY: Final = "ExecStart"
_ARGUMENTS: Final = "arguments"


def may_be_plain(data: bytes) -> bool:
    """Report whether a file has a line that `read_plain` may read; YAML rarely has one."""
    return _COMMAND_LINE.search(data) is not None


def read_plain(file: str, text: str) -> tuple[Document, Contents] | None:
    """Read the command line in a file, as a document of its words; None without one.

    The name of the file shows whose flags a file of flags has.
    """
    for key, label, words in _command_lines(file, text):
        root = _document(text, key, words)
        paths: list[tuple[str, Path]] = [
            (word, (key, index)) for index, (word, _) in enumerate(words)
        ]
        return Document(root), _contents(label, paths, (key,))
    return None


def _command_lines(file: str, text: str) -> Iterator[tuple[str, str, list[tuple[str, int]]]]:
    """Yield (field, label, words with their offsets) of command lines; the first one counts."""
    name = file.rpartition("/")[2]
    if _UNIT.search(text):
        for start in _EXEC_START.finditer(text):
            words = list(_words(text, start.start(1), start.end(1)))
            program = next((i for i, (word, _) in enumerate(words) if _PROGRAM.search(word)), None)
            if program is not None:
                yield _KEY, f"the unit {name}", words[program:]
        return
    for variable in _VARIABLE.finditer(text):
        end = variable.end(3)
        if quote := variable[2]:
            closing = text.find(quote, variable.start(3), end)
            end = closing if closing >= 0 else end
        words = list(_words(text, variable.start(3), end))
        if words and words[0][0].startswith("-"):
            yield variable[1], f"the variable {variable[1]}", words
    if "scheduler" in name and "--" in text and _FLAG_FILE.fullmatch(f"{text.rstrip()}\n"):
        lines = re.finditer(r"^[ \t]*(--[^\n]*?)[ \t\r]*$", text, re.M)
        if words := [(line[1], line.start(1)) for line in lines]:
            yield _ARGUMENTS, f"the file {name}", words


def _words(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield the words between two offsets, without quotes."""
    for match in _WORD.finditer(text, start, end):
        parts = _UNQUOTED.findall(match[0])
        yield "".join("".join(part) for part in parts), match.start()


def _document(text: str, key: str, words: Sequence[tuple[str, int]]) -> SourceNode:
    items = [SourceNode(_position(text, offset, len(word)), word) for word, offset in words]
    return assembled({key: items}, items[0].position)


def _position(text: str, offset: int, length: int) -> Position:
    line = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - line + 1, length)


def _contents(label: str, words: Sequence[tuple[str, Path]], at: Path) -> Contents:
    if words[0][0].startswith("-"):
        words = [("kube-scheduler", at), *words]
    # systemd, a shell or a snap replaces variables.
    unknown = {path for word, path in words if "$" in word}
    flags = with_unknown_values(words, lambda value: "$" in value)
    problems = [problem for problem in word_problems(words) if problem.path not in unknown]
    return Contents(
        commands=(CommandLine(label=label, arguments=flags, at=at, namespace="kube-system"),),
        problems=(*problems, *config_problems(flags)),
    )
