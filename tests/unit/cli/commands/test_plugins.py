"""`plugins`: the effective table of a file, of a named profile, of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin, main
from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent

from ..conftest import Cluster, content

FILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality, weight: 10}]}}
- schedulerName: other
"""


def run(*arguments: str) -> int:
    return main(["plugins", *arguments])


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "a.yaml").write_text(FILE)
    return str(tmp_path / "a.yaml")


def cells(text: str, point: str) -> list[list[str]]:
    """The rows of an extension point, without its name."""
    rows: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        words = line.split()
        if not line.startswith(" "):
            inside = words[:1] == [point]
            words = words[1:]
        if inside:
            rows.append(words)
    return rows


def test_a_newer_version_has_the_plugins_of_the_newest_one(path: str, capsys: Any) -> None:
    assert run("-f", path, "--kubernetes-version", NEWEST.short) == 0
    expected = capsys.readouterr().out
    assert run("-f", path, "--kubernetes-version", "1.99") == 0
    printed = capsys.readouterr()
    assert printed.out == expected
    assert "note: Kubernetes 1.99 is newer than the versions on record" in printed.err


def test_the_default_is_the_default_profile(capsys: Any) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[:3] == [
        "profile default-scheduler",
        "POINT       PLUGIN                           WEIGHT  FROM",
        "preEnqueue  SchedulingGates                          default",
    ]
    assert cells(shown, "score")[0] == ["TaintToleration", "3", "default"]


def test_a_named_profile_is_the_base(capsys: Any) -> None:
    assert run("--profile", "HighNodeUtilization") == 0
    rows = cells(capsys.readouterr().out, "score")
    assert rows[0] == ["NodeResourcesFit", "5", "base"]
    assert not any("off" in row for row in rows)
    assert run("--profile", "HighNodeUtilization", "-o", "wide") == 0
    rows = cells(capsys.readouterr().out, "score")
    assert rows[-1] == ["NodeResourcesBalancedAllocation", "off", "base"]


def test_the_version_decides(capsys: Any) -> None:
    for version, there in (("1.34", False), ("1.35", True)):
        assert run("--kubernetes-version", version) == 0
        rows = cells(capsys.readouterr().out, "score")
        assert (["DynamicResources", "2", "default"] in rows) == there


def test_a_file_has_all_its_profiles_or_the_one_that_is_named(path: str, capsys: Any) -> None:
    assert run("-f", path) == 0
    shown = capsys.readouterr().out
    assert cells(shown.partition("\n\n")[0], "score") == [["ImageLocality", "10", "profile"]]
    assert "profile other" in shown
    assert run("-f", path, "--profile", "other", "-o", "json") == 0
    (profile,) = json.loads(capsys.readouterr().out)["profiles"]
    assert profile["schedulerName"] == "other"
    assert profile["points"]["queueSort"] == [{"name": "PrioritySort", "from": "default"}]
    assert profile["points"]["score"][0] == {
        "name": "TaintToleration", "weight": 3, "from": "default",
    }  # fmt: skip
    assert run("-f", path, "--profile", "missing") == 1
    assert "use one of mine, other" in capsys.readouterr().err


def test_what_would_not_start_has_no_table(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{FILE}parallelism: 0\n")
    assert run("-f", str(file)) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{file}:7:1: parallelism: " in shown.err


@pytest.mark.parametrize(
    "arguments",
    [("--profile", "Nope"), ("-f", "no-such-file"), ("--kubernetes-version", "new")],
)
def test_wrong_usage(arguments: tuple[str, ...], capsys: Any) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_another_kind_is_for_compose(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: config.openshift.io/v1\nkind: Scheduler\nspec: {}\n")
    assert run("-f", str(file)) == 2
    assert "compose" in capsys.readouterr().err


# --- of a cluster -----------------------------------------------------------------------------

OVERRIDES = {
    "profiles": [{"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}}]
}


async def test_plugins_of_the_cluster_with_their_origins(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 1, "b": 1})
    cluster.revision(1, content("HighNodeUtilization", unsupportedConfigOverrides=OVERRIDES))
    cluster.revision(2, content("NoScoring"), outcome="")
    done = await cluster.run("plugins", "-o", "wide")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "revision 1, registry.k8s.io/kube-scheduler:v1.35.4"
    rows = cells(done.out, "score")
    assert rows[0] == ["ImageLocality", "9", "override"]
    assert rows[-1] == ["NodeResourcesBalancedAllocation", "off", "base"]
    as_data = json.loads((await cluster.run("plugins", "-o", "json")).out)
    assert as_data["kubernetesVersion"] == "1.35"


async def test_without_recorded_inputs_all_is_one_layer(cluster: Cluster) -> None:
    made = content("HighNodeUtilization")
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, RevisionContent(made.parts))
    rows = cells((await cluster.run("plugins")).out, "score")
    assert rows[0] == ["NodeResourcesFit", "5", "profile"]


async def test_named_profile_needs_no_cluster(cluster: Cluster) -> None:
    done = await cluster.run("plugins", "--profile", "NoScoring")
    assert done.code == 0
    assert cells(done.out, "score") == []
    assert cluster.api.requests("GET") == []


async def test_no_revision_yet(cluster: Cluster) -> None:
    cluster.kubescheduler({})
    done = await cluster.run("plugins")
    assert done.code == 1
    assert "no node runs a revision yet" in done.err


async def test_invalid_configuration_of_a_revision_is_reported(cluster: Cluster) -> None:
    good = content()
    cluster.kubescheduler({"a": 1})
    cluster.revision(
        1, RevisionContent({**good.parts, names.CONFIG: {names.CONFIG_KEY: '{"profiles": 1}'}})
    )
    done = await cluster.run("plugins")
    assert (done.code, done.out) == (1, "")
    assert "revision 1 is invalid" in done.err


def test_help_names_the_source(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        kubectl_plugin(["plugins", "--help"])
    assert "latest revision" in capsys.readouterr().out
