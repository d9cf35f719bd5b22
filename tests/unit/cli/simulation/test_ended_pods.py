"""`why` of a Pod that has ended, and its answer where an extender is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER
from kube_scheduler_operator.kube.resource import PODS
from kube_scheduler_operator.simulate.kinds import REPLICA_SETS

from ....builders import controlled_by
from ....builders import pod as made_pod
from ..conftest import Cluster
from .simulated_world import World

REFUSAL = "Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 1900"

pytestmark = pytest.mark.timeout(180, func_only=True)


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path) -> World:
    return World(cluster, tmp_path)


def ended(name: str, **status: Any) -> dict[str, Any]:
    metadata = controlled_by("ReplicaSet", "web")
    return made_pod(name, node="n1", namespace="shop", metadata=metadata, status=status)


async def test_a_pod_that_the_kubelet_refused_is_explained(world: World) -> None:
    refused = ended("refused", phase="Failed", reason="OutOfcpu", message=REFUSAL)
    world.cluster.put(PODS, refused)
    done = await world.run("why", "-n", "shop", "refused")
    assert done.code == 0
    assert "Pod shop/refused has ended on node n1, phase Failed: OutOfcpu" in done.out
    assert "The kubelet refused it" in done.out
    assert "ReplicaSet/web creates another one" in done.out
    found = json.loads((await world.run("why", "-n", "shop", "refused", "-o", "json")).out)
    assert found["ended"]["shop/refused"]["reason"] == "OutOfcpu"


async def test_a_pod_that_succeeded_was_not_refused(world: World) -> None:
    world.cluster.put(PODS, ended("done", phase="Succeeded"))
    done = await world.run("why", "-n", "shop", "done")
    assert "phase Succeeded." in done.out
    assert "refused" not in done.out


async def test_a_workload_whose_pods_all_ended_names_them(world: World) -> None:
    world.cluster.api.served.add(REPLICA_SETS)
    world.cluster.put(REPLICA_SETS, {
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"template": {"spec": {}}},
    })  # fmt: skip
    for at in range(5):
        world.cluster.put(PODS, ended(f"web-{at}", phase="Failed", reason="OutOfcpu"))
    done = await world.run("why", "-n", "shop", "rs/web")
    assert done.code == 0
    assert "Pod shop/web-0 has ended" in done.out
    assert "2 more pods" in done.out


async def test_an_extender_that_is_left_out_is_the_first_line(world: World, tmp_path: Path) -> None:
    """Its credentials are never shown, and Pods that it does not see have the whole answer."""
    file = tmp_path / "config.json"
    url = "http://10.0.0.1:80"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [
            {"urlPrefix": "http://user:secret@10.0.0.1:80/?token=secret", "filterVerb": "filter"},
            {
                "urlPrefix": "http://10.0.0.2",
                "filterVerb": "filter",
                "managedResources": [{"name": "example.com/gpu"}],
            },
        ],
    }
    file.write_text(json.dumps(config))
    world.pod("too-large", DEFAULT_SCHEDULER, cpu="50")
    waits = ("why", "-n", "shop", "waits-default-scheduler")
    for name in ("waits-default-scheduler", "too-large"):
        done = await world.run(*waits[:-1], name, "--config", str(file))
        assert done.out.splitlines()[0] == (
            f"The extender {url} takes no part in this answer, although kube-scheduler asks it: it "
            "may reject nodes, or prefer others."
        )
        assert "secret" not in done.out
    _, found = await world.answer(*waits, "--config", str(file))
    assert found["leftOut"] == [f"the extender {url}"]
    assert found["decidedBy"]["configurations"][0]["leftOut"] == found["leftOut"]
    _, pending = await world.answer("pending", "--config", str(file))
    assert "secret" not in str(pending)
    (queued,) = (
        group for group in pending["groups"] if "shop/waits-default-scheduler" in group["pods"]
    )
    assert url in queued["cause"]
    configuration = pending["decidedBy"]["configurations"][0]
    assert configuration["leftOut"] == [f"the extender {url}", "the extender http://10.0.0.2"]
