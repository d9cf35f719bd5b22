"""The scheduler that is to read a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from .catalogue import on_record
from .feature_gates import Gates


@dataclass(frozen=True, slots=True)
class Target:
    """The scheduler that will read the configuration.

    Attributes:
        gates: its version and feature gates.
        stock: False for an image that may have more plugins than the catalogue.
    """

    gates: Gates
    stock: bool = True

    @property
    def minor(self) -> int:
        """The minor of 1.x."""
        return self.gates.version.minor

    @property
    def identity(self) -> tuple[object, ...]:
        """Its content as something that can be a key."""
        return self.gates.version, frozenset(self.gates.explicit.items()), self.stock

    @property
    def plugins_on_record(self) -> bool:
        """True if a plugin that the catalogue does not know cannot exist."""
        return self.stock and on_record(self.gates.version)
