"""Gives objects the fields that a world drops, by the schemas that an API server publishes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kube_scheduler_operator.kube.resource import Resource
from kube_scheduler_operator.simulate.kinds import BY_KIND, WorldKind, strip

from .conftest import ApiServer

Object = dict[str, Any]
Schema = Mapping[str, Any]
_DEEPEST: Final = 9
_OF_FORMATS: Final[Mapping[str, Sequence[Any]]] = {
    "date-time": ("2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z"),
    "byte": ("YQ==",),
}
_OF_TYPES: Final[Mapping[str, Sequence[Any]]] = {
    "integer": (7, 1, 0),
    "number": (7, 1, 0),
    "boolean": (True, False),
    "string": ("1", "n0", "true"),  # also an amount, the name of an object, and a yes
}
_OF_SERVER: Final = ("apiVersion", "kind", "metadata.resourceVersion")
"""What the API server of the simulation sets itself."""
ANNOTATIONS: Final = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "controller.kubernetes.io/pod-deletion-cost",
    "csi.volume.kubernetes.io/nodeid",
    "kubernetes.io/config.source",
    "kubernetes.io/createdby",
    "kubernetes.io/enforce-mountable-secrets",
    "node.alpha.kubernetes.io/ttl",
    "openstorage.io/auth-secret-name",
    "openstorage.io/auth-secret-namespace",
    "pv.kubernetes.io/migrated-to",
    "pv.kubernetes.io/provisioned-by",
    "resource.kubernetes.io/admin-access",
    "resource.kubernetes.io/pod-claim-name",
    "scheduler.alpha.kubernetes.io/critical-pod",
    "scheduler.alpha.kubernetes.io/preferAvoidPods",
    "scheduler.alpha.kubernetes.io/tolerations",
    "storageclass.beta.kubernetes.io/is-default-class",
    "volume.beta.kubernetes.io/mount-options",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-resizer",
)
"""Annotations of Kubernetes that a world drops; those that kube-scheduler reads are kept."""


class Schemas:
    """The schemas of kinds, as an API server publishes them."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._all: dict[str, Schema] = {}
        self._paths = api.request("GET", "/openapi/v3")["paths"]

    def of(self, resources: Sequence[Resource]) -> Schema | None:
        """Return the schema of the first of these versions of a kind that the server has."""
        for resource in resources:
            path = f"{'apis' if resource.group else 'api'}/{resource.api_version}"
            if path not in self._paths:
                continue
            self._all |= self._api.request("GET", f"/openapi/v3/{path}")["components"]["schemas"]
            wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
            for schema in self._all.values():
                if schema.get("x-kubernetes-group-version-kind") == [wanted]:
                    return schema
        return None

    def resolved(self, schema: Schema) -> Schema:
        while reference := schema.get("$ref") or schema.get("allOf", [{}])[0].get("$ref"):
            schema = self._all[reference.rpartition("/")[2]]
        return schema

    def fields(self, schema: Schema, depth: int = 0) -> int:
        """Count the fields of a kind at all depths."""
        resolved = self.resolved(schema)
        properties = resolved.get("properties") or self.resolved(resolved.get("items", {})).get(
            "properties", {}
        )
        if depth > _DEEPEST:
            return 0
        return sum(1 + self.fields(each, depth + 1) for each in properties.values())


class Fillers:
    """Gives objects the fields of their kinds that are dropped when a world takes them."""

    def __init__(self, schemas: Schemas, known: Mapping[Resource, Schema]) -> None:
        self._schemas = schemas
        self._known = known
        self._dropped: dict[str, bool] = {}

    def fill(
        self, obj: Mapping[str, Any], number: int, chosen: Callable[[str], bool]
    ) -> tuple[Object, Mapping[str, Any]]:
        """Return the object with those fields that are chosen, and these fields with their values.

        `number` chooses one of the values of each field.
        """
        kind = BY_KIND[obj["apiVersion"], obj["kind"]]
        schema = self._known.get(kind.resource)
        if schema is None:
            return dict(obj), {}
        # Which fields are dropped rarely depends on the object; where it does, all are tried.
        for outcomes in (self._dropped, {}):
            filler = _Filler(self._schemas, kind, obj, number, chosen, outcomes)
            filler.fill(schema)
            if filler.is_dropped():
                return filler.obj, filler.filled
        raise AssertionError(f"{kind.resource.kind} {obj['metadata']['name']} is not as it was")


class _Filler:
    def __init__(
        self,
        schemas: Schemas,
        kind: WorldKind,
        obj: Mapping[str, Any],
        number: int,
        chosen: Callable[[str], bool],
        outcomes: dict[str, bool],
    ) -> None:
        self.obj: Object = copy.deepcopy(dict(obj))
        self.filled: dict[str, Any] = {}  # path of such a field, without indices -> its value
        self._schemas = schemas
        self._kind = kind
        self._kept = strip(kind, copy.deepcopy(self.obj))
        self._number = number
        self._chosen = chosen
        self._outcomes = outcomes  # path -> whether it is dropped

    def fill(self, schema: Schema) -> None:
        title = self._kind.resource.kind
        self._fill(self.obj, schema, title)
        path = f"{title}.metadata.annotations"
        if self._chosen(path):
            values = self.obj["metadata"].setdefault("annotations", {})
            values |= dict.fromkeys(ANNOTATIONS, self._pick(("true", "1", "n0")))
            self.filled |= {f"{path}[{key}]": values[key] for key in ANNOTATIONS}

    def _fill(self, part: Object, schema: Schema, path: str) -> None:
        for name, described in self._schemas.resolved(schema).get("properties", {}).items():
            field = f"{path}.{name}"
            if field.partition(".")[2] in _OF_SERVER:
                continue
            resolved = self._schemas.resolved(described)
            value = part.get(name)
            if value is None:
                self._add(part, name, resolved, field)
            elif isinstance(value, dict):
                self._fill(value, resolved, field)
            elif isinstance(value, list):
                items = self._schemas.resolved(resolved.get("items", {}))
                for each in value:
                    if isinstance(each, dict):
                        self._fill(each, items, field)
                self._append(value, items, field)

    def _append(self, values: list[Any], schema: Schema, path: str) -> None:
        """Add one more entry of a list for each of its fields, where a world drops that entry."""
        properties = schema.get("properties", {})
        for at, (name, described) in enumerate(properties.items()):
            entry: Object = {"name": f"more-{at}"} if "name" in properties else {}
            values.append(entry)
            before = dict(entry)
            if name not in entry and self._are_dropped(f"{path}[]"):
                self._add(entry, name, self._schemas.resolved(described), f"{path}.{name}")
            if entry == before:
                values.pop()

    def _add(self, part: Object, name: str, schema: Schema, path: str) -> None:
        """Add a field, or the parts of it that are dropped."""
        if path.count(".") > _DEEPEST:
            return
        for value in self._values(schema):
            part[name] = value
            if self._are_dropped(path):
                break
            del part[name]
        else:
            return
        value, empty = part[name], copy.deepcopy(part[name])
        parts = value[0] if isinstance(value, list) and value else value
        items = self._schemas.resolved(schema.get("items", schema))
        has_fields = isinstance(parts, dict) and bool(items.get("properties"))
        if has_fields:
            self._fill(parts, items, path)
        if self._chosen(path):
            self.filled[path] = value if isinstance(value, (str, int)) else {}
        elif not has_fields or value == empty:
            del part[name]

    def is_dropped(self) -> bool:
        """Return whether a world takes of the object what it takes without these fields."""
        return strip(self._kind, self.obj) == self._kept

    def _are_dropped(self, path: str) -> bool:
        outcome = self._outcomes.get(path)
        if outcome is None:
            outcome = self._outcomes[path] = self.is_dropped()
        return outcome

    def _values(self, schema: Schema) -> Iterator[Any]:
        """Yield values of a schema, without fields of their own."""
        if schema.get("enum"):
            yield self._pick(schema["enum"])
        elif schema.get("oneOf"):  # a quantity, or a port
            yield self._pick(("1", "7"))
        elif schema.get("type") == "array":
            items = self._schemas.resolved(schema["items"])
            if "name" in items.get("properties", {}):
                yield [{"name": "more"}]
            else:
                yield from ([value] for value in self._values(items))
        elif schema.get("type") == "object" or "properties" in schema:
            more = schema.get("additionalProperties")
            values = self._values(self._schemas.resolved(more)) if more else ()
            yield from ({"x": value} for value in values)
            if not more:
                yield {}
        elif "type" in schema:
            yield self._pick(_OF_FORMATS.get(schema.get("format", "")) or _OF_TYPES[schema["type"]])

    def _pick(self, values: Sequence[Any]) -> Any:
        return values[self._number % len(values)]
