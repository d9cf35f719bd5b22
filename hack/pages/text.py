"""From what a terminal showed to Markdown: shortening, hiding this machine, blocks. Pure.

Nothing is rewritten by hand: what a page leaves out, it leaves out by a rule of this module, and it
states how much that was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

_T = TypeVar("_T")

WIDTH = 240
"""Characters of the longest line that a page shows whole."""

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of an output a page shows."""

    head: int  # lines from the beginning
    tail: int = 0  # lines from the end


ALL = Keep(10_000)


@dataclass(frozen=True, slots=True)
class Shown:
    """One command as a page shows it."""

    command: str  # as typed
    output: str  # what it printed, both streams as a terminal mixes them; shortened
    code: int = 0  # its exit code


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page."""

    title: str  # its heading
    text: str  # what the reader should know before; Markdown
    # commands that stand together, or, as text, something else that is shown
    blocks: tuple[tuple[Shown, ...] | str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """All that was typed."""
        return tuple(shown.command for b in self.blocks if not isinstance(b, str) for shown in b)


# --- shortening -------------------------------------------------------------------------------
def shorten(text: str, keep: Keep = ALL) -> str:
    """The text without what makes it long: lines in the middle, and the ends of very long lines.

    A single line is never left out: saying so takes a line, too.
    """
    lines = [_clipped(_ESCAPE.sub("", line).rstrip()) for line in text.rstrip().splitlines()]
    left_out = len(lines) - keep.head - keep.tail
    if left_out <= 1:
        return "\n".join(lines)
    end = lines[len(lines) - keep.tail :]
    return "\n".join([*lines[: keep.head], f"… {left_out} lines more", *end])


def _clipped(line: str) -> str:
    left_out = len(line) - WIDTH
    return line if left_out <= 0 else f"{line[:WIDTH]} … {left_out} characters more"


def tree(sizes: Mapping[str, int], most: int = 4) -> str:
    """Files with their sizes as a tree: of the files and the folders in a folder, the first few.

    Args:
        sizes: bytes by path, with slashes.
        most: files, and folders, of one folder that are shown.
    """
    lines: list[str] = []
    _branch(sizes, "", "", most, lines)
    return "\n".join(lines)


def _branch(
    sizes: Mapping[str, int], folder: str, indent: str, most: int, lines: list[str]
) -> None:
    inside = {
        PurePosixPath(path).relative_to(folder).parts: size
        for path, size in sizes.items()
        if PurePosixPath(path).is_relative_to(folder)
    }
    folders = sorted({parts[0] for parts in inside if len(parts) > 1})
    files = sorted((parts[0], size) for parts, size in inside.items() if len(parts) == 1)
    for name in _first(folders, most):
        below = [size for parts, size in inside.items() if parts[0] == name]
        lines.append(f"{indent}{name}/  {_count(len(below), 'file')}, {human(sum(below))}")
        _branch(sizes, f"{folder}/{name}".lstrip("/"), f"{indent}  ", most, lines)
    if len(folders) > len(_first(folders, most)):
        lines.append(f"{indent}… {_count(len(folders) - most, 'folder')} more")
    for name, size in _first(files, most):
        lines.append(f"{indent}{name}  {human(size)}")
    if len(files) > len(_first(files, most)):
        lines.append(f"{indent}… {_count(len(files) - most, 'file')} more")


def _first(items: Sequence[_T], most: int) -> Sequence[_T]:
    return items if len(items) <= most + 1 else items[:most]


def human(size: int) -> str:
    """A size for people: 312 B, 4.1 KiB, 2.0 MiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# --- hiding this machine ----------------------------------------------------------------------
def without_places(text: str, places: Mapping[str, str]) -> str:
    """The text with every place of this machine under the name that it has for readers.

    Args:
        text: anything.
        places: absolute path -> what stands for it; "." for where the reader is.
    """
    for path in sorted(places, key=len, reverse=True):
        name = places[path]
        if name == ".":
            text = text.replace(f"{path}/", "")
        text = re.sub(rf"{re.escape(path)}(?![\w.-])", name, text)
    return text


def places_in(text: str, places: Iterable[str]) -> list[str]:
    """The places of this machine that a text names."""
    return [path for path in places if re.search(rf"{re.escape(path)}(?![\w.-])", text)]


# --- Markdown ---------------------------------------------------------------------------------
def block(shown: Sequence[Shown]) -> str:
    """Commands that stand together, as a console shows them, and how they ended if not well."""
    lines = []
    for one in shown:
        lines.append(f"$ {one.command}")
        if one.output:
            lines.append(one.output)
        if one.code:
            lines.append(f"(exit code {one.code})")
    return fenced("\n".join(lines), "console")


def fenced(text: str, language: str = "text") -> str:
    """A block that ends where it should, whatever is in the text."""
    longest = max((len(found) for found in re.findall(r"^`+", text, re.MULTILINE)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def anchor(title: str) -> str:
    """The fragment under which a heading can be linked to."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def index(commands: Sequence[str], sections: Sequence[Section], prefix: str) -> str:
    """Which command is shown where, as a table.

    Args:
        commands: in the order of the table.
        sections: of the page.
        prefix: what is typed before all of them.
    """
    lines = ["| Command | Shown in |", "|---|---|"]
    for command in commands:
        found = [
            f"[{section.title}](#{anchor(section.title)})"
            for section in sections
            if any(_is(typed, f"{prefix} {command}") for typed in section.commands)
        ]
        lines.append(f"| `{command}` | {', '.join(found)} |")
    return "\n".join(lines)


def _is(typed: str, command: str) -> bool:
    """Whether a command was really run; its help does not count."""
    return typed == command or (typed.startswith(f"{command} ") and not typed.endswith(" --help"))


def page(title: str, introduction: str, sections: Sequence[Section]) -> str:
    """A whole page."""
    parts = [f"# {title}", introduction]
    for section in sections:
        parts.append(f"## {section.title}")
        if section.text:
            parts.append(section.text)
        parts += [fenced(one) if isinstance(one, str) else block(one) for one in section.blocks]
    return "\n\n".join(parts) + "\n"


def shown_in(document: str) -> dict[str, str]:
    """Command -> output, of all that the console blocks of a page show.

    What was shown twice has both outputs.
    """
    found: dict[str, list[str]] = {}
    for console in re.findall(r"^(`{3,})console\n(.*?)\n\1$", document, re.MULTILINE | re.DOTALL):
        command = ""
        for line in console[1].splitlines():
            if line.startswith("$ "):
                command = line[2:]
                found.setdefault(command, [])
            elif command:
                found[command].append(line)
    return {command: "\n".join(lines) for command, lines in found.items()}
