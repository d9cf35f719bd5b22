"""A control plane of one node with the operator; the kubelet and the installer are played."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import lifecycle, teardown
from cluster.api import Api
from cluster.console import run
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, SCHEDULER, until

from ..expect import condition_of
from .harness import NAMESPACE, Operator, PlayedNode, Proxy

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class World:
    """The cluster of these tests."""

    def __init__(
        self, sandbox: Sandbox, proxy: Proxy, operator: Operator, node: PlayedNode
    ) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.proxy = proxy
        self.operator = operator
        self.node = node

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.api.request("GET", KUBESCHEDULER).get("status", {}))

    def condition(self, kind: str) -> tuple[str, str]:
        status, _, message = condition_of({"status": self.status}, kind)
        return status, message

    @property
    def latest(self) -> int:
        return int(self.status.get("latestAvailableRevision", 0))

    @property
    def current(self) -> int:
        return int((self.status.get("nodeStatuses") or [{}])[0].get("currentRevision", 0))

    def patch(self, path: str, spec: dict[str, Any]) -> None:
        self.api.request("PATCH", path, {"spec": spec})

    def config_maps(self) -> dict[str, dict[str, Any]]:
        items = self.api.request("GET", CONFIG_MAPS)["items"]
        return {item["metadata"]["name"]: item for item in items}

    @property
    def wanted(self) -> int:
        """The latest revision that was not taken back before the node ran it."""
        maps, number = self.config_maps(), self.latest
        while number > 1 and _outcome(maps.get(f"revision-status-{number}", {})) == "withdrawn":
            number -= 1
        return number

    def profile(self) -> str:
        """Which profile the wanted revision has, by what is special about each."""
        copy = self.config_maps().get(f"config-{self.wanted}")
        if copy is None:
            return "none"
        config = json.loads(copy["data"]["config.yaml"])
        first, *_ = config.get("profiles") or [{}]
        if "plugins" not in first:
            return "LowNodeUtilization"
        return "NoScoring" if "preScore" in first["plugins"] else "HighNodeUtilization"

    def calm(self) -> bool:
        status = self.status
        return (
            self.latest > 0
            and self.current == self.wanted
            and self.condition("NodeInstallerProgressing")[0] == "False"
            and "deletionTimestamp" not in json.dumps(status)
        )

    def rest(self) -> None:
        self.patch(SCHEDULER, {"profile": "LowNodeUtilization", "policy": None})
        self.patch(KUBESCHEDULER, {"unsupportedConfigOverrides": None, "logLevel": "Normal"})
        until(
            lambda: self.profile() == "LowNodeUtilization" and self.calm() and not self.complains(),
            60,
            self.why,
        )

    def complains(self) -> str:
        """The operator's findings about the user's configuration."""
        kinds = ("UnsupportedConfigOverridesDegraded", "TargetConfigControllerDegraded")
        found = [self.condition(kind) for kind in kinds]
        return " ".join(message for status, message in found if status == "True")

    def why(self) -> str:
        return f"no rest; the operator's log ends: {self.operator.text()[-3000:]}"


def _outcome(revision_status: dict[str, Any]) -> str:
    annotations = revision_status.get("metadata", {}).get("annotations") or {}
    return str(annotations.get("kube-scheduler-operator.dev/outcome", ""))


@contextmanager
def operator_world(name: str, folder: Path, *arguments: str) -> Iterator[World]:
    """Adopt the stock scheduler of a new sandbox; the operator's files are in `folder`."""
    teardown.down(name)
    sandbox = lifecycle.up(name, 0, 0, with_operator=False)
    proxy = None
    operator = None
    node = None
    try:
        kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
        for manifest in ("kubeadm/namespace.yaml", "base/cluster/cluster.yaml"):
            path = REPOSITORY / "deploy" / manifest
            run(*kubectl, "apply", "--server-side", "-f", path)
        node = PlayedNode(sandbox)
        node.start()
        proxy = Proxy(sandbox)
        operator = Operator(proxy, folder)
        operator.start(*arguments)
        found = World(sandbox, proxy, operator, node)
        until(found.calm, 60, "the stock scheduler was not adopted")
        yield found
    finally:
        if operator is not None:
            operator.kill()
        if node is not None:
            node.stop()
        if proxy is not None:
            proxy.close()
        teardown.down(name)
