"""Three of the stories of docs/stories.md, on nodes with workers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster import cgroups

from ..conftest import REPOSITORY, SCHEDULER_EXTENDERS, Cluster
from ..stories import Story
from ..workloads import create, pod, wait_for

POLICIES = (REPOSITORY / "docs/policies.md").read_text()
STORIES = (REPOSITORY / "docs/stories.md").read_text()
CRANE = REPOSITORY / "tests/integration/migrations/crane-scheduler/before.yaml"

pytestmark = pytest.mark.timeout(600, func_only=True)


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    shared_cluster.rest_with_default_profile()
    yield shared_cluster
    shared_cluster.without_pods()


def block(page: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_called_at_night(cluster: Cluster, workers: tuple[str, str], tmp_path: Path) -> None:
    node = workers[0]
    cluster.kubectl("label", "node", node, "pool=shop")
    cluster.kubectl("cordon", node)
    cluster.kubectl("create", "namespace", "shop")
    body = yaml.safe_dump(pod("web", nodeSelector={"pool": "shop"}))
    try:
        cluster.kubectl(
            "-n", "shop", "wait", "--for=create", "--timeout=60s", "serviceaccount/default"
        )
        cluster.kubectl("-n", "shop", "apply", "-f", "-", stdin=body)
        story = Story(cluster, tmp_path)
        read = [story.type(line) for line in story.lines("night")]
        assert "uncordon the node" in read[0]
        assert f"kubectl uncordon {node}" in read[1]
        assert "Available=True" in read[2]
        assert "shop/web" not in read[5]
    finally:
        cluster.kubectl("uncordon", node)
        cluster.kubectl("label", "node", node, "pool-")
        cluster.kubectl("delete", "namespace", "shop")


def test_migrates_from_crane_scheduler(cluster: Cluster, tmp_path: Path) -> None:
    """A node is a cgroup here, and measured often; all else is as the page writes it."""
    text = CRANE.read_text().replace("      nodeSelector: {pool: system}\n", "")
    cluster.kubectl("apply", "-f", "-", stdin=text)
    create(cluster, pod("web", "crane-scheduler"))
    story = Story(cluster, tmp_path)
    second = tmp_path / "second.yaml"
    try:
        for line in story.lines("crane"):
            if line.startswith("kubectl apply"):
                second.write_text(of_cgroups(cluster, second.read_text()))
            read = story.type(line)
        assert "load-aware" in read
    finally:
        if second.exists():
            cluster.kubectl("delete", "--ignore-not-found", "-f", str(second))
        cluster.kubectl("delete", "namespace", "crane-system")


def of_cgroups(cluster: Cluster, text: str) -> str:
    objects = list(yaml.safe_load_all(text))
    for each in objects:
        if each["kind"] == "LoadPolicy":
            group = cgroups.node_path(cluster.sandbox.name, "$(NODE_NAME)")
            args = [f"--cgroup={group}", "--cpu-capacity=800m", "--interval=1"]
            each["spec"]["source"]["nodeMetrics"] = {"mountHost": True, "args": args}
            each["spec"]["cycle"] = "5s"
    return yaml.safe_dump_all(objects)


def test_writes_a_policy_of_their_own(cluster: Cluster, tmp_path: Path) -> None:
    project = tmp_path / "few-siblings"
    project.mkdir()
    (project / "few_siblings.py").write_text(block(POLICIES, "python"))
    (project / "pyproject.toml").write_text(block(POLICIES, "toml"))
    extender = block(STORIES, "yaml").replace("192.0.2.10", str(cluster.sandbox.gateway))
    (tmp_path / "few-siblings.yaml").write_text(extender)
    (settings,) = re.findall(r"`extender.json` is `(.+)`, and", STORIES)
    (tmp_path / "extender.json").write_text(settings)
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(pod("web")))
    story = Story(cluster, tmp_path)
    try:
        for line in story.lines("policy"):
            read = story.type(line)
            if line.startswith("kubectl apply -f few-siblings.yaml"):
                wait_for(cluster, f"{SCHEDULER_EXTENDERS}/few-siblings", Accepted="True")
        assert "few-siblings is left out" in read
        log = story.background()
        print(log)
        assert "default/web" in log, "the scheduler has called the policy"
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "-f", str(tmp_path / "few-siblings.yaml"))
        story.end()
        shutil.rmtree(tmp_path / "policies", ignore_errors=True)
        cluster.rest()
