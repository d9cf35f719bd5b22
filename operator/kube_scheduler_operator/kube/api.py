"""The interface of an API client, so that tests can replace `client.ApiClient`.

Objects are plain dicts in both directions. Every method raises subclasses of `errors.KubeError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias

from .resource import ObjectRef, Resource

Object: TypeAlias = dict[str, Any]
"""An object as the API server sends it."""

Body: TypeAlias = Mapping[str, Any]
"""An object that is not modified."""

EventType: TypeAlias = Literal["Normal", "Warning"]
"""The type of an Event."""


class Propagation(Enum):
    """The deletion policy for the objects that a deleted object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An object of a list that was not read, because it is too large to be decoded."""

    kind: str
    namespace: str  # empty if it is cluster-scoped
    name: str
    uid: str
    excess: str  # the exceeded limit: "more than 100000 values"

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name} has {self.excess} and is left out"


@dataclass(frozen=True, slots=True)
class ListResult:
    """A list, or a page of it."""

    # the objects; of a list, with `apiVersion` and `kind` filled in
    items: list[Object] = field(default_factory=list)
    resource_version: str = ""  # the version of the collection
    left_out: tuple[LeftOut, ...] = ()  # the objects that are too large to be read
    more: str = ""  # the token of the rest; empty if the list is complete
    remaining: int = 0  # about how many objects the rest has; 0: not known
    kind: str = ""  # of a page, as the server sent it
    api_version: str = ""  # the same


class Api(Protocol):
    """Reading and writing objects."""

    async def get(self, ref: ObjectRef) -> Object:
        """Return one object. Raises NotFound if it does not exist."""

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ListResult:
        """Return all objects of a kind, in one namespace or (None) in all."""

    async def create(self, resource: Resource, obj: Body) -> Object:
        """Create `obj` (`metadata.generateName` is allowed). Raises AlreadyExists."""

    async def replace(
        self, resource: Resource, obj: Body, *, subresource: str | None = None
    ) -> Object:
        """PUT `obj`. With `metadata.resourceVersion`, raises Conflict if the object has changed."""

    async def patch(self, ref: ObjectRef, patch: Body) -> Object:
        """Change one object by a merge patch."""

    async def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete one object.

        Raises NotFound if it does not exist, Conflict if it has another uid.
        """
