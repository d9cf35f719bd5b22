"""What newer minor versions of kube-scheduler refuse, one after the other.

The condition NextVersionUpgradeable and `kubectl scheduler check --upgrade` are made from
`upgrade_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ....base.foreign_text import foreign
from ....base.objects import entries, mapping
from ..plugins.in_tree_plugins import NEWEST, OLDEST, PRE_RELEASES, newer_than_recorded
from ..versions import Version
from .newer_versions import pre_release_note

VICTIMLESS_CANDIDATES_SINCE: Final = Version(1, 38)
"""https://github.com/kubernetes/kubernetes/pull/135486"""

_URL_LENGTH: Final = 200


class VersionRefusal(NamedTuple):
    """An error with which kube-scheduler does not start, or serves a profile no longer."""

    identity: Hashable  # the same for the same error of another version
    text: str


def version_refusal(
    version: Version, place: Sequence[str], message: str, text: str
) -> VersionRefusal:
    """Return an error of a version; `message` first has the version, as that of others has."""
    return VersionRefusal((*place, message.replace(version.short, "", 1)), text)


@dataclass(frozen=True, slots=True)
class UpgradeStep:
    """What one minor version changes for a scheduler, compared with all before it."""

    version: Version
    # errors that no older version has, or of files that the present version refuses as well
    refused: tuple[str, ...] = ()
    duties: tuple[str, ...] = ()  # what extenders have to do from this version on
    unknown: str = ""  # why it is not known whether this version starts; empty: it is
    pre_release: str = ""  # whose rules these are; empty: those of a release


def upgrade_steps(
    current: Version,
    target: Version,
    refusals: Callable[[Version], Iterable[VersionRefusal]],
    extenders: Sequence[Any],
    unknown: str = "",
    *,
    runs: bool = True,
) -> tuple[UpgradeStep, ...]:
    """Return a step for each minor version after `current`, up to `target`.

    `refusals` returns the errors of a version, and `extenders` are those of the configuration.
    `unknown` is why no version's rules are known to apply, such as those of another image. `runs`:
    whether this is what `current` runs; else its errors are those of the next version as well.
    """
    known = {refusal.identity for refusal in refusals(current)}
    standing: set[Hashable] = set()
    if not runs:
        known, standing = standing, known
    steps = []
    for minor in range(current.minor + 1, target.minor + 1):
        version = Version(current.major, minor)
        duties = tuple(_duties(extenders, version))
        if newer_than_recorded(version):
            steps.append(UpgradeStep(version, duties=duties, unknown=_not_recorded(version)))
            continue
        new = [refusal for refusal in refusals(version) if refusal.identity not in known]
        known.update(refusal.identity for refusal in new)
        as_now = f"; {current.short} refuses it as well"
        texts = tuple(
            dict.fromkeys(each.text + as_now * (each.identity in standing) for each in new)
        )
        pre_release = pre_release_note(version) if minor in PRE_RELEASES else ""
        steps.append(UpgradeStep(version, texts, duties, "" if texts else unknown, pre_release))
    return tuple(steps)


def _not_recorded(version: Version) -> str:
    return (
        f"the rules of {version.short} are not on record (those of {OLDEST.short} to "
        f"{NEWEST.short} are)"
    )


def _duties(extenders: Sequence[Any], version: Version) -> Iterator[str]:
    if version != VICTIMLESS_CANDIDATES_SINCE:
        return
    for index, extender in enumerate(map(mapping, entries(extenders))):
        if extender.get("preemptVerb"):
            url = foreign(str(extender.get("urlPrefix") or ""), _URL_LENGTH)
            yield (
                f"extenders[{index}] ({url}) has a preemptVerb: from {version.short} on, it has to "
                "accept candidates whose list of victims is empty (kubernetes #135486)"
            )
