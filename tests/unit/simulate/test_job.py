"""The Job of a simulation: what its Pod may, how it ends, on which node it runs, its isolation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.quantities import amounts
from kube_scheduler_operator.simulate.job import (
    KEPT_SECONDS,
    LABELS,
    ONE,
    START_SECONDS,
    TWO,
    JobPlan,
    certificate_hash,
    choose_node,
    job_of,
    missing_isolation,
    no_node,
)
from kube_scheduler_operator.simulate.process import ADDRESS, NEXT_ADDRESS
from kube_scheduler_operator.simulate.world import World

from ... import builders

PLAN = JobPlan(
    "operators",
    "cp-1",
    "operator:1",
    "private/scheduler:v1.35.4",
    ("hyperkube", "kube-scheduler"),
    "c0ffee",
    120.0,
    nodes=5000,
    pull_secrets=("registry",),
)
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def test_the_cluster_ends_and_deletes_the_job_by_itself() -> None:
    job = job_of(PLAN)
    assert job["spec"]["activeDeadlineSeconds"] == START_SECONDS + 120
    assert job["spec"]["ttlSecondsAfterFinished"] == KEPT_SECONDS
    assert job["spec"]["backoffLimit"] == 0
    spec = job["spec"]["template"]["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["terminationGracePeriodSeconds"] == 1
    assert job_of(PLAN)["metadata"]["name"] != job["metadata"]["name"]


def test_the_pod_runs_on_its_node_without_a_scheduler_and_in_spite_of_taints() -> None:
    spec = job_of(PLAN)["spec"]["template"]["spec"]
    assert spec["nodeName"] == "cp-1"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_the_pod_has_no_rights_and_meets_pod_security_restricted() -> None:
    spec = job_of(PLAN)["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(volume.keys() == {"name", "emptyDir"} for volume in spec["volumes"])
    for container in (*spec["containers"], *spec["initContainers"]):
        own = dict(container["securityContext"])
        assert own.pop("runAsUser", 1) > 0
        assert own.pop("runAsGroup", 1) > 0
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"].keys() == {"cpu", "memory"}
        assert "env" not in container


def test_for_the_operator_the_pod_answers_on_its_address_with_a_certificate_of_its_own() -> None:
    spec = job_of(replace(PLAN, serves_address=True))["spec"]["template"]["spec"]
    certificate, _, operand = spec["initContainers"]
    assert (certificate["command"], certificate["args"]) == (
        ["kube-scheduler-operator", "simulation-certificate"],
        ["--directory=/identity"],
    )
    assert "restartPolicy" not in certificate
    assert operand["restartPolicy"] == "Always"
    assert "identity" not in mounts(operand)  # the key is not the operand's
    (own,) = spec["containers"]
    assert own["args"] == ["--key-sha256=c0ffee", "--listen=:8080", "--identity=/identity"]
    assert {"name": "identity", "mountPath": "/identity", "readOnly": True} in own["volumeMounts"]
    (volume,) = (one for one in spec["volumes"] if one["name"] == "identity")
    assert volume["emptyDir"]["medium"] == "Memory"
    assert spec["automountServiceAccountToken"] is False
    assert certificate["securityContext"] == own["securityContext"]


def test_the_hash_of_the_certificate_is_what_its_container_left() -> None:
    def pod(**state: Any) -> dict[str, Any]:
        return {"status": {"initContainerStatuses": [{"name": "certificate", "state": state}]}}

    assert certificate_hash(pod(terminated={"exitCode": 0, "message": "c0ffee\n"})) == "c0ffee"
    assert certificate_hash(pod(terminated={"exitCode": 1, "message": "openssl is missing"})) == ""
    assert certificate_hash(pod(running={})) == ""
    assert certificate_hash({}) == ""


def test_the_operands_image_runs_the_launcher_as_a_sidecar() -> None:
    spec = job_of(PLAN)["spec"]["template"]["spec"]
    (launcher, operand), (own,) = spec["initContainers"], spec["containers"]
    assert (launcher["image"], operand["image"]) == ("operator:1", "private/scheduler:v1.35.4")
    assert launcher["command"] == ["kube-scheduler-operator", "simulation-launcher"]
    assert launcher["args"] == ["--directory=/launcher"]
    assert "restartPolicy" not in launcher
    assert operand["restartPolicy"] == "Always"
    assert operand["command"][0] == "/launcher/ld.so"
    assert operand["command"][-4:] == [
        "/launcher/launcher.py",
        ADDRESS,
        "hyperkube",
        "kube-scheduler",
    ]
    assert "args" not in operand
    assert own["args"] == ["--key-sha256=c0ffee"]


@pytest.mark.parametrize("serves_address", [False, True])
def test_the_operands_image_shares_no_process_user_or_volume_with_the_simulation(
    serves_address: bool,
) -> None:
    spec = job_of(replace(PLAN, serves_address=serves_address))["spec"]["template"]["spec"]
    assert not spec.get("shareProcessNamespace")
    *_, operand = spec["initContainers"]
    (own,) = spec["containers"]
    assert (operand["name"], own["name"]) == ("operand", "simulation")
    users = {**spec["securityContext"], **operand["securityContext"]}
    others = {**spec["securityContext"], **own["securityContext"]}
    assert "fsGroup" not in spec["securityContext"]
    assert "supplementalGroups" not in spec["securityContext"]
    for field in ("runAsUser", "runAsGroup"):
        assert users[field] not in (0, others[field])
    assert mounts(operand) == {"operand-tmp", "launcher"}
    assert mounts(own) == ({"tmp", "identity"} if serves_address else {"tmp"})
    (launcher,) = (one for one in operand["volumeMounts"] if one["name"] == "launcher")
    assert launcher["readOnly"] is True


def test_with_another_version_each_image_has_a_launcher_and_a_volume_of_its_own() -> None:
    job = job_of(replace(PLAN, serves_address=True, next_image="next:v1.36.0"))
    spec = job["spec"]["template"]["spec"]
    *_, operand, other = spec["initContainers"]
    assert [operand["name"], other["name"]] == ["operand", "next-operand"]
    assert [operand["image"], other["image"]] == ["private/scheduler:v1.35.4", "next:v1.36.0"]
    assert (ADDRESS in operand["command"], NEXT_ADDRESS in other["command"]) == (True, True)
    assert other["command"][-2:] == ["hyperkube", "kube-scheduler"]
    assert mounts(operand) & mounts(other) == {"launcher"}
    assert mounts(other) == {"next-operand-tmp", "launcher"}
    assert {volume["name"] for volume in spec["volumes"]} >= mounts(other)
    same = ("securityContext", "resources", "restartPolicy")
    assert all(operand[field] == other[field] for field in same)


def mounts(container: dict[str, Any]) -> set[str]:
    """The volumes of a container."""
    return {mount["name"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize(
    ("next_image", "needed"), [("", ONE), ("next:v1.36.0", TWO)], ids=["one", "two"]
)
def test_the_room_for_the_pod_is_that_of_its_requests(
    next_image: str, needed: Mapping[str, float]
) -> None:
    spec = job_of(replace(PLAN, next_image=next_image))["spec"]["template"]["spec"]
    together = [*spec["containers"], *spec["initContainers"][1:]]
    requests = [amounts(each["resources"]["requests"]) for each in together]
    cpu = sum(each["cpu"] for each in requests)
    memory = sum(each["memory"] for each in requests)
    assert f"{cpu:.0f}m of CPU and {memory / 2**20:.0f}Mi of memory" in no_node(needed)
    node = {"cpu": f"{cpu:.0f}m", "memory": f"{memory:.0f}", "pods": "1"}
    assert chosen(with_room(node), needed=needed) == "a"
    for resource, less in (("cpu", cpu - 1), ("memory", memory - 1), ("pods", 0)):
        unit = "m" if resource == "cpu" else ""
        allocatable = {**node, resource: f"{less:.0f}{unit}"}
        assert chosen(with_room(allocatable), needed=needed) is None


def with_room(allocatable: dict[str, str]) -> dict[str, Any]:
    made = node("a")
    made["status"]["allocatable"] = allocatable
    return made


def test_the_documentation_has_the_requests_and_limits() -> None:
    docs = Path(__file__).parents[3] / "docs"
    requested, with_two = (
        no_node(needed)
        .removeprefix("no node is Ready and has ")
        .removesuffix(" for the simulation")
        for needed in (ONE, TWO)
    )
    settings = " ".join((docs / "operator-settings.md").read_text().split())
    assert requested in settings
    assert with_two in settings
    text = " ".join((docs / "kubectl-scheduler.md").read_text().split())
    assert f"requested are {requested}" in text
    small, large = (
        {
            each["name"]: int(each["resources"]["limits"]["memory"].removesuffix("Mi"))
            for each in containers(job_of(replace(PLAN, nodes=nodes)))
        }
        for nodes in (0, 1000)
    )
    for name in ("operand", "simulation"):
        more = (large[name] - small[name]) / 1000
        assert f"`{name}`: {small[name]} MiB and {more:.3f} MiB for each node" in text


def containers(job: dict[str, Any]) -> list[dict[str, Any]]:
    spec = job["spec"]["template"]["spec"]
    return [*spec["initContainers"], *spec["containers"]]


# --- the node -------------------------------------------------------------------------------------


def node(
    name: str, *, ready: bool | None = True, labels: Any = None, images: Any = None, **spec: Any
) -> dict[str, Any]:
    resources = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    condition = builders.ready_condition(ready)
    made = builders.node(name, condition, labels=labels, resources=resources, **spec)
    return {**made, "status": {**made["status"], "images": images or []}}


def pod(name: str, on: str, cpu: str = "100m", memory: str = "1Gi") -> dict[str, Any]:
    container = builders.container({"cpu": cpu, "memory": memory})
    return builders.pod(name, node=on, namespace="x", containers=[container])


def chosen(*objects: dict[str, Any], needed: Mapping[str, float] = ONE) -> str | None:
    world = World()
    for obj in objects:
        world.add(obj)
    return choose_node(world, ("operator:1", "scheduler:1"), needed)


CP = {CONTROL_PLANE: ""}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([node("a"), node("b", labels=CP), node("c")], "b"),
        ([node("a"), node("b", labels=CP, ready=None)], "a"),
        ([node("a", ready=False)], None),
        ([], None),
        ([node("a", labels={"kubernetes.io/os": "windows"})], None),
        ([node("a", labels={"type": "virtual-kubelet"}), node("b")], "b"),
        ([node("a"), node("b", images=[{"names": ["operator:1"]}]), node("c")], "b"),
        ([node("a"), node("b", unschedulable=True, images=[])], "a"),
        (
            [
                node("a", taints=[{"key": "x", "effect": "NoExecute"}], labels=CP),
                node("b"),
            ],
            "a",
        ),
        ([node("a"), node("b"), pod("p", "b")], "a"),
        ([node("a", labels=CP), pod("p", "a", memory="4000Mi"), node("b")], "a"),
        ([node("a", labels=CP), pod("p", "a", memory="4001Mi"), node("b")], "b"),
        ([node("a", labels=CP), pod("p", "a", cpu="1900m"), node("b")], "b"),
        ([node("a", labels=CP), *(pod(str(n), "a", "1m", "1Mi") for n in range(10))], None),
    ],
)
def test_the_node(objects: list[dict[str, Any]], expected: str | None) -> None:
    assert chosen(*objects) == expected


# --- isolation ------------------------------------------------------------------------------------


def policy(name: str, selector: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"podSelector": selector, **spec}}


DENY = policy("default-deny-all", {}, policyTypes=["Ingress", "Egress"])
OPERATOR = policy(
    "operator",
    {"matchLabels": {"app.kubernetes.io/name": "kube-scheduler-operator"}},
    policyTypes=["Ingress", "Egress"],
    egress=[{}],
)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([DENY, OPERATOR], ""),
        ([policy("own", {"matchLabels": LABELS}, policyTypes=["Egress"])], ""),
        ([], "no NetworkPolicy there denies its egress"),
        ([OPERATOR], "no NetworkPolicy there denies its egress"),
        ([policy("in", {}, policyTypes=["Ingress"])], "no NetworkPolicy there denies its egress"),
        ([policy("in", {})], "no NetworkPolicy there denies its egress"),
        ([DENY, policy("dns", {}, egress=[{}])], "NetworkPolicy dns allows egress"),
    ],
)
def test_isolation_is_what_the_policies_of_the_namespace_give(
    policies: list[dict[str, Any]], message: str
) -> None:
    assert missing_isolation(policies) == message
