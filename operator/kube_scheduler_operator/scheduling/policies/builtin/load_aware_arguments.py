"""The arguments of load-aware: a load policy, in a file or inline, and its extensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....base.quantities import CPU, MEMORY
from ...load.policy import READABLE, Rules, time_zone
from ...load.policy_files import read_rules
from ..pod_estimates import SCALING
from ..policy import argument


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("this must be a list of objects")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class LoadAwareArguments:
    """The arguments of load-aware; the defaults are crane's policy with our extensions."""

    policy_file: str = argument(
        "",
        "path of a load policy (LoadPolicy or crane's DynamicSchedulerPolicy) that replaces the "
        "next five arguments; reloaded when it changes",
    )
    sync_policy: tuple[Mapping[str, Any], ...] | None = argument(
        None, "measuring period of each metric: `[{name, periodSeconds}]`", read=_objects
    )
    predicate: tuple[Mapping[str, Any], ...] | None = argument(
        None, "limits, as fractions: `[{name, maxLimit}]`", read=_objects
    )
    priority: tuple[Mapping[str, Any], ...] | None = argument(
        None, "weights in the score: `[{name, weight}]`", read=_objects
    )
    hot_value: tuple[Mapping[str, Any], ...] | None = argument(
        None,
        "one point of ten less for every `count` Pods within `seconds`: `[{seconds, count}]`",
        read=_objects,
    )
    grace_seconds: float = argument(
        300.0, "seconds after its period during which a measurement remains valid", least=0
    )
    variance: float = argument(
        1.0, "number of standard deviations added to the means, in the score only", least=0
    )
    in_flight: bool = argument(
        default=True, text="add the expected load of Pods that measurements do not include yet"
    )
    own_demand: bool = argument(
        default=True, text="add the expected load of the Pod itself, in the score only"
    )
    scaling_factors: Mapping[str, float] = argument(
        SCALING,
        "expected load of a Pod in percent of its requests or limits",
        least=0,
        most=100,
        choices=(CPU, MEMORY),
    )
    annotations: str = argument(
        "", "annotations to read; empty: as in the policy file, else `own`",
        choices=("", *READABLE[:3]),
    )  # fmt: skip
    time_zone: str = argument(
        "", "time zone of crane's annotations; empty: as in the policy file, else crane's default"
    )
    compatibility: bool = argument(
        default=False,
        text="as in crane: unknown load counts as full load in the score, nothing is added to "
        "measurements, hot values come from crane's annotation, and rejections allow preemption",
    )

    def __post_init__(self) -> None:
        lists = self.lists()
        if self.policy_file and lists:
            fix = f"set {' and '.join(lists)} in the file or omit policyFile"
            raise ValueError(f"policyFile has its own rules; {fix}")
        if not self.policy_file:
            self.rules()
        time_zone(self.time_zone)

    def lists(self) -> dict[str, Any]:
        """Return the configured rules under the names of a policy file."""
        rules = {
            "syncPolicy": self.sync_policy,
            "predicate": self.predicate,
            "priority": self.priority,
            "hotValue": self.hot_value,
        }
        return {name: list(value) for name, value in rules.items() if value is not None}

    def rules(self) -> Rules:
        """Return the configured rules, with crane's policy as default.

        Raises:
            LoadPolicyError: they are invalid.
        """
        return read_rules({**self.lists(), "graceSeconds": self.grace_seconds})
