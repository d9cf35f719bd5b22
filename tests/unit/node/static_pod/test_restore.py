"""Restore: the previous scheduler runs again, and no file of the operator stays on the node."""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.cli.programs import node as command
from kube_scheduler_operator.node.protocol.result import InstallerOutcome
from kube_scheduler_operator.node.static_pod import program, restore
from kube_scheduler_operator.node.static_pod.restore import Restore, RestoreOptions

from .fake_node import CRASHES, NEVER_READY, STOCK, Killed
from .kubeadm_files import server, stock
from .world import World, make_world

UPGRADED = STOCK.replace(b"127.0.0.1", b"0.0.0.0")


def restored(world: Any, retry: int = 0) -> Any:
    options = RestoreOptions(
        node="cp-1",
        static_pod_name="kube-scheduler",
        static_pod_namespace="kube-system",
        resource_dir=world.resources,
        manifest_path=world.path,
        pod_log_dir=Path("logs"),
        kubelet_pod_dir=Path("pods"),
        cgroup_dir=Path("cgroups"),
        retry=retry,
        health_timeout=30.0,
    )
    world.resources.mkdir(exist_ok=True)
    return Restore(options, world.layout, world.node).run()


def upgrade(world: Any) -> None:
    world.foreign.append(UPGRADED)
    world.path.write_bytes(UPGRADED)


@pytest.mark.parametrize("label", [b"2", b"99"])
def test_an_edited_manifest_of_the_operator_is_not_the_scheduler_before_the_operator(
    world: Any, label: Any
) -> None:
    edited = world.path.read_bytes().replace(b'"revision": "2"', b'"revision": "%s"' % label)
    world.foreign.append(edited + b" ")
    world.path.write_bytes(edited + b" ")
    assert restored(world).result is InstallerOutcome.RESTORED
    assert world.path.read_bytes() == STOCK


def test_early_exit_leaves_a_scheduler(world: Any) -> None:
    def interrupted() -> None:
        with program.alone(world.layout):
            world.kill_if = lambda: not world.path.exists()
            try:
                restored(world)
            finally:
                world.kill_if = lambda: False

    with pytest.raises(Killed):
        interrupted()
    assert world.current == 2


@pytest.fixture
def world(tmp_path: Path) -> Any:
    found = World(tmp_path)
    found.install(1)
    found.install(2)
    return found


def test_stock_manifest_is_restored_and_all_files_removed(world: Any) -> None:
    result = restored(world)
    assert (result.result, result.revision, result.last_good_revision) == (
        InstallerOutcome.RESTORED,
        0,
        0,
    )
    assert {"release", "ready", "settle"} <= set(result.steps)
    assert world.path.read_bytes() == STOCK
    assert world.node.running() == [None]
    assert not world.resources.exists()


def test_other_files_stay_and_are_reported(world: Any) -> None:
    (world.resources / "kube-scheduler-pod-old").mkdir()
    (world.resources / "etcd").mkdir()
    assert restored(world).strangers == ("kube-scheduler-pod-old",)
    assert sorted(path.name for path in world.resources.iterdir()) == [
        "etcd",
        "kube-scheduler-pod-old",
    ]


def test_newest_adopted_manifest_is_restored(world: Any) -> None:
    upgrade(world)
    world.node.settle(30)
    world.install(3)
    assert restored(world).result is InstallerOutcome.RESTORED
    assert world.path.read_bytes() == UPGRADED


OLD, NEW, NEWER = (f"registry.k8s.io/kube-scheduler:v1.{one}" for one in ("35.4", "36.3", "37.2"))


def write(world: Any, path: Path, data: bytes) -> None:
    world.foreign.append(data)
    path.write_bytes(data)
    world.node.settle(30)


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A node that kubeadm has upgraded from OLD to NEW."""
    world = World(tmp_path, stock=stock(OLD))
    world.foreign += [stock(OLD), stock(NEW)]
    world.install(1, image=OLD, follow_kubeadm=True)
    world.path.with_name("kube-apiserver.yaml").write_bytes(server())
    monkeypatch.setattr(world, "check_manifest_is_whole", lambda: None)
    write(world, world.path, stock(NEW))
    world.install(2, image=NEW, follow_kubeadm=True)
    return world


REPLACED = {
    "newer than the API server": stock(NEWER),
    "too old for the API server": stock(OLD.replace("35", "34")),
    "of another repository": stock(NEW.replace("registry.k8s.io", "registry.example")),
    "without a version": stock(NEW.replace("v1.36.3", "latest")),
    "not in kubeadm's form": STOCK,
    "cut off": b"apiVersion: v1\nkin",
}


@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
def test_a_manifest_that_was_only_replaced_is_not_restored(upgraded: Any, replaced: bytes) -> None:
    write(upgraded, upgraded.path, replaced)
    assert upgraded.install(2, image=NEW, follow_kubeadm=True).result is InstallerOutcome.INSTALLED
    (kept,) = upgraded.layout.stock.parent.glob("refused-*.yaml")
    assert kept.read_bytes() == replaced
    assert restored(upgraded).result is InstallerOutcome.RESTORED
    assert upgraded.path.read_bytes() == stock(NEW)


def test_the_command_for_a_cluster_without_an_api_server_restores_the_same_manifest(
    upgraded: Any,
) -> None:
    write(upgraded, upgraded.path, stock(NEWER))
    upgraded.install(2, image=NEW, follow_kubeadm=True)
    page = (Path(__file__).parents[4] / "docs/operations.md").read_text()
    (command,) = re.findall(r"^cp .*kube-scheduler-stock.*$", page, re.M)
    here = command.replace("/etc/kubernetes/static-pod-resources", str(upgraded.resources))
    here = here.replace("/etc/kubernetes/manifests", str(upgraded.manifests))
    subprocess.run(["sh", "-ec", here], check=True)
    assert upgraded.path.read_bytes() == stock(NEW)


def test_active_manifest_of_another_owner_stays(world: Any) -> None:
    upgrade(world)
    world.node.settle(30)
    before = world.path.stat().st_ino
    assert restored(world).result is InstallerOutcome.RESTORED
    assert world.path.stat().st_ino == before
    assert not world.resources.exists()


def test_restore_is_idempotent(world: Any) -> None:
    restored(world)
    begin = world.node.time
    assert restored(world).result is InstallerOutcome.RESTORED
    assert world.node.time - begin < 5
    assert not world.resources.exists()


def test_without_adopted_manifest_the_operators_scheduler_stays(tmp_path: Path) -> None:
    world = World(tmp_path, stock=None)
    world.install(1)
    result = restored(world)
    assert result.result is InstallerOutcome.KEPT
    assert str(world.path) in result.reason
    assert world.node.running() == [1]
    assert world.layout.revision_dir(1).exists()


@pytest.mark.parametrize("kind", [CRASHES, NEVER_READY])
def test_failing_stock_scheduler_is_rolled_back(tmp_path: Path, kind: Any) -> None:
    world = make_world(tmp_path)
    world.install(1)
    world.node.behaviour[None] = kind
    result = restored(world)
    assert (result.result, result.last_good_revision) == (InstallerOutcome.ROLLED_BACK, 1)
    assert result.reason
    assert world.node.running() == [1]
    world.check_is_tidy()
    world.node.behaviour.clear()
    assert restored(world, retry=1).result is InstallerOutcome.RESTORED


def test_failed_rollback_is_reported_and_removes_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    world.install(1)
    world.node.behaviour.update({None: NEVER_READY, 1: NEVER_READY})
    result = restored(world)
    assert result.result is InstallerOutcome.UNHEALTHY
    assert "rollback to revision 1 failed" in result.reason
    assert world.layout.revision_dir(1).exists()
    assert world.layout.stock.exists()


def test_kill_at_every_step_leads_to_the_same_result(tmp_path: Path) -> None:
    killed, step = True, 0
    while killed:
        step += 1
        (tmp_path / str(step)).mkdir()
        world = World(tmp_path / str(step))
        world.node.on_step = world.node.look
        world.install(1)
        world.steps, world.kill_at, killed = 0, step, False
        try:
            restored(world)
        except Killed:
            killed = True
        world.kill_at = None
        world.node.advance(step % 5)
        assert restored(world).result is InstallerOutcome.RESTORED, f"killed at step {step}"
        assert world.path.read_bytes() == STOCK
        assert not world.resources.exists(), f"killed at step {step}"
        world.node.settle(10)
        assert world.node.running() == [None]
    assert step > 15


def test_installer_works_after_a_killed_restore(world: Any) -> None:
    world.kill_if = lambda: not world.path.exists()
    with pytest.raises(Killed):
        restored(world)
    world.kill_if = lambda: False
    assert world.install(3).result is InstallerOutcome.INSTALLED
    world.check_is_tidy()


def test_flags_of_the_template_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    from kube_scheduler_operator.base.platform import KUBEADM
    from kube_scheduler_operator.operator.controlplane.node_pods import render_restore_pod

    pod = render_restore_pod(KUBEADM, "cp-1", 2, "operator:v1")
    (container,) = pod["spec"]["containers"]
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args([*container["command"][1:], *container["args"]])
    seen: list[Any] = []

    def main(options: Any) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(restore, "main", main)
    monkeypatch.setattr(program, "configure_logging", lambda verbosity: None)
    assert args.run(args) == 0
    (options,) = seen
    assert (options.retry, options.node) == (2, "cp-1")
    assert str(options.manifest_path) == KUBEADM.manifest_path
    assert options.static_pod_namespace == KUBEADM.operand_namespace
