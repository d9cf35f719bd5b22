"""The observed configuration: cluster settings, stored in `KubeScheduler.spec.observedConfig`.

Each observer is a pure function from what is visible now, and what was observed before, to a
fragment of its own. observedConfig is the union of the fragments; changes by other writers are
replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.findings import Finding, format_path
from ....base.objects import Object, mapping
from ....base.platform import Platform
from ...language.command_line import (
    CONFIG_PATH,
    FLAG_NAME,
    LOG_LEVEL,
    LOG_LEVELS,
    Flags,
    normalized_name,
    parse,
)
from ...language.flags import VOID_WITH_CONFIG
from ...language.merging.merge import merge_process
from .inputs import Inputs
from .overrides import ARGUMENTS, SERVING_INFO
from .tls_profiles import UNSUPPORTED_SUITE, serving_info

HAS_CONFIG_FILE: Final = "SchedulerHasConfigFile"
"""The adopted scheduler reads a file that the API does not show."""

Observation = tuple[dict[str, Any], list[Finding]]

_OURS: Final = frozenset({
    "config", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "v",
    "write-config-to", "help", "version", *VOID_WITH_CONFIG,
})  # fmt: skip


def observe(inputs: Inputs) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Run all observers: (observedConfig, findings).

    The current observedConfig, in the inputs, can have any type.
    """
    fragments: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for observer in _OBSERVERS:
        fragment, observer_findings = observer(inputs)
        fragments.append(fragment)
        findings += observer_findings
    return merge_process(fragments), tuple(findings)


@dataclass(frozen=True, slots=True)
class TLSSource:
    profile: Any
    owner: str  # the object, as a prefix of paths; empty for KubeScheduler
    condition: str  # the condition that reports its errors
    blocking: bool  # False if the rest of the cluster falls back to Intermediate

    def path(self, *parts: str | int) -> str:
        return self.owner + format_path(("spec", "tlsSecurityProfile", *parts))


def tls_source(inputs: Inputs) -> TLSSource | None:
    return tls_profile(inputs.platform, inputs.objects.apiserver, inputs.spec)


def tls_profile(
    platform: Platform, apiserver: Object | None, spec: Mapping[str, Any]
) -> TLSSource | None:
    """Return the TLS security profile of APIServer or of KubeScheduler; None if unset."""
    if platform.cluster_config:
        profile = mapping(mapping(apiserver).get("spec")).get("tlsSecurityProfile")
        return TLSSource(profile, "APIServer/cluster ", names.CONFIG_OBSERVATION_DEGRADED, False)
    profile = spec.get("tlsSecurityProfile")
    if profile is None:
        return None
    return TLSSource(profile, "", names.TARGET_CONFIG_DEGRADED, True)


def observe_serving(inputs: Inputs) -> Observation:
    """Observe the TLS settings of the cluster's API servers or, elsewhere, KubeScheduler's own."""
    if inputs.accepted_serving is not None:
        return {SERVING_INFO: inputs.accepted_serving}, []
    source = tls_source(inputs)
    if source is None:
        return {}, []
    info, problems = serving_info(source.profile)
    findings = []
    for problem in problems:
        # A missing suite is not an error: servers that have it share the profile.
        unsupported = problem.reason == UNSUPPORTED_SUITE
        findings.append(
            Finding(
                names.INEFFECTIVE_SETTINGS if unsupported else source.condition,
                problem.reason,
                source.path(*problem.path),
                problem.sentence,
                blocking=source.blocking and not unsupported,
            )
        )
    return ({SERVING_INFO: info} if info else {}), findings


def observe_stock_arguments(inputs: Inputs) -> Observation:
    """Return the flags of the adopted scheduler, which users set through kubeadm.

    They are stored, because the old command line is not visible once the operator's pods run.
    """
    platform = inputs.platform
    flags = parse(inputs.facts.control_plane.stock_arguments)
    files = [file for file in flags.get("config", ()) if file != CONFIG_PATH]
    if CONFIG_PATH in flags.get("config", ()):
        flags = {}  # a pod of the operator
    if not flags:
        return _fragment(_remembered(inputs.spec.get("observedConfig"))), []
    kept = kept_flags(flags, platform)
    findings = [
        Finding(
            names.CONFIG_OBSERVATION_DEGRADED,
            HAS_CONFIG_FILE,
            f"{platform.manifest_path}: --config",
            f"The running scheduler reads {file}, which is not visible through the API: move its "
            "settings to spec.profile of the Scheduler or spec.unsupportedConfigOverrides of the "
            f"KubeScheduler, then remove --config from {platform.manifest_path}.",
            blocking=True,
        )
        for file in files
        if not platform.adopts_pods  # elsewhere it is read on the node
    ]
    return _fragment(kept), findings


def kept_flags(flags: Flags, platform: Platform) -> dict[str, Sequence[str]]:
    """Return the flags of an adopted scheduler that its users set, without defaults."""
    defaults = {name: [value] for name, value in platform.default_arguments}
    defaults[LOG_LEVEL] = [str(LOG_LEVELS["Normal"])]
    return {
        name: values
        for name, values in flags.items()
        if (is_users_flag(name) or (name == LOG_LEVEL and platform.adopts_pods))
        and name not in platform.dropped_arguments
        and values != defaults.get(name)
    }


def observe_adopted_settings(inputs: Inputs) -> Observation:
    """Return fields with the effect of flags that kube-scheduler ignores beside `--config`."""
    return dict(inputs.facts.control_plane.adopted_config), []


def _remembered(previous: Any) -> dict[str, list[str]]:
    arguments = previous.get(ARGUMENTS) if isinstance(previous, Mapping) else None
    if not isinstance(arguments, Mapping):
        return {}
    # Another writer may have added what the operator never stores.
    return {
        name: list(values)
        for name, values in arguments.items()
        if isinstance(values, list)
        and values
        and all(isinstance(value, str) for value in values)
        and FLAG_NAME.fullmatch(name)
        and (is_users_flag(normalized_name(name)) or name == LOG_LEVEL)
    }


def is_users_flag(name: str) -> bool:
    """Report whether users set a flag; the others are the operator's or kubeadm's."""
    return name not in _OURS and not name.startswith("leader-elect")


def _fragment(flags: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    kept = {name: list(values) for name, values in sorted(flags.items())}
    return {ARGUMENTS: kept} if kept else {}


_OBSERVERS: Final[tuple[Callable[[Inputs], Observation], ...]] = (
    observe_serving,
    observe_stock_arguments,
    observe_adopted_settings,
)
