"""The cluster of `hack/bench many`: its objects, its operator, and who wrote what."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import processors
from benchmarks.played import Schedulers
from benchmarks.table import REPOSITORY
from cluster import images
from cluster.api import Api, condition
from cluster.console import run, say
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE, until

_OURS = "/apis/kube-scheduler-operator.dev/v1alpha1"
PROFILES = f"{_OURS}/schedulerprofiles"
SECONDARY_SCHEDULERS = f"{_OURS}/secondaryschedulers"
ACCOUNT = "kube-scheduler-operator"
USER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:{ACCOUNT}"
WRITING = ("create", "update", "patch", "delete", "deletecollection")
NOT_COUNTED = ("leases", "events", "tokenreviews", "subjectaccessreviews")
QUIET_SECONDS = 4.0
"""Without a write for so long, nothing more comes of an edit."""
INERTIA_SECONDS = 125.0
"""ClusterOperator reports some conditions, such as no scheduler, after two minutes."""
SETTLING_SECONDS = 600.0
EACH = 2
"""Profiles of each secondary scheduler; the others belong to the control plane's."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass took, milliseconds."""

    decided_cpu: float  # until the plan was made, of the processor
    decided_wall: float  # the same by the clock
    done_wall: float  # with its writes
    writes: int  # how many its plan had


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: how long the files of passes and of the audit were."""

    passes: int
    audit: int


class Cluster:
    """SecondarySchedulers and SchedulerProfiles, all accepted and running.

    Attributes:
        schedulers: names of SecondarySchedulers.
        profiles_of: scheduler -> names of its SchedulerProfiles; "" is the control plane's.
        profiles: names of all SchedulerProfiles.
        memory: resident memory of the operator, MiB, whenever it was noted.
        began: seconds from the start of the operator's process to the end of its first pass.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        schedulers: int,
        profiles: int,
        *,
        port: int | None = None,
        source: Path = REPOSITORY,
    ) -> None:
        """Prepare.

        `port` is where the operator reaches the API server, by default its own; `source` is the
        repository whose operator runs.
        """
        self._source = source
        self.sandbox, self.api = sandbox, Api(sandbox)
        self._port = port or sandbox.api_port
        self.began = 0.0
        self.schedulers = tuple(f"batch-{number:02}" for number in range(schedulers))
        self.profiles_of: dict[str, list[str]] = {
            name: [f"{name}-{letter}" for letter in "ab"[:EACH]] for name in self.schedulers
        }
        left = profiles - EACH * schedulers
        self.profiles_of[""] = [f"team-{number:03}" for number in range(left)]
        self.profiles = [name for names in self.profiles_of.values() for name in names]
        self.memory: list[float] = []
        self._played = Schedulers(sandbox)
        self._passes = sandbox.state / "passes.jsonl"
        self._audit = sandbox.state / "logs/audit.log"
        self._log = sandbox.state / "logs/operator.log"
        self._operator: subprocess.Popen[bytes] | None = None

    def start(self, calm: float = INERTIA_SECONDS) -> Pass:
        """Make everything and wait until nothing is left to do; the operator's first pass.

        `calm` is how long nothing must have been written.
        """
        kubectl = (self.sandbox.state / "bin/kubectl", f"--kubeconfig={self.sandbox.kubeconfig}")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy/kubeadm")
        for scheduler, names in self.profiles_of.items():
            whose = {"scheduler": scheduler} if scheduler else {}
            for name in names:
                spec = {**profile_spec(self.profiles.index(name)), **whose}
                self._make("SchedulerProfile", PROFILES, name, spec)
        for number, name in enumerate(self.schedulers):
            spec = {"namespace": OPERATOR_NAMESPACE, "config": {"parallelism": number + 1}}
            self._make("SecondaryScheduler", SECONDARY_SCHEDULERS, name, spec)
        say(f"  {len(self.schedulers)} SecondarySchedulers, {len(self.profiles)} SchedulerProfiles")
        self._played.start()
        begun = time.monotonic()
        self._start_operator()
        until(self._has_begun, SETTLING_SECONDS, self._unsettled)
        self.began = time.monotonic() - begun
        until(self._settled, SETTLING_SECONDS, self._unsettled)
        say(f"  all of them run after {time.monotonic() - begun:.0f} s")
        self.wait_calm(calm)
        self.note_memory()
        return self.passes(Mark(0, 0))[0]

    def close(self) -> None:
        """End the operator and the players; the sandbox stays."""
        if self._operator is not None:
            self._operator.terminate()
            try:
                self._operator.wait(60)
            except subprocess.TimeoutExpired:
                self._operator.kill()
        self._played.stop()

    def _make(self, kind: str, path: str, name: str, spec: dict[str, Any]) -> None:
        version = _OURS.removeprefix("/apis/")
        metadata = {"name": name}
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        self.api.request("POST", path, body)

    # --- the operator -------------------------------------------------------------------------

    def _start_operator(self) -> None:
        """As in a pod: with a token in a file. A kubeconfig costs 17 MiB more, in no cluster."""
        server = urlsplit(self.sandbox.server)  # the port may be another one
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self._source / 'operator'}:{REPOSITORY / 'hack'}",
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(self._port),
        }
        environment.pop("KUBECONFIG", None)
        with self._log.open("wb") as log:
            self._operator = subprocess.Popen(
                [
                    sys.executable, "-m", "benchmarks.timed_operator", self._passes,
                    self._service_account(), "--platform=kubeadm", "--listen=127.0.0.1:0",
                    f"--operand-image={images.scheduler_name(self.sandbox.kubernetes)}",
                ],
                stdout=log, stderr=log, env=environment,
            )  # fmt: skip

    def revive(self) -> bool:
        """Start the operator again if it has ended; whether it had."""
        if self._operator is None or self._operator.poll() is None:
            return False
        self._passes.unlink(missing_ok=True)
        self._start_operator()
        until(self._has_begun, SETTLING_SECONDS, self._unsettled)
        return True

    def _service_account(self) -> Path:
        """What a kubelet mounts, of the account that deploy/kubeadm makes.

        What that account is not granted, the operator cannot do.
        """
        accounts = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/serviceaccounts"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 36000}}  # fmt: skip
        answer = self.api.request("POST", f"{accounts}/{ACCOUNT}/token", request)
        folder = self.sandbox.state / "serviceaccount"
        folder.mkdir(0o700, exist_ok=True)
        (folder / "token").write_text(answer["status"]["token"])
        shutil.copy(self.sandbox.state / "pki/ca.crt", folder / "ca.crt")
        return folder

    def _has_begun(self) -> bool:
        self._check_alive()
        return self._passes.exists() and bool(self.passes(Mark(0, 0)))

    def _settled(self) -> bool:
        """Whether all profiles are accepted, and all schedulers run what they should."""
        self._check_alive()
        profiles = self.api.request("GET", PROFILES)["items"]
        return all(condition(one, "Accepted") == "True" for one in profiles) and self._all_run()

    def _all_run(self) -> bool:
        """Whether all schedulers run what is asked for."""
        return all(
            (condition(one, "Available"), condition(one, "Progressing")) == ("True", "False")
            and one["status"]["observedGeneration"] == one["metadata"]["generation"]
            for one in self.api.request("GET", SECONDARY_SCHEDULERS)["items"]
        )

    def _unsettled(self) -> str:
        return f"not everything runs; the operator's log ends: {self._log.read_text()[-3000:]}"

    def _check_alive(self) -> None:
        if self._operator is None or self._operator.poll() is not None:
            raise AssertionError(f"the operator has ended: {self._log.read_text()[-3000:]}")

    @property
    def pid(self) -> int:
        """The operator's process."""
        assert self._operator is not None
        return self._operator.pid

    def note_memory(self) -> None:
        """Take note of the operator's resident memory."""
        self.memory.append(self._memory("VmRSS"))

    def peak(self) -> float:
        """The most that it ever was."""
        return self._memory("VmHWM")

    def _memory(self, field: str) -> float:
        assert self._operator is not None
        return processors.memory(self._operator.pid, field)

    def requests(self, since: Mark) -> Counter[str]:
        """The operator's requests since, as `VERB RESOURCE`, without watches, as in the audit."""
        found: Counter[str] = Counter()
        with self._audit.open() as file:
            file.seek(since.audit)
            for line in file:
                event = json.loads(line)
                what = event.get("objectRef") or {"resource": event["requestURI"]}
                if event["user"]["username"] == USER and event["verb"] != "watch":
                    found[f"{event['verb']} {what['resource']}"] += 1
        return found

    def cpu_seconds(self) -> float:
        """CPU that the operator has used, all threads."""
        assert self._operator is not None
        return processors.used(self._operator.pid).total

    # --- what people do, and what came of it ----------------------------------------------------

    def patch(self, profile: str, body: dict[str, Any]) -> None:
        """Edit a SchedulerProfile."""
        self.api.request("PATCH", f"{PROFILES}/{profile}", body)

    def latest_revision(self) -> int:
        """The control plane's."""
        status = self.api.request("GET", KUBESCHEDULER).get("status", {})
        return int(status.get("latestAvailableRevision", 0))

    def mark(self) -> Mark:
        """Now."""
        return Mark(self._passes.stat().st_size, self._audit.stat().st_size)

    def passes(self, since: Mark) -> list[Pass]:
        """The passes that ended since."""
        with self._passes.open() as file:
            file.seek(since.passes)
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [
            Pass(line["decided"]["cpu"], line["decided"]["wall"], line["done"]["wall"],
                 line["writes"])
            for line in lines
        ]  # fmt: skip

    def written(self, since: Mark) -> Counter[str]:
        """What the operator wrote since, as `VERB RESOURCE NAME`, as the API server has it."""
        found: Counter[str] = Counter()
        with self._audit.open() as file:
            file.seek(since.audit)
            for line in file:
                event = json.loads(line)
                what = event.get("objectRef") or {}
                if event["user"]["username"] != USER or event["verb"] not in WRITING:
                    continue
                if what["resource"] in NOT_COUNTED:
                    continue
                kind = "/".join(filter(None, (what["resource"], what.get("subresource"))))
                found[f"{event['verb']} {kind} {what.get('name', '')}"] += 1
        return found

    def wait_calm(self, quiet: float = QUIET_SECONDS) -> None:
        """Wait until nothing has been written for that many seconds and no work is left."""
        mark, since = self.mark(), time.monotonic()
        deadline = since + quiet + SETTLING_SECONDS
        while time.monotonic() - since < quiet or not self._all_run():
            self._check_alive()
            time.sleep(0.2)
            # On a busy machine the operator may not have run yet.
            if self.written(mark) or self.passes(Mark(0, 0))[-1].writes:
                mark, since = self.mark(), time.monotonic()
            if time.monotonic() > deadline:
                raise AssertionError(f"writes do not stop: {self.written(mark)}")


def profile_spec(seed: int) -> dict[str, Any]:
    """A profile of some size, unlike all others."""
    names = ("NodeResourcesFit", "InterPodAffinity", "PodTopologySpread", "ImageLocality")
    return {
        "base": ("HighNodeUtilization", "LowNodeUtilization")[seed % 2],
        "plugins": {
            "score": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": n, "weight": seed % 97 + i + 1} for i, n in enumerate(names)],
            }
        },
        "pluginConfig": [
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": seed % 101}},
            {
                "name": "NodeResourcesFit",
                "args": {"ignoredResources": [f"example.com/{seed}-{i}" for i in range(5)]},
            },
        ],
        "percentageOfNodesToScore": seed % 101,
    }
