"""What the control plane's objects lead to: from fields of users to a configuration in effect.

observe (default configuration, cluster settings, overrides, flags) → SchedulerExtenders, each by
itself → SchedulerProfiles, each by itself → compose and validate → replace what has an error by
what was accepted last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....base import names
from ....base.findings import Finding
from ..facts import Facts
from ..objects import Objects
from ..settings.requested_pod import NOTHING_REQUESTED, RequestedPod
from ..settings.validate import SettingsResult, validate_settings
from .accepted_settings import AcceptedSettings, SettingsInEffect, effective_settings, noted
from .compose import Composition, compose
from .inputs import Inputs

Accepted = Callable[[], AcceptedSettings | None]
"""The memory of what was accepted last; None: it is lost. It is read if a setting has an error."""


@dataclass(frozen=True, slots=True)
class EffectiveControlPlane:
    """What the control plane's scheduler would run."""

    composition: Composition  # of the settings in effect
    settings: SettingsResult | None  # None without OperatorSettings
    # errors and warnings, with what is in effect instead of a setting with an error
    findings: tuple[Finding, ...]
    # errors in the settings as written, which block a revision unless accepted ones replace them
    errors: tuple[Finding, ...] = ()

    @property
    def image(self) -> str:
        """kube-scheduler's; an older one while settings are not valid for the newer one."""
        return self.composition.inputs.facts.image or ""

    @property
    def pods(self) -> RequestedPod:
        """What OperatorSettings requests for its Pods."""
        return self.settings.pods if self.settings is not None else NOTHING_REQUESTED

    @property
    def blocking(self) -> bool:
        """Whether an error blocks a new revision."""
        return self.composition.blocking or any(finding.blocking for finding in self.findings)


def effective_control_plane(
    objects: Objects, facts: Facts, accepted: Accepted | None = None
) -> EffectiveControlPlane:
    """Compose the objects; never raise, whatever users wrote.

    Without `accepted`, an error in a setting blocks the whole configuration.
    """
    inputs = Inputs(objects, facts)
    composition = compose(inputs)
    settings = validate_settings(objects.settings, facts.platform, facts.pods)
    errors = composition.errors
    memory = accepted() if errors and accepted is not None else None
    in_effect = None
    if memory is not None:
        in_effect = effective_settings(inputs, errors, memory)
        if in_effect is None and memory.image not in ("", facts.image):
            # The settings in effect are not valid for the new image: keep the accepted one.
            in_effect = _with_accepted_image(objects, facts, errors, memory)
    if in_effect is None:
        return EffectiveControlPlane(composition, settings, composition.findings, errors)
    findings = _findings(composition, in_effect)
    return EffectiveControlPlane(in_effect.composition, settings, findings, errors)


def _findings(wanted: Composition, in_effect: SettingsInEffect) -> tuple[Finding, ...]:
    """Return the findings of the settings in effect, and the fact that users have set overrides."""
    overridden = names.OVERRIDES_UPGRADEABLE  # about what users set, not about what is in use
    return (
        *in_effect.findings,
        *(finding for finding in wanted.findings if finding.condition == overridden),
        *(finding for finding in in_effect.composition.findings if finding.condition != overridden),
    )


def _with_accepted_image(
    objects: Objects, facts: Facts, errors: Sequence[Finding], accepted: AcceptedSettings
) -> SettingsInEffect | None:
    """Return a configuration for the accepted image; None if it has errors as well."""
    image = accepted.image
    inputs = Inputs(objects, replace(facts, image=image))
    current = SettingsInEffect(compose(inputs))
    remaining = current.composition.errors
    in_effect = effective_settings(inputs, remaining, accepted) if remaining else current
    if in_effect is None:
        return None
    where = (
        f"nodes that kubeadm has upgraded run it without the configuration, the others {image},"
        if facts.follows_kubeadm
        else f"the schedulers stay at {image}"
    )
    note = f"(in {facts.image}; {where} until this is corrected)"
    reported = tuple(noted(error, note) for error in errors if error not in remaining)
    return replace(in_effect, findings=(*reported, *in_effect.findings))
