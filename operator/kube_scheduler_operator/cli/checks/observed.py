"""A fact that may be missing, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

T_co = TypeVar("T_co", covariant=True)


class NotObservedError(Exception):
    """What a check needs could not be read; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Observed(Generic[T_co]):
    """A value that was read, or the reason why it was not."""

    value: T_co | None = None
    error: str = ""  # why it was not read; empty if it was

    def get(self) -> T_co:
        """Get the value, or raise NotObservedError."""
        if self.error:
            raise NotObservedError(self.error)
        return cast("T_co", self.value)
