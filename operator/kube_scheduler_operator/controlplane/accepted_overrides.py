"""The overrides of the last accepted revision, which stay in use while newer ones have an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base import names
from ..base.findings import Finding
from ..base.objects import mapping
from ..model.inputs import Inputs
from ..model.limits import OVERRIDES
from ..model.snapshot import Snapshot
from .revision.history import read
from .revision.inputs import read_inputs


@dataclass(frozen=True, slots=True)
class AcceptedOverrides:
    """Overrides that were accepted.

    Attributes:
        value: `spec.unsupportedConfigOverrides`; None if none were set.
        revision: the number of the revision that was composed with them.
    """

    value: Mapping[str, Any] | None
    revision: int


def accepted_overrides(snapshot: Snapshot) -> AcceptedOverrides | None:
    """The overrides of the newest revision that was not refused; None if no revision has them.

    It need not be complete: it was validated before it was begun, and is completed with them.
    """
    for revision in reversed(read(snapshot.config_maps, snapshot.platform.parts)):
        inputs = None if revision.bad else read_inputs(revision.inputs)
        if inputs is not None:
            value = inputs.kubescheduler.get(OVERRIDES)
            known = value if isinstance(value, Mapping) else None
            return AcceptedOverrides(known, revision.number)
    return None


def is_override_error(finding: Finding) -> bool:
    """Whether an error in the overrides blocks a revision."""
    return finding.blocking and finding.condition == names.OVERRIDES_DEGRADED


def with_overrides(inputs: Inputs, overrides: Mapping[str, Any] | None) -> Inputs:
    """`inputs` with other overrides."""
    kubescheduler = inputs.kubescheduler
    spec = {**mapping(kubescheduler.get("spec")), OVERRIDES: overrides}
    return replace(inputs, kubescheduler={**kubescheduler, "spec": spec})
