"""What the recorded versions of Volcano's scheduler accept.

bindata/volcano.json is recorded by hack/known-schedulers from Volcano's sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ...base.assets import text

NAME: Final = "volcano"
"""As in `--for`."""
PROGRAM: Final = "vc-scheduler"
"""The scheduler's program, and the end of its image's name."""
_RECORD: Final = "volcano.json"


@dataclass(frozen=True, slots=True)
class VolcanoArgument:
    """An argument of a plugin or an action.

    Attributes:
        kind: int, float, number, bool, string, list, map or any.
        exits: whether a value of another type ends the scheduler; otherwise it is ignored.
    """

    kind: str
    exits: bool


@dataclass(frozen=True, slots=True)
class VolcanoVersion:
    """A version of Volcano.

    Attributes:
        version: `v1.15.1`.
        source: the address of its sources.
        fields: "file", "tier", "plugin" and "action" -> field -> its type.
        actions: action -> its arguments, which are in `configurations`.
        plugins: plugin -> its arguments; a key that ends with `*` is a prefix.
    """

    version: str
    source: str
    fields: Mapping[str, Mapping[str, str]]
    actions: Mapping[str, Mapping[str, VolcanoArgument]]
    plugins: Mapping[str, Mapping[str, VolcanoArgument]]


@cache
def recorded() -> tuple[VolcanoVersion, ...]:
    """All versions on record, the oldest first."""
    return tuple(_read(each) for each in json.loads(text("bindata", _RECORD)))


@cache
def volcano(version: str = "") -> VolcanoVersion:
    """The version on record that is closest to one: the newest that is not newer.

    Without a version, the newest one.
    """
    known = recorded()
    if not version:
        return known[-1]
    older = [each for each in known if _minor(each.version) <= _minor(version)]
    return (older or known[:1])[-1]


def later_with(version: VolcanoVersion, has: Callable[[VolcanoVersion], bool]) -> str:
    """The first version on record after another one that has something; empty if none has."""
    known = recorded()
    later = known[known.index(version) + 1 :]
    return next((each.version for each in later if has(each)), "")


def is_volcano_image(image: str) -> bool:
    """Whether an image is Volcano's scheduler, of any registry."""
    return re.sub(r":[^:/]*$", "", image.partition("@")[0]).rpartition("/")[2] == PROGRAM


def volcano_of_image(image: str) -> VolcanoVersion | None:
    """The version on record for an image of Volcano's scheduler; None if its tag shows none."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    return volcano(tag) if re.match(r"v?\d+\.\d+", tag) and is_volcano_image(image) else None


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _read(data: Mapping[str, Any]) -> VolcanoVersion:
    return VolcanoVersion(
        data["version"],
        data["source"],
        data["fields"],
        {name: _arguments(each) for name, each in data["actions"].items()},
        {name: _arguments(each) for name, each in data["plugins"].items()},
    )


def _arguments(data: Mapping[str, Mapping[str, str]]) -> dict[str, VolcanoArgument]:
    return {
        key: VolcanoArgument(each["type"], each["otherwise"] == "exits")
        for key, each in data.items()
    }
