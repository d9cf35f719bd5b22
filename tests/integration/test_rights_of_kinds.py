"""What a user obtains who may write one kind only, tried as that user on a real API server.

Everything of deploy/ for such a cluster is installed, also what needs the kinds of
prometheus-operator, and the operator runs with the rights that it is granted there. Each attack is
refused by the API server, or by the operator with a condition; docs/rights.md has the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from cluster import paths
from cluster.api import Api, ApiError
from cluster.console import run
from cluster.observe import until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.secondary.content import pod_template
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults

from ..desired import desired_secondary
from ..unit.operator.secondary.test_confinement import ALLOWED, ATTACKS
from .conftest import REPOSITORY
from .harness import NAMESPACE
from .played_cluster import APPS, CORE, GROUP, PlayedCluster, brought_up

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG = "/apis/config.openshift.io/v1"
OPERATOR = "/apis/operator.openshift.io/v1"
NODE = "worker"
API_SERVER, RECONCILE = "the API server", "the operator"
PATHS = {
    "SchedulerProfile": f"{GROUP}/schedulerprofiles",
    "SchedulerExtender": f"{GROUP}/schedulerextenders",
    "SecondaryScheduler": f"{GROUP}/secondaryschedulers",
    "LoadPolicy": f"{GROUP}/loadpolicies",
    "OperatorSettings": f"{GROUP}/operatorsettings",
    "KubeScheduler": f"{OPERATOR}/kubeschedulers",
    "Scheduler": f"{CONFIG}/schedulers",
}
PROMETHEUS_OPERATOR = paths.TEMPLATES / "prometheus-operator.yaml"
MONITORING = ("monitoring", "monitoring/schedulers", "monitoring/secondary-schedulers")
SINGLE = ("KubeScheduler", "Scheduler")
SAFE = [{"name": "safe-overload"}]
HOSTILE = "evil.example/anything:v1"
OWN_IMAGE = "registry.example/kube-scheduler-operator:v1"
"""By its name the operator's, which has an interpreter."""

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class World(PlayedCluster):
    """The cluster of these tests."""

    kind, objects, label = "SecondaryScheduler", PATHS["SecondaryScheduler"], names.SECONDARY_LABEL
    makes = (f"{APPS}/deployments", f"{APPS}/daemonsets")

    def user(self, name: str) -> Api:
        """Requests as a user."""
        return Api(self.sandbox, name, ("system:authenticated",))

    def account(self, name: str) -> Api:
        """Requests as a ServiceAccount of the operator's namespace."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
        user = f"system:serviceaccount:{NAMESPACE}:{name}"
        return Api(self.sandbox, user, (*groups, "system:authenticated"))

    def bind(self, user: str, role: str) -> None:
        """Bind a ClusterRole to a user in the whole cluster."""
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
        body = {"metadata": {"name": f"{user}-{role}"}, "roleRef": reference, "subjects": [subject]}
        self.api.request("POST", f"{RBAC}/clusterrolebindings", body)

    def only(self, kind: str) -> Api:
        """Requests as a user who may write this kind and nothing else."""
        user = f"only-{kind.lower()}"
        if not self.exists(f"{RBAC}/clusterroles/{user}"):
            group, _, resource = PATHS[kind].removeprefix("/apis/").rpartition("/")
            rule = {"apiGroups": [group.partition("/")[0]], "resources": [resource], "verbs": ["*"]}
            self.api.request(
                "POST", f"{RBAC}/clusterroles", {"metadata": {"name": user}, "rules": [rule]}
            )
            self.bind(user, user)
            # The API server's authorizer learns of the role from a watch.
            until(lambda: self.may_list(user, kind), 30, f"{user} has no right yet")
        return self.user(user)

    def may_list(self, user: str, kind: str) -> bool:
        try:
            self.user(user).request("GET", PATHS[kind])
        except ApiError as error:
            if error.code != 403:
                raise
            return False
        return True

    def write(self, api: Api, kind: str, spec: dict[str, Any]) -> str:
        """Create an object, or edit the only one of its kind; returns its name."""
        if kind == "OperatorSettings":
            name = names.CLUSTER
        else:
            name = names.CLUSTER if kind in SINGLE else f"a{time.monotonic_ns() % 10**9}"
        if kind in SINGLE:
            api.request("PATCH", f"{PATHS[kind]}/{name}", {"spec": spec})
            return name
        version = PATHS[kind].removeprefix("/apis/").rpartition("/")[0]
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        api.request("POST", f"{PATHS[kind]}?fieldValidation=Strict", body)
        return name

    def complaint(self, kind: str, name: str) -> str:
        """Why the operator does not use the object; empty until it reports why."""
        status = self.get(f"{PATHS[kind]}/{name}").get("status", {})
        for condition in status.get("conditions", ()):
            bad = {"Accepted": "False", "Degraded": "True"}.get(condition["type"])
            if condition["status"] == bad:
                return str(condition.get("message", ""))
        return ""

    def workloads(self) -> set[str]:
        return {
            f"{path.rpartition('/')[2]} {obj['metadata']['name']}"
            for path in self.makes
            for obj in self.listed(path)
            if obj["metadata"]["name"] != names.PROGRAM
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "rights", tmp_path_factory.mktemp("operator")) as found:
        kubectl = [
            str(found.sandbox.state / "bin/kubectl"), f"--kubeconfig={found.sandbox.kubeconfig}"
        ]  # fmt: skip
        run(*kubectl, "apply", "--server-side", "-f", PROMETHEUS_OPERATOR)
        run(*kubectl, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        for folder in (*MONITORING, "admission"):
            run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy" / folder)
        found.api.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
        secret = {"metadata": {"name": "valuable"}, "stringData": {"token": "valuable"}}
        found.api.request("POST", f"{CORE}/secrets", secret)
        found.start()
        _wait_for_policies(found)
        yield found


def _wait_for_policies(world: World) -> None:
    """The API server takes up policies some time after it accepted them."""
    probes = [
        ("KubeScheduler", {"unsupportedConfigOverrides": {"arguments": {"master": "x"}}}),
        ("SecondaryScheduler", {"namespace": NAMESPACE, "volumes": [_HOST]}),
    ]
    for kind, spec in probes:

        def refused(kind: str = kind, spec: Any = spec) -> bool:
            try:
                name = world.write(world.api, kind, spec)
            except ApiError as error:
                return error.code in _REFUSED
            if kind in SINGLE:
                world.write(world.api, kind, {"unsupportedConfigOverrides": None})
            else:
                world.api.request("DELETE", f"{PATHS[kind]}/{name}")
            return False

        world.wait(refused, 300, f"no policy is in force for {kind}")

    def patched() -> bool:
        label = {"metadata": {"labels": {"probe": str(time.monotonic_ns())}}}
        try:
            world.account(names.LOAD_ANNOTATOR).request("PATCH", f"/api/v1/nodes/{NODE}", label)
        except ApiError as error:
            return error.code in _REFUSED
        return False

    world.wait(patched, 300, "no policy is in force for nodes")


_REFUSED = (403, 422)  # not what an API server answers that is busy or does not answer
_HOST = {"name": "host", "hostPath": {"path": "/"}}


# --- attacks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    kind: str  # what the user may write
    aim: str  # what they want
    spec: dict[str, Any]  # how they try
    refuses: str  # who refuses it
    message: str  # a part of the message


def secondary(**spec: Any) -> dict[str, Any]:
    return {"namespace": NAMESPACE, **spec}


def sidecar(**fields: Any) -> dict[str, Any]:
    return secondary(sidecars=[{"name": "x", "image": HOSTILE, **fields}])


def overrides(**arguments: Any) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    return {"unsupportedConfigOverrides": {"arguments": named}}


def prometheus(url: str, secret: str) -> dict[str, Any]:
    fields = {"url": url, "tokenSecret": {"name": secret}}
    return {"source": {"type": "Prometheus", "prometheus": fields}}


def mounted(path: str, at: str = "") -> dict[str, Any]:
    return {"pods": {"hostFiles": [{"path": path, "mountPath": at}]}}


SECRET = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "valuable", "key": "token"}}}
ROWS = [
    Row("SecondaryScheduler", "root on a node", sidecar(securityContext={"privileged": True}),
        API_SERVER, "securityContext.privileged"),
    Row("SecondaryScheduler", "the files of a node", secondary(volumes=[_HOST]), API_SERVER,
        "volumes[0].hostPath"),
    Row("SecondaryScheduler", "the scheduler's token",
        sidecar(volumeMounts=[{"name": "api-access", "mountPath": "/x"}]), API_SERVER,
        "volumeMounts[0].name"),
    Row("SecondaryScheduler", "a Secret of the namespace", sidecar(env=[SECRET]), API_SERVER,
        "valueFrom.secretKeyRef"),
    Row("SecondaryScheduler", "code in a sidecar", sidecar(), RECONCILE, "ALLOWED_IMAGES"),
    Row("SecondaryScheduler", "code by a hook",
        sidecar(lifecycle={"postStart": {"exec": {"command": ["id"]}}}), API_SERVER,
        "postStart.exec"),
    Row("SecondaryScheduler", "code by a probe",
        sidecar(livenessProbe={"exec": {"command": ["id"]}}), API_SERVER, "livenessProbe.exec"),
    Row("SecondaryScheduler", "code by a variable of a sidecar",
        sidecar(env=[{"name": "PYTHONPATH", "value": "/proc/1/root"}]), API_SERVER,
        "env[0].name"),
    Row("SecondaryScheduler", "code by the operator's own interpreter",
        secondary(sidecars=[{"name": "x", "image": OWN_IMAGE,
                             "command": ["python3", "-c", "import os"]}]),
        RECONCILE, "and nothing else"),
    Row("SecondaryScheduler", "code with a scheduler's rights", secondary(image=HOSTILE), RECONCILE,
        "ALLOWED_IMAGES"),
    Row("SecondaryScheduler", "code in an allowed image",
        secondary(command=["sh", "-c", "id"]), API_SERVER, "write flags into"),
    Row("SecondaryScheduler", "a scheduler's credentials",
        secondary(extraArguments={"master": "https://evil.example"}), API_SERVER, "master"),
    Row("SecondaryScheduler", "a flag in the name of another",
        secondary(extraArguments={"vmodule=a=1 --master": "x"}), API_SERVER, "flag"),
    Row("SecondaryScheduler", "endpoints without authorization",
        secondary(extraArguments={"authorization-always-allow-paths": "/*"}), API_SERVER,
        "served without authorization"),
    Row("SecondaryScheduler", "another namespace", {"namespace": "kube-system"}, RECONCILE,
        "has no access to namespace"),
    Row("SchedulerExtender", "code under an account that binds",
        {"agent": {"policies": SAFE, "image": HOSTILE, "verbs": {"bind": True}}}, RECONCILE,
        "ALLOWED_IMAGES"),
    Row("SchedulerExtender", "code by a variable",
        {"agent": {"policies": SAFE, "env": {"PYTHONPATH": "/proc/1/root"}}}, API_SERVER,
        "variables of the process"),
    Row("SchedulerExtender", "the agent's token at another address",
        {"agent": {"policies": SAFE, "env": {"KUBERNETES_SERVICE_HOST": "192.0.2.1"}}}, API_SERVER,
        "variables of the process"),
    Row("LoadPolicy", "a Secret of the namespace", prometheus("https://evil.example", "valuable"),
        RECONCILE, "does not permit sending its token to evil.example"),
    Row("LoadPolicy", "a token on its way", prometheus("http://prometheus.monitoring", "valuable"),
        RECONCILE, "only by https"),
    Row("LoadPolicy", "the files of a node",
        {"source": {"nodeMetrics": {"args": ["--root=/host/proc/1/root"]}}}, API_SERVER,
        "other arguments are the operator's"),
    Row("LoadPolicy", "a file of a node",
        {"source": {"nodeMetrics": {"args": ["--state-file=/etc/passwd"]}}}, API_SERVER,
        "other arguments are the operator's"),
    Row("KubeScheduler", "a scheduler's credentials", overrides(master="https://evil.example"),
        API_SERVER, "would send its credentials"),
    Row("KubeScheduler", "endpoints without authorization",
        overrides(authorization_always_allow_paths="/*"), API_SERVER, "without authorization"),
    Row("KubeScheduler", "clients that the cluster does not know",
        overrides(authentication_skip_lookup=True), API_SERVER, "whom the scheduler trusts"),
    Row("KubeScheduler", "another kubeconfig", overrides(authentication_kubeconfig="/tmp/x"),
        API_SERVER, "the Pod has no other"),
    Row("KubeScheduler", "a second flag in a value", overrides(vmodule="a=1\n--master=x"),
        API_SERVER, "control character"),
    Row("OperatorSettings", "an administrator's kubeconfig", mounted("/etc/kubernetes/admin.conf"),
        API_SERVER, "only files without keys and kubeconfigs"),
    Row("OperatorSettings", "a key by another way",
        mounted("/etc/ssl/certs/../../kubernetes/pki/ca.key"), API_SERVER, "without .."),
    Row("OperatorSettings", "a kubeconfig of one's own for the scheduler",
        mounted("/etc/ssl/certs/a.crt", "/etc/kubernetes/scheduler.conf"), API_SERVER,
        "would hide files"),
    Row("OperatorSettings", "another program as the scheduler",
        mounted("/etc/ssl/certs/a.crt", "/usr/local/bin/kube-scheduler"), API_SERVER,
        "would hide files"),
    Row("OperatorSettings", "a Secret in a variable", {"pods": {"env": [SECRET]}}, API_SERVER,
        "unknown field"),
    Row("OperatorSettings", "a Pod that the kubelet takes for one of the API",
        {"pods": {"annotations": {"kubernetes.io/config.source": "api"}}}, API_SERVER,
        "belong to the kubelet"),
    Row("Scheduler", "a file as a profile", {"profile": "../../etc/passwd"}, API_SERVER,
        "Unsupported value"),
    Row("SchedulerProfile", "extenders of a scheduler",
        {"extenders": [{"urlPrefix": "http://evil.example"}]}, API_SERVER, "unknown field"),
]  # fmt: skip


@pytest.mark.presubmit
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}: {row.aim}")
def test_who_may_write_one_kind_does_not_obtain(row: Row, world: World) -> None:
    before = world.workloads()
    user = world.only(row.kind)
    if row.refuses == API_SERVER:
        with pytest.raises(ApiError) as refused:
            world.write(user, row.kind, row.spec)
        assert row.message in str(refused.value)
        return
    name = world.write(user, row.kind, row.spec)
    try:
        world.wait(
            lambda: row.message in world.complaint(row.kind, name),
            60,
            lambda: world.get(f"{PATHS[row.kind]}/{name}").get("status"),
        )
        assert world.workloads() == before
    finally:
        user.request("DELETE", f"{PATHS[row.kind]}/{name}")


@pytest.mark.presubmit
def test_approving_an_edit_and_ending_the_gate_need_a_right_of_their_own(world: World) -> None:
    path = f"{PATHS['OperatorSettings']}/{names.CLUSTER}"
    writer, approver = world.user("writer"), world.user("approver")
    for name in ("writer", "approver"):
        world.bind(name, f"{names.PROGRAM}-admin")
        until(
            partial(world.may_list, name, "OperatorSettings"),
            30,
            "no right yet",
        )

    def check(api: Api, **fields: Any) -> None:
        api.request("PATCH", path, {"spec": {"placementCheck": fields}})

    def refusal(attempt: Callable[[], Any]) -> str:
        try:
            attempt()
        except ApiError as error:
            return str(error)
        return ""

    def approve(api: Api) -> None:
        check(api, approved=f"{time.monotonic_ns():064x}")

    right = "need the verb approve on operatorsettings"
    world.write(writer, "OperatorSettings", {"placementCheck": {"mode": "Warn"}})
    check(writer, mode="Gate")
    try:
        world.wait(lambda: right in refusal(lambda: approve(writer)), 300, "no policy is in force")
        assert right in refusal(lambda: check(writer, mode="Warn"))
        assert right in refusal(lambda: check(writer, mode=None))
        assert right in refusal(lambda: writer.request("DELETE", path))
        check(writer, timeoutSeconds=60)
        assert right in refusal(lambda: approve(approver))
        world.bind("approver", f"{names.PROGRAM}-approve")
        world.wait(lambda: not refusal(lambda: approve(approver)), 30, "no right yet")
        check(writer, approved=None)
        of_scheduler = {"batch": f"{time.monotonic_ns():064x}"}
        assert right in refusal(lambda: check(writer, approvedSchedulers=of_scheduler))
        assert not refusal(lambda: check(approver, approvedSchedulers=of_scheduler))
        check(writer, timeoutSeconds=90)  # what is approved stays so
        changed = {"batch": f"{time.monotonic_ns():064x}"}
        assert right in refusal(lambda: check(writer, approvedSchedulers=changed))
        check(writer, approvedSchedulers=None)
    finally:
        world.api.request("DELETE", path)


OTHERS = [
    ("get", "", "secrets"), ("create", "", "pods"), ("create", "apps", "deployments"),
    ("create", "", "pods/binding"), ("patch", "", "nodes"), ("create", "", "serviceaccounts/token"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"), ("update", "", "configmaps"),
]  # fmt: skip


@pytest.mark.parametrize("kind", PATHS)
def test_a_right_on_one_kind_gives_none_on_another(kind: str, world: World) -> None:
    user = world.only(kind)
    for verb, group, resource in OTHERS:
        assert not may(user, verb, group, resource), (verb, resource)
    for other, path in PATHS.items():
        group, _, resource = path.removeprefix("/apis/").rpartition("/")
        assert may(user, "create", group.partition("/")[0], resource) == (other == kind)
        assert not may(user, "update", group.partition("/")[0], f"{resource}/status")


def may(api: Api, verb: str, group: str, resource: str, name: str = "") -> bool:
    """What the API server answers to a user about their own rights."""
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb, "group": group, "resource": resource, "subresource": subresource,
        "name": name, "namespace": NAMESPACE,
    }  # fmt: skip
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(api.request("POST", path, review)["status"]["allowed"])


def dry_run(world: World, spec: dict[str, Any]) -> str:
    """Why the API server refuses a SecondaryScheduler; empty if it does not."""
    path = PATHS["SecondaryScheduler"]
    version = path.removeprefix("/apis/").rpartition("/")[0]
    body = {
        "apiVersion": version, "kind": "SecondaryScheduler", "metadata": {"name": "tried"},
        "spec": secondary(**spec),
    }  # fmt: skip
    try:
        world.only("SecondaryScheduler").request("POST", f"{path}?dryRun=All", body)
    except ApiError as error:
        return str(error)
    return ""


def test_the_api_server_refuses_what_the_operator_refuses_except_images(world: World) -> None:
    missed = [path for spec, path in ATTACKS if not dry_run(world, spec) and "image" not in path]
    assert missed == []


def test_the_api_server_accepts_what_the_operator_accepts(world: World) -> None:
    assert [reason for spec in ALLOWED if (reason := dry_run(world, spec))] == []


# --- objects from before the policies ---------------------------------------------------------


def test_what_the_policies_missed_is_refused_by_the_operator(world: World) -> None:
    """An object that was made before them, or while an expression of them failed."""
    bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    path = f"{bindings}/secondaryscheduler-pods.kube-scheduler-operator.dev"
    binding = world.get(path)
    world.api.request("DELETE", path)
    made = ""

    def accepted() -> bool:
        nonlocal made
        try:
            made = world.write(world.only("SecondaryScheduler"), "SecondaryScheduler",
                               secondary(volumes=[_HOST]))  # fmt: skip
        except ApiError:
            return False
        return True

    try:
        world.wait(accepted, 60, "the policy is still in force")
        world.wait(
            lambda: "spec.volumes[0].hostPath" in world.complaint("SecondaryScheduler", made)
        )
        assert f"deployments {made}" not in world.workloads()
    finally:
        world.api.request("DELETE", f"{PATHS['SecondaryScheduler']}/{made}")
        kept = {key: binding["metadata"][key] for key in ("name", "labels")}
        world.api.request("POST", bindings, {**binding, "metadata": kept})


# --- what is allowed --------------------------------------------------------------------------


def test_a_secret_that_names_the_host_may_be_used(world: World) -> None:
    host = "prometheus.monitoring"
    labels = {names.TOKEN_FOR_LABEL: f"{host}_9090"}
    secret = {
        "metadata": {"name": "for-prometheus", "labels": labels},
        "stringData": {"token": "t"},
    }
    world.api.request("POST", f"{CORE}/secrets", secret)
    user = world.only("LoadPolicy")
    name = world.write(user, "LoadPolicy", prometheus(f"https://{host}:9090", "for-prometheus"))
    try:
        world.wait(lambda: f"deployments {names.LOAD_ANNOTATOR}-{name}" in world.workloads(), 60,
                   lambda: world.get(f"{PATHS['LoadPolicy']}/{name}").get("status"))  # fmt: skip
    finally:
        user.request("DELETE", f"{PATHS['LoadPolicy']}/{name}")


def template(spec: dict[str, Any]) -> dict[str, Any]:
    """The Pod of a SecondaryScheduler with this spec, with the account of its namespace."""
    operand = OperandDefaults("registry.k8s.io/kube-scheduler:v1.35.4")
    obj = {"metadata": {"name": "mine", "uid": "u"}, "spec": {"namespace": NAMESPACE, **spec}}
    desired = desired_secondary(obj, KUBEADM, operand, Version(1, 35))
    assert desired.content is not None, desired.findings
    found = pod_template(desired.request, desired.content)
    return {**found["spec"], "serviceAccountName": "default"}


def pod_security(world: World, namespace: str, spec: dict[str, Any]) -> str:
    """Why Pod Security "restricted" refuses the Pod; empty if it does not."""
    body = {"metadata": {"generateName": "tried-"}, "spec": template(spec)}
    try:
        world.api.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    except ApiError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def restricted(world: World) -> str:
    """A namespace that enforces Pod Security "restricted"."""
    name = "restricted"
    labels = {"pod-security.kubernetes.io/enforce": name}
    world.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    world.wait(lambda: world.exists(account), 60, "no account")
    return name


@pytest.mark.presubmit
def test_what_the_operator_accepts_pod_security_restricted_accepts(
    world: World, restricted: str
) -> None:
    for spec in ({}, *ALLOWED):
        assert pod_security(world, restricted, spec) == "", spec


def test_what_pod_security_restricted_refuses_the_operator_refuses(
    world: World, restricted: str
) -> None:
    """The attacks have been refused already; here that none of them is an invention."""
    invented = [
        path
        for spec, path in ATTACKS
        if "securityContext" in path
        and "windows" not in path
        and pod_security(world, restricted, spec) == ""
    ]
    assert invented == []


# --- our own accounts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
        {"metadata": {"annotations": {"example.com/x": "1"}}},
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
    ],
    ids=str,
)
def test_the_annotator_changes_nothing_of_a_node_but_its_annotations(
    change: dict[str, Any], world: World
) -> None:
    with pytest.raises(ApiError, match="its annotations of nodes only"):
        world.account(names.LOAD_ANNOTATOR).request("PATCH", f"/api/v1/nodes/{NODE}", change)


def test_the_annotator_writes_and_removes_its_annotations(world: World) -> None:
    annotator = world.account(names.LOAD_ANNOTATOR)
    for value in ("{}", None):
        notes = dict.fromkeys((names.LOAD_ANNOTATION, "cpu_usage_avg_5m", "mean-free-cpu"), value)
        annotator.request("PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": notes}})


RIGHTS = [
    (names.LOAD_ANNOTATOR, "get", "nodes/stats", "", False),
    (names.LOAD_ANNOTATOR, "get", "nodes/proxy", "", False),
    (names.LOAD_ANNOTATOR, "get", "secrets", "", False),
    (names.LOAD_ANNOTATOR, "create", "serviceaccounts/token", names.KUBELET_STATS, True),
    (names.LOAD_ANNOTATOR, "create", "serviceaccounts/token", names.PROGRAM, False),
    (names.KUBELET_STATS, "get", "nodes/stats", "", True),
    (names.KUBELET_STATS, "patch", "nodes", "", False),
    (names.KUBELET_STATS, "list", "nodes", "", False),
    (names.KUBELET_STATS, "list", "pods", "", False),
    ("scheduler-extender", "create", "pods/binding", "", False),
    ("scheduler-extender", "create", "pods", "", False),
    ("scheduler-extender-binder", "create", "pods/binding", "", True),
    ("scheduler-extender-binder", "delete", "pods", "", False),
    ("scheduler-extender-binder", "get", "secrets", "", False),
    (names.INSTALLER_SERVICE_ACCOUNT, "get", "pods", "", False),
]


@pytest.mark.presubmit
@pytest.mark.parametrize(("account", "verb", "resource", "name", "allowed"), RIGHTS)
def test_accounts_have_what_their_programs_need(
    account: str, verb: str, resource: str, name: str, allowed: bool, world: World
) -> None:
    assert may(world.account(account), verb, "", resource, name) is allowed


@pytest.mark.presubmit
def test_the_annotator_obtains_a_token_for_kubelets_only(world: World) -> None:
    annotator = world.account(names.LOAD_ANNOTATOR)
    body = {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }  # fmt: skip
    path = f"{CORE}/serviceaccounts/{names.KUBELET_STATS}/token"
    assert annotator.request("POST", path, body)["status"]["token"]
    with pytest.raises(ApiError, match="forbidden"):
        annotator.request("POST", f"{CORE}/serviceaccounts/{names.PROGRAM}/token", body)


def test_prometheus_reads_metrics_and_what_it_finds_their_targets_by(world: World) -> None:
    account = "system:serviceaccount:monitoring:prometheus-k8s"
    prometheus = Api(world.sandbox, account, ("system:authenticated",))
    assert all(may(prometheus, "list", "", kind) for kind in ("services", "endpoints", "pods"))
    assert may(prometheus, "list", "discovery.k8s.io", "endpointslices")
    assert [path for path in ("/metrics", "/metrics/resources", "/debug/pprof")
            if may_get(prometheus, path)] == ["/metrics", "/metrics/resources"]  # fmt: skip
    assert not any(may(prometheus, verb, group, resource) for verb, group, resource in OTHERS)


def may_get(api: Api, path: str) -> bool:
    """What the API server answers to a user about a path that is not a resource."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"verb": "get", "path": path}},
    }
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(api.request("POST", reviews, review)["status"]["allowed"])


# --- roles for people -------------------------------------------------------------------------

KINDS = {
    resource: group
    for group, resource in (
        (path.removeprefix("/apis/").split("/")[0], path.rpartition("/")[2])
        for path in PATHS.values()
    )
}
PEOPLE = {
    "view": (set(KINDS), set()),
    "edit": (set(KINDS), {"schedulerprofiles"}),
    "admin": (set(KINDS), {"schedulerprofiles"}),
    "kube-scheduler-operator-view": (set(KINDS), set()),
    "kube-scheduler-operator-edit-profiles": (set(), {"schedulerprofiles"}),
    "kube-scheduler-operator-admin": (set(KINDS), set(KINDS)),
}


@pytest.mark.parametrize("role", PEOPLE)
def test_a_role_reads_and_writes_what_the_page_lists(role: str, world: World) -> None:
    reads, writes = PEOPLE[role]
    user = world.user(f"person-{role}")
    world.bind(f"person-{role}", role)
    world.wait(
        lambda: all(may(user, "list", KINDS[kind], kind) for kind in reads), 60, "not aggregated"
    )
    assert {kind for kind, group in KINDS.items() if may(user, "list", group, kind)} == reads
    world.wait(
        lambda: all(may(user, "update", KINDS[kind], kind) for kind in writes), 60, "not aggregated"
    )
    for verb in ("create", "update", "patch", "delete"):
        found = {kind for kind, group in KINDS.items() if may(user, verb, group, kind)}
        assert found == writes, verb
    assert not any(may(user, "update", group, f"{kind}/status") for kind, group in KINDS.items())
    if role.startswith(names.PROGRAM):
        assert not any(may(user, verb, group, resource) for verb, group, resource in OTHERS)
