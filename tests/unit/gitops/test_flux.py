"""Flux' health checks of KubeScheduler, evaluated by CEL's own library over its states."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from cel_expr_python import cel

from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS

from . import argo_cd

FILE = argo_cd.FOLDER.parent / "flux" / "scheduling.yaml"
(CHECK,) = yaml.safe_load(FILE.read_text(encoding="utf-8"))["spec"]["healthCheckExprs"]
FIXTURES = argo_cd.fixtures(KUBE_SCHEDULERS)
SHOWN = {
    "healthy": "Current", "unmanaged": "Current", "being-deleted": "Current",
    "rolling-out": "InProgress", "edited": "InProgress",
    "refused": "Failed", "failed": "Failed", "held": "Failed",
}  # fmt: skip
"""While an object is being deleted, kstatus decides before these expressions."""


def status(obj: dict[str, Any]) -> str:
    """As Flux does: the first expression that is true, in this order."""
    environment = cel.NewEnv(variables=dict.fromkeys(("metadata", "spec", "status"), cel.Type.DYN))
    for field, name in (("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")):
        data = {key: obj.get(key) or {} for key in ("metadata", "spec", "status")}
        if environment.compile(CHECK[field]).eval(data=data).value():
            return name
    return "InProgress"


def test_the_expressions_are_for_the_kind() -> None:
    assert (CHECK["apiVersion"], CHECK["kind"]) == (
        KUBE_SCHEDULERS.api_version, KUBE_SCHEDULERS.kind,
    )  # fmt: skip
    assert set(SHOWN) == set(FIXTURES)


@pytest.mark.parametrize("state", FIXTURES)
def test_what_flux_shows_of_a_state(state: str) -> None:
    assert status(FIXTURES[state]) == SHOWN[state]


def test_an_object_without_a_status_is_in_progress() -> None:
    assert status({**FIXTURES["healthy"], "status": {}}) == "InProgress"
