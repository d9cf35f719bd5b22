"""From the API's objects to the file and the flags that kube-scheduler is to run with.

profile fragment <- default configuration <- observed fragments <- overrides, each laid over what is
to its left; then checked. Whatever users wrote, the result is a Composition: what is wrong with it
is said in findings, and a blocking one keeps the schedulers on what they run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.findings import Finding, Path, Problem, did_you_mean, format_path, listing
from ..base.objects import mapping
from ..extenders.validate import ExtenderVerdict
from ..model.inputs import Inputs
from ..profiles.validate import Verdict
from ..schedulerconfig.canonical import config_text, tidy
from ..schedulerconfig.check import Target, check_config
from ..schedulerconfig.command_line import (
    BIND_ADDRESS,
    LOG_LEVELS,
    Flags,
    compose_arguments,
    render,
)
from ..schedulerconfig.feature_gates import FLAG as FEATURE_GATES
from ..schedulerconfig.feature_gates import Gates, parse_gates
from ..schedulerconfig.flags import check_flags, void_flags
from ..schedulerconfig.go_values import seconds
from ..schedulerconfig.locate import locate
from ..schedulerconfig.merge import Layers
from ..schedulerconfig.presets import PROFILES, default_config, profile_fragment
from ..schedulerconfig.versions import Version
from ..schedulerconfig.warnings import main_hazards
from .feature_gates import Features, choose, own_path
from .ineffective_settings import ineffective_settings
from .observe import observe, tls_source
from .observe_extenders import EXTENDERS as OBSERVED_EXTENDERS
from .observe_extenders import observe_extenders
from .observe_profiles import PROFILES as OBSERVED_PROFILES
from .observe_profiles import observe_profiles
from .overrides import (
    ARGUMENTS,
    ROOT,
    SERVING_FLAGS,
    SERVING_INFO,
    Overrides,
    read_flags,
    read_overrides,
    read_serving,
)

__all__ = ["Composition", "Finding", "Inputs", "Version", "compose", "config_text"]

_LEADER_FLAGS: Final = {
    "leaseDuration": "leader-elect-lease-duration",
    "renewDeadline": "leader-elect-renew-deadline",
    "retryPeriod": "leader-elect-retry-period",
}
_SERVING_FIELDS: Final = {flag: key for key, flag in SERVING_FLAGS.items()}
_CUSTOM_FIELDS: Final = {"tls-cipher-suites": "ciphers", "tls-min-version": "minTLSVersion"}


@dataclass(frozen=True, slots=True)
class Composition:
    """What came out.

    Attributes:
        config: the KubeSchedulerConfiguration, None when it cannot be composed.
        arguments: the full argument list of kube-scheduler, in the documented order.
        observed_config: what belongs in `KubeScheduler.spec.observedConfig`.
        findings: everything that somebody should know or fix, in the order of the pipeline.
        verdicts: what became of SchedulerProfiles, for their status.
        extenders: the same of SchedulerExtenders.
        leaving: SchedulerExtenders that go to another scheduler, which has not accepted them yet.
    """

    config: Mapping[str, Any] | None
    arguments: tuple[str, ...]
    observed_config: Mapping[str, Any]
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...] = ()
    extenders: tuple[ExtenderVerdict, ...] = ()
    leaving: tuple[ExtenderVerdict, ...] = ()

    @property
    def blocking(self) -> bool:
        """True when no new revision may be cut from this."""
        return self.config is None or any(finding.blocking for finding in self.findings)


def compose(inputs: Inputs) -> Composition:
    """Compose and check the configuration; pure, and it never raises for what users wrote."""
    observed, findings = observe(inputs)
    overrides = read_overrides(inputs.spec.get("unsupportedConfigOverrides"), inputs.platform)
    base, profile_findings = _base(inputs)
    log_level, level_findings = _log_level(inputs.spec.get("logLevel"))
    found = [*findings, *profile_findings, *level_findings, *overrides.findings]

    observed_flags = read_flags(observed.get(ARGUMENTS))[0]
    if SERVING_INFO in observed:
        # A profile says everything about TLS; what was found at adoption does not fill its gaps.
        observed_flags = {
            name: values
            for name, values in observed_flags.items()
            if name not in SERVING_FLAGS.values()
        }
    features = choose(inputs, observed_flags.pop(FEATURE_GATES, ()))
    found += [*features.findings, *ineffective_settings(inputs), *_infrastructure(inputs)]
    if features.values:
        observed_flags[FEATURE_GATES] = list(features.values)
    flags = compose_arguments(
        inputs.platform,
        log_level=log_level,
        observed=observed_flags,
        bind_address=_bind_address(inputs),
        serving={
            **_serving_certificate(inputs),
            **read_serving(observed.get(SERVING_INFO))[0],
            **overrides.serving,
        },
        overrides=overrides.arguments,
    )
    found += _check_flags(flags, overrides, features, inputs)

    target = _target(flags, inputs)
    extenders = observe_extenders(inputs, base is not None, overrides.config, target)
    found += extenders.findings
    if extenders.own:
        observed = {**observed, OBSERVED_EXTENDERS: list(extenders.own)}
    over = extenders.over(overrides.config)
    profiles = observe_profiles(inputs, base[0] if base else None, over, target)
    found += profiles.findings
    config: dict[str, Any] | None = None
    if base is not None:
        fragment = {key: observed[key] for key in observed if key not in (ARGUMENTS, SERVING_INFO)}
        if profiles.all:
            base[0] = {**base[0], "profiles": list(profiles.all)}
        layers = Layers.of(*base, fragment, overrides.config)
        config, tidied = _merged(layers)
        # Checked before it is tidied: `profiles: {}` is a mistake, not nothing.
        problems, warnings = _problems(layers, target, _elected(config, flags))
        found += _refused(problems, config, overrides)
        told_there = frozenset(str(profile["schedulerName"]) for profile in profiles.own)
        own = len(extenders.own)
        found += _surprising(warnings, config, overrides, told_there, own)
        config = tidied
    if profiles.own:
        observed = {**observed, OBSERVED_PROFILES: list(profiles.own)}
    return Composition(
        config,
        render(flags),
        observed,
        tuple(found),
        profiles.verdicts,
        extenders.verdicts,
        extenders.leaving,
    )


def _bind_address(inputs: Inputs) -> str:
    """Where users want the schedulers to listen; empty: as the platform has it, or as found."""
    return str(inputs.spec.get("bindAddress") or "")


def _serving_certificate(inputs: Inputs) -> dict[str, list[str]]:
    """Flags for the certificate that the cluster made; without one the scheduler makes its own."""
    kept = inputs.platform.credentials
    if kept is None or not inputs.serving_certificate:
        return {}
    directory = f"{kept.mounted}/secrets/{kept.serving_certificate}"
    return {
        "tls-cert-file": [f"{directory}/tls.crt"],
        "tls-private-key-file": [f"{directory}/tls.key"],
    }


def _base(inputs: Inputs) -> tuple[list[dict[str, Any]] | None, list[Finding]]:
    """(profile fragment and default configuration, findings); None without a known profile."""
    if inputs.scheduler is None:
        message = (
            f'Scheduler "{names.CLUSTER}" does not exist, so running schedulers keep their '
            "configuration; create it: kubectl apply -f - <<< '"
            '{"apiVersion":"config.openshift.io/v1","kind":"Scheduler",'
            f'"metadata":{{"name":"{names.CLUSTER}"}},"spec":{{}}}}\''
        )
        return None, [_target_finding("SchedulerNotFound", "", message, blocking=True)]
    spec = mapping(inputs.scheduler.get("spec"))
    findings: list[Finding] = []
    policy = mapping(spec.get("policy")).get("name")
    if policy:
        message = (
            f'the Policy "{policy}" is not used, because Kubernetes 1.23 removed Policy; clear '
            "spec.policy of the Scheduler and use spec.profile or "
            "spec.unsupportedConfigOverrides of the KubeScheduler"
        )
        findings.append(
            _target_finding("PolicyRemoved", "spec.policy.name", message, blocking=False)
        )
    profile = spec.get("profile") or ""
    if profile and profile not in PROFILES:
        hint = did_you_mean(str(profile), PROFILES)
        message = f'profile "{profile}" is not known; use {listing(PROFILES)}{hint}'
        findings.append(_target_finding("UnknownProfile", "spec.profile", message, blocking=True))
        return None, findings
    return [profile_fragment(profile), default_config(inputs.platform)], findings


def _log_level(value: Any) -> tuple[int, list[Finding]]:
    if not value:
        return LOG_LEVELS["Normal"], []
    if isinstance(value, str) and value in LOG_LEVELS:
        return LOG_LEVELS[value], []
    hint = did_you_mean(str(value), LOG_LEVELS)
    message = f'log level "{value}" is not known; use {listing(LOG_LEVELS)}{hint}'
    finding = _target_finding("UnknownLogLevel", "spec.logLevel", message, blocking=True)
    return LOG_LEVELS["Normal"], [finding]


def _infrastructure(inputs: Inputs) -> Iterator[Finding]:
    """The scheduler's kubeconfig needs a server; a cluster that has none yet is still coming up."""
    if inputs.infrastructure is None:
        return
    if not mapping(inputs.infrastructure.get("status")).get("apiServerInternalURI"):
        path = "Infrastructure/cluster status.apiServerInternalURI"
        message = "this is empty, so the scheduler would not know its API server; it must be set"
        yield _target_finding("NoAPIServerURL", path, message, blocking=True)


def _check_flags(
    flags: Flags, overrides: Overrides, features: Features, inputs: Inputs
) -> Iterator[Finding]:
    for problem in check_flags(flags, inputs.operand_version, stock=inputs.stock_image):
        name = str(problem.path[0])
        if name in overrides.arguments:
            yield _override_finding(problem, (ARGUMENTS, name))
        elif name in overrides.serving:
            yield _override_finding(problem, (SERVING_INFO, _SERVING_FIELDS[name]))
        else:
            condition, path = _origin(problem, features, inputs)
            yield Finding(condition, problem.reason, path, problem.message, blocking=True)
    for problem in void_flags(overrides.arguments, format_path(ROOT)):
        path = format_path((*ROOT, ARGUMENTS, *problem.path))
        warnings = names.CONFIGURATION_WARNINGS
        yield Finding(warnings, problem.reason, path, problem.sentence, blocking=False)


def _origin(problem: Problem, features: Features, inputs: Inputs) -> tuple[str, str]:
    """(condition, path) of what a flag comes from that is not in the overrides."""
    name, *rest = map(str, problem.path)
    if name == FEATURE_GATES and rest and rest[0] in features.own:
        return names.TARGET_CONFIG_DEGRADED, own_path(rest[0])
    if name == BIND_ADDRESS and _bind_address(inputs):
        return names.TARGET_CONFIG_DEGRADED, "spec.bindAddress"
    source = tls_source(inputs) if name in _SERVING_FIELDS else None
    if source is not None:
        # Only what users wrote can be wrong, and in a profile that is type Custom.
        return source.condition, source.path("custom", _CUSTOM_FIELDS[name])
    path = ("spec", "observedConfig", ARGUMENTS, name)
    return names.CONFIG_OBSERVATION_DEGRADED, format_path(path)


def _target(flags: Flags, inputs: Inputs) -> Target:
    """The scheduler that will read the configuration."""
    try:
        explicit = parse_gates(flags.get("feature-gates", ()))
    except ValueError:
        explicit = {}  # the check of the flags says so
    return Target(Gates(inputs.operand_version, explicit), stock=inputs.stock_image)


def _refused(
    problems: Sequence[Problem], config: Mapping[str, Any], overrides: Overrides
) -> Iterator[Finding]:
    for problem in problems:
        flag = _LEADER_FLAGS.get(str(problem.path[-1]), "")
        if problem.path[0] == "leaderElection" and flag in overrides.arguments:
            path: Path | None = (ARGUMENTS, flag)
        else:
            path = locate(problem.path, config, overrides.config)
        if path is not None:
            yield _override_finding(problem, path)
        else:
            at = format_path(("config", *problem.path))
            yield _target_finding(problem.reason, at, problem.message, blocking=True)


def _surprising(
    warnings: Sequence[Problem],
    config: Mapping[str, Any],
    overrides: Overrides,
    told_there: Collection[str],
    extenders: int,
) -> Iterator[Finding]:
    """What kube-scheduler accepts and somebody did not mean.

    Args:
        warnings: about the configuration.
        config: the configuration.
        overrides: what users wrote into it themselves.
        told_there: schedulerNames of profiles that have an object of their own for it.
        extenders: how many of the first ones have.
    """
    for problem in warnings:
        if problem.path[0] == "extenders" and _index(problem.path) < extenders:
            continue
        path = locate(problem.path, config, overrides.config)
        if path is None and problem.path[0] == "profiles" and len(problem.path) > 1:
            profile = config["profiles"][problem.path[1]]
            if profile["schedulerName"] in told_there:
                continue
        at = format_path((*ROOT, *path) if path is not None else ("config", *problem.path))
        yield Finding(
            names.CONFIGURATION_WARNINGS, problem.reason, at, problem.sentence, blocking=False
        )


def _index(path: Path) -> int:
    return path[1] if len(path) > 1 and isinstance(path[1], int) else 0


@lru_cache(maxsize=4)
def _merged(layers: Layers) -> tuple[dict[str, Any], dict[str, Any]]:
    """What layers come to, and the same tidied; as objects they are those of the last time.

    So nobody may change them.
    """
    config = layers.merged()
    return config, tidy(config)


@dataclass(frozen=True, slots=True)
class _Case:
    """The arguments of check_config, the same if their content is."""

    layers: Layers
    reader: tuple[object, ...]
    timings: str
    target: Target = field(compare=False)
    election: Mapping[str, Any] = field(compare=False)


def _problems(
    layers: Layers, target: Target, election: Mapping[str, Any]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """(everything that is wrong, else what hurts); most passes ask about what the last one had."""
    timings = json.dumps(election, default=str)
    return _check(_Case(layers, target.identity, timings, target, election))


@lru_cache(maxsize=4)
def _check(case: _Case) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    config, _ = _merged(case.layers)
    problems = tuple(check_config(config, case.target, case.election))
    return problems, () if problems else tuple(main_hazards(config, case.target))


def _elected(config: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    """Leader election as it will be: its flags win over the file."""
    election = dict(mapping(config.get("leaderElection")))
    for key, flag in _LEADER_FLAGS.items():
        for value in flags.get(flag, ()):
            try:
                seconds(value)
            except ValueError:
                continue  # the check of the flags says so
            election[key] = value
    return election


def _override_finding(problem: Problem, path: Path) -> Finding:
    return Finding(
        names.OVERRIDES_DEGRADED,
        problem.reason,
        format_path((*ROOT, *path)),
        problem.message,
        blocking=True,
    )


def _target_finding(reason: str, path: str, message: str, *, blocking: bool) -> Finding:
    return Finding(names.TARGET_CONFIG_DEGRADED, reason, path, message, blocking)
