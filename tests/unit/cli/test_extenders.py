"""SchedulerExtenders in the commands: the result of a file, and the state of the cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    DEPLOYMENTS,
    SCHEDULER_EXTENDERS,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)

from ...builders import extender, secondary
from .conftest import Cluster, OnFile, content

V1 = "kube-scheduler-operator.dev/v1alpha1"
SAFE = {"policies": [{"name": "safe-overload"}]}
FILTER = {"filter": "filter"}


def foreign(name: str, **spec: Any) -> dict[str, Any]:
    return extender(name, **{"url": "http://10.0.0.1/x", "verbs": FILTER, **spec})


# --- files ----------------------------------------------------------------------------------------


def test_compose_shows_what_will_be_called_as_if_agents_ran(on_file: OnFile) -> None:
    code, shown, _ = on_file("compose", extender("safe", agent=SAFE), foreign("b"))
    assert code == 0
    urls = [one["urlPrefix"] for one in shown["config"]["extenders"]]
    assert urls == ["http://10.0.0.1/x", "http://127.0.0.1:5401/safe"]
    assert shown["schedulerExtenders"] == [
        {"name": "b", "state": "Accepted", "endpoint": urls[0]},
        {"name": "safe", "state": "Accepted", "endpoint": urls[1]},
    ]


def test_compose_fails_for_one_that_is_not_accepted(on_file: OnFile) -> None:
    code, shown, _ = on_file("compose", foreign("bad", timeout="0s"), foreign("good"))
    assert code == 1
    assert [one["state"] for one in shown["schedulerExtenders"]] == ["NotInUse", "Accepted"]
    assert len(shown["config"]["extenders"]) == 1
    (reported,) = shown["conditions"]
    assert reported["type"] == names.SCHEDULER_EXTENDERS_DEGRADED
    assert "SchedulerExtender/bad spec.timeout" in reported["message"]


def test_compose_with_extenders_of_a_secondary_scheduler(on_file: OnFile) -> None:
    code, shown, _ = on_file("compose", secondary(), extender("safe", scheduler="mine", agent=SAFE))
    assert code == 0
    assert set(shown) == {"schedulerExtenders", "secondarySchedulers"}
    (further,) = shown["secondarySchedulers"]
    assert further["config"]["extenders"][0]["urlPrefix"] == "http://127.0.0.1:5401/safe"


def test_compose_without_a_spec_suggests_one(on_file: OnFile) -> None:
    broken = {**extender("a"), "spec": None}
    code, _, err = on_file("compose", broken)
    assert code == 2
    assert "spec: {agent: {policies: [{name: safe-overload}]}}" in err


@pytest.mark.parametrize(
    ("documents", "path", "severity"),
    [
        ([foreign("a", timeout="0s")], "spec.timeout", "error"),
        ([foreign("a", timeot="1s")], "spec.timeot", "error"),
        ([foreign("a", ignorable=False)], "spec.ignorable", "warning"),
        ([foreign("a", scheduler="mine", timeout="0s")], "spec.timeout", "error"),
        ([secondary(), foreign("a", scheduler="mine", timeout="0s")], "spec.timeout", "error"),
        ([extender("a", agent={"policies": [{"name": "no"}]})],
         "spec.agent.policies[0].name", "error"),
    ],
)  # fmt: skip
def test_validate_reports_an_error_once_with_its_position(
    on_file: OnFile, documents: Any, path: str, severity: str
) -> None:
    code, shown, _ = on_file("validate", *documents)
    assert code == (1 if severity == "error" else 0)
    mine = [f for f in shown["findings"] if f["kind"] == "SchedulerExtender"]
    assert [(f["path"], f["severity"]) for f in mine] == [(path, severity)]


def test_validate_looks_at_all_extenders_of_a_scheduler_together(on_file: OnFile) -> None:
    managed = [{"name": "example.com/gpu"}]
    overrides = {"extenders": [{"urlPrefix": "http://x", "filterVerb": "f", "ignorable": True,
                                "httpTimeout": "1s", "nodeCacheCapable": True,
                                "managedResources": managed}]}  # fmt: skip
    kubescheduler = {
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler",
        "metadata": {"name": "cluster"}, "spec": {"unsupportedConfigOverrides": overrides},
    }  # fmt: skip
    code, shown, _ = on_file("validate", kubescheduler, foreign("a", managedResources=managed))
    assert code == 1
    (finding,) = shown["findings"]
    assert (finding["kind"], finding["reason"]) == ("SchedulerExtender", "AlreadyTaken")


# --- the cluster ----------------------------------------------------------------------------------


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    cluster.kubescheduler({"a": 1})
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    cluster.revision(1, content())
    cluster.api.served |= {SECONDARY_SCHEDULERS, SCHEDULER_EXTENDERS}
    return cluster


async def test_diff_of_a_file_shows_the_call_that_comes(running: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(foreign("a")))
    done = await running.run("diff", "-f", str(file), "-o", "words")
    assert done.code == 1, done.err
    assert "http://10.0.0.1/x" in done.out
    file.write_text(json.dumps(foreign("a", timeout="0s")))
    done = await running.run("diff", "-f", str(file))
    assert "a would not be accepted: SchedulerExtender/a spec.timeout" in done.err


async def test_diff_leaves_those_of_the_cluster_as_they_are(
    running: Cluster, tmp_path: Path
) -> None:
    running.put(SCHEDULER_EXTENDERS, foreign("a"))
    file = tmp_path / "a.json"
    file.write_text(json.dumps(foreign("b", url="http://10.0.0.2/y")))
    done = await running.run("diff", "-f", str(file), "-o", "words")
    assert "http://10.0.0.2/y" in done.out


async def test_diff_leaves_out_what_the_operator_does_not_permit(
    running: Cluster, tmp_path: Path
) -> None:
    image = "example.com/agents:v1"
    running.put(SCHEDULER_EXTENDERS, extender("slow", agent={**SAFE, "image": image}))
    file = tmp_path / "scheduler.json"
    body = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}
    file.write_text(json.dumps({**body, "metadata": {"name": names.CLUSTER}}))
    running.api.served.add(DEPLOYMENTS)
    operator: dict[str, Any] = {"command": [names.PROGRAM, "operator"], "image": "own:v1"}
    for allowed, is_added in (("", False), ("example.com/agents", True)):
        env = [{"name": "ALLOWED_IMAGES", "value": allowed}]
        spec = {"template": {"spec": {"containers": [{**operator, "env": env}]}}}
        metadata = {"name": names.PROGRAM, "namespace": names.PROGRAM}
        running.put(DEPLOYMENTS, {"metadata": metadata, "spec": spec})
        done = await running.run("diff", "-f", str(file), "-o", "words")
        assert ("http://127.0.0.1:5401/slow" in done.out) is is_added, done


async def test_status_shows_where_they_are_and_whether_they_answer(running: Cluster) -> None:
    conditions = [
        {"type": names.ACCEPTED, "status": "True", "reason": "Accepted"},
        {"type": names.AVAILABLE, "status": "False"},
        {"type": names.WARNINGS, "status": "True", "message": "it is slow"},
    ]
    status = {
        "observedGeneration": 4,
        "endpoint": "http://127.0.0.1:5401/safe",
        "agent": {"port": 5401, "ready": 1, "desired": 3},
        "conditions": conditions,
    }
    running.put(SCHEDULER_EXTENDERS, extender("safe", generation=4, status=status, agent=SAFE))
    running.put(SCHEDULER_EXTENDERS, foreign("new", scheduler="mine"))
    done = await running.run("status")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["safe", "-", "Accepted", "False", "1/3", "http://127.0.0.1:5401/safe"] in lines
    assert ["new", "mine", "not", "observed", "Unknown", "-", "not", "called"] in lines
    assert "SchedulerExtender safe: it is slow" in done.out


async def test_undo_names_the_extenders_that_it_leaves_to_their_owners(running: Cluster) -> None:
    running.put(SCHEDULER_EXTENDERS, foreign("a"))
    running.kubescheduler({"a": 2}, logLevel="Debug")
    running.revision(2, content(logLevel="Debug"))
    done = await running.run("rollout", "undo", "--to-revision", "1", "--dry-run")
    assert done.code == 0, done.err
    assert "  - SchedulerExtender a is new" in done.out
