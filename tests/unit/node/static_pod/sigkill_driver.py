"""Runs the real installer in child processes and kills each with SIGKILL at another operation.

A separate program, because forking a multi-threaded test process is unsafe. Prints one JSON object
per kill: the operation, the state of the disk, and the result of the next, uninterrupted installer.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.node.static_pod import activate, manifest
from kube_scheduler_operator.node.static_pod.host import Activity, NodeHost
from kube_scheduler_operator.node.static_pod.installer import install
from kube_scheduler_operator.node.static_pod.processes import SchedulerProcess
from kube_scheduler_operator.node.static_pod.program import InstallerOptions

_FASTER: dict[ModuleType, dict[str, Any]] = {
    activate: {
        "POLL": 0.002,
        "RESUMED_WATCH": 0.002,
        "MARGIN": 0.0,
        "HOUSEKEEPING": 0.0,
        "ABSENCE": 0.002,
    },
    os: {"fsync": lambda _: None},
}
"""The kubelet here forgets at once. SIGKILL does not lose the page cache, and fsync is slow."""
for _module, _values in _FASTER.items():
    vars(_module).update(_values)
STOCK = b"apiVersion: v1\nkind: Pod\nspec:\n  containers: []\n"


class KillingDisk(Disk):
    """Ends this process by SIGKILL before or after its n-th operation; n = 0 never."""

    def __init__(self, kill_at: Any) -> None:
        self.kill_at = kill_at
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def _killing(name: Any) -> Callable[..., Any]:
    def operation(self: KillingDisk, *arguments: Any) -> None:
        self.step()
        getattr(Disk, name)(self, *arguments)
        self.step()

    return operation


for _name in ("mkdir", "write", "sync", "rename", "exchange", "unlink", "symlink", "remove_tree"):
    setattr(KillingDisk, _name, _killing(_name))


class DiskNode(NodeHost):
    """The smallest kubelet: the manifest that is there runs at once; bad revisions crash."""

    def __init__(self, path: Any, bad: Any) -> None:
        self.path, self.bad = path, bad

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def boot_id(self) -> str:
        return "boot"

    def _revision(self) -> Any:
        return manifest.parse(self.path.read_bytes(), "kube-scheduler").revision

    def operands(self) -> Any:
        if not self.path.exists() or self._revision() in self.bad:
            return ()
        return (
            SchedulerProcess(
                self.path.stat().st_ino, self.path.stat().st_ctime_ns, "u", self._revision()
            ),
        )

    def is_ready(self, probe: Any) -> Any:
        return self.path.exists()

    def has_api_server(self) -> bool:
        return True

    def is_port_free(self, probe: Any) -> bool:
        return True

    def kept_pods(self) -> Any:
        return frozenset()

    def has_worker(self) -> bool:
        return False

    def activity(self, since: Any) -> Activity:
        crashed = self.path.exists() and self._revision() in self.bad
        return Activity(True, frozenset("012"[: activate.EXITS] if crashed else ""))

    def last_error(self, since: Any) -> str:
        return "bad cipher"


def in_child(directory: Any, revision: Any, kill_at: Any, bad: Any) -> Any:
    """Install in a child; its exit status as os.waitpid has it."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    status = 1
    try:
        run(directory, revision, kill_at, bad)
        status = 0
    finally:
        os._exit(status)


def run(directory: Any, revision: Any, kill_at: Any, bad: Any) -> Any:
    options = InstallerOptions(
        revision=revision,
        node="cp-1",
        static_pod_name="kube-scheduler",
        configmaps_dir=directory / "configmaps",
        pod_dir=directory / "pod",
        resource_dir=directory / "resources",
        manifest_path=directory / "manifests" / "kube-scheduler.yaml",
        pod_log_dir=directory / "logs",
        kubelet_pod_dir=directory / "pods",
        cgroup_dir=directory / "cgroups",
        health_timeout=0.05,
        settling_time=0.0,
        keep=frozenset(),
    )
    return install(options, KillingDisk(kill_at), lambda _: DiskNode(options.manifest_path, bad))


def prepare(directory: Any, pod: Any) -> None:
    for name in ("configmaps/config", "pod", "manifests"):
        (directory / name).mkdir(parents=True)
    (directory / "configmaps/config/config.yaml").write_text("{}\n")
    (directory / "pod" / "pod.yaml").write_text(pod)
    (directory / "manifests" / "kube-scheduler.yaml").write_bytes(STOCK)


def look(directory: Any) -> Any:
    """What a kubelet would see now."""
    names = (path.name for path in (directory / "manifests").iterdir())
    files = sorted(name for name in names if not name.startswith("."))
    if not files:
        return "nothing"
    data = (directory / "manifests" / files[0]).read_bytes()
    revision = manifest.parse(data, "kube-scheduler").revision
    staged = directory / "resources" / f"kube-scheduler-pod-{revision}" / "kube-scheduler-pod.yaml"
    whole = data == (STOCK if revision is None else staged.read_bytes())
    return {"files": files, "revision": revision or 0, "whole": whole}


def main() -> None:
    base, pod, revision, bad = Path(sys.argv[1]), sys.argv[2], 2, set(json.loads(sys.argv[3]))
    step, status = 0, signal.SIGKILL
    while status == signal.SIGKILL:
        step += 1
        directory = base / str(step)
        prepare(directory, pod)
        run(directory, 1, 0, bad)
        status = in_child(directory, revision, step, bad)
        killed = look(directory)
        result = run(directory, revision, 0, bad)
        print(
            json.dumps(
                {
                    "step": step,
                    "status": status,
                    "killed": killed,
                    "result": result.result,
                    "after": look(directory),
                    "left": sorted(
                        path.name
                        for name in ("resources", "manifests")
                        for path in (directory / name).iterdir()
                    ),
                }
            )
        )


if __name__ == "__main__":
    main()
