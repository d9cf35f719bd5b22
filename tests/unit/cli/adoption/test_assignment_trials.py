"""In which namespace an assignment is tried, and what the API server answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.cli.adoption.assignment_trials import try_assignments
from kube_scheduler_operator.cli.checks.check import AssignmentTrial
from kube_scheduler_operator.kube.errors import ApiRequest, Forbidden

BATCH = {"namespaceSelector": {"matchLabels": {"team": "batch"}}}
LABELS = {"a": {"team": "batch"}, "b": {"team": "batch"}, "c": {"team": "web"}}


class Cluster:
    """An API server: `refuses` has namespaces without rights, `answers` the names that Pods get."""

    def __init__(self, *answers: str, refuses: tuple[str, ...] = ()) -> None:
        self.labels: dict[str, dict[str, str]] = {MANAGED.operator_namespace: LABELS["a"], **LABELS}
        self.answers, self.refuses = list(answers), refuses
        self.pods: list[dict[str, Any]] = []

    async def list(self, _: Any) -> Any:
        items = [
            {"metadata": {"name": name, "labels": labels}} for name, labels in self.labels.items()
        ]
        return SimpleNamespace(items=items)

    async def create(self, _: Any, pod: dict[str, Any]) -> dict[str, Any]:
        self.pods.append(pod)
        if pod["metadata"]["namespace"] in self.refuses:
            raise Forbidden(ApiRequest("create", "/x"), status=403)
        return {"spec": {"schedulerName": self.answers.pop(0)}}

    async def trial(self, pods: dict[str, Any], **status: Any) -> AssignmentTrial | None:
        assignment = {"schedulerName": "packed", "pods": pods, **status}
        obj = {"metadata": {"name": "packed"}, "status": {"assignment": assignment}}
        api: Any = self
        return (await try_assignments(api, api, MANAGED, [obj])).get("packed")


async def test_a_selected_pod_is_tried_in_a_selected_namespace() -> None:
    cluster = Cluster("packed")
    pods = {
        **BATCH,
        "podSelector": {
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": ["web", "db"]},
                {"key": "tier", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ]
        },
        "priorityClassNames": ["usual"],
    }
    assert await cluster.trial(pods) == AssignmentTrial("packed", "a", "packed")
    (pod,) = cluster.pods
    assert pod["metadata"]["labels"] == {"app": "web", "tier": ""}
    assert pod["spec"]["priorityClassName"] == "usual"
    assert pod["spec"]["schedulerName"] == "default-scheduler"


async def test_a_webhook_may_be_late_once() -> None:
    assert await Cluster("default-scheduler", "packed").trial(BATCH) == AssignmentTrial(
        "packed", "a", "packed"
    )
    assert await Cluster("default-scheduler", "default-scheduler").trial(BATCH) == AssignmentTrial(
        "packed", "a", "default-scheduler"
    )


async def test_a_namespace_that_refuses_the_pod_does_not_answer() -> None:
    assert await Cluster("packed", refuses=("a",)).trial(BATCH) == AssignmentTrial(
        "packed", "b", "packed"
    )
    refused = await Cluster(refuses=("a", "b")).trial(BATCH)
    assert refused is not None
    assert not refused.namespace
    assert "namespace b refuses the Pod" in refused.unanswered


@pytest.mark.parametrize(
    "labels",
    [{}, {"a": {"team": "batch", names.ASSIGN_LABEL: names.ASSIGN_NEVER}}],
    ids=["none", "excluded"],
)
async def test_without_a_selected_namespace_nothing_is_tried(
    labels: dict[str, dict[str, str]],
) -> None:
    cluster = Cluster()
    cluster.labels = {MANAGED.operator_namespace: LABELS["a"], "c": LABELS["c"], **labels}
    trial = await cluster.trial(BATCH)
    assert trial is not None
    assert trial.unanswered == "it selects Pods of no namespace that exists"
    assert cluster.pods == []


async def test_pods_of_a_scheduler_that_comes_first_are_not_tried() -> None:
    cluster = Cluster("packed")
    others = [{"namespaceSelector": {"matchLabels": {"team": "batch"}}}]
    assert await cluster.trial({}, **{"except": others}) == AssignmentTrial("packed", "c", "packed")


async def test_an_assignment_that_is_not_in_effect_is_not_tried() -> None:
    api: Any = Cluster()
    assert await try_assignments(api, api, MANAGED, [{"metadata": {"name": "packed"}}]) == {}
