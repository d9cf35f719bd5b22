"""What the author of a SchedulerExtender cannot obtain through its agents."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.images import AllowedImages
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    SCHEDULER_EXTENDERS,
)

from .....expect import condition_of
from ....fake_cluster import FakeCluster

MINE = "registry.example/agent"
SAFE = [{"name": "safe-overload"}]

ATTACKS: list[tuple[dict[str, Any], str]] = [
    ({"image": "evil.example/agent:v1"}, "agent.image"),
    ({"image": "evil.example/agent:v1", "verbs": {"bind": True}}, "agent.image"),
    ({"image": f"{MINE}-evil:v1"}, "agent.image"),
    ({"env": {"PYTHONPATH": "/proc/1/root"}}, "agent.env.PYTHONPATH"),
    ({"env": {"KUBERNETES_SERVICE_HOST": "192.0.2.1"}}, "agent.env.KUBERNETES_SERVICE_HOST"),
    ({"env": {"POLICY_OBJECTIVE": "x"}}, "agent.env.POLICY_OBJECTIVE"),
    ({"image": f"{MINE}:v1", "env": {"LD_PRELOAD": "/x.so"}}, "agent.env.LD_PRELOAD"),
    ({"image": f"{MINE}:v1", "env": {"https_proxy": "http://192.0.2.1"}}, "agent.env.https_proxy"),
    (
        {"policies": [{"name": "load-aware", "arguments": {"policyFile": "/proc/self/environ"}}]},
        "agent.policies[0].arguments.policyFile",
    ),
]
IDS = [f"{path} {sorted(agent)}" for agent, path in ATTACKS]


@pytest.fixture
def cluster() -> FakeCluster:
    found = FakeCluster()
    found.allowed_images = AllowedImages((MINE,))
    return found


def accepted(cluster: FakeCluster) -> tuple[str, str]:
    """Status and message of the condition Accepted."""
    status, _, message = condition_of(cluster.get(SCHEDULER_EXTENDERS, "safe"), "Accepted")
    return status, message


@pytest.mark.parametrize(("agent", "path"), ATTACKS, ids=IDS)
def test_an_agent_that_runs_code_of_its_author_is_refused(
    cluster: FakeCluster, agent: dict[str, Any], path: str
) -> None:
    cluster.extender("safe", agent={"policies": SAFE, **agent})
    cluster.settle()
    status, message = accepted(cluster)
    assert status == "False"
    assert f"spec.{path}: " in message
    assert "; " in message, "it has a fix"
    assert cluster.list(DAEMON_SETS) == ()


@pytest.mark.parametrize(("agent", "path"), ATTACKS, ids=IDS)
def test_after_a_refused_edit_the_last_accepted_agent_keeps_running(
    cluster: FakeCluster, agent: dict[str, Any], path: str
) -> None:
    cluster.extender("safe", agent={"policies": SAFE})
    cluster.settle()
    before = cluster.get(DAEMON_SETS, "extender-safe", "kube-scheduler-operator")["spec"]
    cluster.extender("safe", agent={"policies": SAFE, **agent})
    cluster.settle()
    assert accepted(cluster)[0] == "False"
    assert cluster.get(DAEMON_SETS, "extender-safe", "kube-scheduler-operator")["spec"] == before


@pytest.mark.parametrize(
    "agent",
    [
        {},
        {"image": f"{MINE}:v1"},
        {"image": f"{MINE}:v1", "env": {"MY_WEIGHT": "3"}},
        {"env": {"SAFEUTILIZATION": "80", "TZ": "UTC"}},
    ],
    ids=str,
)
def test_settings_of_policies_and_allowed_images_are_accepted(
    cluster: FakeCluster, agent: dict[str, Any]
) -> None:
    cluster.extender("safe", agent={"policies": SAFE, **agent})
    cluster.settle()
    assert accepted(cluster)[0] == "True", accepted(cluster)


def test_an_image_that_is_no_longer_allowed_stays_in_use_and_is_reported(
    cluster: FakeCluster,
) -> None:
    cluster.extender("safe", agent={"policies": SAFE, "image": f"{MINE}:v1"})
    cluster.settle()
    cluster.extender("safe", agent={"policies": SAFE, "image": f"{MINE}:v2"})
    cluster.allowed_images = AllowedImages()
    cluster.settle()
    status, message = accepted(cluster)
    assert (status, "ALLOWED_IMAGES" in message) == ("False", True)
    daemon_set = cluster.get(DAEMON_SETS, "extender-safe", "kube-scheduler-operator")
    assert daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] == f"{MINE}:v1"
    assert cluster.get(CONFIG_MAPS, "extender-safe", "kube-scheduler-operator")


def test_only_an_agent_that_binds_has_the_account_that_may_bind(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent={"policies": SAFE})
    cluster.extender("other", agent={"policies": SAFE, "verbs": {"bind": True}})
    cluster.settle()
    accounts = {
        name: cluster.get(DAEMON_SETS, f"extender-{name}", "kube-scheduler-operator")["spec"][
            "template"
        ]["spec"]["serviceAccountName"]
        for name in ("safe", "other")
    }
    assert accounts == {"safe": "scheduler-extender", "other": "scheduler-extender-binder"}
