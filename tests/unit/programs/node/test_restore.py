"""Removed: what was there before comes back, and nothing of the operator stays on the node."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from kube_scheduler_operator.cli.programs import node as command
from kube_scheduler_operator.programs.node import program, restore
from kube_scheduler_operator.programs.node.restore import Options, Restore
from kube_scheduler_operator.programs.node.result import Verdict

from .fake_node import CRASHES, NEVER_READY, STOCK, Killed
from .world import World, make_world

UPGRADED = STOCK.replace(b"127.0.0.1", b"0.0.0.0")


def restored(world, retry=0):
    options = Options(
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


def upgrade(world):
    world.foreign.append(UPGRADED)
    world.path.write_bytes(UPGRADED)


def test_who_leaves_early_leaves_a_scheduler_behind(world):
    def interrupted():
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
def world(tmp_path):
    found = World(tmp_path)
    found.install(1)
    found.install(2)
    return found


def test_the_stock_manifest_is_back_and_the_disk_is_as_it_was(world):
    result = restored(world)
    assert (result.result, result.revision, result.last_good_revision) == (Verdict.RESTORED, 0, 0)
    assert {"release", "ready", "settle"} <= set(result.steps)
    assert world.path.read_bytes() == STOCK
    assert world.node.running() == [None]
    assert not world.resources.exists()


def test_what_is_not_ours_stays_on_the_disk_and_is_named(world):
    (world.resources / "kube-scheduler-pod-old").mkdir()
    (world.resources / "etcd").mkdir()
    assert restored(world).strangers == ("kube-scheduler-pod-old",)
    assert sorted(path.name for path in world.resources.iterdir()) == [
        "etcd",
        "kube-scheduler-pod-old",
    ]


def test_what_kubeadm_wrote_last_is_what_comes_back(world):
    upgrade(world)
    world.node.settle(30)
    world.install(3)
    assert restored(world).result is Verdict.RESTORED
    assert world.path.read_bytes() == UPGRADED


def test_a_manifest_that_somebody_else_put_there_is_not_touched(world):
    upgrade(world)
    world.node.settle(30)
    before = world.path.stat().st_ino
    assert restored(world).result is Verdict.RESTORED
    assert world.path.stat().st_ino == before
    assert not world.resources.exists()


def test_a_second_time_there_is_nothing_to_do(world):
    restored(world)
    begin = world.node.time
    assert restored(world).result is Verdict.RESTORED
    assert world.node.time - begin < 5
    assert not world.resources.exists()


def test_without_anything_to_go_back_to_the_operators_scheduler_stays(tmp_path):
    world = World(tmp_path, stock=None)
    world.install(1)
    result = restored(world)
    assert result.result is Verdict.KEPT
    assert str(world.path) in result.reason
    assert world.node.running() == [1]
    assert world.layout.revision_dir(1).exists()


@pytest.mark.parametrize("kind", [CRASHES, NEVER_READY])
def test_a_stock_scheduler_that_does_not_run_any_more_gives_way_to_the_last_good_one(
    tmp_path, kind
):
    world = make_world(tmp_path)
    world.install(1)
    world.node.behaviour[None] = kind
    result = restored(world)
    assert (result.result, result.last_good_revision) == (Verdict.ROLLED_BACK, 1)
    assert result.reason
    assert world.node.running() == [1]
    world.check_is_tidy()
    world.node.behaviour.clear()
    assert restored(world, retry=1).result is Verdict.RESTORED


def test_if_neither_runs_the_result_says_so_and_nothing_is_removed(tmp_path):
    world = make_world(tmp_path)
    world.install(1)
    world.node.behaviour.update({None: NEVER_READY, 1: NEVER_READY})
    result = restored(world)
    assert result.result is Verdict.UNHEALTHY
    assert "then revision 1 did not work either" in result.reason
    assert world.layout.revision_dir(1).exists()
    assert world.layout.stock.exists()


def test_killed_at_every_step_it_ends_the_same(tmp_path):
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
        assert restored(world).result is Verdict.RESTORED, f"killed at step {step}"
        assert world.path.read_bytes() == STOCK
        assert not world.resources.exists(), f"killed at step {step}"
        world.node.settle(10)
        assert world.node.running() == [None]
    assert step > 15


def test_managed_again_after_a_kill_the_next_installer_goes_its_own_way(world):
    world.kill_if = lambda: not world.path.exists()
    with pytest.raises(Killed):
        restored(world)
    world.kill_if = lambda: False
    assert world.install(3).result is Verdict.INSTALLED
    world.check_is_tidy()


def test_the_command_line_of_the_template_is_understood(monkeypatch):
    from kube_scheduler_operator.base.platform import KUBEADM
    from kube_scheduler_operator.manifests.pods import render_restore_pod

    pod = render_restore_pod(KUBEADM, "cp-1", 2, "operator:v1")
    (container,) = pod["spec"]["containers"]
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args([*container["command"][1:], *container["args"]])
    seen = []
    monkeypatch.setattr(restore, "main", lambda options: seen.append(options) or 0)
    monkeypatch.setattr(program, "configure_logging", lambda verbosity: None)
    assert args.run(args) == 0
    (options,) = seen
    assert (options.retry, options.node) == (2, "cp-1")
    assert str(options.manifest_path) == KUBEADM.manifest_path
    assert options.static_pod_namespace == KUBEADM.operand_namespace
