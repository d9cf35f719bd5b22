"""What follows a line: commands, flags, values, and names from the cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kube_scheduler_operator.__main__ import kubectl_completion, kubectl_plugin
from kube_scheduler_operator.cli.commands import completion
from kube_scheduler_operator.kube.resource import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    SECONDARY_SCHEDULERS,
)

from .conftest import Cluster, content


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not decide whether a test passes."""
    monkeypatch.setattr(completion, "SECONDS", 50.0)


def completed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], int]:
    """(choices without descriptions, directive)."""
    assert kubectl_completion(words) == 0
    *choices, last = capsys.readouterr().out.splitlines()
    return [one.partition("\t")[0] for one in choices], int(last.removeprefix(":"))


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (("sta",), ["status"]),
        (("rollout", ""), ["watch", "undo", "approve"]),
        (("rollout", "undo", "--to"), ["--to-revision"]),
        (("check", "--sc"), ["--schedule"]),
        (("status", "-o", "j"), ["json"]),
        (("status", "--output=y"), ["--output=yaml"]),
        (("status", "--platform", "r"), ["rke2"]),
        (("compose", "--for", "ak"), ["aks"]),
        (("validate", "--kubernetes-version", "1.37"), ["1.37"]),
        (("convert", "--to", ""), ["control-plane", "second"]),
        (("completion", "f"), ["fish"]),
        (("nonsense", ""), []),
        (("status", ""), []),
        (("status", "--nonsense=x"), []),
    ],
)
def test_words_that_need_no_cluster(
    words: tuple[str, ...], choices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(capsys, *words) == (choices, 4)


def test_every_command_is_offered_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl_plugin(["__complete", ""]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "why\tshow why a pod waits and what would help, or why it is on its node" in lines
    assert not any(line.startswith("explain") for line in lines)


@pytest.mark.parametrize(
    ("words", "directive"),
    [
        (("validate", "-f", ""), 0),
        (("must-gather", "--dest", ""), 16),
        (("status", "--kubeconfig", ""), 0),
        (("diff", "--file=x"), 0),
    ],
)
def test_files_are_left_to_the_shell(
    words: tuple[str, ...], directive: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(capsys, *words) == ([], directive)


def test_contexts_are_those_of_the_kubeconfig(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("contexts: [{name: prod}, {name: prod-eu}, {name: dev}]")
    words = ("status", "--kubeconfig", str(file), "--context", "prod")
    assert completed(capsys, *words)[0] == ["prod", "prod-eu"]
    file.write_text("- nothing: of this")
    assert completed(capsys, *words)[0] == []


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (("why", "-n", "mine", "po"), ["pod-a", "pod-b"]),
        (("why", "--namespace=mine", "pod-b"), ["pod-b"]),
        (("why", "po"), []),
        (("why", "dep"), ["deployment/"]),
        (("why", "-n", "mine", "deploy/"), ["deploy/web"]),
        (("why", "-n", "mi"), ["mine"]),
        (("why", "-n", "mine", "pod-a", ""), []),
        (("pprof", "heap", "--node", ""), ["n1"]),
        (("history", "--scheduler", ""), ["batch"]),
        (("plugins", "--profile", ""), ["packed"]),
        (("diff", ""), ["1", "2"]),
        (("rollout", "undo", "--to-revision", ""), ["1", "2"]),
    ],
)
async def test_names_of_the_cluster(
    words: tuple[str, ...], choices: list[str], cluster: Cluster
) -> None:
    cluster.api.served |= {DEPLOYMENTS, NAMESPACES, NODES, SECONDARY_SCHEDULERS}
    for name in ("pod-a", "pod-b"):
        cluster.put(PODS, {"metadata": {"name": name, "namespace": "mine"}})
    cluster.put(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "mine"}})
    cluster.put(NAMESPACES, {"metadata": {"name": "mine"}})
    cluster.put(NODES, {"metadata": {"name": "n1"}})
    status = {"profiles": [{"schedulerName": "packed"}]}
    cluster.put(SECONDARY_SCHEDULERS, {"metadata": {"name": "batch"}, "status": status})
    cluster.revision(1, content())
    cluster.revision(2, content(logLevel="Debug"))
    flags = ("--platform", "kubeadm", "--kubeconfig", str(cluster.kubeconfig))
    place = next((i for i, word in enumerate(words) if word.startswith("-")), len(words) - 1)
    line = (*words[:place], *flags, *words[place:])
    await asyncio.to_thread(kubectl_completion, line)
    *found, _ = cluster.capsys.readouterr().out.splitlines()
    assert [one for one in found if one != "default-scheduler"] == choices


async def test_no_space_follows_a_kind_because_a_name_does(cluster: Cluster) -> None:
    flags = ("--platform", "kubeadm", "--kubeconfig", str(cluster.kubeconfig))
    await asyncio.to_thread(kubectl_completion, ("why", *flags, "statef"))
    assert cluster.capsys.readouterr().out == "statefulset/\n:6\n"


async def test_a_cluster_that_does_not_answer_gives_no_names_and_no_error(
    cluster: Cluster,
) -> None:
    cluster.api.fail(500, times=None)
    flags = ("--platform", "kubeadm", "--kubeconfig", str(cluster.kubeconfig))
    await asyncio.to_thread(kubectl_completion, ("why", *flags, ""))
    printed = cluster.capsys.readouterr()
    assert (printed.out, printed.err) == (":4\n", "")
