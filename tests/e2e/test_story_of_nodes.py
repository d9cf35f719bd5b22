"""The story of docs/stories.md about nodes that are saved on EKS, on a cluster like EKS."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cluster import images, lifecycle, model, operator
from cluster.console import run

from .conftest import NAME_OF_STORY, REPOSITORY, Cluster, up
from .documented import commands
from .stories import Story

pytestmark = pytest.mark.timeout(800, func_only=True)

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 6,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "web",
                        "image": images.PAUSE,
                        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
                    }
                ],
            },
        },
    },
}


@pytest.fixture(scope="module")
def eks() -> Iterator[Cluster]:
    kind = lifecycle.ClusterKind(model.MANAGED, "eks")
    with up(NAME_OF_STORY, 0, 3, with_operator=False, kind=kind) as sandbox:
        operator.load_image(sandbox)
        cluster = Cluster(sandbox)
        script = commands("install kustomize managed", older=True).splitlines()
        kubectl = f"{sandbox.state}/bin/kubectl --kubeconfig={sandbox.kubeconfig}"
        for line in script:
            if "docs/examples" not in line:
                run("sh", "-ec", line.replace("kubectl", kubectl, 1), cwd=REPOSITORY)
        yield cluster


def nodes_of(cluster: Cluster) -> set[str]:
    pods = json.loads(cluster.kubectl("-n", "shop", "get", "pods", "-o", "json"))["items"]
    return {
        each["spec"]["nodeName"] for each in pods if "deletionTimestamp" not in each["metadata"]
    }


def test_saves_nodes_on_eks(eks: Cluster) -> None:
    eks.kubectl("create", "namespace", "shop")
    eks.kubectl("-n", "shop", "wait", "--for=create", "--timeout=60s", "serviceaccount/default")
    eks.kubectl("-n", "shop", "apply", "-f", "-", stdin=json.dumps(WEB))
    eks.kubectl("-n", "shop", "rollout", "status", "deployment/web", "--timeout=120s")
    assert len(nodes_of(eks)) == 3, "the provider's scheduler spreads"
    story = Story(eks, REPOSITORY)
    read = [story.type(line) for line in story.lines("save nodes")]
    assert "BinPacking" in read[0]
    assert len(nodes_of(eks)) == 1
