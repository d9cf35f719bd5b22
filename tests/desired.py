"""What the operator would roll out for one SecondaryScheduler, for tests that start from that."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.base.images import repository
from kube_scheduler_operator.base.platform import Platform
from kube_scheduler_operator.config.effective.facts import Facts
from kube_scheduler_operator.config.effective.secondary.scheduler import (
    Attached,
    effective_secondary,
)
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.secondary.desired import (
    DesiredScheduler,
    OperandDefaults,
    desired_scheduler,
)


def desired_secondary(
    obj: Any, platform: Platform, operand: OperandDefaults, version: Version
) -> DesiredScheduler:
    """The desired state of a SecondaryScheduler without attached objects."""
    image = f"{repository(operand.image)}:{version}" if operand.image else ""
    facts = Facts(platform, version, image)
    return desired_scheduler(effective_secondary(obj, Attached(), facts, {}), platform, operand)
