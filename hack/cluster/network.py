"""The wires between the nodes and the host: a bridge, a network namespace per node, three rules.

Everything carries the sandbox's name (a link's alias, a rule's comment, the namespace's name), so
that it can be found and removed without any record. Pods reach the API server at the in-cluster
address without kube-proxy: a rule on the bridge redirects that address to the host's own port, and
the host and the nodes have routes to every node's pods, so nothing needs to be masqueraded and the
host does not forward packets.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.console import CommandError, run, succeeds
from cluster.model import API_SERVICE_ADDRESS

if TYPE_CHECKING:
    from cluster.model import Node, Sandbox

_NAMESPACES = Path("/run/netns")
_TABLES = ("filter", "nat")


def tag(sandbox: str) -> str:
    """The alias of a sandbox's links and the comment of its rules."""
    return f"kso-sandbox:{sandbox}"


def create_bridge(sandbox: Sandbox) -> None:
    """Make the nodes' network and its rules, unless they are there."""
    bridge = sandbox.bridge
    if not succeeds("ip", "link", "show", "dev", bridge):
        run("ip", "link", "add", bridge, "type", "bridge")
    run("ip", "link", "set", "dev", bridge, "alias", tag(sandbox.name), "up")
    run("ip", "address", "replace", f"{sandbox.gateway}/24", "dev", bridge)
    for table, rule in rules(sandbox):
        if not succeeds("iptables", "--wait", "-t", table, "-C", *rule):
            run("iptables", "--wait", "-t", table, "-I", *rule)


def rules(sandbox: Sandbox) -> list[tuple[str, list[str]]]:
    """The rules of the host: the in-cluster address, and no firewall between our own ends."""
    comment = ["-m", "comment", "--comment", tag(sandbox.name)]
    bridge = sandbox.bridge
    service = ["-d", f"{API_SERVICE_ADDRESS}/32", "-p", "tcp", "-m", "tcp", "--dport", "443"]
    redirect = ["-j", "REDIRECT", "--to-ports", str(sandbox.api_port)]
    return [
        ("nat", ["PREROUTING", "-i", bridge, *service, *comment, *redirect]),
        ("filter", ["INPUT", "-i", bridge, *comment, "-j", "ACCEPT"]),
        ("filter", ["FORWARD", "-i", bridge, "-o", bridge, *comment, "-j", "ACCEPT"]),
    ]


def create_node(sandbox: Sandbox, node: Node) -> None:
    """Make a node's network namespace, cable and routes, unless they are there."""
    name, address = node.namespace, sandbox.address(node)
    if not (_NAMESPACES / name).exists():
        run("ip", "netns", "add", name)
    veth = sandbox.veth(node)
    if not succeeds("ip", "-n", name, "link", "show", "dev", "eth0"):
        run("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", name)
    on_bridge = ("master", sandbox.bridge, "up")
    run("ip", "link", "set", "dev", veth, "alias", tag(sandbox.name), *on_bridge)
    run("ip", "-n", name, "address", "replace", f"{address}/24", "dev", "eth0")
    routes = [f"route replace default via {sandbox.gateway}"]
    routes += [
        f"route replace {sandbox.pod_network(other)} via {sandbox.address(other)}"
        for other in sandbox.nodes
        if other != node
    ]
    lines = ["link set dev lo up", "link set dev eth0 up", *routes]
    run("ip", "-n", name, "-batch", "-", stdin="\n".join(lines))
    enter = ("nsenter", f"--net={_NAMESPACES / name}")
    run(*enter, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    run("ip", "route", "replace", str(sandbox.pod_network(node)), "via", str(address))


def namespace_path(node: Node) -> Path:
    """The file that stands for a node's network namespace."""
    return _NAMESPACES / node.namespace


def namespaces(sandbox: str) -> list[str]:
    """The network namespaces that bear a sandbox's name."""
    pattern = re.compile(rf"kso-{re.escape(sandbox)}-((control-plane|worker)\d*|bootstrap)")
    with contextlib.suppress(OSError):
        return sorted(path.name for path in _NAMESPACES.iterdir() if pattern.fullmatch(path.name))
    return []


def links(sandbox: str) -> list[str]:
    """The host's network links that carry a sandbox's alias."""
    return [one["ifname"] for one in _ip("link") if one.get("ifalias") == tag(sandbox)]


def tagged_rules(sandbox: str) -> list[tuple[str, str]]:
    """The firewall rules with a sandbox's comment: table and rule, as iptables-save prints them."""
    found = []
    for table in _TABLES:
        with contextlib.suppress(CommandError):
            saved = run("iptables-save", "-t", table).splitlines()
            found += [(table, line) for line in saved if is_tagged(line, sandbox)]
    return found


def is_tagged(rule: str, sandbox: str) -> bool:
    """Whether a line of iptables-save is a rule with exactly this sandbox's comment."""
    comment = re.search(r'--comment "?([^" ]+)"?', rule)
    return rule.startswith("-A ") and comment is not None and comment[1] == tag(sandbox)


def tagged_sandboxes() -> set[str]:
    """The sandboxes that have links."""
    prefix = tag("")
    aliases = (str(one.get("ifalias", "")) for one in _ip("link"))
    return {alias.removeprefix(prefix) for alias in aliases if alias.startswith(prefix)}


def remove(sandbox: str) -> None:
    """Remove all that carries a sandbox's name; the routes go with the links."""
    for table, rule in tagged_rules(sandbox):
        words = rule.replace('"', "").split()
        run("iptables", "--wait", "-t", table, "-D", *words[1:])
    for link in links(sandbox):
        run("ip", "link", "delete", "dev", link)
    for namespace in namespaces(sandbox):
        run("ip", "netns", "delete", namespace)


def taken_networks() -> list[IPv4Network]:
    """The networks that this machine has routes to."""
    found = []
    for route in _ip("-4", "route", "show", "table", "all"):
        with contextlib.suppress(ValueError):
            found.append(IPv4Network(route.get("dst", ""), strict=False))
    return found


def port_is_free(port: int) -> bool:
    """Whether a TCP port of this machine is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _ip(*words: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(run("ip", "-json", *words) or "[]")
    except CommandError:  # without root and iproute2 no sandbox has created anything
        return []
    return found
