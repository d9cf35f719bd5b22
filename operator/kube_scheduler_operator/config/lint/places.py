"""The names of `validate --for`: what they mean for a check, and what each place supports.

A place is a provider, an autoscaler, or another scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from ...base.platform import PLATFORMS
from ..effective.profiles.aks_support import FIELDS, RESERVED_PROFILE, unsupported_plugins
from ..language.plugins.in_tree_plugins import PLUGINS as IN_TREE
from ..language.plugins.known_schedulers import known_scheduler
from ..language.schema import DEFAULT_SCHEDULER
from ..language.versions import Version
from .checks import CheckOptions
from .forms.document_fields import at, objects
from .forms.volcano import NAME as VOLCANO
from .forms.volcano import OWN_CHECK

UPSTREAM: Final = "upstream"
OPENSHIFT: Final = "openshift"
SCHEDULERS: Final = ("scheduler-plugins", "koordinator")
"""Third-party schedulers that are made of kube-scheduler, whose plugins are on record."""
PROVIDERS: Final = (
    "aks", "eks", "gardener", "k3s", "rke2", "kubeadm", "kubeadm-patches", "talos",
    "cluster-autoscaler", "karpenter",
)  # fmt: skip
"""The names of `compose --for`, which need not be imported for a check."""
OWN_RELEASES: Final = ("gardener", "talos", "karpenter")
"""Providers whose releases are not those of Kubernetes."""
PLACES: Final = (UPSTREAM, *PROVIDERS, OPENSHIFT, *SCHEDULERS)


def options_for(word: str, options: CheckOptions) -> CheckOptions:
    """Return the options for `NAME[:VERSION]`.

    Raises:
        ValueError: the name is unknown, or the version is not a version.
    """
    name, colon, release = word.partition(":")
    if name == VOLCANO:
        raise ValueError(f"Volcano's configuration is not checked here: {OWN_CHECK}; remove --for")
    if name not in PLACES:
        raise ValueError(f'"{name}" is not {listing(PLACES)}{did_you_mean(name, PLACES)}')
    version = Version.parse(release) if colon else None
    options = replace(options, place=name)
    if name in SCHEDULERS:
        known = known_scheduler(name, release)
        if known is None:  # a test ensures that each name is on record
            return options
        gates = replace(options.gates, version=known.rules)
        return replace(options, gates=gates, stock=False, scheduler=known.key)
    if version is not None and name not in OWN_RELEASES:
        options = replace(options, gates=replace(options.gates, version=version))
    return replace(options, platform=PLATFORMS.get(name, options.platform))


# --- what a place supports -----------------------------------------------------------------------

NOT_SUPPORTED: Final = "PluginNotSupported"
FIELD_NOT_SUPPORTED: Final = "FieldNotSupported"
_SECONDARY: Final = "run the profile in a secondary scheduler"
_REMOVE: Final = f"remove it, or {_SECONDARY}"

Refusal = Callable[[Mapping[str, Any]], Iterator[Problem]]


def refused(place: str, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a place does not support; nothing for an unknown place."""
    check = _REFUSALS.get(place)
    if check is not None:
        yield from check(config)


def _aks(config: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _fields(config, "AKS", FIELDS)
    for index, profile in objects(config.get("profiles")):
        path: Path = ("profiles", index)
        if profile.get("schedulerName") == RESERVED_PROFILE:
            message, where = f'AKS reserves the profile "{RESERVED_PROFILE}"', "schedulerName"
            yield Problem("ReservedProfile", (*path, where), message, "use another name")
        for below, name, wrong in unsupported_plugins(profile):
            if name in IN_TREE:
                yield Problem(NOT_SUPPORTED, (*path, *below), wrong, _REMOVE)


def _fields(config: Mapping[str, Any], who: str, supported: tuple[str, ...]) -> Iterator[Problem]:
    message = f"{who} supports only {listing(supported)}"
    for key in config:
        if key not in (*supported, "apiVersion", "kind"):
            yield Problem(FIELD_NOT_SUPPORTED, (key,), message, _REMOVE)


def _eks(config: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _fields(config, "EKS", ("profiles",))
    for index, profile in objects(config.get("profiles")):
        path: Path = ("profiles", index)
        name = profile.get("schedulerName")
        if name not in (None, DEFAULT_SCHEDULER):
            message = f'EKS does not support the profile "{name}"'
            yield Problem("ProfileNotSupported", (*path, "schedulerName"), message, _SECONDARY)
            continue
        for key in profile:
            if key not in ("schedulerName", "pluginConfig"):
                message = "EKS supports only the scoringStrategy of NodeResourcesFit"
                yield Problem(FIELD_NOT_SUPPORTED, (*path, key), message, _REMOVE)
        for number, entry in objects(profile.get("pluginConfig")):
            yield from _eks_arguments(entry, (*path, "pluginConfig", number))


def _eks_arguments(entry: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    if entry.get("name") != "NodeResourcesFit":
        message = f"EKS supports only arguments of NodeResourcesFit, not of {entry.get('name')}"
        yield Problem(NOT_SUPPORTED, (*path, "name"), message, _REMOVE)
        return
    strategy = ("args", "scoringStrategy", "type")
    kind = at(entry, *strategy)
    if kind not in (None, "LeastAllocated", "MostAllocated"):
        message = f"EKS supports the strategies LeastAllocated and MostAllocated, not {kind}"
        fix = f"use one of them, or {_SECONDARY}"
        yield Problem(FIELD_NOT_SUPPORTED, (*path, *strategy), message, fix)


def _gardener(*_: object) -> Iterator[Problem]:
    message = (
        "a Gardener Shoot supports no KubeSchedulerConfiguration, only a profile (balanced or "
        "bin-packing) and feature gates"
    )
    fix = f"see what is closest with `kubectl scheduler compose --for gardener`, or {_SECONDARY}"
    yield Problem(FIELD_NOT_SUPPORTED, (), message, fix)


def _talos(config: Mapping[str, Any]) -> Iterator[Problem]:
    path = ("clientConnection", "kubeconfig")
    if at(config, *path):
        message = "Talos sets the kubeconfig itself"
        yield Problem(FIELD_NOT_SUPPORTED, path, message, "remove it")


def unseen_filters(config: Mapping[str, Any], who: str) -> Iterator[Problem]:
    """Report extenders that filter: an autoscaler calls none, and scores do not matter to it."""
    message = (
        f"{who} calls no extenders, so it counts on nodes that this filter rejects, and does not "
        "add others"
    )
    fix = "let the extender score instead of filter"
    for index, extender in objects(config.get("extenders")):
        if extender.get("filterVerb"):
            path = ("extenders", index, "filterVerb")
            yield Problem("ExtenderNotSimulated", path, message, fix, WARNING)


def _openshift(*_: object) -> Iterator[Problem]:
    message = (
        "OpenShift's cluster-kube-scheduler-operator supports no KubeSchedulerConfiguration, only "
        "spec.profile of Scheduler/cluster"
    )
    fix = "use the secondary-scheduler-operator, or the operator of this project"
    yield Problem(FIELD_NOT_SUPPORTED, (), message, fix, WARNING)


_REFUSALS: Final[Mapping[str, Refusal]] = {
    "aks": _aks,
    "eks": _eks,
    "gardener": _gardener,
    "talos": _talos,
    "cluster-autoscaler": partial(unseen_filters, who="cluster-autoscaler"),
    "karpenter": partial(unseen_filters, who="Karpenter"),
    "openshift": _openshift,
}
"""Places that support less than kube-scheduler does; the others support every configuration."""
