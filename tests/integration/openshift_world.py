"""A control plane with OpenShift's objects and the operator on it, for the tests of a file."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cluster import lifecycle, model, openshift, teardown
from cluster.api import Api
from cluster.console import run
from cluster.observe import KUBESCHEDULER, until
from kube_scheduler_operator.base.platform import OPENSHIFT

from ..expect import condition_of
from ..unit.deploy.overlays import DEPLOY, build
from .conftest import REPOSITORY, TEST_SECONDS
from .harness import Operator, Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.model import Sandbox

TARGET = f"/api/v1/namespaces/{OPENSHIFT.target_namespace}"
CLUSTER = "/apis/config.openshift.io/v1"
FLAGS = (
    "--platform=openshift",
    "--operand-image=quay.example/openshift/hyperkube@sha256:0123",
    f"--release-version={openshift.VERSION}",
)


@dataclass
class World:
    """The cluster."""

    sandbox: Sandbox  # its control plane; it has no nodes
    api: Api  # its API, as administrator
    operator: Operator  # the operator's process

    @property
    def latest(self) -> int:
        """The newest revision that is complete."""
        status = self.api.request("GET", KUBESCHEDULER).get("status", {})
        return int(status.get("latestAvailableRevision", 0))

    def data(self, name: str) -> dict[str, str]:
        """The data of a ConfigMap of the newest revision."""
        path = f"{TARGET}/configmaps/{name}-{self.latest}"
        return dict(self.api.request("GET", path)["data"])

    @property
    def arguments(self) -> list[str]:
        """The command line of the newest revision."""
        pod = json.loads(self.data("kube-scheduler-pod")["pod.yaml"])
        return list(pod["spec"]["containers"][0]["args"])

    @property
    def config(self) -> dict[str, Any]:
        """The KubeSchedulerConfiguration of the newest revision."""
        return dict(json.loads(self.data("config")["config.yaml"]))

    def condition(self, kind: str) -> str:
        """The message of a condition of the KubeScheduler; empty if it is False."""
        status, _, message = condition_of(self.api.request("GET", KUBESCHEDULER), kind)
        return message if status == "True" else ""

    def next_revision(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Make an edit and wait for the revision that it leads to."""
        before = self.latest
        self.api.request(method, path, body)
        until(lambda: self.latest > before, 60, f"no revision after {method} {path}")

    def oc(self, *words: str, **environment: str) -> str:
        """Run kubectl, which takes the same words as oc, and return its output."""
        done = subprocess.run(
            [self.sandbox.state / "bin/kubectl", f"--kubeconfig={self.sandbox.kubeconfig}", *words],
            capture_output=True,
            text=True,
            timeout=TEST_SECONDS,
            check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def control_plane(name: str) -> Iterator[Sandbox]:
    """A control plane with OpenShift's kinds and the objects that no operator creates."""
    teardown.down(name)
    sandbox = lifecycle.up(
        name, 0, 0, with_operator=False, kind=lifecycle.ClusterKind(model.OPENSHIFT)
    )
    try:
        kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy/openshift/crds")
        run(*kubectl, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        for namespace in (OPENSHIFT.target_namespace, OPENSHIFT.operator_namespace):
            run(*kubectl, "create", "namespace", namespace)
        api = Api(sandbox)
        for one in build(DEPLOY / "openshift"):
            if one["kind"] in ("Scheduler", "KubeScheduler"):
                api.create(f"/apis/{one['apiVersion']}/{one['kind'].lower()}s", one)
        yield sandbox
    finally:
        teardown.down(name)


@contextmanager
def opened(name: str, folder: Path) -> Iterator[World]:
    """A World whose sandbox is called `name`; `folder` is for the operator's log."""
    with control_plane(name) as sandbox, ExitStack() as undone:
        proxy = Proxy(sandbox)
        undone.callback(proxy.close)
        operator = Operator(proxy, folder)
        undone.callback(operator.kill)
        operator.start(*FLAGS)
        found = World(sandbox, Api(sandbox), operator)
        until(lambda: found.latest == 1, 60, lambda: f"no revision: {operator.text()[-3000:]}")
        yield found
