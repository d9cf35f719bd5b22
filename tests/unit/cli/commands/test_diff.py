"""`kubectl scheduler diff`: in words and in lines, of revisions and of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.cli.simulation import placements
from kube_scheduler_operator.cli.simulation.placements import EditAnswer
from kube_scheduler_operator.kube.resource import SCHEDULER_PROFILES, SCHEDULERS
from kube_scheduler_operator.simulate.edit_effect import EditEffect, Loss

from ..conftest import Cluster, content

OVERRIDES: dict[str, Any] = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "filter": {"disabled": [{"name": "NodeName"}]},
                "score": {"enabled": [{"name": "ImageLocality", "weight": 10}]},
            },
        }
    ]
}
WORDS = [
    "profile default-scheduler: NodeName off at filter",
    "profile default-scheduler: weight of ImageLocality at score: 1 → 10",
]


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    """A cluster whose nodes run revision 2, and a Scheduler that asks for what that is."""
    cluster.kubescheduler({"a": 2}, logLevel="Debug")
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    cluster.revision(1, content())
    cluster.revision(2, content(logLevel="Debug"))
    return cluster


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(kind: str, **spec: Any) -> str:
        groups = {
            "Scheduler": "config.openshift.io/v1",
            "KubeScheduler": "operator.openshift.io/v1",
        }
        metadata = {"name": "cluster"}
        document = {"apiVersion": groups[kind], "kind": kind, "metadata": metadata, "spec": spec}
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(document))
        return str(path)

    return write


async def test_revisions_are_compared_in_words_and_lines(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, content())
    cluster.revision(2, content(unsupportedConfigOverrides=OVERRIDES))
    both = (await cluster.run("diff", "1", "2")).out.splitlines()
    assert both[:2] == [f"# {sentence}" for sentence in WORDS]
    words = await cluster.run("diff", "1", "2", "-o", "words")
    assert (words.code, words.out.splitlines()) == (1, WORDS)
    lines = await cluster.run("diff", "1", "2", "-o", "lines")
    assert (lines.code, lines.out.splitlines()) == (1, both[2:])
    assert both[2] == "--- revision-1/config.yaml"


async def test_a_file_is_compared_with_what_runs(running: Cluster, file: Any) -> None:
    name = file("KubeScheduler", logLevel="Debug", unsupportedConfigOverrides=OVERRIDES)
    done = await running.run("diff", "-f", name)
    lines = done.out.splitlines()
    assert (done.code, done.err, lines[:2]) == (1, "", [f"# {sentence}" for sentence in WORDS])
    assert lines[2] == "--- revision-2/config.yaml"
    assert lines[3].startswith("+++ ")
    assert not any(line.startswith("--- revision-2/flags") for line in lines)


async def test_file_that_changes_nothing_has_no_difference(running: Cluster, file: Any) -> None:
    done = await running.run("diff", "-f", file("KubeScheduler", logLevel="Debug"))
    assert (done.code, done.out, done.err) == (0, "", "")


async def test_what_the_file_does_not_have_is_taken_from_the_cluster(
    running: Cluster, file: Any
) -> None:
    done = await running.run("diff", "-f", file("Scheduler", profile="NoScoring"), "-o", "words")
    assert done.code == 1
    assert "-v" not in done.out
    assert any(line.endswith(" off at preScore, score") for line in done.out.splitlines())


async def test_an_error_in_another_object_of_the_cluster_does_not_stop_the_comparison(
    cluster: Cluster, file: Any
) -> None:
    cluster.kubescheduler({"a": 2}, logLevel="Loud", featureGates={"NoSuchGate": True})
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    cluster.revision(2, content(logLevel="Debug"))
    done = await cluster.run("diff", "-f", file("Scheduler", profile="NoScoring"), "-o", "words")
    assert (done.code, done.err) == (1, "")
    assert "-v" not in done.out, "the accepted log level stays"
    assert any(line.endswith(" off at preScore, score") for line in done.out.splitlines())


async def test_a_file_against_an_older_revision(running: Cluster, file: Any) -> None:
    name = file("KubeScheduler", logLevel="Debug")
    done = await running.run("diff", "1", "-f", name, "-o", "words")
    assert (done.code, done.out) == (1, "-v: 2 → 4\n")


async def test_observed_configuration_is_kept_if_the_file_lacks_it(
    cluster: Cluster, file: Any
) -> None:
    observed = {"arguments": {"kube-api-qps": ["7"]}}
    cluster.kubescheduler({"a": 1}, observedConfig=observed)
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    cluster.revision(1, content(observedConfig=observed))
    done = await cluster.run("diff", "-f", file("KubeScheduler"))
    assert (done.code, done.out) == (0, "")


@pytest.mark.parametrize("served", [True, False])
async def test_scheduler_profiles_stay_when_the_file_is_about_something_else(
    cluster: Cluster, file: Any, served: bool
) -> None:
    cluster.kubescheduler({"a": 1}, observedConfig={"profiles": [{"schedulerName": "packed"}]})
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    spec = {"base": "None"}
    cluster.revision(1, content(profiles=[{"metadata": {"name": "packed"}, "spec": spec}]))
    if served:
        cluster.api.served |= {SCHEDULER_PROFILES}
        cluster.put(SCHEDULER_PROFILES, {"metadata": {"name": "packed"}, "spec": spec})
        other = {"scheduler": "mine", "schedulerName": "others"}
        cluster.put(SCHEDULER_PROFILES, {"metadata": {"name": "others"}, "spec": other})
    done = await cluster.run("diff", "-f", file("KubeScheduler", logLevel="Debug"), "-o", "words")
    assert (done.code, done.out) == (1, "-v: 2 → 4\n")


async def test_a_configuration_file_is_compared_with_the_configuration(
    running: Cluster, tmp_path: Path
) -> None:
    shown = tmp_path / "config.yaml"
    shown.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "parallelism: 3\nclientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n"
        "profiles: [{plugins: {filter: {disabled: [{name: NodeName}]}}}]\n"
    )
    done = await running.run("diff", "-f", str(shown), "-o", "words")
    lines = done.out.splitlines()
    assert done.code == 1
    assert WORDS[0] in lines
    assert "parallelism: 3 added" in lines
    assert not any(line.startswith(("-", "image", "the pod's")) for line in lines)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("a: [", ":2:1: "),
        ("a: 1\na: 1\n", ':2:1: duplicate key "a"'),
        ("kind: Pod\n", "Pod; specify a KubeSchedulerConfiguration"),
        ("kind: Scheduler\n---\nkind: Scheduler\n", "a second Scheduler"),
        (
            "kind: Scheduler\napiVersion: v1\n",
            "Scheduler has apiVersion v1; use config.openshift.io/v1",
        ),
        ("kind: KubeScheduler\nspec: text\n", "spec: must be an object; write an object"),
        ("kind: LoadPolicy\nmetadata: 1\n", "LoadPolicy without a name"),
        ("kind: LoadPolicy\n", "LoadPolicy without a name"),
        ("kind: KubeScheduler\nspec: {logLevel: Debg}\n", "it would not be accepted: "),
        ("kind: KubeSchedulerConfiguration\n", "kube-scheduler would not start: "),
    ],
)
async def test_file_that_would_not_be_accepted_is_an_error(
    running: Cluster, tmp_path: Path, text: str, output: str
) -> None:
    shown = tmp_path / "a.yaml"
    shown.write_text(text + "\n")
    done = await running.run("diff", "-f", str(shown))
    assert (done.code, done.out) == (2, "")
    assert output in done.err


@pytest.mark.parametrize("arguments", [("1", "2", "-f", "x"), ("-f", "no-such-file")])
async def test_wrong_usage_is_an_error(running: Cluster, arguments: tuple[str, ...]) -> None:
    done = await running.run("diff", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")


async def test_placements_compare_the_pods_of_both_configurations(
    running: Cluster, file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words and the exit code are those of the difference; the patch stays one."""
    compared: list[Any] = []

    async def answer(*arguments: Any) -> EditAnswer:
        compared.extend(arguments[-2:])
        effect = EditEffect(lost=[Loss("taints", ["shop/a", "shop/b"])])
        return EditAnswer(effect, {}, too_large=False, decided_by=None, notes=[])

    monkeypatch.setattr(placements, "placements_of_edit", answer)
    edited = file("KubeScheduler", logLevel="Debug", unsupportedConfigOverrides=OVERRIDES)
    done = await running.run("diff", "-f", edited, "--placements")
    assert done.code == 1
    assert "# 2 running pods could no longer be placed: taints (shop/a, shop/b)\n" in done.out
    before, after = compared
    assert before.config != after.config
    done = await running.run("diff", "-f", edited, "--placements", "-o", "json")
    document = json.loads(done.out)
    assert (done.code, document["placements"]["effect"]["lost"]) == (
        1,
        [{"reason": "taints", "pods": ["shop/a", "shop/b"]}],
    )
    assert document["words"]
    assert document["lines"][0].startswith("--- revision-")
    same = file("KubeScheduler", logLevel="Debug")
    compared.clear()
    done = await running.run("diff", "-f", same, "--placements")
    assert (done.code, done.out, compared) == (0, "", [])


async def test_placements_need_a_file(running: Cluster) -> None:
    done = await running.run("diff", "--placements")
    assert (done.code, done.err) == (
        2,
        "error: --placements is about an edit; add -f FILE\n",
    )
