"""What a path of the API names: a collection, an object or a subresource of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from ..kube.resource import Resource
from .kinds import KINDS, Object
from .world import Key

_BY_PATH: Final = {
    (served.group, served.version, served.plural): kind.resource
    for kind in KINDS.values()
    for served in kind.versions()
}


@dataclass(frozen=True, slots=True)
class RequestTarget:
    resource: Resource  # in the version that the world has
    version: str  # that was requested
    namespace: str
    name: str  # empty: the collection
    subresource: str

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def requested(self) -> Resource:
        """The kind in the version that was requested."""
        return replace(self.resource, version=self.version)

    def in_version(self, obj: Object) -> Object:
        """Return an object of the world in the version that was requested."""
        kind = KINDS.get(self.resource)
        return kind.in_version(self.version, obj) if kind else obj

    def content_in_version(self, content: bytes) -> bytes:
        """Do the same with an object that is JSON."""
        if self.version == self.resource.version:
            return content
        return orjson.dumps(self.in_version(orjson.loads(content)))

    def items(self, contents: Iterable[bytes]) -> list[bytes]:
        """Return the objects of a list as JSON: like those of a real one, they name no kind."""
        requested = self.requested
        named = {"apiVersion": requested.api_version, "kind": requested.kind}
        start = orjson.dumps(named).replace(b"}", b",")  # as `World.add` writes it
        rest = len(start)
        return [
            b"{" + content[rest:] if content.startswith(start) else content
            for content in map(self.content_in_version, contents)
        ]


def target_of(parts: Sequence[str]) -> RequestTarget | None:
    """Return what the parts of a path name; None: nothing.

    A kind that no world has is a kind without objects: plugins of others read their own.
    """
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    resource = _BY_PATH.get((group, version, plural))
    if resource is None:
        resource = Resource(group, version, plural, "", namespaced=bool(namespace))
    return RequestTarget(resource, version, namespace, name, subresource)
