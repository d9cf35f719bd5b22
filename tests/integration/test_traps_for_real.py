"""A second scheduler set up by hand, compared with one that the operator sets up.

Real kube-schedulers and a real API server; the nodes have no kubelet. "By hand" follows the
Kubernetes documentation of multiple schedulers; the other side uses only the operator's output.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.scheduling import free_port
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings.configuration import (
    SAME_SCHEDULER_NAME,
    SHARED_LEASE,
    ConfiguredScheduler,
    config_warnings,
    warnings_between,
)
from kube_scheduler_operator.operator.secondary.content import keep_static_objects
from kube_scheduler_operator.operator.secondary.desired import DesiredScheduler, OperandDefaults

from ..desired import desired_secondary
from .conftest import ApiServer, RefusedError
from .played_nodes import make_node

NAMESPACE, NAME, NODE = "traps", "my-scheduler", "trap"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
MAIN = f"{LEASES}/kube-system/leases/kube-scheduler"
OWN = f"{LEASES}/{NAMESPACE}/leases/{NAME}"
SECONDS = 40
PATIENCE = 6.0
"""Seconds after which a working scheduler has bound a pod or got its Lease."""

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
BY_HAND = {
    **HEAD,
    "profiles": [{"schedulerName": NAME}],
    "leaderElection": {"leaderElect": True},
}
"""As in the documentation: the Lease is not set."""

pytestmark = pytest.mark.timeout(180, func_only=True)


@dataclass(frozen=True)
class Started:
    """A kube-scheduler that was started."""

    process: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        """Its log, with escaped quotes unescaped."""
        return self.log.read_text().replace('\\"', '"')

    def waits_for_its_lease(self) -> bool:
        return "attempting to acquire leader lease" in self.output().lower()


def until(what: Callable[[], bool], why: Callable[[], str]) -> None:
    end = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < end, why()
        time.sleep(0.1)


def made_here() -> DesiredScheduler:
    """What the operator makes of a minimal SecondaryScheduler."""
    metadata = {"name": NAME, "uid": "00000000-0000-0000-0000-000000000000"}
    obj = {"metadata": metadata, "spec": {"namespace": NAMESPACE}}
    image = "registry.k8s.io/kube-scheduler:v1.35.4"
    desired = desired_secondary(obj, KUBEADM, OperandDefaults(image), Version(1, 35, 4))
    assert desired.findings == ()
    return desired


def rendered(kind: str, name: str) -> dict[str, Any]:
    """A generated object without its owner, which does not exist here."""
    made = (action.obj for action in keep_static_objects(made_here().request, {}))
    (obj,) = (each for each in made if (each["kind"], each["metadata"]["name"]) == (kind, name))
    metadata = {key: obj["metadata"].get(key) for key in ("name", "namespace")}
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value}}


@pytest.fixture
def api(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    """A namespace and a node, without held Leases."""
    paths = (MAIN, OWN, f"/api/v1/nodes/{NODE}")
    _forget(api_server, *paths)
    with suppress(RefusedError):
        api_server.create_namespace(NAMESPACE)
    make_node(api_server, NODE, {})
    yield api_server
    api_server.request("DELETE", f"{CORE}/pods", {"gracePeriodSeconds": 0})
    _forget(api_server, *paths)


def _forget(api: ApiServer, *paths: str) -> None:
    for path in paths:
        with suppress(RefusedError):
            api.request("DELETE", path)


@pytest.fixture
def start(api: ApiServer, kube_scheduler_binary: Path, tmp_path: Path) -> Iterator[Any]:
    """Starts kube-schedulers, which end with the test."""
    started: list[Started] = []

    def run(config: Mapping[str, Any], kubeconfig: Path, *flags: str) -> Started:
        number = len(started)
        file, log = tmp_path / f"config-{number}", tmp_path / f"log-{number}"
        client = {"kubeconfig": str(kubeconfig)}
        file.write_text(json.dumps({**config, "clientConnection": client}))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    kube_scheduler_binary, f"--config={file}", "--secure-port=0", *flags
                ],
                stdout=output, stderr=output,
            )  # fmt: skip
        started.append(Started(process, log))
        return started[-1]

    yield run
    for each in started:
        each.process.kill()
        each.process.wait(20)


def holder(api: ApiServer, lease: str) -> str:
    try:
        return str(api.request("GET", lease)["spec"].get("holderIdentity") or "")
    except RefusedError:
        return ""


def ask(api: ApiServer, name: str, scheduler_name: str = NAME) -> Callable[[], dict[str, Any]]:
    """A pod that asks for a scheduler; what is returned reads it."""
    spec = {
        "schedulerName": scheduler_name,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "none"}],
    }
    api.request("POST", f"{CORE}/pods", {"metadata": {"name": name}, "spec": spec})
    return lambda: api.request("GET", f"{CORE}/pods/{name}")


def bound(read: Callable[[], dict[str, Any]]) -> bool:
    return bool(read()["spec"].get("nodeName"))


def test_by_hand_it_shares_the_main_lease_and_waits_indefinitely(
    api: ApiServer, start: Any
) -> None:
    version = Version.parse(api.request("GET", "/version")["gitVersion"])
    assert [each.reason for each in config_warnings(BY_HAND, Target(Gates(version)))] == [
        SHARED_LEASE
    ]
    main = start(HEAD, api.kubeconfig)
    until(lambda: holder(api, MAIN) != "", main.output)
    leader = holder(api, MAIN)
    second = start(BY_HAND, api.kubeconfig)
    until(second.waits_for_its_lease, second.output)
    pod = ask(api, "waits")
    time.sleep(PATIENCE)
    assert holder(api, MAIN) == leader
    assert not bound(pod)
    assert "conditions" not in pod()["status"], "no scheduler has considered it"
    events = api.request("GET", f"{CORE}/events?fieldSelector=involvedObject.name%3Dwaits")
    assert events["items"] == [], "no user gets an event"

    ours = start(made_here().composition.config, api.kubeconfig)
    until(lambda: bound(pod), ours.output)
    assert holder(api, MAIN) == leader, "the control plane's scheduler goes on"
    assert holder(api, OWN) != ""


def account(api: ApiServer, folder: Path) -> Path:
    """A ServiceAccount with the two ClusterRoles of the manuals; its kubeconfig."""
    api.request("POST", f"{CORE}/serviceaccounts", rendered("ServiceAccount", NAME))
    for suffix in ("kube", "volume"):
        body = rendered("ClusterRoleBinding", f"{NAME}-as-{suffix}-scheduler")
        api.request("POST", f"{RBAC}/clusterrolebindings", body)
    token = api.request("POST", f"{CORE}/serviceaccounts/{NAME}/token", {"spec": {}})
    config = yaml.safe_load(api.kubeconfig.read_text())
    (user,) = config["users"]
    user["user"] = {"token": token["status"]["token"]}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def kubeconfig(api: ApiServer, tmp_path: Path) -> Iterator[Path]:
    """Of the account; all rights that it had are gone after the test."""
    yield account(api, tmp_path)
    _forget(
        api,
        f"{CORE}/serviceaccounts/{NAME}",
        *(f"{RBAC}/clusterrolebindings/{NAME}-as-{each}-scheduler" for each in ("kube", "volume")),
        *(
            f"{RBAC}/namespaces/{namespace}/{kind}/{name}"
            for namespace in (NAMESPACE, "kube-system")
            for kind in ("roles", "rolebindings")
            for name in (NAME, f"{NAME}-authentication-reader")
        ),
    )


def grant(api: ApiServer, namespace: str) -> None:
    """The rights for the Lease as they are rendered, but for the namespace."""
    for kind in ("Role", "RoleBinding"):
        obj = rendered(kind, NAME)
        obj["metadata"]["namespace"] = namespace
        api.request("POST", f"{RBAC}/namespaces/{namespace}/{kind.lower()}s", obj)


def test_by_hand_it_has_no_rights_for_its_own_lease(
    api: ApiServer, start: Any, kubeconfig: Path
) -> None:
    scheduler = start(made_here().composition.config, kubeconfig)
    refused = f'leases.coordination.k8s.io "{NAME}" is forbidden'
    until(lambda: refused in scheduler.output(), scheduler.output)
    grant(api, "kube-system")  # where the manuals have all that they make
    pod = ask(api, "waits")
    time.sleep(PATIENCE)
    assert (holder(api, OWN), bound(pod)) == ("", False)
    assert scheduler.process.poll() is None, "and the process lives on, as if all were well"

    assert rendered("Role", NAME)["metadata"]["namespace"] == NAMESPACE
    grant(api, NAMESPACE)
    until(lambda: bound(pod), scheduler.output)
    assert holder(api, OWN) != ""


def test_by_hand_it_cannot_authenticate_clients_of_its_metrics(
    api: ApiServer, start: Callable[..., Started], kubeconfig: Path, tmp_path: Path
) -> None:
    def begin() -> Started:
        return start(
            made_here().composition.config, kubeconfig,
            f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
            f"--secure-port={free_port()}", "--bind-address=127.0.0.1", f"--cert-dir={tmp_path}",
        )  # fmt: skip

    denied = 'configmaps "extension-apiserver-authentication" is forbidden'
    lacking = begin()
    until(lambda: denied in lacking.output(), lacking.output)
    body = rendered("RoleBinding", f"{NAME}-authentication-reader")
    assert body["metadata"]["namespace"] == "kube-system"
    api.request("POST", f"{RBAC}/namespaces/kube-system/rolebindings", body)
    having = begin()
    until(having.waits_for_its_lease, having.output)
    assert denied not in having.output()


def test_by_hand_replicas_without_leader_election_all_place_every_pod(
    api: ApiServer, start: Any
) -> None:
    own = ("only-0", "only-1")  # profiles by which each can be asked
    configs = [
        {
            **BY_HAND,
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": NAME}, {"schedulerName": name}],
        }
        for name in own
    ]
    target = Target(Gates(Version.parse(api.request("GET", "/version")["gitVersion"])))
    replicas = [
        ConfiguredScheduler(f"replica {number}", config, target)
        for number, config in enumerate(configs)
    ]
    assert [each.reason for _, each in warnings_between(replicas)] == [SAME_SCHEDULER_NAME]
    both = [start(config, api.kubeconfig) for config in configs]
    for name, scheduler in zip(own, both, strict=True):  # both must have begun to watch
        first = ask(api, name, name)
        until(partial(bound, first), scheduler.output)
    pods = [ask(api, f"pod-{number}") for number in range(60)]
    until(lambda: all(bound(pod) for pod in pods), both[0].output)
    until(
        lambda: any("already assigned to node" in each.output() for each in both),
        lambda: "\n".join(each.output()[-2000:] for each in both),
    )
    assert made_here().composition.config["leaderElection"]["leaderElect"] is True
