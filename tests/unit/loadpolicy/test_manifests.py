"""What is made for a LoadPolicy, as golden files and as the promises behind them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import _parser
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.cli.programs import annotator, node_metrics
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, JOBS
from kube_scheduler_operator.load.policy_files import read_policy

from ...conftest import Golden
from .world import World

EVERYTHING: dict[str, Any] = {
    "source": {
        "type": "NodeMetrics",
        "nodeMetrics": {
            "port": 9100,
            "args": ["--interval=1"],
            "mountHost": True,
            "resources": {"limits": {"cpu": "10m"}},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [],
        },
    },
    "annotator": {
        "replicas": 3,
        "logLevel": "Debug",
        "resources": {"limits": {"memory": "1Gi"}},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [],
    },
    "write": ["crane", "safe"],
}
PROMETHEUS: dict[str, Any] = {
    "source": {
        "type": "Prometheus",
        "prometheus": {
            "url": "https://prometheus.monitoring:9090",
            "tokenSecret": {"name": "prometheus"},
            "caConfigMap": {"name": "service-ca", "key": "service-ca.crt"},
            "queries": {"cpu_usage_avg_5m": "node:cpu"},
        },
    },
}


@pytest.mark.parametrize(
    ("name", "spec"), [("least", {}), ("everything", EVERYTHING), ("prometheus", PROMETHEUS)]
)
def test_all_objects(name: str, spec: dict[str, Any], golden: Golden) -> None:
    world = World(image_pull_secrets=("pull",) if name == "everything" else ())
    world.put(**spec)
    world.run()
    objects = [
        strip(obj)
        for resource in (CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS)
        for obj in sorted(world._store.view().list(resource), key=lambda o: o["metadata"]["name"])
    ]
    golden(f"{name}.yaml", yaml.safe_dump_all(objects, sort_keys=False))


def test_the_job(golden: Golden) -> None:
    world = World()
    world.installed()
    world.remove()
    world.run()
    golden("cleanup.yaml", yaml.safe_dump(strip(world.one(JOBS, "load-cleanup")), sort_keys=False))


def strip(obj: Any) -> Any:
    """Without what the API server adds."""
    kept = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("uid", "generation", "creationTimestamp", "resourceVersion")
    }
    return {**obj, "metadata": kept}


def test_all_of_it_is_where_the_configuration_is() -> None:
    world = World(OPENSHIFT)
    world.put()
    world.run()
    assert len(world.everything()) == 4
    assert world.one(DEPLOYMENTS, "load-annotator-default")["metadata"]["namespace"] == (
        "openshift-kube-scheduler"
    )


def test_selectors_and_names_fit_the_longest_name(world: World) -> None:
    name = "a" * 40
    world.put(name)
    world.run()
    for resource, prefix in ((DAEMON_SETS, "node-metrics"), (DEPLOYMENTS, "load-annotator")):
        obj = world.one(resource, f"{prefix}-{name}")
        template, selector = obj["spec"]["template"], obj["spec"]["selector"]["matchLabels"]
        assert selector.items() <= template["metadata"]["labels"].items()
        assert all(len(value) <= 63 for value in template["metadata"]["labels"].values())
        assert len(obj["metadata"]["name"]) <= 63


def test_the_exporter_has_no_token_and_no_rights(world: World) -> None:
    world.put()
    world.run()
    pod = world.one(DAEMON_SETS, "node-metrics-default")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [volume["name"] for volume in pod["volumes"]] == ["state"]


@pytest.mark.parametrize("spec", [{}, EVERYTHING], ids=["least", "everything"])
def test_the_exporter_takes_its_arguments(spec: dict[str, Any], world: World) -> None:
    spec = copy.deepcopy(spec)
    world.put(**spec)
    world.run()
    pod = world.one(DAEMON_SETS, "node-metrics-default")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", [node_metrics]).parse_args(words)
    state = "/var/lib/kube-scheduler-operator/$(NODE_NAME)-node-metrics.json"
    assert str(args.state_file) == state
    assert {env["name"] for env in container["env"]} == {"NODE_NAME"}


@pytest.mark.parametrize("spec", [{}, EVERYTHING, PROMETHEUS], ids=["least", "most", "prometheus"])
def test_the_annotator_takes_its_arguments_and_finds_what_it_reads(
    spec: dict[str, Any], world: World
) -> None:
    world.put(**copy.deepcopy(spec))
    world.run()
    pod = world.one(DEPLOYMENTS, "load-annotator-default")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", [annotator]).parse_args(words)
    assert str(args.config) == "/etc/kube-scheduler-operator/load/policy.json"
    assert not args.cleanup
    assert args.listen.rpartition(":")[2] == str(container["ports"][0]["containerPort"])
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(args.config.parent) in mounts
    source = read_policy(world.file()).policy.source
    for file in filter(None, (source.token_file, source.ca_file)):
        assert file.rpartition("/")[0] in mounts
        items = [
            item["path"]
            for each in pod["volumes"][-1]["projected"]["sources"]
            for kind in each.values()
            for item in kind["items"]
        ]
        assert file.rpartition("/")[2] in items


def test_the_job_takes_its_arguments(world: World) -> None:
    world.installed(write=["safe"])
    world.remove()
    world.run()
    (container,) = world.one(JOBS, "load-cleanup")["spec"]["template"]["spec"]["containers"]
    words = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", [annotator]).parse_args(words)
    assert (args.cleanup, args.annotations) == (True, "own,safe")
    assert {env["name"] for env in container["env"]} == {"POD_NAME", "POD_NAMESPACE"}
