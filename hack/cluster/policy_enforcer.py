"""Enforcing the NetworkPolicies of a sandbox in its nodes' network namespaces.

Network plugins do this in a cluster. Those that decide about packets in a process of their own need
the kernel's `queue` expression of nftables, which not every machine has; rules of iptables work
wherever the sandbox does. They follow a change within a second or two.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from cluster import network, paths, processes
from cluster.api import METADATA, Api, ApiError
from cluster.console import SandboxError, run, say, succeeds
from cluster.network_policies import CHAIN, read_world, ruleset

if TYPE_CHECKING:
    from cluster.model import Node, Sandbox

DAEMON = "network-policies"
_LISTS = (
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/apis/networking.k8s.io/v1/networkpolicies",
)
_WATCH_SECONDS = 50
_BATCH = 0.1
"""Seconds in which events are collected before the next round."""


def start(sandbox: Sandbox) -> None:
    """Start the daemon, or restart it: a running one may have the code of before."""
    processes.terminate(sandbox, DAEMON)
    program = (sys.executable, paths.REPOSITORY / "hack/sandbox", DAEMON, "--name", sandbox.name)
    processes.spawn(sandbox, DAEMON, program)


class PolicyEnforcer:
    """Keeps the rules of one sandbox's nodes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._api = Api(sandbox)
        self._changed = threading.Event()
        self._applied: dict[str, tuple[int, str]] = {}

    def run(self) -> None:
        """Enforce until the process is ended."""
        for path in _LISTS:
            threading.Thread(target=self._follow, args=(path,), daemon=True).start()
        while True:
            self._changed.wait()
            time.sleep(_BATCH)
            self._changed.clear()
            try:
                self.enforce()
            except SandboxError as error:
                say(f"cannot enforce policies: {error}")
                time.sleep(1)
                self._changed.set()

    def _follow(self, path: str) -> None:
        """Note every change of a kind; what the objects are is read by the next round."""
        while True:
            try:
                watched = f"{path}?watch=true&timeoutSeconds={_WATCH_SECONDS}"
                for _ in self._api.watch(watched, METADATA):
                    self._changed.set()
            except ApiError:
                time.sleep(1)
            self._changed.set()

    def enforce(self) -> None:
        """One round.

        Raises:
            SandboxError: the API server does not answer, or iptables refuses the rules.
        """
        world = read_world(*(self._api.request("GET", path)["items"] for path in _LISTS))
        for node in (*self._sandbox.nodes, self._sandbox.bootstrap):
            self._apply(node, ruleset(world, node.name))

    def _apply(self, node: Node, rules: str) -> None:
        place = network.namespace_path(node)
        try:
            state = (place.stat().st_ino, rules)
        except FileNotFoundError:
            return
        if self._applied.get(node.name) == state:
            return
        inside = ("nsenter", f"--net={place}")
        run(*inside, "iptables-restore", "--noflush", "--wait", stdin=rules)
        hook = ("FORWARD", "-j", CHAIN)
        if not succeeds(*inside, "iptables", "--wait", "-C", *hook):
            run(*inside, "iptables", "--wait", "-I", *hook)
        self._applied[node.name] = state
