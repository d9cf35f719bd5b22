"""The plugins of known third-party schedulers, and their arguments.

bindata/known-schedulers.json is recorded by hack/known-schedulers from the schedulers' sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from ....base.assets import text
from ..schema import STRING, List, Map, Struct, Type
from ..versions import Version
from .in_tree_plugins import OLDEST

_RECORD: Final = "known-schedulers.json"
_OWN_FLAGS: Final = {"koordinator": frozenset({"address", "port"})}
"""koordinator v1.6.0 and v1.7.0, cmd/koord-scheduler/app/options/insecure_serving.go."""


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    points: tuple[str, ...]  # extension points that it implements
    args: Struct | None  # None: it has no arguments, or accepts any


@dataclass(frozen=True, slots=True)
class KnownScheduler:
    """A version of a third-party scheduler, which also has the plugins of kube-scheduler."""

    name: str  # as in `--for`
    version: str  # its own: `v0.34.7`
    kubernetes: Version  # of the kube-scheduler that it is based on
    source: str  # URL of its sources
    images: tuple[str, ...]  # suffixes of the names of its images
    plugins: Mapping[str, KnownPlugin]  # its own
    newer: str = ""  # the version that was asked for, if all on record are older

    @property
    def key(self) -> str:
        """The scheduler with the version that was asked for: `scheduler-plugins:v0.34.7`."""
        return f"{self.name}:{self.newer or self.version}"

    @property
    def rules(self) -> Version:
        """The recorded version of Kubernetes whose rules apply."""
        return max(self.kubernetes, OLDEST)

    @property
    def own_flags(self) -> frozenset[str]:
        """Its flags, without dashes, that kube-scheduler no longer has."""
        return _OWN_FLAGS.get(self.name, frozenset())


@cache
def recorded() -> tuple[KnownScheduler, ...]:
    """Read all versions on record, the oldest of each scheduler first."""
    return tuple(_read(entry) for entry in json.loads(text("bindata", _RECORD)))


@cache
def newest() -> Mapping[str, KnownScheduler]:
    """Return the newest version of each scheduler, by name."""
    return {scheduler.name: scheduler for scheduler in recorded()}


@cache
def known_scheduler(name: str, version: str = "") -> KnownScheduler | None:
    """Find the newest recorded version of a scheduler that is not newer than `version`.

    If all are newer, the oldest one applies; by default, the newest one. None if none is recorded.
    """
    own = [scheduler for scheduler in recorded() if scheduler.name == name]
    if not own:
        return None
    older = [
        scheduler
        for scheduler in own
        if _number(scheduler.version) <= (*_number(version)[:2], 10**6)
    ]
    found = (older or own[:1])[-1] if version else own[-1]
    is_newer = _number(version)[:2] > _number(found.version)[:2]
    return replace(found, newer=version) if is_newer else found


def scheduler_of_image(image: str) -> KnownScheduler | None:
    """Recognize the scheduler in an image by its name; None if it is unknown."""
    name, _, tag = image.partition("@")[0].partition("/")[2].rpartition(":")
    name = name or image.partition("@")[0]
    for scheduler in newest().values():
        if any(name == ending or name.endswith(f"/{ending}") for ending in scheduler.images):
            return known_scheduler(scheduler.name, tag if re.match(r"v?\d+\.\d+", tag) else "")
    return None


_SAMPLES: Final = {"CrossNodePreemption": ("scheduler-plugins",)}
"""Plugins in the sources of a scheduler that its image does not contain."""


def owners_of(plugin: str) -> tuple[str, ...]:
    """Return the third-party schedulers that have a plugin."""
    owners = tuple(
        scheduler.name
        for scheduler in reversed([*newest().values()])
        if plugin in scheduler.plugins
    )
    return owners or _SAMPLES.get(plugin, ())


def owner_fix(plugin: str) -> str:
    """Suggest the image that has a third-party plugin; empty if none is known to have it."""
    owners = owners_of(plugin)
    if not owners:
        return ""
    image = f"an image of {owners[0]}" if len(owners) == 1 else "the image of one of them"
    return f"it is a plugin of {' and '.join(owners)}: use {image}"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _read(record: Mapping[str, Any]) -> KnownScheduler:
    plugins = {
        name: KnownPlugin(tuple(plugin["points"]), _arguments(plugin.get("args")))
        for name, plugin in record["plugins"].items()
    }
    return KnownScheduler(
        record["name"],
        record["version"],
        Version.parse(record["kubernetes"]),
        record["source"],
        tuple(record["images"]),
        plugins,
    )


def _arguments(struct: Any) -> Struct | None:
    if struct is None:
        return None
    fields = {key: _type(field) for key, field in struct["fields"].items()}
    return Struct({"apiVersion": STRING, "kind": STRING, **fields})


def _type(kind: Any) -> Type:
    if isinstance(kind, str):
        return kind  # type: ignore[return-value]  # a Scalar; the record is ours
    if "list" in kind:
        return List(_type(kind["list"]))
    if "map" in kind:
        return Map(_type(kind["map"]))
    return Struct({key: _type(field) for key, field in kind["fields"].items()})
