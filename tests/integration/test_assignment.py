"""`spec.assign` with a real API server, both ways: its policy, and the operator's webhook.

The operator has the rights that deploy/ grants. Pods are created as a dry run, which asks policies
and webhooks like any other request.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.review_flood import flooded
from cluster import releases
from cluster.api import Api, ApiError
from cluster.console import run
from cluster.scheduling import free_port
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.operator.secondary.assignment import chosen

from ..assignments import drawn
from .conftest import REPOSITORY
from .harness import NAMESPACE
from .played_cluster import CORE, GROUP, brought_up
from .test_managed import KIND, LEASES, NAME, World

PROGRAM = Path(sys.executable).with_name("kubectl-scheduler")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOK = f"{ADMISSION}/mutatingwebhookconfigurations/{names.ASSIGNMENT}"
POLICY = f"{ADMISSION}/mutatingadmissionpolicies/{names.ASSIGNMENT}"
SERVICE = f"{CORE}/services/{names.WEBHOOK}"
SECRET = f"{CORE}/secrets/{names.WEBHOOK}"
EVENTS = "/api/v1/namespaces/default/events"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kube-scheduler-operator"
OPERATOR_LEASE = MANAGED.operator.lease
DEFAULT = "default-scheduler"
POLICIES_SINCE = 36
"""The minor version of the first API server that serves MutatingAdmissionPolicy v1."""
BATCH = {"namespaceSelector": {"matchLabels": {"team": "batch"}}}
NEVER = {names.ASSIGN_LABEL: "never"}
SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
TEAM, OTHER, OUT = "team-batch", "team-web", "team-out"
WITNESS = "witness"

# The tests of one way share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class AssigningWorld(World):
    """Namespaces of two teams; nothing applies assignments yet."""

    way: ClassVar[str] = ""
    installed = False

    def open(self) -> None:
        super().open()
        for name, labels in (
            (TEAM, {"team": "batch"}), (OTHER, {"team": "web"}), (OUT, {"team": "batch", **NEVER}),
        ):  # fmt: skip
            self.namespace(name, labels)
        for name, default in (("low", False), ("usual", True)):
            body = {
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": 10, "globalDefault": default,
            }  # fmt: skip
            self.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)

    def namespace(self, name: str, labels: dict[str, str]) -> None:
        body = {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        }  # fmt: skip
        self.api.create("/api/v1/namespaces", body)
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.api.create(path, account)

    def pod(
        self, namespace: str = TEAM, spec: dict[str, Any] | None = None, **metadata: Any
    ) -> str:
        """The schedulerName that a new Pod gets."""
        body = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "p-", **metadata}, "spec": {**SPEC, **(spec or {})},
        }  # fmt: skip
        made = self.api.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
        return str(made["spec"]["schedulerName"])

    def assign(self, assign: dict[str, Any] | None, name: str = NAME) -> None:
        for value in (None, assign):  # a patch alone would merge it with what is there
            self.api.request("PATCH", f"{KIND}/{name}", {"spec": {"assign": value}})

    def assigned(self, name: str = NAME) -> tuple[str, str, str]:
        return self.condition(name, names.ASSIGNED)

    def install(self) -> None:
        """What deploy/assignment has for this way, reached on this machine."""
        directory = REPOSITORY / "deploy" / "assignment" / self.way
        kubectl = [
            str(self.sandbox.state / "bin/kubectl"),
            f"--kubeconfig={self.sandbox.kubeconfig}",
        ]
        run(*kubectl, "apply", "--server-side", "-k", directory)
        self.installed = True

    def check(self, name: str) -> dict[str, str]:
        """The results of a check by their sentences."""
        command = [str(PROGRAM), "check", "-o", "json", f"--kubeconfig={self.sandbox.kubeconfig}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        results = json.loads(done.stdout)["checks"]
        return {one["cause"]: one["result"] for one in results if one["check"] == name}

    def becomes_ready(self, pod: dict[str, Any]) -> None:
        if pod["metadata"]["name"].startswith(self.away or "\n"):
            return
        super().becomes_ready(pod)

    away = ""


class PolicyWorld(AssigningWorld):
    """An API server that serves MutatingAdmissionPolicy."""

    way = "policy"
    kubernetes = releases.PINNED[max(releases.PINNED)]


class WebhookWorld(AssigningWorld):
    """An API server without it, or without the policy."""

    way = "webhook"

    def open(self) -> None:
        super().open()
        self.port = free_port()
        self.flags = (*World.flags, f"--webhook-listen=127.0.0.1:{self.port}")

    def install(self) -> None:
        """Without nodes there is no address of a Service, so it names this machine instead."""
        super().install()
        service = self.get(SERVICE)
        self.api.request("DELETE", SERVICE)
        metadata = {"name": names.WEBHOOK, "labels": service["metadata"]["labels"]}
        body = {
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }  # fmt: skip
        self.api.request("POST", f"{CORE}/services", body)
        self.connect(lambda client: client["service"].update(port=self.port))

    def connect(self, edit: Callable[[dict[str, Any]], Any]) -> None:
        """Edit how the API server reaches the webhook."""
        self._edit(lambda one: edit(one["clientConfig"]))

    def edit_webhook(self, **values: Any) -> None:
        """Set fields of the webhook."""
        self._edit(lambda one: one.update(values))

    def _edit(self, edit: Callable[[dict[str, Any]], Any]) -> None:
        while True:
            configuration = self.get(WEBHOOK)
            edit(configuration["webhooks"][0])
            try:
                self.api.request("PUT", WEBHOOK, configuration)
            except ApiError as error:
                if error.code != 409:  # the operator was faster with a caBundle
                    raise
            else:
                return

    def answers(self, expected: int, body: bytes, **headers: str) -> bool:
        """Whether that is the webhook's answer; on a busy machine, it may have none in time."""
        status = self.post(body, **headers)
        assert status in (0, 408, 503, expected)
        return status == expected

    def post(self, body: bytes, **headers: str) -> int:
        """Send anything to the webhook; the status of its answer, 0 without one."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        url = f"https://127.0.0.1:{self.port}/assign"
        request = urllib.request.Request(url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0


@pytest.fixture(scope="module", params=[PolicyWorld, WebhookWorld], ids=["policy", "webhook"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AssigningWorld]:
    """A cluster with a scheduler that is Available; nothing is assigned to it."""
    kind: type[AssigningWorld] = request.param
    with brought_up(kind, f"as{kind.way[0]}", tmp_path_factory.mktemp("operator")) as brought:
        brought.start()
        brought.wait(lambda: brought.exists(f"{KIND}/{NAME}"), 60)
        brought.wait(lambda: brought.condition(NAME, "Available")[0] == "True", 90)
        yield brought


@pytest.fixture
def world(cluster: AssigningWorld) -> AssigningWorld:
    """The cluster with the policy or webhook, and a scheduler with an assignment."""
    if not cluster.get(f"{KIND}/{NAME}")["spec"].get("assign"):
        cluster.assign(BATCH)
    if not cluster.installed:
        cluster.install()
        cluster.wait(lambda: cluster.assigned()[0] == "True", 60, cluster.assigned)
    return cluster


# `make test` has one version of Kubernetes, the default one, which does not serve the policy.
webhook_in_presubmit = pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(PolicyWorld, id="policy"),
        pytest.param(WebhookWorld, id="webhook", marks=pytest.mark.presubmit),
    ],
    indirect=True,
    scope="module",
)


def test_without_policy_and_webhook_the_status_has_the_command(cluster: AssigningWorld) -> None:
    cluster.assign(BATCH)
    cluster.wait(
        lambda: cluster.assigned()[:2] == ("False", "NotInstalled"),
        30,
        lambda: cluster.status(NAME),
    )
    serves = releases.minor(cluster.sandbox.kubernetes) >= POLICIES_SINCE
    directory = "policy" if serves else "webhook"
    assert f"-k deploy/assignment/{directory} " in cluster.assigned()[2]
    assert cluster.pod() == DEFAULT


@webhook_in_presubmit
def test_a_selected_pod_gets_the_name_and_no_other(world: AssigningWorld) -> None:
    world.wait(lambda: world.pod() == NAME, 60, lambda: world.get(WEBHOOK))
    assert names.ASSIGNMENT in world.assigned()[2]
    assert world.pod(OTHER) == DEFAULT
    assert world.get(f"{KIND}/{NAME}")["spec"]["assign"] == BATCH, "the operator keeps it"


@webhook_in_presubmit
def test_check_tries_the_assignment_and_stores_nothing(world: AssigningWorld) -> None:
    world.wait(lambda: world.pod() == NAME, 60, lambda: world.get(WEBHOOK))
    before = world.listed(f"/api/v1/namespaces/{TEAM}/pods")
    results = world.check("assignment")
    if world.way == "policy":
        assert f"a dry run in namespace {TEAM} got it" in next(iter(results))
        assert list(results.values()) == ["ok"]
    else:  # its operator has no Deployment, which is the only problem
        assert [cause for cause in results if "which serves webhook" not in cause] == []
    assert world.listed(f"/api/v1/namespaces/{TEAM}/pods") == before


@webhook_in_presubmit
@pytest.mark.parametrize(
    ("namespace", "spec", "metadata", "expected"),
    [
        (TEAM, {"schedulerName": "another"}, {}, "another"),
        (TEAM, {"schedulerName": DEFAULT}, {}, NAME),
        (TEAM, {"nodeName": "ip-10-0-0-0"}, {}, DEFAULT),
        (TEAM, {}, {"labels": NEVER}, DEFAULT),
        (TEAM, {}, {"labels": {names.ASSIGN_LABEL: "yes"}}, NAME),
        (TEAM, {}, {"labels": {names.SECONDARY_LABEL: "x"}}, DEFAULT),
        (OUT, {}, {}, DEFAULT),
        ("kube-system", {}, {}, DEFAULT),
        (TEAM, {}, {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                    "name": "d", "uid": "1"}]}, DEFAULT),
        (TEAM, {}, {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                    "name": "d", "uid": "1"}]}, NAME),
        # The same key twice: an apply would refuse it.
        (TEAM, {"containers": [{**SPEC["containers"][0],
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]}, {}, NAME),
    ],
)  # fmt: skip
def test_what_is_never_assigned(
    world: AssigningWorld,
    namespace: str,
    spec: dict[str, Any],
    metadata: dict[str, Any],
    expected: str,
) -> None:
    # kube-system and the operator's namespace are selected as well, if anything could select them.
    for name in ("kube-system", NAMESPACE):
        world.api.request(
            "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"team": "batch"}}}
        )
    found = partial(world.pod, namespace, spec, **metadata)
    if expected == NAME:  # one call of a webhook may take longer than the API server waits
        world.wait(lambda: found() == NAME, 30)
    else:
        assert found() == expected


def test_pods_of_the_operators_namespace_are_never_assigned(world: AssigningWorld) -> None:
    pods = world.listed(f"{CORE}/pods")
    assert pods
    assert {pod["spec"]["schedulerName"] for pod in pods} == {DEFAULT}


def test_the_default_class_of_the_cluster_counts(world: AssigningWorld) -> None:
    world.assign({"namespaceSelector": {}, "priorityClassNames": ["usual"]})
    world.wait(lambda: world.pod(OTHER) == NAME, 30)
    assert world.pod(OTHER, {"priorityClassName": "low"}) == DEFAULT


def test_of_two_that_select_a_pod_the_one_without_selectors_is_last(
    world: AssigningWorld,
) -> None:
    world.assign({})
    world.put("second", namespace=NAMESPACE, assign=BATCH)
    world.wait(lambda: world.assigned("second")[0] == "True", 90, lambda: world.status("second"))
    world.wait(lambda: world.pod() == "second", 30)
    world.wait(lambda: world.pod(OTHER) == NAME, 30)
    world.wait(
        lambda: '"second" can select the same Pods' in world.condition(NAME, "Warnings")[2], 30
    )
    world.delete("second")
    world.wait(lambda: world.pod() == NAME, 30)


def test_a_settled_assignment_writes_nothing(world: AssigningWorld) -> None:
    world.assign(BATCH)
    world.wait(lambda: world.status(NAME).get("assignment", {}).get("pods") == BATCH, 30)
    time.sleep(3)
    assert world.writes_within(12) == [], world.proxy.bodies


def test_without_a_ready_scheduler_new_pods_go_to_the_default_one(world: AssigningWorld) -> None:
    world.away = NAME
    began = time.monotonic()
    try:
        for pod in world.pods(NAME):
            world.api.request("DELETE", f"{CORE}/pods/{pod['metadata']['name']}")
        world.wait(
            lambda: world.assigned()[:2] == ("False", "NotReady"), 60, lambda: world.status(NAME)
        )
        world.wait(lambda: world.pod() == DEFAULT, 60, lambda: world.status(NAME))
        print(f"{world.way}: withdrawn after {time.monotonic() - began:.1f} s")
        world.wait(lambda: len(_withdrawn(world)) == 1, 30, lambda: _withdrawn(world))
        path = f"/api/v1/namespaces/{TEAM}/pods"
        body = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"},
            "spec": {**SPEC, "schedulerName": NAME},
        }  # fmt: skip
        world.api.request("POST", path, body)
        world.wait(
            lambda: f"1 Pod waits for it ({TEAM}/waits)" in world.assigned()[2],
            60,
            lambda: world.assigned(),
        )
        assert len(_withdrawn(world)) == 1
        world.api.request("DELETE", f"{path}/waits?gracePeriodSeconds=0")
    finally:
        world.away = ""
    world.wait(lambda: world.pod() == NAME, 90, lambda: world.status(NAME))


def _withdrawn(world: AssigningWorld) -> list[str]:
    return [
        event["message"]
        for event in world.listed(f"{CORE}/events")
        if "Assigned is False: no scheduler pod is Ready" in event["message"]
    ]


def test_a_killed_operator_refuses_no_pod(world: AssigningWorld) -> None:
    world.operator.kill()
    began = time.monotonic()
    found = [world.pod() for _ in range(20)]
    seconds = (time.monotonic() - began) / 20
    print(f"{world.way}: {seconds * 1000:.0f} ms a Pod, operator killed")
    assert set(found) == {NAME if world.way == "policy" else DEFAULT}
    assert seconds < 5, "the webhook's time-out is a second"
    world.start()
    world.wait(lambda: world.pod() == NAME, 60)


# --- the rule itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [PolicyWorld], ids=["policy"], indirect=True, scope="module")
def test_the_policy_decides_as_the_webhook_does(world: AssigningWorld) -> None:
    """200 drawn assignments; tests/unit/deploy/test_assignment.py has more of them."""
    assert world.operator.stop() == 0
    world.operator.process = None
    world.namespace(WITNESS, {})
    world.put(WITNESS, namespace=WITNESS)
    draw = random.Random(29)
    for number in range(200):
        case = drawn(draw)
        current = world.get(f"{KIND}/{NAME}")
        current["status"]["assignment"] = case.assignment
        world.api.request("PUT", f"{KIND}/{NAME}/status", current)
        replaced = {"team": None, "a": None, "b": None, **case.namespace_labels}
        world.api.request(
            "PATCH", f"/api/v1/namespaces/{OTHER}", {"metadata": {"labels": replaced}}
        )
        seen = {**case.namespace_labels, "kubernetes.io/metadata.name": OTHER}
        scheduler = {"metadata": {"name": NAME}, "status": {"assignment": case.assignment}}
        expected = chosen([scheduler], seen, case.labels, case.priority_class) or DEFAULT

        _until_seen(world, number)
        given = world.pod(OTHER, {"priorityClassName": case.priority_class}, labels=case.labels)
        assert given == expected, case


def _until_seen(world: AssigningWorld, number: int) -> None:
    """Wait until the API server's policy has seen all earlier writes.

    It reads namespaces and SecondarySchedulers from two watches, each of which keeps the order of
    writes. So the last write of each kind selects a Pod only when both watches have passed the
    earlier ones.
    """
    label = {"number": str(number)}
    world.api.request("PATCH", f"/api/v1/namespaces/{WITNESS}", {"metadata": {"labels": label}})
    current = world.get(f"{KIND}/{WITNESS}")
    current["status"] = {
        "assignment": {
            "schedulerName": f"seen-{number}",
            "pods": {"namespaceSelector": {"matchLabels": label}},
        }
    }
    world.api.request("PUT", f"{KIND}/{WITNESS}/status", current)
    world.wait(lambda: world.pod(WITNESS) == f"seen-{number}", 60)


# --- the webhook --------------------------------------------------------------------------------


by_webhook = pytest.mark.parametrize(
    "cluster", [WebhookWorld], ids=["webhook"], indirect=True, scope="module"
)


@pytest.fixture
def webhook(world: WebhookWorld) -> WebhookWorld:
    world.start()
    return world


@pytest.mark.presubmit
@by_webhook
def test_any_bytes_are_answered_without_harm(webhook: WebhookWorld) -> None:
    webhook.wait(lambda: webhook.pod() == NAME, 60)
    draw = random.Random(29)
    bodies = [
        b"", b"{", b"null", b"[]", b"\xff\xfe", b"{}", b'{"apiVersion":"admission.k8s.io/v1"}',
        b"[" * 100_000, b'{"a":' * 50_000, b"1" * 100_000, draw.randbytes(100_000),
    ]  # fmt: skip
    for body in bodies:
        webhook.wait(partial(webhook.answers, 400, body), 30, f"no 400 for {body[:50]!r}")
    webhook.wait(lambda: webhook.answers(413, b" " * (9 * 1024 * 1024)), 60, "no 413")
    webhook.wait(lambda: webhook.answers(415, b"{}", **{"Content-Encoding": "gzip"}), 30, "no 415")
    webhook.wait(lambda: webhook.pod() == NAME, 30)
    webhook.start()  # raises if it has ended


@pytest.mark.presubmit
@by_webhook
def test_a_flood_from_another_address_loses_neither_pods_nor_the_lease(
    webhook: WebhookWorld,
) -> None:
    webhook.wait(lambda: webhook.pod() == NAME, 60)
    webhook.edit_webhook(timeoutSeconds=10)  # a busy machine must not look like a flood
    lease = f"{LEASES}/{OPERATOR_LEASE}"
    process, before = webhook.operator.process, webhook.get(lease)["spec"]
    assert process is not None
    for pid in (process.pid, *_children(process.pid)):
        with contextlib.suppress(PermissionError):  # a container has its share of processors
            os.setpriority(os.PRIO_PROCESS, pid, -10)
    try:
        for connections in (6, 12, 64):
            with flooded(webhook.port, "127.0.0.2", "bodies", connections):
                time.sleep(2)
                found = [webhook.pod() for _ in range(40)]
            lost = 40 - found.count(NAME)
            assert not lost, (connections, lost, webhook.operator.text()[-3000:])
        after = webhook.get(lease)["spec"]
        assert (process.poll(), webhook.operator.process) == (None, process)
        for field in ("leaseTransitions", "acquireTime", "holderIdentity"):
            assert after.get(field) == before.get(field)
    finally:
        webhook.edit_webhook(timeoutSeconds=1)


@by_webhook
def test_a_killed_process_of_the_webhook_is_replaced_and_the_operator_stays(
    webhook: WebhookWorld,
) -> None:
    webhook.wait(lambda: webhook.pod() == NAME, 60)
    process = webhook.operator.process
    assert process is not None
    (child,) = _children(process.pid)
    os.kill(child, signal.SIGKILL)
    webhook.wait(lambda: webhook.pod() == NAME, 60)
    assert process.poll() is None
    assert _children(process.pid) != [child]


def _children(pid: int) -> list[int]:
    """The processes of the webhook that an operator has."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    program = b"kube_scheduler_operator.operator.admission.program"
    return [int(one) for one in found if program in Path(f"/proc/{one}/cmdline").read_bytes()]


@pytest.mark.presubmit
@by_webhook
def test_a_ca_bundle_of_another_client_is_replaced(webhook: WebhookWorld) -> None:
    webhook.wait(lambda: webhook.pod() == NAME, 60)
    webhook.connect(lambda client: client.pop("caBundle"))

    def bundle() -> str:
        return str(webhook.get(WEBHOOK)["webhooks"][0]["clientConfig"].get("caBundle", ""))

    # The operator may be faster with a bundle than the API server is with its absence.
    webhook.wait(lambda: bundle() or webhook.pod() == DEFAULT)
    webhook.wait(bundle, 60, lambda: webhook.get(WEBHOOK))
    webhook.wait(lambda: webhook.pod() == NAME)


@pytest.mark.presubmit
@by_webhook
def test_check_reports_a_webhook_that_the_api_server_does_not_reach(webhook: WebhookWorld) -> None:
    webhook.wait(lambda: webhook.pod() == NAME, 60)
    webhook.connect(lambda client: client["service"].update(port=free_port()))
    webhook.wait(lambda: webhook.pod() == DEFAULT, 60)
    wrong = f"gets schedulerName {DEFAULT}, not {NAME}"
    results = webhook.check("assignment")
    assert [state for cause, state in results.items() if wrong in cause] == ["failed"]
    webhook.connect(lambda client: client["service"].update(port=webhook.port))
    webhook.wait(lambda: webhook.pod() == NAME, 60)


@by_webhook
def test_a_lost_certificate_is_made_again(webhook: WebhookWorld) -> None:
    before = webhook.get(SECRET)["data"]["tls.crt"]
    webhook.api.request("PATCH", SECRET, {"data": {"tls.key": None}})
    webhook.wait(lambda: webhook.get(SECRET)["data"].get("tls.crt") not in (None, before), 60)
    webhook.wait(lambda: webhook.pod() == NAME, 60)


Edit = Callable[[dict[str, Any]], Any]


def _first(configuration: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = configuration["webhooks"][0]
    return found


SECRETS_RULE = {
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"],
    "scope": "*",
}  # fmt: skip
ATTACKS: dict[str, Edit] = {
    "refuse Pods": lambda c: _first(c).update(failurePolicy="Fail"),
    "see Secrets": lambda c: _first(c)["rules"].append(SECRETS_RULE),
    "see updates": lambda c: _first(c)["rules"][0].update(operations=["*"]),
    "see Pods of kube-system": lambda c: _first(c).pop("namespaceSelector"),
    "see opted-out Pods": lambda c: _first(c).pop("objectSelector"),
    "see Pods of other schedulers": lambda c: _first(c).pop("matchConditions"),
    "weaken a condition": lambda c: _first(c)["matchConditions"][0].update(expression="true"),
    "another address": lambda c: _first(c).update(clientConfig={"url": "https://evil.example"}),
    "another Service": lambda c: _first(c)["clientConfig"]["service"].update(name="another"),
    "another path": lambda c: _first(c)["clientConfig"]["service"].update(path="/another"),
    "slow requests": lambda c: _first(c).update(timeoutSeconds=30),
    "side effects": lambda c: _first(c).update(sideEffects="NoneOnDryRun"),
    "reinvocation": lambda c: _first(c).update(reinvocationPolicy="Never"),
    "match policy": lambda c: _first(c).update(matchPolicy="Exact"),
    "a second webhook": lambda c: c["webhooks"].append({**_first(c), "name": "a.second.one"}),
    "no webhook": lambda c: c.update(webhooks=[]),
    "a label": lambda c: c["metadata"].setdefault("labels", {}).update(a="b"),
    "an annotation": lambda c: c["metadata"].setdefault("annotations", {}).update(a="b"),
    "a finalizer": lambda c: c["metadata"].update(finalizers=["example.com/x"]),
    "an owner": lambda c: c["metadata"].update(
        ownerReferences=[{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "1"}]
    ),
}


@by_webhook
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.presubmit
def test_the_operator_can_write_nothing_but_the_ca_bundle(
    webhook: WebhookWorld, attack: str
) -> None:
    operator = Api(webhook.sandbox, ACCOUNT, ("system:authenticated",))
    changed = copy.deepcopy(webhook.get(WEBHOOK))
    ATTACKS[attack](changed)
    with pytest.raises(ApiError, match=r"may only change clientConfig\.caBundle"):
        operator.request("PUT", f"{WEBHOOK}?dryRun=All", changed)


@by_webhook
def test_the_operator_can_neither_make_nor_delete_a_webhook(webhook: WebhookWorld) -> None:
    operator = Api(webhook.sandbox, ACCOUNT, ("system:authenticated",))
    own = webhook.get(WEBHOOK)
    own["webhooks"][0]["clientConfig"]["caBundle"] = ""
    operator.request("PUT", f"{WEBHOOK}?dryRun=All", own)  # what it may do
    body = {**own, "metadata": {"name": "another"}}
    path = WEBHOOK.rpartition("/")[0]
    for method, where, what in (
        ("POST", path, body), ("PUT", f"{path}/another", body), ("DELETE", WEBHOOK, None),
        ("GET", f"{path}/another", None), ("GET", path, None),
    ):  # fmt: skip
        with pytest.raises(ApiError, match="forbidden"):
            operator.request(method, where, what)


def test_the_operator_can_write_no_policy(world: AssigningWorld) -> None:
    operator = Api(world.sandbox, ACCOUNT, ("system:authenticated",))
    for kind in (
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
        "validatingadmissionpolicies", "validatingadmissionpolicybindings",
    ):  # fmt: skip
        path = f"{ADMISSION}/{kind}"
        for method, where in (("POST", path), ("DELETE", f"{path}/{names.ASSIGNMENT}")):
            with pytest.raises(ApiError, match="forbidden"):
                operator.request(method, where, {"metadata": {"name": "x"}})


def test_who_may_write_other_kinds_only_assigns_nothing(world: AssigningWorld) -> None:
    user = Api(world.sandbox, "someone", ("system:authenticated",))
    for path in (f"{KIND}/{NAME}", f"{KIND}/{NAME}/status", f"{GROUP}/secondaryschedulers/x"):
        with pytest.raises(ApiError, match="forbidden"):
            user.request("PATCH", path, {"spec": {"assign": {}}})
