"""The plugins of known third-party schedulers, and their arguments.

bindata/known-schedulers.json is recorded by hack/known-schedulers from the schedulers' sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ..base.assets import text
from .in_tree_plugins import OLDEST
from .schema import STRING, List, Map, Struct, Type
from .versions import Version

_RECORD: Final = "known-schedulers.json"
_OWN_FLAGS: Final = {"koordinator": frozenset({"address", "port"})}
"""koordinator v1.6.0 and v1.7.0, cmd/koord-scheduler/app/options/insecure_serving.go."""


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A plugin of a third-party scheduler."""

    points: tuple[str, ...]  # extension points that it implements
    args: Struct | None  # the type of its arguments; None: it takes any, or none


@dataclass(frozen=True, slots=True)
class KnownScheduler:
    """A version of a third-party scheduler, which also has the plugins of kube-scheduler."""

    name: str  # as in `--for`
    version: str  # its own, `v0.34.7`
    kubernetes: Version  # the kube-scheduler that it is made of
    source: str  # the address of its sources
    images: tuple[str, ...]  # endings of the names of its images
    plugins: Mapping[str, KnownPlugin]  # its own plugins

    @property
    def rules(self) -> Version:
        """The version whose rules are closest: that, or the oldest on record."""
        return max(self.kubernetes, OLDEST)

    @property
    def own_flags(self) -> frozenset[str]:
        """Its flags, without dashes, that kube-scheduler no longer has."""
        return _OWN_FLAGS.get(self.name, frozenset())


@cache
def recorded() -> tuple[KnownScheduler, ...]:
    """All versions on record, the oldest of each scheduler first."""
    return tuple(_read(entry) for entry in json.loads(text("bindata", _RECORD)))


@cache
def newest() -> Mapping[str, KnownScheduler]:
    """The newest version of each scheduler, by name."""
    return {scheduler.name: scheduler for scheduler in recorded()}


@cache
def known_scheduler(name: str, version: str = "") -> KnownScheduler | None:
    """A scheduler, in the recorded version that is closest to one; None if it is not known.

    The closest version is the newest that is not newer; without a version, the newest one.
    """
    own = [scheduler for scheduler in recorded() if scheduler.name == name]
    if not own:
        return None
    older = [
        scheduler
        for scheduler in own
        if _number(scheduler.version) <= (*_number(version)[:2], 10**6)
    ]
    return (older or own[:1])[-1] if version else own[-1]


def scheduler_of_image(image: str) -> KnownScheduler | None:
    """The scheduler in an image; None if its name shows none that is known."""
    name, _, tag = image.partition("@")[0].partition("/")[2].rpartition(":")
    name = name or image.partition("@")[0]
    for scheduler in newest().values():
        if any(name == ending or name.endswith(f"/{ending}") for ending in scheduler.images):
            return known_scheduler(scheduler.name, tag if re.match(r"v?\d+\.\d+", tag) else "")
    return None


_SAMPLES: Final = {"CrossNodePreemption": ("scheduler-plugins",)}
"""Plugins in the sources of a scheduler that its image does not have."""


def owners_of(plugin: str) -> tuple[str, ...]:
    """The third-party schedulers that have a plugin."""
    owners = tuple(
        scheduler.name
        for scheduler in reversed([*newest().values()])
        if plugin in scheduler.plugins
    )
    return owners or _SAMPLES.get(plugin, ())


def owner_fix(plugin: str) -> str:
    """What makes a third-party scheduler's plugin available; empty: none is known to have it."""
    owners = owners_of(plugin)
    if not owners:
        return ""
    image = f"an image of {owners[0]}" if len(owners) == 1 else "the image of one of them"
    return f"it is a plugin of {' and '.join(owners)}: use {image}"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _read(data: Mapping[str, Any]) -> KnownScheduler:
    plugins = {
        name: KnownPlugin(tuple(plugin["points"]), _arguments(plugin.get("args")))
        for name, plugin in data["plugins"].items()
    }
    return KnownScheduler(
        data["name"],
        data["version"],
        Version.parse(data["kubernetes"]),
        data["source"],
        tuple(data["images"]),
        plugins,
    )


def _arguments(data: Any) -> Struct | None:
    if data is None:
        return None
    fields = {key: _type(field) for key, field in data["fields"].items()}
    return Struct({"apiVersion": STRING, "kind": STRING, **fields})


def _type(data: Any) -> Type:
    if isinstance(data, str):
        return data  # type: ignore[return-value]  # a Scalar; the record is ours
    if "list" in data:
        return List(_type(data["list"]))
    if "map" in data:
        return Map(_type(data["map"]))
    return Struct({key: _type(field) for key, field in data["fields"].items()})
