"""From the API's objects to the file and the flags that kube-scheduler is to run with.

profile fragment <- default configuration <- observed fragments <- overrides, each laid over what is
to its left; then checked. Whatever users wrote, the result is a Composition: what is wrong with it
is said in findings, and a blocking one keeps the schedulers on what they run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .. import names
from ..platform import Platform
from .arguments import (
    LOG_LEVELS,
    Flags,
    compose_arguments,
    render,
)
from .check import Target, check_config
from .findings import (
    Finding,
    Path,
    Problem,
    did_you_mean,
    format_path,
    listing,
)
from .flags import check_flags
from .gates import Gates, known_gates, parse_gates
from .merge import (
    DEFAULT_SCHEDULER,
    merge_by_meaning,
    without_nulls,
)
from .observe import observe
from .overrides import (
    ARGUMENTS,
    ROOT,
    SERVING_INFO,
    Overrides,
    read_flags,
    read_overrides,
    read_serving,
)
from .profiles import PROFILES, default_config, profile_fragment
from .values import seconds
from .versions import Version

__all__ = ["Composition", "Finding", "Inputs", "Version", "compose", "config_text"]

_LEADER_FLAGS: Final = {
    "leaseDuration": "leader-elect-lease-duration",
    "renewDeadline": "leader-elect-renew-deadline",
    "retryPeriod": "leader-elect-retry-period",
}


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that the configuration depends on.

    Attributes:
        platform: where the scheduler runs.
        operand_version: the kube-scheduler that will read the configuration.
        scheduler: the Scheduler "cluster" as read, None if it does not exist.
        kubescheduler: the KubeScheduler "cluster" as read; only its spec matters.
        stock_arguments: command line of the scheduler that was found at adoption, if visible.
        stock_image: False for a custom operand image, which may know plugins that we do not.
    """

    platform: Platform
    operand_version: Version
    scheduler: Mapping[str, Any] | None
    kubescheduler: Mapping[str, Any]
    stock_arguments: tuple[str, ...] = ()
    stock_image: bool = True


@dataclass(frozen=True, slots=True)
class Composition:
    """What came out.

    Attributes:
        config: the KubeSchedulerConfiguration, None when it cannot be composed.
        arguments: the full argument list of kube-scheduler, in the documented order.
        observed_config: what belongs in `KubeScheduler.spec.observedConfig`.
        findings: everything that somebody should know or fix, in the order of the pipeline.
    """

    config: Mapping[str, Any] | None
    arguments: tuple[str, ...]
    observed_config: Mapping[str, Any]
    findings: tuple[Finding, ...]

    @property
    def blocking(self) -> bool:
        """True when no new revision may be cut from this."""
        return self.config is None or any(finding.blocking for finding in self.findings)


def compose(inputs: Inputs) -> Composition:
    """Compose and check the configuration; pure, and it never raises for what users wrote."""
    spec = _mapping(inputs.kubescheduler.get("spec"))
    observed, findings = observe(
        inputs.platform, inputs.stock_arguments, spec.get("observedConfig")
    )
    overrides = read_overrides(spec.get("unsupportedConfigOverrides"), inputs.platform)
    base, profile_findings = _base(inputs)
    log_level, level_findings = _log_level(spec.get("logLevel"))
    found = [*findings, *profile_findings, *level_findings, *overrides.findings]

    observed_flags = _understood(read_flags(observed.get(ARGUMENTS))[0], inputs)
    flags = compose_arguments(
        inputs.platform,
        log_level=log_level,
        observed=observed_flags,
        serving={**read_serving(observed.get(SERVING_INFO))[0], **overrides.serving},
        overrides=overrides.arguments,
    )
    found += _check_flags(flags, overrides, inputs)

    config: dict[str, Any] | None = None
    if base is not None:
        fragment = {key: observed[key] for key in observed if key not in (ARGUMENTS, SERVING_INFO)}
        merged = merge_by_meaning([*base, fragment, overrides.config])
        config = without_nulls(merged)
        # Checked before it is tidied: `profiles: {}` is a mistake, not nothing.
        found += _check_config(config, flags, overrides, inputs)
        config = tidy(config)
    return Composition(config, render(flags), observed, tuple(found))


def config_text(config: Mapping[str, Any]) -> str:
    """The configuration as the file holds it: compact JSON, sorted keys, trailing newline."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def tidy(config: dict[str, Any]) -> dict[str, Any]:
    """A copy without empty lists and maps that mean the same as not being there."""
    result = {key: value for key, value in config.items() if value not in ({}, [])}
    if isinstance(result.get("profiles"), list):
        result["profiles"] = [_tidy_profile(profile) for profile in result["profiles"]]
    return result


def _tidy_profile(profile: Any) -> Any:
    if not isinstance(profile, dict):
        return profile
    points = profile.get("plugins")
    if isinstance(points, dict):
        sets = {
            point: {key: item for key, item in lists.items() if item != []}
            if isinstance(lists, dict)
            else lists
            for point, lists in points.items()
        }
        profile = {**profile, "plugins": {key: item for key, item in sets.items() if item != {}}}
    return {key: value for key, value in profile.items() if value not in ({}, [])}


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
    spec = _mapping(inputs.scheduler.get("spec"))
    findings: list[Finding] = []
    policy = _mapping(spec.get("policy")).get("name")
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


def _understood(flags: dict[str, list[str]], inputs: Inputs) -> dict[str, list[str]]:
    """Observed flags without feature gates that this version has no longer.

    They were right when they were observed; that the operand moved on is nobody's mistake.
    """
    known = known_gates(inputs.operand_version.minor) if inputs.stock_image else None
    if known is None or "feature-gates" not in flags:
        return flags
    entries = [entry for value in flags["feature-gates"] for entry in value.split(",")]
    kept = [
        entry
        for entry in entries
        if entry.partition("=")[0].rpartition(":")[2].strip() in (*known, "AllAlpha", "AllBeta")
    ]
    return {**flags, "feature-gates": [",".join(kept)] if kept else []}


def _check_flags(flags: Flags, overrides: Overrides, inputs: Inputs) -> Iterator[Finding]:
    for problem in check_flags(flags, inputs.operand_version, stock=inputs.stock_image):
        name = str(problem.path[0])
        if name in overrides.arguments:
            yield _override_finding(problem, (ARGUMENTS, name))
        elif name in overrides.serving:
            key = "cipherSuites" if name == "tls-cipher-suites" else "minTLSVersion"
            yield _override_finding(problem, (SERVING_INFO, key))
        else:
            path = format_path(("spec", "observedConfig", ARGUMENTS, name))
            yield Finding(
                names.CONFIG_OBSERVATION_DEGRADED,
                problem.reason,
                path,
                problem.message,
                blocking=True,
            )


def _check_config(
    config: Mapping[str, Any], flags: Flags, overrides: Overrides, inputs: Inputs
) -> Iterator[Finding]:
    try:
        explicit = parse_gates(flags.get("feature-gates", ()))
    except ValueError:
        explicit = {}  # the check of the flags says so
    target = Target(Gates(inputs.operand_version, explicit), stock=inputs.stock_image)
    for problem in check_config(config, target, _elected(config, flags)):
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


def _elected(config: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    """Leader election as it will be: its flags win over the file."""
    election = dict(_mapping(config.get("leaderElection")))
    for key, flag in _LEADER_FLAGS.items():
        for value in flags.get(flag, ()):
            try:
                seconds(value)
            except ValueError:
                continue  # the check of the flags says so
            election[key] = value
    return election


def locate(path: Path, config: Any, overrides: Any) -> Path | None:
    """Where in the overrides a path of the composed configuration comes from, None if nowhere.

    Entries that merge by name are found by name, appended ones count from the end.
    """
    found: list[str | int] = []
    lists: dict[str, str] = {"profiles": "schedulerName", "pluginConfig": "name"}
    parent = ""
    for depth, part in enumerate(path):
        translated = part
        if isinstance(part, int) and isinstance(config, list) and isinstance(overrides, list):
            if parent in lists:
                translated = _index_of(_name(config, part, lists[parent]), overrides, lists[parent])
            elif parent == "extenders":
                translated = part - (len(config) - len(overrides))
        if not _has(overrides, translated):
            return (*found, *path[depth:]) if found else None
        found.append(translated)
        overrides = overrides[translated]
        config = config[part] if _has(config, part) else None
        parent = part if isinstance(part, str) else parent
    return tuple(found)


def _name(items: list[Any], index: int, key: str) -> Any:
    item = items[index] if _has(items, index) else None
    return item.get(key) if isinstance(item, Mapping) else None


def _index_of(name: Any, items: Iterable[Any], key: str) -> int:
    default = DEFAULT_SCHEDULER if key == "schedulerName" else None
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and item.get(key, default) == name:
            return index
    return -1


def _has(value: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and 0 <= part < len(value)
    return isinstance(value, Mapping) and part in value


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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
