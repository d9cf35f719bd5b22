"""The arguments of load-aware: a load policy, in a file or here, and what is added to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base.quantities import CPU, MEMORY
from ...load.policy import READABLE, LoadPolicyError, Rules, sentence, time_zone
from ...load.policy_files import read_rules
from ..arguments import ArgumentsError
from ..pod_estimates import SCALING
from ..policy import argument


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("this must be a list of objects")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class LoadAwareArguments:
    """The arguments of load-aware; without any, crane's shipped policy with our additions."""

    policy_file: str = argument(
        "",
        "a load policy (ours, or crane's DynamicSchedulerPolicy) instead of the five fields that "
        "follow; read again when it changes",
    )
    sync_policy: tuple[Mapping[str, Any], ...] | None = argument(
        None, "how often each metric is measured: `[{name, periodSeconds}]`", read=_objects
    )
    predicate: tuple[Mapping[str, Any], ...] | None = argument(
        None, "limits, as fractions: `[{name, maxLimit}]`", read=_objects
    )
    priority: tuple[Mapping[str, Any], ...] | None = argument(
        None, "weights in the score: `[{name, weight}]`", read=_objects
    )
    hot_value: tuple[Mapping[str, Any], ...] | None = argument(
        None,
        "a point of ten for each `count` pods within `seconds`: `[{seconds, count}]`",
        read=_objects,
    )
    grace_seconds: float = argument(
        300.0, "for so long beyond its period a metric is believed", least=0
    )
    variance: float = argument(
        1.0, "so many standard deviations are added to the means, in the score alone", least=0
    )
    in_flight: bool = argument(
        default=True, text="add what pods that measurements do not show yet will use"
    )
    own_demand: bool = argument(
        default=True, text="add what the pod itself will use, in the score alone"
    )
    scaling_factors: Mapping[str, float] = argument(
        SCALING,
        "how much of what it may ask for a pod will use, in percent",
        least=0,
        most=100,
        choices=(CPU, MEMORY),
    )
    annotations: str = argument(
        "", "whose annotations on nodes to read; empty: what the file says, or our own",
        choices=("", *READABLE[:3]),
    )  # fmt: skip
    time_zone: str = argument(
        "", "the zone of the times in crane's annotations; empty: what the file says, or crane's"
    )
    compatibility: bool = argument(
        default=False,
        text="as crane: unknown use counts as full use in the score, nothing is added to what was "
        "measured, hot values come from its annotation, and rejections make the scheduler try "
        "preemption",
    )

    def __post_init__(self) -> None:
        """Check what belongs together."""
        lists = self.lists()
        if self.policy_file and lists:
            fix = f"give {' and '.join(lists)} in the file or leave policyFile out"
            raise ValueError(f"policyFile comes with rules of its own; {fix}")
        try:
            if not self.policy_file:
                self.rules()
            time_zone(self.time_zone)
        except LoadPolicyError as error:
            raise ArgumentsError(
                [f"arguments.{sentence(each)}" for each in error.problems]
            ) from error

    def lists(self) -> dict[str, Any]:
        """The rules that are given, under the names that a file has for them."""
        given = {
            "syncPolicy": self.sync_policy,
            "predicate": self.predicate,
            "priority": self.priority,
            "hotValue": self.hot_value,
        }
        return {name: list(value) for name, value in given.items() if value is not None}

    def rules(self) -> Rules:
        """What is given, and crane's shipped policy for the rest.

        Raises:
            LoadPolicyError: it is wrong.
        """
        return read_rules({**self.lists(), "graceSeconds": self.grace_seconds})
