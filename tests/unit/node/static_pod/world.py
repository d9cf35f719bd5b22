"""A node with a disk and a kubelet in virtual time; installers can be killed at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kube_scheduler_operator.node.static_pod import manifest
from kube_scheduler_operator.node.static_pod.layout import Layout, RevisionFiles
from kube_scheduler_operator.node.static_pod.program import InstallerOptions
from kube_scheduler_operator.node.static_pod.swap import Swap

from .fake_node import STOCK, FakeDisk, FakeNode, Killed, revision_manifest, revision_of

CONTENT = {"configmaps/config/config.yaml": b"{}\n"}


class World:
    """A node with its disk, on which installers run."""

    def __init__(self, directory: Any, behaviour: Any = None, stock: Any = STOCK) -> None:
        self.manifests = directory / "manifests"
        self.manifests.mkdir()
        self.path = self.manifests / "kube-scheduler.yaml"
        self.resources = directory / "static-pod-resources"
        self.resources.mkdir()
        self.foreign = [STOCK]
        self.steps = 0
        self.checked = 0
        self.kill_at: int | None = None
        self.kill_if: Callable[[], bool] = lambda: False
        self.node = FakeNode(self.path, behaviour, self.step)
        self.disk = FakeDisk(self.step)
        self.layout = Layout(self.resources, self.path, "kube-scheduler", self.disk)
        if stock is not None:
            self.path.write_bytes(stock)
        self.node.settle(10)

    def step(self) -> None:
        self.steps += 1
        self.check_manifest_is_whole()
        self.node.look()  # inotify: the kubelet sees every change
        if self.steps == self.kill_at or self.kill_if():
            raise Killed

    def check_manifest_is_whole(self) -> None:
        status = self.manifests.stat()
        if status.st_mtime_ns == self.checked:
            return  # no name has changed, and no file is written in place
        self.checked = status.st_mtime_ns
        # The kubelet ignores names that begin with a dot.
        files = [path.name for path in self.manifests.iterdir() if path.name[0] != "."]
        assert files in ([], ["kube-scheduler.yaml"])
        if files:
            data = self.path.read_bytes()
            revision = revision_of(data)
            ours = [] if revision is None else [revision_manifest(revision)]
            whole = [*self.foreign, *ours]
            assert data in whole

    def swap(self, revision: Any, **changes: Any) -> Swap:
        target = manifest.parse(revision_manifest(revision), "kube-scheduler")
        target = replace(target, image=changes.pop("image", ""))
        files = RevisionFiles(target, changes.pop("content", CONTENT))
        options = InstallerOptions(
            node="cp-1",
            static_pod_name="kube-scheduler",
            resource_dir=self.resources,
            manifest_path=self.path,
            pod_log_dir=self.resources,
            kubelet_pod_dir=self.resources,
            cgroup_dir=self.resources,
            configmaps_dir=self.resources,
            pod_dir=self.resources,
            revision=revision,
            **{"health_timeout": 30.0, **changes},
        )
        return Swap(options, files, self.layout, self.node)

    def install(self, revision: Any, **changes: Any) -> Any:
        return self.swap(revision, **changes).run()

    def install_killed_at(self, step: Any, revision: Any, **changes: Any) -> bool:
        """Whether the installer was killed before its end."""
        self.steps, self.kill_at = 0, step
        try:
            self.install(revision, **changes)
        except Killed:
            return True
        finally:
            self.kill_at = None
        return False

    @property
    def current(self) -> Any:
        found = self.layout.current()
        return "nothing" if found is None else found.revision

    def check_is_tidy(self) -> None:
        self.check_manifest_is_whole()
        assert self.layout.journal() is None
        assert not (self.resources / ".kube-scheduler-staging").exists()
        assert (self.resources / "kube-scheduler-stock/kube-scheduler.yaml").read_bytes() == STOCK


def make_world(tmp_path: Path, **behaviour: Any) -> World:
    return World(tmp_path, {int(name[1:]): kind for name, kind in behaviour.items()})
