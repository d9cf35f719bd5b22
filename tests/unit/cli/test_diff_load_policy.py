"""`kubectl scheduler diff -f` with a LoadPolicy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS
from kube_scheduler_operator.operator.loadpolicy.created_objects import workloads
from kube_scheduler_operator.scheduling.load.policy import LoadPolicy

from ...builders import load_policy
from .conftest import Cluster, content

TARGET = KUBEADM.target_namespace


@pytest.fixture
def diff(cluster: Cluster, tmp_path: Path) -> Any:
    """Runs it in a cluster with a LoadPolicy whose spec is empty."""
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, content())
    cluster.api.served |= {DEPLOYMENTS, DAEMON_SETS, CONFIG_MAPS}
    metadata = {"name": "load-policy-default", "namespace": TARGET}
    data = {"policy.json": LoadPolicy().text()}
    cluster.put(CONFIG_MAPS, {"metadata": metadata, "data": data})
    obj = load_policy()
    obj["metadata"]["uid"] = "u"
    settings = Settings(operator_image="image:1", image_pull_secrets=("pull",))
    for resource, made, spec_hash in workloads(KUBEADM, obj, {}, settings):
        wanted = copy.deepcopy(dict(made))
        wanted["metadata"]["annotations"] = {names.SPEC_HASH_ANNOTATION: spec_hash}
        cluster.put(resource, wanted)

    async def run(*documents: Any, arguments: tuple[str, ...] = ()) -> Any:
        file = tmp_path / "edited.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return await cluster.run("diff", "-f", str(file), *arguments)

    return run


async def test_unchanged_load_policy_has_no_difference(diff: Any) -> None:
    done = await diff(load_policy())
    assert (done.code, done.out) == (0, "")


async def test_rules_and_times(diff: Any) -> None:
    done = await diff(
        load_policy(
            predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": "50%"}],
            hotValues=[{"timeRange": "5m", "count": 9}],
            cycle="30s",
            write=["crane"],
        ),
        arguments=("-o", "words"),
    )
    assert done.code == 1
    assert done.out.splitlines() == [
        "predicate[cpu_usage_avg_5m].maxLimit: 0.65 → 0.5",
        "predicate[cpu_usage_max_avg_1h].maxLimit: 0.75 removed",
        "predicate[mem_usage_avg_5m].maxLimit: 0.65 removed",
        "predicate[mem_usage_max_avg_1h].maxLimit: 0.75 removed",
        "hotValue[300].count: 5 → 9",
        "hotValue[60].count: 2 removed",
        "cycleSeconds: 60 → 30",
        "write: nothing → crane",
    ]


async def test_the_patch_is_one_of_the_file(diff: Any) -> None:
    done = await diff(load_policy(cycle="30s"), arguments=("-o", "lines"))
    assert done.code == 1
    assert done.out.startswith("--- load-policy-default\n+++ ")
    assert '- "cycleSeconds": 60,\n+ "cycleSeconds": 30,' in done.out


async def test_what_else_is_changed(diff: Any) -> None:
    done = await diff(load_policy(annotator={"replicas": 3}), arguments=("-o", "words"))
    assert done.code == 1
    assert done.out == f"Deployment {TARGET}/load-annotator-default updated\n"


async def test_what_nothing_would_come_of(diff: Any) -> None:
    done = await diff(load_policy(predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": 65}]))
    assert done.code == 2
    assert (
        "the LoadPolicy would not be accepted: spec.predicates[0].maxLimit: 65 is not a" in done.err
    )
    done = await diff(load_policy("other"))
    assert done.code == 2
    assert 'LoadPolicy "other" is not deployed yet, so there is nothing to compare' in done.err
    done = await diff(load_policy(), arguments=("1",))
    assert "a LoadPolicy has no revisions; omit N" in (done.err)
    scheduler = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}
    done = await diff(load_policy(), scheduler)
    assert "or a LoadPolicy" in done.err
