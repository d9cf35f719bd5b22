"""The canonical form of a configuration: without empty values, and with sorted keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def config_text(config: Mapping[str, Any]) -> str:
    """Encode a configuration file: compact JSON, sorted keys, trailing newline."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def without_empty_values(config: dict[str, Any]) -> dict[str, Any]:
    """Copy a configuration without empty lists and maps, which are equivalent to absent fields."""
    copy = {key: value for key, value in config.items() if value not in ({}, [])}
    if isinstance(copy.get("profiles"), list):
        copy["profiles"] = [_tidy_profile(profile) for profile in copy["profiles"]]
    return copy


def _tidy_profile(profile: Any) -> Any:
    if not isinstance(profile, dict):
        return profile
    points = profile.get("plugins")
    if isinstance(points, dict):
        sets = {
            point: {key: item for key, item in lists.items() if item != []}
            if isinstance(lists, dict)
            else lists
            for point, lists in points.items()
        }
        profile = {**profile, "plugins": {key: item for key, item in sets.items() if item != {}}}
    return {key: value for key, value in profile.items() if value not in ({}, [])}
