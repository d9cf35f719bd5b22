"""The check of a newer version in a Pod with two kube-schedulers, and what is known without it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.effective.upgrades import ControlPlaneUpgrade
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import NODES
from kube_scheduler_operator.operator.engine.upgrade_run import UpgradeRunner, upgrades_in_cluster
from kube_scheduler_operator.operator.model.plan import UpgradeQuestion
from kube_scheduler_operator.operator.model.snapshot import CheckIdentity, UpgradeAnswer
from kube_scheduler_operator.simulate import questions
from kube_scheduler_operator.simulate.questions import to_json
from kube_scheduler_operator.simulate.upgrade_steps import NoTrials, upgrade_report

from ....control_plane_inputs import inputs_of
from ...kube.conftest import FakeApi
from ...kube.conftest import api as api
from .test_placement_run import Kubelet, writes
from .test_placement_run import asked_questions as asked_questions
from .test_placement_run import kubelet as kubelet

V35, V36 = Version(1, 35, 4), Version(1, 36)
GONE = "CSIMigrationPortworx"
NEXT = "registry.example/kube-scheduler:v1.36.0"


def question(gate: str = "", problem: str = "") -> UpgradeQuestion:
    overrides = {"arguments": {"feature-gates": [f"{gate}=true"]}} if gate else {}
    spec = {"spec": {"unsupportedConfigOverrides": overrides}}
    upgrade = ControlPlaneUpgrade(compose(inputs_of(KUBEADM, V35, {"spec": {}}, spec)))
    return UpgradeQuestion(
        CheckIdentity("configuration", "1.36 ", "2026-01-01T00:00:00Z"),
        lambda: [upgrade],
        V36,
        "registry.example/kube-scheduler:v1.35.4",
        ("kube-scheduler",),
        NEXT,
        60,
        problem=problem,
    )


async def checked(api: FakeApi, asked: UpgradeQuestion) -> UpgradeAnswer:
    settings = Settings(operator_image="operator:1", image_pull_secrets=("registry",))
    async with ApiClient(api.credentials(), field_manager="test") as client:
        return await upgrades_in_cluster(client, KUBEADM, settings, asyncio.Lock())(asked)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, kubelet: Kubelet) -> list[questions.Asked]:
    """Lets the Pod answer with the report of the upgrades that it is sent."""
    seen: list[questions.Asked] = []

    async def answer(self: questions.Asked, _binary: Path) -> bytes:
        seen.append(self)
        arguments = self.arguments
        found = await upgrade_report(arguments["upgrades"], NoTrials("seen"), arguments["target"])
        return to_json(found)

    monkeypatch.setattr(questions.Asked, "answer", answer)
    return seen


async def test_the_answer_comes_from_a_pod_with_both_images_that_is_deleted(
    api: FakeApi, kubelet: Kubelet, report: list[questions.Asked]
) -> None:
    answer = await checked(api, question(GONE))
    (asked,) = report
    assert asked.arguments["next_program"].image == NEXT
    (upgrade,) = asked.arguments["upgrades"]
    assert (upgrade.version, upgrade.stock) == (V35, True)
    assert upgrade.contents(V35)[0].config["kind"]
    assert answer.result == "Changes"
    assert answer.tried
    summary, *lines = answer.message.split("\n")
    assert summary == (
        "Kubernetes 1.35 to 1.36: something changes in 1.36; not all is known of 1.36"
    )
    assert f"kube-scheduler 1.36 has no feature gate {GONE}" in lines[0]
    pod = kubelet.job["spec"]["template"]["spec"]
    images = {one["name"]: one["image"] for one in (*pod["initContainers"], *pod["containers"])}
    assert images["operand"] == "registry.example/kube-scheduler:v1.35.4"
    assert images["next-operand"] == NEXT
    assert [write.partition(" ")[0] for write in writes(api)] == ["POST", "DELETE"]


@pytest.mark.parametrize(
    ("nodes", "problem", "why"),
    [
        (False, "", "no node is Ready and has 160m of CPU and 128Mi of memory for the simulation"),
        (True, "image is not allowed", "image is not allowed"),
    ],
)
async def test_without_a_pod_the_rules_are_reported_and_why_the_rest_is_not_known(
    api: FakeApi, kubelet: Kubelet, nodes: bool, problem: str, why: str
) -> None:
    if not nodes:
        api.objects[NODES].clear()
    answer = await checked(api, question(GONE, problem))
    assert (answer.result, answer.tried) == ("Changes", False)
    assert f"kube-scheduler 1.36 has no feature gate {GONE}" in answer.message
    assert f"not known: which Pods it places differently: {why}" in answer.message
    assert writes(api) == []
    nothing = await checked(api, question("", problem))
    assert (nothing.result, nothing.tried) == ("NotKnown", False)


async def test_a_check_that_is_too_late_reports_the_rules(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forever(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    module = "kube_scheduler_operator.operator.engine.upgrade_run.read_cluster"
    monkeypatch.setattr(module, forever)
    answer = await checked(api, replace(question(GONE), seconds=1))
    assert answer.result == "Changes"
    assert "they did not answer within 1 s" in answer.message


async def test_a_defect_is_an_answer() -> None:
    done = asyncio.Event()

    async def fails(_: UpgradeQuestion) -> UpgradeAnswer:
        raise RuntimeError("defect")

    runner = UpgradeRunner(fails, done.set)
    runner.follow([question()])
    await done.wait()
    (answer,) = runner.answers.values()
    assert (answer.result, answer.tried) == ("NotKnown", False)
    assert "defect" in answer.message
    await runner.close()
