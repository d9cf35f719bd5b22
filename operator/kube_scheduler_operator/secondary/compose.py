"""From a SecondaryScheduler to the file and the flags that its kube-scheduler is to run with.

What it can be told is taken over; what two schedulers must never share is not among it: the Lease
is its own, in its own namespace, and the name under which pods ask for it is, unless profiles say
otherwise, the object's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding, Path, Problem, did_you_mean, format_path, listing
from ..base.objects import mapping
from ..base.platform import Platform
from ..schedulerconfig.canonical import tidy
from ..schedulerconfig.check import UNKNOWN_PLUGIN, Target, check_config
from ..schedulerconfig.command_line import DEFAULT_PORT, LOG_LEVELS, normal, render, text_of
from ..schedulerconfig.feature_gates import FLAG as FEATURE_GATES
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.flags import check_flags, void_flags
from ..schedulerconfig.go_values import without_nulls
from ..schedulerconfig.schema import API_VERSION, KIND
from ..schedulerconfig.versions import Version
from ..schedulerconfig.warnings import common_filters, own_hazards
from .request import Request

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
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
)
"""Of KubeSchedulerConfiguration, what `spec.config` may say."""

_TIMINGS: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_CONNECTION: Final = ("acceptContentTypes", "burst", "contentType", "qps")

RESERVED: Final[Mapping[str, str]] = {
    "authentication-kubeconfig": "it is its ServiceAccount",
    "authorization-kubeconfig": "it is its ServiceAccount",
    "bind-address": "the kubelet asks the pod's own address whether it is well",
    "config": "the operator writes the file",
    "feature-gates": "use spec.featureGates",
    "help": "it would end at once",
    "kubeconfig": "it is its ServiceAccount",
    "master": "it is its ServiceAccount",
    "secure-port": f"probes and metrics use {PORT}",
    "v": "use spec.logLevel",
    "version": "it would end at once",
    "write-config-to": "it would end at once",
}
"""Flags that are not for `spec.extraArguments`, and why."""

ELECTION: Final = "leader-elect"

_MAIN_LEASE: Final = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class Composition:
    """What came out.

    Attributes:
        config: the KubeSchedulerConfiguration.
        arguments: kube-scheduler's arguments, in the documented order.
        findings: everything that somebody should know or fix.
        filters: the plugins that filter in all its profiles; None: nothing can come of it.
    """

    config: Mapping[str, Any]
    arguments: tuple[str, ...]
    findings: tuple[Finding, ...]
    filters: frozenset[str] | None = None

    @property
    def blocking(self) -> bool:
        """Whether nothing may come of it."""
        return any(finding.blocking for finding in self.findings)

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """What pods have to ask for."""
        return scheduler_names(self.config)


def scheduler_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The names under which a scheduler with this configuration is asked for."""
    profiles = config.get("profiles") or [{}]
    found = (mapping(profile).get("schedulerName") for profile in profiles)
    return tuple(str(name or "default-scheduler") for name in found)


def compose(
    request: Request,
    platform: Platform,
    version: Version,
    *,
    stock: bool,
    profiles: Sequence[Mapping[str, Any]] = (),
) -> Composition:
    """Compose and check; it never raises for what users wrote.

    Args:
        request: what is asked for.
        platform: whose Lease is not to be had.
        version: of the kube-scheduler that will read it.
        stock: False for an image that may have more plugins: then it is the authority, and what we
            do not know is only a warning.
        profiles: all that it is to run, in the order of the request's; empty: the request's own.
    """
    config = _config(request, profiles)
    flags, findings = _flags(request)
    findings += _election(request, platform)
    findings += [
        _finding(problem.reason, _flag_path(problem.path), problem.message)
        for problem in check_flags(flags, version, stock=stock)
    ]
    findings += [
        _finding(problem.reason, _flag_path(problem.path), problem.sentence, blocking=False)
        for problem in void_flags(flags, "spec.config")
    ]
    explicit = {str(name): bool(on) for name, on in request.feature_gates.items()}
    gates = Gates(version, explicit)
    target = Target(gates, stock=stock)
    problems = check_config(config, target)
    findings += [_located(problem, request, blocking=True) for problem in problems]
    filters = None
    if not problems:
        filters = common_filters(config, target)
        warnings = own_hazards(config, target)
        findings += [
            _located(problem, request, blocking=False)
            for problem in warnings
            if not _is_of_an_object(problem.path, request, profiles)
            and not _is_called(problem.path, request)
        ]
    if not stock:
        known = {(problem.reason, problem.path) for problem in problems}
        findings += [
            _located(problem, request, blocking=False)
            for problem in check_config(config, Target(gates, stock=True))
            if problem.reason == UNKNOWN_PLUGIN and (problem.reason, problem.path) not in known
        ]
    return Composition(tidy(config), render(flags), tuple(findings), filters)


def _config(request: Request, profiles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    settings = {key: request.config[key] for key in SETTINGS if key in request.config}
    if request.extenders is not None:
        settings["extenders"] = request.extenders
    first, *others = list(profiles) or list(request.profiles) or [{}]
    first = {} if first is None else first
    if isinstance(first, Mapping):
        # One profile may do without a name, and would be called default-scheduler then.
        first = {**first, "schedulerName": first.get("schedulerName") or request.name}
    if "clientConnection" in settings:
        settings["clientConnection"] = _part(settings["clientConnection"], _CONNECTION)
    election = _part(settings.get("leaderElection") or {}, _TIMINGS)
    config: dict[str, Any] = without_nulls(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            **settings,
            "profiles": [first, *others],
        }
    )
    if isinstance(election, dict):
        election = {
            **without_nulls(election),
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": request.name,
            "resourceNamespace": request.namespace,
        }
    return {**config, "leaderElection": election}


def _part(value: Any, keys: Sequence[str]) -> Any:
    """Of an object what may be set; the check says what is wrong with anything else."""
    if not isinstance(value, Mapping):
        return value
    return {key: value[key] for key in keys if key in value}


def _election(request: Request, platform: Platform) -> Iterator[Finding]:
    """The main scheduler's Lease, wherever it may be, is never shared."""
    taken = {(platform.operand_lease_namespace, platform.operand_lease_name)}
    if (request.namespace, request.name) in taken or request.name == _MAIN_LEASE:
        yield _finding(
            "LeaseTaken",
            "metadata.name",
            f'"{request.name}" is the Lease of the control plane\'s scheduler, and of two that '
            "share one only one works; use another name",
        )
    if (request.namespace, request.name) == (platform.operator_namespace, names.LEASE):
        yield _finding(
            "LeaseTaken",
            "metadata.name",
            f'"{request.name}" is the Lease of the operator itself; use another name',
        )
    for key in request.config:
        if key not in SETTINGS:
            hint = did_you_mean(key, SETTINGS) or f"; there are {listing(SETTINGS)}"
            yield _finding("UnknownField", f"spec.config.{key}", f"this cannot be set here{hint}")


def _flags(request: Request) -> tuple[dict[str, list[str]], list[Finding]]:
    findings: list[Finding] = []
    level = LOG_LEVELS.get(request.log_level)
    if level is None:
        hint = did_you_mean(request.log_level, LOG_LEVELS)
        message = f'log level "{request.log_level}" is not known; use {listing(LOG_LEVELS)}{hint}'
        findings.append(_finding("UnknownLogLevel", "spec.logLevel", message))
    flags = {"config": [f"{CONFIG_DIRECTORY}/{names.CONFIG_KEY}"]}
    if request.feature_gates:
        gates = (f"{name}={text_of(on)}" for name, on in sorted(request.feature_gates.items()))
        flags[FEATURE_GATES] = [",".join(gates)]
    flags["v"] = [str(level if level is not None else LOG_LEVELS["Normal"])]
    for given, value in sorted(request.extra_arguments.items()):
        name, path = normal(given), f"spec.extraArguments.{given}"
        why = RESERVED.get(name)
        if name.startswith(ELECTION):
            why = "the Lease is its own; for timings use spec.config.leaderElection"
        if why:
            findings.append(_finding("ReservedArgument", path, f"this is not for users: {why}"))
            continue
        texts = [text_of(one) for one in (value if isinstance(value, list) else [value])]
        if None in texts:
            message = "the value must be a string, a number, true or false, or a list of those"
            findings.append(_finding("InvalidArgument", path, message))
            continue
        flags[name] = [text for text in texts if text is not None]
    return flags, findings


def _flag_path(path: Path) -> str:
    name, *rest = map(str, path)
    if name == FEATURE_GATES:
        return format_path(("spec", "featureGates", *rest))
    return format_path(("spec", "extraArguments", name))


def _located(problem: Problem, request: Request, *, blocking: bool) -> Finding:
    """A problem of the composed configuration, at the field that a user can edit."""
    top, *rest = problem.path
    path: Path = ("spec", "config", *problem.path)
    if top == "extenders" and rest and isinstance(rest[0], int):
        path = ("spec", "config", top, max(rest[0] - len(request.called), 0), *rest[1:])
    if top == "profiles" and rest and isinstance(rest[0], int):
        inline = rest[0] < max(len(request.profiles), 1)
        path = ("spec", *problem.path) if inline else problem.path
    return _finding(problem.reason, format_path(path), problem.sentence, blocking=blocking)


def _is_of_an_object(path: Path, request: Request, profiles: Sequence[Mapping[str, Any]]) -> bool:
    """Whether this is about a profile that comes from a SchedulerProfile, which tells it itself."""
    if not profiles or path[0] != "profiles" or len(path) == 1:
        return False
    own = list(request.profiles) or [{}]
    index = path[1]
    if not isinstance(index, int) or index >= len(own):
        return True
    first = mapping(own[0])
    named = {**first, "schedulerName": first.get("schedulerName") or request.name}
    return index == 0 and profiles[0] != named


def _is_called(path: Path, request: Request) -> bool:
    """Whether this is about an extender that comes from a SchedulerExtender, which tells it."""
    index = path[1] if path[0] == "extenders" and len(path) > 1 else None
    return isinstance(index, int) and index < len(request.called)


def _finding(reason: str, path: str, message: str, *, blocking: bool = True) -> Finding:
    condition = names.DEGRADED if blocking else names.WARNINGS
    return Finding(condition, reason, path, message, blocking)
