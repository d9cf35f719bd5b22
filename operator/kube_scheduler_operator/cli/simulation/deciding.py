"""The configurations behind an answer, each with its origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...simulate.configuration import profiles_of
from ...simulate.decided_by import DEFAULTS, DecidingConfiguration
from ...simulate.extenders import LeftOutExtender
from ...simulate.run_options import RunOptions
from .running_scheduler import CONTROL_PLANE


def deciding_configurations(
    options: RunOptions, origins: Mapping[str, str]
) -> tuple[DecidingConfiguration, ...]:
    """Return those of simulated schedulers; `origins` has them by title, of `options` by ""."""
    config = options.config
    names = tuple(str(profile["schedulerName"]) for profile in profiles_of(config))
    origin = origins.get("", DEFAULTS)
    own = DecidingConfiguration(CONTROL_PLANE, names, origin, config, titles(options.left_out))
    others = (
        DecidingConfiguration(
            one.title, one.names, origins.get(one.title, ""), one.config, titles(one.left_out)
        )
        for one in options.others
        if not one.problem
    )
    return own, *others


def titles(extenders: Iterable[LeftOutExtender]) -> tuple[str, ...]:
    return tuple(extender.title for extender in extenders)
