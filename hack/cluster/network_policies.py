"""NetworkPolicies as rules of iptables, for the network namespace of one node; pure.

A packet between pods must be allowed by the source's node for egress and by the target's node for
ingress. Rules apply to what a node forwards, so traffic between a pod and its own node is always
allowed, as Kubernetes defines it. Pods on the host network have no address of their own: policies
do not apply to them, and selectors do not select them. Everything is IPv4, as the sandbox is.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cluster.api import Object

CHAIN = "KSO-POLICIES"
"""The chain that FORWARD jumps to."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Ingress or egress: names of the API, and how iptables matches the two ends."""

    kind: str
    rules: str
    peers: str
    own: str
    other: str

    @property
    def chain(self) -> str:
        """The chain with the rules of all pods of a node."""
        return f"KSO-{self.kind.upper()}"


EGRESS = Direction("Egress", "egress", "to", own="-s", other="-d")
INGRESS = Direction("Ingress", "ingress", "from", own="-d", other="-s")


@dataclass(frozen=True, slots=True)
class PolicyPod:
    """A pod with an address of its own. A port is a name, a protocol and a number."""

    namespace: str
    name: str
    node: str
    address: str
    labels: Mapping[str, str]
    ports: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyWorld:
    """What rules follow from: pods, policies, and the labels of namespaces."""

    pods: Sequence[PolicyPod]
    namespaces: Mapping[str, Mapping[str, str]]
    policies: Sequence[Object]


def read_world(
    pods: Iterable[Object], namespaces: Iterable[Object], policies: Iterable[Object]
) -> PolicyWorld:
    """Read the objects of the API; Pods that have ended have returned their address."""
    return PolicyWorld(
        [
            _read_pod(one)
            for one in pods
            if one.get("status", {}).get("podIP")
            and not one["spec"].get("hostNetwork")
            and one["status"].get("phase") not in ("Succeeded", "Failed")
        ],
        {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in namespaces},
        list(policies),
    )


def _read_pod(item: Object) -> PolicyPod:
    metadata, spec = item["metadata"], item["spec"]
    ports = [port for container in spec["containers"] for port in container.get("ports") or ()]
    return PolicyPod(
        metadata["namespace"],
        metadata["name"],
        spec.get("nodeName", ""),
        item["status"]["podIP"],
        metadata.get("labels") or {},
        tuple((p.get("name", ""), p.get("protocol", "TCP"), p["containerPort"]) for p in ports),
    )


def ruleset(world: PolicyWorld, node: str) -> str:
    """The input of `iptables-restore --noflush` for a node; it replaces the chains at once."""
    chains = (CHAIN, EGRESS.chain, INGRESS.chain)
    lines = ["*filter", *(f":{chain} - [0:0]" for chain in chains)]
    lines.append(f"-A {CHAIN} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN")
    lines += [f"-A {CHAIN} -j {direction.chain}" for direction in (EGRESS, INGRESS)]
    for pod in world.pods:
        if pod.node == node:
            for direction in (EGRESS, INGRESS):
                lines += _of_pod(world, pod, direction)
    return "\n".join([*lines, "COMMIT", ""])


def _of_pod(world: PolicyWorld, pod: PolicyPod, direction: Direction) -> list[str]:
    """What is allowed returns, then the rest is dropped; no rule if no policy isolates the pod."""
    policies = [one for one in world.policies if _isolates(one, pod, direction)]
    if not policies:
        return []
    start = f"-A {direction.chain} {direction.own} {pod.address}/32"
    allowed = [
        " ".join(filter(None, (start, match, _comment(policy), "-j RETURN")))
        for policy in policies
        for match in _allowed(world, policy, pod, direction)
    ]
    return [*dict.fromkeys(allowed), f"{start} -j DROP"]


def _isolates(policy: Object, pod: PolicyPod, direction: Direction) -> bool:
    spec = policy["spec"]
    kinds = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return (
        direction.kind in kinds
        and policy["metadata"]["namespace"] == pod.namespace
        and selects(spec.get("podSelector") or {}, pod.labels)
    )


def _comment(policy: Object) -> str:
    metadata = policy["metadata"]
    return f"-m comment --comment {metadata['namespace']}/{metadata['name']}"[:255]


def _allowed(
    world: PolicyWorld, policy: Object, pod: PolicyPod, direction: Direction
) -> Iterator[str]:
    """The matches of iptables that a policy allows to or from a pod; empty: everything."""
    for rule in policy["spec"].get(direction.rules) or ():
        ports = rule.get("ports") or []
        for address, peer in _ends(world, policy, rule.get(direction.peers), ports, direction):
            target = pod if direction is INGRESS else peer
            for port in _ports(ports, target):
                yield " ".join(filter(None, (address, port)))


def _ends(
    world: PolicyWorld,
    policy: Object,
    peers: Sequence[Object] | None,
    ports: Sequence[Object],
    direction: Direction,
) -> Iterator[tuple[str, PolicyPod | None]]:
    """The other ends that a rule allows: a match, and the pod if it is one."""
    if not peers:
        yield "", None
        if direction is EGRESS and any(isinstance(port.get("port"), str) for port in ports):
            # Which number a name stands for depends on the pod.
            yield from ((f"{direction.other} {pod.address}/32", pod) for pod in world.pods)
    for peer in peers or ():
        if block := peer.get("ipBlock"):
            for network in networks(block["cidr"], block.get("except") or ()):
                yield f"{direction.other} {network}", None
        else:
            for pod in world.pods:
                if _is_peer(world, policy, peer, pod):
                    yield f"{direction.other} {pod.address}/32", pod


def _is_peer(world: PolicyWorld, policy: Object, peer: Object, pod: PolicyPod) -> bool:
    if "namespaceSelector" in peer:
        labels = world.namespaces.get(pod.namespace, {})
        inside = selects(peer["namespaceSelector"], labels)
    else:
        inside = pod.namespace == policy["metadata"]["namespace"]
    return inside and selects(peer.get("podSelector") or {}, pod.labels)


def _ports(ports: Sequence[Object], target: PolicyPod | None) -> Iterator[str]:
    if not ports:
        yield ""
    for port in ports:
        protocol, wanted = port.get("protocol") or "TCP", port.get("port")
        match = f"-p {protocol.lower()}"
        if wanted is None:
            yield match
        elif isinstance(wanted, int):
            end = f":{port['endPort']}" if "endPort" in port else ""
            yield f"{match} -m {protocol.lower()} --dport {wanted}{end}"
        elif target is not None:
            for name, kind, number in target.ports:
                if (name, kind) == (wanted, protocol):
                    yield f"{match} -m {protocol.lower()} --dport {number}"


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector of the API selects an object with some labels."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def networks(cidr: str, exceptions: Iterable[str]) -> list[IPv4Network]:
    """A block of addresses without some others; empty if it is of IPv6."""
    block = ip_network(cidr, strict=False)
    found = [block] if isinstance(block, IPv4Network) else []
    for text in exceptions:
        hole = ip_network(text, strict=False)
        if isinstance(hole, IPv4Network):
            found = [part for one in found for part in _without(one, hole)]
    return sorted(found)


def _without(block: IPv4Network, hole: IPv4Network) -> Iterable[IPv4Network]:
    if block.subnet_of(hole):
        return ()
    return block.address_exclude(hole) if hole.subnet_of(block) else (block,)
