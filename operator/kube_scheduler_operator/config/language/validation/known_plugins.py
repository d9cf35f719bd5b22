"""Rules for the plugins of known third-party schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ....base.findings import Path, Problem, did_you_mean, listing
from ..plugins.in_tree_plugins import PLUGINS
from ..plugins.known_schedulers import KnownScheduler, owner_fix, owners_of
from ..plugins.target_scheduler import Target

UNKNOWN_PLUGIN: Final = "UnknownPlugin"
WRONG_POINT: Final = "WrongExtensionPoint"


def validate_known_plugin(
    name: str, point: str, where: Path, known: KnownScheduler
) -> Iterator[Problem]:
    """Yield problems of a plugin that kube-scheduler does not have, in a known scheduler."""
    own = known.plugins.get(name)
    label = f"{known.name} {known.version}"
    if own is None:
        if PLUGINS.get(name) is not None or known.newer:
            return  # its kube-scheduler may be older than the record, or the record older than it
        # If known.name owns it, only another version of this scheduler has the plugin.
        fix = "" if known.name in owners_of(name) else owner_fix(name)
        fix = fix or did_you_mean(name, known.plugins).removeprefix("; ") or "remove it"
        yield Problem(UNKNOWN_PLUGIN, where, f'{label} has no plugin "{name}"; {fix}')
    elif point != "multiPoint" and point not in own.points and not known.newer:
        message = f'plugin "{name}" of {label} does not implement {point}'
        yield Problem(WRONG_POINT, where, f"{message}; list it at {listing(own.points)}")


def of_known_scheduler(problem: Problem, name: str, target: Target) -> Problem:
    """Name the known scheduler, instead of kube-scheduler, in a problem of a plugin's arguments."""
    known = target.known
    if known is None or name not in known.plugins:
        return problem
    ours = f"kube-scheduler 1.{target.minor}"
    return replace(
        problem, message=problem.message.replace(ours, f"{name} of {known.name} {known.version}", 1)
    )
