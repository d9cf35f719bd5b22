"""OperatorSettings in a reconcile: revisions, the last accepted version, and its status."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.control_plane import scheduler as effective
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import (
    changed_objects,
    read_inputs,
)
from kube_scheduler_operator.config.effective.settings import validate
from kube_scheduler_operator.kube.resource import OPERATOR_SETTINGS, SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Plan, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....builders import config_map, kubescheduler, operator_settings, scheduler
from ....expect import (
    condition_in,
    expect_accepted,
    expect_condition,
    expect_forgotten,
    expect_rejected,
    status_of_kubescheduler,
    written_statuses,
)
from .test_reconcile import start
from .test_reconcile_managed import NAME
from .test_reconcile_managed import start as managed

GOGC = {"env": [{"name": "GOGC", "value": "80"}]}
BAD = {"env": [{"name": "A TOKEN", "value": "x"}]}


def with_settings(obj: Any, **fields: Any) -> Snapshot:
    return start(operator_settings={"cluster": obj}, **fields)


def pod(plan: Plan) -> dict[str, Any]:
    """The static Pod that the plan writes."""
    (data,) = (a.obj["data"] for a in plan.actions if a.obj["metadata"]["name"] == names.POD)
    found: dict[str, Any] = json.loads(data[names.POD_KEY])
    return found


def environment(plan: Plan) -> list[str]:
    return [one["name"] for one in pod(plan)["spec"]["containers"][0].get("env", ())]


def status(plan: Plan) -> Any:
    return written_statuses(plan.reports, OPERATOR_SETTINGS)["cluster"]


def test_a_request_is_part_of_the_revision_and_recorded_with_it() -> None:
    plan = reconcile(with_settings(operator_settings(**GOGC)))
    assert environment(plan) == ["GOGC"]
    (data,) = (
        a.obj["data"] for a in plan.actions if a.obj["metadata"]["name"] == "revision-status-1"
    )
    recorded = read_inputs(data["inputs"])
    assert recorded is not None
    assert recorded.operator_settings == {"pods": GOGC}
    expect_accepted(status(plan))
    assert status(plan)["accepted"] == {"pods": GOGC}


def test_an_error_leaves_the_last_accepted_version_in_use_and_is_reported() -> None:
    plan = reconcile(with_settings(operator_settings(accepted={"pods": GOGC}, **BAD)))
    assert environment(plan) == ["GOGC"]
    expect_rejected(status(plan), "LastAcceptedInUse", "spec.pods.env[0].name")
    conditions = status_of_kubescheduler(plan)["conditions"]
    expect_condition(conditions, "OperatorSettingsDegraded", "True")
    assert (
        "(its last accepted version stays in use)"
        in condition_in(conditions, "OperatorSettingsDegraded")[2]
    )


def test_an_error_without_an_accepted_version_delays_no_other_edit() -> None:
    plan = reconcile(
        with_settings(operator_settings(**BAD), kubescheduler=kubescheduler(logLevel="Debug"))
    )
    assert environment(plan) == []
    assert "-v=4" in pod(plan)["spec"]["containers"][0]["args"]
    expect_rejected(status(plan), "NotInUse")


def test_an_up_to_date_status_is_not_written() -> None:
    snapshot = with_settings(operator_settings(**GOGC))
    after = operator_settings(**GOGC, status=status(reconcile(snapshot)))
    again = reconcile(replace(snapshot, operator_settings={"cluster": after}))
    assert written_statuses(again.reports, OPERATOR_SETTINGS) == {}


def revised(spec: Any) -> dict[str, Any]:
    """The ConfigMap of a revision that was cut with these OperatorSettings."""
    inputs = json.dumps({"scheduler": {}, "kubescheduler": {}, "operatorSettings": spec})
    found = config_map("revision-status-1", revision="1", inputs=inputs)
    found["metadata"]["annotations"] = {
        names.REVISION_READY_ANNOTATION: "true",
        names.OUTCOME_ANNOTATION: names.OUTCOME_INSTALLED,
    }
    return {"revision-status-1": found}


def test_while_the_kind_is_not_served_the_settings_of_the_revision_stay() -> None:
    maps = revised({"pods": GOGC})
    assert environment(reconcile(start(operator_settings=None, config_maps=maps))) == ["GOGC"]
    assert environment(reconcile(start(operator_settings={}, config_maps=maps))) == []


def test_a_defect_blocks_a_revision_without_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("defect")

    monkeypatch.setattr(effective, "validate_settings", fail)
    plan = reconcile(with_settings(operator_settings(**GOGC)))
    assert [a for a in plan.actions if a.obj["metadata"]["name"] == names.POD] == []
    expect_condition(
        status_of_kubescheduler(plan)["conditions"], "TargetConfigControllerDegraded", "True"
    )


def test_a_defect_of_the_validation_is_an_error_of_the_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("defect")

    monkeypatch.setattr(validate, "settings_problems", fail)
    settings = {"env": [{"name": "UNCACHED"}]}
    plan = reconcile(with_settings(operator_settings(**settings)))
    expect_rejected(status(plan), "NotInUse", "cannot process this")
    assert environment(plan) == []


@pytest.mark.parametrize(
    ("status", "left"),
    [
        ({"acceptedGeneration": 1}, {}),
        (
            {"acceptedGeneration": 1, "placementCheck": {"ran": ["0" * 64], "state": "Held"}},
            {"placementCheck": {"ran": ["0" * 64]}},
        ),
    ],
    ids=["accepted", "ran"],
)
def test_a_removal_forgets_all_of_the_status_except_what_ran(status: Any, left: Any) -> None:
    cluster = with_settings(
        operator_settings(**GOGC, status=status),
        kubescheduler=kubescheduler(managementState="Removed"),
        scheduler=scheduler(),
        nodes={},
        operand_pods={},
    )
    (report,) = (a for a in reconcile(cluster).reports if a.resource == OPERATOR_SETTINGS)
    expect_forgotten(report.obj["status"], **left)


def test_edits_between_two_revisions_are_named() -> None:
    def inputs(spec: Any) -> Any:
        return read_inputs(revised(spec)["revision-status-1"]["data"]["inputs"])

    (edited,) = changed_objects(inputs({"pods": GOGC}), inputs({"pods": {}}))
    assert edited.sentence == "OperatorSettings cluster was edited"
    (made,) = changed_objects(inputs(None), inputs({}))
    assert made.sentence == "OperatorSettings cluster is new"
    # A check of placements is not part of a revision.
    approved = {"placementCheck": {"mode": "Gate", "approved": "0" * 64}}
    assert changed_objects(inputs(None), inputs(approved)) == ()
    assert changed_objects(inputs({"pods": GOGC}), inputs({"pods": GOGC, **approved})) == ()


# --- where the provider runs the control plane's scheduler ----------------------------------------


def written(plan: Plan) -> dict[str, Any]:
    (action,) = (a for a in plan.actions if a.resource == SECONDARY_SCHEDULERS)
    spec: dict[str, Any] = action.obj["spec"]
    return spec


def test_the_managed_scheduler_has_resources_and_priority() -> None:
    pods = {
        "resources": {"limits": {"memory": "1Gi"}},
        "priorityClassName": "system-node-critical",
        **GOGC,
    }
    plan = reconcile(managed(operator_settings={"cluster": operator_settings(**pods)}))
    spec = written(plan)
    assert spec["resources"] == {
        "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "1Gi"},
    }  # fmt: skip
    assert spec["priorityClassName"] == "system-node-critical"
    found = status(plan)
    expect_accepted(found)
    warnings = condition_in(found["conditions"], "Warnings")
    assert warnings[0] == "True"
    assert warnings[2].startswith("spec.pods.env: has no effect where the provider runs")


def test_without_a_request_the_managed_scheduler_has_its_defaults() -> None:
    spec = written(reconcile(managed()))
    assert not {"resources", "priorityClassName"} & spec.keys()


def test_while_the_kind_is_not_served_the_managed_scheduler_keeps_its_resources() -> None:
    pods = {"resources": {"limits": {"memory": "1Gi"}}}
    first = managed(operator_settings={"cluster": operator_settings(**pods)})
    (made,) = (a.obj for a in reconcile(first).actions if a.resource == SECONDARY_SCHEDULERS)
    secondaries = replace(first.secondaries, schedulers={NAME: made})
    later = reconcile(replace(first, operator_settings=None, secondaries=secondaries))
    specs = [
        a.obj["spec"]["resources"]
        for a in later.actions
        if a.resource == SECONDARY_SCHEDULERS and isinstance(a, Replace)
    ]
    assert specs in ([], [made["spec"]["resources"]])
