"""Schedulers that their owners customised are adopted without a loss, and given back.

One node has one customised manifest after the other, as kubeadm writes it with extraArgs,
extraEnvs, extraVolumes and patches. Before each adoption, `adopt --dry-run` lists the settings;
after it, each of them is looked up where it must be. KSO_ADOPTION_TABLE=FILE writes the table of
docs/adoption.md.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.observe import KUBESCHEDULER, until

from ...customised import (
    CONFIG_FILE,
    CONFIGURATION,
    CUSTOMISED,
    customised,
    with_config_file,
)
from ...expect import condition_of, is_ready
from ..conftest import CONFIG_MAPS, MANIFEST, OPERATOR_SETTINGS, PODS, Cluster

# They leave the cluster without the operator's revisions, and adopt again.
pytestmark = pytest.mark.runs_last

TOGETHER = tuple(name for name in CUSTOMISED if name != "references")


@pytest.fixture(scope="module")
def original(shared_cluster: Cluster) -> Iterator[str]:
    """The node's original manifest; it is put back and adopted at the end."""
    cluster = shared_cluster
    cluster.without_pods()
    cluster.rest()
    remove(cluster)
    text = cluster.on_node("cat", MANIFEST)
    yield text
    remove(cluster)
    write(cluster, text)
    adopt(cluster)


@pytest.fixture
def cluster(shared_cluster: Cluster, original: str) -> Cluster:
    """The cluster without the operator's schedulers, whatever the previous test left."""
    del original
    shared_cluster.without_pods()
    remove(shared_cluster)
    return shared_cluster


@pytest.fixture
def stock(original: str) -> dict[str, Any]:
    """The original manifest as an object."""
    return dict(yaml.safe_load(original))


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Rows `cluster | setting | value | outcome | where`, written to $KSO_ADOPTION_TABLE."""
    rows: list[str] = []
    yield rows
    if file := os.environ.get("KSO_ADOPTION_TABLE"):
        Path(file).write_text("".join(f"{row}\n" for row in rows))


Setting = dict[str, Any]


def previewed(cluster: Cluster, *arguments: str) -> list[Setting]:
    """What `adopt --dry-run` lists, without what kubeadm's own scheduler has."""
    done = cluster.plugin("adopt", "--dry-run", "-o", "json", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    (node,) = json.loads(done.stdout)["nodes"]
    return [one for one in node["settings"] if one["outcome"] != "same"]


def looked_up(cluster: Cluster, settings: list[Setting]) -> list[tuple[str, ...]]:
    """(setting, value, outcome, where it is now), for each setting that was listed."""
    pid, command = cluster.scheduler()
    environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return [
        (one["name"], str(one["value"]), one["outcome"], place(cluster, one, command, environment))
        for one in settings
    ]


def place(cluster: Cluster, one: Setting, command: str, environment: list[str]) -> str:
    """Where a setting is after adoption; the test fails if it is not there."""
    group, _, name = one["name"].partition(".")
    config = config_file(cluster)
    if one["outcome"] == "no effect":
        return f"nowhere: {one['note']}"
    assert one["outcome"] == "kept", one
    if one["name"] == "flags.config":
        return "the fields of config"
    if group == "flags":
        path = one["note"].removeprefix("spec.observedConfig.").split(".")
        if path[0] == "arguments":
            assert f"-{name}={one['value']}" in command, one
            return "command line"
        found: Any = config
        for key in path:
            found = found[key]
        assert str(found).lower() == one["value"].lower(), one
        return f"config.yaml: {'.'.join(path)}"
    if group == "config":
        assert config[name], one
        return f"config.yaml: {name}"
    if group == "env":
        assert any(each.startswith(f"{name}=") for each in environment), one
        return "environment of the process"
    return "static Pod"  # `lost` compares the Pods


def config_file(cluster: Cluster) -> dict[str, Any]:
    """The configuration of the revision that the node runs."""
    directory = f"/etc/kubernetes/static-pod-resources/kube-scheduler-pod-{cluster.current}"
    text = cluster.on_node("cat", f"{directory}/configmaps/config/config.yaml")
    return dict(yaml.safe_load(text))


def rows_of(name: str, found: list[tuple[str, ...]]) -> list[str]:
    """Rows of the table, with code in the first columns."""
    return [
        f"| {name} | `{setting}` | `{value}` | {outcome} | {where} |"
        for setting, value, outcome, where in found
    ]


def remove(cluster: Cluster) -> None:
    """Give the node its scheduler from before the operator back."""
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Removed"}})

    def removed() -> bool:
        return condition_of(cluster.kubescheduler, "NodeInstallerProgressing")[1] == "Removed"

    until(removed, 120, lambda: f"not removed: {cluster.status}")


def write(cluster: Cluster, text: str) -> None:
    """Replace the node's manifest, and wait until its scheduler runs."""
    before, _ = cluster.scheduler()
    encoded = base64.b64encode(text.encode()).decode()
    same = (
        f"echo {encoded} | base64 -d > /etc/kubernetes/.new; cmp -s /etc/kubernetes/.new {MANIFEST}"
    )
    script = f"{same} && rm /etc/kubernetes/.new && echo same || mv /etc/kubernetes/.new {MANIFEST}"
    if cluster.on_node("sh", "-c", script).strip() == "same":
        return

    def runs() -> bool:
        pid, _ = cluster.scheduler()
        return pid not in (0, before) and mirror(cluster)["ready"]

    until(runs, 90, lambda: f"it does not run: {mirror(cluster)}")


def adopt(cluster: Cluster) -> None:
    """Let the operator manage the node, and wait until it does."""
    latest = cluster.latest
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Managed"}})
    until(
        lambda: cluster.calm() and cluster.current > latest,
        120,
        lambda: f"not adopted: {cluster.status}",
    )


def mirror(cluster: Cluster) -> dict[str, Any]:
    """The scheduler's mirror Pod, with `ready`."""
    name = f"kube-scheduler-{cluster.node.name}"
    pods = cluster.api.request("GET", "/api/v1/namespaces/kube-system/pods")["items"]
    pod: dict[str, Any] = next((p for p in pods if p["metadata"]["name"] == name), {})
    return {**pod, "ready": is_ready(pod)}


def lost(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What the mirror Pod before the operator had, and the operator's has not."""
    then, now = before["spec"]["containers"][0], after["spec"]["containers"][0]
    return [
        *_lost_metadata(before["metadata"], after["metadata"]),
        *_lost_settings(before["spec"], after["spec"]),
        *_lost_of_container(then, now),
        *_lost_probes(then, now),
    ]


def _lost_metadata(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for group in ("annotations", "labels"):
        theirs, ours = before.get(group, {}), after.get(group, {})
        for key, value in theirs.items():
            if not key.startswith("kubernetes.io/config.") and ours.get(key) != value:
                yield f"{group}.{key}"


def _lost_settings(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    compared = ["priorityClassName", "priority", "hostAliases", "dnsPolicy", "securityContext"]
    if old.get("terminationGracePeriodSeconds") != 30:  # the default is not kept
        compared.append("terminationGracePeriodSeconds")
    return [key for key in compared if old.get(key) != new.get(key)]


def _lost_of_container(then: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    if then.get("env", []) != now.get("env", []):
        yield "env"
    if then["resources"] != {"requests": {"cpu": "100m"}} and then["resources"] != now["resources"]:
        yield "resources"
    added = then.get("securityContext", {}).get("capabilities", {}).get("add")
    if added and now["securityContext"]["capabilities"].get("add") != added:
        yield "capabilities"
    mounts = {(m["mountPath"], m.get("readOnly", False)) for m in now["volumeMounts"]}
    for mount in then["volumeMounts"]:
        if (mount["mountPath"], mount.get("readOnly", False)) not in mounts:
            yield f"mount {mount['mountPath']}"


def _lost_probes(then: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    seconds = [
        c["startupProbe"]["failureThreshold"] * c["startupProbe"]["periodSeconds"]
        for c in (then, now)
    ]
    if seconds[0] != seconds[1]:
        yield f"startupProbe: {seconds}"
    for probe in ("livenessProbe", "readinessProbe"):
        for key in ("failureThreshold", "periodSeconds", "timeoutSeconds"):
            if then[probe][key] != now[probe][key]:
                yield f"{probe}.{key}"


def is_kept(
    cluster: Cluster,
    stock: dict[str, Any],
    table: list[str],
    title: str,
    *names: str,
    meanwhile: Callable[[Cluster], None] = lambda cluster: None,
) -> None:
    """Adopt a customised scheduler, compare, and give it back byte for byte.

    After `meanwhile`, everything must be as it was adopted.
    """
    text = yaml.safe_dump(customised(stock, *names))
    write(cluster, text)
    before = mirror(cluster)
    settings = previewed(cluster)
    kept = frozenset[str]().union(*(CUSTOMISED[each].kept for each in names))
    assert kept <= {one["name"] for one in settings}
    adopt(cluster)
    until(lambda: mirror(cluster)["ready"], 30, "its mirror Pod is not Ready")
    assert lost(before, mirror(cluster)) == []
    found = looked_up(cluster, settings)
    table += rows_of(title, found)
    config = config_file(cluster)
    for each in names:
        for key, value in CUSTOMISED[each].config.items():
            assert config[key] == ({**config[key], **value} if isinstance(value, dict) else value)
    assert cluster.condition("AdoptedSettings")[0] == "True"
    is_off = not config.get("enableProfiling")
    assert ("/debug/pprof" in cluster.condition("AdoptedSettings")[1]) is is_off
    cluster.schedules()
    meanwhile(cluster)
    assert lost(before, mirror(cluster)) == []
    remove(cluster)
    assert cluster.on_node("cat", MANIFEST) == text, "given back byte for byte"


CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
SETTINGS = {
    "resources": {"requests": {"cpu": "150m"}, "limits": {"memory": "2Gi"}},
    "env": [{"name": "GOGC", "value": "75"}, {"name": "GOTRACEBACK", "value": "all"}],
    "annotations": {"example.com/team": "other", "example.com/cost": "shared"},
    "hostFiles": [{"path": CERTIFICATES, "mountPath": "/etc/extra/ca.crt"}],
    "removeAdopted": ["env.HTTPS_PROXY"],
}


def settings_replace_what_was_adopted(cluster: Cluster) -> None:
    """Create OperatorSettings, look into the running Pod, and delete them again."""
    own = f"{OPERATOR_SETTINGS}/cluster"
    body = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "OperatorSettings",
        "metadata": {"name": "cluster"}, "spec": {"pods": SETTINGS},
    }  # fmt: skip

    def rolled_out(after: int) -> None:
        until(
            lambda: cluster.calm() and cluster.current > after and mirror(cluster)["ready"],
            120,
            lambda: f"not rolled out: {cluster.status}",
        )

    latest = cluster.latest
    cluster.api.request("POST", OPERATOR_SETTINGS, body)
    try:
        rolled_out(latest)
        pod = mirror(cluster)
        container = pod["spec"]["containers"][0]
        assert container["resources"] == {
            "requests": {"cpu": "150m", "memory": "300Mi"}, "limits": {"memory": "2Gi"},
        }  # fmt: skip
        annotations = pod["metadata"]["annotations"]
        assert annotations["example.com/team"] == "other"
        assert annotations["example.com/cost"] == "shared"
        pid, _ = cluster.scheduler()
        environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
        assert {"GOGC=75", "GOTRACEBACK=all"} <= {*environment}
        assert any(one.startswith("NO_PROXY=") for one in environment)
        assert not any(one.startswith("HTTPS_PROXY=") for one in environment)
        seen = Path(f"/proc/{pid}/root/etc/extra/ca.crt")
        assert seen.read_bytes() == Path(CERTIFICATES).read_bytes()
        mounts = Path(f"/proc/{pid}/mounts").read_text().splitlines()
        (line,) = (one.split() for one in mounts if one.split()[1] == "/etc/extra/ca.crt")
        assert "ro" in line[3].split(",")
        expected = {
            "Accepted": "True", "Warnings": "False",
            "Ready": "True", "Reconciling": "False", "Stalled": "False",
        }  # fmt: skip
        until(
            lambda: _conditions(cluster, own) == expected,
            60,
            lambda: f"{_conditions(cluster, own)}",
        )
        cluster.schedules()
        latest = cluster.latest
    finally:
        cluster.api.request("DELETE", own)
    rolled_out(latest)


@pytest.mark.timeout(420, func_only=True)
def test_all_customisations_together_are_kept_and_replaced_by_operator_settings(
    cluster: Cluster, stock: dict[str, Any], table: list[str]
) -> None:
    is_kept(
        cluster,
        stock,
        table,
        "together",
        *TOGETHER,
        meanwhile=settings_replace_what_was_adopted,
    )


def write_config(cluster: Cluster, text: str) -> None:
    """Write the configuration file that the scheduler is going to read."""
    folder = CONFIG_FILE.rpartition("/")[0]
    encoded = base64.b64encode(text.encode()).decode()
    script = (
        f"mkdir -p {folder}; echo {encoded} | base64 -d > {CONFIG_FILE}; chmod 600 {CONFIG_FILE}"
    )
    cluster.on_node("sh", "-c", script)


CONFIGURATIONS = {
    "alone": (),
    "with environment, resources and flags": ("environment", "resources", "flags"),
    "with everything": tuple(name for name in TOGETHER if name != "client"),
}


@pytest.mark.timeout(420, func_only=True)
@pytest.mark.parametrize(
    "title",
    [
        pytest.param(name, marks=() if name == "alone" else pytest.mark.soak)
        for name in CONFIGURATIONS
    ],
)
def test_a_configuration_file_is_read_on_the_node_and_kept(
    cluster: Cluster, stock: dict[str, Any], table: list[str], tmp_path: Path, title: str
) -> None:
    others = CONFIGURATIONS[title]
    content = f"# hunter2\n{yaml.safe_dump(dict(CONFIGURATION))}"
    write_config(cluster, content)
    text = yaml.safe_dump(with_config_file(customised(stock, *others)))
    write(cluster, text)
    before = mirror(cluster)
    unseen = cluster.plugin("adopt", "--dry-run")
    assert unseen.returncode == 1
    assert f"{CONFIG_FILE} of node" in unseen.stdout
    copied = tmp_path / "config.yaml"
    copied.write_text(content)
    settings = previewed(cluster, "-f", str(copied))
    adopt(cluster)
    until(lambda: mirror(cluster)["ready"], 30, "its mirror Pod is not Ready")
    assert lost(before, mirror(cluster)) == []
    table += rows_of(f"config= {title}", looked_up(cluster, settings))
    config = config_file(cluster)
    assert config["parallelism"] == 8
    assert config["percentageOfNodesToScore"] == 70
    assert config["clientConnection"]["qps"] == 120
    assert config["leaderElection"]["resourceName"] == "kube-scheduler"
    default, second = config["profiles"]
    assert default["plugins"]["score"]["disabled"] == [{"name": "ImageLocality"}]
    assert {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 50}} in [
        {"name": one["name"], "args": {k: v for k, v in one["args"].items() if k[0] == "h"}}
        for one in default["pluginConfig"]
    ]
    assert second["schedulerName"] == "second"
    readers = [name for name in pods_of_operator(cluster) if name.startswith("config-reader")]
    assert readers == []
    assert "hunter2" not in str(cluster.api.request("GET", CONFIG_MAPS))
    cluster.schedules()
    remove(cluster)
    assert cluster.on_node("cat", MANIFEST) == text, "given back byte for byte"
    assert f"--config={CONFIG_FILE}" in cluster.scheduler()[1]
    write(cluster, yaml.safe_dump(stock))
    cluster.on_node("rm", "-r", CONFIG_FILE.rpartition("/")[0])


def pods_of_operator(cluster: Cluster) -> list[str]:
    """The names of the Pods in the operator's namespace."""
    return [pod["metadata"]["name"] for pod in cluster.api.request("GET", PODS)["items"]]


@pytest.mark.timeout(420, func_only=True)
def test_what_another_client_writes_on_the_mirror_pod_changes_nothing(
    cluster: Cluster, stock: dict[str, Any]
) -> None:
    write(cluster, yaml.safe_dump(customised(stock, "annotations")))
    before = mirror(cluster)
    written = {"labels": {"example.com/other": "x", "revision": "7"}}
    path = f"/api/v1/namespaces/kube-system/pods/{before['metadata']['name']}"
    cluster.api.request("PATCH", path, {"metadata": written})
    outcomes = {one["name"]: one["outcome"] for one in previewed(cluster)}
    assert outcomes["labels.example.com/other"] == "dropped"
    assert outcomes["labels.example.com/tier"] == "kept"
    adopt(cluster)
    kept = cluster.condition("AdoptedSettings")[1]
    assert "labels.example.com/tier" in kept, "a label revision does not end the adoption"
    until(lambda: mirror(cluster)["ready"], 30, "its mirror Pod is not Ready")
    assert lost(before, mirror(cluster)) == []
    assert "example.com/other" not in mirror(cluster)["metadata"]["labels"]


@pytest.mark.soak
@pytest.mark.timeout(420, func_only=True)
@pytest.mark.parametrize("name", CUSTOMISED)
def test_each_customisation_is_kept(
    cluster: Cluster, stock: dict[str, Any], table: list[str], name: str
) -> None:
    is_kept(cluster, stock, table, name, name)


@pytest.mark.timeout(420, func_only=True)
def test_credentials_in_the_manifest_block_until_they_are_gone(
    cluster: Cluster, stock: dict[str, Any]
) -> None:
    pod = customised(stock, "environment")
    secret = f"hunter{time.time_ns()}"
    proxy = pod["spec"]["containers"][0]["env"][1]
    proxy["value"] = f"http://me:{secret}@proxy.example:3128"
    write(cluster, yaml.safe_dump(pod))
    pid, _ = cluster.scheduler()
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Managed"}})
    until(
        lambda: cluster.condition("AdoptionDegraded")[0] == "True",
        30,
        lambda: f"not reported: {cluster.status}",
    )
    assert "env.HTTPS_PROXY: has credentials" in cluster.condition("AdoptionDegraded")[1]
    until(
        lambda: cluster.cluster_operator("Degraded")[0] == "True",
        60,
        lambda: f"not Degraded: {cluster.cluster_operator('Degraded')}",
    )
    assert secret not in str(cluster.status)
    time.sleep(10)
    assert cluster.scheduler()[0] == pid, "the scheduler was not touched"
    assert cluster.condition("StaticPodsAvailable")[0] == "True"
    assert cluster.cluster_operator("Available")[0] == "True"
    cluster.schedules()
    del pod["spec"]["containers"][0]["env"][1]
    latest = cluster.latest
    write(cluster, yaml.safe_dump(pod))
    until(
        lambda: cluster.calm() and cluster.current > latest,
        120,
        lambda: f"not adopted: {cluster.status}",
    )
    environment = mirror(cluster)["spec"]["containers"][0]["env"]
    assert [one["name"] for one in environment] == ["GOGC", "NO_PROXY"]


def _conditions(cluster: Cluster, path: str) -> dict[str, str]:
    """The status of each condition of an object, by type."""
    conditions = cluster.api.request("GET", path)["status"]["conditions"]
    return {one["type"]: one["status"] for one in conditions}
