"""`kubectl scheduler adopt`: with a cluster, with files of nodes, and with both."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import PODS, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES
from kube_scheduler_operator.node.config_reader.report import ConfigReport

from ....adopted_files import FILES
from ....customised import CONFIG_FILE, CONFIGURATION, customised, with_config_file
from ..conftest import NAMESPACE, Cluster, Done, content

STOCK: dict[str, Any] = json.loads(
    (
        Path(__file__).parents[2] / "operator/controlplane/adoption/kubeadm-mirror-pod.json"
    ).read_text()
)

Adopt = Callable[..., Done]


def mirror(node: str, pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as that of a node in the API."""
    made = deepcopy(pod)
    made["metadata"] |= {"name": KUBEADM.mirror_pod_name(node), "namespace": "kube-system"}
    made["spec"]["nodeName"] = node
    return made


def reader(node: str, report: ConfigReport, created: str) -> dict[str, Any]:
    """A Pod of the operator that has read the file of a node."""
    ended = {"terminated": {"exitCode": 0, "message": report.serialise()}}
    return {
        "metadata": {
            "name": f"config-reader-{node}",
            "namespace": NAMESPACE,
            "labels": {"app": names.CONFIG_READER},
            "creationTimestamp": created,
        },
        "spec": {"nodeName": node},
        "status": {"containerStatuses": [{"name": names.CONFIG_READER, "state": ended}]},
    }


@pytest.fixture
def adopt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Adopt:
    """Runs the command on files (name -> document or text); `-f NAME` is a file of it."""

    def run(files: dict[str, Any], *arguments: str) -> Done:
        for name, document in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
        words = []
        for word in arguments:
            node, equals, name = word.rpartition("=")
            known = name in files or name in {file.split("/")[0] for file in files}
            words.append(f"{node}{equals}{tmp_path / name}" if known else word)
        code = kubectl_plugin(["adopt", *words])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


def manifest(*changes: str) -> dict[str, Any]:
    pod = customised(STOCK, *changes)
    del pod["spec"]["nodeName"]
    return pod


CONFIG = dict(CONFIGURATION)


def test_a_manifest_and_its_file_without_a_cluster(adopt: Adopt) -> None:
    files = {"a.yaml": with_config_file(manifest("environment")), "config.yaml": CONFIG}
    done = adopt(files, "--dry-run", "-f", "a.yaml", "-f", "config.yaml")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == (
        "1 scheduler predates the operator: a (registry.k8s.io/kube-scheduler:v1.35.4)"
    )
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("env", "config"))}
    assert rows["env.GOGC"] == ["env.GOGC", "50", "kept"]
    assert rows["config.parallelism"][-2:] == ["kept:", "spec.observedConfig.parallelism"]
    assert lines[-1] == "All of it is adopted; no setting is lost, except that profiling is off."


@pytest.mark.parametrize(
    ("flags", "ends"),
    [((), True), (("--profiling=false",), False), (("--profiling=true",), False)],
    ids=["by default", "off", "on"],
)
def test_profiling_that_ends_is_named(adopt: Adopt, flags: tuple[str, ...], ends: bool) -> None:
    pod = manifest()
    container = pod["spec"]["containers"][0]
    container["command"] = [*container["command"], *flags]
    done = adopt({"a.yaml": pod}, "--dry-run", "-f", "a.yaml")
    assert done.code == 0
    assert ("/debug/pprof, which kube-scheduler serves by default, is off" in done.out) == ends
    assert done.out.endswith("except that profiling is off.\n" if ends else "setting is lost.\n")


def test_kubeadms_own_manifest_has_nothing_to_keep(adopt: Adopt) -> None:
    done = adopt({"kube-scheduler.yaml": manifest()}, "--dry-run", "-f", "kube-scheduler.yaml")
    assert done.code == 0
    assert "kubeadm's own scheduler has no settings of users" in done.out


def test_a_file_that_is_missing_is_named_with_the_way_to_see_it(adopt: Adopt) -> None:
    done = adopt({"a.yaml": with_config_file(manifest())}, "--dry-run", "-f", "a.yaml")
    assert done.code == 1
    assert f'{CONFIG_FILE} of node "a": the API does not show files of nodes' in done.out
    assert "-f a=FILE" in done.out
    assert done.out.endswith("What is visible is adopted; the rest is not known yet.\n")


def test_several_nodes_are_compared_by_name(adopt: Adopt) -> None:
    files = {
        "a/kube-scheduler.yaml": with_config_file(manifest()),
        "a/config.yaml": CONFIG,
        "b/kube-scheduler.yaml": with_config_file(manifest()),
        "b/config.yaml": {**CONFIG, "parallelism": 4},
    }
    done = adopt(files, "--dry-run", "-f", "one=a", "-f", "two=b")
    assert done.code == 1
    assert 'node "two" and node "one" differ in config.parallelism;' in done.out
    assert [line.split()[:3] for line in done.out.splitlines() if "parallelism " in line] == [
        ["one", "config.parallelism", "8"],
        ["two", "config.parallelism", "4"],
    ]


def test_a_directory_has_the_name_of_its_node(adopt: Adopt) -> None:
    files = {"a/kube-scheduler.yaml": with_config_file(manifest()), "a/config.yaml": CONFIG}
    done = adopt(files, "--dry-run", "-f", "a")
    assert done.code == 0
    assert done.out.startswith("1 scheduler predates the operator: a (")
    several = {"all/b.yaml": manifest(), "all/c.yaml": manifest()}
    assert adopt(several, "--dry-run", "-f", "all").out.startswith(
        "2 schedulers predate the operator: b, c"
    )


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_credentials_are_never_printed(adopt: Adopt, output: str) -> None:
    pod = with_config_file(manifest("environment"))
    pod["spec"]["containers"][0]["env"][1]["value"] = "http://me:hunter2@proxy"
    extender = {"urlPrefix": "https://me:hunter2@x", "filterVerb": "f"}
    files = {"a.yaml": pod, "config.yaml": {**CONFIG, "extenders": [extender]}}
    done = adopt(files, "--dry-run", "-f", "a.yaml", "-f", "config.yaml", "-o", output)
    assert done.code == 1
    assert "hunter2" not in done.out + done.err
    assert "env.HTTPS_PROXY" in done.out
    assert "has credentials" in done.out
    assert "extenders[0].urlPrefix" in done.out


def test_a_broken_file_is_named_by_line_and_not_quoted(adopt: Adopt) -> None:
    files = {"a.yaml": with_config_file(manifest()), "config.yaml": "hunter2: [\n"}
    done = adopt(files, "--dry-run", "-f", "a.yaml", "-f", "config.yaml")
    assert done.code == 1
    assert "syntax error at line 2" in done.out
    assert "hunter2" not in done.out


def test_documents_for_programs(adopt: Adopt) -> None:
    files = {"a.yaml": with_config_file(manifest("flags")), "config.yaml": CONFIG}
    arguments = ("--dry-run", "-f", "a.yaml", "-f", "config.yaml")
    found = json.loads(adopt(files, *arguments, "-o", "json").out)
    assert found == yaml.safe_load(adopt(files, *arguments, "-o", "yaml").out)
    assert found["adoptable"] is True
    (node,) = found["nodes"]
    assert (node["node"], node["configFile"], node["configFileRead"]) == (
        "a", CONFIG_FILE, "from -f",
    )  # fmt: skip
    assert {one["name"]: one["value"] for one in node["settings"]}["flags.v"] == "4"
    assert found["configuration"]["parallelism"] == 8
    assert "--feature-gates=AllBeta=false" in found["arguments"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "use --dry-run to see what it does, or --as-profiles"),
        (("--dry-run", "-f", "missing.yaml"), "missing.yaml: No such file or directory"),
        (("--dry-run", "-f", "a.yaml", "-f", "a=b.yaml"), 'second manifest of node "a"'),
        (
            ("--dry-run", "-f", "a.yaml", "-f", "config.yaml", "-f", "config.yaml"),
            "a second configuration file of all nodes: use -f NODE=FILE for each",
        ),
        (("--dry-run", "-f", "a.yaml", "-f", "x=config.yaml"), 'file of node "x" and not its'),
        (("--dry-run", "-f", "a.yaml", "--platform", "k8s"), '"k8s" is not kubeadm'),
    ],
)
def test_wrong_usage(adopt: Adopt, arguments: tuple[str, ...], message: str) -> None:
    files = {"a.yaml": manifest(), "b.yaml": manifest(), "config.yaml": CONFIG}
    done = adopt(files, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_platforms_without_settings_of_users(adopt: Adopt) -> None:
    done = adopt({"a.yaml": manifest()}, "--dry-run", "-f", "a.yaml", "--platform", "openshift")
    assert (done.code, done.out) == (1, "")
    assert "nothing is adopted" in done.err


def test_objects_for_kubectl_apply(adopt: Adopt) -> None:
    files = {"a.yaml": with_config_file(manifest()), "config.yaml": FILES["extenders"]}
    done = adopt(files, "--as-profiles", "-f", "a.yaml", "-f", "config.yaml")
    assert done.code == 0
    kinds = [one["kind"] for one in yaml.safe_load_all(done.out)]
    assert kinds == ["SchedulerProfile"] * 2 + ["SchedulerExtender"] * 2
    assert "in a new revision that is equal in effect" in done.err
    listed = adopt(files, "--as-profiles", "-f", "a.yaml", "-f", "config.yaml", "-o", "json")
    assert [one["kind"] for one in json.loads(listed.out)["items"]] == kinds


@pytest.mark.parametrize(
    ("image", "flag"),
    [
        ("registry.k8s.io/kube-scheduler:v1.35.4", ""),
        ("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7", "--for scheduler-plugins"),
        ("example.com/our-scheduler:v3", "--custom-image"),
    ],
)
def test_objects_for_an_image_with_plugins_of_its_own(adopt: Adopt, image: str, flag: str) -> None:
    pod = with_config_file(manifest())
    pod["spec"]["containers"][0]["image"] = image
    files = {"a.yaml": pod, "config.yaml": FILES["extenders"]}
    done = adopt(files, "--as-profiles", "-f", "a.yaml", "-f", "config.yaml")
    assert done.code == 0
    assert done.err.count("check with validate") == bool(flag)
    assert flag in done.err


def test_objects_name_the_fields_that_stay_adopted(adopt: Adopt) -> None:
    files = {"a.yaml": with_config_file(manifest()), "config.yaml": CONFIG}
    done = adopt(files, "--as-profiles", "-f", "a.yaml", "-f", "config.yaml")
    assert done.err.endswith(
        "note: fields that stay adopted as they are: clientConnection, leaderElection, "
        "parallelism, percentageOfNodesToScore\n"
    )


@pytest.mark.parametrize(
    ("pod", "files", "message"),
    [
        (manifest(), {}, "no profile and no extender was adopted"),
        (with_config_file(manifest()), {}, "copy it: -f a=FILE"),
        (with_config_file(manifest()), {"config.yaml": "- 7"}, "does not have one object"),
    ],
)
def test_no_objects(adopt: Adopt, pod: Any, files: dict[str, Any], message: str) -> None:
    named = [word for name in files for word in ("-f", name)]
    done = adopt({"a.yaml": pod, **files}, "--as-profiles", "-f", "a.yaml", *named)
    assert (done.code, done.out) == (1, "")
    assert message in done.err


def test_a_list_of_mirror_pods_is_read_by_node(adopt: Adopt) -> None:
    etcd = {"kind": "Pod", "metadata": {"name": "etcd"}, "spec": {"containers": [{"name": "e"}]}}
    items = [etcd, mirror("b", customised(STOCK, "flags")), mirror("c", STOCK)]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    done = adopt({"pods.yaml": listed}, "--dry-run", "-f", "pods.yaml")
    assert done.code == 1
    assert done.out.startswith("2 schedulers predate the operator: b, c (")
    assert 'node "c" and node "b" differ in flags.feature-gates' in done.out


async def test_a_cluster_without_the_operator(cluster: Cluster, tmp_path: Path) -> None:
    pods = {node: with_config_file(customised(STOCK, "environment")) for node in "ab"}
    for node, pod in pods.items():
        cluster.put(PODS, mirror(node, pod))
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm")
    assert done.code == 1
    assert "2 schedulers predate the operator: a, b" in done.out
    assert "the API does not show files of nodes" in done.out
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm", "-f", str(config))
    assert (done.code, done.err) == (0, "")
    assert "spec.observedConfig.parallelism" in done.out


async def test_what_an_installed_operator_has_read_on_nodes_is_used(cluster: Cluster) -> None:
    cluster.kubescheduler({})
    cluster.put(PODS, mirror("a", with_config_file(STOCK)))
    created = STOCK["metadata"]["creationTimestamp"]
    cluster.put(PODS, reader("a", ConfigReport(CONFIG), created))
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm", "-o", "json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["nodes"][0]["configFileRead"] == "by the operator"
    assert found["configuration"]["parallelism"] == 8


async def test_what_was_read_before_a_scheduler_started_does_not_count(cluster: Cluster) -> None:
    cluster.put(PODS, mirror("a", with_config_file(STOCK)))
    cluster.put(PODS, reader("a", ConfigReport(CONFIG), "2026-01-01T00:00:00Z"))
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm", "-o", "json")
    assert (done.code, json.loads(done.out)["nodes"][0]["configFileRead"]) == (1, "not yet")


async def test_what_the_user_may_not_read_is_left_out_and_named(cluster: Cluster) -> None:
    refused = 'is forbidden: User "u" cannot list resource "x"'
    for path in ("/configmaps", f"/namespaces/{NAMESPACE}/pods"):
        cluster.api.fail(403, path=path, times=None, reason="Forbidden", message=refused)
    cluster.put(PODS, mirror("a", STOCK))
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm")
    assert done.code == 0
    assert "note: the operator's objects are left out, because you may not read configmaps" in (
        done.err
    )
    assert "you may not read its Pods" in done.err


async def test_without_the_right_to_read_schedulers_the_rule_is_named(cluster: Cluster) -> None:
    refused = 'pods is forbidden: User "u" cannot list resource "pods"'
    cluster.api.fail(403, path="/pods", times=None, reason="Forbidden", message=refused)
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm")
    assert (done.code, done.out) == (1, "")
    assert "no permission to list pods in namespace kube-system" in done.err


async def test_labels_of_other_clients_are_named(cluster: Cluster) -> None:
    pod = mirror("a", STOCK)
    fields: dict[str, Any] = {
        "f:annotations": {"f:kubernetes.io/config.mirror": {}},
        "f:labels": {},
    }
    for key in pod["metadata"]["labels"]:
        fields["f:labels"][f"f:{key}"] = {}
    for key in pod["metadata"]["annotations"]:
        fields["f:annotations"][f"f:{key}"] = {}
    pod["metadata"]["managedFields"] = [{"fieldsV1": {"f:metadata": fields}}]
    pod["metadata"]["labels"] = {**pod["metadata"]["labels"], "team": "x"}
    cluster.put(PODS, pod)
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm")
    assert done.code == 0
    assert 'labels.team of the Pod on node "a" are not kept' in done.out


async def test_a_cluster_that_is_adopted_shows_the_record(cluster: Cluster) -> None:
    made = content()
    env = [{"name": "GOGC", "value": "50"}]
    pod_settings = {"annotations": {"token": "hunter2"}, "container": {"env": env}}
    record = {"pod": pod_settings, "config": CONFIG}
    pod_part = {**made.parts[names.POD], names.ADOPTED_KEY: json.dumps(record)}
    made = replace(made, parts={**made.parts, names.POD: pod_part})
    cluster.revision(3, made)
    arguments = {"arguments": {"v": ["4"]}}
    cluster.kubescheduler({"a": 3}, observedConfig=arguments)
    pod = mirror("a", STOCK)
    pod["metadata"]["labels"]["revision"] = "3"
    cluster.put(PODS, pod)
    for resource in (SCHEDULER_PROFILES, SCHEDULER_EXTENDERS):
        cluster.api.served.add(resource)
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm")
    assert done.code == 0
    assert "revision 3 has what they were started with" in done.out
    rows = [line.split() for line in done.out.splitlines() if " " in line]
    assert ["env.GOGC", "50"] in rows
    assert ["flags.v", "4"] in rows
    assert ["config.parallelism", "8"] in rows
    found = json.loads(
        (await cluster.run("adopt", "--dry-run", "--platform", "kubeadm", "-o", "json")).out
    )
    assert (found["adopted"], found["revision"]) == (True, 3)
    assert {"name": "annotations.token", "value": None} in found["settings"]
    assert "hunter2" not in done.out + str(found)
    objects = await cluster.run("adopt", "--as-profiles", "--platform", "kubeadm")
    assert objects.code == 0
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(objects.out)] == [
        "default-scheduler", "second",
    ]  # fmt: skip


async def test_credentials_in_objects_of_users_are_not_printed(cluster: Cluster) -> None:
    extender = {
        "urlPrefix": "https://me:hunter2@x.example",
        "filterVerb": "f",
        "tlsConfig": {"keyData": "aHVudGVyMg=="},
    }
    cluster.kubescheduler({}, unsupportedConfigOverrides={"extenders": [extender]})
    cluster.put(PODS, mirror("a", STOCK))
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm", "-o", "json")
    assert "hunter2" not in done.out + done.err
    assert "aHVudGVyMg" not in done.out + done.err
    assert json.loads(done.out)["platform"] == "kubeadm"


async def test_a_cluster_without_visible_schedulers(cluster: Cluster) -> None:
    done = await cluster.run("adopt", "--dry-run", "--platform", "kubeadm")
    assert (done.code, done.out) == (1, "")
    assert "pass manifests of nodes with -f" in done.err
