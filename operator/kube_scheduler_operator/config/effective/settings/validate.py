"""Validation of OperatorSettings.

While the current spec has an error, the last accepted version stays in use; it is validated again,
because the adopted settings may have changed. The CustomResourceDefinition has types and lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ....base import names
from ....base.bounded_cache import cached_by_content
from ....base.crd_schema import validate_object
from ....base.decoding import INVALID_TYPE, INVALID_VALUE
from ....base.defects import DEFECT
from ....base.environment import chooses_code, holds_credentials
from ....base.findings import NOT_ALLOWED, Finding, Path, Problem, did_you_mean, listing
from ....base.foreign_text import foreign
from ....base.objects import mapping
from ....base.platform import Platform
from ....base.quantities import MEMORY, amount
from ....base.spec_limits import limit_problems
from ....kube.resource import OPERATOR_SETTINGS
from ..attachment import ACCEPTED as LAST
from ..attachment import SPEC, Attachable, ValidationResult, last_accepted, path_from
from .requested_pod import (
    GROUPS,
    NOTHING_REQUESTED,
    RequestedPod,
    host_file_problems,
    requested_pod,
)
from .upgrade_check import FIELD

# --- placementCheck ------------------------------------------------------------------------------

OFF: Final = "Off"
WARN: Final = "Warn"
GATE: Final = "Gate"

DEFAULT_SECONDS: Final = 300
"""Enough to pull two images on a new node, read a cluster and try 2,000 kinds of Pods."""
SHORTEST_SECONDS: Final = 30
"""The minimum of `timeoutSeconds`."""


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """Whether an edit is simulated before it is rolled out."""

    mode: str = OFF  # Off, Warn or Gate
    seconds: int = DEFAULT_SECONDS  # limit from the request to the answer
    approved: str = ""  # hash of the configuration that may be rolled out whatever it changes
    # SecondaryScheduler -> the same for it
    approved_schedulers: Mapping[str, str] = field(default_factory=dict)


def placement_settings(spec: Mapping[str, Any] | None) -> PlacementSettings:
    """Read the settings in a spec; a zero value counts as unset, like one that is not valid."""
    check = mapping(mapping(spec).get("placementCheck"))
    mode, seconds, approved = (check.get(key) for key in ("mode", "timeoutSeconds", "approved"))
    return PlacementSettings(
        mode if mode in (WARN, GATE) else OFF,
        seconds if isinstance(seconds, int) and seconds >= SHORTEST_SECONDS else DEFAULT_SECONDS,
        approved if isinstance(approved, str) else "",
        {str(k): str(v) for k, v in mapping(check.get("approvedSchedulers")).items() if v},
    )


def settings_of_check(
    spec: Mapping[str, Any], in_use: Mapping[str, Any] | None
) -> PlacementSettings:
    """Read the settings in the current spec, or while they are not valid in the version in use.

    An error in another setting does not count: it must not end a Gate, nor delay an approval.
    """
    check = spec.get("placementCheck")
    obj = {"spec": {"placementCheck": check}}
    wrong_types = any(validate_object(obj, DEFINITION, OPERATOR_SETTINGS.version))
    is_valid = not wrong_types and not any(_check_problems(mapping(check)))
    return placement_settings(spec if is_valid or in_use is None else in_use)


SETTINGS: Final = Attachable(OPERATOR_SETTINGS.kind, names.OPERATOR_SETTINGS_DEGRADED)
DEFINITION: Final = f"{names.OPERATORSETTINGS}.yaml"

INVALID_QUANTITY: Final = "InvalidQuantity"
INVALID_NAME: Final = "InvalidName"
DUPLICATE: Final = "Duplicate"
CREDENTIALS: Final = "Credentials"
NOT_ADOPTED: Final = "NotAdopted"
NO_EFFECT: Final = "NotSupported"

PODS: Final = (SPEC, "pods")
CHECK: Final = (SPEC, "placementCheck")
UPGRADE: Final = (SPEC, FIELD)
MANAGED_FIELDS: Final = ("resources", "priorityClassName")
"""The fields that the Deployment in place of the control plane's scheduler supports as well."""

_HASH: Final = re.compile("[0-9a-f]{64}")
_MEBIBYTE: Final = 2**20
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
NODE_DOMAINS: Final = (
    "kubernetes", "k8s", "crio", "containerd", "nri", "katacontainers", "openshift",
)  # fmt: skip
"""Domains NAME.io with annotations on which kubelets, container runtimes and their plugins act: the
AppArmor profile, devices, sysctls, cgroups. Other keys of container runtimes have dots and no slash
(io.kubernetes.cri-o.Devices, run.oci.handler)."""
_OF_NODES: Final = re.compile(rf"(^|\.)({'|'.join(NODE_DOMAINS)})\.io/")
_REMOVABLE: Final = re.compile(
    r"(annotations|env|labels|pod|ports|volumeMounts|volumes)\..+"
    r"|imagePullPolicy|livenessProbe|readinessProbe|resources|securityContext|startupProbe"
)


@dataclass(frozen=True, slots=True)
class PodDefaults:
    """The settings of the Pods without OperatorSettings."""

    own: Mapping[str, Any] = field(default_factory=dict)  # resources if none were adopted
    adopted: Mapping[str, Any] | None = None  # by name; None: not known, as for files


@dataclass(frozen=True, slots=True)
class SettingsResult(ValidationResult):
    pods: RequestedPod = NOTHING_REQUESTED  # by the version in use


def validate_settings(
    objects: Mapping[str, Mapping[str, Any]] | None, platform: Platform, defaults: PodDefaults
) -> SettingsResult | None:
    """Validate OperatorSettings "cluster"; None if it does not exist."""
    obj = (objects or {}).get(names.CLUSTER)
    if obj is None:
        return None
    spec, accepted = mapping(obj.get("spec")), last_accepted(obj)
    findings: list[Finding] = []
    versions = [(SPEC, spec)]
    if accepted is not None:
        versions.append((LAST, accepted))
    for root, version in versions:
        problems, warnings = _judge(version, platform, defaults, root)
        if not problems:
            return SettingsResult(
                names.CLUSTER,
                root == SPEC,
                tuple(findings),
                version,
                tuple(SETTINGS.as_warning(names.CLUSTER, root, warning) for warning in warnings),
                pods=_effective(requested_pod(version), platform),
            )
        findings += (
            SETTINGS.finding(names.CLUSTER, p.reason, path_from(root, p), p.sentence)
            for p in problems
        )
    # An error in both versions is reported once.
    by_message = {finding.message: finding for finding in reversed(findings)}
    return SettingsResult(names.CLUSTER, accepted=False, findings=tuple(by_message.values())[::-1])


def _effective(pods: RequestedPod, platform: Platform) -> RequestedPod:
    """Keep the fields that have an effect on this platform."""
    if platform.adopts_pods:
        return pods
    if platform.owns_static_pods:
        return NOTHING_REQUESTED
    return RequestedPod(pods.resources, priority_class_name=pods.priority_class_name)


_Problems = tuple[Problem, ...]


def _judge(
    spec: Mapping[str, Any], platform: Platform, defaults: PodDefaults, root: str
) -> tuple[_Problems, _Problems]:
    """Return (errors, warnings) with paths in the spec.

    An unexpected error is an error of this version only. What is no longer allowed stays in use if
    it was accepted before: an upgrade of the operator changes no scheduler.
    """
    problems = limit_problems(spec)
    if problems:
        return problems, ()
    try:
        problems, warnings = _cached(spec, platform, defaults.own, defaults.adopted)
        if root == LAST:
            problems = tuple(problem for problem in problems if problem.reason != NOT_ALLOWED)
        return problems, warnings
    except Exception as error:
        message = SETTINGS.defect(names.CLUSTER, root, error).message
        return (Problem(DEFECT, (), message),), ()


# Cached, because every reconcile validates the same spec.
@cached_by_content(8)
def _cached(
    spec: Mapping[str, Any],
    platform: Platform,
    own: Mapping[str, Any],
    adopted: Mapping[str, Any] | None,
) -> tuple[_Problems, _Problems]:
    defaults = PodDefaults(own, adopted)
    obj = {"metadata": {"name": names.CLUSTER}, "spec": spec}
    problems = tuple(settings_problems(obj, defaults))
    warnings = () if problems else settings_warnings(spec, platform, defaults)
    return tuple(map(_in_spec, problems)), tuple(map(_in_spec, warnings))


def _in_spec(problem: Problem) -> Problem:
    return replace(problem, path=problem.path[1:])


def settings_problems(obj: Mapping[str, Any], defaults: PodDefaults) -> Iterator[Problem]:
    """Find the errors of an object; paths begin with `spec`."""
    wrong_types = tuple(validate_object(obj, DEFINITION, OPERATOR_SETTINGS.version))
    if wrong_types:
        yield from map(_explained, wrong_types)  # the rest expects these types
        return
    yield from _check_problems(mapping(mapping(obj.get("spec")).get("placementCheck")))
    pods = mapping(mapping(obj.get("spec")).get("pods"))
    yield from _environment_problems(pods)
    yield from _annotation_problems(pods)
    yield from _removal_problems(pods)
    quantities = tuple(_quantity_problems(pods))
    yield from quantities
    readable = {key: value for key, value in pods.items() if not quantities or key != "resources"}
    request = requested_pod({"pods": readable})
    yield from _limit_problems(request, defaults)
    yield from host_file_problems(request.host_files, (*PODS, "hostFiles"))


def _explained(problem: Problem) -> Problem:
    """Name the usual cause of an error of the schema."""
    if problem.path == (*CHECK, "mode") and problem.reason == INVALID_TYPE:
        return replace(problem, fix='write "Off" in quotes: YAML reads Off as false')
    if problem.path == (*UPGRADE, "version") and problem.reason == INVALID_TYPE:
        return replace(problem, fix='write "1.37" in quotes: YAML reads 1.37 as a number')
    if problem.path == (*UPGRADE, "version") and problem.reason == INVALID_VALUE:
        return replace(problem, fix='write a minor version, such as "1.37"')
    return problem


def _check_problems(check: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the errors that the CEL rules of the CustomResourceDefinition reject as well."""
    seconds = check.get("timeoutSeconds") or SHORTEST_SECONDS
    if seconds < SHORTEST_SECONDS:
        message = f"{seconds} s are not enough to start a Pod with two images"
        fix = f"use {SHORTEST_SECONDS} or more"
        yield Problem(INVALID_VALUE, (*CHECK, "timeoutSeconds"), message, fix)
    others = mapping(check.get("approvedSchedulers"))
    approvals: dict[Path, str] = {("approved",): check.get("approved") or ""}
    approvals |= {("approvedSchedulers", str(key)): value or "" for key, value in others.items()}
    for path, approved in approvals.items():
        if approved and not _HASH.fullmatch(approved):
            message = f'"{foreign(approved, 64)}" is not the hash of a configuration'
            fix = "use kubectl scheduler rollout approve, which writes it"
            yield Problem(INVALID_VALUE, (*CHECK, *path), message, fix)


def settings_warnings(
    spec: Mapping[str, Any], platform: Platform, defaults: PodDefaults
) -> Iterator[Problem]:
    """Find the fields of a valid spec that have no effect; paths begin with `spec`."""
    pods = mapping(spec.get("pods"))
    for name, value in sorted(pods.items()):
        if not value or platform.adopts_pods:
            continue
        if platform.owns_static_pods:
            message = "has no effect on OpenShift, where the release defines the static Pods"
        elif name not in MANAGED_FIELDS:
            message = (
                "has no effect where the provider runs the control plane: the Deployment in its "
                f"place has only {listing(MANAGED_FIELDS)}".replace(" or ", " and ")
            )
        else:
            continue
        yield Problem(NO_EFFECT, (*PODS, name), message, "remove it")
    if defaults.adopted is None or not platform.adopts_pods:
        return
    for index, name in enumerate(pods.get("removeAdopted") or ()):
        if name not in defaults.adopted:
            hint = did_you_mean(name, defaults.adopted)
            message = f'"{name}" was not adopted{hint}'
            fix = f"use a name from {names.ADOPTED_SETTINGS} of KubeScheduler, or remove it"
            yield Problem(NOT_ADOPTED, (*PODS, "removeAdopted", index), message, fix)


def _environment_problems(pods: Mapping[str, Any]) -> Iterator[Problem]:
    seen = set()
    for index, variable in enumerate(pods.get("env") or ()):
        name, path = str(variable["name"]), (*PODS, "env", index)
        if name in seen:
            message = f'the variable "{name}" is already set'
            yield Problem(DUPLICATE, (*path, "name"), message, "remove one of the two")
        seen.add(name)
        if chooses_code(name):
            message = f'the variable "{name}" chooses the code of a program'
            yield Problem(NOT_ALLOWED, (*path, "name"), message, "remove it")
        if holds_credentials(name, str(variable.get("value") or "")):
            message = (
                f'the variable "{name}" has credentials, which would be stored in ConfigMaps and '
                "shown in Pods; have its target accept the nodes without them"
            )
            yield Problem(CREDENTIALS, (*path, "value"), message, "remove it")


def _annotation_problems(pods: Mapping[str, Any]) -> Iterator[Problem]:
    for key in mapping(pods.get("annotations")):
        path = (*PODS, "annotations", key)
        if not _KEY.fullmatch(key):
            message = f'"{key}" is not the key of an annotation'
            yield Problem(INVALID_NAME, path, message, "write NAME or PREFIX/NAME")
        elif key.startswith(f"{names.PREFIX}/"):
            yield Problem(NOT_ALLOWED, path, "this annotation belongs to the operator", "remove it")
        elif _OF_NODES.search(key) or ("." in key and "/" not in key):
            message = (
                "this annotation belongs to the kubelet, to container runtimes and to their "
                "plugins, which may act on it"
            )
            yield Problem(NOT_ALLOWED, path, message, "remove it, or use a domain of your own")


def _removal_problems(pods: Mapping[str, Any]) -> Iterator[Problem]:
    for index, name in enumerate(pods.get("removeAdopted") or ()):
        if not _REMOVABLE.fullmatch(name):
            message = (
                f'"{name}" is not an adopted setting of the Pod, such as env.NAME, '
                "annotations.KEY, volumeMounts.PATH or resources"
            )
            fix = (
                "override flags and fields of the configuration in "
                "spec.unsupportedConfigOverrides of KubeScheduler"
            )
            yield Problem(INVALID_NAME, (*PODS, "removeAdopted", index), message, fix)


def _quantity_problems(pods: Mapping[str, Any]) -> Iterator[Problem]:
    for group in GROUPS:
        for name, value in mapping(mapping(pods.get("resources")).get(group)).items():
            path = (*PODS, "resources", group, name)
            try:
                quantity = amount(name, value)
            except ValueError as error:
                yield Problem(INVALID_QUANTITY, path, str(error), "correct it")
                continue
            if quantity < 0:
                yield Problem(INVALID_QUANTITY, path, f"{value} is negative", "write more than 0")
            elif name == MEMORY and 0 < quantity < _MEBIBYTE:
                digits = re.match(r"\d+", str(value))
                hint = f"did you mean {digits[0]}Mi?" if digits else "write a number with Mi"
                message = f"{value} is less than a mebibyte, too little to start a scheduler"
                yield Problem(INVALID_QUANTITY, path, message, hint)


def _limit_problems(request: RequestedPod, defaults: PodDefaults) -> Iterator[Problem]:
    """Find requests above their limit, which the kubelet rejects."""
    adopted = mapping((defaults.adopted or {}).get("resources"))
    kept = adopted if "resources" not in request.remove_adopted else {}
    merged = request.resources_over(kept or defaults.own)
    requests = mapping(merged.get("requests"))
    for name, limit in sorted(mapping(merged.get("limits")).items()):
        wanted = requests.get(name)
        set_here = [group for group in GROUPS if name in request.resources.get(group, {})]
        if wanted is None or not set_here or amount(name, wanted) <= amount(name, limit):
            continue
        whose = ", which was adopted" if kept else ", which the operator sets by default"
        of_request, of_limit = ("" if group in set_here else whose for group in GROUPS)
        comma = "," if of_request else ""
        message = (
            f"the request of {wanted}{of_request}{comma} is more than the limit of "
            f"{limit}{of_limit}"
        )
        at = (*PODS, "resources", set_here[-1], name)
        yield Problem(INVALID_QUANTITY, at, message, f"set both requests.{name} and limits.{name}")
