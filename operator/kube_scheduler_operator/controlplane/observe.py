"""What is observed in the cluster and remembered in `KubeScheduler.spec.observedConfig`.

Each observer is a pure function from what can be seen now, and what was observed before, to a
fragment of its own. observedConfig is their union and nothing else: what somebody else writes there
is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding, format_path
from ..base.objects import mapping
from ..model.inputs import Inputs
from ..schedulerconfig.command_line import CONFIG_PATH, parse
from ..schedulerconfig.flags import VOID_BESIDE_CONFIG
from ..schedulerconfig.merge import merge_process
from .overrides import ARGUMENTS, SERVING_INFO
from .tls_profiles import UNSUPPORTED_SUITE, serving_info

Observation = tuple[dict[str, Any], list[Finding]]

_OURS: Final = frozenset({
    "config", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "v",
    "write-config-to", "help", "version", *VOID_BESIDE_CONFIG,
})  # fmt: skip


def observe(inputs: Inputs) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Ask every observer: (observedConfig, findings).

    observedConfig as read, in the inputs, is not trusted to have the right types.
    """
    fragments: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for observer in _OBSERVERS:
        fragment, found = observer(inputs)
        fragments.append(fragment)
        findings += found
    return merge_process(fragments), tuple(findings)


@dataclass(frozen=True, slots=True)
class TLSSource:
    """Where a TLS security profile was written.

    Attributes:
        profile: as read.
        owner: the object, in front of a path; empty for KubeScheduler.
        condition: who reports what is wrong with it.
        blocking: False where the rest of the cluster takes Intermediate instead.
    """

    profile: Any
    owner: str
    condition: str
    blocking: bool

    def path(self, *parts: str | int) -> str:
        """The path of a field of the profile, from the top of its object."""
        return self.owner + format_path(("spec", "tlsSecurityProfile", *parts))


def tls_source(inputs: Inputs) -> TLSSource | None:
    """The TLS security profile that counts; None where nobody has written one."""
    if inputs.platform.cluster_config:
        profile = mapping(mapping(inputs.apiserver).get("spec")).get("tlsSecurityProfile")
        return TLSSource(profile, "APIServer/cluster ", names.CONFIG_OBSERVATION_DEGRADED, False)
    profile = inputs.spec.get("tlsSecurityProfile")
    if profile is None:
        return None
    return TLSSource(profile, "", names.TARGET_CONFIG_DEGRADED, True)


def observe_serving(inputs: Inputs) -> Observation:
    """TLS settings, from where the cluster has them for all its API servers, else from our own."""
    source = tls_source(inputs)
    if source is None:
        return {}, []
    info, problems = serving_info(source.profile)
    findings = []
    for problem in problems:
        # A suite less is no reason for an alarm: profiles are shared with servers that have it.
        only_told = problem.reason == UNSUPPORTED_SUITE
        findings.append(
            Finding(
                names.INEFFECTIVE_SETTINGS if only_told else source.condition,
                problem.reason,
                source.path(*problem.path),
                problem.message,
                blocking=source.blocking and not only_told,
            )
        )
    return ({SERVING_INFO: info} if info else {}), findings


def observe_stock_arguments(inputs: Inputs) -> Observation:
    """Flags that the users of kubeadm gave to the scheduler that was there before us.

    They are remembered: once our own pods run, the old command line cannot be seen any more.
    """
    platform = inputs.platform
    flags = parse(inputs.stock_arguments)
    files = [file for file in flags.get("config", ()) if file != CONFIG_PATH]
    if CONFIG_PATH in flags.get("config", ()):
        flags = {}  # that is a pod of ours
    if not flags:
        return _fragment(_remembered(inputs.spec.get("observedConfig"))), []
    defaults = {name: [value] for name, value in platform.default_arguments}
    kept = {
        name: values
        for name, values in flags.items()
        if name not in _OURS
        and name not in platform.dropped_arguments
        and not name.startswith("leader-elect")
        and values != defaults.get(name)
    }
    findings = [
        Finding(
            names.CONFIG_OBSERVATION_DEGRADED,
            "SchedulerHasConfigFile",
            f"{platform.manifest_path}: --config",
            f"The running scheduler reads {file}, which cannot be seen through the API: move its "
            "settings to spec.profile of the Scheduler or spec.unsupportedConfigOverrides of the "
            f"KubeScheduler, then remove --config from {platform.manifest_path}.",
            blocking=True,
        )
        for file in files
    ]
    return _fragment(kept), findings


def _remembered(previous: Any) -> dict[str, list[str]]:
    arguments = previous.get(ARGUMENTS) if isinstance(previous, Mapping) else None
    if not isinstance(arguments, Mapping):
        return {}
    return {
        name: list(values)
        for name, values in arguments.items()
        if isinstance(values, list) and values and all(isinstance(value, str) for value in values)
    }


def _fragment(flags: Mapping[str, list[str]]) -> dict[str, Any]:
    return {ARGUMENTS: dict(sorted(flags.items()))} if flags else {}


_OBSERVERS: Final[tuple[Callable[[Inputs], Observation], ...]] = (
    observe_serving,
    observe_stock_arguments,
)
