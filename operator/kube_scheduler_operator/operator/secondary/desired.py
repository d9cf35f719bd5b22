"""The content of a SecondaryScheduler to roll out, cached by what it depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ...base import names
from ...base.findings import Finding
from ...base.limits import CONFIG_MAP_BYTES
from ...base.platform import Platform
from ...base.spec_limits import TOO_LARGE
from ...config.effective.secondary.compose import SecondaryComposition
from ...config.effective.secondary.request import SchedulerRequest
from ...config.effective.secondary.scheduler import EffectiveSecondary, composed
from ...config.language.plugins.target_scheduler import Target
from .content import SchedulerProgram, SecondaryContent, make_content


@dataclass(frozen=True, slots=True)
class OperandDefaults:
    image: str  # the control plane's kube-scheduler image; empty if it is unknown
    pull_secrets: tuple[str, ...] = ()  # of the target namespace
    agent_image: str = ""  # the operator's own image


@dataclass(frozen=True, slots=True)
class DesiredScheduler:
    request: SchedulerRequest  # the SecondaryScheduler with defaults
    composition: SecondaryComposition  # validated
    content: SecondaryContent | None  # to roll out; None if it has errors

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.composition.findings


def desired_scheduler(
    made: EffectiveSecondary, platform: Platform, operand: OperandDefaults
) -> DesiredScheduler:
    composition = made.composition
    if composition.blocking:
        return DesiredScheduler(made.request, composition, None)
    content = _content(made.key, platform, operand, made.target)
    if content.size > CONFIG_MAP_BYTES:
        message = (
            f"its ConfigMap would have {content.size} bytes, and the limit is {CONFIG_MAP_BYTES}; "
            "shorten its profiles, extenders or sidecars"
        )
        too_large = Finding(names.DEGRADED, TOO_LARGE, "spec", message, blocking=True)
        findings = (*composition.findings, too_large)
        return DesiredScheduler(made.request, replace(composition, findings=findings), None)
    return DesiredScheduler(made.request, composition, content)


@lru_cache(maxsize=1024)
def _content(
    key: str, platform: Platform, operand: OperandDefaults, target: Target
) -> SecondaryContent:
    request, composition = composed(key, platform, target)
    default = operand.pull_secrets if request.namespace == platform.target_namespace else ()
    program = SchedulerProgram(
        image=request.image or operand.image,
        command=request.command
        or (platform.operand_command if target.stock else ("kube-scheduler",)),
        version=target.gates.version,
        stock=target.stock,
        pull_secrets=default if request.pull_secrets is None else request.pull_secrets,
        agent_image=operand.agent_image,
    )
    return make_content(request, composition, program)
