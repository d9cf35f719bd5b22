"""What was measured: a table for people, JSON for machines."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
STALL_SECONDS = 10


class Row:
    """One line of the table: what was measured, the figure and the target, None for a yardstick.

    Notes are for the JSON: what the values stand for, say.
    """

    def __init__(
        self,
        name: str,
        values: list[float],
        unit: str,
        target: float | None,
        notes: Sequence[str] = (),
    ) -> None:
        self.name, self.values, self.unit, self.target = name, values, unit, target
        self.notes = notes

    @property
    def median(self) -> float:
        """The figure that is quoted."""
        return statistics.median(self.values)

    def as_json(self) -> dict[str, object]:
        """All that was measured."""
        return {
            "name": self.name,
            "median": self.median,
            "min": min(self.values),
            "max": max(self.values),
            "values": self.values,
            "unit": self.unit,
            "target": self.target,
            "met": self.met,
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    @property
    def met(self) -> bool:
        """Whether the median is within the target."""
        return self.target is None or self.median <= self.target


def stalls() -> Row:
    """The machine itself: for how much of the time it lets a program wait that wants to go on."""
    late, begun = 0.0, time.monotonic()
    while time.monotonic() - begun < STALL_SECONDS:
        asleep = time.monotonic()
        time.sleep(0.01)
        late += max(time.monotonic() - asleep - 0.05, 0.0)
    return Row(
        "yardstick: the idle machine stalls", [100 * late / STALL_SECONDS], "% of time", None
    )


def report(bench: str, rows: list[Row]) -> None:
    """Print a table, and write all that was measured to a file."""
    print(f"\n{'':52}{'median':>9}{'min':>9}{'max':>9}{'target':>9}")
    for row in rows:
        figures = "".join(
            f"{value:9.2f}" for value in (row.median, min(row.values), max(row.values))
        )
        target = f"{'-':>9}" if row.target is None else f"{row.target:9.2f}"
        print(f"{row.name:<52}{figures}{target} {row.unit}{'' if row.met else '  MISSED'}")
    write(bench, {"rows": [row.as_json() for row in rows]})


def write(bench: str, measured: Mapping[str, object]) -> None:
    """Write what was measured to a file, with what is to be known of the machine."""
    folder = REPOSITORY / "bench-results"
    folder.mkdir(exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = folder / f"{bench}-{stamp}.json"
    machine = {"cores": len(_cores()), "python": platform.python_version()}
    document = {"bench": bench, "time": stamp, "machine": machine, **measured}
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"\n{path.relative_to(REPOSITORY)}")


def _cores() -> set[int]:
    return os.sched_getaffinity(0)
