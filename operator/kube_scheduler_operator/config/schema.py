"""The fields of KubeSchedulerConfiguration v1, and the strict decoding that kube-scheduler does.

The tables restate the Go structs of k8s.io/kube-scheduler/config/v1 and what they embed. A field
says since which minor it exists; decoding is strict, so an unknown field is an error, and a number
for a string is one as well.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .findings import Path, Problem, did_you_mean
from .values import seconds

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

UNKNOWN_FIELD: Final = "UnknownField"
INVALID_TYPE: Final = "InvalidType"
INVALID_VALUE: Final = "InvalidValue"

Scalar = Literal["string", "bool", "int32", "int64", "float", "duration", "bytes", "any"]
STRING: Final = "string"
BOOL: Final = "bool"
INT32: Final = "int32"
INT64: Final = "int64"
DURATION: Final = "duration"


@dataclass(frozen=True, slots=True)
class List:
    """A list of one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class Map:
    """A map from strings to one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields; `since` holds the minor of 1.x that brought a field, if not all have it."""

    fields: Mapping[str, Type]
    since: Mapping[str, int] | None = None

    def known(self, minor: int) -> list[str]:
        """The fields that exist in 1.`minor`."""
        since = self.since or {}
        return [name for name in self.fields if since.get(name, 0) <= minor]


Type = Scalar | List | Map | Struct

POINTS: Final = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
    "permit", "preBind", "bind", "postBind", "placementGenerate", "placementScore",
)  # fmt: skip
"""Extension points at which a plugin can be listed, in the order of a scheduling cycle."""
POINTS_SINCE: Final = {"placementGenerate": 36, "placementScore": 36}

_PLUGIN: Final = Struct({"name": STRING, "weight": INT32})
_PLUGIN_SET: Final = Struct({"enabled": List(_PLUGIN), "disabled": List(_PLUGIN)})
_PLUGINS: Final = Struct(dict.fromkeys((*POINTS, "multiPoint"), _PLUGIN_SET), since=POINTS_SINCE)
_PROFILE: Final = Struct({
    "schedulerName": STRING,
    "percentageOfNodesToScore": INT32,
    "plugins": _PLUGINS,
    # The arguments' own types depend on the plugin: ARGS below.
    "pluginConfig": List(Struct({"name": STRING, "args": "any"})),
})  # fmt: skip
_EXTENDER: Final = Struct({
    "urlPrefix": STRING,
    "filterVerb": STRING,
    "preemptVerb": STRING,
    "prioritizeVerb": STRING,
    "weight": INT64,
    "bindVerb": STRING,
    "enableHTTPS": BOOL,
    "tlsConfig": Struct({
        "insecure": BOOL, "serverName": STRING,
        "certFile": STRING, "keyFile": STRING, "caFile": STRING,
        "certData": "bytes", "keyData": "bytes", "caData": "bytes",
    }),
    "httpTimeout": DURATION,
    "nodeCacheCapable": BOOL,
    "managedResources": List(Struct({"name": STRING, "ignoredByScheduler": BOOL})),
    "ignorable": BOOL,
})  # fmt: skip
CONFIGURATION: Final = Struct({
    "apiVersion": STRING,
    "kind": STRING,
    "parallelism": INT32,
    "leaderElection": Struct({
        "leaderElect": BOOL,
        "leaseDuration": DURATION, "renewDeadline": DURATION, "retryPeriod": DURATION,
        "resourceLock": STRING, "resourceName": STRING, "resourceNamespace": STRING,
    }),
    "clientConnection": Struct({
        "kubeconfig": STRING, "acceptContentTypes": STRING, "contentType": STRING,
        "qps": "float", "burst": INT32,
    }),
    "enableProfiling": BOOL,
    "enableContentionProfiling": BOOL,
    "percentageOfNodesToScore": INT32,
    "podInitialBackoffSeconds": INT64,
    "podMaxBackoffSeconds": INT64,
    "profiles": List(_PROFILE),
    "extenders": List(_EXTENDER),
    "delayCacheUntilActive": BOOL,
})  # fmt: skip

_REQUIREMENTS: Final = List(Struct({"key": STRING, "operator": STRING, "values": List(STRING)}))
_NODE_SELECTOR_TERM: Final = Struct({
    "matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS,
})  # fmt: skip
_SHAPE: Final = List(Struct({"utilization": INT32, "score": INT32}))
_RESOURCES: Final = List(Struct({"name": STRING, "weight": INT64}))
_TOPOLOGY_SPREAD_CONSTRAINT: Final = Struct({
    "maxSkew": INT32, "topologyKey": STRING, "whenUnsatisfiable": STRING,
    "labelSelector": Struct({"matchLabels": Map(STRING), "matchExpressions": _REQUIREMENTS}),
    "minDomains": INT32, "nodeAffinityPolicy": STRING, "nodeTaintsPolicy": STRING,
    "matchLabelKeys": List(STRING),
})  # fmt: skip


def _args(fields: Mapping[str, Type]) -> Struct:
    return Struct({"apiVersion": STRING, "kind": STRING, **fields})


ARGS: Final[Mapping[str, Struct]] = {
    "DefaultPreemption": _args({
        "minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32,
    }),
    "DynamicResources": _args({"filterTimeout": DURATION, "bindingTimeout": DURATION}),
    "InterPodAffinity": _args({
        "hardPodAffinityWeight": INT32, "ignorePreferredTermsOfExistingPods": BOOL,
    }),
    "NodeAffinity": _args({
        "addedAffinity": Struct({
            "requiredDuringSchedulingIgnoredDuringExecution": Struct({
                "nodeSelectorTerms": List(_NODE_SELECTOR_TERM),
            }),
            "preferredDuringSchedulingIgnoredDuringExecution": List(Struct({
                "weight": INT32, "preference": _NODE_SELECTOR_TERM,
            })),
        }),
    }),
    "NodeResourcesBalancedAllocation": _args({"resources": _RESOURCES}),
    "NodeResourcesFit": _args({
        "ignoredResources": List(STRING),
        "ignoredResourceGroups": List(STRING),
        "scoringStrategy": Struct({
            "type": STRING,
            "resources": _RESOURCES,
            "requestedToCapacityRatio": Struct({"shape": _SHAPE}),
        }),
    }),
    "PodTopologySpread": _args({
        "defaultConstraints": List(_TOPOLOGY_SPREAD_CONSTRAINT), "defaultingType": STRING,
    }),
    "VolumeBinding": _args({"bindTimeoutSeconds": INT64, "shape": _SHAPE}),
}  # fmt: skip
"""The arguments that kube-scheduler decodes; those of other plugins it passes on unread."""
ARGS_SINCE: Final = {"DynamicResources": 34}

_LIMITS: Final = {INT32: 2**31, INT64: 2**63}


def decode(
    value: Any, kind: Type, path: Path, minor: int, *, strict: bool = True
) -> Iterator[Problem]:
    """What strict decoding of `value` as `kind` by kube-scheduler 1.`minor` complains about.

    With `strict=False` unknown fields pass: a newer or custom scheduler may know them.
    """
    if isinstance(kind, Struct):
        if not isinstance(value, Mapping):
            yield _wrong_type(value, "an object", path)
            return
        known = kind.known(minor)
        for key, item in value.items():
            if key in known:
                yield from decode(item, kind.fields[key], (*path, key), minor, strict=strict)
            elif strict:
                yield _unknown_field(key, kind, known, path, minor)
    elif isinstance(kind, List):
        if not isinstance(value, list):
            yield _wrong_type(value, "a list", path)
            return
        for index, item in enumerate(value):
            yield from decode(item, kind.item, (*path, index), minor, strict=strict)
    elif isinstance(kind, Map):
        if not isinstance(value, Mapping):
            yield _wrong_type(value, "an object", path)
            return
        for key, item in value.items():
            yield from decode(item, kind.item, (*path, key), minor, strict=strict)
    else:
        yield from _decode_scalar(value, kind, path)


def _unknown_field(key: str, kind: Struct, known: list[str], path: Path, minor: int) -> Problem:
    if kind.since and key in kind.since:
        hint = f", it came with 1.{kind.since[key]}; remove it"
    else:
        hint = did_you_mean(key, known) or "; remove it"
    return Problem(
        UNKNOWN_FIELD, (*path, key), f'kube-scheduler 1.{minor} has no field "{key}" here{hint}'
    )


def _decode_scalar(value: Any, kind: Scalar, path: Path) -> Iterator[Problem]:
    if kind in (STRING, DURATION, "bytes"):
        if not isinstance(value, str):
            yield _wrong_type(
                value, "a duration such as 15s" if kind == DURATION else "a string", path
            )
        elif kind == DURATION:
            try:
                seconds(value)
            except ValueError as error:
                yield Problem(INVALID_VALUE, path, f"{error}; write a Go duration")
        elif kind == "bytes":
            try:
                base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
            except (binascii.Error, ValueError):
                yield Problem(INVALID_VALUE, path, "the value is not base64; encode it")
    elif kind == BOOL:
        if not isinstance(value, bool):
            yield _wrong_type(value, "true or false", path)
    elif kind == "float":
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield _wrong_type(value, "a number", path)
    elif kind in (INT32, INT64):
        limit = _LIMITS[kind]
        if isinstance(value, bool) or not isinstance(value, int):
            yield _wrong_type(value, "an integer", path)
        elif not -limit <= value < limit:
            yield Problem(
                INVALID_VALUE, path, f"{value} does not fit into {kind}; use a smaller one"
            )


def _wrong_type(value: Any, wanted: str, path: Path) -> Problem:
    names = {bool: "a boolean", str: "a string", dict: "an object", list: "a list"}
    got = names.get(type(value), "a number")
    return Problem(INVALID_TYPE, path, f"this is {got} but must be {wanted}")
