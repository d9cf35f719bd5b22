"""A cluster on which things happen for a page: what is typed, what is waited for."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.api import Api, Object
from cluster.console import run, succeeds
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, cluster_operator, until
from pages.terminal import Terminal
from pages.text import Keep, Shown

PREFIX = "kubectl scheduler"
VIEWER = "viewer.kubeconfig"
SCREEN = Keep(60)

_WATCH = "rollout watch --timeout 300"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_REST_TIMEOUT = 240.0


class Stage:
    """A sandbox, and a terminal on it.

    Attributes:
        sandbox: the cluster.
        api: as its administrator.
        terminal: what it shows gets onto the page.
    """

    def __init__(self, sandbox: Sandbox, terminal: Terminal) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.terminal = terminal

    # --- doing --------------------------------------------------------------------------------
    def run(self, words: str, keep: Keep = SCREEN, *, code: int = 0, timeout: float = 300) -> Shown:
        """`kubectl scheduler WORDS`."""
        return self.terminal.run(f"{PREFIX} {words}", keep, code=code, timeout=timeout)

    def run_until_interrupted(self, words: str, last: str) -> Shown:
        """`kubectl scheduler WORDS`, which ends with Ctrl-C, until a line contains `last`."""
        return self.terminal.run_until_interrupted(f"{PREFIX} {words}", last)

    def watch(self, code: int = 0) -> Shown:
        """Follow the rollout to its end."""
        return self.run(_WATCH, code=code, timeout=330)

    def patch(self, kind: str, spec: dict[str, Any]) -> Shown:
        """Edit the one Scheduler or KubeScheduler."""
        text = shlex.quote(json.dumps({"spec": spec}, separators=(",", ":")))
        return self.terminal.run(f"kubectl patch {kind} cluster --type merge -p {text}")

    # --- looking ------------------------------------------------------------------------------
    def rest(self) -> None:
        """Wait until every node runs what is wanted and nothing is wrong."""
        until(self._rests, _REST_TIMEOUT, lambda: f"not settled: {self.status()}")

    def _rests(self) -> bool:
        conditions = cluster_operator(self.api)
        states = [conditions.get(kind, ("", ""))[0] for kind in ("Available", "Degraded")]
        return at_rest(self.status()) and states == ["True", "False"]

    def status(self) -> Object:
        """Of the KubeScheduler."""
        found: Object = self.api.request("GET", KUBESCHEDULER).get("status", {})
        return found

    def latest(self) -> int:
        """The newest revision."""
        return int(self.status().get("latestAvailableRevision", 0))

    def trouble(self, kind: str) -> str:
        """The message of a condition of the KubeScheduler that is True; otherwise empty."""
        for condition in self.status().get("conditions", []):
            if condition["type"] == kind and condition["status"] == "True":
                return str(condition.get("message", ""))
        return ""

    def leader(self) -> str:
        """The node whose scheduler holds the Lease."""
        holder = str(self.api.request("GET", _LEASE)["spec"].get("holderIdentity", ""))
        return holder.rpartition("_")[0]

    # --- another user -------------------------------------------------------------------------
    def make_viewer(self) -> None:
        """A ServiceAccount with ClusterRole `view`, and a kubeconfig with its token."""
        kubectl = (self.sandbox.state / "bin/kubectl", f"--kubeconfig={self.sandbox.kubeconfig}")
        run(*kubectl, "create", "serviceaccount", "viewer")
        bound = ("--clusterrole=view", "--serviceaccount=default:viewer")
        run(*kubectl, "create", "clusterrolebinding", "viewer", *bound)
        token = run(*kubectl, "create", "token", "viewer", "--duration=1h").strip()
        authority = (self.sandbox.state / "pki" / "ca.crt").read_bytes()
        file = self.terminal.folder / VIEWER
        file.touch(0o600)
        file.write_text(json.dumps(kubeconfig(self.sandbox.server, authority, token)))
        self.wait_for_viewer("get", "pods", "--all-namespaces")

    def wait_for_viewer(self, *words: str) -> None:
        """Wait until the viewer may do something."""
        file = Path(self.terminal.folder, VIEWER)
        kubectl = str(self.sandbox.state / "bin/kubectl")
        command = (kubectl, f"--kubeconfig={file}", *words)
        until(lambda: succeeds(*command), 30, f"the viewer may not {' '.join(words)}")


def at_rest(status: Object) -> bool:
    """Whether a KubeScheduler reports no rollout and no problem."""
    states = {c["type"]: c["status"] for c in status.get("conditions", [])}
    entries: Sequence[Object] = status.get("nodeStatuses") or []
    bad = [kind for kind, state in states.items() if kind.endswith("Degraded") and state == "True"]
    return (
        bool(entries)
        and all(e.get("currentRevision") and not e.get("targetRevision") for e in entries)
        and states.get("NodeInstallerProgressing") == "False"
        and states.get("StaticPodsAvailable") == "True"
        and not bad
    )


def kubeconfig(server: str, authority: bytes, token: str) -> dict[str, Any]:
    """Access with a token.

    Args:
        server: URL.
        authority: PEM of who signed the server's certificate.
        token: of a ServiceAccount.
    """
    name = "viewer"
    data = base64.b64encode(authority).decode()
    cluster = {"server": server, "certificate-authority-data": data}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
