"""The cluster, and what each command reports about it."""

from __future__ import annotations

import io
import json
import subprocess
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from cluster.api import ApiError
from cluster.console import SandboxError
from cluster.observe import OPERATOR_NAMESPACE, until
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base import names

from ..conftest import PODS_IN_DEFAULT, REPOSITORY, SECONDARY_SCHEDULERS, Cluster
from ..faults import pids_of
from ..workloads import apply, node_of, pod, wait_for

PACKED, DEFAULT = "packed", "default-scheduler"
OURS = f"{SECONDARY_SCHEDULERS}/{PACKED}"
BATCH = {"app": "batch"}
WEBHOOK = REPOSITORY / "deploy/assignment/webhook"
LATE = 300.0
"""Seconds within which the commands must report a state, on a busy machine."""


def packed() -> dict[str, Any]:
    """The SecondaryScheduler that gets Pods by assignment."""
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SecondaryScheduler",
        "metadata": {"name": PACKED},
        "spec": {
            "namespace": OPERATOR_NAMESPACE,
            "replicas": 1,
            "profiles": [{"schedulerName": PACKED}],
            "assign": {"podSelector": {"matchLabels": BATCH}},
        },
    }


def eventually(expect: Callable[[], None], timeout: float = LATE) -> None:
    """Wait until an expectation is met; its error at the timeout."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            expect()
        # On a busy machine the API server is late, and leaders lose their Leases.
        except (AssertionError, SandboxError, ApiError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
        else:
            return


class World(Cluster):
    """The commands return their exit code and their document."""

    def set_up(self) -> None:
        self.rest_with_default_profile()
        self.install_webhook()
        apply(self, packed())
        well = {"Available": "True", "Degraded": "False", names.ASSIGNED: "True"}
        wait_for(self, OURS, timeout=LATE, **well)
        until(lambda: self.scheduler_of_new() == PACKED, LATE, "no Pod is assigned")

    def install_webhook(self) -> None:
        self.kubectl("apply", "--server-side", "-k", str(WEBHOOK))

    # --- what is true ---------------------------------------------------------------------------

    def scheduler_of_new(self) -> str:
        """The schedulerName of a new Pod that spec.assign selects."""
        body = pod("new")
        body["metadata"]["labels"] = BATCH
        made = self.api.request("POST", f"{PODS_IN_DEFAULT}?dryRun=All", body)
        return str(made["spec"]["schedulerName"])

    def is_bound(self, name: str) -> bool:
        return bool(node_of(self, name))

    def operator_pids(self) -> list[int]:
        return pids_of(self, f"app.kubernetes.io/name={names.PROGRAM}", "operator")

    def secondary(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.request("GET", OURS)
        return found

    # --- what is reported -----------------------------------------------------------------------

    def plugin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`kubectl scheduler ARGUMENTS`, in this process: loading it takes most of its time."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = kubectl_plugin([*arguments, "--kubeconfig", str(self.sandbox.kubeconfig)])
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def document(self, *arguments: str) -> tuple[int, Any]:
        done = self.plugin(*arguments, "-o", "json")
        assert done.stdout, f"{arguments}: {done.stderr}"
        return done.returncode, json.loads(done.stdout)

    def watch(self, *arguments: str, seconds: float) -> tuple[int, str]:
        done = self.plugin("rollout", "watch", "--timeout", str(seconds), *arguments)
        return done.returncode, done.stdout + done.stderr
