"""The scheduler for which a configuration is validated."""

from __future__ import annotations

from dataclasses import dataclass

from ..feature_gates import Gates
from ..schema import Struct, args_struct
from .in_tree_plugins import on_record
from .known_schedulers import KnownScheduler, known_scheduler


@dataclass(frozen=True, slots=True)
class Target:
    """A scheduler that reads a configuration."""

    gates: Gates  # its version and feature gates
    stock: bool = True  # False for an image that may contain out-of-tree plugins
    # the known third-party scheduler in the image, if any, with its version: `volcano:v1.12.0`
    scheduler: str = ""

    @property
    def minor(self) -> int:
        return self.gates.version.minor

    @property
    def known(self) -> KnownScheduler | None:
        name, _, version = self.scheduler.partition(":")
        return known_scheduler(name, version) if name else None

    def args_struct(self, plugin: str) -> Struct | None:
        """Return the type of a plugin's arguments; None if it has none, or accepts any."""
        known = self.known
        if known is not None and plugin in known.plugins:
            return None if known.newer else known.plugins[plugin].args
        return args_struct(plugin, self.minor)

    @property
    def plugins_on_record(self) -> bool:
        """Whether in_tree_plugins.py lists every plugin of this scheduler."""
        return self.stock and on_record(self.gates.version)
