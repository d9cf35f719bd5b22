"""Two sets of facts side by side, and why they differ. Pure.

Facts are texts by group and item. A difference without a reason is an error, so that a
page cannot show an unexplained one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

Facts = Mapping[str, Mapping[str, str]]

MISSING = "not there"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something differs."""

    group: str  # of the items
    item: str  # its name; `*` stands for anything
    text: str  # one sentence
    here: str = "*"  # this operator's value that it explains; empty for any value; `*` as above

    def covers(self, group: str, row: Row) -> bool:
        """Whether it is about that line."""
        return (
            group == self.group
            and fnmatchcase(row.item, self.item)
            and fnmatchcase(row.here, self.here)
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    item: str  # what is compared
    reference: str  # its value there; MISSING if there is no such thing
    here: str  # the same for us
    reason: str = ""  # why they differ; empty if they do not, or without a reason

    @property
    def same(self) -> bool:
        """Whether there is nothing to explain."""
        return self.reference == self.here


@dataclass(frozen=True, slots=True)
class Comparison:
    """All rows, and what is wrong with the reasons."""

    # rows by group, in the reference's order; what only we have comes after it
    groups: Mapping[str, tuple[Row, ...]]
    unexplained: tuple[tuple[str, Row], ...]  # (group, row) without a reason
    unused: tuple[Reason, ...]  # reasons for nothing

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows are the same, and how many differ."""
        rows = [row for found in self.groups.values() for row in found]
        same = sum(row.same for row in rows)
        return same, len(rows) - same


def compare(
    reference: Facts, here: Facts, reasons: Sequence[Reason], known_only: Collection[str] = ()
) -> Comparison:
    """Put both side by side; of several reasons for an item the first counts.

    Args:
        reference: what is known of it.
        here: what was observed.
        reasons: for what differs.
        known_only: groups in which only the reference's items are compared, because what exists at
            all is the matter of another group, or because the rest of the reference is not known.
    """
    groups: dict[str, tuple[Row, ...]] = {}
    unexplained = []
    used: set[Reason] = set()
    for group in dict.fromkeys([*reference, *here]):
        theirs, ours = reference.get(group, {}), here.get(group, {})
        rows = []
        more = () if group in known_only else sorted(ours.keys() - theirs.keys())
        for item in [*theirs, *more]:
            row = Row(item, theirs.get(item, MISSING), ours.get(item, MISSING))
            if not row.same:
                found = next((reason for reason in reasons if reason.covers(group, row)), None)
                if found is None:
                    unexplained.append((group, row))
                else:
                    used.add(found)
                    row = Row(row.item, row.reference, row.here, found.text)
            rows.append(row)
        groups[group] = tuple(rows)
    unused = tuple(reason for reason in reasons if reason not in used)
    return Comparison(groups, tuple(unexplained), unused)


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table."""
    lines = ["| Item | Reference | Here | | Why |", "|---|---|---|---|---|"]
    for row in rows:
        result = "same" if row.same else "different"
        here = "" if row.same else _cell(row.here)
        cells = (_code(row.item), _cell(row.reference), here, result, row.reason)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: str) -> str:
    if value in (MISSING, "yes", "no"):
        return value
    return "<br>".join(_code(line) for line in value.splitlines()) or '`""`'


def _code(text: str) -> str:
    """Inline code, also with a pipe or a backtick in it."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("|", "\\|")
