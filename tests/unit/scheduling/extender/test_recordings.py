"""Recorded requests of real kube-schedulers get valid responses.

The recordings are from kube-scheduler itself (hack/record-extender); those of 1.29 are written by
hand after its source. An answer is judged as kube-scheduler's extender.go does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.recording import wire
from kube_scheduler_operator.scheduling.extender.routes import Routes, verbs_of
from kube_scheduler_operator.scheduling.extender.verbs import VerbContext
from kube_scheduler_operator.scheduling.policies.cluster import Cluster

from .conftest import StubPolicy, agent_of, node, request, running
from .test_routes import routes_of

RECORDINGS = Path(__file__).parent / "recordings"
FILES = sorted(RECORDINGS.glob("*.json"))


def requests() -> list[Any]:
    found = []
    for file in FILES:
        document = json.loads(file.read_text(encoding="utf-8"))
        for number, each in enumerate(document["requests"]):
            name = f"{file.stem}-{number}-{each['verb']}"
            found.append(pytest.param(document["form"], each, id=name))
    return found


def test_recordings_cover_every_verb_with_names_and_nodes() -> None:
    seen = {
        (document["kubernetes"], document["form"], each["verb"])
        for document in (json.loads(file.read_text(encoding="utf-8")) for file in FILES)
        for each in document["requests"]
    }
    for form in ("names", "nodes"):
        assert {verb for _, f, verb in seen if f == form} == {
            "filter", "prioritize", "preempt", "bind"
        }  # fmt: skip
    assert len({kubernetes for kubernetes, _, _ in seen}) >= 3


async def answer_of(routes: Routes, recorded: dict[str, Any], form: str) -> Any:
    body = wire(recorded["body"])
    headers = {key.replace("-", "_"): value for key, value in recorded["headers"].items()}
    headers.pop("User_Agent", None)
    async with running(routes) as server, server.client() as client:
        verb = recorded["verb"]
        # As with a long body: not all of it comes at a time.
        whole = request("POST", f"/agent/{verb}", body, **headers)
        for part in (whole[:100], whole[100:-50], whole[-50:]):
            await client.send(part)
        answer = await client.answer()
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    return answer.json


def sent_names(body: dict[str, Any]) -> list[str]:
    if body.get("NodeNames") is not None:
        return list(body["NodeNames"])
    return [item["metadata"]["name"] for item in body["Nodes"]["items"]]


@pytest.fixture(params=["known", "unknown"])
def routes(request: pytest.FixtureRequest) -> tuple[Routes, list[str]]:
    bound: list[str] = []

    async def bind(binding: Any) -> None:
        bound.append(f"{binding.namespace}/{binding.name}@{binding.node}")

    cluster = Cluster(lambda: 0.0)
    if request.param == "known":
        for number in range(3):
            cluster.set_node(node(f"hollow-{number:05d}"))
    from kube_scheduler_operator.scheduling.extender.decisions import Decisions
    from kube_scheduler_operator.scheduling.extender.wire import Fragments

    context = VerbContext(cluster, Fragments(cluster), Decisions(10, cluster.now))
    policy = StubPolicy(cluster, lambda n: np.arange(n), reasons={0: "hot"}, unresolvable=[0])
    found = routes_of(context)
    found.verbs = verbs_of([agent_of(policy)], context, bind)
    return found, bound


@pytest.mark.parametrize(("form", "recorded"), requests())
async def test_a_recorded_request_is_answered(
    form: str, recorded: dict[str, Any], routes: tuple[Routes, list[str]]
) -> None:
    server, bound = routes
    body = recorded["body"]
    answer = await answer_of(server, recorded, form)
    check = {"filter": filtered, "prioritize": prioritized, "preempt": preempted}.get(
        recorded["verb"]
    )
    if check is not None:
        check(form, body, answer)
    else:
        assert answer == {"Error": ""}
        assert bound == [f"{body['PodNamespace']}/{body['PodName']}@{body['Node']}"]


def filtered(form: str, body: dict[str, Any], answer: Any) -> None:
    assert set(answer) == {
        "Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"
    }  # fmt: skip
    assert answer["Error"] == ""
    names = sent_names(body)
    if form == "names":
        assert answer["Nodes"] is None
        left = answer["NodeNames"]
    else:
        # Up to 1.30 the nodes of the answer take the place of the scheduler's own.
        assert answer["NodeNames"] is None
        left = [item["metadata"]["name"] for item in answer["Nodes"]["items"]]
        by_name = {item["metadata"]["name"]: item for item in body["Nodes"]["items"]}
        assert answer["Nodes"]["items"] == [by_name[name] for name in left]
    rejected = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
    assert all(isinstance(reason, str) and reason for reason in rejected.values())
    assert set(left) | set(rejected) == set(names)
    assert not set(left) & set(rejected)
    assert left == [name for name in names if name in left]


def prioritized(form: str, body: dict[str, Any], answer: Any) -> None:
    assert [set(each) for each in answer] == [{"Host", "Score"}] * len(answer)
    assert [each["Host"] for each in answer] == sent_names(body)
    assert all(type(each["Score"]) is int and 0 <= each["Score"] <= 10 for each in answer)


def preempted(form: str, body: dict[str, Any], answer: Any) -> None:
    sent = body.get("NodeNameToMetaVictims") or body.get("NodeNameToVictims") or {}
    assert set(answer) == {"NodeNameToMetaVictims"}
    assert set(answer["NodeNameToMetaVictims"]) <= set(sent)
    for name, victims in answer["NodeNameToMetaVictims"].items():
        known = [
            pod["UID"] if "UID" in pod else pod["metadata"]["uid"] for pod in sent[name]["Pods"]
        ]
        assert [pod["UID"] for pod in victims["Pods"]] == known
        assert victims["NumPDBViolations"] == sent[name]["NumPDBViolations"]
