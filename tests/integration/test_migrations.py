"""The pages of docs/migrate and docs/guides, command by command.

Those of docs/migrate run over inputs of each project's form. The API server, its controllers,
kubectl and Helm are real; the operator has the rights of deploy/kubeadm; a kubelet is played. The
real kube-scheduler reads what each conversion leads to.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import helm
from cluster.api import ApiError
from cluster.console import CommandError, run
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

from ..e2e.documented import commands
from .conftest import REPOSITORY
from .harness import NAMESPACE, Operator, Proxy
from .played_cluster import APPS, CORE, GROUP, PlayedCluster, brought_up

INPUTS = Path(__file__).with_name("migrations")
PROGRAMS = Path(sys.executable).parent
SECONDS = "secondaryschedulers.kube-scheduler-operator.dev"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PLUGINS = "registry.k8s.io/scheduler-plugins/kube-scheduler"

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(300, func_only=True)


class World(PlayedCluster):
    """Every Pod of a SecondaryScheduler becomes Ready, and holds its Lease."""

    kind, objects = "SecondaryScheduler", f"{GROUP}/secondaryschedulers"
    label = "kube-scheduler-operator.dev/secondary-scheduler"
    makes = (f"{APPS}/deployments", f"{CORE}/serviceaccounts")
    flags = ("--platform=kubeadm", f"--allowed-images={PLUGINS}")

    def __init__(self, sandbox: Sandbox, proxy: Proxy, operator: Operator) -> None:
        super().__init__(sandbox, proxy, operator)
        self.folder = Path()  # where commands run

    def becomes_ready(self, pod: dict[str, Any]) -> None:
        super().becomes_ready(pod)
        lease = {
            "metadata": {"name": pod["metadata"]["labels"][self.label]},
            "spec": {"holderIdentity": pod["metadata"]["name"], "leaseDurationSeconds": 3600},
        }
        with contextlib.suppress(ApiError):  # another Pod holds it
            self.api.request("POST", LEASES, lease)

    def shell(self, script: str) -> str:
        folders = (self.sandbox.state / "bin", helm.provide().parent, PROGRAMS)
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
            "KUBECONFIG": str(self.sandbox.kubeconfig),
            "PYTHONPATH": str(REPOSITORY / "operator"),
            "HELM_CACHE_HOME": str(self.sandbox.state / "helm"),
        }
        return run("sh", "-ec", script, env=environment, cwd=self.folder)

    def page(self, name: str, block: str, *, kind: str = "migrate") -> str:
        """Run a block of a page as it is written."""
        try:
            return self.shell(commands(f"{kind} {name} {block}"))
        except CommandError:
            print(self.shell(f"kubectl get {SECONDS} -o yaml; kubectl get pods -A -o wide"))
            print(self.log())
            raise

    def of(self, file: str) -> dict[str, dict[str, Any]]:
        """The objects in a file that a command wrote, by their kind."""
        found = list(yaml.safe_load_all((self.folder / file).read_text()))
        assert len({obj["kind"] for obj in found}) == len(found)
        return {obj["kind"]: obj for obj in found}

    def may(self, verb: str, group: str, resource: str) -> bool:
        """Whether the account of the scheduler of scheduler-plugins may."""
        review = {
            "spec": {
                "user": f"system:serviceaccount:{NAMESPACE}:scheduler-plugins-scheduler",
                "resourceAttributes": {"verb": verb, "group": group, "resource": resource},
            }
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.api.request("POST", path, review)["status"]["allowed"])

    def replicas(self, namespace: str, name: str) -> int:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        return int(self.get(path)["spec"]["replicas"])

    def is_gone(self, name: str) -> None:
        """Nothing of a SecondaryScheduler is left; its scheduler's Lease is not the operator's."""
        with contextlib.suppress(ApiError):
            self.api.request("DELETE", f"{LEASES}/{name}")
        self.wait(lambda: self.made(name) == set(), 60, lambda: f"left: {self.made(name)}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "mg", tmp_path_factory.mktemp("operator")) as found:
        found.start()
        yield found


@pytest.fixture
def migration(world: World, request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """The world with what the project's users have: in the cluster, and in the folder."""
    world.folder = tmp_path / request.param
    shutil.copytree(INPUTS / request.param, world.folder)
    for file in ("definition.yaml", "before.yaml"):
        if (world.folder / file).exists():
            world.shell(f"kubectl apply -f {file}")
    if (world.folder / "definition.yaml").exists():
        world.shell("kubectl wait --for condition=Established -f definition.yaml")
    return world


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("migration", [name], indirect=True)


def starts(world: World, binary: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration as the real kube-scheduler completes it."""
    kubeconfig = world.folder / "stub.conf"
    kubeconfig.write_text(stub_kubeconfig(), encoding="utf-8")
    client = {**config.get("clientConnection", {}), "kubeconfig": str(kubeconfig)}
    given, written = world.folder / "given.yaml", world.folder / "completed.yaml"
    given.write_text(yaml.safe_dump({**config, "clientConnection": client}), encoding="utf-8")
    arguments = [f"--config={given}", f"--write-config-to={written}", "--secure-port=0"]
    done = subprocess.run(
        [binary, *arguments], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    completed = yaml.safe_load(written.read_text())
    assert isinstance(completed, dict)
    return completed


def second_config(world: World) -> dict[str, Any]:
    """The configuration that the SecondaryScheduler of second.yaml leads to."""
    composed = yaml.safe_load(world.shell("kubectl scheduler compose -f second.yaml"))
    (second,) = composed["secondarySchedulers"]
    config: dict[str, Any] = second["config"]
    return config


@of("crane-scheduler")
def test_crane_scheduler(migration: World, kube_scheduler_binary: Path) -> None:
    migration.page("crane-scheduler", "convert")
    objects = migration.of("second.yaml")
    policy = objects["LoadPolicy"]["spec"]
    assert [each["maxLimit"] for each in policy["predicates"]] == ["70%", "80%"]
    assert [each["weight"] for each in policy["priorities"]] == [0.6, 0.4]
    assert policy["hotValues"] == [{"timeRange": "5m", "count": 8}]
    second = objects["SecondaryScheduler"]["spec"]
    assert (second["replicas"], second["nodeSelector"]) == (1, {"pool": "system"})
    assert "image" not in second, "the stock kube-scheduler replaces crane's"
    (extender,) = starts(migration, kube_scheduler_binary, second_config(migration))["extenders"]
    assert extender["weight"] == 4

    migration.page("crane-scheduler", "switch")
    assert migration.replicas("crane-system", "crane-scheduler") == 0
    migration.shell("kubectl wait --for condition=Accepted loadpolicies/default --timeout 60s")
    migration.page("crane-scheduler", "back")
    assert migration.replicas("crane-system", "crane-scheduler-controller") == 1
    migration.is_gone("crane-scheduler")


@of("kube-safe-scheduler")
def test_kube_safe_scheduler(migration: World, kube_scheduler_binary: Path) -> None:
    migration.shell("kubectl apply -f extender.safe.congestion.yaml")
    migration.page("kube-safe-scheduler", "convert")
    text = (migration.folder / "second.yaml").read_text()
    second, *extenders = yaml.safe_load_all(text)
    assert second["spec"]["replicas"] == 1
    agents = {each["metadata"]["name"]: each["spec"] for each in extenders}
    assert {name: agent["weight"] for name, agent in agents.items()} == {
        "safe": 3, "congestion": 2
    }  # fmt: skip
    assert agents["safe"]["agent"]["env"] == {"SAFEUTILIZATION": "85"}
    completed = starts(migration, kube_scheduler_binary, second_config(migration))
    assert sorted(each["weight"] for each in completed["extenders"]) == [2, 3]

    migration.page("kube-safe-scheduler", "switch")
    deployment = migration.get(f"{APPS}/deployments/my-scheduler")
    names = [each["name"] for each in deployment["spec"]["template"]["spec"]["containers"]]
    assert {"extender-safe", "extender-congestion"} < set(names)
    assert migration.replicas("kube-system", "my-scheduler") == 0
    migration.page("kube-safe-scheduler", "back")
    assert migration.replicas("kube-system", "my-scheduler") == 1
    migration.is_gone("my-scheduler")


@of("secondary-scheduler-operator")
def test_secondary_scheduler_operator(migration: World, kube_scheduler_binary: Path) -> None:
    migration.shell("kubectl apply -f secondary-scheduler.yaml")
    migration.page("secondary-scheduler-operator", "convert")
    spec = migration.of("second.yaml")["SecondaryScheduler"]["spec"]
    assert (spec["replicas"], spec["logLevel"]) == (2, "TraceAll")
    assert spec["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    assert [each["operator"] for each in spec["tolerations"]] == ["Exists"]
    assert spec["image"] == f"{PLUGINS}:v0.34.7"
    completed = starts(migration, kube_scheduler_binary, second_config(migration))
    (profile,) = completed["profiles"]
    (fit,) = (each for each in profile["pluginConfig"] if each["name"] == "NodeResourcesFit")
    assert fit["args"]["scoringStrategy"]["type"] == "MostAllocated"

    migration.page("secondary-scheduler-operator", "switch")
    (container,) = migration.get(f"{APPS}/deployments/packing")["spec"]["template"]["spec"][
        "containers"
    ]
    assert (container["image"], container["command"]) == (spec["image"], ["/bin/kube-scheduler"])
    migration.page("secondary-scheduler-operator", "back")
    theirs = "secondaryschedulers.operator.openshift.io/cluster"
    assert migration.shell(
        f"kubectl -n openshift-secondary-scheduler-operator get {theirs} -o name"
    )
    migration.is_gone("packing")


@of("scheduler-plugins")
def test_scheduler_plugins(migration: World) -> None:
    release, namespace = "scheduler-plugins", "scheduler-plugins"
    migration.shell(f"helm install {release} . --namespace {namespace} --create-namespace")
    migration.page("scheduler-plugins", "convert")
    objects = migration.of("second.yaml")
    spec = objects["SecondaryScheduler"]["spec"]
    (profile,) = spec["profiles"]
    assert [each["name"] for each in profile["plugins"]["multiPoint"]["enabled"]] == [
        "Coscheduling", "CapacityScheduling"
    ]  # fmt: skip
    assert profile["pluginConfig"][0]["args"] == {"permitWaitingTimeSeconds": 20}
    assert spec["nodeSelector"] == {"pool": "system"}

    migration.page("scheduler-plugins", "switch")
    for verb, group, resource, allowed in (
        ("watch", "scheduling.x-k8s.io", "podgroups", True),
        ("watch", "scheduling.x-k8s.io", "elasticquotas", True),
        ("delete", "scheduling.x-k8s.io", "podgroups", False),
        ("update", "", "pods", False),
    ):
        assert migration.may(verb, group, resource) == allowed, (verb, resource)
    assert migration.replicas(namespace, "scheduler-plugins-scheduler") == 0
    migration.page("scheduler-plugins", "back")
    assert migration.replicas(namespace, "scheduler-plugins-scheduler") == 1
    migration.is_gone("scheduler-plugins-scheduler")
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/scheduler-plugins-scheduler-plugins"
    assert not migration.exists(roles)


@of("openshift")
def test_openshift(migration: World, kube_scheduler_binary: Path) -> None:
    shown = migration.page("openshift", "see")
    assert "would start with 2 documents" in shown
    effective = yaml.safe_load((migration.folder / "effective.yaml").read_text())
    assert "-v=4" in effective["args"]
    completed = starts(migration, kube_scheduler_binary, effective["config"])
    (profile,) = completed["profiles"]
    score = {each["name"]: each.get("weight") for each in profile["plugins"]["score"]["enabled"]}
    assert score["NodeResourcesFit"] == 5
    migration.page("one-object", "back", kind="guide")


@pytest.mark.parametrize(
    ("guide", "second"),
    [
        ("one-object", ""),
        ("safe-nodes", "my-scheduler"),
        ("one-score", ""),
        ("several-schedulers", "my-scheduler"),
        ("real-load", "crane-scheduler"),
    ],
)
def test_the_commands_of_a_guide_and_the_way_back(world: World, guide: str, second: str) -> None:
    world.folder = REPOSITORY
    before = world.get(KUBESCHEDULER)["spec"].get("logLevel", "Normal")
    world.page(guide, "steps", kind="guide")
    if second:
        assert second in world.shell(f"kubectl get {SECONDS}")
    world.page(guide, "back", kind="guide")
    if second:
        world.is_gone(second)
    assert world.get(KUBESCHEDULER)["spec"].get("logLevel", "Normal") == before


@of("kubeadm")
def test_kubeadm(migration: World, kube_scheduler_binary: Path) -> None:
    """The last one: it ends the management."""
    shown = migration.page("kubeadm", "see")
    assert "All of it is adopted; no setting is lost, except that profiling is off." in shown
    assert "config.profiles" in shown
    migration.page("kubeadm", "objects")
    composed = yaml.safe_load(migration.shell("kubectl scheduler compose -f adopted.yaml"))
    old = yaml.safe_load(migration.shell("kubectl scheduler convert -f cp-1/packing.yaml"))
    profiles = [
        starts(migration, kube_scheduler_binary, config)["profiles"]
        for config in (old, composed["config"])
    ]
    assert profiles[0] == profiles[1]
    accepted = "kubectl wait --for condition=Accepted --timeout 60s schedulerprofiles --all"
    assert "images-first" in migration.shell(accepted)
    migration.page("kubeadm", "back")
    assert migration.get(KUBESCHEDULER)["spec"]["managementState"] == "Removed"
