"""A cluster whose control plane's scheduler is the provider's, with the real operator.

The operator is the ServiceAccount that deploy/managed makes: what it is not granted it cannot do.
The nodes call themselves EKS's, and so does the API server through the proxy; both are otherwise
real. A kubelet is played, and so is the Lease that a scheduler would renew.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cluster import providers
from cluster.api import ApiError
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER

from ..expect import condition_of
from .harness import NAMESPACE, Operator, Proxy
from .played_cluster import APPS, CORE, GROUP, PlayedCluster, brought_up

KIND = f"{GROUP}/secondaryschedulers"
PROFILES = f"{GROUP}/schedulerprofiles"
CLUSTER_OPERATOR = "/apis/config.openshift.io/v1/clusteroperators/kube-scheduler"
SCHEDULER = "/apis/config.openshift.io/v1/schedulers/cluster"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
RECORD = f"{CORE}/configmaps/platform"
NAME = "managed-scheduler"
SERVER = "v1.35.4-eks-113cf36"
IMAGE = "registry.k8s.io/kube-scheduler"
AKS = "/apis/aks.azure.com/v1alpha1/schedulerconfigurations/upstream"
WHO = "the control plane's scheduler is managed by EKS"

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class World(PlayedCluster):
    """Three workers of EKS; every scheduler becomes Ready and renews its Lease."""

    kind, objects, label = (
        "SecondaryScheduler",
        KIND,
        "kube-scheduler-operator.dev/secondary-scheduler",
    )
    makes = (f"{CORE}/configmaps", f"{CORE}/pods", f"{APPS}/deployments")
    flags: tuple[str, ...] = (
        "--platform=managed",
        "--pending-pods-interval=5",
        "--upgrade-delay=10",
    )
    platform = "managed"
    named_image = False

    def __init__(self, sandbox: Sandbox, proxy: Proxy, operator: Operator) -> None:
        super().__init__(sandbox, proxy, operator)
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def open(self) -> None:
        super().open()
        self._renewing.start()
        self.proxy.version = SERVER
        providers.create_objects(replace(self.sandbox, like="aks"), self.api)
        for number in range(3):
            self.node(f"ip-10-0-0-{number}", SERVER)

    def close(self) -> None:
        self._ended.set()
        self._renewing.join(10)
        super().close()

    def node(self, name: str, kubelet: str, **labels: str) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        self.api.create("/api/v1/nodes", body)
        info = self.get(f"/api/v1/nodes/{name}")["status"].get("nodeInfo") or {}
        required = dict.fromkeys(
            ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "operatingSystem",
             "architecture", "containerRuntimeVersion", "kubeProxyVersion"), "x",
        )  # fmt: skip
        status = {"status": {"nodeInfo": {**required, **info, "kubeletVersion": kubelet}}}
        self.api.request("PATCH", f"/api/v1/nodes/{name}/status", status)

    def _renew(self) -> None:
        while not self._ended.wait(1):
            with contextlib.suppress(ApiError):
                for obj in self.listed(KIND):
                    self._renew_of(obj["metadata"]["name"])

    def _renew_of(self, name: str) -> None:
        pods = [
            pod["metadata"]["name"]
            for pod in self.pods(name)
            if pod["status"]["phase"] == "Running"
        ]
        if not pods:
            return
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": f"{pods[0]}_x", "leaseDurationSeconds": 15, "renewTime": stamp}
        body = {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name}, "spec": spec,
        }  # fmt: skip
        self.api.create(LEASES, body)
        self.api.request("PATCH", f"{LEASES}/{name}", {"spec": spec})

    def images(self, name: str = NAME) -> set[str]:
        """The images of the containers of kube-scheduler in its Deployment."""
        path = f"{APPS}/deployments/{name}"
        if not self.exists(path):
            return set()
        spec = self.get(path)["spec"]["template"]["spec"]
        return {one["image"] for one in (*spec["initContainers"], *spec["containers"])}

    def overall(self, type_: str) -> tuple[str, str, str]:
        """A condition of the ClusterOperator."""
        return (
            condition_of(self.get(CLUSTER_OPERATOR), type_)
            if self.exists(CLUSTER_OPERATOR)
            else ("",) * 3
        )

    def own(self, type_: str) -> tuple[str, str, str]:
        """A condition of KubeScheduler."""
        return condition_of(self.get(KUBESCHEDULER), type_)

    def edit(self, path: str, **spec: Any) -> None:
        self.api.request("PATCH", path, {"spec": spec})

    def restart(self, *flags: str) -> None:
        """End the operator and start it with other flags."""
        assert self.operator.stop() == 0
        self.operator.process = None
        self.flags = flags  # of this world
        self.start()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "mg", tmp_path_factory.mktemp("operator")) as found:
        found.start()
        yield found


@pytest.mark.presubmit
def test_clusteroperator_becomes_available_and_names_the_provider(world: World) -> None:
    message = f"{WHO}; {NAME} (profile LowNodeUtilization) schedules"
    world.wait(
        lambda: (
            world.overall("Available")[0] == "True" and message in world.overall("Available")[2]
        ),
        90,
        lambda: f"{world.overall('Available')} {world.status(NAME)}",
    )
    world.wait(lambda: world.overall("Degraded")[0] == "False", 30)
    assert world.overall("Upgradeable")[0] == "True"
    types = {one["type"] for one in world.get(KUBESCHEDULER)["status"]["conditions"]}
    assert not [one for one in types if "StaticPod" in one or "NodeController" in one]
    assert (
        f"platform managed: {WHO} (the API server is {SERVER})" == world.own("PlatformChanged")[2]
    )


def test_the_deployment_has_kubernetes_own_image_of_the_api_servers_version(world: World) -> None:
    assert world.images() == {f"{IMAGE}:v1.35.4"}
    world.put("mine", namespace=NAMESPACE)
    world.wait(
        lambda: world.images("mine") == {f"{IMAGE}:v1.35.4"}, 30, lambda: world.status("mine")
    )
    world.delete("mine")
    world.wait(lambda: not world.exists(f"{APPS}/deployments/mine"), 60)


def test_a_settled_operator_writes_nothing(world: World) -> None:
    world.wait(lambda: world.own("SchedulersProgressing")[0] == "False", 30)
    time.sleep(2)
    assert world.writes_within(8) == [], world.proxy.bodies


@pytest.mark.presubmit
def test_the_profile_is_edited_in_the_same_object_as_everywhere(world: World) -> None:
    before = world.status(NAME)["configHash"]
    world.edit(SCHEDULER, profile="HighNodeUtilization")
    world.wait(lambda: world.status(NAME)["configHash"] != before, 60, lambda: world.status(NAME))
    (profile,) = world.get(f"{KIND}/{NAME}")["spec"]["profiles"]
    assert profile["schedulerName"] == NAME
    world.wait(
        lambda: "profile HighNodeUtilization" in world.overall("Available")[2],
        60,
        lambda: world.overall("Available"),
    )
    world.wait(lambda: world.own("SchedulersProgressing")[0] == "False", 60)


def test_an_edit_of_the_operators_fields_is_undone(world: World) -> None:
    world.edit(f"{KIND}/{NAME}", replicas=5)
    world.wait(lambda: world.get(f"{KIND}/{NAME}")["spec"]["replicas"] == 2, 30)


def test_a_profile_called_default_scheduler_is_served_under_another_name(world: World) -> None:
    body = {
        "apiVersion": GROUP.removeprefix("/apis/"), "kind": "SchedulerProfile",
        "metadata": {"name": "default-scheduler"}, "spec": {"percentageOfNodesToScore": 70},
    }  # fmt: skip
    world.api.request("POST", PROFILES, body)
    path = f"{PROFILES}/default-scheduler"
    world.wait(
        lambda: world.get(path).get("status", {}).get("schedulerName") == NAME,
        30,
        lambda: world.get(path),
    )
    found = world.get(path)
    assert condition_of(found, "Accepted")[0] == "True"
    assert NAME in condition_of(found, "Warnings")[2]
    assert found["status"]["accepted"] == {"percentageOfNodesToScore": 70}
    world.api.request("DELETE", path)


@pytest.mark.presubmit
def test_profiles_of_aks_are_kept_in_its_object(world: World) -> None:
    """With the rights of deploy/managed, which name the object."""
    body = {
        "apiVersion": GROUP.removeprefix("/apis/"), "kind": "SchedulerProfile",
        "metadata": {"name": "spare"}, "spec": {"scheduler": "aks", "base": "HighNodeUtilization"},
    }  # fmt: skip
    world.api.request("POST", PROFILES, body)
    world.wait(lambda: world.exists(AKS), 60, lambda: world.log())
    assert "schedulerName: spare" in world.get(AKS)["spec"]["rawConfig"]
    world.wait(lambda: condition_of(world.get(f"{PROFILES}/spare"), "Accepted")[0] == "True", 30)
    world.api.request("PATCH", AKS, {"spec": {"rawConfig": "x: y"}})
    world.wait(lambda: "spare" in world.get(AKS)["spec"]["rawConfig"], 30)
    uid = world.get(AKS)["metadata"]["uid"]
    world.api.request("DELETE", AKS)
    world.wait(lambda: world.exists(AKS) and world.get(AKS)["metadata"]["uid"] != uid, 30)
    world.api.request("DELETE", f"{PROFILES}/spare")
    world.wait(lambda: not world.exists(AKS), 30, lambda: world.log())


def test_a_newer_version_is_checked_on_request_without_further_rights(world: World) -> None:
    """No node of this cluster can run the kube-schedulers: the rules alone are known."""
    type_, path = "UpgradeCheckPassed", f"{GROUP}/operatorsettings"
    settings = {"apiVersion": GROUP.removeprefix("/apis/"), "kind": "OperatorSettings"}
    made = {
        **settings, "metadata": {"name": "cluster"}, "spec": {"upgradeCheck": {"version": "1.36"}},
    }  # fmt: skip
    world.api.request("POST", path, made)
    try:
        world.wait(lambda: world.own(type_)[1] == "NotKnown", 60, lambda: world.own(type_))
        status, _, message = world.own(type_)
        assert status == "Unknown"
        assert message.startswith(
            "Kubernetes 1.35 to 1.36: no change was found; not all is known of 1.36\n"
        )
        assert "which Pods it places differently: no node is Ready and has" in message
        record = world.get(f"{path}/cluster")["status"]["upgradeCheck"]
        assert (record["state"], record["tried"]) == ("Checked", False)
        time.sleep(2)
        assert world.writes_within(10) == [], "a check is not repeated in a loop"
        world.operator.kill()
        world.start()
        assert world.own(type_) == (status, "NotKnown", message), "another process keeps it"
    finally:
        world.api.request("DELETE", f"{path}/cluster")
    world.wait(lambda: not any(world.own(type_)), 30, lambda: world.own(type_))


def test_an_upgrade_of_the_control_plane_is_followed_when_no_api_server_is_older(
    world: World,
) -> None:
    world.proxy.version = "v1.36.1-eks-7"
    world.wait(
        lambda: "some API servers are v1.36.1-eks-7 already" in world.own("VersionSkew")[2],
        30,
        lambda: world.own("VersionSkew"),
    )
    assert world.images() == {f"{IMAGE}:v1.35.4"}
    world.wait(lambda: world.images() == {f"{IMAGE}:v1.36.1"}, 60, lambda: world.log())
    assert world.get(RECORD)["data"]["kubernetesVersion"] == "v1.36.1-eks-7"
    # An API server that is left is older than the scheduler, which Kubernetes does not support.
    world.proxy.version = SERVER
    world.wait(lambda: world.images() == {f"{IMAGE}:v1.35.4"}, 60, lambda: world.log())


def test_the_platform_never_changes_by_itself(world: World) -> None:
    """A node that looks like kubeadm's changes nothing, also for an operator without --platform."""
    world.node("cp", "v1.35.4", **{"node-role.kubernetes.io/control-plane": ""})
    world.proxy.version = "v1.35.4"
    world.restart("--pending-pods-interval=5", "--upgrade-delay=10")
    world.wait(
        lambda: world.own("PlatformChanged")[0] == "True", 60, lambda: world.own("PlatformChanged")
    )
    message = world.own("PlatformChanged")[2]
    assert "platform managed of EKS is in use, as recorded earlier" in message
    assert "looks like platform kubeadm (" in message
    assert world.get(RECORD)["data"]["provider"] == "EKS"
    assert not world.listed(f"{CORE}/pods", "app=installer")
    assert world.overall("Degraded")[0] == "False"
    world.api.request("DELETE", "/api/v1/nodes/cp")
    world.proxy.version = SERVER
    world.restart(*World.flags)
    world.wait(lambda: world.own("PlatformChanged")[0] == "False", 60)


BOTH = ["KubeScheduler", "CustomResourceDefinition"]


def owners(world: World, name: str = NAME) -> list[str]:
    metadata = world.get(f"{KIND}/{name}")["metadata"]
    return [owner["kind"] for owner in metadata.get("ownerReferences", ())]


def uids(world: World) -> set[str]:
    """Of the managed scheduler and all that runs it."""
    objects = (world.get(f"{KIND}/{NAME}"), world.get(f"{APPS}/deployments/{NAME}"))
    return {one["metadata"]["uid"] for one in (*objects, *world.pods(NAME))}


@pytest.mark.presubmit
def test_an_object_without_owners_gets_both(world: World) -> None:
    """As an earlier operator made it; nothing restarts."""
    world.wait(lambda: owners(world) == BOTH, 60, world.log)
    before, hashed = uids(world), world.status(NAME)["configHash"]
    world.operator.kill()
    bare = {"metadata": {"ownerReferences": None}}
    world.api.request("PATCH", f"{KIND}/{NAME}", bare)
    assert owners(world) == []
    world.start()
    world.wait(lambda: owners(world) == BOTH, 60, world.log)
    time.sleep(2)
    assert world.writes_within(5) == [], world.proxy.bodies
    assert (uids(world), world.status(NAME)["configHash"]) == (before, hashed)


@pytest.mark.presubmit
@pytest.mark.parametrize(
    ("policy", "alive"),
    [("Background", True), ("Foreground", True), ("Orphan", True), ("Foreground", False)],
)
def test_a_deleted_kubescheduler_stops_no_scheduler(world: World, policy: str, alive: bool) -> None:
    """Argo CD prunes in the foreground, Flux in the background; the garbage collector is real."""
    world.start()
    world.wait(lambda: world.overall("Available")[0] == "True", 90)
    world.wait(lambda: owners(world) == BOTH, 60, world.log)
    before, alone = uids(world), f"{KIND}/alone"
    if not alive:
        world.operator.kill()
    # What would become of it with this owner alone.
    reference = world.get(f"{KIND}/{NAME}")["metadata"]["ownerReferences"][0]
    body = world.body("alone", {"namespace": NAMESPACE, "replicas": 1})
    body["metadata"]["ownerReferences"] = [reference]
    world.api.request("POST", KIND, body)
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}
    world.api.request("DELETE", KUBESCHEDULER, options)
    world.wait(lambda: not world.exists(KUBESCHEDULER), 30)
    world.wait(lambda: owners(world) == BOTH[1:], 60, lambda: world.get(f"{KIND}/{NAME}"))
    if policy == "Orphan":
        world.delete("alone")
    world.wait(lambda: not world.exists(alone), 60)
    time.sleep(5)
    assert uids(world) == before
    if alive:
        world.wait(lambda: world.overall("Degraded")[0] == "True", 30)
    kind, _, name = KUBESCHEDULER.rpartition("/")
    body = {"apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler"}
    world.api.request("POST", kind, {**body, "metadata": {"name": name}, "spec": {}})
    world.start()
    world.wait(lambda: owners(world) == BOTH, 60, world.log)
    world.wait(lambda: world.overall("Available")[0] == "True", 60)
    assert uids(world) == before


def test_a_copy_from_a_backup_with_the_owners_of_then_is_made_again(world: World) -> None:
    """The garbage collector deletes what has only owners that are gone, as it does elsewhere."""
    world.start()
    world.wait(lambda: world.overall("Available")[0] == "True", 90)
    world.edit(f"{KIND}/{NAME}", assign={"namespaceSelector": {"matchLabels": {"team": "a"}}})
    world.wait(lambda: "managedScheduler" in world.get(KUBESCHEDULER)["status"], 30)
    stale = [
        {**one, "uid": "00000000-0000-0000-0000-000000000000"}
        for one in world.get(f"{KIND}/{NAME}")["metadata"]["ownerReferences"]
    ]
    world.api.request("PATCH", f"{KIND}/{NAME}", {"metadata": {"ownerReferences": stale}})
    world.wait(lambda: world.exists(f"{KIND}/{NAME}") and owners(world) == BOTH, 60, world.log)
    time.sleep(3)
    world.wait(lambda: world.exists(f"{KIND}/{NAME}") and owners(world) == BOTH, 60, world.log)
    assert world.get(f"{KIND}/{NAME}")["spec"]["assign"]
    world.edit(f"{KIND}/{NAME}", assign=None)
    world.wait(lambda: world.overall("Available")[0] == "True", 60)


@pytest.mark.presubmit
def test_removed_leaves_nothing_but_what_the_manifests_made(world: World) -> None:
    world.edit(KUBESCHEDULER, managementState="Removed")
    world.wait(lambda: not world.exists(f"{KIND}/{NAME}"), 60, lambda: world.log())
    world.wait(lambda: not world.exists(RECORD), 60, lambda: world.log())
    world.wait(lambda: world.made() == set(), 60, lambda: f"left: {world.made()}")
    world.wait(lambda: world.own("SchedulersProgressing")[1] == "Removed", 30)
