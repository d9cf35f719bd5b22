"""`kubectl scheduler check` on clusters with one fault each, made on a real API server.

The kubelet is played, the operator and the controllers are real. Every fault is undone, and then
the check is well again: what a check reports is the fault and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import CERT_NONE, create_default_context
from typing import Any

import pytest
import yaml

from cluster.api import ApiError
from cluster.console import SandboxError
from cluster.console import run as run_program
from cluster.observe import KUBESCHEDULER, until
from cluster.scheduling import fetch, free_port

from ..expect import condition_of
from ..imitation import kubelet
from ..seeds import some_in_presubmit
from .conftest import REPOSITORY
from .harness import NAMESPACE, NODE, PlayedNode
from .played_cluster import AT_ONCE, CORE, PlayedCluster, brought_up

PROGRAM = Path(sys.executable).with_name("kubectl-scheduler")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS_URL = "/apis/kube-scheduler-operator.dev/v1alpha1"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-operator"


class World(PlayedCluster):
    """The operator's own Pods become Ready; one control-plane node is played beside them."""

    kind, objects = "SchedulerProfile", f"{KINDS_URL}/schedulerprofiles"
    label = "app.kubernetes.io/name=kube-scheduler-operator"
    makes = ()

    def open(self) -> None:
        super().open()
        self.node = PlayedNode(self.sandbox)
        self.node.start()
        self._lease(NODE, timedelta())

    def close(self) -> None:
        self.node.stop()
        super().close()

    def check(self, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, dict[str, Any]]:
        """The exit code and what `check -o json` prints."""
        done = subprocess.run(
            [PROGRAM, "check", "-o", "json", *arguments],
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            env={**os.environ, "KUBECONFIG": str(kubeconfig or self.sandbox.kubeconfig)},
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def results(self, name: str, *arguments: str) -> list[dict[str, str]]:
        """What one check reports."""
        return [one for one in self.check(*arguments)[1]["checks"] if one["check"] == name]

    def post(self, path: str, **body: Any) -> Any:
        return self.api.request("POST", path, body)

    def patch(self, path: str, **body: Any) -> None:
        self.api.request("PATCH", path, body)

    def remove(self, path: str) -> None:
        self.api.request("DELETE", path, AT_ONCE)

    def _lease(self, node: str, ahead: timedelta) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        moment = (datetime.now(UTC) + ahead).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": moment}
        with contextlib.suppress(ApiError):
            self.post(path, metadata={"name": node}, spec=spec)
        self.patch(f"{path}/{node}", spec=spec)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "broken", tmp_path_factory.mktemp("broken")) as found:
        found.start()
        done = lambda: found.get(KUBESCHEDULER)["status"]["nodeStatuses"][0]["currentRevision"]  # noqa: E731
        found.wait(lambda: found.exists(KUBESCHEDULER) and _installed(done), 60)
        yield found


def _installed(done: Callable[[], int]) -> bool:
    with contextlib.suppress(KeyError, IndexError):
        return done() > 0
    return False


# --- faults -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A fault, and what the check reports."""

    check: str  # the check that finds it
    make: Callable[[World], Callable[[], object]]  # makes it; returns what undoes it
    cause: str  # parts of the sentences
    hint: str
    result: str = "failed"  # of the check
    flags: tuple[str, ...] = ("--pre",)  # of the command


def forbidden_by_policy(world: World) -> Callable[[], object]:
    name, policies = "no-host-paths", f"{ADMISSION}/validatingadmissionpolicies"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    world.post(
        policies,
        metadata={"name": name},
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**rule, "resources": ["pods"]}]},
            "validations": [
                {
                    "expression": "!has(object.spec.volumes) || "
                    "object.spec.volumes.all(one, !has(one.hostPath))",
                    "message": "host paths are not allowed here",
                }
            ],
        },
    )
    bindings = f"{ADMISSION}/validatingadmissionpolicybindings"
    world.post(
        bindings,
        metadata={"name": f"{name}-everywhere"},
        spec={"policyName": name, "validationActions": ["Deny"]},
    )
    until(lambda: _failed(world, "admission", "--pre"), 30, "the policy is never in force")

    def undo() -> None:
        world.remove(f"{bindings}/{name}-everywhere")
        world.remove(f"{policies}/{name}")
        until(lambda: not _failed(world, "admission", "--pre"), 30, "the policy stays in force")

    return undo


def _failed(world: World, check: str, *flags: str) -> bool:
    return any(one["result"] == "failed" for one in world.results(check, *flags))


def webhook_without_a_service(world: World) -> Callable[[], object]:
    path = f"{ADMISSION}/validatingwebhookconfigurations"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    world.post(
        path,
        metadata={"name": "gone"},
        webhooks=[
            {
                "name": "pods.gone.example",
                "clientConfig": {"service": {"namespace": "gone", "name": "gone"}},
                "rules": [{**rule, "resources": ["pods"]}],
                # It must not break the pods of this test.
                "namespaceSelector": {"matchLabels": {"nothing": "here"}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    )
    return lambda: world.remove(f"{path}/gone")


def restricted_namespace(world: World) -> Callable[[], object]:
    return _namespace_level(world, "restricted")


def _namespace_level(world: World, level: str) -> Callable[[], object]:
    path, key = f"/api/v1/namespaces/{NAMESPACE}", "pod-security.kubernetes.io/enforce"
    world.patch(path, metadata={"labels": {key: level}})
    return lambda: world.patch(path, metadata={"labels": {key: "privileged"}})


def quota_of_no_pods(world: World) -> Callable[[], object]:
    path = f"{CORE}/resourcequotas"
    world.post(path, metadata={"name": "none"}, spec={"hard": {"pods": "0"}})
    until(lambda: world.get(f"{path}/none").get("status", {}).get("hard"), 30, "no status")
    return lambda: world.remove(f"{path}/none")


def kind_of_another_program(world: World) -> Callable[[], object]:
    key = "app.kubernetes.io/part-of"
    path = f"{CRDS}/schedulerprofiles.kube-scheduler-operator.dev"
    world.patch(path, metadata={"labels": {key: "other-scheduler"}})
    return lambda: world.patch(path, metadata={"labels": {key: "kube-scheduler-operator"}})


def older_kind(world: World) -> Callable[[], object]:
    name = "secondaryschedulers.kube-scheduler-operator.dev"
    file = REPOSITORY / "crds" / f"{name}.yaml"
    schema = yaml.safe_load(file.read_text())["spec"]["versions"]
    del schema[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["assign"]
    world.patch(f"{CRDS}/{name}", spec={"versions": schema})
    kubectl = [str(world.sandbox.state / "bin/kubectl"), f"--kubeconfig={world.sandbox.kubeconfig}"]
    return lambda: run_program(
        *kubectl, "apply", "--server-side", "--force-conflicts", "-f", str(file)
    )


def second_operator(world: World) -> Callable[[], object]:
    return _deployment(
        world, "elsewhere", "registry.example/kube-scheduler-operator:v0", "kube-scheduler-operator"
    )


def unmanaged_scheduler(world: World) -> Callable[[], object]:
    return _deployment(world, "own", "registry.k8s.io/kube-scheduler:v1.35.4", "my-scheduler")


def _deployment(world: World, namespace: str, image: str, name: str) -> Callable[[], object]:
    with contextlib.suppress(ApiError):
        world.post("/api/v1/namespaces", metadata={"name": namespace})
    labels = {"app": name}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    world.post(
        path,
        metadata={"name": name},
        spec={
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    )
    return lambda: world.remove(f"{path}/{name}")


def full_disk(world: World) -> Callable[[], object]:
    def report(status: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
        disk = {"type": "DiskPressure", "status": status, "reason": "x", "message": "x"}
        world.patch(f"/api/v1/nodes/{NODE}/status", status={"conditions": [ready, disk]})

    beat = world.node.beat
    world.node.beat = lambda: report("True")  # the played kubelet replaces all conditions
    report("True")
    # A heartbeat that was under way may have overwritten it; the next one comes in 5 s.
    until(lambda: _failed(world, "nodes", "--pre"), 30, "the disk is never full")

    def undo() -> None:
        world.node.beat = beat
        report("False")
        until(lambda: not _failed(world, "nodes", "--pre"), 30, "the disk stays full")

    return undo


def slow_clock(world: World) -> Callable[[], object]:
    world._lease(NODE, timedelta(seconds=-90))
    return lambda: world._lease(NODE, timedelta())


def taken_port(world: World) -> Callable[[], object]:
    path = "/api/v1/namespaces/default/pods"
    container = {"name": "c", "image": "x", "ports": [{"containerPort": 10259, "hostPort": 10259}]}
    world.post(
        path,
        metadata={"name": "taker"},
        spec={"nodeName": NODE, "hostNetwork": True, "containers": [container]},
    )
    return lambda: world.remove(f"{path}/taker")


def missing_binding(world: World) -> Callable[[], object]:
    path = f"{RBAC}/namespaces/{NAMESPACE}/rolebindings"
    bound = [one for one in world.listed(path) if one["roleRef"]["name"].endswith("-operator")]
    assert bound
    binding = bound[0]
    name = binding["metadata"]["name"]
    world.remove(f"{path}/{name}")
    again = {"metadata": {"name": name}, "roleRef": binding["roleRef"]}
    return lambda: world.post(path, **again, subjects=binding["subjects"])


def refused_edit(world: World) -> Callable[[], object]:
    edit = {"profiles": [{"plugins": {"score": {"disabled": [{"name": "NoSuch"}]}}}]}
    world.patch(KUBESCHEDULER, spec={"unsupportedConfigOverrides": {"percentageOfNodes": edit}})
    type_ = "UnsupportedConfigOverridesDegraded"
    world.wait(lambda: _status(world, type_) == "True")

    def undo() -> None:
        world.patch(KUBESCHEDULER, spec={"unsupportedConfigOverrides": None})
        world.wait(lambda: _status(world, type_) == "False")

    return undo


def _status(world: World, type_: str) -> str:
    return condition_of(world.get(KUBESCHEDULER), type_)[0]


def refused_profile(world: World) -> Callable[[], object]:
    unknown = {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}
    world.put("bad", schedulerName="bad", plugins=unknown)
    try:
        world.wait(lambda: world.condition("bad", "Accepted")[0] == "False")
    except BaseException:
        world.delete("bad")
        raise
    return lambda: world.delete("bad")


def image_that_does_not_exist(world: World) -> Callable[[], object]:
    waiting = kubelet.waiting("ImagePullBackOff", "not found")
    container = {"name": "c", "image": "registry.example/none:v9"}
    spec = {"nodeName": NODE, "containers": [container]}
    world.post(f"{CORE}/pods", metadata={"name": "puller"}, spec=spec)
    status = [{**kubelet.container_status("c", waiting), "image": "registry.example/none:v9"}]
    world.patch(f"{CORE}/pods/puller/status", status={"containerStatuses": status})
    return lambda: world.remove(f"{CORE}/pods/puller")


def stranger(world: World) -> Callable[[], object]:
    return lambda: None  # the fault is the user of the flags


def installer_of_roles(world: World) -> Callable[[], object]:
    """A user who may write roles, and not grant what they have."""
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["create", "get", "patch", "list"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    world.post(f"{RBAC}/clusterroles", metadata={"name": "installer"}, rules=rules)
    subject = {"kind": "User", "name": "installer", "apiGroup": "rbac.authorization.k8s.io"}
    world.post(
        f"{RBAC}/clusterrolebindings",
        metadata={"name": "installer"},
        roleRef={"kind": "ClusterRole", "name": "installer", "apiGroup": RBAC.split("/")[2]},
        subjects=[subject],
    )

    def undo() -> None:
        world.remove(f"{RBAC}/clusterrolebindings/installer")
        world.remove(f"{RBAC}/clusterroles/installer")

    return undo


def dead_operator(world: World) -> Callable[[], object]:
    world.operator.kill()
    name = world.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")["items"]
    assert name
    until(lambda: _failed(world, "operator"), 40, "its Lease counts as renewed")
    return world.start


FAULTS = {
    "a policy forbids Pods with host paths": Fault(
        "admission",
        forbidden_by_policy,
        "host paths are not allowed here",
        "ValidatingAdmissionPolicyBinding no-host-paths-everywhere",
    ),
    "a webhook has no Service": Fault(
        "webhooks", webhook_without_a_service, "Service gone/gone does not exist", "delete the"
    ),
    "the namespace is restricted": Fault(
        "namespace",
        restricted_namespace,
        "enforces the Pod Security level restricted",
        f"kubectl label --overwrite namespace {NAMESPACE}",
    ),
    "the quota is used up": Fault(
        "admission", quota_of_no_pods, "exceeded quota: none", "raise the ResourceQuota"
    ),
    "a kind belongs to another program": Fault(
        "crds", kind_of_another_program, 'exists of "other-scheduler"', "uninstall", "warning"
    ),
    "a kind is older": Fault(
        "crds", older_kind, "lacks the field spec.assign", "kubectl apply --server-side", flags=()
    ),
    "another operator is installed": Fault(
        "other-programs",
        second_operator,
        "elsewhere/kube-scheduler-operator",
        "uninstall it",
        "warning",  # a tenant can create it; another namespace of the operator's is a failure
    ),
    "an unmanaged scheduler runs": Fault(
        "other-programs",
        unmanaged_scheduler,
        "Deployment own/my-scheduler runs a kube-scheduler",
        "SecondaryScheduler",
        "warning",
    ),
    "a disk is full": Fault("nodes", full_disk, f"node {NODE} reports DiskPressure", "free disk"),
    "a node's clock is wrong": Fault(
        "clocks", slow_clock, f'node "{NODE}" is', f"set the clock of {NODE}", "warning"
    ),
    "a port is taken": Fault(
        "ports", taken_port, f"default/taker uses port 10259 of node {NODE}", "another port"
    ),
    "the operator's account lost a role": Fault(
        "operator-rights", missing_binding, "may not", "deploy/kubeadm", flags=()
    ),
    "an edit is refused": Fault(
        "conditions",
        refused_edit,
        "UnsupportedConfigOverridesDegraded",
        "kubectl scheduler rollout undo",
        flags=(),
    ),
    "a profile is refused": Fault(
        "objects",
        refused_profile,
        "SchedulerProfile bad: Accepted",
        "kubectl describe schedulerprofile bad",
        flags=(),
    ),
    "an image does not exist": Fault(
        "images",
        image_that_does_not_exist,
        "cannot have the image registry.example/none:v9",
        "push the image",
        flags=(),
    ),
    "you may not install": Fault(
        "your-rights",
        stranger,
        "you may not create",
        "cluster-admin",
        flags=("--pre", "--as", "stranger"),
    ),
    "you may not grant what the roles have": Fault(
        "your-rights",
        installer_of_roles,
        "attempting to grant RBAC permissions not currently held",
        "the verbs escalate and bind",
        flags=("--pre", "--as", "installer"),
    ),
    "the operator is dead": Fault(
        "operator", dead_operator, "has not renewed it", f"kubectl -n {NAMESPACE} logs", flags=()
    ),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", some_in_presubmit(list(FAULTS.values()), 3), ids=list(FAULTS))
def test_check_names_the_cause_of_a_fault_and_what_to_do(world: World, fault: Fault) -> None:
    undo = fault.make(world)
    try:
        found = world.results(fault.check, *fault.flags)
        matching = [one for one in found if fault.cause in one["cause"]]
        assert [one["result"] for one in matching][:1] == [fault.result], found
        assert fault.hint in matching[0]["hint"]
        assert matching[0]["link"].startswith("docs/")
    finally:
        undo()
    after = world.results(fault.check, *fault.flags[:1])  # by the administrator again
    assert not [one for one in after if fault.cause in one["cause"]], after


@pytest.mark.presubmit
def test_check_finds_nothing_wrong_with_a_healthy_cluster(world: World) -> None:
    code, document = world.check("--strict")
    assert (code, document["ok"]) == (0, True), [
        one for one in document["checks"] if one["result"] != "ok"
    ]
    assert all(one["result"] == "ok" for one in document["checks"])


def test_a_wrong_clock_of_this_machine_is_reported(world: World) -> None:
    script = Path(__file__).with_name("wrong_clock.py")
    done = subprocess.run(
        [sys.executable, script, "-600", "check", "--pre", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": str(world.sandbox.kubeconfig)},
    )
    found = [one for one in json.loads(done.stdout)["checks"] if one["check"] == "clocks"]
    assert found[0]["result"] == "warning"
    # The API server's time has whole seconds, and the duration of the request adds to the error.
    assert re.search(r"this machine's clock is (59[89]|60[012]) s behind", found[0]["cause"])


def test_an_unreachable_api_server_is_reported_as_a_check_that_could_not_run(
    world: World, tmp_path: Path
) -> None:
    config = yaml.safe_load(world.sandbox.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    code, document = world.check("--pre", kubeconfig=file)
    assert code == 2
    (found,) = document["checks"]
    assert (found["check"], found["result"]) == ("api-server", "failed")
    assert "127.0.0.1:1" in found["cause"]
    assert "kubectl cluster-info" in found["hint"]


# --- the self test ----------------------------------------------------------------------------


@pytest.fixture
def scheduler(world: World, tmp_path: Path) -> Iterator[None]:
    """A real kube-scheduler with the operator's profile and another one, and a node for it."""
    connection = {"kubeconfig": str(world.sandbox.kubeconfig)}
    file = tmp_path / "config.json"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": connection,
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "packed"}],
    }
    file.write_text(json.dumps(config))
    log, port = tmp_path / "log", free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                world.sandbox.state / "bin/kube-scheduler",
                f"--config={file}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                "--authorization-always-allow-paths=/readyz",
            ],
            stdout=output,
            stderr=output,
        )
    profiles = f"{CORE}/configmaps/config"
    try:
        world.put("packed", schedulerName="packed")
        world.wait(lambda: world.condition("packed", "Accepted")[0] == "True")
        world.wait(lambda: "packed" in world.get(profiles)["data"]["config.yaml"])
        until(lambda: _is_ready(port), 60, log.read_text)
        yield
    finally:
        process.kill()
        process.wait()
        world.delete("packed")
        world.wait(lambda: "packed" not in world.get(profiles)["data"]["config.yaml"])


def _is_ready(port: int) -> bool:
    """Whether the kube-scheduler of this port has read all objects."""
    context = create_default_context()  # its certificate is its own
    context.check_hostname, context.verify_mode = False, CERT_NONE
    with contextlib.suppress(SandboxError):
        return bool(fetch(f"https://127.0.0.1:{port}/readyz", context))
    return False


@pytest.fixture
def worker(world: World) -> Iterator[None]:
    """A Ready node with room."""
    path, amounts = "/api/v1/nodes", {"cpu": "4", "memory": "8Gi", "pods": "110"}
    world.post(path, metadata={"name": "worker"})
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    world.patch(f"{path}/worker/status", status=status)
    until(lambda: not world.get(f"{path}/worker")["spec"].get("taints"), 30, "it stays tainted")
    yield
    world.remove(f"{path}/worker")


def _tests(world: World) -> list[dict[str, Any]]:
    return world.listed(f"{CORE}/pods", "kube-scheduler-operator.dev/self-test")


@pytest.mark.presubmit
@pytest.mark.timeout(120)
def test_the_self_test_schedules_a_pod_through_every_profile_and_removes_it(
    world: World, scheduler: None, worker: None
) -> None:
    found = world.results("self-test", "--schedule", "--timeout", "20")
    assert [one["result"] for one in found] == ["ok", "ok"], found
    assert '"default-scheduler" of the control plane' in found[0]["cause"]
    assert '"packed" of the control plane' in found[1]["cause"]
    assert all("bound to worker in" in one["cause"] for one in found)
    assert _tests(world) == []


@pytest.mark.timeout(240)
def test_the_self_test_reports_the_message_of_kube_scheduler_and_what_would_help(
    world: World, scheduler: None
) -> None:
    code, document = world.check("--schedule", "--timeout", "10")
    found = [one for one in document["checks"] if one["check"] == "self-test"]
    assert code == 1
    assert [one["result"] for one in found] == ["failed", "failed"], found
    assert all("no node after 10 s: 0/1 nodes are available" in one["cause"] for one in found)
    assert all(one["hint"] for one in found)
    assert _tests(world) == []


@pytest.mark.timeout(120)
def test_a_profile_that_no_scheduler_serves_fails_the_self_test(world: World) -> None:
    (found,) = world.results("self-test", "--schedule", "--timeout", "2")
    assert (found["result"], found["cause"].partition(": ")[2]) == (
        "failed",
        "no node after 2 s: no scheduler has tried the Pod",
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_an_interrupted_self_test_leaves_no_pod(world: World, sent: signal.Signals) -> None:
    process = subprocess.Popen(
        # What is started in the background, as tests may be, ignores SIGINT.
        ["env", "--default-signal=INT", PROGRAM, "check", "--schedule", "--timeout", "60"],
        env={**os.environ, "KUBECONFIG": str(world.sandbox.kubeconfig)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _tests(world), 30, "it creates no Pod")
        process.send_signal(sent)
        assert process.wait(40) == 128 + sent
    finally:
        process.kill()
    until(lambda: _tests(world) == [], 30, "a Pod is left")
