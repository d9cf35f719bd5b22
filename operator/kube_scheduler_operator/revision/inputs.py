"""What users had set when a revision was cut, kept with it so that it can be asked for again.

A revision's content is the outcome of a composition, and many edits lead to the same one: there is
no way back from it to the fields that somebody wrote. So `revision-status-N` has them under the key
`inputs`. They are no part of the content and its hash: another way to the same content is no reason
to restart a scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..snapshot import Object

SCHEDULER_FIELDS: Final = frozenset({"profile", "profileCustomizations"})
"""Of `Scheduler.spec`: what a composition reads."""

KUBESCHEDULER_FIELDS: Final = frozenset(
    {
        "bindAddress",
        "featureGates",
        "forceRedeploymentReason",
        "logLevel",
        "observedConfig",
        "tlsSecurityProfile",
        "unsupportedConfigOverrides",
    }
)
"""Of `KubeScheduler.spec`: the same."""


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """The fields that a revision was composed from; what was not set is not in there.

    Attributes:
        scheduler: of the Scheduler's spec.
        kubescheduler: of the KubeScheduler's spec.
    """

    scheduler: Mapping[str, Any]
    kubescheduler: Mapping[str, Any]


def record(scheduler: Object | None, kubescheduler: Object | None) -> str:
    """The inputs as they are now, as compact JSON with sorted keys."""
    document = {
        "scheduler": _chosen((scheduler or {}).get("spec") or {}, SCHEDULER_FIELDS),
        "kubescheduler": _chosen((kubescheduler or {}).get("spec") or {}, KUBESCHEDULER_FIELDS),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_inputs(text: str) -> RecordedInputs | None:
    """What `record` wrote; None if there is nothing, or somebody put something else there."""
    try:
        document = json.loads(text)
        scheduler, kubescheduler = document["scheduler"], document["kubescheduler"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(scheduler, Mapping) or not isinstance(kubescheduler, Mapping):
        return None
    return RecordedInputs(
        _chosen(scheduler, SCHEDULER_FIELDS), _chosen(kubescheduler, KUBESCHEDULER_FIELDS)
    )


def _chosen(spec: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key in fields and value is not None}
