"""The cluster, and what each command reports about it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from cluster import nodes
from cluster.api import ApiError
from cluster.console import SandboxError, run
from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE, SCHEDULER, until
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base import names
from kube_scheduler_operator.operator.telemetry.cluster_metrics import PREFIX

from ...expect import condition_of
from ..conftest import (
    CONFIG_MAPS,
    LOAD_POLICIES,
    PODS,
    PODS_IN_DEFAULT,
    REPOSITORY,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Cluster,
)
from ..faults import pids_of
from ..remains import SCRAPE, metrics_reader
from ..workloads import apply, node_of, own_pods, pod, wait_for

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

    def renew_guard(self) -> None:
        """Make the node's guard new: after an edit the kubelet waits minutes before it looks."""
        path = f"{PODS}/kube-scheduler-{names.GUARD}-{self.node.name}"
        before = self.api.request("GET", path)["metadata"]["uid"]
        self.api.request("DELETE", path)

        def is_new() -> bool:
            guard = self.api.request("GET", path)
            return guard["metadata"]["uid"] != before and condition_of(guard, "Ready")[0] == "True"

        until(is_new, LATE, "the guard does not run")

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

    def packed_pids(self) -> list[int]:
        return pids_of(self, f"{names.SECONDARY_LABEL}={PACKED}", "kube-scheduler")

    def scheduler_pids(self) -> list[int]:
        pid, _ = self.scheduler()
        return [pid] if pid else []

    def secondary(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.request("GET", OURS)
        return found

    def packed_images(self) -> set[str]:
        """The images of the secondary scheduler's Pods that are Ready."""
        return {
            container["image"]
            for found in own_pods(self, f"{names.SECONDARY_LABEL}={PACKED}")
            if condition_of(found, "Ready")[0] == "True"
            and "deletionTimestamp" not in found["metadata"]
            for container in found["spec"]["containers"]
            if container["name"] == names.OPERAND
        }

    # --- what is reported -----------------------------------------------------------------------

    def plugin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`kubectl scheduler ARGUMENTS`, in this process: loading it takes most of its time."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            # validate reads no cluster
            cluster = ["--kubeconfig", str(self.sandbox.kubeconfig)]
            code = kubectl_plugin([*arguments, *(cluster if arguments[0] != "validate" else ())])
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def document(self, *arguments: str) -> tuple[int, Any]:
        done = self.plugin(*arguments, "-o", "json")
        assert done.stdout, f"{arguments}: {done.stderr}"
        return done.returncode, json.loads(done.stdout)

    def watch(self, *arguments: str, seconds: float) -> tuple[int, str]:
        done = self.plugin("rollout", "watch", "--timeout", str(seconds), *arguments)
        return done.returncode, done.stdout + done.stderr

    def make_revision_old(self) -> None:
        """A scheduler that crashes long after its rollout is not attributed to its revision."""
        past = datetime.now(UTC) - timedelta(hours=1)
        annotations = {names.OUTCOME_TIME_ANNOTATION: past.strftime("%Y-%m-%dT%H:%M:%SZ")}
        body = {"metadata": {"annotations": annotations}}
        self.api.request("PATCH", f"{CONFIG_MAPS}/revision-status-{self.current}", body)

    def metrics(self) -> dict[tuple[str, str], float]:
        """(name, what it is about) -> value, of what the operator exports."""
        (pod,) = own_pods(self, f"app.kubernetes.io/name={names.PROGRAM}")
        url = f"https://{pod['status']['podIP']}:8443/metrics"
        node = self.sandbox.node(pod["spec"]["nodeName"])
        command = nodes.enter(self.sandbox, node, [sys.executable, "-c", SCRAPE, url])
        text = run(*command, stdin=self.token)
        return {
            (sample.name.removeprefix(PREFIX), subject): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            for label, subject in sample.labels.items()
            if label in ("type", "scheduler", "node")
        }

    @cached_property
    def token(self) -> str:
        return metrics_reader(self.api)

    def settings(self) -> list[dict[str, Any]]:
        """The objects from which the operator makes the control plane's configuration."""
        return [self.api.request("GET", path) for path in (SCHEDULER, KUBESCHEDULER)]

    def objects(self) -> list[dict[str, Any]]:
        """All objects that `validate` checks."""
        kinds = (SECONDARY_SCHEDULERS, SCHEDULER_PROFILES, SCHEDULER_EXTENDERS, LOAD_POLICIES)
        listed = [self.api.request("GET", path) for path in kinds]
        heads = (
            {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
            for found in listed
        )
        items = (
            {**head, **item}
            for head, found in zip(heads, listed, strict=True)
            for item in found["items"]
        )
        return [*self.settings(), *items]

    def with_file(self, command: str, *objects: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """A command with a file that has these objects."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all(objects, file)
            file.flush()
            return self.plugin(*command.split(), "-f", file.name)

    def scheduler_pod(self) -> dict[str, Any]:
        """The mirror Pod of the control plane's scheduler; empty if it does not exist."""
        path = f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{self.node.name}"
        try:
            return dict(self.api.request("GET", path))
        except ApiError:
            return {}

    def scheduler_is_ready(self) -> bool:
        return condition_of(self.scheduler_pod(), "Ready")[0] == "True"
