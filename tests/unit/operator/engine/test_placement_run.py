"""The operator's own simulation: a task beside the reconciles, and the Pod that answers it."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import JOBS, NODES, PODS
from kube_scheduler_operator.operator.engine import placement_run, simulation_pod
from kube_scheduler_operator.operator.engine.placement_run import (
    Omissions,
    PlacementRunner,
    answer_with,
    at_another_load,
    in_cluster,
    not_called,
    not_timed,
)
from kube_scheduler_operator.operator.model.plan import PlacementQuestion, PlacementRules
from kube_scheduler_operator.operator.model.snapshot import CheckIdentity, PlacementAnswer
from kube_scheduler_operator.simulate import questions
from kube_scheduler_operator.simulate.edit_effect import EditEffect, Loss
from kube_scheduler_operator.simulate.identity import make_identity
from kube_scheduler_operator.simulate.job import LABELS, choose_node
from kube_scheduler_operator.simulate.process import SimulationError
from kube_scheduler_operator.simulate.questions import to_json
from kube_scheduler_operator.simulate.service import Service, ServiceOptions

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api

REASONS = "node(s) didn't match; node(s) had untolerated taint(s)"
LOST = EditEffect(lost=[Loss(REASONS, ["shop/a", "shop/b"])], tried=2)
IN_WORDS = (
    "2 running pods could no longer be placed: node(s) didn't match, node(s) had untolerated "
    "taint(s) (shop/a, shop/b)"
)
NAMESPACE = KUBEADM.target_namespace


def question(configuration: str = "edited", seconds: int = 60) -> PlacementQuestion:
    return PlacementQuestion(
        CheckIdentity(configuration, "running", "2026-01-01T00:00:00Z"),
        PlacementRules({"percentageOfNodesToScore": 5}),
        PlacementRules({"percentageOfNodesToScore": 6}, ("--feature-gates=A=true",)),
        "registry.example/kube-scheduler:v1.35.4",
        ("kube-scheduler",),
        seconds,
    )


# --- the task -------------------------------------------------------------------------------------


class Runs:
    """Plays the simulation.

    Attributes:
        started: configurations, in order.
        ended: those that were cancelled.
    """

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []
        self.go = asyncio.Event()
        self.outcome: Exception | EditEffect | None = LOST

    async def __call__(self, asked: PlacementQuestion) -> PlacementAnswer:
        self.started.append(asked.identity.configuration)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append(asked.identity.configuration)
            raise
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is None:
            return PlacementAnswer(asked.identity, situation="now", unchanged=True)
        omissions = Omissions(notes=["SchedulerExtender x is not called for bind"])
        return answer_with(asked, self.outcome, "now", omissions)


async def answered(runner: PlacementRunner) -> PlacementAnswer:
    for _ in range(1000):
        if runner.answers:
            return next(iter(runner.answers.values()))
        await asyncio.sleep(0.005)
    raise AssertionError("there is no answer")


async def test_the_answer_has_the_effect_in_words_and_wakes_the_operator() -> None:
    runs, woken = Runs(), asyncio.Event()
    runner = PlacementRunner(runs, woken.set)
    runner.follow([question()])
    await asyncio.sleep(0)
    assert (runner.answers, woken.is_set()) == ({}, False)
    runs.go.set()
    answer = await answered(runner)
    assert woken.is_set()
    assert (answer.identity, answer.worse, answer.error) == (question().identity, True, "")
    assert answer.effect.startswith(f"{IN_WORDS}; ")
    assert "note: SchedulerExtender x is not called for bind" in answer.effect
    assert (answer.situation, answer.unchanged, answer.unknown) == ("now", False, False)


@pytest.mark.parametrize(
    ("effect", "omissions"),
    [
        (EditEffect(tried=2, left_out={"tenant": 3}), Omissions()),
        (EditEffect(tried=2, unplaced=["shop/a"]), Omissions()),
        (EditEffect(tried=2), Omissions(("the answers of the extender https://x are not known",))),
    ],
    ids=["left out", "unplaced", "extender"],
)
def test_what_was_not_tried_is_not_known(effect: EditEffect, omissions: Omissions) -> None:
    answer = answer_with(question(), effect, "now", omissions)
    assert (answer.worse, answer.unknown) == (False, True)
    assert "not known" in answer.effect or "not tried" in answer.effect or "lose" in answer.effect


FILTERS = {"filterVerb": "f", "weight": 1}
BINDS = {"bindVerb": "b"}


@pytest.mark.parametrize(
    ("before", "after", "is_known"),
    [
        ({}, {}, True),
        ({"https://x": FILTERS}, {"https://x": FILTERS}, False),
        ({}, {"https://x": FILTERS}, False),
        ({"https://x": FILTERS}, {}, False),
        ({"https://x": BINDS}, {"https://x": BINDS}, True),
        ({"https://x": BINDS}, {"https://x": {**BINDS, "ignorable": True}}, False),
        ({}, {"https://x": BINDS}, False),
    ],
    ids=str,
)
def test_an_extender_whose_answers_decide_is_named(before: Any, after: Any, is_known: bool) -> None:
    assert (not list(not_called(before, after))) == is_known


@pytest.mark.parametrize(
    ("before", "after", "is_known"),
    [
        ("500ms", "500ms", True),
        ("500ms", "1ms", False),
        ("1ms", "500ms", False),
        (None, "500ms", True),
        (None, "1ms", False),
        ("1ms", None, True),
    ],
)
def test_a_timeout_that_is_not_simulated_is_named(
    before: str | None, after: str | None, is_known: bool
) -> None:
    def rules(timeout: str | None) -> PlacementRules:
        entry = {"urlPrefix": "http://127.0.0.1:5401/safe", "filterVerb": "f"}
        return PlacementRules({"extenders": [{**entry, "httpTimeout": timeout}] if timeout else []})

    assert (not list(not_timed(rules(before), rules(after)))) == is_known


async def test_an_unchanged_situation_is_an_answer() -> None:
    runs = Runs()
    runs.outcome = None
    runs.go.set()
    runner = PlacementRunner(runs, lambda: None)
    runner.follow([question()])
    expected = PlacementAnswer(question().identity, situation="now", unchanged=True)
    assert await answered(runner) == expected


async def test_a_simulation_that_runs_or_has_its_answer_is_not_started_again() -> None:
    runs = Runs()
    runner = PlacementRunner(runs, lambda: None)
    for _ in range(3):
        runner.follow([question()])
        await asyncio.sleep(0)
    runs.go.set()
    await answered(runner)
    runner.follow([question()])
    await asyncio.sleep(0)
    assert runs.started == ["edited"]


async def test_another_edit_ends_the_simulation_of_the_one_before() -> None:
    runs = Runs()
    runner = PlacementRunner(runs, lambda: None)
    runner.follow([question()])
    await asyncio.sleep(0)
    runner.follow([question("another")])
    await asyncio.sleep(0.01)
    assert (runs.started, runs.ended) == (["edited", "another"], ["edited"])
    runner.follow([])
    await asyncio.sleep(0.01)
    assert runs.ended == ["edited", "another"]
    runner.follow([question()])
    await asyncio.sleep(0)
    await runner.close()
    assert runs.ended == ["edited", "another", "edited"]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (SimulationError("no node is Ready"), "no node is Ready"),
        (OSError("connection\nlost"), "connection lost"),
        (ZeroDivisionError("x"), "ZeroDivisionError: x"),
    ],
    ids=str,
)
async def test_a_failure_is_an_answer(outcome: Exception, error: str) -> None:
    runs = Runs()
    runs.outcome = outcome
    runs.go.set()
    runner = PlacementRunner(runs, lambda: None)
    runner.follow([question()])
    assert (await answered(runner)).error == error


async def test_a_simulation_ends_at_its_limit() -> None:
    runs = Runs()
    runner = PlacementRunner(runs, lambda: None)
    runner.follow([replace(question(), seconds=0)])
    answer = await answered(runner)
    assert (answer.worse, runs.ended) == (False, ["edited"])
    assert "it did not end within 0 s (spec.placementCheck.timeoutSeconds)" in answer.error


async def test_a_tenants_simulations_wait_for_each_other_and_no_one_else_waits_for_them() -> None:
    runs = Runs()
    runner = PlacementRunner(runs, lambda: None)
    own = [replace(question(name), turn="team-a") for name in ("a1", "a2")]
    runner.follow([*own, replace(question("b"), turn="team-b"), question("control plane")])
    await asyncio.sleep(0.01)
    assert runs.started == ["a1", "b", "control plane"]
    runner.follow(own[1:])  # the edit a1 was reverted
    await asyncio.sleep(0.01)
    assert runs.started[3:] == ["a2"]
    assert sorted(runs.ended) == ["a1", "b", "control plane"]
    runs.go.set()
    await answered(runner)
    assert [identity.configuration for identity in runner.answers] == ["a2"]
    runner.follow([])
    assert runner.answers == {}
    await runner.close()


AGENT = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]}
LOADED = {"policies": [{"name": "load-aware"}], "loadPolicy": "default"}
SCORING = {"policies": [{"name": "safe-balance"}]}


def rules_with(agent: Any, verbs: Any = FILTERS, **load: Any) -> PlacementRules:
    entry = {"urlPrefix": "http://127.0.0.1:5401/one", **verbs}
    policies = {"default": load} if load else {}
    return PlacementRules({"extenders": [entry]}, agents={"one": agent}, load_policies=policies)


@pytest.mark.parametrize(
    ("before", "after", "is_known"),
    [
        (rules_with(AGENT), rules_with(AGENT), True),
        (
            rules_with(AGENT),
            rules_with(
                {"policies": [{"name": "safe-overload", "weight": 3}, *SCORING["policies"]]}
            ),
            False,
        ),
        (
            rules_with(AGENT),
            rules_with({"policies": [*AGENT["policies"], *SCORING["policies"]]}),
            True,
        ),
        (rules_with(AGENT), rules_with({**AGENT, "resources": {"limits": {"cpu": "1"}}}), True),
        (
            rules_with(AGENT),
            rules_with({**AGENT, "podSelector": {"matchLabels": {"app": "x"}}}),
            False,
        ),
        (
            rules_with(LOADED, predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": "80%"}]),
            rules_with(LOADED, predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": "10%"}]),
            False,
        ),
        (
            rules_with(LOADED, priorities=[{"name": "cpu_usage_avg_5m", "weight": 1}]),
            rules_with(LOADED, priorities=[{"name": "cpu_usage_avg_5m", "weight": 2}]),
            True,
        ),
        (
            rules_with(SCORING, {"prioritizeVerb": "p", "weight": 1}),
            rules_with(
                {"policies": [{"name": "safe-balance", "weight": 2}]},
                {"prioritizeVerb": "p", "weight": 1},
            ),
            True,
        ),
    ],
    ids=["same", "arguments", "scores", "memory", "pods", "limit", "priority", "only scores"],
)
def test_of_an_agents_filter_a_simulation_knows_this_moment(
    before: PlacementRules, after: PlacementRules, is_known: bool
) -> None:
    """At a moment of low load, a limit rejects no node."""
    options = [
        placement_run._options(rules, question(), "v1.35.4", []) for rules in (before, after)
    ]
    assert all(len(made.extenders) == 1 for made in options)
    named = list(at_another_load(options[0].extenders, options[1].extenders))
    assert (named == []) is is_known
    assert is_known or "SchedulerExtender one" in named[0]


# --- the Job --------------------------------------------------------------------------------------


class Kubelet:
    """Creates the Pod of the Job and runs its program, with a certificate.

    Attributes:
        reported: hash of the certificate, as it is reported; empty: that of the certificate.
        job: as it was created.
    """

    def __init__(self, api: FakeApi, folder: Path, port: int) -> None:
        self.reported = ""
        self.job: dict[str, Any] = {}
        self._api, self._folder, self._port = api, folder, port

    async def run(self) -> None:
        jobs = self._api.objects.setdefault(JOBS, {})
        for _ in range(1000):
            if jobs:
                break
            await asyncio.sleep(0.01)
        ((_, name),) = jobs
        (self.job,) = jobs.values()
        template = self.job["spec"]["template"]
        digest = await asyncio.to_thread(make_identity, self._folder)
        ended = {"exitCode": 0, "message": self.reported or digest}
        running: dict[str, Any] = {"state": {"running": {}}}
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
        status = {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "initContainerStatuses": [
                {"name": "certificate", "state": {"terminated": ended}},
                {"name": "operand", **running},
            ],
            "containerStatuses": [{"name": "simulation", **running}],
        }
        metadata: dict[str, Any] = {
            "name": f"{name}-x",
            "namespace": NAMESPACE,
            "labels": labels,
            "ownerReferences": [JOBS.owner(name, self.job["metadata"]["uid"])],
        }
        self._api.put(
            PODS,
            metadata["name"],
            NAMESPACE,
            metadata=metadata,
            spec=template["spec"],
            status=status,
        )
        key_hash = template["spec"]["containers"][0]["args"][0].removeprefix("--key-sha256=")
        options = ServiceOptions(
            "127.0.0.1", key_hash, 30, self._port, Path(sys.executable), self._folder
        )
        await Service(options).run()


async def version(_: web.Request) -> web.Response:
    return web.json_response({"gitVersion": "v1.35.4"})


@pytest.fixture
def asked_questions() -> list[questions.Asked]:
    return []


@pytest.fixture
async def kubelet(
    api: FakeApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked_questions: list[questions.Asked],
) -> AsyncIterator[Kubelet]:
    async def answer(self: questions.Asked, binary: Path) -> bytes:
        assert binary == Path(sys.executable)
        asked_questions.append(self)
        return to_json(LOST)

    monkeypatch.setattr(questions.Asked, "answer", answer)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = int(listening.getsockname()[1])
    monkeypatch.setattr(simulation_pod, "PORT", port)
    monkeypatch.setattr(simulation_pod, "_POLL", 0.02)
    monkeypatch.setattr(simulation_pod, "_CONNECTING", 2.0)
    api.served |= {JOBS, NODES, PODS}
    api.routes["/version"] = version
    status = {
        "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    api.put(NODES, "cp", spec={}, status=status)
    made = Kubelet(api, tmp_path, port)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def simulated(
    api: FakeApi, situation: str = "", before: PlacementRules | None = None
) -> PlacementAnswer:
    settings = Settings(operator_image="operator:1", image_pull_secrets=("registry",))
    async with ApiClient(api.credentials(), field_manager="test") as client:
        asked = replace(question(), situation=situation)
        asked = replace(asked, before=before) if before is not None else asked
        return await in_cluster(client, KUBEADM, settings, asyncio.Lock())(asked)


def writes(api: FakeApi) -> list[str]:
    return [f"{seen.method} {seen.path}" for seen in api.seen if seen.method != "GET"]


async def test_the_answer_comes_from_the_pod_of_a_job_that_is_deleted(
    api: FakeApi, kubelet: Kubelet
) -> None:
    assert (await simulated(api)).effect.startswith(IN_WORDS)
    spec = kubelet.job["spec"]["template"]["spec"]
    certificate, _, operand = spec["initContainers"]
    assert (certificate["image"], operand["image"]) == ("operator:1", question().image)
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    name = kubelet.job["metadata"]["name"]
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    assert writes(api) == [f"POST {jobs}", f"DELETE {jobs}/{name}"]
    assert kubelet.job["metadata"]["labels"] == LABELS


async def test_a_pod_with_another_certificate_gets_no_world(api: FakeApi, kubelet: Kubelet) -> None:
    kubelet.reported = "00" * 32
    with pytest.raises(SimulationError, match="does not answer"):
        await simulated(api)
    assert writes(api)[-1].startswith("DELETE ")


async def test_without_a_node_that_has_room_no_job_is_created(
    api: FakeApi, kubelet: Kubelet
) -> None:
    api.put(NODES, "cp", spec={}, status={"allocatable": {"cpu": "50m"}})
    with pytest.raises(SimulationError, match="no node is Ready and has 110m of CPU"):
        await simulated(api)
    assert writes(api) == []


async def test_the_node_is_chosen_beside_the_reconciles(
    api: FakeApi, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time depends on Pods of others."""
    threads: list[threading.Thread] = []

    def chosen(*arguments: Any) -> str | None:
        threads.append(threading.current_thread())
        return choose_node(*arguments)

    monkeypatch.setattr(placement_run, "choose_node", chosen)
    assert (await simulated(api)).effect.startswith(IN_WORDS)
    assert threads
    assert threading.main_thread() not in threads


async def test_a_repetition_without_a_change_has_no_job(api: FakeApi, kubelet: Kubelet) -> None:
    found = await simulated(api)
    api.objects[PODS].clear()  # as the garbage collector does after the deletion of the Job
    api.seen.clear()
    again = await simulated(api, found.situation)
    expected = PlacementAnswer(again.identity, situation=found.situation, unchanged=True)
    assert (again, writes(api)) == (expected, [])


async def test_a_repetition_after_a_change_is_simulated(api: FakeApi, kubelet: Kubelet) -> None:
    api.put(PODS, "new", "shop", spec={"containers": [{"name": "a"}]}, status={})
    assert (await simulated(api, "0" * 64)).effect.startswith(IN_WORDS)


async def test_agents_take_part_as_they_were_and_others_are_not_known(
    api: FakeApi, kubelet: Kubelet, asked_questions: list[questions.Asked]
) -> None:
    """The simulation of today has the policies in use, whatever the objects are by now."""
    entry = {"urlPrefix": "http://127.0.0.1:5401/safe", "filterVerb": "filter"}
    foreign = {"urlPrefix": "https://extender.example", "filterVerb": "filter"}
    agent = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]}
    before = PlacementRules({"extenders": [entry, foreign]}, agents={"safe": agent})
    answer = await simulated(api, before=before)
    (asked,) = asked_questions
    (extender,) = asked.options.extenders
    assert extender.document["agents"][0]["policies"][0]["arguments"] == {"utilization": 80}
    assert asked.arguments["extenders"] == []
    assert (answer.worse, answer.unknown) == (True, True)
    assert "the answers of the extender https://extender.example are not known" in answer.effect
