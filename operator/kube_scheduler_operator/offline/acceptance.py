"""What a place accepts: a provider, an autoscaler, or a third-party scheduler, as in `--for`.

places.py has their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..base.findings import Path, Problem, listing
from ..profiles.aks_support import FIELDS, PLUGINS, RESERVED_PROFILE
from ..schedulerconfig.in_tree_plugins import PLUGINS as IN_TREE
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from ..schedulerconfig.target_scheduler import Target

NOT_SUPPORTED: Final = "PluginNotSupported"
FIELD_NOT_SUPPORTED: Final = "FieldNotSupported"
PROFILE_NOT_SUPPORTED: Final = "ProfileNotSupported"
RESERVED: Final = "ReservedProfile"
_SECONDARY: Final = "run the profile in a secondary scheduler"

Refusal = Callable[[Mapping[str, Any], Target], Iterator[Problem]]


def refused(place: str, config: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    """What a place does not take of a configuration; nothing for an unknown place."""
    check = _PLACES.get(place)
    if check is not None:
        yield from check(config, target)


def _aks(config: Mapping[str, Any], _: Target) -> Iterator[Problem]:
    yield from _fields(config, "AKS", FIELDS)
    for index, profile in _profiles(config):
        if profile.get("schedulerName") == RESERVED_PROFILE:
            yield Problem(
                RESERVED,
                ("profiles", index, "schedulerName"),
                f'AKS reserves the profile "{RESERVED_PROFILE}"',
                "use another name",
            )
        for path, name in _plugins(profile):
            if name not in PLUGINS and name in IN_TREE:
                yield Problem(
                    NOT_SUPPORTED,
                    ("profiles", index, *path),
                    f"{name} is not one of the {len(PLUGINS)} plugins that AKS documents as "
                    "configurable",
                    f"remove it, or {_SECONDARY}",
                )


def _fields(config: Mapping[str, Any], who: str, taken: tuple[str, ...]) -> Iterator[Problem]:
    for key in config:
        if key not in (*taken, "apiVersion", "kind"):
            takes = f"{who} takes {listing(taken)} only" if taken else f"{who} takes no {key}"
            yield Problem(FIELD_NOT_SUPPORTED, (key,), takes, f"remove it, or {_SECONDARY}")


def _eks(config: Mapping[str, Any], _: Target) -> Iterator[Problem]:
    yield from _fields(config, "EKS", ("profiles",))
    for index, profile in _profiles(config):
        if profile.get("schedulerName") not in (None, DEFAULT_SCHEDULER):
            yield _profile("EKS", index, profile)
            continue
        for key in profile:
            if key not in ("schedulerName", "pluginConfig"):
                yield Problem(
                    FIELD_NOT_SUPPORTED,
                    ("profiles", index, key),
                    "EKS takes the scoringStrategy of NodeResourcesFit only",
                    f"remove it, or {_SECONDARY}",
                )
        for at, entry in _objects(profile.get("pluginConfig")):
            if entry.get("name") != "NodeResourcesFit":
                yield Problem(
                    NOT_SUPPORTED,
                    ("profiles", index, "pluginConfig", at, "name"),
                    f"EKS takes arguments of NodeResourcesFit only, not of {entry.get('name')}",
                    f"remove it, or {_SECONDARY}",
                )
                continue
            strategy = _map(_map(entry.get("args")).get("scoringStrategy"))
            kind = strategy.get("type")
            if kind not in (None, "LeastAllocated", "MostAllocated"):
                yield Problem(
                    FIELD_NOT_SUPPORTED,
                    (
                        "profiles", index, "pluginConfig", at, "args", "scoringStrategy", "type",
                    ),
                    f"EKS takes the strategies LeastAllocated and MostAllocated, not {kind}",
                    f"use one of them, or {_SECONDARY}",
                )  # fmt: skip


def _gardener(*_: object) -> Iterator[Problem]:
    yield Problem(
        FIELD_NOT_SUPPORTED,
        (),
        "a Shoot of Gardener takes no KubeSchedulerConfiguration, only a profile (balanced or "
        "bin-packing) and feature gates",
        f"see what is closest with `kubectl scheduler compose --for gardener`, or {_SECONDARY}",
    )


def _talos(config: Mapping[str, Any], _: Target) -> Iterator[Problem]:
    if _map(config.get("clientConnection")).get("kubeconfig"):
        yield Problem(
            FIELD_NOT_SUPPORTED,
            ("clientConnection", "kubeconfig"),
            "Talos sets the kubeconfig itself",
            "remove it",
        )


def _extenders_unseen(config: Mapping[str, Any], who: str) -> Iterator[Problem]:
    for index, extender in _objects(config.get("extenders")):
        if extender.get("filterVerb"):
            yield Problem(
                "ExtenderNotSimulated",
                ("extenders", index, "filterVerb"),
                f"{who} calls no extenders, so it counts on nodes that this filter rejects, and "
                "does not add others",
                "let the extender score instead of filter",
                "warning",
            )


def _autoscaler(config: Mapping[str, Any], _: Target) -> Iterator[Problem]:
    yield from _extenders_unseen(config, "cluster-autoscaler")


def _karpenter(config: Mapping[str, Any], _: Target) -> Iterator[Problem]:
    yield from _extenders_unseen(config, "Karpenter")


def _openshift(*_: object) -> Iterator[Problem]:
    yield Problem(
        FIELD_NOT_SUPPORTED,
        (),
        "OpenShift's cluster-kube-scheduler-operator takes no KubeSchedulerConfiguration, only "
        "spec.profile of Scheduler/cluster",
        "use the secondary-scheduler-operator, or the operator of this project",
        "warning",
    )


_PLACES: Final[Mapping[str, Refusal]] = {
    "aks": _aks,
    "eks": _eks,
    "gardener": _gardener,
    "talos": _talos,
    "cluster-autoscaler": _autoscaler,
    "karpenter": _karpenter,
    "openshift": _openshift,
}
"""Places that take less than kube-scheduler does; the others take every configuration."""


def _profile(who: str, index: int, profile: Mapping[str, Any]) -> Problem:
    name = profile.get("schedulerName")
    return Problem(
        PROFILE_NOT_SUPPORTED,
        ("profiles", index, "schedulerName"),
        f'{who} does not take the profile "{name}"',
        _SECONDARY,
    )


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def _profiles(config: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    yield from _objects(config.get("profiles"))


def _plugins(profile: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for point, lists in _map(profile.get("plugins")).items():
        for key in ("enabled", "disabled"):
            for at, entry in _objects(_map(lists).get(key)):
                yield ("plugins", point, key, at, "name"), str(entry.get("name"))
    for at, entry in _objects(profile.get("pluginConfig")):
        yield ("pluginConfig", at, "name"), str(entry.get("name"))
