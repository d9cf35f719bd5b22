"""The plugin lists of the effective table are those of kube-scheduler's completed configuration.

The program writes its lists after they were merged with the defaults and before multiPoint is
expanded to the points. From those the second step must lead to the same table as from what the
user wrote, with the origin of every entry.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.merge import merge_semantically
from kube_scheduler_operator.config.language.merging.presets import PRESETS, profile_fragment
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import plugins
from kube_scheduler_operator.config.language.plugins.plugin_origins import Layer, profile_tables
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

pytestmark = [pytest.mark.presubmit, pytest.mark.core]

RANDOM = 60
"""Number of random profiles; a run of kube-scheduler takes about 0.1 s."""
_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.fixture
def completed(kube_scheduler_binary: Path, tmp_path: Path) -> Any:
    """The completed profile of a configuration with a single one; None if it is refused."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(stub_kubeconfig())

    def start(config: dict[str, Any]) -> Any:
        file, out = tmp_path / "config.yaml", tmp_path / "out.yaml"
        whole = {**_HEAD, **config, "clientConnection": {"kubeconfig": str(kubeconfig)}}
        file.write_text(canonical_json(whole), encoding="utf-8")
        done = subprocess.run(
            [str(kube_scheduler_binary), f"--config={file}", "--secure-port=0",
             f"--write-config-to={out}"],
            capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
        if done.returncode:
            return None
        (profile,) = yaml.safe_load(out.read_text())["profiles"]
        return profile

    return start


@pytest.fixture
def gates(kube_scheduler_binary: Path) -> Gates:
    command = [str(kube_scheduler_binary), "--version"]
    output = subprocess.check_output(command, text=True, timeout=50)
    return Gates(Version.parse(output.split()[-1]))


def shown(config: dict[str, Any], gates: Gates) -> dict[str, list[tuple[str, int, str]]]:
    (table,) = profile_tables(config, [Layer("profile", config)], gates)
    return {
        point: [(row.name, row.weight, row.origin) for row in rows]
        for point, rows in table.points.items()
    }


def without_defaults(profile: dict[str, Any]) -> dict[str, Any]:
    """A completed profile as one that is not merged with the defaults once more."""
    points = {point: lists or {} for point, lists in profile["plugins"].items()}
    multi = points["multiPoint"]
    multi["disabled"] = [*multi.get("disabled", ()), {"name": "*"}]
    return {**profile, "plugins": points}


def agree(config: dict[str, Any], theirs: dict[str, Any], gates: Gates) -> None:
    ours = shown(config, gates)
    lists = config["profiles"][0].get("plugins") or {}
    written = {
        point: {entry["name"] for entry in (lists.get(point) or {}).get("enabled") or ()}
        for point in (*ours, "multiPoint")
    }
    expected = effective_plugins(without_defaults(theirs), gates).points
    for point, rows in ours.items():
        weighed = point in ("score", "placementScore")
        assert [(name, weight) for name, weight, _ in rows] == [
            (entry.name, (entry.weight or 1) if weighed else 0) for entry in expected[point]
        ], point
        for name, _, origin in rows:
            ours_to_say = name in written[point] | written["multiPoint"]
            assert origin == ("profile" if ours_to_say else "default"), (point, name)


@pytest.mark.parametrize("name", PRESETS)
def test_the_plugins_of_a_named_profile_equal_kube_schedulers(
    name: str, completed: Any, gates: Gates
) -> None:
    fragment = merge_semantically([{"profiles": [{"schedulerName": "x"}]}, profile_fragment(name)])
    config = {"profiles": [fragment["profiles"][-1]]}
    agree(config, completed(config), gates)


def made_by_chance(chance: random.Random, gates: Gates) -> dict[str, Any]:
    known = plugins(gates.version)
    points = {point for plugin in known.values() for point in plugin.points_at(gates.version.minor)}
    chosen = [*chance.sample(sorted(points), chance.randint(0, 3)), "multiPoint"]
    lists = {}
    for point in chosen:
        fitting = [
            name
            for name, plugin in known.items()
            if point == "multiPoint" or plugin.implements(point, gates.version.minor)
        ]
        enabled = chance.sample(fitting, min(len(fitting), chance.randint(0, 3)))
        disabled = chance.sample(fitting, min(len(fitting), chance.randint(0, 3)))
        if chance.random() < 0.1:
            disabled.append("*")
        lists[point] = {
            "enabled": [{"name": name, "weight": chance.randint(0, 5)} for name in enabled],
            "disabled": [{"name": name} for name in disabled],
        }
    return {"profiles": [{"schedulerName": "x", "plugins": lists}]}


@pytest.mark.timeout(300, func_only=True)
def test_the_plugins_of_random_profiles_equal_kube_schedulers(completed: Any, gates: Gates) -> None:
    chance = random.Random(20261122)  # the same ones in every run
    accepted = 0
    for _ in range(RANDOM):
        config = made_by_chance(chance, gates)
        theirs = completed(config)
        fine = validate_config({**_HEAD, **config}, Target(gates)) == []
        assert fine == (theirs is not None), config
        if theirs is not None:
            accepted += 1
            agree(config, theirs, gates)
    assert accepted >= RANDOM // 3
