"""With converted configurations, the real kube-scheduler runs the same plugins as before.

It completes a configuration with its defaults (--write-config-to), the first of two stages; this
file implements the second, from multiPoint to the extension points, independently of the
conversion. The plugins that ran before are in tests/unit/config/migrate/conversion_cases.py.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import PLUGINS
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.convert import convert
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

from ..unit.config.migrate.conversion_cases import CASES
from ..unit.config.migrate.conversions import LATER, Ran

pytestmark = [pytest.mark.presubmit, pytest.mark.core]

OWN = [name for name, case in CASES.items() if case.own]
FOREIGN = [name for name, case in CASES.items() if not case.own]
DEFAULT_ARGUMENTS: dict[str, dict[str, Any]] = {
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeAffinity": {},
    "NodeResourcesFit": {
        "scoringStrategy": {
            "type": "LeastAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
    },
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
}
"""Defaults of the old versions, which are those of v1."""

Complete = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def version(kube_scheduler_binary: Path) -> Version:
    command = [str(kube_scheduler_binary), "--version"]
    return Version.parse(subprocess.check_output(command, text=True, timeout=50).split()[-1])


@pytest.fixture
def complete(kube_scheduler_binary: Path, tmp_path: Path) -> Complete:
    """The configuration as kube-scheduler completes it; the test fails if it does not start."""
    kubeconfig = tmp_path / "scheduler.conf"
    kubeconfig.write_text(stub_kubeconfig(), encoding="utf-8")

    def run(config: dict[str, Any]) -> dict[str, Any]:
        client = {**config.get("clientConnection", {}), "kubeconfig": str(kubeconfig)}
        given, written = tmp_path / "config.yaml", tmp_path / "out.yaml"
        document = {**config, "clientConnection": client}
        given.write_text(yaml.safe_dump(document), encoding="utf-8")
        arguments = (f"--config={given}", f"--write-config-to={written}", "--secure-port=0")
        done = subprocess.run(
            [str(kube_scheduler_binary), *arguments],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        completed = yaml.safe_load(written.read_text(encoding="utf-8"))
        assert isinstance(completed, dict)
        return completed

    return run


def target(version: Version, *, stock: bool = True) -> Target:
    return Target(Gates(version), stock=stock)


@pytest.mark.parametrize("name", OWN)
def test_kube_scheduler_runs_the_plugins_that_ran_before(
    name: str, complete: Complete, version: Version
) -> None:
    case = CASES[name]
    result = convert(case.document, target(version), case.policy)
    assert result.problems == ()
    completed = complete(result.config)
    for made, ran in zip(completed["profiles"], case.ran, strict=True):
        assert_same(made, ran, version)


@pytest.mark.parametrize("name", FOREIGN)
def test_kube_scheduler_rejects_only_plugins_of_another_image(
    name: str, complete: Complete, version: Version
) -> None:
    case = CASES[name]
    result = convert(case.document, target(version, stock=False), case.policy)
    strange: set[str] = set()
    for made in result.config["profiles"]:
        for sets in made.get("plugins", {}).values():
            enabled = sets.get("enabled", [])
            strange |= {each["name"] for each in enabled} - PLUGINS.keys()
            sets["enabled"] = [each for each in enabled if each["name"] in PLUGINS]
        made["pluginConfig"] = [
            each for each in made.get("pluginConfig", []) if each["name"] in PLUGINS
        ]
    completed = complete(result.config)
    assert strange
    for made, ran in zip(completed["profiles"], case.ran, strict=True):
        assert_same(made, without(ran, strange), version)


@pytest.mark.parametrize("name", ["v1beta2: a second scheduler", "v1alpha1: a Policy"])
def test_lease_and_extenders_are_converted(name: str, complete: Complete, version: Version) -> None:
    case = CASES[name]
    completed = complete(convert(case.document, target(version), case.policy).config)
    assert completed["profiles"][0]["schedulerName"] == "my-scheduler"
    election = completed["leaderElection"]
    if case.policy is None:
        assert (election["resourceLock"], election["leaderElect"]) == ("leases", True)
        return
    assert (election["resourceNamespace"], election["resourceName"]) == (
        "kube-system",
        "my-scheduler",
    )
    first, second = completed["extenders"]
    assert first["urlPrefix"].endswith("5401")
    assert (first["filterVerb"], first["prioritizeVerb"], first["weight"]) == (
        "safe/filter",
        "safe/prioritize",
        2,
    )
    assert not second.get("filterVerb")


def without(ran: Ran, strange: set[str]) -> Ran:
    """What is left of a profile without plugins of another image."""

    def left(text: str) -> str:
        return " ".join(word for word in text.split() if word.partition("=")[0] not in strange)

    return Ran(
        left(ran.filters),
        left(ran.scores),
        ran.post_filters,
        ran.volumes,
        left(ran.binders),
        ran.later,
        {name: args for name, args in ran.config.items() if name not in strange},
    )


def assert_same(made: dict[str, Any], ran: Ran, version: Version) -> None:
    runs = {point: expanded(made["plugins"], point, version.minor) for point in POINTS}
    later = {name for entries in runs.values() for name in entries if name in LATER}
    if not ran.later:
        assert "DynamicResources" not in later
    old = {
        point: {name: weight for name, weight in entries.items() if name not in LATER}
        for point, entries in runs.items()
    }
    old["score"].pop("VolumeBinding", None)  # it scores behind a feature gate only
    weights = (word.partition("=") for word in ran.scores.split())
    assert old["score"] == {name: int(weight) for name, _, weight in weights}
    assert set(old["filter"]) == set(ran.filters.split())
    assert list(old["queueSort"]) == ["PrioritySort"]
    assert list(old["bind"]) == ran.binders.split()
    assert list(old["postFilter"]) == ran.post_filters.split()
    assert list(old["reserve"]) == list(old["preBind"]) == ran.volumes.split()
    assert old["permit"] == old["postBind"] == {}
    arguments = {each["name"]: each.get("args") or {} for each in made.get("pluginConfig", ())}
    for plugin, default in DEFAULT_ARGUMENTS.items():
        shall = completed_arguments(plugin, {**default, **ran.config.get(plugin, {})})
        if plugin in arguments:
            args = {k: v for k, v in arguments[plugin].items() if k not in ("apiVersion", "kind")}
            assert args == shall
        else:
            assert plugin not in ran.config


def completed_arguments(plugin: str, args: dict[str, Any]) -> dict[str, Any]:
    """A strategy without resources is about cpu and memory, as it was."""
    if plugin == "NodeResourcesFit" and "resources" not in args["scoringStrategy"]:
        default = DEFAULT_ARGUMENTS[plugin]["scoringStrategy"]["resources"]
        return {**args, "scoringStrategy": {**args["scoringStrategy"], "resources": default}}
    return args


POINTS = (
    "queueSort", "filter", "postFilter", "score", "reserve", "permit", "preBind", "bind",
    "postBind",
)  # fmt: skip


def expanded(plugins: dict[str, Any], point: str, minor: int) -> dict[str, int]:
    """Name and weight of what runs at a point: what is listed, and what multiPoint brings."""
    here = plugins.get(point) or {}
    listed = {each["name"]: each.get("weight") or 1 for each in here.get("enabled") or ()}
    off = {each["name"] for each in here.get("disabled") or ()}
    everywhere = {
        each["name"]: each.get("weight") or 1
        for each in (plugins.get("multiPoint") or {}).get("enabled") or ()
        if "*" not in off
        and each["name"] not in off
        and point in PLUGINS[each["name"]].points_at(minor)
    }
    replaced = {name: weight for name, weight in listed.items() if name in everywhere}
    return {**replaced, **everywhere, **replaced, **listed}
