"""The flags beside a Policy, which kube-scheduler ignores as soon as --config is set.

Source: ApplyDeprecated and DeprecatedOptions in cmd/kube-scheduler/app/options of k8s.io/kubernetes
v1.22.17; --scheduler-name and --hard-pod-affinity-symmetric-weight were removed before. The flags
of leader election (--leader-elect…) still apply with --config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...base.go_values import boolean, integer, without_nulls
from ..language.schema import DEFAULT_SCHEDULER
from ..language.validation.configuration import Target, validate_config
from .changes import ConversionLog
from .convert import Conversion

_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[str], Any]]]] = {
    "lock-object-name": (("leaderElection", "resourceName"), str),
    "lock-object-namespace": (("leaderElection", "resourceNamespace"), str),
    "kubeconfig": (("clientConnection", "kubeconfig"), str),
    "kube-api-burst": (("clientConnection", "burst"), integer),
    "kube-api-content-type": (("clientConnection", "contentType"), str),
    "kube-api-qps": (("clientConnection", "qps"), float),
    "profiling": (("enableProfiling",), boolean),
    "contention-profiling": (("enableContentionProfiling",), boolean),
}
"""Flag -> the field that replaces it, and how its value is read."""
NAME: Final = "scheduler-name"
_HARD: Final = "hard-pod-affinity-symmetric-weight"


def with_flags(conversion: Conversion, flags: Mapping[str, str], target: Target) -> Conversion:
    """Add the settings of a scheduler's flags to its converted Policy.

    `flags` maps names without dashes to effective values.
    """
    config = dict(conversion.config)
    log = ConversionLog()
    why = "kube-scheduler ignores the flag beside --config"
    for flag, (path, read) in _FIELDS.items():
        if flag not in flags:
            continue
        try:
            value = read(flags[flag])
        except ValueError as error:
            log.lost((), f"--{flag} has no effect", f"its value is invalid: {error}")
            continue
        *parents, last = path
        owner = config
        for parent in parents:
            owner[parent] = dict(owner.get(parent) or {})
            owner = owner[parent]
        owner[last] = value
        log.same((), f"--{flag} became {'.'.join(path)}", why)
    name = flags.get(NAME, DEFAULT_SCHEDULER)
    if name != DEFAULT_SCHEDULER:
        first, *others = config.get("profiles") or [{}]
        config["profiles"] = [{"schedulerName": name, **first}, *others]
        log.same((), f"--{NAME} became profiles[0].schedulerName", why)
    if _HARD in flags:
        what = f"--{_HARD} {flags[_HARD]} has no effect"
        log.differs((), what, "set hardPodAffinityWeight in the arguments of InterPodAffinity")
    what = "Policy converted to KubeSchedulerConfiguration"
    log.same(("kind",), what, "kube-scheduler reads it with --config")
    changes = (change for change in conversion.changes if change.path != ("kind",))
    problems = tuple(validate_config(without_nulls(config), target))
    return replace(conversion, config=config, changes=(*changes, *log.changes()), problems=problems)
