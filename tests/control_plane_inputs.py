"""The inputs of the control plane's configuration: objects and facts by keyword."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kube_scheduler_operator.base.platform import Platform
from kube_scheduler_operator.config.effective.control_plane.inputs import Inputs
from kube_scheduler_operator.config.effective.facts import ControlPlaneFacts, Facts
from kube_scheduler_operator.config.effective.objects import Objects
from kube_scheduler_operator.config.language.versions import Version


def inputs_of(
    platform: Platform,
    default_version: Version,
    scheduler: Mapping[str, Any] | None,
    kubescheduler: Mapping[str, Any],
    **more: Any,
) -> Inputs:
    """The inputs, with further fields of Objects, Facts and ControlPlaneFacts."""
    objects = Objects(scheduler=scheduler, kubescheduler=kubescheduler)
    return inputs_with(Inputs(objects, Facts(platform, default_version)), **more)


def inputs_with(inputs: Inputs, **fields: Any) -> Inputs:
    """The same inputs, with other fields of Objects, Facts and ControlPlaneFacts."""
    known = replace(inputs.facts.control_plane, **_of(ControlPlaneFacts, fields))
    facts = replace(inputs.facts, **{"control_plane": known, **_of(Facts, fields)})
    assert not fields.keys() - {
        name for owner in (Objects, Facts, ControlPlaneFacts) for name in _of(owner, fields)
    }
    return replace(inputs, objects=replace(inputs.objects, **_of(Objects, fields)), facts=facts)


def _of(owner: type[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in owner.__slots__}
