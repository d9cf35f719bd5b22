"""A node in virtual time: its schedulers, and a kubelet that behaves as measured.

The manifest directory is real (a temporary one); the kubelet is a model of what determines the
duration of a swap. A pod's worker ends some time after its process, and removes the cgroup last;
housekeeping every 2 s removes the directory and the cgroup of a pod whose process has ended,
whatever the state of the worker. A static pod that arrives before the worker has ended waits for a
back-off of 10 s; one that was deleted and created again is restarted in the loop after that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.node.static_pod import manifest
from kube_scheduler_operator.node.static_pod.host import Activity, NodeHost
from kube_scheduler_operator.node.static_pod.processes import SchedulerProcess

TICK = 0.1
HOUSEKEEPING = 2.0
BACK_OFF = 10.0
TERMINATING = 1.0  # from the end of the process to the end of the worker
EPOCH = 1_700_000_000.0

GOOD, CRASHES, NEVER_READY, NOT_STARTED, FLAPS, SLOW = (
    "good", "crashes", "never ready", "not started", "flaps", "slow",
)  # fmt: skip

STOCK = b"""apiVersion: v1
kind: Pod
metadata:
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command: [kube-scheduler, --bind-address=127.0.0.1]
"""


class Killed(BaseException):
    """A power cut."""


def template() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-scheduler",
            "namespace": "kube-system",
            "labels": {"revision": "REVISION"},
        },
        "spec": {
            "containers": [
                {
                    "name": "kube-scheduler",
                    "readinessProbe": {
                        "httpGet": {"host": "127.0.0.1", "port": 10259, "path": "/readyz"}
                    },
                }
            ],
            "volumes": [
                {"name": "resource-dir", "hostPath": {"path": "/r/kube-scheduler-pod-REVISION"}}
            ],
        },
    }


@cache
def revision_of(data: bytes) -> int | None:
    return manifest.parse(data, "kube-scheduler").revision


@cache
def revision_manifest(revision: int) -> bytes:
    return manifest.serialise(manifest.static_pod_for_revision(template(), revision))


@dataclass
class Pod:
    uid: str
    data: bytes
    waits_until: float = 0.0
    started: bool = False
    next_start: float = 0.0
    process: int | None = None
    process_since: float = 0.0
    runs: list[float] = field(default_factory=list)
    log_directory_since: float | None = None
    removed_at: float | None = None
    ended_at: float | None = None
    tidied: bool = False
    finished_at: float | None = None
    restart_requested: bool = False


class FakeNode(NodeHost):
    """The kubelet, its pods, and the observations of them."""

    def __init__(
        self, manifest_path: Any, behaviour: Any = None, on_step: Any = lambda: None
    ) -> None:
        self.manifest_path = manifest_path
        self.shows_cgroups = True
        self.behaviour = behaviour or {}
        self.on_step = on_step
        self.outages: list[tuple[float, float]] = []  # of the API server
        self.time = 100.0
        self.boot = 1
        self.pods: list[Pod] = []
        self.pids = 1000
        self.desired: Pod | None = None
        self.seen: tuple[int, int, int] | None = None
        self.desired_is_known = True
        self.next_pass = 102.0
        self.history: list[tuple[float, str]] = []

    # --- NodeHost -------------------------------------------------------------------------------
    def now(self) -> Any:
        return self.time

    def wall(self) -> Any:
        return EPOCH + self.time

    def boot_id(self) -> str:
        return f"boot-{self.boot}"

    def sleep(self, seconds: Any) -> None:
        self.on_step()
        self.advance(seconds)

    def operands(self) -> Any:
        self.look()
        return tuple(
            SchedulerProcess(
                pod.process, int(pod.process_since * 100), pod.uid, self._revision(pod)
            )
            for pod in self.pods
            if pod.process is not None
        )

    def is_ready(self, probe: Any) -> Any:
        return any(self._answers(pod) for pod in self.pods)

    def has_api_server(self) -> Any:
        return not self._is_without_api_server()

    def _is_without_api_server(self) -> Any:
        return any(begin <= self.time < end for begin, end in self.outages)

    def is_port_free(self, probe: Any) -> Any:
        return not any(pod.process is not None for pod in self.pods)

    def kept_pods(self) -> Any:
        self.look()
        return frozenset(
            pod.uid for pod in self.pods if pod.log_directory_since is not None and not pod.tidied
        )

    def has_worker(self) -> Any:
        self.look()
        if not self.shows_cgroups:
            return None
        return any(
            pod.log_directory_since is not None and pod.finished_at is None and not pod.tidied
            for pod in self.pods
        )

    def activity(self, since: Any) -> Activity:
        since -= EPOCH
        runs = frozenset(
            f"{pod.uid}/{number}"
            for pod in self.pods
            for number, run in [*enumerate(pod.runs)][-2:]  # what the kubelet keeps
            if run >= since
        )
        started = bool(runs) or any(
            pod.log_directory_since is not None and pod.log_directory_since >= since
            for pod in self.pods
        )
        return Activity(started, runs)

    def last_error(self, since: Any) -> Any:
        crashed = [p for p in self.pods for run in p.runs
                   if run >= since - EPOCH and self._kind(p) == CRASHES]  # fmt: skip
        return "bad cipher" if crashed else ""

    # --- the kubelet ---------------------------------------------------------------------------
    def advance(self, seconds: Any) -> None:
        end = self.time + seconds
        while self.time < end - 1e-9:
            self.time = min(end, self.time + TICK)
            self.look()
            for pod in list(self.pods):
                self._step(pod)
            if self.time >= self.next_pass - 1e-9:
                self.next_pass += HOUSEKEEPING
                self._housekeep()

    def reboot(self) -> None:
        self.boot += 1
        self.time += 20
        self.next_pass = self.time + HOUSEKEEPING
        self.pods.clear()
        self.desired, self.desired_is_known = None, False

    def settle(self, seconds: float = 60.0) -> None:
        """Run until nothing changes any more."""
        self.advance(seconds)

    def running(self) -> list[Any]:
        """Revisions (None: the stock manifest) of the schedulers that are ready now."""
        return [self._revision(pod) for pod in self.pods if self._answers(pod)]

    def look(self) -> None:
        """Notice a change of the manifest, as inotify makes a kubelet do."""
        try:
            status = self.manifest_path.stat()
            signature = (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            signature = None
        if signature == self.seen and self.desired_is_known:
            return
        self.seen, self.desired_is_known = signature, True
        data = None if signature is None else self.manifest_path.read_bytes()
        if (self.desired.data if self.desired else None) == data:
            return
        if self.desired is not None:
            self.desired.removed_at = self.time
            if not self.desired.started:
                self.desired.finished_at = self.time
            self.desired = None
        if data is not None:
            self._create(data)

    def _create(self, data: Any) -> None:
        uid = hashlib.md5(data).hexdigest()
        known = next((pod for pod in self.pods if pod.uid == uid), None)
        if known is not None:
            known.restart_requested = True
            self.desired = known
            return
        pod = Pod(uid, data)
        self.pods.append(pod)
        self.desired = pod
        self._try_to_start(pod)

    def _try_to_start(self, pod: Any) -> None:
        others = (other for other in self.pods if other is not pod)
        if any(other.started and other.finished_at is None for other in others):
            pod.waits_until = self.time + BACK_OFF
            return
        if self._kind(pod) == NOT_STARTED:
            pod.started = True
            pod.next_start = float("inf")
            return
        pod.started = True
        pod.log_directory_since = self.time
        pod.next_start = self.time + 0.8

    def _step(self, pod: Any) -> None:
        if pod.removed_at is not None:
            if pod.process is not None and self.time >= pod.removed_at + 0.15:
                pod.process = None
            if pod.process is None and pod.ended_at is None:
                pod.ended_at = self.time
            if pod.ended_at is not None and self.time >= pod.ended_at + TERMINATING:
                pod.finished_at = pod.finished_at or self.time
            return
        if not pod.started:
            if self.time >= pod.waits_until:
                self._try_to_start(pod)
            return
        kind = self._kind(pod)
        if pod.process is None and self.time >= pod.next_start:
            self.pids += 1
            pod.process, pod.process_since = self.pids, self.time
            pod.runs.append(self.time)
        elif pod.process is not None:
            age = self.time - pod.process_since
            dies = (
                (kind == CRASHES and age >= 0.1)
                or (kind == FLAPS and age >= 1.0)
                or (age >= 0.2 and self._is_without_api_server())
            )
            if dies:
                pod.process = None
                waits = (0.5, 10.0, 20.0, 40.0, 80.0)[min(len(pod.runs), 5) - 1]
                pod.next_start = self.time + waits

    def _housekeep(self) -> None:
        for pod in self.pods:
            if pod.started and pod.ended_at is not None:
                pod.tidied = True
        for pod in [pod for pod in self.pods if pod.finished_at is not None]:
            self.pods.remove(pod)
            if pod is self.desired:
                again = Pod(pod.uid, pod.data, runs=pod.runs)
                self.pods.append(again)
                self.desired = again
                self._try_to_start(again)

    def _kind(self, pod: Any) -> Any:
        return self.behaviour.get(self._revision(pod), GOOD)

    def _answers(self, pod: Any) -> Any:
        if pod.process is None or pod.removed_at is not None:
            return False
        kind = self._kind(pod)
        return kind in (GOOD, FLAPS, SLOW) and self.time - pod.process_since >= (
            20.0 if kind == SLOW else 0.3
        )

    def _revision(self, pod: Any) -> Any:
        return revision_of(pod.data)


class FakeDisk(Disk):
    """The real disk without waiting for it, with a step before and after every operation."""

    def __init__(self, on_step: Any = lambda: None) -> None:
        self.on_step = on_step

    def write(self, path: Any, file: Any) -> None:
        self.on_step()
        path.unlink(missing_ok=True)
        half = len(file.data) // 2
        with path.open("xb", buffering=0) as opened:
            self.on_step()
            opened.write(file.data[:half])
            self.on_step()
            opened.write(file.data[half:])
        path.chmod(file.mode)
        self.on_step()

    def sync(self, directory: Any) -> None:
        self.on_step()


def _stepping(name: Any) -> Callable[..., Any]:
    def operation(self: FakeDisk, *arguments: Any) -> None:
        self.on_step()
        getattr(Disk, name)(self, *arguments)
        self.on_step()

    return operation


for _name in ("mkdir", "rename", "exchange", "unlink", "symlink", "remove_tree"):
    setattr(FakeDisk, _name, _stepping(_name))


def pod_json() -> bytes:
    return json.dumps(template()).encode()
