"""NetworkPolicies of a sandbox: which connections the rules of a node let pass."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import agnhost, network, policy_enforcer
from cluster.console import CommandError
from cluster.model import Sandbox, make_nodes
from cluster.network_policies import PolicyWorld, networks, read_world, ruleset, selects

from ..unit.deploy.overlays import DEPLOY, build

HERE, THERE = "dev-control-plane", "dev-worker"
OPERATOR = "openshift-kube-scheduler-operator"


def pod(address: str, namespace: str = "a", node: str = HERE, **more: Any) -> dict[str, Any]:
    ports = more.get("ports", [])
    spec = {
        "nodeName": node, "hostNetwork": more.get("host", False), "containers": [{"ports": ports}],
    }  # fmt: skip
    return {
        "metadata": {"name": f"p{address}", "namespace": namespace, "labels": more.get("labels")},
        "spec": spec,
        "status": {"podIP": address, "phase": more.get("phase", "Running")},
    }


def policy(namespace: str = "a", name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def world(pods: list[dict[str, Any]], *policies: dict[str, Any]) -> PolicyWorld:
    names = sorted({one["metadata"]["namespace"] for one in (*pods, *policies)})
    key = "kubernetes.io/metadata.name"
    namespaces = [{"metadata": {"name": name, "labels": {key: name}}} for name in names]
    return read_world(pods, namespaces, policies)


def passes(
    found: PolicyWorld, source: str, target: str, port: int = 80, protocol: str = "tcp"
) -> bool:
    """Whether every node on the way forwards a new connection; a model of the rules' semantics."""
    return all(
        _forwards(ruleset(found, node), source, target, port, protocol) for node in (HERE, THERE)
    )


def _forwards(rules: str, source: str, target: str, port: int, protocol: str) -> bool:
    for chain in ("KSO-EGRESS", "KSO-INGRESS"):
        for line in rules.splitlines():
            words = line.split()
            if words[:2] != ["-A", chain] or not _matches(
                words[2:], source, target, port, protocol
            ):
                continue
            if words[-1] == "DROP":
                return False
            assert words[-1] == "RETURN"
            break
    return True


def _matches(words: list[str], source: str, target: str, port: int, protocol: str) -> bool:
    for flag, value in zip(words[::2], words[1::2], strict=True):
        match flag:
            case "-s" | "-d":
                end = source if flag == "-s" else target
                if ip_address(end) not in ip_network(value):
                    return False
            case "-p":
                if value != protocol:
                    return False
            case "--dport":
                first, _, last = value.partition(":")
                if not int(first) <= port <= int(last or first):
                    return False
            case _:
                assert flag in ("-m", "--comment", "-j")
    return True


A, B, C = "10.0.1.1", "10.0.1.2", "10.0.2.3"
THREE = [
    pod(A, labels={"app": "server"}, ports=[{"name": "web", "containerPort": 80}]),
    pod(B, labels={"app": "client"}),
    pod(C, "b", THERE, labels={"app": "client"}),
]
SERVER = {"matchLabels": {"app": "server"}}
CLIENT = {"podSelector": {"matchLabels": {"app": "client"}}}
ALL = ["Ingress", "Egress"]


def test_without_policies_nothing_is_dropped() -> None:
    rules = ruleset(world(THREE), HERE)
    assert "DROP" not in rules
    assert rules.splitlines()[-1] == "COMMIT"


def test_a_default_deny_isolates_the_pods_of_its_namespace_both_ways() -> None:
    found = world(THREE, policy(podSelector={}, policyTypes=ALL))
    assert not passes(found, B, A)
    assert not passes(found, C, A)
    assert not passes(found, A, C)
    assert passes(found, C, "10.20.0.1")


@pytest.mark.parametrize(
    ("peers", "same_namespace", "other_namespace", "outside"),
    [
        (None, True, True, True),
        ([], True, True, True),
        ([CLIENT], True, False, False),
        ([{"namespaceSelector": {}}], True, True, False),
        ([{"namespaceSelector": {}, **CLIENT}], True, True, False),
        ([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}],
         False, True, False),
        ([{"podSelector": {}}], True, False, False),
        ([{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.2.0/24"]}}], True, False, False),
        ([{"ipBlock": {"cidr": "192.168.0.0/16"}}, CLIENT], True, False, True),
        ([{"ipBlock": {"cidr": "fd00::/8"}}], False, False, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("direction", ["Ingress", "Egress"])
def test_which_peers_a_rule_allows(
    direction: str, peers: Any, same_namespace: bool, other_namespace: bool, outside: bool
) -> None:
    rule = {} if peers is None else {"from" if direction == "Ingress" else "to": peers}
    spec: dict[str, Any] = {direction.lower(): [rule], "policyTypes": [direction]}
    found = world(THREE, policy(podSelector=SERVER, **spec))

    def allowed(peer: str) -> bool:
        return passes(found, *((peer, A) if direction == "Ingress" else (A, peer)))

    assert (allowed(B), allowed(C), allowed("192.168.0.9")) == (
        same_namespace, other_namespace, outside,
    )  # fmt: skip
    opposite = (A, B) if direction == "Ingress" else (B, A)
    assert passes(found, *opposite), "the other direction is not isolated"


@pytest.mark.parametrize(
    ("port", "allowed"),
    [
        ({"port": 80}, {("tcp", 80)}),
        ({"port": 80, "protocol": "UDP"}, {("udp", 80)}),
        ({"port": 80, "endPort": 81}, {("tcp", 80), ("tcp", 81)}),
        ({"protocol": "UDP"}, {("udp", 79), ("udp", 80), ("udp", 81)}),
        ({"port": "web"}, {("tcp", 80)}),
        ({"port": "web", "protocol": "UDP"}, set()),
        ({"port": "unknown"}, set()),
    ],
)
@pytest.mark.parametrize("peers", [[], [{"podSelector": {}}]])
def test_which_ports_a_rule_allows(
    port: dict[str, Any], allowed: set[tuple[str, int]], peers: list[Any]
) -> None:
    tried = [(protocol, number) for protocol in ("tcp", "udp") for number in (79, 80, 81)]
    to_server = world(
        THREE,
        policy(podSelector=SERVER, ingress=[{"ports": [port], "from": peers}]),
    )
    from_client = world(
        THREE,
        policy(
            podSelector=CLIENT["podSelector"],
            egress=[{"ports": [port], "to": peers}],
            policyTypes=["Egress"],
        ),
    )
    for found in (to_server, from_client):
        assert {(kind, n) for kind, n in tried if passes(found, B, A, n, kind)} == allowed


def test_both_ends_must_allow_a_connection() -> None:
    deny = policy(name="deny", podSelector={}, policyTypes=ALL)
    into = policy(name="in", podSelector=SERVER, ingress=[{"from": [CLIENT]}])
    out = policy(
        name="out",
        podSelector=CLIENT["podSelector"],
        egress=[{"to": [{"podSelector": SERVER}]}],
        policyTypes=["Egress"],
    )
    assert not passes(world(THREE, deny, into), B, A)
    assert not passes(world(THREE, deny, out), B, A)
    assert passes(world(THREE, deny, into, out), B, A)


def test_pods_without_an_address_of_their_own_are_not_selected() -> None:
    deny = policy(podSelector={}, policyTypes=ALL)
    without = [pod(A, host=True), pod(B, phase="Succeeded"), pod(C, phase="Failed"), pod("")]
    assert "DROP" not in ruleset(world(without, deny), HERE)


def test_policy_types_that_are_absent_follow_from_the_rules() -> None:
    ingress_only = world(THREE, policy(podSelector=SERVER))
    assert not passes(ingress_only, B, A)
    assert passes(ingress_only, A, B)
    both = world(THREE, policy(podSelector=SERVER, egress=[{"to": [CLIENT]}]))
    assert not passes(both, B, A)
    assert passes(both, A, B)
    assert not passes(both, A, C)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "1", "b": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["0", "1"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
         False),
    ],
)  # fmt: skip
def test_a_selector_selects_by_labels(selector: dict[str, Any], selected: bool) -> None:
    assert selects(selector, {"a": "1"}) is selected


def test_exceptions_are_taken_out_of_a_block() -> None:
    found = networks("10.0.0.0/30", ["10.0.0.1/32", "10.9.0.0/16"])
    assert [str(one) for one in found] == ["10.0.0.0/32", "10.0.0.2/31"]
    assert networks("10.0.0.0/30", ["10.0.0.0/8"]) == []


def shipped(*addresses: dict[str, Any]) -> PolicyWorld:
    policies = [one for one in build(DEPLOY / "openshift") if one["kind"] == "NetworkPolicy"]
    return world(list(addresses), *policies)


def test_the_shipped_policies_admit_scrapes_of_the_operator_and_nothing_else() -> None:
    found = shipped(pod(A, OPERATOR, labels={"app": OPERATOR}), pod(B, OPERATOR), pod(C, "b"))
    assert passes(found, C, A, 8443)
    assert not passes(found, C, A, 8080)
    assert passes(found, A, "10.96.0.1", 443), "the API server"
    assert not passes(found, C, B, 8443), "a pod that no policy allows"
    assert not passes(found, B, "10.96.0.1", 443)


def test_pods_of_secondary_schedulers_reach_no_credentials_of_machines() -> None:
    """They run containers of users, and need the API server, DNS and extenders anywhere."""
    labels = {"app": "secondary-scheduler"}
    found = shipped(pod(A, "openshift-kube-scheduler", labels=labels), pod(C, "b"))
    for target, port, protocol in (
        (C, 8888, "tcp"), ("10.96.0.1", 443, "tcp"), ("192.0.2.1", 16443, "tcp"),
        ("169.254.20.10", 53, "udp"),  # DNS of the node
    ):  # fmt: skip
        assert passes(found, A, target, port, protocol), target
    for target in ("169.254.169.254", "168.63.129.16", "100.100.100.200"):
        assert not passes(found, A, target, 80), target
    assert passes(found, C, A, 10259)
    assert not passes(found, C, A, 15401), "an agent beside it"


@pytest.mark.parametrize("app", ["installer", "pruner"])
def test_the_policies_of_the_target_namespace_let_installers_out_and_isolate_all_others(
    app: str,
) -> None:
    texts = (DEPLOY.parent / "bindata/static").glob("networkpolicy-*.yaml")
    policies = [yaml.safe_load(path.read_text()) for path in texts]
    for one in policies:
        one["metadata"]["namespace"] = "target"
    pods = [pod(A, "target", labels={"app": app}), pod(B, "target"), pod(C, "b")]
    found = world(pods, *policies)
    assert passes(found, A, C)
    assert passes(found, A, "10.96.0.1", 443)
    assert not passes(found, C, A)
    assert not passes(found, B, C)
    assert not passes(found, C, B)


def test_the_stand_in_for_dns_has_the_image_that_the_nodes_have() -> None:
    path = Path(agnhost.__file__).parent / "templates/openshift/network.yaml"
    (daemon_set,) = (
        one for one in yaml.safe_load_all(path.read_text()) if one["kind"] == "DaemonSet"
    )
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    assert container["image"] == agnhost.NAME


class FakeApi:
    def __init__(self, pods: list[dict[str, Any]]) -> None:
        self.pods = pods

    def request(self, _method: str, path: str) -> dict[str, Any]:
        lists = {
            "pods": self.pods,
            "namespaces": [{"metadata": {"name": "a"}}],
            "networkpolicies": [policy(podSelector={}, policyTypes=ALL)],
        }
        return {"items": lists[path.rpartition("/")[2]]}


def test_rules_are_applied_to_existing_nodes_when_they_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here, there = make_nodes("dev", 1, 1)
    (tmp_path / here.namespace).touch()
    ran: list[str] = []
    api = FakeApi([pod(A)])
    monkeypatch.setattr(policy_enforcer, "Api", lambda _: api)
    monkeypatch.setattr(network, "namespace_path", lambda node: tmp_path / node.namespace)
    monkeypatch.setattr(policy_enforcer, "succeeds", lambda *_: True)
    monkeypatch.setattr(policy_enforcer, "run", lambda *command, stdin=None: ran.append(command[1]))
    enforcer = policy_enforcer.PolicyEnforcer(Sandbox("dev", 0, (here, there)))
    enforcer.enforce()
    enforcer.enforce()
    assert ran == [f"--net={tmp_path / here.namespace}"]
    api.pods.append(pod(B))
    enforcer.enforce()
    assert len(ran) == 2

    def refuses(*_command: object, stdin: str = "") -> None:
        raise CommandError("iptables-restore failed")

    monkeypatch.setattr(policy_enforcer, "run", refuses)
    api.pods.pop()
    with pytest.raises(CommandError):
        enforcer.enforce()
    monkeypatch.setattr(policy_enforcer, "run", lambda *command, stdin=None: ran.append(command[1]))
    enforcer.enforce()
    assert len(ran) == 3, "rules that were refused are tried again"
