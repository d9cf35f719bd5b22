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


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """The fields that a revision was composed from; None for what was not set.

    Attributes:
        profile: `spec.profile` of the Scheduler.
        kubescheduler: those fields of the KubeScheduler's spec that decide about a revision.
    """

    profile: str | None
    kubescheduler: Mapping[str, Any]


FIELDS: Final = frozenset(
    {"forceRedeploymentReason", "logLevel", "observedConfig", "unsupportedConfigOverrides"}
)
"""Of `KubeScheduler.spec`: what a composition reads."""


def record(scheduler: Object | None, kubescheduler: Object | None) -> str:
    """The inputs as they are now, as compact JSON with sorted keys."""
    spec = (kubescheduler or {}).get("spec") or {}
    document = {
        "profile": ((scheduler or {}).get("spec") or {}).get("profile"),
        "kubescheduler": {key: spec[key] for key in FIELDS if spec.get(key) is not None},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_inputs(text: str) -> RecordedInputs | None:
    """What `record` wrote; None if there is nothing, or somebody put something else there."""
    try:
        document = json.loads(text)
        profile, kubescheduler = document["profile"], document["kubescheduler"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(profile, str | None) or not isinstance(kubescheduler, Mapping):
        return None
    return RecordedInputs(profile, {k: v for k, v in kubescheduler.items() if k in FIELDS})
