"""The scheduler for which a configuration is validated."""

from __future__ import annotations

from dataclasses import dataclass

from .feature_gates import Gates
from .in_tree_plugins import on_record


@dataclass(frozen=True, slots=True)
class Target:
    """A scheduler that reads a configuration.

    Attributes:
        gates: its version and feature gates.
        stock: False for an image that may contain out-of-tree plugins.
    """

    gates: Gates
    stock: bool = True

    @property
    def minor(self) -> int:
        """The minor version."""
        return self.gates.version.minor

    @property
    def identity(self) -> tuple[object, ...]:
        """Its content as a hashable value."""
        return self.gates.version, frozenset(self.gates.explicit.items()), self.stock

    @property
    def plugins_on_record(self) -> bool:
        """Whether in_tree_plugins.py lists every plugin of this scheduler."""
        return self.stock and on_record(self.gates.version)
