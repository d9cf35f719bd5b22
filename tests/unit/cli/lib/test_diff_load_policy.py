"""`kubectl scheduler diff -f` with a LoadPolicy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS
from kube_scheduler_operator.load.policy import LoadPolicy
from kube_scheduler_operator.loadpolicy.objects import Place, workloads

from ..conftest import Cluster, content

TARGET = KUBEADM.target_namespace


def policy(name: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "LoadPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture
def diff(cluster: Cluster, tmp_path: Path) -> Any:
    """Runs it in a cluster with a LoadPolicy whose spec is empty."""
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, content())
    cluster.api.served |= {DEPLOYMENTS, DAEMON_SETS, CONFIG_MAPS}
    metadata = {"name": "load-policy-default", "namespace": TARGET}
    data = {"policy.json": LoadPolicy().text()}
    cluster.put(CONFIG_MAPS, {"metadata": metadata, "data": data})
    obj = policy()
    obj["metadata"]["uid"] = "u"
    for resource, made, spec_hash in workloads(obj, {}, Place("kubeadm", "image:1", ("pull",))):
        wanted = copy.deepcopy(dict(made))
        wanted["metadata"]["annotations"] = {names.SPEC_HASH_ANNOTATION: spec_hash}
        cluster.put(resource, wanted)

    async def run(*documents: Any, arguments: tuple[str, ...] = ()) -> Any:
        file = tmp_path / "edited.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return await cluster.run("diff", "-f", str(file), *arguments)

    return run


async def test_what_is_there_is_no_difference(diff: Any) -> None:
    done = await diff(policy())
    assert (done.code, done.out) == (0, "")


async def test_rules_and_times(diff: Any) -> None:
    done = await diff(
        policy(
            predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": "50%"}],
            hotValues=[{"timeRange": "5m", "count": 9}],
            cycle="30s",
            write=["crane"],
        ),
        arguments=("-o", "words"),
    )
    assert done.code == 1
    assert done.out.splitlines() == [
        "predicate[cpu_usage_avg_5m].maxLimit: 0.65 is 0.5",
        "predicate[cpu_usage_max_avg_1h].maxLimit: 0.75 is gone",
        "predicate[mem_usage_avg_5m].maxLimit: 0.65 is gone",
        "predicate[mem_usage_max_avg_1h].maxLimit: 0.75 is gone",
        "hotValue[300].count: 5 is 9",
        "hotValue[60].count: 2 is gone",
        "cycleSeconds: 60 is 30",
        "write: nothing is crane",
    ]


async def test_the_patch_is_one_of_the_file(diff: Any) -> None:
    done = await diff(policy(cycle="30s"), arguments=("-o", "lines"))
    assert done.code == 1
    assert done.out.startswith("--- load-policy-default\n+++ ")
    assert '- "cycleSeconds": 60,\n+ "cycleSeconds": 30,' in done.out


async def test_what_else_is_changed(diff: Any) -> None:
    done = await diff(policy(annotator={"replicas": 3}), arguments=("-o", "words"))
    assert done.code == 1
    assert done.out == f"Deployment {TARGET}/load-annotator-default is changed\n"


async def test_what_nothing_would_come_of(diff: Any) -> None:
    done = await diff(policy(predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": 65}]))
    assert done.code == 2
    assert "nothing would come of it: spec.predicates[0].maxLimit: 65 is not a" in done.err
    done = await diff(policy("other"))
    assert done.code == 2
    assert 'LoadPolicy "other" has nothing yet that this could be compared with' in done.err
    done = await diff(policy(), arguments=("1",))
    assert "a LoadPolicy has no revisions; leave N out" in (done.err)
    scheduler = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}
    done = await diff(policy(), scheduler)
    assert "or a LoadPolicy" in done.err
