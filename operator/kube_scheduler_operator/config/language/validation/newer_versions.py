"""Versions of Kubernetes that are newer than the releases in the tables of this package.

The rules of the newest recorded version apply to those that the tables lack, but names that it does
not have are only warnings, because a newer kube-scheduler may have them. A version of which a
pre-release is on record has the rules of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ....base.decoding import UNKNOWN_FIELD
from ....base.findings import WARNING, Finding, Problem
from ..decode import decode_problems
from ..plugins.in_tree_plugins import NEWEST, OLDEST, PRE_RELEASES, newer_than_recorded
from ..plugins.target_scheduler import Target
from ..schema import CONFIGURATION
from ..versions import Version
from .known_plugins import UNKNOWN_PLUGIN, WRONG_POINT
from .profiles import validate_profile

UNKNOWN_VERSION: Final = "UnknownVersion"

_MAY_BE_NEW: Final = frozenset((UNKNOWN_FIELD, UNKNOWN_PLUGIN, WRONG_POINT))


def newer_version_note(version: Version) -> str:
    """Explain the effect of a version newer than the recorded releases; empty if it is not."""
    if version.minor in PRE_RELEASES:
        return pre_release_note(version)
    if not newer_than_recorded(version):
        return ""
    return (
        f"Kubernetes {version.short} is newer than the versions on record ({OLDEST.short} to "
        f"{NEWEST.short}), so the rules of {NEWEST.short} apply, and kube-scheduler itself decides "
        f"on fields and plugins that {NEWEST.short} does not have"
    )


def pre_release_note(version: Version) -> str:
    """Name the pre-release whose rules a version has."""
    return (
        f"the rules of {version.short} are those of the pre-release {PRE_RELEASES[version.minor]}, "
        "not of a release, which may differ"
    )


def newer_version_findings(version: Version, condition: str) -> tuple[Finding, ...]:
    """Return the note as a warning for the status of an object; empty if it is not newer."""
    note = newer_version_note(version)
    if not note:
        return ()
    path, message = f"kube-scheduler {version.short}", f"{note}; upgrade this operator"
    return (Finding(condition, UNKNOWN_VERSION, path, message, blocking=False),)


def new_names(config: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    """Warn about fields outside of profiles that the newest recorded version does not have."""
    if newer_than_recorded(target.gates.version):
        others = {key: value for key, value in config.items() if key != "profiles"}
        problems = decode_problems(others, CONFIGURATION, (), NEWEST.minor)
        yield from _warnings(problems, target)


def new_names_in_profile(profile: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    """Warn about fields, plugins and extension points of a profile, likewise."""
    if newer_than_recorded(target.gates.version):
        newest = replace(target, gates=replace(target.gates, version=NEWEST))
        yield from _warnings(validate_profile(profile, newest).problems, target)


def _warnings(problems: Iterable[Problem], target: Target) -> Iterator[Problem]:
    for problem in problems:
        if problem.reason in _MAY_BE_NEW:
            begin = " Ignore" if problem.sentence.endswith("?") else "; ignore"
            unless = f"{begin} this if Kubernetes {target.gates.version.short} added it"
            message = f"{problem.sentence}{unless}"
            yield replace(problem, message=message, fix="", severity=WARNING)
