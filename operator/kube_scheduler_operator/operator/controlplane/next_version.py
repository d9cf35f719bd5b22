"""Whether the next minor version of Kubernetes would accept the configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...base import names
from ...base.findings import Finding
from ...config.effective.control_plane.compose import Composition, compose
from ...config.language.plugins.in_tree_plugins import NEWEST
from ...config.language.versions import Version
from ..status.conditions import AS_EXPECTED, Condition, aggregate

REFUSED: Final = "RefusedByNextVersion"


def next_version_condition(current: Composition) -> Condition:
    """Upgradeable, unless the next minor version has errors that the current one does not have."""
    type_ = names.NEXT_VERSION_UPGRADEABLE
    inputs = current.inputs
    version = inputs.facts.version
    following = Version(version.major, version.minor + 1)
    if (following.major, following.minor) > (NEWEST.major, NEWEST.minor):
        return Condition(type_, "True", "NextVersionUnknown")
    known = {_identity(finding) for finding in current.findings}
    errors = [
        finding.text
        for finding in compose(replace(inputs, facts=inputs.facts.of_version(following))).findings
        if finding.blocking and _identity(finding) not in known
    ]
    if not errors:
        return Condition(type_, "True", AS_EXPECTED)
    message = (
        f"kube-scheduler {following.short} would refuse the configuration of {version.short}: "
        f"{aggregate(dict.fromkeys(errors))}"
    )
    return Condition(type_, "False", REFUSED, message)


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.path, finding.reason
