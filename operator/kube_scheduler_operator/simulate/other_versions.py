"""The older API versions of kinds whose newest version the world has.

A kube-scheduler reads a kind in the version of its own release: DeviceTaintRules are v1alpha3 for
1.34 and 1.35, v1beta2 for 1.36 and v1 for 1.37. Files and clusters have any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.objects import mapping

Object = dict[str, Any]
Convert = Callable[[Mapping[str, Any]], Object]


@dataclass(frozen=True, slots=True)
class OtherVersion:
    version: str  # e.g. "v1beta2"
    # spec in this version -> spec in the newest one, and the other way
    newer: Convert = dict
    older: Convert = dict


_MODES: Final = {"Pod": "single", "PodGroup": "all"}
"""disruptionMode of v1alpha2 -> the member of disruptionMode from v1alpha3 on."""


def _newer_group(spec: Mapping[str, Any]) -> Object:
    newer = dict(spec)
    template = mapping(mapping(newer.pop("podGroupTemplateRef", None)).get("workload"))
    if template:
        newer["workloadRef"] = {
            "workloadName": template.get("workloadName"),
            "templateName": template.get("podGroupTemplateName"),
        }
    if member := _MODES.get(str(newer.pop("disruptionMode", None))):
        newer["disruptionMode"] = {member: {}}
    return newer


def _older_group(spec: Mapping[str, Any]) -> Object:
    older = dict(spec)
    reference = mapping(older.pop("workloadRef", None))
    if reference:
        workload = {
            "workloadName": reference.get("workloadName"),
            "podGroupTemplateName": reference.get("templateName"),
        }
        older["podGroupTemplateRef"] = {"workload": workload}
    mode = mapping(older.pop("disruptionMode", None))
    for name, member in _MODES.items():
        if member in mode:
            older["disruptionMode"] = name
    return older


DEVICE_TAINT_RULES: Final = (OtherVersion("v1beta2"), OtherVersion("v1alpha3"))
POD_GROUPS: Final = (
    OtherVersion("v1alpha3"),  # 1.37
    OtherVersion("v1alpha2", _newer_group, _older_group),  # 1.36
)
