"""The field `upgradeCheck` of OperatorSettings: which version of Kubernetes is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....base.objects import mapping
from ...language.versions import Version

FIELD: Final = "upgradeCheck"

_MINOR: Final = re.compile(r"1\.(0|[1-9][0-9]{0,2})")


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    version: Version  # the minor version that is checked
    image: str = ""  # of its kube-scheduler; empty: Kubernetes' own


def upgrade_request(spec: Mapping[str, Any] | None) -> UpgradeRequest | None:
    """Read the request in the spec of OperatorSettings; None without one, or if it is not valid."""
    field = mapping(mapping(spec).get(FIELD))
    version, image = field.get("version"), field.get("image") or ""
    if not isinstance(version, str) or not _MINOR.fullmatch(version):
        return None
    return UpgradeRequest(Version.parse(version), image if isinstance(image, str) else "")
