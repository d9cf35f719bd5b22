"""What a program serves at /metrics: the families with their labels, apart from their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TYPE: Final = re.compile(r"# TYPE (\S+) (\w+)")
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"')
_SUFFIXES: Final = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


@dataclass(frozen=True, order=True)
class Family:
    """A metric with the labels of its series."""

    name: str
    type: str  # counter, gauge, histogram, summary or untyped
    labels: frozenset[str]

    @property
    def series(self) -> tuple[str, ...]:
        """The names that a query may have."""
        suffixes = _SUFFIXES.get(self.type, ("",))
        return tuple(f"{self.name}{suffix}" for suffix in suffixes)


def families(text: str) -> set[Family]:
    """Read the text format; a family without a sample is left out, as Prometheus stores none."""
    types = {match[1]: match[2] for match in _TYPE.finditer(text)}
    labels: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("#") or not (match := _SAMPLE.match(line)):
            continue
        name = _family_name(match[1], types)
        labels.setdefault(name, set()).update(_LABEL.findall(match[2] or ""))
    return {
        Family(name, types.get(name, "untyped"), frozenset(found - {"le", "quantile"}))
        for name, found in labels.items()
    }


def _family_name(sample: str, types: Mapping[str, str]) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        name = sample.removesuffix(suffix)
        if name != sample and types.get(name) in _SUFFIXES:
            return name
    return sample


def merged(scrapes: Iterable[set[Family]]) -> set[Family]:
    """Return the families of several scrapes; a label is of a family if any scrape has it."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for scrape in scrapes:
        for family in scrape:
            key = family.name, family.type
            found[key] = found.get(key, frozenset()) | family.labels
    return {Family(name, kind, labels) for (name, kind), labels in found.items()}


def write_record(record: Mapping[str, set[Family]]) -> str:
    """Return a line for each family: name, type, labels (- without), versions that serve it."""
    lines: dict[Family, list[str]] = {}
    for version in sorted(record):
        for family in record[version]:
            lines.setdefault(family, []).append(version)
    return "".join(
        f"{family.name} {family.type} {','.join(sorted(family.labels)) or '-'} "
        f"{' '.join(versions)}\n"
        for family, versions in sorted(lines.items(), key=lambda item: (item[0].name, item[1]))
    )


def read_record(path: Path) -> dict[str, set[Family]]:
    """Read what `write_record` wrote: version -> families."""
    record: dict[str, set[Family]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, kind, labels, *versions = line.split()
        family = Family(name, kind, frozenset(labels.split(",")) - {"-"})
        for version in versions:
            record.setdefault(version, set()).add(family)
    return record
