"""What a stranger that floods the webhook does to Pods that are created and to the operator.

The API server is real, and so is the operator, a process of this machine; the schedulers' Pods are
played. The stranger has an address of its own, the API server another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.extender_calls import percentile
from benchmarks.played import Schedulers
from benchmarks.review_flood import flooded
from benchmarks.table import REPOSITORY, Row
from cluster import lifecycle, teardown
from cluster.api import Api, ApiError
from cluster.console import run, say
from cluster.model import Sandbox
from cluster.observe import OPERATOR_NAMESPACE, until
from cluster.scheduling import free_port

NAME: Final = f"bench-w-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
STRANGER: Final = "127.0.0.2"
SCHEDULER: Final = "packed"
TEAM: Final = "team-batch"
PODS_A_SECOND: Final = 10.0
PRIORITY: Final = -10
"""Of the operator, so that what else runs on this machine delays it little."""

LOOK_SECONDS: Final = 0.02
MEMORY_TARGET: Final = 128.0
GAP_TARGET: Final = 0.2
LONGEST_TARGET: Final = 1.0

_GROUP: Final = "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers"
_WEBHOOK: Final = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"
    "assignment.kube-scheduler-operator.dev"
)
_CORE: Final = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}"
_SERVICE: Final = "kube-scheduler-operator-webhook"
_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases"


@dataclass
class Figures:
    """What one round measured."""

    created: list[float] = field(default_factory=list)  # seconds of each creation
    unassigned: int = 0  # Pods that kept the default scheduler
    # seconds of each round trip to the operator's /healthz
    gaps: list[float] = field(default_factory=list)
    operator: float = 0.0  # peak of its resident memory, MiB
    webhook: float = 0.0  # that of the webhook's process; 0 without one
    restarts: int = 0  # of the operator and of the webhook's process
    transitions: int = 0  # of the operator's Lease


class Bed:
    """The API server, the operator and a SecondaryScheduler that is assigned new Pods."""

    def __init__(self, sandbox: Sandbox, checkout: Path) -> None:
        self.sandbox, self.api = sandbox, Api(sandbox)
        self.port, self.health = free_port(), free_port()
        self._checkout = checkout
        self._log = sandbox.state / "logs/operator.log"
        self._schedulers = Schedulers(sandbox)
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = 0

    def open(self) -> None:
        """Make everything, and wait until Pods are assigned."""
        kubectl = (self.sandbox.state / "bin/kubectl", f"--kubeconfig={self.sandbox.kubeconfig}")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy/kubeadm")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy/assignment/webhook")
        self._reach_this_machine()
        namespace = {"metadata": {"name": TEAM, "labels": {"team": "batch"}}}
        self.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace"} | namespace)
        account = {
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
        }  # fmt: skip
        self.api.create(f"/api/v1/namespaces/{TEAM}/serviceaccounts", account)
        assign = {"namespaceSelector": {"matchLabels": {"team": "batch"}}}
        scheduler = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "SecondaryScheduler",
            "metadata": {"name": SCHEDULER},
            "spec": {"namespace": OPERATOR_NAMESPACE, "assign": assign},
        }  # fmt: skip
        self.api.create(_GROUP, scheduler)
        self._schedulers.start()
        self.start()
        self.until_assigned()

    def until_assigned(self) -> None:
        """Wait until Pods are assigned; an operator that has ended is started, as by a kubelet."""

        def assigned() -> bool:
            self.start()
            return self.create()[1] == SCHEDULER

        until(assigned, 300, "Pods stay unassigned")

    def _reach_this_machine(self) -> None:
        labels = self.api.request("GET", f"{_CORE}/services/{_SERVICE}")["metadata"]["labels"]
        self.api.request("DELETE", f"{_CORE}/services/{_SERVICE}")
        spec = {"type": "ExternalName", "externalName": "localhost"}
        body = {"metadata": {"name": _SERVICE, "labels": labels}, "spec": spec}
        self.api.request(
            "POST", f"{_CORE}/services", {"apiVersion": "v1", "kind": "Service"} | body
        )
        configuration = self.api.request("GET", _WEBHOOK)
        configuration["webhooks"][0]["clientConfig"]["service"]["port"] = self.port
        self.api.request("PUT", _WEBHOOK, configuration)

    def start(self) -> None:
        """Start the operator, if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        self.restarts += self._process is not None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-m", "kube_scheduler_operator", "operator",
                    f"--kubeconfig={self.sandbox.kubeconfig}", "--platform=kubeadm",
                    "--operand-image=registry.k8s.io/kube-scheduler:v1.35.4",
                    f"--listen=127.0.0.1:{self.health}", f"--webhook-listen=127.0.0.1:{self.port}",
                ],
                stdout=log, stderr=log,
                env={
                    **os.environ, "PYTHONPATH": str(self._checkout / "operator"),
                    "POD_UID": "bench", "POD_NAME": "operator",
                },
            )  # fmt: skip
        with contextlib.suppress(PermissionError):  # a container has its share of processors
            os.setpriority(os.PRIO_PROCESS, self._process.pid, PRIORITY)

    def close(self) -> None:
        """End the operator and the players; the sandbox stays."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._schedulers.stop()

    def create(self) -> tuple[float, str]:
        """Create a Pod as a dry run: (seconds, its scheduler)."""
        spec = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
        body: dict[str, Any] = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": spec,
        }  # fmt: skip
        began = time.monotonic()
        try:
            made = self.api.request("POST", f"/api/v1/namespaces/{TEAM}/pods?dryRun=All", body)
        except ApiError as error:
            return time.monotonic() - began, str(error)
        return time.monotonic() - began, str(made["spec"]["schedulerName"])

    def measure(self, seconds: float) -> Figures:
        """Create Pods for a while, and look at the operator."""
        figures = Figures()
        self._reset_peaks()
        before = self._counts()
        ended = threading.Event()
        looking = threading.Thread(target=self._look, args=(figures.gaps, ended))
        looking.start()
        began = time.monotonic()
        with ThreadPoolExecutor(32) as pool:
            asked = []
            for number in range(int(seconds * PODS_A_SECOND)):
                time.sleep(max(began + number / PODS_A_SECOND - time.monotonic(), 0.0))
                asked.append(pool.submit(self.create))
                self.start()  # as a kubelet does
                figures.webhook = max(figures.webhook, self._peak(self._webhook()))
        found = [one.result() for one in asked]
        ended.set()
        looking.join()
        figures.created = [took for took, _ in found]
        figures.unassigned = sum(scheduler != SCHEDULER for _, scheduler in found)
        figures.operator = self._peak(self._process.pid if self._process else 0)
        restarts, transitions = self._counts()
        figures.restarts, figures.transitions = restarts - before[0], transitions - before[1]
        return figures

    def _counts(self) -> tuple[int, int]:
        """(restarts, transitions of the Lease) since the start."""
        text = self._log.read_text(errors="replace")
        transitions = 0
        for lease in self.api.request("GET", _LEASES)["items"]:
            if lease["metadata"]["name"].startswith("kube-scheduler-operator"):
                transitions = int(lease["spec"].get("leaseTransitions") or 0)
        return self.restarts + len(re.findall("it starts again", text)), transitions

    def _look(self, gaps: list[float], ended: threading.Event) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = http.client.HTTPSConnection("127.0.0.1", self.health, timeout=30, context=context)
        while not ended.wait(LOOK_SECONDS):
            began = time.monotonic()
            try:
                client.request("GET", "/healthz")
                client.getresponse().read()
            except (OSError, http.client.HTTPException):
                client.close()
                time.sleep(0.1)
            gaps.append(time.monotonic() - began)

    def _webhook(self) -> int:
        """The webhook's process; 0 without one."""
        pid = self._process.pid if self._process else 0
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                if b"admission" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        return 0

    def _reset_peaks(self) -> None:
        for pid in (self._process.pid if self._process else 0, self._webhook()):
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")

    @staticmethod
    def _peak(pid: int) -> float:
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return 0.0
        return int((text.partition("VmHWM:")[2].split() or ["0"])[0]) / 1024


def measure(
    checkout: Path, connections: Sequence[int], repeat: int, seconds: float
) -> Iterator[Row]:
    """All figures: each number of connections and none, in turns."""
    teardown.down(NAME)
    sandbox = lifecycle.up(NAME, 0, 0, with_operator=False)
    bed = Bed(sandbox, checkout)
    try:
        bed.open()
        found: dict[int, list[Figures]] = {number: [] for number in (0, *connections)}
        for _ in range(repeat):
            for number, figures in found.items():
                flood = flooded(bed.port, STRANGER, "bodies", number)
                with flood if number else contextlib.nullcontext():
                    time.sleep(1.0)
                    figures.append(bed.measure(seconds))
                say(f"  {number} connections: {figures[-1].unassigned} unassigned")
                bed.until_assigned()
        quiet = found[0]
        for number, figures in found.items():
            yield from _rows(number, figures, quiet)
    finally:
        try:
            bed.close()
        finally:
            teardown.down(NAME)


def _rows(number: int, found: list[Figures], quiet: list[Figures]) -> Iterator[Row]:
    title = f"{number} connections: " if number else "quiet: "
    flood = bool(number)

    def gap(of: list[Figures], share: float) -> float:
        return max(percentile(sorted(one.gaps), share) for one in of)

    rest = min(one.operator + one.webhook for one in quiet)
    yield Row(
        title + "Pods unassigned", [float(one.unassigned) for one in found], "",
        max(float(one.unassigned) for one in quiet) if flood else None,
    )  # fmt: skip
    for share, name in ((0.5, "median"), (0.99, "p99")):
        values = [1000 * percentile(sorted(one.created), share) for one in found]
        yield Row(title + f"creation, {name}", values, "ms", None)
    yield Row(title + "memory of the operator, peak", [one.operator for one in found], "MiB", None)
    yield Row(title + "memory of the webhook, peak", [one.webhook for one in found], "MiB", None)
    yield Row(
        title + "memory beyond the quiet run's",
        [one.operator + one.webhook - rest for one in found], "MiB",
        MEMORY_TARGET if flood else None,
    )  # fmt: skip
    for share, name, target in ((0.999, "p99.9", GAP_TARGET), (1.0, "longest", LONGEST_TARGET)):
        yield Row(
            title + f"/healthz, {name}",
            [percentile(sorted(one.gaps), share) for one in found], "s",
            gap(quiet, share) + target if flood else None,
        )  # fmt: skip
    yield Row(title + "restarts", [float(one.restarts) for one in found], "", 0.0)
    yield Row(
        title + "transitions of the Lease", [float(one.transitions) for one in found], "", 0.0
    )
