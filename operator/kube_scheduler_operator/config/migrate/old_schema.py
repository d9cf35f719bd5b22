"""The schemas of old versions, and strict decoding of documents against them.

The tables restate the Go structs of k8s.io/kube-scheduler/config in the last release with each
version. A wrong type is an error; an unknown field is removed and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base.decoding import UNKNOWN_FIELD
from ...base.findings import Path, Problem
from ...base.go_values import without_nulls
from ..language.decode import decode_problems, decoded
from ..language.plugins.in_tree_plugins import NEWEST, PLUGINS
from ..language.schema import (
    ARGS,
    BOOL,
    CONFIGURATION,
    INT32,
    INT64,
    STRING,
    List,
    Map,
    Struct,
    Type,
    arguments_struct,
)
from . import old_defaults
from .changes import ConversionLog, refuse
from .old_defaults import FORMER_PLUGINS

_DURATIONS: Final = ((3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"),
                     (1_000_000, "ms"), (1_000, "us"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of the configuration."""

    name: str  # as in its apiVersion; for display
    last_minor: int  # of 1.x that reads it
    schema: Struct
    defaults: old_defaults.PointPlugins | None = None  # None: the default plugins of v1
    strict: bool = True  # False if kube-scheduler ignored unknown fields


_V1: Final = CONFIGURATION.fields
_PLUGIN: Final = Struct({"name": STRING, "weight": INT32})
_PLUGIN_SET: Final = Struct({"enabled": List(_PLUGIN), "disabled": List(_PLUGIN)})
_PLUGIN_CONFIG: Final[Type] = List(Struct({"name": STRING, "args": "any"}))
_POINTS: Final = (
    "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
    "preBind", "bind", "postBind",
)  # fmt: skip


def _fields(kind: Type) -> Mapping[str, Type]:
    """Return the fields of a struct, or of the structs in a list."""
    inner = kind.item if isinstance(kind, List) else kind
    return inner.fields if isinstance(inner, Struct) else {}


def _profiles(*points: str) -> List:
    return List(Struct({
        "schedulerName": STRING,
        "percentageOfNodesToScore": INT32,
        "plugins": Struct(dict.fromkeys(points, _PLUGIN_SET)),
        "pluginConfig": _PLUGIN_CONFIG,
    }))  # fmt: skip


_COMMON: Final[Mapping[str, Type]] = {
    "apiVersion": STRING,
    "kind": STRING,
    **{
        name: _V1[name]
        for name in (
            "clientConnection", "enableProfiling", "enableContentionProfiling",
            "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
        )
    },
}  # fmt: skip
_ADDRESSES: Final[Mapping[str, Type]] = {"healthzBindAddress": STRING, "metricsBindAddress": STRING}
_BETA: Final[Mapping[str, Type]] = {
    **_COMMON,
    "parallelism": INT32,
    "leaderElection": _V1["leaderElection"],
    "extenders": _V1["extenders"],
}

_ALPHA1: Final = Struct({
    **_COMMON,
    **_ADDRESSES,
    "schedulerName": STRING,
    "algorithmSource": Struct({
        "provider": STRING,
        "policy": Struct({
            "file": Struct({"path": STRING}),
            "configMap": Struct({"namespace": STRING, "name": STRING}),
        }),
    }),
    "hardPodAffinitySymmetricWeight": INT32,
    "leaderElection": Struct({
        **_fields(_V1["leaderElection"]),
        "lockObjectName": STRING, "lockObjectNamespace": STRING,
    }),
    "disablePreemption": BOOL,
    "bindTimeoutSeconds": INT64,
    "failureDomains": STRING,
    "plugins": Struct(dict.fromkeys((*_POINTS, "unreserve"), _PLUGIN_SET)),
    "pluginConfig": _PLUGIN_CONFIG,
})  # fmt: skip
_ALPHA2: Final = Struct({
    **_COMMON,
    **_ADDRESSES,
    "leaderElection": _V1["leaderElection"],
    "disablePreemption": BOOL,
    "bindTimeoutSeconds": INT64,
    "profiles": _profiles(*_POINTS, "unreserve"),
    "extenders": _V1["extenders"],
})  # fmt: skip
_BETA1: Final = Struct({
    **_BETA,
    **_ADDRESSES,
    "disablePreemption": BOOL,
    "featureGates": Map(BOOL),
    "profiles": _profiles(*_POINTS, "unreserve"),
})  # fmt: skip
_BETA2: Final = Struct({**_BETA, **_ADDRESSES, "profiles": _profiles("preEnqueue", *_POINTS)})
_BETA3: Final = Struct({
    **_BETA,
    "delayCacheUntilActive": BOOL,
    "profiles": _profiles("preEnqueue", *_POINTS, "multiPoint"),
})  # fmt: skip

_LABELS: Final = Struct({"labels": List(STRING)})
_RATIO: Final = Struct({
    "shape": List(Struct({"utilization": INT32, "score": INT32})),
    "resources": List(Struct({"name": STRING, "weight": INT64})),
})  # fmt: skip
_V1_EXTENDER: Final = _fields(_V1["extenders"])
_POLICY: Final = Struct({
    "apiVersion": STRING,
    "kind": STRING,
    "predicates": List(Struct({
        "name": STRING,
        "argument": Struct({
            "serviceAffinity": _LABELS,
            "labelsPresence": Struct({"labels": List(STRING), "presence": BOOL}),
        }),
    })),
    "priorities": List(Struct({
        "name": STRING,
        "weight": INT64,
        "argument": Struct({
            "serviceAntiAffinity": Struct({"label": STRING}),
            "labelPreference": Struct({"label": STRING, "presence": BOOL}),
            "requestedToCapacityRatioArguments": _RATIO,
        }),
    })),
    "extenders": List(Struct({**_V1_EXTENDER, "httpTimeout": INT64})),
    "hardPodAffinitySymmetricWeight": INT32,
    "alwaysCheckAllPredicates": BOOL,
})  # fmt: skip
_EXTENDER_FIELDS: Final[Mapping[str, str]] = {name.lower(): name for name in _V1_EXTENDER}
_TLS_FIELDS: Final[Mapping[str, str]] = {
    name.lower(): name for name in _fields(_V1_EXTENDER["tlsConfig"])
}

POLICY: Final = SourceVersion("the Policy", 22, _POLICY, old_defaults.BETA1, strict=False)
V1: Final = SourceVersion("v1", 0, CONFIGURATION)
SOURCE_VERSIONS: Final[Mapping[str, SourceVersion]] = {
    source.name: source
    for source in (
        SourceVersion("v1alpha1", 18, _ALPHA1, old_defaults.ALPHA, strict=False),
        SourceVersion("v1alpha2", 18, _ALPHA2, old_defaults.ALPHA),
        SourceVersion("v1beta1", 24, _BETA1, old_defaults.BETA1),
        SourceVersion("v1beta2", 27, _BETA2, old_defaults.BETA2),
        SourceVersion("v1beta3", 28, _BETA3),
        V1,
    )
}


_OLD_ARGS: Final[Mapping[str, Struct]] = {
    **ARGS,
    "NodeLabel": arguments_struct({
        "presentLabels": List(STRING), "absentLabels": List(STRING),
        "presentLabelsPreference": List(STRING), "absentLabelsPreference": List(STRING),
    }),
    "ServiceAffinity": arguments_struct({
        "affinityLabels": List(STRING), "antiAffinityLabelsPreference": List(STRING),
    }),
    "NodeResourcesLeastAllocated": arguments_struct({"resources": _RATIO.fields["resources"]}),
    "NodeResourcesMostAllocated": arguments_struct({"resources": _RATIO.fields["resources"]}),
    "RequestedToCapacityRatio": arguments_struct(_RATIO.fields),
}  # fmt: skip


def is_in_tree(name: str) -> bool:
    return name in PLUGINS or name in FORMER_PLUGINS


def read(
    document: Mapping[str, Any], source: SourceVersion, report: ConversionLog
) -> dict[str, Any]:
    """Copy the document with only the version's fields, spelled as in v1; changes are reported.

    Raises:
        ConversionError: a value has the wrong type.
    """
    document = without_nulls(spelled(document, source, report))
    unknown = unknown_fields(document, source.schema, (), source.last_minor)
    known: dict[str, Any] = decoded(document, source.schema, source.last_minor)
    for entry, struct, path in _arguments(known):
        entry["args"] = without_nulls(entry["args"])
        unknown += unknown_fields(entry["args"], struct, path, source.last_minor)
    for problem in unknown:
        _remove(known, problem.path)
        if source.strict:
            report.lost(problem.path, "removed", problem.message)
        else:
            report.same(problem.path, "removed, as kube-scheduler ignored it", problem.message)
    return known


def foreign_fields(document: Mapping[str, Any], source: SourceVersion) -> list[Path]:
    """Return the paths of fields that the version does not have, or has with another type."""
    minor = source.last_minor or NEWEST.minor
    value = without_nulls(spelled(document, source, ConversionLog()))
    problems = list(decode_problems(value, source.schema, (), minor))
    if not problems:
        for entry, struct, path in _arguments(decoded(value, source.schema, minor)):
            problems += decode_problems(without_nulls(entry["args"]), struct, path, minor)
    return [problem.path for problem in problems]


def unknown_fields(value: Any, schema: Struct, path: Path, minor: int) -> list[Problem]:
    """Return the fields of a value that its schema does not have.

    Raises:
        ConversionError: a value has the wrong type.
    """
    problems = list(decode_problems(value, schema, path, minor))
    refuse(problem for problem in problems if problem.reason != UNKNOWN_FIELD)
    return problems


def spelled(
    document: Mapping[str, Any], source: SourceVersion, report: ConversionLog
) -> Mapping[str, Any]:
    """Spell the fields of extenders as in v1.

    Versions before v1 ignored the case of these fields: a Policy has `enableHttps`, and the oldest
    ones have `BindVerb` and TLS fields in capitals.
    """
    extenders = document.get("extenders")
    if source is V1 or not isinstance(extenders, list):
        return document
    fields = [
        _spelled(extender, _EXTENDER_FIELDS, ("extenders", index), report)
        for index, extender in enumerate(extenders)
    ]
    return {**document, "extenders": fields}


def _spelled(value: Any, known: Mapping[str, str], path: Path, report: ConversionLog) -> Any:
    if not isinstance(value, Mapping):
        return value
    fields: dict[str, Any] = {}
    for key, item in value.items():
        name = known.get(str(key).lower(), str(key))
        if name != key:
            report.same((*path, key), f"renamed to {name}", "v1 field names are case-sensitive")
        if name == "tlsConfig":
            item = _spelled(item, _TLS_FIELDS, (*path, key), report)
        fields[name] = item
    return fields


def _plugin_configs(document: Mapping[str, Any]) -> Iterable[tuple[list[Any], Path]]:
    if "pluginConfig" in document:
        yield document["pluginConfig"], ("pluginConfig",)
    for index, profile in enumerate(document.get("profiles", ())):
        yield profile.get("pluginConfig", []), ("profiles", index, "pluginConfig")


def _arguments(document: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Struct, Path]]:
    """Yield the entries of `pluginConfig` whose arguments have a schema, with it and their path."""
    for entries, path in _plugin_configs(document):
        for index, entry in enumerate(entries):
            struct = _OLD_ARGS.get(entry.get("name", ""))
            if struct is not None and "args" in entry:
                yield entry, struct, (*path, index, "args")


def _remove(document: Any, path: Path) -> None:
    """Remove an unknown field; decoding has already removed those outside of arguments."""
    for part in path[:-1]:
        document = document[part]
    document.pop(path[-1], None)


def duration(nanoseconds: int) -> str:
    """Format a Go duration in the largest unit that divides it: 5000000000 is `5s`."""
    for size, unit in _DURATIONS:
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"
