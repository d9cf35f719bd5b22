"""`kubectl scheduler check --upgrade`, with programs that answer as kube-scheduler does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.upgrade import programs, trials
from kube_scheduler_operator.config.effective.upgrades import UpgradedContent
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    NODES,
    PODS,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.secondary.content import config_map
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults
from kube_scheduler_operator.simulate.edit_effect import EditEffect, Loss
from kube_scheduler_operator.simulate.upgrade_programs import Program
from kube_scheduler_operator.simulate.upgrade_report import Placements

from ....builders import secondary
from ....desired import desired_secondary
from ..conftest import IMAGE, Cluster, content

REMOVED_IN_35 = "SizeMemoryBackedVolumes"
REMOVED_IN_36 = "CSIMigrationPortworx"
LOCKED_IN_36 = "CSIServiceAccountTokenSecrets"
CONTROL_PLANE = "the control plane's scheduler"
PRE_RELEASE = "the rules of 1.38 are those of the pre-release v1.38.0-beta.0, not of a release"


def manifest(*flags: str, version: str = "v1.34.4") -> dict[str, Any]:
    container = {
        "name": "kube-scheduler",
        "image": f"registry.k8s.io/kube-scheduler:{version}",
        "command": ["kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf", *flags],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler-a", "namespace": "kube-system"},
        "spec": {"hostNetwork": True, "containers": [container]},
    }


def node(version: str = "v1.34.4") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"nodeInfo": {"kubeletVersion": version}},
    }


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has no kube-scheduler."""
    monkeypatch.setattr(programs, "candidates", lambda _version: ())


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """A program that reports a version, and ends with an error if a word is in its flags."""

    def made(version: str, refused: str = "--nothing") -> Path:
        path = tmp_path / f"kube-scheduler-{version}"
        path.write_text(f"""#!/bin/sh
case "$*" in
--version) echo "Kubernetes {version}";;
*{refused}*) echo 'E1 run.go:72] "command failed" err="refused {refused}"' >&2; exit 1;;
esac
""")
        path.chmod(0o755)
        return path

    return made


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> dict[str, EditEffect]:
    """The effects of versions on Pods; a version without one changes nothing."""
    effects: dict[str, EditEffect] = {}

    async def placements(
        _simulation: Any,
        before: tuple[Program, UpgradedContent],
        after: tuple[Program, UpgradedContent],
    ) -> Placements:
        old, new = before[0].version, after[0].version
        return Placements(old, new, effects.get(new.short, EditEffect(tried=1)))

    monkeypatch.setattr(trials, "placements_of", placements)
    return effects


@pytest.fixture
def check(tmp_path: Path, on_command: Any) -> Callable[..., Any]:
    def run(*documents: Any, flags: tuple[str, ...] = (), upgrade: str = "1.37") -> Any:
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return on_command("check", "--upgrade", upgrade, "--from-files", str(path), *flags)

    return run


@pytest.fixture
def on_command(capsys: pytest.CaptureFixture[str]) -> Any:
    from kube_scheduler_operator.__main__ import kubectl_plugin

    def run(*arguments: str) -> tuple[int, str, str]:
        code = kubectl_plugin([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_each_refusal_is_named_at_its_step(check: Any) -> None:
    gates = f"--feature-gates={REMOVED_IN_35}=true,{REMOVED_IN_36}=true"
    code, out, _ = check(manifest(gates), flags=("-o", "json"))
    found = json.loads(out)
    assert (code, found["result"]) == (1, "changes")
    errors = {step["version"]: step["schedulers"][0]["errors"] for step in found["steps"]}
    assert [(version, len(texts)) for version, texts in errors.items()] == [
        ("1.35", 1),
        ("1.36", 1),
        ("1.37", 0),
    ]
    assert REMOVED_IN_35 in errors["1.35"][0]
    assert REMOVED_IN_36 in errors["1.36"][0]


def test_without_programs_pods_are_not_known_and_the_way_to_get_one_is_named(check: Any) -> None:
    code, out, _ = check(manifest(), node(), upgrade="1.35")
    assert code == 2
    assert out.splitlines()[0] == (
        "Kubernetes 1.34 to 1.35: no change was found; not all is known of 1.35"
    )
    assert "name one with --kube-scheduler PATH: https://dl.k8s.io/release/v1.35.0/" in out


def test_nothing_found_is_exit_code_0(check: Any, program: Any, compared: Any) -> None:
    flags = [f"--kube-scheduler={program(version)}" for version in ("v1.34.4", "v1.35.4")]
    code, out, _ = check(manifest(), node(), flags=tuple(flags), upgrade="1.35")
    assert code == 0, out
    assert out.splitlines()[0] == "Kubernetes 1.34 to 1.35: no change was found"
    assert "tried: kube-scheduler v1.35.4 accepts configuration and flags" in out
    assert "pods, compared with v1.34.4: 1 pod can be placed, or cannot, as with v1.34.4" in out


def test_pods_are_compared_at_each_step_without_the_gates_that_are_refused(
    check: Any, program: Any, compared: dict[str, EditEffect]
) -> None:
    compared["1.36"] = EditEffect(lost=[Loss("taint", ["shop/a"])], elsewhere=["shop/b"], tried=2)
    versions = ("v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2")
    flags = [f"--kube-scheduler={program(version, REMOVED_IN_35)}" for version in versions]
    gates = f"--feature-gates={REMOVED_IN_35}=true"
    code, out, _ = check(manifest(gates), node(), flags=(*flags, "-o", "json"))
    found = json.loads(out)
    assert code == 1
    first, second, third = (step["schedulers"][0] for step in found["steps"])
    assert first["program"]["error"].endswith(f"refused {REMOVED_IN_35}")
    assert second["errors"] == []
    assert second["program"] == {
        "version": "v1.36.3", "error": "", "withoutFeatureGates": [REMOVED_IN_35],
    }  # fmt: skip
    (placements,) = second["placements"]
    assert placements["before"] == "v1.35.4"
    assert placements["lost"] == [{"reason": "taint", "pods": ["shop/a"]}]
    assert placements["elsewhere"] == ["shop/b"]
    assert third["placements"][0]["before"] == "v1.36.3"


def test_a_step_without_a_program_is_part_of_the_next_comparison(
    check: Any, program: Any, compared: dict[str, EditEffect]
) -> None:
    flags = [f"--kube-scheduler={program(version)}" for version in ("v1.34.4", "v1.36.3")]
    _, out, _ = check(manifest(), node(), flags=(*flags, "-o", "json"), upgrade="1.36")
    first, second = (step["schedulers"][0] for step in json.loads(out)["steps"])
    assert first["placements"] == []
    assert "no kube-scheduler 1.35 is on this machine" in first["notKnown"][0]
    assert second["placements"][0]["before"] == "v1.34.4"


def test_what_only_the_program_refuses_is_named_once(
    check: Any, program: Any, compared: dict[str, EditEffect]
) -> None:
    flags = [f"--kube-scheduler={program('v1.34.4')}"]
    flags += [
        f"--kube-scheduler={program(one, '--leader-elect=true')}" for one in ("v1.35.4", "v1.36.3")
    ]
    code, out, _ = check(
        manifest("--leader-elect=true"), node(), flags=(*flags, "-o", "json"), upgrade="1.36"
    )
    first, second = (step["schedulers"][0] for step in json.loads(out)["steps"])
    assert code == 1
    assert first["errors"] == [
        "kube-scheduler v1.35.4 ends: Pod kube-scheduler-a: refused --leader-elect=true"
    ]
    assert second["errors"] == []
    assert second["notKnown"] == [
        "which Pods it places differently: it does not start until what it refuses is corrected"
    ]


def test_what_a_version_without_a_release_accepts_is_not_known(check: Any) -> None:
    code, out, _ = check(manifest(version="v1.37.2"), node("v1.37.2"), upgrade="1.38")
    assert code == 2
    assert f"not known: {PRE_RELEASE}" in out
    assert "https://dl.k8s.io/release/v1.38.0-beta.0/" in out


def test_a_refusal_of_a_pre_release_is_named_with_it(check: Any) -> None:
    gates = "--feature-gates=PodSchedulingReadiness=true"
    code, out, _ = check(manifest(gates, version="v1.37.2"), node("v1.37.2"), upgrade="1.38")
    assert code == 1
    assert "kube-scheduler 1.38 has no feature gate PodSchedulingReadiness" in out
    assert f"not known: {PRE_RELEASE}" in out


def test_a_program_of_a_pre_release_does_not_decide_for_its_release(
    check: Any, program: Any, compared: Any
) -> None:
    files = manifest(version="v1.37.2"), node("v1.37.2")
    for version, expected in (("v1.38.0-beta.0", 2), ("v1.38.0", 0)):
        flags = [f"--kube-scheduler={program(each)}" for each in ("v1.37.2", version)]
        code, out, _ = check(*files, flags=tuple(flags), upgrade="1.38")
        assert code == expected, out
        assert f"tried: kube-scheduler {version} accepts configuration and flags" in out
        doubt = f"not known: {version} is a pre-release; its release may differ"
        assert (doubt in out) == bool(expected)


def test_extenders_that_preempt_have_to_do_something(check: Any) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://x.example", "preemptVerb": "preempt"}],
    }
    code, out, _ = check(config, flags=("--kubernetes-version", "1.37"), upgrade="1.38")
    assert code == 1
    assert "extenders: extenders[0] (http://x.example) has a preemptVerb: from 1.38 on" in out


def test_the_version_of_the_nodes_counts_where_no_scheduler_shows_one(check: Any) -> None:
    _, out, _ = check(node("v1.36.3"))
    assert out.startswith("Kubernetes 1.36 to 1.37: ")


@pytest.mark.parametrize(
    ("flags", "upgrade", "message"),
    [
        ((), "1.34", "--upgrade: 1.34 runs already; name a newer version"),
        ((), "soon", "--upgrade: 'soon' is not a Kubernetes version such as v1.35.4"),
        ((), "1.99", "--upgrade: 1.99 is not known; the newest is 1.38"),
        (("--pre",), "1.35", "--upgrade cannot be combined with --pre or --schedule"),
        (("--kube-scheduler", "/none"), "1.35", "--kube-scheduler /none: this is not an"),
    ],
)
def test_flags_that_cannot_be_used(
    check: Any, flags: tuple[str, ...], upgrade: str, message: str
) -> None:
    code, _, err = check(manifest(), flags=flags, upgrade=upgrade)
    assert code == 2
    assert message in err


def test_files_without_a_version_need_one(check: Any) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    code, _, err = check(config)
    assert code == 2
    assert "name the one that runs with --kubernetes-version" in err


def test_files_are_for_upgrades(on_command: Any) -> None:
    code, _, err = on_command("check", "--from-files", "x")
    assert (code, "are for --upgrade VERSION" in err) == (2, True)


# --- a cluster ----------------------------------------------------------------------------------


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    """A cluster of 1.35 with a secondary scheduler, whose settings only 1.35 accepts."""
    gates = {LOCKED_IN_36: False}
    cluster.kubescheduler({"a": 1}, unsupportedConfigOverrides=overrides())
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    cluster.revision(1, content(unsupportedConfigOverrides=overrides()))
    cluster.api.served |= {SECONDARY_SCHEDULERS, NODES, PODS}
    obj = secondary(featureGates=gates)
    wanted = desired_secondary(
        obj, KUBEADM, OperandDefaults(IMAGE), Version.parse(IMAGE.rpartition(":")[2])
    )
    assert wanted.content is not None
    cluster.put(CONFIG_MAPS, config_map(wanted.request, wanted.content))
    cluster.put(SECONDARY_SCHEDULERS, {**obj, "status": {"configHash": wanted.content.hash}})
    return cluster


def overrides() -> dict[str, Any]:
    return {"arguments": {"feature-gates": [f"{LOCKED_IN_36}=false"]}}


async def test_all_schedulers_of_a_cluster_are_checked(running: Cluster) -> None:
    done = await running.run("check", "--upgrade", "1.36", "-o", "json")
    assert (done.code, done.err) == (1, "")
    found = json.loads(done.out)
    assert any("UnsupportedConfigOverridesUpgradeable is False" in one for one in found["notes"])
    (step,) = found["steps"]
    errors = {one["scheduler"]: one["errors"] for one in step["schedulers"]}
    assert list(errors) == [CONTROL_PLANE, 'SecondaryScheduler "mine"']
    for (text,) in errors.values():
        assert LOCKED_IN_36 in text
        assert text.startswith("spec.")


async def test_each_scheduler_of_a_cluster_is_tried_with_its_pods(
    running: Cluster, program: Any, compared: dict[str, EditEffect]
) -> None:
    compared["1.36"] = EditEffect(newly_fitting=["shop/a"], tried=1)
    versions = ("v1.35.4", "v1.36.3")
    flags = [f"--kube-scheduler={program(version, LOCKED_IN_36)}" for version in versions]
    done = await running.run("check", "--upgrade", "1.36", *flags)
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[2:4] == ["1.36:", f"  {CONTROL_PLANE}"]
    line = f"tried: kube-scheduler v1.36.3 ends: refused {LOCKED_IN_36}"
    assert done.out.count(line) == 2
    assert done.out.count("pods, compared with v1.35.4: 1 waiting pod could be placed") == 2


async def test_what_the_condition_names_is_what_the_check_names(running: Cluster) -> None:
    from kube_scheduler_operator.config.effective.control_plane.compose import compose
    from kube_scheduler_operator.operator.controlplane.versions import next_version_condition

    from ....control_plane_inputs import inputs_of

    made = inputs_of(
        KUBEADM,
        Version.parse(IMAGE.rpartition(":")[2]),
        {"spec": {}},
        {"spec": {"unsupportedConfigOverrides": overrides()}},
    )
    condition = next_version_condition(compose(made))
    done = await running.run("check", "--upgrade", "1.36", "-o", "json")
    (text,) = json.loads(done.out)["steps"][0]["schedulers"][0]["errors"]
    assert condition.message.endswith(f": {text}")


def test_what_no_simulation_tries_is_marked_as_not_known_and_untried_pods_are_named() -> None:
    effect = EditEffect(
        tried=1,
        changed=["the plugins of profile x at reserve"],
        omitted={"with scheduling gates": ["shop/gated"]},
    )
    placements = Placements(Version.parse("v1.35.4"), Version.parse("v1.36.3"), effect)
    assert list(placements.lines()) == [
        "pods, compared with v1.35.4: 1 pod can be placed, or cannot, as with v1.35.4",
        "not known: pods, compared with v1.35.4: no simulation tries the plugins of profile x at "
        "reserve",
        "pods, compared with v1.35.4: not tried: 1 pod with scheduling gates (shop/gated)",
    ]
    assert placements.document()["omitted"] == {"with scheduling gates": ["shop/gated"]}
