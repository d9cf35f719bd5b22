"""Settings of the last accepted revision, which stay in effect while newer ones have an error.

KubeScheduler and Scheduler have many authors. An error in one of their fields is the condition of
that field: its last accepted value replaces it, and every other edit takes effect. The unit is a
field of the spec, because half of a map of feature gates is a configuration that no author wrote.

What runs is never lost that way. Before the first revision, a field with an error is unset, and the
flags of the adopted scheduler stay as they are; an error in those flags stops the first revision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ....base import names
from ....base.findings import Finding
from ....base.names import OVERRIDES
from ....base.objects import mapping
from .base_configuration import NO_SCHEDULER
from .compose import Composition, compose
from .inputs import Inputs
from .observe import HAS_CONFIG_FILE
from .overrides import ARGUMENTS, SERVING_INFO
from .recorded_inputs import KUBESCHEDULER_FIELDS, SCHEDULER_FIELDS, RecordedInputs

_OBSERVED: Final = "observedConfig"
_SCHEDULER: Final = "Scheduler/cluster"
_APISERVER: Final = "APIServer/cluster"
_FIELD: Final = re.compile(r"spec\.(\w+)")

_WIDER: Final[tuple[frozenset[str], ...]] = (
    KUBESCHEDULER_FIELDS,
    KUBESCHEDULER_FIELDS | SCHEDULER_FIELDS | {_APISERVER, _SCHEDULER},
)
"""Replaced next if the fields with errors do not suffice: each group was valid as a whole."""


@dataclass(frozen=True, slots=True)
class AcceptedSettings:
    revision: int = 0  # the revision that was composed with them; 0: none was accepted yet
    inputs: RecordedInputs = field(default_factory=lambda: RecordedInputs({}, {}))
    image: str = ""  # kube-scheduler's image at that time; empty if unknown
    recorded_in: str = ""  # the object with the record, where that is not a revision

    @property
    def source(self) -> str:
        """Where they are recorded, for messages."""
        return self.recorded_in or f"revision {self.revision}"

    def in_place_of(self, settings: frozenset[str], inputs: Inputs) -> Inputs | None:
        """Replace `settings` of `inputs` by these values; None if one has no accepted value."""
        if not self.revision and settings & {_OBSERVED, _SCHEDULER}:
            return None  # the adopted scheduler has these flags, or no Scheduler exists yet
        own, theirs = self.inputs.kubescheduler, self.inputs.scheduler
        objects, facts, serving = inputs.objects, inputs.facts, inputs.accepted_serving
        spec = dict(inputs.spec)
        for name in settings & (KUBESCHEDULER_FIELDS - {_OBSERVED}):
            spec[name] = own.get(name)
        accepted = mapping(own.get(_OBSERVED))
        if _OBSERVED in settings:
            # The rest of it follows from other objects.
            observed = {k: v for k, v in mapping(spec.get(_OBSERVED)).items() if k != ARGUMENTS}
            flags = {ARGUMENTS: accepted[ARGUMENTS]} if accepted.get(ARGUMENTS) else {}
            spec[_OBSERVED] = {**observed, **flags}
            known = replace(facts.control_plane, stock_arguments=())
            facts = replace(facts, control_plane=known)
        if _APISERVER in settings:
            serving = accepted.get(SERVING_INFO)
            objects = replace(objects, apiserver=None)
        if settings & (SCHEDULER_FIELDS | {_SCHEDULER}):
            scheduler = dict(inputs.scheduler)
            missing = SCHEDULER_FIELDS if objects.scheduler is None else frozenset()
            for name in settings & SCHEDULER_FIELDS | missing:
                scheduler[name] = theirs.get(name)
            objects = replace(objects, scheduler={**(objects.scheduler or {}), "spec": scheduler})
        objects = replace(objects, kubescheduler={**objects.kubescheduler, "spec": spec})
        return Inputs(objects, facts, serving)

    def note(self, setting: str) -> str:
        """Describe what replaces a setting with an error; an empty one stands for all settings."""
        if not self.revision:
            if setting == _APISERVER:
                return "(Intermediate is in effect)"
            return "(not used: it stays unset)"
        if not setting:
            return f"(all settings of {self.source} stay in use)"
        fields = self.inputs.kubescheduler.keys() | self.inputs.scheduler.keys()
        if setting in KUBESCHEDULER_FIELDS | SCHEDULER_FIELDS and setting not in fields:
            return f"(not used: it stays unset, as in {self.source})"
        if setting in (OVERRIDES, _OBSERVED):
            return f"(those of {self.source} stay in use)"
        return f"(the value of {self.source} stays in use)"


@dataclass(frozen=True, slots=True)
class SettingsInEffect:
    """A configuration without the errors in settings."""

    composition: Composition
    # the errors, which no longer block a revision, with what is in effect instead
    findings: tuple[Finding, ...] = ()


def effective_settings(
    inputs: Inputs, errors: Sequence[Finding], accepted: AcceptedSettings
) -> SettingsInEffect | None:
    """Return a configuration in which accepted values replace the settings with an error.

    `errors` are those of `inputs`. More settings are replaced if the others are invalid with them.

    Returns:
        None if no replacement is valid, because kube-scheduler has changed since, or because an
        error is not one of a setting.
    """
    replaced: frozenset[str] = frozenset()
    as_a_whole = False
    reported: dict[Finding, str] = dict.fromkeys(errors, "")
    while True:
        settings = {error: setting_of(error) for error in errors}
        fresh = frozenset(settings.values()) - replaced - {""}
        reported |= {error: setting for error, setting in settings.items() if setting in fresh}
        if not fresh:
            wider = (group for group in _WIDER if not group <= replaced)
            fresh = next(wider, frozenset()) if accepted.revision else frozenset()
            as_a_whole = True
        if not fresh:
            return None
        replaced |= fresh
        chosen = accepted.in_place_of(replaced, inputs)
        if chosen is None:
            return None
        composition = compose(chosen)
        errors = composition.errors
        if not errors:
            findings = tuple(
                noted(error, accepted.note("" if as_a_whole else setting))
                for error, setting in reported.items()
            )
            return SettingsInEffect(composition, findings)


def noted(error: Finding, note: str) -> Finding:
    """Return `error` with a note on why it blocks no revision."""
    return replace(error, message=f"{error.message} {note}", blocking=False)


def kind_of(setting: str) -> str:
    """Return the kind of the object that has the setting; empty for no setting."""
    if setting in KUBESCHEDULER_FIELDS:
        return "KubeScheduler"
    return "Scheduler" if setting in SCHEDULER_FIELDS else setting.partition("/")[0]


def setting_of(error: Finding) -> str:
    """Return the field, or the object, that has the error; empty if it is none of these."""
    if error.condition == names.OVERRIDES_DEGRADED:
        return OVERRIDES
    if error.reason == NO_SCHEDULER:
        return _SCHEDULER
    if error.reason == HAS_CONFIG_FILE:
        return _OBSERVED
    if error.path.startswith(f"{_APISERVER} "):
        return _APISERVER
    match = _FIELD.match(error.path)
    name = match[1] if match else ""
    return name if name in KUBESCHEDULER_FIELDS | SCHEDULER_FIELDS else ""
