"""The objects of a LoadPolicy: golden files, and the properties that they rely on."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import COMMANDS, _parser
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LOAD_POLICIES,
)
from kube_scheduler_operator.scheduling.load.policy_files import read_policy

from ....conftest import Golden
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
    world.secret("prometheus", token_for="prometheus.monitoring_9090")
    world.run()
    objects = [
        strip(obj)
        for resource in (CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS)
        for obj in world.cluster.list(resource)
    ]
    text = yaml.safe_dump_all(objects, sort_keys=False)
    uid = world.one(LOAD_POLICIES, "default")["metadata"]["uid"]
    golden(f"{name}.yaml", text.replace(uid, "uid-of-default-0"))


def test_the_job(golden: Golden) -> None:
    world = World()
    world.installed()
    world.remove()
    world.run()
    golden("cleanup.yaml", yaml.safe_dump(strip(world.one(JOBS, "load-cleanup")), sort_keys=False))


def strip(obj: Any) -> Any:
    """The object without fields that the API server sets."""
    kept = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("uid", "generation", "creationTimestamp", "resourceVersion")
    }
    return {**obj, "metadata": kept}


def test_objects_are_in_the_target_namespace() -> None:
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


def test_exporter_has_no_token_and_no_capabilities(world: World) -> None:
    world.put()
    world.run()
    pod = world.one(DAEMON_SETS, "node-metrics-default")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [volume["name"] for volume in pod["volumes"]] == ["state"]


@pytest.mark.parametrize("spec", [{}, EVERYTHING], ids=["least", "everything"])
def test_exporter_parses_its_flags(spec: dict[str, Any], world: World) -> None:
    spec = copy.deepcopy(spec)
    world.put(**spec)
    world.run()
    pod = world.one(DAEMON_SETS, "node-metrics-default")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", COMMANDS, words).parse_args(words)
    state = "/var/lib/kube-scheduler-operator/$(NODE_NAME)-node-metrics.json"
    assert str(args.state_file) == state
    assert {env["name"] for env in container["env"]} == {"NODE_NAME"}


@pytest.mark.parametrize("spec", [{}, EVERYTHING, PROMETHEUS], ids=["least", "most", "prometheus"])
def test_annotator_parses_its_flags_and_mounts_its_files(
    spec: dict[str, Any], world: World
) -> None:
    world.secret("prometheus", token_for="prometheus.monitoring_9090")
    world.put(**copy.deepcopy(spec))
    world.run()
    pod = world.one(DEPLOYMENTS, "load-annotator-default")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", COMMANDS, words).parse_args(words)
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


def test_job_parses_its_flags(world: World) -> None:
    world.installed(write=["safe"])
    world.remove()
    world.run()
    (container,) = world.one(JOBS, "load-cleanup")["spec"]["template"]["spec"]["containers"]
    words = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", COMMANDS, words).parse_args(words)
    assert (args.cleanup, args.annotations) == (True, "own,safe")
    assert {env["name"] for env in container["env"]} == {"POD_NAME", "POD_NAMESPACE"}
