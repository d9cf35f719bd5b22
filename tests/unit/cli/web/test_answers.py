"""What pages read from a cluster, and how answers are kept."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM, MANAGED
from kube_scheduler_operator.cli.answers.effective import (
    EffectiveSetting,
    Running,
    effective_of,
    layers_of_secondary,
)
from kube_scheduler_operator.cli.cluster.compare import ParsedRevision
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.web.answers import ENTRIES, Answers
from kube_scheduler_operator.cli.web.page import ConsoleCluster, Page
from kube_scheduler_operator.cli.web.pages import compare, decides, now, rollout
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import RecordedInputs
from kube_scheduler_operator.config.effective.secondary.compose import LEASE_FIELDS
from kube_scheduler_operator.config.language.plugins.plugin_origins import (
    BASE,
    OVERRIDE,
    PROFILE,
    Layer,
)
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find, impersonate
from kube_scheduler_operator.kube.errors import ApiRequest, Forbidden

from ..conftest import Cluster as FakeCluster
from ..conftest import content
from .conftest import answered_by


@pytest.fixture
async def two_revisions(cluster: FakeCluster) -> AsyncIterator[ConsoleCluster]:
    cluster.revision(1, content())
    cluster.revision(2, content(unsupportedConfigOverrides={"parallelism": 32}))
    cluster.kubescheduler({"a": 2, "b": 1})
    cluster.operator_runs(leader="a")
    credentials = find(str(cluster.kubeconfig), None, impersonate("", (), ""))
    async with ApiClient(credentials, field_manager="test") as api:
        yield ConsoleCluster(api, KUBEADM, argparse.Namespace())


async def _ask(page: Page, cluster: ConsoleCluster, **query: str) -> Any:
    return await page.answer(cluster, page.read(query))


async def test_rollout_has_lanes_and_history(two_revisions: ConsoleCluster) -> None:
    answer = await _ask(rollout.PAGE, two_revisions)
    assert [(lane.node, lane.current) for lane in answer.lanes] == [("a", 2), ("b", 1)]
    assert answer.outcome == "in progress"
    assert [entry.revision for entry in answer.revisions] == [2, 1]
    assert list(answer.revisions[0].changes) == ["parallelism: 32 added"]


async def test_two_revisions_are_compared_either_way(two_revisions: ConsoleCluster) -> None:
    answer = await _ask(compare.PAGE, two_revisions, old="2", new="1")
    assert (answer.old, answer.new) == ("revision-2", "revision-1")
    assert list(answer.words) == ["parallelism: 32 removed"]
    with pytest.raises(CommandError, match="revision 7 does not exist"):
        await _ask(compare.PAGE, two_revisions, old="7")


async def test_what_decides_is_what_runs(two_revisions: ConsoleCluster) -> None:
    answer = await _ask(decides.PAGE, two_revisions)
    assert answer.title == "revision 2"
    assert EffectiveSetting("parallelism", "32", OVERRIDE) in answer.settings
    assert [profile.scheduler_name for profile in answer.profiles] == ["default-scheduler"]


async def test_now_is_the_status(two_revisions: ConsoleCluster) -> None:
    answer = await _ask(now.PAGE, two_revisions)
    assert [node.node for node in answer.nodes] == ["a", "b"]
    assert not answer.healthy


def test_a_setting_has_the_origin_of_the_last_layer_with_its_value() -> None:
    args = {"scoringStrategy": {"type": "MostAllocated"}}
    profile = {
        "schedulerName": "s",
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
        "plugins": {"score": {"enabled": [{"name": "NodeResourcesFit"}]}},
    }
    config = {"apiVersion": "x", "kind": "y", "parallelism": 8, "profiles": [profile], "z": False,
              "extenders": [{"urlPrefix": "http://x", "weight": 1}]}  # fmt: skip
    layers = [
        Layer(BASE, {"parallelism": 8}),
        Layer(PROFILE, {"profiles": [profile]}),
        Layer(OVERRIDE, {"parallelism": 8}),
    ]
    parsed = ParsedRevision(config, (), "kube-scheduler:v1.35.4", {}, {})
    path = "profiles[s].pluginConfig[NodeResourcesFit].args.scoringStrategy.type"
    assert effective_of(Running("revision 1", parsed, layers)).settings == [
        EffectiveSetting("parallelism", "8", OVERRIDE),
        EffectiveSetting(path, '"MostAllocated"', PROFILE),
        EffectiveSetting("z", "false", "default"),
        EffectiveSetting("extenders[http://x].weight", "1", PROFILE),
    ]


def test_what_the_operator_sets_for_a_secondary_scheduler_is_not_a_profile() -> None:
    election = {
        "leaderElect": True,
        "leaseDuration": "30s",
        "resourceLock": "leases",
        "resourceName": "mine",
        "resourceNamespace": "schedulers",
    }
    config = {"enableProfiling": False, "parallelism": 8, "leaderElection": election,
              "profiles": [{"schedulerName": "mine"}]}  # fmt: skip
    parsed = ParsedRevision(config, (), "registry.k8s.io/kube-scheduler:v1.35.4", {}, {})

    def origins(inputs: RecordedInputs | None) -> dict[str, str]:
        layers = list(layers_of_secondary(config, inputs, MANAGED))
        settings = effective_of(Running("configuration 1", parsed, layers)).settings
        return {each.path: each.origin for each in settings}

    lease = dict.fromkeys((f"leaderElection.{field}" for field in LEASE_FIELDS), BASE)
    own = {"parallelism": PROFILE, "leaderElection.leaseDuration": PROFILE, **lease}
    assert origins(None) == {"enableProfiling": PROFILE, **own}
    overrides = {"parallelism": 8, "leaderElection": {"leaseDuration": "30s"}}
    assert origins(RecordedInputs({}, {"unsupportedConfigOverrides": overrides})) == {
        "enableProfiling": BASE,
        "parallelism": OVERRIDE,
        "leaderElection.leaseDuration": OVERRIDE,
        **lease,
    }


async def test_kept_answers_are_bounded() -> None:
    async def answer() -> int:
        return 1

    nothing: Any = None
    answers = Answers(ConsoleCluster(nothing, KUBEADM, argparse.Namespace()))
    page = answered_by(rollout.PAGE, answer)
    for number in range(3 * ENTRIES):
        assert (await answers.get(page, {"scheduler": f"s{number}"}, 1.0)).value == 1
    assert len(answers._entries) == ENTRIES


async def test_an_answer_is_forgotten_with_the_right_to_read_it() -> None:
    asked = 0

    async def answer() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            return 1
        raise Forbidden(ApiRequest("list", "/api/v1/pods"), status=403, message="jane is refused")

    nothing: Any = None
    answers = Answers(ConsoleCluster(nothing, KUBEADM, argparse.Namespace()))
    page = replace(answered_by(rollout.PAGE, answer), fresh=0.0)
    assert (await answers.get(page, {}, 1.0)).value == 1
    again = await answers.get(page, {}, 1.0)
    assert again.value is None
    assert "jane is refused" in again.problem


async def test_simulations_hold_up_no_other_page() -> None:
    async def never() -> int:
        await asyncio.sleep(60)
        return 1

    async def at_once() -> int:
        return 1

    nothing: Any = None
    answers = Answers(ConsoleCluster(nothing, KUBEADM, argparse.Namespace()))
    slow = replace(answered_by(rollout.PAGE, never), limit=300.0)
    for number in range(8):
        await answers.get(slow, {"scheduler": f"s{number}"}, 0.0)
    assert (await answers.get(answered_by(now.PAGE, at_once), {}, 1.0)).value == 1
    await answers.close()


async def test_questions_beyond_the_bound_are_refused_while_all_others_are_computed() -> None:
    async def answer() -> int:
        await asyncio.sleep(60)
        return 1

    nothing: Any = None
    answers = Answers(ConsoleCluster(nothing, KUBEADM, argparse.Namespace()))
    page = answered_by(rollout.PAGE, answer)
    for number in range(ENTRIES):
        assert (await answers.get(page, {"scheduler": f"s{number}"}, 0.0)).computing
    refused = await answers.get(page, {"scheduler": "one-more"}, 0.0)
    assert refused.problem == f"{ENTRIES} other questions are being answered; ask again"
    await answers.close()
