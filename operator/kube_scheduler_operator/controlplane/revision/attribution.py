"""Who is to mend a revision that kube-scheduler did not run with, and what it said of it.

`profiles/attribution.py` and `extenders/attribution.py` find out which one that is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...base import names
from ...extenders.attribution import attribute_extenders
from ...extenders.validate import ExtenderVerdict
from ...model.attachment import Refusal
from ...profiles.attribution import attribute
from ...profiles.validate import Verdict
from ..compose import Composition
from .history import Revision


def refusal_of(rejected: Revision | None) -> Refusal | None:
    """What it said; None if nothing was rejected, or nobody knows what."""
    if rejected is None:
        return None
    try:
        config = json.loads(rejected.copies[names.CONFIG]["data"][names.CONFIG_KEY])
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(config, Mapping):
        return None  # somebody put something else there
    did = "refused" if rejected.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = f"kube-scheduler {did} revision {rejected.number}, mend this or take it back"
    return Refusal(config, rejected.message, state)


def blamed_profiles(composition: Composition, refusal: Refusal | None) -> tuple[Verdict, ...]:
    """The verdicts of SchedulerProfiles, with what was said of their profiles."""
    if refusal is None or composition.config is None:
        return composition.verdicts
    refused, profiles = refusal.config.get("profiles"), composition.config.get("profiles")
    return attribute(composition.verdicts, refusal.words, refused, profiles, refusal.state)


def blamed_extenders(
    composition: Composition, refusal: Refusal | None
) -> tuple[ExtenderVerdict, ...]:
    """The same of SchedulerExtenders."""
    if refusal is None:
        return composition.extenders
    refused = refusal.config.get("extenders")
    return attribute_extenders(composition.extenders, refusal.words, refused, refusal.state)
