"""The configuration file and flags of a SecondaryScheduler's kube-scheduler.

Users set everything except what two schedulers must never share: the Lease is the scheduler's own,
in its own namespace, and the default schedulerName is the object's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ....base import names
from ....base.findings import Finding, Path, Problem, did_you_mean, format_path, listing
from ....base.go_values import without_nulls
from ....base.objects import NamespacedName, mapping
from ....base.platform import Platform
from ...language.command_line import (
    DEFAULT_PORT,
    FLAG_NAME,
    LOG_LEVELS,
    flag_text,
    normalized_name,
    render,
)
from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.flags import validate_flags, void_flags
from ...language.merging.merge import without_empty_values
from ...language.schema import API_VERSION, KIND, TIMINGS
from ...language.validation.configuration import UNKNOWN_PLUGIN, Target, validate_config
from ...language.warnings.configuration import (
    filters_of_all_profiles,
    scheduler_names,
    standalone_warnings,
)
from ...language.warnings.unsafe_flags import unsafe_flags
from .request import SchedulerRequest

CONFIG_DIRECTORY: Final = "/etc/kubernetes/scheduler"
PORT: Final = DEFAULT_PORT

SETTINGS: Final = (
    "clientConnection",
    "delayCacheUntilActive",
    "enableContentionProfiling",
    "enableProfiling",
    "extenders",
    "leaderElection",
    "parallelism",
    "percentageOfNodesToScore",
    "percentageOfPlacementsToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
)
"""The fields of KubeSchedulerConfiguration that `spec.config` may set."""

CONNECTION: Final = ("acceptContentTypes", "burst", "contentType", "qps")

RESERVED: Final[Mapping[str, str]] = {
    "authentication-kubeconfig": "the scheduler uses its ServiceAccount",
    "authorization-kubeconfig": "the scheduler uses its ServiceAccount",
    "bind-address": "the kubelet probes the pod's own address",
    "config": "the operator writes the file",
    "feature-gates": "use spec.featureGates",
    "help": "the scheduler would exit at once",
    "kubeconfig": "the scheduler uses its ServiceAccount",
    "master": "the scheduler uses its ServiceAccount",
    "secure-port": f"probes and metrics use {PORT}",
    "v": "use spec.logLevel",
    "version": "the scheduler would exit at once",
    "write-config-to": "the scheduler would exit at once",
}
"""Flags that `spec.extraArguments` may not set, and why."""

ELECTION: Final = "leader-elect"

LEASE_FIELDS: Final = ("leaderElect", "resourceLock", "resourceName", "resourceNamespace")
"""The fields of `leaderElection` that the operator sets: each scheduler has a Lease of its own."""

_MAIN_LEASE: Final = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class SecondaryComposition:
    config: Mapping[str, Any]
    arguments: tuple[str, ...]  # in the documented order
    findings: tuple[Finding, ...]
    # the filter plugins that all profiles have; None for an invalid configuration
    filters: frozenset[str] | None = None

    @property
    def blocking(self) -> bool:
        """Whether an error blocks its rollout."""
        return any(finding.blocking for finding in self.findings)

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        return scheduler_names(self.config)


def compose(
    request: SchedulerRequest,
    platform: Platform,
    target: Target,
    profiles: Sequence[Mapping[str, Any]] = (),
) -> SecondaryComposition:
    """Compose and validate; never raise, whatever users wrote.

    An image that is not stock may have other plugins, so unknown names are warnings. `profiles` has
    all profiles in the order of the request; empty for the request's own.
    """
    version, config = target.gates.version, _config(request, profiles)
    flags, findings = _flags(request)
    findings += _election(request, platform)
    findings += [
        _finding(problem.reason, _flag_path(problem.path), problem.sentence)
        for problem in (*validate_flags(flags, version, stock=target.stock), *unsafe_flags(flags))
    ]
    findings += [
        _finding(problem.reason, _flag_path(problem.path), problem.sentence, blocking=False)
        for problem in void_flags(flags, "spec.config")
    ]
    problems = validate_config(config, target)
    findings += [_located(problem, request, blocking=True) for problem in problems]
    filters = None
    if not problems:
        filters = filters_of_all_profiles(config, target)
        warnings = standalone_warnings(config, target)
        findings += [
            _located(problem, request, blocking=False)
            for problem in warnings
            if not _is_of_an_object(problem.path, request, profiles)
            and not _is_called(problem.path, request)
        ]
    if not target.stock:
        known = {(problem.reason, problem.path) for problem in problems}
        findings += [
            _located(problem, request, blocking=False)
            for problem in validate_config(config, replace(target, stock=True))
            if problem.reason == UNKNOWN_PLUGIN and (problem.reason, problem.path) not in known
        ]
    return SecondaryComposition(
        without_empty_values(config), render(flags), tuple(findings), filters
    )


def _config(request: SchedulerRequest, profiles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    settings = {key: request.config[key] for key in SETTINGS if key in request.config}
    if request.extenders is not None:
        settings["extenders"] = request.extenders
    first, *others = list(profiles) or list(request.profiles) or [{}]
    first = {} if first is None else first
    if isinstance(first, Mapping):
        # A single profile may omit its schedulerName, whose default is default-scheduler.
        first = {**first, "schedulerName": first.get("schedulerName") or request.name}
    if "clientConnection" in settings:
        settings["clientConnection"] = _part(settings["clientConnection"], CONNECTION)
    election = _part(settings.get("leaderElection") or {}, tuple(TIMINGS))
    config: dict[str, Any] = without_nulls(
        {"apiVersion": API_VERSION, "kind": KIND, **settings, "profiles": [first, *others]}
    )
    if isinstance(election, dict):
        lease = (True, "leases", request.name, request.namespace)
        election = {**without_nulls(election), **dict(zip(LEASE_FIELDS, lease, strict=True))}
    return {**config, "leaderElection": election}


def _part(value: Any, keys: Sequence[str]) -> Any:
    """Return the permitted fields of an object; validation reports all others."""
    if not isinstance(value, Mapping):
        return value
    return {key: value[key] for key in keys if key in value}


def _election(request: SchedulerRequest, platform: Platform) -> Iterator[Finding]:
    """Report a name whose Lease belongs to the control plane's scheduler or to the operator."""
    taken = {(platform.operand_lease_namespace, platform.operand_lease_name)}
    if (request.namespace, request.name) in taken or request.name == _MAIN_LEASE:
        yield _finding(
            "LeaseTaken",
            "metadata.name",
            f'"{request.name}" is the Lease of the control plane\'s scheduler, and only one of the '
            "schedulers that share a Lease schedules; use another name",
        )
    if (request.namespace, request.name) in _operator_leases(platform):
        yield _finding(
            "LeaseTaken",
            "metadata.name",
            f'"{request.name}" is the Lease of the operator itself; use another name',
        )
    for key in request.config:
        if key not in SETTINGS:
            hint = did_you_mean(key, SETTINGS) or f"; use one of {listing(SETTINGS)}"
            yield _finding("UnknownField", f"spec.config.{key}", f"this cannot be set here{hint}")


def _operator_leases(platform: Platform) -> set[NamespacedName]:
    known = filter(None, (platform.operator, platform.former_operator))
    return {(platform.operator_namespace, operator.lease) for operator in known}


def _flags(request: SchedulerRequest) -> tuple[dict[str, list[str]], list[Finding]]:
    findings: list[Finding] = []
    level = LOG_LEVELS.get(request.log_level)
    if level is None:
        hint = did_you_mean(request.log_level, LOG_LEVELS)
        message = f'log level "{request.log_level}" is not known; use {listing(LOG_LEVELS)}{hint}'
        findings.append(_finding("UnknownLogLevel", "spec.logLevel", message))
    flags = {"config": [f"{CONFIG_DIRECTORY}/{names.CONFIG_KEY}"]}
    if request.feature_gates:
        gates = (f"{name}={flag_text(on)}" for name, on in sorted(request.feature_gates.items()))
        flags[FEATURE_GATES] = [",".join(gates)]
    flags["v"] = [str(level if level is not None else LOG_LEVELS["Normal"])]
    for attached, value in sorted(request.extra_arguments.items()):
        name = normalized_name(attached)
        path = format_path(("spec", "extraArguments", attached))
        why = RESERVED.get(name)
        if name.startswith(ELECTION):
            why = "the scheduler has a Lease of its own; for timings use spec.config.leaderElection"
        if not FLAG_NAME.fullmatch(attached):
            message = f'"{attached}" is not a flag name; write it without dashes and value'
            findings.append(_finding("InvalidArgument", path, message))
            continue
        if why:
            findings.append(
                _finding("ReservedArgument", path, f"this flag cannot be set here: {why}")
            )
            continue
        texts = [flag_text(item) for item in (value if isinstance(value, list) else [value])]
        if None in texts:
            message = "the value must be a string, a number, a boolean, or a list of these"
            findings.append(_finding("InvalidArgument", path, message))
            continue
        flags[name] = [text for text in texts if text is not None]
    return flags, findings


def _flag_path(path: Path) -> str:
    name, *rest = map(str, path)
    if name == FEATURE_GATES:
        return format_path(("spec", "featureGates", *rest))
    return format_path(("spec", "extraArguments", name))


def _located(problem: Problem, request: SchedulerRequest, *, blocking: bool) -> Finding:
    """Map a problem in the composed configuration back to the spec field that caused it."""
    top, *rest = problem.path
    path: Path = ("spec", "config", *problem.path)
    if top == "extenders" and rest and isinstance(rest[0], int):
        path = ("spec", "config", top, max(rest[0] - len(request.called), 0), *rest[1:])
    if top == "profiles" and rest and isinstance(rest[0], int):
        inline = rest[0] < max(len(request.profiles), 1)
        path = ("spec", *problem.path) if inline else problem.path
    return _finding(problem.reason, format_path(path), problem.sentence, blocking=blocking)


def _is_of_an_object(
    path: Path, request: SchedulerRequest, profiles: Sequence[Mapping[str, Any]]
) -> bool:
    """Report whether a path is in a SchedulerProfile's profile, whose own status reports it."""
    if not profiles or path[0] != "profiles" or len(path) == 1:
        return False
    own = list(request.profiles) or [{}]
    index = path[1]
    if not isinstance(index, int) or index >= len(own):
        return True
    first = mapping(own[0])
    named = {**first, "schedulerName": first.get("schedulerName") or request.name}
    return index == 0 and profiles[0] != named


def _is_called(path: Path, request: SchedulerRequest) -> bool:
    """Report whether a path is in a SchedulerExtender's entry, whose own status reports it."""
    index = path[1] if path[0] == "extenders" and len(path) > 1 else None
    return isinstance(index, int) and index < len(request.called)


def _finding(reason: str, path: str, message: str, *, blocking: bool = True) -> Finding:
    condition = names.DEGRADED if blocking else names.WARNINGS
    return Finding(condition, reason, path, message, blocking)
