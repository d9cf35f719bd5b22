"""What is observed in the cluster and remembered in `KubeScheduler.spec.observedConfig`.

Each observer is a pure function from what can be seen now, and what was observed before, to a
fragment of its own. observedConfig is their union and nothing else: what somebody else writes there
is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .. import names
from ..platform import Platform
from .arguments import CONFIG_PATH, parse
from .findings import Finding
from .merge import merge_process
from .overrides import ARGUMENTS

Observation = tuple[dict[str, Any], list[Finding]]

_OURS: Final = frozenset({
    "config", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "v",
    "write-config-to", "help", "version",
    # kube-scheduler ignores these beside --config.
    "profiling", "contention-profiling", "kube-api-content-type", "kube-api-qps", "kube-api-burst",
})  # fmt: skip


def observe(
    platform: Platform, stock_arguments: tuple[str, ...], previous: Any
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Ask every observer: (observedConfig, findings).

    Args:
        platform: where the scheduler runs.
        stock_arguments: command line of a scheduler that is not ours yet, if one is visible.
        previous: observedConfig as read; it is not trusted to have the right types.
    """
    fragments: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for observer in _OBSERVERS:
        fragment, found = observer(platform, stock_arguments, previous)
        fragments.append(fragment)
        findings += found
    return merge_process(fragments), tuple(findings)


def observe_serving(platform: Platform, stock: tuple[str, ...], previous: Any) -> Observation:  # noqa: ARG001
    """TLS settings, from where a platform has them for all its components; kubeadm has none."""
    return {}, []


def observe_stock_arguments(
    platform: Platform, stock: tuple[str, ...], previous: Any
) -> Observation:
    """Flags that the users of kubeadm gave to the scheduler that was there before us.

    They are remembered: once our own pods run, the old command line cannot be seen any more.
    """
    flags = parse(stock)
    files = [file for file in flags.get("config", ()) if file != CONFIG_PATH]
    if CONFIG_PATH in flags.get("config", ()):
        flags = {}  # that is a pod of ours
    if not flags:
        return _fragment(_remembered(previous)), []
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


_OBSERVERS: Final[tuple[Callable[[Platform, tuple[str, ...], Any], Observation], ...]] = (
    observe_serving,
    observe_stock_arguments,
)
