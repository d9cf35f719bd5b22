"""What happens to a second scheduler that is set up by hand, and what is made for one here.

Real kube-schedulers and a real API server; the nodes have no kubelet. By hand is as the manuals of
multiple schedulers have it; the other side is what the operator composes and renders, nothing else.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.schedulerconfig.check import Target
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.schedulerconfig.warnings import (
    SAME_SCHEDULER_NAME,
    SHARED_LEASE,
    Process,
    hazards,
    hazards_between,
)
from kube_scheduler_operator.secondary.desired import Operand, Wanted, want
from kube_scheduler_operator.secondary.objects import keep_static_objects

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
"""Seconds in which a scheduler that works has long bound a pod, or has its Lease."""

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
BY_HAND = {
    **HEAD,
    "profiles": [{"schedulerName": NAME}],
    "leaderElection": {"leaderElect": True},
}
"""As it is written in manuals: nothing is said of the Lease."""


@dataclass(frozen=True)
class Started:
    """A kube-scheduler that was started."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """Its log; quotes within quotes are as they were."""
        return self.log.read_text().replace('\\"', '"')

    def waits_for_its_lease(self) -> bool:
        return "attempting to acquire leader lease" in self.said().lower()


def until(what: Callable[[], bool], why: Callable[[], str]) -> None:
    end = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < end, why()
        time.sleep(0.1)


def made_here() -> Wanted:
    """What the operator makes of a SecondaryScheduler that says as little as possible."""
    metadata = {"name": NAME, "uid": "00000000-0000-0000-0000-000000000000"}
    obj = {"metadata": metadata, "spec": {"namespace": NAMESPACE}}
    image = "registry.k8s.io/kube-scheduler:v1.35.4"
    wanted = want(obj, KUBEADM, Operand(image), Version(1, 35, 4))
    assert wanted.findings == ()
    return wanted


def rendered(kind: str, name: str) -> dict[str, Any]:
    """An object that is made for it, without an owner: there is none here."""
    made = (action.obj for action in keep_static_objects(made_here().request, {}))
    (obj,) = (each for each in made if (each["kind"], each["metadata"]["name"]) == (kind, name))
    metadata = {key: obj["metadata"].get(key) for key in ("name", "namespace")}
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value}}


@pytest.fixture
def api(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    """A namespace, a node, and no Lease that somebody holds."""
    paths = (MAIN, OWN, f"/api/v1/nodes/{NODE}")
    _forget(api_server, *paths)
    with suppress(RefusedError):
        api_server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
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


def test_by_hand_it_shares_the_main_lease_and_waits_for_ever(api: ApiServer, start: Any) -> None:
    version = Version.parse(api.request("GET", "/version")["gitVersion"])
    assert [each.reason for each in hazards(BY_HAND, Target(Gates(version)))] == [SHARED_LEASE]
    main = start(HEAD, api.kubeconfig)
    until(lambda: holder(api, MAIN) != "", main.said)
    leader = holder(api, MAIN)
    second = start(BY_HAND, api.kubeconfig)
    until(second.waits_for_its_lease, second.said)
    pod = ask(api, "waits")
    time.sleep(PATIENCE)
    assert holder(api, MAIN) == leader
    assert not bound(pod)
    assert "conditions" not in pod()["status"], "nobody has looked at it"
    events = api.request("GET", f"{CORE}/events?fieldSelector=involvedObject.name%3Dwaits")
    assert events["items"] == [], "so nobody is told"

    ours = start(made_here().composition.config, api.kubeconfig)
    until(lambda: bound(pod), ours.said)
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


def test_by_hand_it_may_not_have_its_own_lease(
    api: ApiServer, start: Any, kubeconfig: Path
) -> None:
    scheduler = start(made_here().composition.config, kubeconfig)
    refused = f'leases.coordination.k8s.io "{NAME}" is forbidden'
    until(lambda: refused in scheduler.said(), scheduler.said)
    grant(api, "kube-system")  # where the manuals have all that they make
    pod = ask(api, "waits")
    time.sleep(PATIENCE)
    assert (holder(api, OWN), bound(pod)) == ("", False)
    assert scheduler.process.poll() is None, "and the process lives on, as if all were well"

    assert rendered("Role", NAME)["metadata"]["namespace"] == NAMESPACE
    grant(api, NAMESPACE)
    until(lambda: bound(pod), scheduler.said)
    assert holder(api, OWN) != ""


def test_by_hand_it_cannot_know_who_asks_for_its_metrics(
    api: ApiServer, start: Any, kubeconfig: Path, tmp_path: Path
) -> None:
    def begin() -> Started:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        return start(
            made_here().composition.config, kubeconfig,
            f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
            f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={tmp_path}",
        )  # fmt: skip

    told = 'configmaps "extension-apiserver-authentication" is forbidden'
    lacking = begin()
    until(lambda: told in lacking.said(), lacking.said)
    body = rendered("RoleBinding", f"{NAME}-authentication-reader")
    assert body["metadata"]["namespace"] == "kube-system"
    api.request("POST", f"{RBAC}/namespaces/kube-system/rolebindings", body)
    having = begin()
    until(having.waits_for_its_lease, having.said)
    assert told not in having.said()


def test_by_hand_replicas_without_an_election_fight_over_every_pod(
    api: ApiServer, start: Any
) -> None:
    alone = {**BY_HAND, "leaderElection": {"leaderElect": False}}
    target = Target(Gates(Version.parse(api.request("GET", "/version")["gitVersion"])))
    replicas = [Process(f"replica {number}", alone, target) for number in (1, 2)]
    assert [each.reason for _, each in hazards_between(replicas)] == [SAME_SCHEDULER_NAME]
    both = [start(alone, api.kubeconfig) for _ in replicas]
    time.sleep(PATIENCE / 2)  # both must have begun to watch
    pods = [ask(api, f"pod-{number}") for number in range(60)]
    until(lambda: all(bound(pod) for pod in pods), both[0].said)
    until(
        lambda: any("already assigned to node" in each.said() for each in both),
        lambda: "\n".join(each.said()[-2000:] for each in both),
    )
    assert made_here().composition.config["leaderElection"]["leaderElect"] is True
